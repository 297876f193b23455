//! The terms of a reduction that are formed: lowering leaves out products with padding where a branch can skip them.

use tilewright_core::analysis::block::single_store;
use tilewright_core::analysis::condition::without_places_in_tile;
use tilewright_core::analysis::neutral::{Products, conditions_of_term};
use tilewright_core::analysis::share::share_of_points;
use tilewright_core::analysis::zeros::ZeroElements;
use tilewright_core::index::{Index, Ranges};
use tilewright_core::intrinsic::marked_store;
use tilewright_core::program::Program;
use tilewright_core::stmt::{Block, LoopKind, Stmt};

use crate::cpu::features::nest::LoopFact;

/// The longest loop over taps that is cut into its iterations; as in lowering.
const MOST_TAPS: f64 = 64.0;

/// The most loops that say together at which place a tile is; as in lowering.
const MOST_LOOPS_OF_PLACE: usize = 1;

/// The terms that a block forms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FormedTerms {
    /// Their share of all terms.
    pub share: f64,
    /// Whether no term depends on a condition where it is formed.
    pub are_unconditional: bool,
}

impl FormedTerms {
    /// All terms of a block without conditions.
    const ALL: FormedTerms = FormedTerms { share: 1.0, are_unconditional: false };

    /// The terms of a block inside of loops, outermost first.
    pub(super) fn of(program: &Program, block: &Block, loops: &[LoopFact], zeros: &ZeroElements) -> Self {
        let store = match &block.body {
            Stmt::Intrinsic(marked) => marked_store(marked),
            _ => single_store(block),
        };
        let Some(store) = store else { return Self::ALL };
        let conditions = conditions_of_term(store, Products::of(program), zeros);
        if conditions.is_empty() {
            return Self::ALL;
        }
        let number = conditions.len();
        let left_out: Vec<Index> =
            conditions.into_iter().filter(|condition| is_left_out(condition, block, loops)).collect();
        let ranges: Ranges = block.iters.iter().map(|iter| (iter.var, iter.extent.clone())).collect();
        FormedTerms {
            share: share_of_points(&left_out, &ranges).unwrap_or(1.0),
            are_unconditional: left_out.len() == number,
        }
    }
}

/// Whether lowering leaves out the terms for which a condition fails: a branch stands around a tile of accumulators, or the condition
/// is known for each element of the tile once the loop over taps is written out, and the place of the tile is told apart.
fn is_left_out(condition: &Index, block: &Block, loops: &[LoopFact]) -> bool {
    if differs_in_marked(condition, block) {
        return false;
    }
    let of_loops = condition
        .substitute(&|var| block.iters.iter().find(|iter| iter.var == var).map(|iter| iter.binding.clone()));
    let is_of_tile = |var| loops.iter().any(|node| node.var == var && node.kind == LoopKind::Unrolled);
    let mut ranges = Ranges::new();
    loops.iter().for_each(|node| ranges.insert_constant(node.var, node.extent as i64));
    let of_loops = without_places_in_tile(&of_loops, &is_of_tile, &ranges).unwrap_or(of_loops);
    let mentioned: Vec<&LoopFact> =
        loops.iter().filter(|node| node.extent > 1.0 && of_loops.mentions(node.var)).collect();
    let Some(innermost) = mentioned.last() else { return true };
    if mentioned.iter().any(|node| node.kind == LoopKind::Vectorized) {
        return false;
    }
    if innermost.kind != LoopKind::Unrolled {
        return true;
    }
    let around = mentioned.iter().take_while(|node| node.kind != LoopKind::Unrolled).count();
    let are_inside = mentioned[around..].iter().all(|node| node.kind == LoopKind::Unrolled);
    let is_cut = |node: &&&LoopFact| is_tap(node, loops);
    are_inside && mentioned[..around].iter().filter(|node| !is_cut(node)).count() <= MOST_LOOPS_OF_PLACE
}

/// Whether a condition mentions a loop of a marked statement, which is one of lanes.
fn differs_in_marked(condition: &Index, block: &Block) -> bool {
    let Stmt::Intrinsic(marked) = &block.body else { return false };
    let mut inner = &marked.body;
    while let Stmt::For(node) = inner {
        if condition.mentions(node.var) {
            return true;
        }
        inner = &node.body;
    }
    false
}

/// Whether a loop over taps belongs to the sum of one tile: no loop over tiles is inside.
fn is_tap(node: &LoopFact, loops: &[LoopFact]) -> bool {
    let is_of_tile = |inner: &LoopFact| {
        inner.is_reduction
            || inner.extent <= 1.0
            || matches!(inner.kind, LoopKind::Unrolled | LoopKind::Vectorized)
    };
    let mut inside = loops.iter().skip_while(|other| other.var != node.var);
    node.kind == LoopKind::Serial && node.is_reduction && node.extent <= MOST_TAPS && inside.all(is_of_tile)
}
