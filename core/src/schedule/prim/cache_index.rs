//! `cache_index`

use std::sync::Arc;

use crate::analysis::block::{for_each_load_in_stmt, reads, writes};
use crate::dtype::DType;
use crate::expr::{Expr, ExprKind, Indices};
use crate::ids::{BufferId, VarId};
use crate::index::{Base, Index, Interval, Ranges};
use crate::program::{Buffer, Program, Scope, VariableKind};
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::{
    edit_block, fresh_block_name, fresh_loop, insert_statement, nest, replace_loads, require_block,
    root_position,
};
use crate::schedule::prim::cache_read::scope_named;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError, Value};
use crate::stmt::{Annotations, Block, Iter, IterKind, Stmt, Symbol};
use crate::visit::{for_each_expr, listed};

/// Lets a block look up the indices that it would compute: new blocks before it write their values into buffers, one
/// element for each value of the iterators that an index depends on. Computing such a block at a loop makes its buffer a tile.
///
/// Computed is what takes more than multiples of iterators and constants: quotients, remainders, the smaller of two numbers.
/// Multiples and constants beside it stay where they are, so that `v/3`, `v/3 + 1` and `v/3 + w` look up the same
/// element. Only indices of what the block reads, and does not write, are looked up, and no index that reads memory itself.
///
/// What an index is looked up for is a gather from then on: it is checked when the kernel runs, and of the buffer that is read
/// nothing is known but that all of it may be. It pays where the same indices are computed over and over again, for each
/// channel of a picture that is resized, say.
///
/// ```text
/// before
/// kernel stretch(in a: f32[4, 8], out b: f32[12, 8]) {
///   for i in 0..12 {
///     for j in 0..8 {
///       block b(v: spatial 12 = i, w: spatial 8 = j) {
///         b[v, w] = a[v/3, w]
///       }
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// %1 = cache_index %0, "local", 0
/// after
/// kernel stretch(in a: f32[4, 8], out b: f32[12, 8]) {
///   buffer b_index: i32[12] local
///   for v in 0..12 {
///     block b_index(v_1: spatial 12 = v) {
///       b_index[v_1] = index(v_1/3) as i32
///     }
///   }
///   for i in 0..12 {
///     for j in 0..8 {
///       block b(v_2: spatial 12 = i, w: spatial 8 = j) {
///         b[v_2, w] = a[bounded(b_index[v_2] as i64, 0..4), w]
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CacheIndex {
    /// The block that reads.
    pub block: BlockRv,
    /// Where the indices are kept: `global` or `local`.
    pub scope: Symbol,
    /// An index must occur more often than this in the block.
    pub threshold: i64,
}

impl Default for CacheIndex {
    fn default() -> Self {
        let scope = Scope::Local.text().into();
        CacheIndex { block: BlockRv::default(), scope, threshold: 0 }
    }
}

impl Primitive for CacheIndex {
    const NAME: &'static str = "cache_index";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Text(&mut self.scope))?;
        visitor.visit(Argument::Number(&mut self.threshold))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let scope = scope_named(&self.scope)?;
        let program = &mut *context.program;
        let block = Arc::clone(require_block(program, id)?);
        let position = root_position(program, id)?;
        let computed = computed_parts(&block, self.threshold);
        if computed.is_empty() {
            return Err(ScheduleError::NoComputedIndex(id));
        }
        let mut outputs = Outputs::new();
        let mut kept: Vec<(Index, Expr)> = Vec::new();
        for (number, index) in computed.into_iter().enumerate() {
            let iters: Vec<&Iter> = block.iters.iter().filter(|iter| index.mentions(iter.var)).collect();
            let buffer = program.add_buffer(Buffer {
                name: format!("{}_index", block.name).into(),
                dtype: narrowest(&index, &iters),
                shape: iters.iter().map(|iter| iter.extent.clone()).collect(),
                scope,
            });
            let made = index_nest(program, &block, &iters, &index, buffer);
            outputs.push(Value::Block(crate::analysis::scope::blocks(&made)[0].id));
            let place = iters.iter().map(|iter| Index::var(iter.var));
            let element = Expr::load(program.buffer(buffer).dtype, buffer, place);
            kept.push((index, Expr::cast(DType::I64, element)));
            insert_statement(&mut program.body, position + number, made);
        }
        look_up(program, &block, &kept);
        Ok(outputs)
    }
}

/// The computed parts of the block's indices that occur more than `threshold` times, in order of appearance.
fn computed_parts(block: &Block, threshold: i64) -> Vec<Index> {
    let own = writes(block);
    let is_iter = |var: VarId| block.iters.iter().any(|iter| iter.var == var);
    let mut found: Vec<(Index, i64)> = Vec::new();
    for part in block.init.iter().chain([&block.body]) {
        let mut inner = Vec::new();
        crate::visit::for_each_stmt(part, &mut |stmt| {
            if let Stmt::For(node) = stmt {
                inner.push(node.var);
            }
        });
        for_each_load_in_stmt(part, &mut |access| {
            if own.contains(&access.buffer) {
                return;
            }
            for (index, _) in access.indices.iter().filter_map(parts) {
                let (mut of_iters, mut of_loops) = (false, false);
                index.for_each_var(&mut |var| {
                    of_iters |= is_iter(var);
                    of_loops |= inner.contains(&var);
                });
                if !of_iters || of_loops {
                    continue;
                }
                match found.iter_mut().find(|(other, _)| *other == index) {
                    Some((_, times)) => *times += 1,
                    None => found.push((index, 1)),
                }
            }
        });
    }
    found.into_iter().filter(|(_, times)| *times > threshold).map(|(index, _)| index).collect()
}

/// What is computed of an index, and what is added to it; `None` when nothing is computed, or some of it may fail or depends
/// on data.
fn parts(index: &Index) -> Option<(Index, Index)> {
    if !is_plain(index) {
        return None;
    }
    let mut added = Index::constant(index.constant_part());
    for term in index.terms() {
        if let (Base::Var(var), true) = (&term.digit.base, term.digit.is_whole()) {
            added = added.add_scaled(&Index::var(*var), term.coefficient);
        }
    }
    let computed = index - &added;
    (!computed.terms().is_empty()).then_some((computed, added))
}

/// Whether an index reads no memory and contains no check.
fn is_plain(index: &Index) -> bool {
    index.terms().iter().all(|term| match &term.digit.base {
        Base::Var(_) => true,
        Base::Lane(_) => false,
        Base::Sum(sum) => is_plain(sum),
        Base::Value(value) => {
            let mut plain = true;
            for_each_expr(value, &mut |node| match node.kind() {
                ExprKind::Load(..) | ExprKind::Bounded(..) => plain = false,
                ExprKind::Index(index) => plain &= is_plain(index),
                _ => {}
            });
            plain
        }
    })
}

/// The narrower of two types that holds every value of an index.
fn narrowest(index: &Index, iters: &[&Iter]) -> DType {
    let ranges: Ranges = iters.iter().map(|iter| (iter.var, iter.extent.clone())).collect();
    let small = Interval::new(i64::from(i32::MIN), i64::from(i32::MAX));
    if small.includes(index.interval(&ranges)) { DType::I32 } else { DType::I64 }
}

/// A block that writes an index for all values of the iterators that it depends on, in its own loops.
fn index_nest(
    program: &mut Program,
    block: &Block,
    of: &[&Iter],
    index: &Index,
    buffer: BufferId,
) -> Stmt {
    let (mut loops, mut iters, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for old in of {
        let name = program.variable(old.var).name.clone();
        let node = fresh_loop(program, &name, old.extent.clone());
        let var = program.add_variable(name, VariableKind::Iter);
        values.push((old.var, Index::var(var)));
        let extent = old.extent.clone();
        iters.push(Iter { var, extent, kind: IterKind::Spatial, binding: Index::var(node.var) });
        loops.push(node);
    }
    let value = Expr::index(index.substitute(&listed(&values)));
    let value = Expr::cast(program.buffer(buffer).dtype, value);
    let place: Vec<Index> = iters.iter().map(|iter| Index::var(iter.var)).collect();
    let made = Block {
        id: program.fresh_block(),
        name: fresh_block_name(program, &format!("{}_index", block.name)),
        iters,
        guards: Vec::new(),
        init: None,
        body: Stmt::store(buffer, place, value),
        annotations: Annotations::new(),
        location: block.location.clone(),
    };
    nest(loops, Stmt::Block(Arc::new(made)))
}

/// Puts elements in the places of what has been computed into them.
fn look_up(program: &mut Program, block: &Block, kept: &[(Index, Expr)]) {
    let own = writes(block);
    let sources: Vec<(BufferId, Buffer)> = reads(block)
        .into_iter()
        .filter(|buffer| !own.contains(buffer))
        .map(|buffer| (buffer, program.buffer(buffer).clone()))
        .collect();
    edit_block(&mut program.body, block.id, &mut |block| {
        for (buffer, Buffer { dtype, shape, .. }) in &sources {
            let load = |indices: &Indices| {
                let looked_up = indices.iter().zip(shape).map(|(index, extent)| {
                    let found = parts(index).and_then(|(computed, added)| {
                        let (_, element) = kept.iter().find(|(other, _)| *other == computed)?;
                        Some(match added.is(0) {
                            true => element.clone(),
                            false => Expr::index(&Index::value(element.clone()) + &added),
                        })
                    });
                    match found {
                        Some(value) => {
                            Index::value(Expr::new(DType::I64, ExprKind::Bounded(value, extent.clone())))
                        }
                        None => index.clone(),
                    }
                });
                Expr::load(*dtype, *buffer, looked_up)
            };
            for part in block.init.iter_mut().chain([&mut block.body]) {
                replace_loads(part, *buffer, &load);
            }
        }
    });
}

impl Schedule {
    /// Lets a block look up the indices that it would compute, and gives the blocks that write them. See [`CacheIndex`].
    ///
    /// # Errors
    /// When no index of what the block reads is computed more than `threshold` times.
    pub fn cache_index(
        &mut self,
        block: BlockRv,
        scope: Scope,
        threshold: i64,
    ) -> Result<Vec<BlockRv>, ScheduleError> {
        let made = self.push_many(CacheIndex { block, scope: scope.text().into(), threshold })?;
        Ok(made.map(BlockRv).collect())
    }
}
