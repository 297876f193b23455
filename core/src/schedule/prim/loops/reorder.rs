//! `reorder`

use std::sync::Arc;

use crate::analysis::scope::{blocks, loops_around_loop};
use crate::ids::LoopId;
use crate::program::Program;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::order::check_reorder;
use crate::schedule::edit::edit_loop;
use crate::schedule::find::require_loop;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{LoopRv, Schedule, ScheduleError};
use crate::stmt::{For, IterKind, Stmt};

/// Puts loops of one chain into the order given, outermost first. Loops of the chain that are not named keep
/// their places.
///
/// ```text
/// before
/// kernel grid(in a: f32[4, 6], out b: f32[4, 6]) {
///   for i in 0..4 {
///     for j in 0..6 {
///       block b(vi: spatial 4 = i, vj: spatial 6 = j) {
///         b[vi, vj] = a[vi, vj]
///       }
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// %1, %2 = get_loops %0
/// reorder [%2, %1]
/// after
/// kernel grid(in a: f32[4, 6], out b: f32[4, 6]) {
///   for j in 0..6 {
///     for i in 0..4 {
///       block b(vi: spatial 4 = i, vj: spatial 6 = j) {
///         b[vi, vj] = a[vi, vj]
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reorder {
    /// The loops in their new order.
    pub loops: Vec<LoopRv>,
}

impl Primitive for Reorder {
    const NAME: &'static str = "reorder";
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Loops(&mut self.loops))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let wanted = context.values.loops(&self.loops)?;
        let chain = chain_of(context.program, &wanted)?;
        let outermost = chain[0].id;
        let innermost = chain[chain.len() - 1].id;
        check_initial_values(&chain)?;
        let order = order_of(&chain, &wanted);
        check_reorder(&chain, &order)?;
        let reordered: Vec<For> = order
            .iter()
            .map(|id| {
                let source = chain.iter().find(|node| node.id == *id).expect("named loops are in the chain");
                For { body: Stmt::nothing(), ..For::clone(source) }
            })
            .collect();
        drop(chain);
        let mut reordered = Some(reordered);
        edit_loop(&mut context.program.body, outermost, &mut |stmt| {
            let Some(reordered) = reordered.take() else { return };
            let mut body = Stmt::nothing();
            edit_loop(stmt, innermost, &mut |inner| {
                if let Stmt::For(node) = inner {
                    body = std::mem::replace(&mut Arc::make_mut(node).body, Stmt::nothing());
                }
            });
            *stmt = crate::schedule::edit::nest(reordered, body);
        });
        Ok(Outputs::new())
    }
}

/// The loops of a chain in their new order: those that are named take the places of each other.
fn order_of(chain: &[Arc<For>], wanted: &[LoopId]) -> Vec<LoopId> {
    let mut named = wanted.iter();
    let next = |node: &Arc<For>| match wanted.contains(&node.id) {
        true => *named.next().expect("as many as named"),
        false => node.id,
    };
    chain.iter().map(next).collect()
}

/// A reduction's initial value is set where all of its reduction iterators are 0. That stays the first visit of
/// each element unless a loop steps through elements and through the reduction at once.
fn check_initial_values(chain: &[Arc<For>]) -> Result<(), ScheduleError> {
    let innermost = chain.last().expect("a chain has a loop");
    for block in blocks(&innermost.body).into_iter().filter(|block| block.init.is_some()) {
        let follows = |kind: IterKind, node: &For| {
            block.iters.iter().any(|iter| iter.kind == kind && iter.binding.mentions(node.var))
        };
        let is_mixed = |node: &&Arc<For>| follows(IterKind::Spatial, node) && follows(IterKind::Reduce, node);
        if let Some(mixed) = chain.iter().find(is_mixed) {
            return Err(ScheduleError::NotReductionLoop { target: mixed.id, block: block.id });
        }
    }
    Ok(())
}

/// The loops from the outermost to the innermost of those named, each the only statement of the one before.
fn chain_of(program: &Program, wanted: &[LoopId]) -> Result<Vec<Arc<For>>, ScheduleError> {
    let mut distinct = wanted.to_vec();
    distinct.sort();
    distinct.dedup();
    if wanted.is_empty() || distinct.len() != wanted.len() {
        return Err(ScheduleError::BadLoopList);
    }
    // In a chain, the outermost loop is the first one of those around any of them.
    let some = require_loop(program, wanted[0])?;
    let around = loops_around_loop(&program.body, wanted[0]).unwrap_or_default();
    let mut current = around.into_iter().find(|node| wanted.contains(&node.id)).unwrap_or(some);
    let mut chain = vec![current.clone()];
    let mut missing: Vec<LoopId> = wanted.iter().copied().filter(|id| *id != current.id).collect();
    while let Some(inner) = missing.first().copied() {
        let Stmt::For(next) = &current.body else {
            require_loop(program, inner)?;
            return Err(ScheduleError::NotAChain { outer: current.id, inner });
        };
        missing.retain(|id| *id != next.id);
        chain.push(next.clone());
        current = next;
    }
    Ok(chain)
}

impl Schedule {
    /// Puts loops of one chain into the order given, outermost first. See [`Reorder`].
    ///
    /// # Errors
    /// When the loops are not in one chain, or named twice.
    pub fn reorder(&mut self, loops: &[LoopRv]) -> Result<(), ScheduleError> {
        self.push(Reorder { loops: loops.to_vec() }, None).map(drop)
    }
}
