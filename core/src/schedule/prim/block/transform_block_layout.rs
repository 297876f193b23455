//! `transform_block_layout`

use std::sync::Arc;

use crate::index::map::{Change, IndexMap};
use crate::index::{Index, Ranges};
use crate::program::{Program, VariableKind};
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::domain::check_loops;
use crate::schedule::edit::{edit_block_stmt, edit_loop, fresh_loop, nest};
use crate::schedule::find::require_block;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError};
use crate::stmt::{Block, Iter, IterKind, Stmt};
use crate::visit::{listed, rewrite_indices, rewrite_stmt, substitute_stmt};

/// Replaces a block's iterators by those of a map, with a new loop for each. The map must be a
/// bijection between boxes that keeps spatial and reduction iterators apart.
///
/// ```text
/// before
/// kernel grid(in a: f32[8, 6], out b: f32[8, 6]) {
///   for i in 0..8 {
///     for j in 0..6 {
///       block b(vi: spatial 8 = i, vj: spatial 6 = j) {
///         b[vi, vj] = a[vi, vj]
///       }
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// transform_block_layout %0, (i, j) -> (i/4*6 + j, i%4)
/// after
/// kernel grid(in a: f32[8, 6], out b: f32[8, 6]) {
///   for a0 in 0..12 {
///     for a1 in 0..4 {
///       block b(v0: spatial 12 = a0, v1: spatial 4 = a1) {
///         b[(v0/6)*4 + v1, v0%6] = a[(v0/6)*4 + v1, v0%6]
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TransformBlockLayout {
    /// The block, alone in its loops.
    pub block: BlockRv,
    /// From old iterators to new ones.
    pub map: IndexMap,
}

impl Primitive for TransformBlockLayout {
    const NAME: &'static str = "transform_block_layout";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Map(&mut self.map))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let block = require_block(context.program, id)?.clone();
        let outermost = check_loops(context.program, &block)?;
        let domain: Vec<Index> = block.iters.iter().map(|iter| iter.extent.clone()).collect();
        let change = self.map.change(&domain).map_err(ScheduleError::BadMap)?;
        let kinds = self.kinds(&block).ok_or(ScheduleError::MixedIterators(id))?;
        let mut program = context.program.clone();
        let made = build(&mut program, &block, &change, &kinds)?;
        match outermost {
            Some(outermost) => edit_loop(&mut program.body, outermost, &mut |stmt| *stmt = made.clone()),
            None => edit_block_stmt(&mut program.body, id, &mut |stmt| *stmt = made.clone()),
        };
        *context.program = program;
        Ok(Outputs::new())
    }
}

impl TransformBlockLayout {
    /// The kinds of the new iterators; `None` when one would be of both.
    fn kinds(&self, block: &Block) -> Option<Vec<IterKind>> {
        let kind_of = |output: usize| {
            let mut inputs = (0..block.iters.len()).filter(|input| self.map.mentions(output, *input));
            let kind = inputs.next().map_or(IterKind::Spatial, |input| block.iters[input].kind);
            inputs.all(|input| block.iters[input].kind == kind).then_some(kind)
        };
        (0..self.map.outputs()).map(kind_of).collect()
    }
}

/// The block with new iterators, in loops of its own.
fn build(
    program: &mut Program,
    block: &Block,
    change: &Change,
    kinds: &[IterKind],
) -> Result<Stmt, ScheduleError> {
    let mut ranges = Ranges::new();
    let (mut loops, mut iters) = (Vec::new(), Vec::new());
    for (axis, (extent, kind)) in change.extents.iter().zip(kinds).enumerate() {
        let node = fresh_loop(program, &format!("a{axis}").into(), extent.clone());
        let var = program.add_variable(format!("v{axis}"), VariableKind::Iter);
        ranges.insert(var, extent.clone());
        iters.push(Iter { var, extent: extent.clone(), kind: *kind, binding: Index::var(node.var) });
        loops.push(node);
    }
    let point: Vec<Index> = iters.iter().map(|iter| Index::var(iter.var)).collect();
    let old = change.old_point(&point).map_err(ScheduleError::BadMap)?;
    let values: Vec<_> =
        block.iters.iter().zip(old).map(|(iter, value)| (iter.var, value.simplify(&ranges))).collect();
    let mut made = Block { iters, guards: Vec::new(), ..block.clone() };
    for part in made.init.iter_mut().chain([&mut made.body]) {
        substitute_stmt(part, &listed(&values));
        // Buffers that were laid out in the same way before have the new iterators as indices.
        simplify_indices(part, &ranges);
    }
    Ok(nest(loops, Stmt::Block(Arc::new(made))))
}

fn simplify_indices(stmt: &mut Stmt, ranges: &Ranges) {
    let simplified = |index: &Index| Some(index.simplify(ranges)).filter(|simple| simple != index);
    rewrite_stmt(stmt, &simplified, &|expr| rewrite_indices(expr, &simplified));
}

impl Schedule {
    /// Numbers the points of a block's domain anew. See [`TransformBlockLayout`].
    ///
    /// # Errors
    /// When the block shares its loops, or the map is no bijection between boxes.
    pub fn transform_block_layout(&mut self, block: BlockRv, map: IndexMap) -> Result<(), ScheduleError> {
        self.push(TransformBlockLayout { block, map }, None).map(drop)
    }
}
