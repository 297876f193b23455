//! Separate loops for the residues of strided transposed convolutions.

use tilewright_core::analysis::block::all_loads;
use tilewright_core::annotation::TILING;
use tilewright_core::expr::Indices;
use tilewright_core::ids::VarId;
use tilewright_core::index::map::IndexMap;
use tilewright_core::index::{Base, Digit, Index, NO_MODULUS};
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_core::stmt::{Block, Iter, IterKind};
use tilewright_macros::schedule_rule;

use crate::space::rule::{RuleExtension, RuleOutcome, RuleResult};
use crate::space::rules::block::{block_of, needs_multi_level_tiling};

/// Offers to split a spatial iterator into residue and quotient, the residue first, where an operand depends on the residue alone.
///
/// In a transposed convolution with a stride, each residue of the row has weights of its own. Neighbouring rows share no weight, so
/// that a tile of neighbours uses each loaded weight for only some of its rows. With the residue in an outer loop, all rows of a tile
/// share their weights.
#[schedule_rule(target = "cpu", after = "reduce_in_lanes", before = "multi_level_tiling")]
pub fn separate_residues(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    if TILING.is_in(&found.annotations) || !needs_multi_level_tiling(schedule.program(), &found) {
        return schedule.unchanged();
    }
    let Some(map) = residues_first(&found) else { return schedule.unchanged() };
    let mut separate = schedule.fork();
    separate.transform_block_layout(block, map)?;
    Ok(RuleOutcome::Variants(vec![schedule.fork(), separate]))
}

/// The map of a block's iterators that puts the residues in front and keeps the quotients in their places. `None` when no operand
/// depends on a residue alone.
fn residues_first(block: &Block) -> Option<IndexMap> {
    let moduli: Vec<Option<i64>> = block.iters.iter().map(|iter| separable_modulus(block, iter)).collect();
    let part = |input: usize, divisor: i64, modulus: i64| {
        Index::digit(Digit { base: Base::Var(VarId(input as u32)), divisor, modulus })
    };
    let residues: Vec<Index> =
        moduli.iter().enumerate().filter_map(|(input, modulus)| Some(part(input, 1, (*modulus)?))).collect();
    if residues.is_empty() {
        return None;
    }
    let quotients =
        moduli.iter().enumerate().map(|(input, modulus)| part(input, modulus.unwrap_or(1), NO_MODULUS));
    IndexMap::new(block.iters.len() as u32, residues.into_iter().chain(quotients).collect())
}

/// The modulus of a spatial iterator whose residue alone determines an operand's elements. It divides the extent, so that residues and
/// quotients fill a box.
fn separable_modulus(block: &Block, iter: &Iter) -> Option<i64> {
    let extent = iter.extent.as_constant()?;
    let modulus = all_loads(block).into_iter().find_map(|access| only_modulus(access.indices, iter.var))?;
    let is_separable = iter.kind == IterKind::Spatial && modulus < extent && extent % modulus == 0;
    is_separable.then_some(modulus)
}

/// The one modulus under which a variable occurs in indices; `None` when there are none or several, or it occurs otherwise.
fn only_modulus(indices: &Indices, var: VarId) -> Option<i64> {
    let of_var = |digit: &&Digit| {
        let mut is_mentioned = false;
        digit.base.for_each_var(&mut |other| is_mentioned |= other == var);
        is_mentioned
    };
    let digits = indices.iter().flat_map(Index::terms).map(|term| &term.digit);
    let mut moduli = digits.filter(of_var).map(|digit| modulus_of(digit, var));
    let first = moduli.next()??;
    moduli.all(|modulus| modulus == Some(first)).then_some(first)
}

/// The modulus of a digit that is the residue of a variable, or of a sum with it.
fn modulus_of(digit: &Digit, var: VarId) -> Option<i64> {
    let is_residue = digit.divisor == 1
        && digit.modulus != NO_MODULUS
        && match &digit.base {
            Base::Var(_) => true,
            Base::Sum(sum) => sum.linear_coefficient(var).is_some_and(|factor| factor != 0),
            _ => false,
        };
    is_residue.then_some(digit.modulus)
}
