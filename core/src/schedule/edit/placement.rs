//! Loops and guards for a block at another place.

use std::sync::Arc;

use crate::analysis::region::Span;
use crate::index::{Index, Ranges};
use crate::program::Program;
use crate::schedule::edit::{fresh_loop, nest};
use crate::stmt::{Block, For, Guard, Stmt};

/// The guard that `index` stays below `extent`, unless it provably does.
pub(in crate::schedule) fn guard_below(index: &Index, extent: &Index, ranges: &Ranges) -> Option<Guard> {
    (!index.is_provably_less(extent, ranges)).then(|| Guard { index: index.clone(), bound: extent.clone() })
}

/// The guard that `index` is not negative, unless it provably is not.
pub(in crate::schedule) fn guard_not_negative(index: &Index, ranges: &Ranges) -> Option<Guard> {
    (!index.is_provably_nonnegative(ranges))
        .then(|| Guard { index: index.scale(-1), bound: Index::constant(1) })
}

/// New iterators for a block, each over a given span of its old domain (`None`: all of it), with loops
/// that run through them and guards against leaving the domain.
pub(in crate::schedule) struct Placement {
    /// The loops, outermost first.
    pub loops: Vec<For>,
    /// The bindings of the block's iterators, in their order.
    pub bindings: Vec<Index>,
    /// The guards that keep the bindings inside the domain.
    pub guards: Vec<Guard>,
}

/// Makes the loops for a block that is moved to a place where the loops of `ranges` run.
pub(in crate::schedule) fn place_block(
    program: &mut Program,
    block: &Block,
    spans: &[Option<Span>],
    mut ranges: Ranges,
) -> Placement {
    let mut placement = Placement { loops: Vec::new(), bindings: Vec::new(), guards: Vec::new() };
    for (iter, span) in block.iters.iter().zip(spans) {
        let (min, extent) = match span {
            // A span as large as the domain, or larger, gains nothing by its offset.
            Some(span) if !(&span.extent - &iter.extent).is_provably_nonnegative(&ranges) => {
                (span.min.clone(), span.extent.clone())
            }
            _ => (Index::constant(0), iter.extent.clone()),
        };
        let mut binding = min;
        if !extent.is(1) {
            let name = program.variable(iter.var).name.clone();
            let node = fresh_loop(program, &name, extent);
            ranges.insert_loop(&node);
            binding = &binding + &Index::var(node.var);
            placement.loops.push(node);
        }
        placement.guards.extend(guard_below(&binding, &iter.extent, &ranges));
        placement.guards.extend(guard_not_negative(&binding, &ranges));
        placement.bindings.push(binding);
    }
    placement
}

impl Placement {
    /// The block in its new loops.
    pub(in crate::schedule) fn build(self, block: &Block) -> Stmt {
        let mut block = block.clone();
        block.guards = self.guards;
        for (iter, binding) in block.iters.iter_mut().zip(self.bindings) {
            iter.binding = binding;
        }
        nest(self.loops, Stmt::Block(Arc::new(block)))
    }
}
