//! Statements on single elements of fragments: each lane executes them for the elements that it holds.

use rustc_hash::FxHashMap;
use tilewright_core::expr::{Expr, ExprKind};
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::Index;
use tilewright_core::intrinsic::TileBit;
use tilewright_core::program::{Program, Scope};
use tilewright_core::stmt::{Stmt, Store};
use tilewright_core::visit::{for_each_load, rewrite_expr};

use super::{LANES, Shape};
use crate::emit::{Generator, Outcome, unsupported};

/// Loops and conditions around one store.
pub(super) struct WarpNest {
    loops: Vec<(VarId, i64)>,
    pub(super) conditions: Vec<Expr>,
    pub(super) store: Store,
}

/// The loops of a nest that run through the rows and the columns of a fragment's tiles.
#[derive(Clone, Copy)]
pub(super) struct TileLoops {
    pub(super) row: (VarId, i64),
    pub(super) column: (VarId, i64),
}

impl WarpNest {
    pub(super) fn of(stmt: &Stmt) -> Option<Self> {
        let (mut loops, mut conditions, mut inside) = (Vec::new(), Vec::new(), stmt);
        loop {
            match inside {
                Stmt::For(node) => {
                    loops.push((node.var, node.extent.as_constant()?));
                    inside = &node.body;
                }
                Stmt::If(node) if node.otherwise.is_none() => {
                    conditions.push(node.condition.clone());
                    inside = &node.then;
                }
                Stmt::Store(store) => {
                    return Some(WarpNest { loops, conditions, store: Store::clone(store) });
                }
                _ => return None,
            }
        }
    }

    /// The accesses to fragments, that of the store first.
    fn fragments(&self, program: &Program) -> Vec<(BufferId, Index)> {
        let mut found = Vec::new();
        let mut note = |buffer: BufferId, indices: &[Index]| {
            if let (Scope::Fragment, [index]) = (program.buffer(buffer).scope, indices) {
                found.push((buffer, index.clone()));
            }
        };
        note(self.store.buffer, &self.store.indices);
        for expr in std::iter::once(&self.store.value).chain(&self.conditions) {
            for_each_load(expr, &mut |buffer, indices| note(buffer, indices));
        }
        found
    }

    fn tile_loops(&self, shape: &Shape, index: &Index) -> Option<TileLoops> {
        let find = |coefficient: i64, length: i64| {
            let is_along = |(var, extent): &&(VarId, i64)| {
                index.linear_coefficient(*var) == Some(coefficient) && extent % length == 0
            };
            self.loops.iter().find(is_along).copied()
        };
        Some(TileLoops {
            row: find(shape.pitch, shape.layout.rows())?,
            column: find(1, shape.layout.columns())?,
        })
    }

    /// Gives fragments of unknown shape that of another one whose elements are accessed together; whether there is a new one.
    pub(super) fn pass_on(&self, program: &Program, shapes: &mut FxHashMap<BufferId, Shape>) -> bool {
        let accesses = self.fragments(program);
        let known = accesses.iter().find_map(|(buffer, index)| {
            let shape = shapes.get(buffer)?;
            Some((shape.layout.clone(), self.tile_loops(shape, index)?))
        });
        let Some((layout, loops)) = known else { return false };
        let mut is_new = false;
        for (buffer, index) in accesses {
            if let (Some(pitch), Some(1), false) = (
                index.linear_coefficient(loops.row.0),
                index.linear_coefficient(loops.column.0),
                shapes.contains_key(&buffer),
            ) {
                shapes.insert(buffer, Shape { layout: layout.clone(), pitch });
                is_new = true;
            }
        }
        is_new
    }
}

/// The elements that one statement is executed for at once: beside each other in the registers of each lane.
struct Group<'a> {
    shape: &'a Shape,
    loops: TileLoops,
    /// The first row and the first column of the tile.
    tile: (i64, i64),
    /// The first slot, and how many slots there are.
    slot: i64,
    width: u32,
    /// The values of the other loops.
    others: Vec<(VarId, i64)>,
}

impl Group<'_> {
    /// The value of a loop for one element.
    fn at(&self, var: VarId, lane: i64, slot: i64) -> Option<i64> {
        let (row, column) = self.shape.layout.element_of(lane, slot);
        match var {
            _ if var == self.loops.row.0 => Some(self.tile.0 + row),
            _ if var == self.loops.column.0 => Some(self.tile.1 + column),
            _ => self.others.iter().find(|(other, _)| *other == var).map(|(_, value)| *value),
        }
    }

    /// The value of a loop in each lane of the warp.
    fn in_lane(&self, var: VarId, lane: &Index) -> Option<Index> {
        let (mut row, mut column) = self.shape.layout.element_in_lane(lane, self.slot);
        if self.width > 1 {
            match self.shape.layout.slot_bits()[0] {
                TileBit::Row(_) => row = &row + &Index::lane(self.width),
                TileBit::Column(_) => column = &column + &Index::lane(self.width),
            }
        }
        match var {
            _ if var == self.loops.row.0 => Some(row.offset(self.tile.0)),
            _ if var == self.loops.column.0 => Some(column.offset(self.tile.1)),
            _ => {
                self.others.iter().find(|(other, _)| *other == var).map(|(_, value)| Index::constant(*value))
            }
        }
    }
}

/// How many slots from the first one on hold neighbours along a row or a column.
fn neighbours(shape: &Shape) -> u32 {
    let bits = shape.layout.slot_bits();
    let follows = |(place, bit): &(u32, &TileBit)| match (bits[0], bit) {
        (TileBit::Row(0), TileBit::Row(own)) | (TileBit::Column(0), TileBit::Column(own)) => own == place,
        _ => false,
    };
    1 << (0..).zip(bits).take_while(follows).count()
}

impl Generator<'_> {
    /// Executes a statement for the elements of fragments that each lane holds.
    pub(super) fn elements(&mut self, body: &Stmt) -> Outcome<()> {
        let nest = WarpNest::of(body)
            .ok_or_else(|| self.broken("a statement of a warp is no nest around a store"))?;
        let accesses = nest.fragments(self.program);
        let Some((buffer, index)) = accesses.first() else { return Err(self.broken("there is no fragment")) };
        let index = self.resolve(index);
        let shape = self.shapes.get(buffer).cloned();
        let Some((shape, loops)) = shape.and_then(|shape| {
            let loops = nest.tile_loops(&shape, &index)?;
            Some((shape, loops))
        }) else {
            return Err(self.refuse_fragment(*buffer, "a statement does not run through whole tiles of it"));
        };
        let is_kept = self.program.buffer(nest.store.buffer).scope == Scope::Fragment;
        let width = if nest.conditions.is_empty() || is_kept { neighbours(&shape) } else { 1 };
        let mut others = vec![Vec::new()];
        for (var, extent) in
            nest.loops.iter().filter(|(var, _)| *var != loops.row.0 && *var != loops.column.0)
        {
            let with = |known: Vec<(VarId, i64)>| {
                (0..*extent).map(move |value| [known.clone(), vec![(*var, value)]].concat())
            };
            others = others.into_iter().flat_map(with).collect();
        }
        for others in others {
            if self.load_matrices(&nest, &shape, loops, &others)? {
                continue;
            }
            for row in (0..loops.row.1).step_by(shape.layout.rows() as usize) {
                for column in (0..loops.column.1).step_by(shape.layout.columns() as usize) {
                    for slot in (0..shape.layout.slots()).step_by(width as usize) {
                        let (tile, others) = ((row, column), others.clone());
                        let group = Group { shape: &shape, loops, tile, slot, width, others };
                        self.group(&nest, &group, is_kept)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn refuse_fragment(&self, buffer: BufferId, problem: &str) -> tilewright_core::device::CompileError {
        unsupported(format!("fragment `{}`: {problem}", self.program.buffer(buffer).name))
    }

    fn group(&mut self, nest: &WarpNest, group: &Group<'_>, is_kept: bool) -> Outcome<()> {
        let lane = self.lane.ok_or_else(|| self.broken("a nest with fragments has no lanes"))?;
        let store = &nest.store;
        let mut value = self.in_group(&store.value, group, lane)?;
        let conditions: Outcome<Vec<Expr>> =
            nest.conditions.iter().map(|condition| self.in_group(condition, group, lane)).collect();
        let mut conditions = conditions?;
        let index = self.element_index(store.buffer, &store.indices, group, lane)?;
        if is_kept {
            let old = Expr::load(store.value.dtype(), store.buffer, [index.clone()]);
            let keep = |value, condition| Expr::select(condition, value, old.clone());
            value = conditions.drain(..).rev().fold(value, keep);
        }
        let stored = Stmt::store(store.buffer, [index], value);
        let guarded =
            conditions.into_iter().rev().fold(stored, |inside, condition| Stmt::when(condition, inside));
        // It is a statement of each lane now, and so are its conditions.
        self.lane = None;
        let outcome = self.stmt(&guarded);
        self.lane = Some(lane);
        outcome
    }

    /// An expression for the elements of a group. Fragments are indexed by the elements of a lane.
    fn in_group(&self, expr: &Expr, group: &Group<'_>, lane: VarId) -> Outcome<Expr> {
        let mut failure = None;
        let substituted = |index: &Index| index.substitute(&|var| group.in_lane(var, &Index::var(lane)));
        let rewritten = rewrite_expr(expr, &mut |node| {
            let kind = match node.kind() {
                ExprKind::Load(buffer, indices) => match self.element_index(*buffer, indices, group, lane) {
                    Ok(index) => ExprKind::Load(*buffer, [index].into_iter().collect()),
                    Err(error) => {
                        failure = Some(error);
                        return None;
                    }
                },
                ExprKind::Index(index) => ExprKind::Index(substituted(index)),
                ExprKind::Bounded(value, extent) => ExprKind::Bounded(value.clone(), substituted(extent)),
                _ => return None,
            };
            Some(Expr::new(node.dtype(), kind))
        });
        match failure {
            Some(error) => Err(error),
            None => Ok(rewritten.unwrap_or_else(|| expr.clone())),
        }
    }

    /// The index of an access for the elements of a group: that of a fragment is the number of the element in its lane.
    fn element_index(
        &self,
        buffer: BufferId,
        indices: &[Index],
        group: &Group<'_>,
        lane: VarId,
    ) -> Outcome<Index> {
        let index = match indices {
            [] => Index::constant(0),
            [index] => self.resolve(index),
            _ => return Err(self.broken("an access has several indices")),
        };
        let declared = self.program.buffer(buffer);
        match declared.scope {
            Scope::Fragment => {}
            Scope::Local => {
                return Err(unsupported(format!(
                    "buffer `{}`, which is `local` and accessed with a fragment; make it a fragment, too",
                    declared.name
                )));
            }
            _ => return Ok(index.substitute(&|var| group.in_lane(var, &Index::var(lane)))),
        }
        let Some(shape) = self.shapes.get(&buffer) else {
            return Err(self.broken("a fragment has no shape"));
        };
        let mut first = None;
        for number in 0..LANES {
            for step in 0..i64::from(group.width) {
                let Some(position) = index.evaluate(&|var| group.at(var, number, group.slot + step)) else {
                    let problem = "its elements are not chosen by constants; unroll the loops around";
                    return Err(self.refuse_fragment(buffer, problem));
                };
                let (holder, element) = shape.place_of(position);
                if holder != number || *first.get_or_insert(element) + step != element {
                    let problem =
                        "a lane needs elements that another one holds; pass them through shared memory";
                    return Err(self.refuse_fragment(buffer, problem));
                }
            }
        }
        let first = Index::constant(first.unwrap_or(0));
        Ok(if group.width > 1 { &first + &Index::lane(group.width) } else { first })
    }
}
