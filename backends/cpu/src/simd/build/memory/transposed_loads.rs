//! Transposed loads: lanes that lie in different rows, where the next statements read the neighbouring elements of the same rows.
//!
//! A transposition reads one element of each of many rows, and the next statement reads its neighbours. Instead of gathers, a block
//! of rows is loaded along the rows and transposed in registers, in which the statements then find their lanes. A loop along the
//! rows is unrolled into such statements first.

use smallvec::SmallVec;
use tilewright_core::annotation::PREFETCH;
use tilewright_core::expr::{Expr, ExprKind};
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::Index;
use tilewright_core::stmt::{For, LoopKind, Stmt, Store};
use tilewright_core::visit::substitute_stmt;

use crate::flat::access::for_each_load;
use crate::flat::lanes::at_lane;
use crate::simd::Refusal;
use crate::simd::build::stmt::registers::single;
use crate::simd::build::value::group::Group;
use crate::simd::build::{Builder, Outcome};
use crate::simd::ir::Reg;

/// Loads of the same lanes in several statements, at different distances from the first one.
#[derive(Debug)]
pub(in crate::simd::build) struct TransposedLoad {
    buffer: BufferId,
    /// Where the first of them reads.
    index: Index,
    /// The number of columns: one more than the farthest is behind the first.
    columns: usize,
    /// The columns of a group of lanes, when they have been loaded.
    loaded: Option<(Group, Vec<Reg>)>,
}

/// Statements at the beginning of a sequence that share transposed loads.
struct Run<'s> {
    stores: SmallVec<[&'s Store; 16]>,
    loads: Vec<TransposedLoad>,
}

impl Builder<'_> {
    /// Builds a loop along rows whose body loads columns, several iterations at once; false when it is another loop.
    pub(in crate::simd::build) fn repeat_transposed(&mut self, node: &For) -> Outcome<bool> {
        let Some(extent) = self.resolve(&node.extent).as_constant() else { return Ok(false) };
        if node.kind != LoopKind::Serial || self.guard.is_some() {
            return Ok(false);
        }
        let columns = (self.columns_along(node, extent) as i64).min(extent);
        if columns < 2 {
            return Ok(false);
        }
        let iterations = |first: &dyn Fn(i64) -> Index, count: i64| {
            Stmt::seq((0..count).map(|number| {
                let mut body = node.body.clone();
                substitute_stmt(&mut body, &|var| (var == node.var).then(|| first(number)));
                body
            }))
        };
        let whole = extent / columns;
        let body = iterations(&|number| Index::var(node.var).scale(columns).offset(number), columns);
        let mut annotations = node.annotations.clone();
        PREFETCH.update(&mut annotations, |distance| (distance + columns - 1) / columns);
        self.stmt(&Stmt::For(For { extent: whole.into(), body, annotations, ..node.clone() }.into()))?;
        let done = whole * columns;
        self.stmt(&iterations(&|number| Index::constant(done + number), extent - done))?;
        Ok(true)
    }

    /// The number of iterations of a loop that form one block of columns; 0 when its body does anything but store, or loads no
    /// column of rows along which the loop runs.
    fn columns_along(&mut self, node: &For, extent: i64) -> usize {
        let body = std::slice::from_ref(&node.body);
        let stmts = if let Stmt::Seq(stmts) = &node.body { stmts } else { body };
        let next = |var: VarId| (var == node.var).then(|| Index::var(var).offset(1));
        let outer = self.ranges.insert(node.var, extent.into());
        let mut columns = None;
        for stmt in stmts {
            let Stmt::Store(store) = stmt else {
                columns = None;
                break;
            };
            for (buffer, index) in self.loads_to_transpose(store) {
                if (&index.substitute(&next) - &index).as_constant() == Some(1) {
                    let own = self.most_columns(buffer);
                    columns = Some(columns.map_or(own, |columns: usize| columns.min(own)));
                }
            }
        }
        self.ranges.remove(node.var);
        if let Some(outer) = outer {
            self.ranges.insert(node.var, outer);
        }
        columns.unwrap_or(0)
    }

    /// The most columns of a block of elements of a buffer; 0 where blocks are not allowed.
    fn most_columns(&self, buffer: BufferId) -> usize {
        let in_vector = self.extension.bytes() as usize / self.program.buffer(buffer).dtype.bytes();
        in_vector.checked_div(self.limits.column_parts).unwrap_or(0)
    }

    /// Builds the statements at the beginning of a sequence that share transposed loads. Returns their number.
    pub(in crate::simd::build) fn run_transposed(&mut self, stmts: &[Stmt]) -> Outcome<usize> {
        let Some(run) = self.as_run(stmts) else { return Ok(0) };
        let Run { stores, loads } = run;
        let outer = std::mem::replace(&mut self.transposed_loads, loads);
        let result = self.run_by_group(&stores);
        self.transposed_loads = outer;
        result.map(|()| stores.len())
    }

    fn run_by_group(&mut self, stores: &[&Store]) -> Outcome<()> {
        for group in self.groups_of_store(stores[0]) {
            self.transposed_loads.iter_mut().for_each(|own| own.loaded = None);
            for store in stores {
                self.new_statement();
                let index = single(&store.indices).ok_or(Refusal::Statement)?;
                let value = self.value(&store.value, group)?;
                self.store(store.buffer, &index, group, value)?;
            }
        }
        Ok(())
    }

    fn as_run<'s>(&mut self, stmts: &'s [Stmt]) -> Option<Run<'s>> {
        if self.guard.is_some() || stmts.len() < 2 {
            return None;
        }
        let mut run = Run { stores: SmallVec::new(), loads: Vec::new() };
        let mut groups = None;
        for stmt in stmts {
            let Stmt::Store(store) = stmt else { break };
            let crossing = self.loads_to_transpose(store);
            if crossing.is_empty()
                || Some(self.lanes_of(&store.value)) > single(&store.indices).map(|own| own.lanes())
            {
                break;
            }
            let own = self.groups_of_store(store);
            if *groups.get_or_insert_with(|| own.clone()) != own || !self.join(&mut run.loads, crossing) {
                break;
            }
            run.stores.push(store);
        }
        run.loads.retain(|own| own.columns > 1);
        let has_one_group = groups.is_some_and(|groups| groups.len() == 1);
        let is_open = run.stores.len() > 1 && !run.loads.is_empty() && self.may_be_early(&run);
        (is_open && (has_one_group || self.may_go_by_group(&run.stores))).then_some(run)
    }

    /// Lets the loads of a statement join those of the statements before; false when they go too far behind them.
    fn join(&self, loads: &mut Vec<TransposedLoad>, crossing: SmallVec<[(BufferId, Index); 2]>) -> bool {
        for (buffer, index) in crossing {
            let behind = |own: &TransposedLoad| {
                (own.buffer == buffer).then(|| (&index - &own.index).as_constant()).flatten()
            };
            match loads.iter_mut().find_map(|own| behind(own).map(|behind| (behind, own))) {
                Some((behind, own)) => match usize::try_from(behind) {
                    // A gap between columns would load elements that no statement reads.
                    Ok(column) if column <= own.columns && column < self.most_columns(buffer) => {
                        own.columns = own.columns.max(column + 1);
                    }
                    _ => return false,
                },
                None => loads.push(TransposedLoad { buffer, index, columns: 1, loaded: None }),
            }
        }
        true
    }

    /// Whether the statements of a run write no buffer that they load early.
    fn may_be_early(&self, run: &Run<'_>) -> bool {
        run.loads.iter().all(|own| run.stores.iter().all(|store| store.buffer != own.buffer))
    }

    /// Whether statements can be executed group by group: they read nothing that is written in them but the very place that
    /// they write themselves, and no two groups of theirs write the same element.
    fn may_go_by_group(&self, stores: &[&Store]) -> bool {
        let mut places: SmallVec<[(BufferId, Index); 16]> = SmallVec::new();
        for store in stores {
            let Some(index) = single(&store.indices) else { return false };
            places.push((store.buffer, self.resolve(&index)));
            let mut is_own = true;
            for_each_load(&store.value, &mut |access| {
                is_own &= stores.iter().all(|other| other.buffer != access.buffer)
                    || access.buffer == store.buffer && access.indices == &store.indices[..];
            });
            if !is_own {
                return false;
            }
        }
        places.iter().enumerate().all(|(number, (buffer, index))| {
            let Some((_, offsets)) = self.lane_offsets(index) else { return false };
            let is_contiguous = offsets.iter().zip(0..).all(|(offset, lane)| *offset == offsets[0] + lane);
            is_contiguous
                && places[..number].iter().filter(|(other, _)| other == buffer).all(|(_, other)| {
                    let apart = (index - other).as_constant();
                    apart.is_some_and(|apart| apart == 0 || apart.unsigned_abs() >= offsets.len() as u64)
                })
        })
    }

    /// The loads of a statement whose lanes are not contiguous, at indices that depend on no data and lie inside their buffer.
    fn loads_to_transpose(&self, store: &Store) -> SmallVec<[(BufferId, Index); 2]> {
        let mut found = SmallVec::new();
        let Some(lanes) = single(&store.indices).map(|index| index.lanes()).filter(|lanes| *lanes > 1) else {
            return found;
        };
        if matches!(store.value.kind(), ExprKind::Constant(_)) {
            return found;
        }
        for_each_load(&store.value, &mut |access| {
            let Some(index) = single(access.indices) else { return };
            let bytes = self.program.buffer(access.buffer).dtype.bytes();
            let is_candidate = bytes >= 4
                && index.lanes() == lanes
                && !self.is_in_registers(access.buffer)
                && !self.around.in_registers.contains(&access.buffer)
                && !reads_memory(&index);
            if !is_candidate {
                return;
            }
            let index = self.resolve(&index);
            let lies_apart = self.lane_offsets(&index).is_none_or(|(_, offsets)| {
                offsets.iter().zip(0..).any(|(offset, lane)| *offset != offsets[0] + lane)
                    && offsets.iter().any(|offset| *offset != offsets[0])
            });
            if lies_apart && self.is_inside(access.buffer, &index) {
                found.push((access.buffer, index));
            }
        });
        found
    }

    /// The lanes of a load from a transposed block, which is loaded now unless it was before.
    pub(in crate::simd::build) fn load_transposed(
        &mut self,
        buffer: BufferId,
        index: &Index,
        group: Group,
    ) -> Outcome<Option<Reg>> {
        if self.transposed_loads.is_empty() || self.guard.is_some() {
            return Ok(None);
        }
        let index = self.resolve(index);
        let column = |own: &TransposedLoad| {
            let behind = (own.buffer == buffer).then(|| (&index - &own.index).as_constant())??;
            usize::try_from(behind).ok().filter(|column| *column < own.columns)
        };
        let found =
            self.transposed_loads.iter().enumerate().find_map(|(number, own)| Some((number, column(own)?)));
        let Some((number, column)) = found else { return Ok(None) };
        if let Some((_, columns)) =
            self.transposed_loads[number].loaded.as_ref().filter(|(own, _)| *own == group)
        {
            return Ok(Some(columns[column]));
        }
        let columns = self.transposed_rows(number, group)?;
        let found = columns[column];
        self.transposed_loads[number].loaded = Some((group, columns));
        Ok(Some(found))
    }

    /// Loads the rows of a group of lanes and transposes them into columns.
    fn transposed_rows(&mut self, number: usize, group: Group) -> Outcome<Vec<Reg>> {
        let TransposedLoad { buffer, ref index, columns, .. } = self.transposed_loads[number];
        let index = index.clone();
        let dtype = self.program.buffer(buffer).dtype;
        let mut rows = Vec::new();
        for lane in 0..group.lanes {
            let first = at_lane(&index, group.start + lane);
            self.prefetch_ahead(buffer, &first);
            let mem = self.address(buffer, &first)?;
            rows.push(self.load_row(dtype, mem, columns as u32));
        }
        let mut transposed = self.transposed(dtype.bytes() as u32, &rows)?;
        transposed.truncate(columns);
        Ok(transposed)
    }
}

/// Whether an index depends on what is in memory.
fn reads_memory(index: &Index) -> bool {
    let mut reads = false;
    for_each_load(&Expr::index(index.clone()), &mut |_| reads = true);
    reads
}
