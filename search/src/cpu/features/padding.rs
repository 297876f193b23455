//! The terms of a reduction that are formed: lowering leaves out products with padding where a branch can skip them.

use tilewright_core::analysis::block::single_store;
use tilewright_core::analysis::neutral::{Products, conditions_of_term};
use tilewright_core::analysis::zeros::ZeroElements;
use tilewright_core::ids::VarId;
use tilewright_core::index::{Index, Ranges};
use tilewright_core::program::Program;
use tilewright_core::stmt::{Block, LoopKind};

use crate::cpu::features::nest::LoopFact;

/// The longest loop over taps that is cut into its iterations; as in lowering.
const MOST_TAPS: f64 = 64.0;

/// The most loops that say together at which place a tile is; as in lowering.
const MOST_LOOPS_OF_PLACE: usize = 1;

/// The most points that are counted one by one.
const MOST_POINTS: i64 = 4096;

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
        let Some(store) = single_store(block) else { return Self::ALL };
        let conditions = conditions_of_term(store, Products::of(program), zeros);
        if conditions.is_empty() {
            return Self::ALL;
        }
        let number = conditions.len();
        let left_out: Vec<Index> =
            conditions.into_iter().filter(|condition| is_left_out(condition, block, loops)).collect();
        let ranges: Ranges = block.iters.iter().map(|iter| (iter.var, iter.extent.clone())).collect();
        FormedTerms { share: share(&left_out, &ranges), are_unconditional: left_out.len() == number }
    }
}

/// Whether lowering leaves out the terms for which a condition fails: a branch stands around a tile of accumulators, or the condition
/// is known for each element of the tile once the loop over taps is written out, and the place of the tile is told apart.
fn is_left_out(condition: &Index, block: &Block, loops: &[LoopFact]) -> bool {
    let of_loops = condition
        .substitute(&|var| block.iters.iter().find(|iter| iter.var == var).map(|iter| iter.binding.clone()));
    let mentioned: Vec<&LoopFact> =
        loops.iter().filter(|node| node.extent > 1.0 && of_loops.mentions(node.var)).collect();
    let Some(innermost) = mentioned.last() else { return true };
    if mentioned.iter().any(|node| node.kind == LoopKind::Vectorized) {
        return false;
    }
    if innermost.kind != LoopKind::Unrolled {
        return true;
    }
    let is_tap =
        |node: &LoopFact| node.kind == LoopKind::Serial && node.is_reduction && node.extent <= MOST_TAPS;
    let around = mentioned.iter().take_while(|node| node.kind != LoopKind::Unrolled).count();
    let are_inside = mentioned[around..].iter().all(|node| node.kind == LoopKind::Unrolled);
    are_inside && mentioned[..around].iter().filter(|node| !is_tap(node)).count() <= MOST_LOOPS_OF_PLACE
}

/// The share of the points of a domain for which all conditions, given as differences that are negative where they hold, hold.
fn share(conditions: &[Index], ranges: &Ranges) -> f64 {
    let mut rest: Vec<&Index> = conditions.iter().collect();
    let mut share = 1.0;
    while let Some(first) = rest.first() {
        let vars = vars_of(first);
        let (together, others): (Vec<&Index>, Vec<&Index>) =
            rest.iter().partition(|condition| vars_of(condition) == vars);
        share *= share_of(&together, &vars, ranges).unwrap_or(1.0);
        rest = others;
    }
    share
}

/// The variables of an index, in ascending order.
fn vars_of(index: &Index) -> Vec<VarId> {
    let mut vars = Vec::new();
    index.for_each_var(&mut |var| vars.push(var));
    vars.sort();
    vars.dedup();
    vars
}

/// As [`share`], of conditions on the same variables; `None` where there are too many points, or unknown ones.
fn share_of(conditions: &[&Index], vars: &[VarId], ranges: &Ranges) -> Option<f64> {
    let extents: Vec<i64> =
        vars.iter().map(|var| ranges.constant_extent(*var)).collect::<Option<Vec<_>>>()?;
    // The longest range is not walked through: it is cut by the bounds that each condition gives.
    let (longest, _) = extents.iter().enumerate().max_by_key(|(_, extent)| **extent)?;
    let points: i64 = extents.iter().product();
    let walked = points / extents[longest].max(1);
    if points == 0 || walked > MOST_POINTS {
        return None;
    }
    let rows: Vec<Row> =
        conditions.iter().map(|condition| Row::of(condition, vars, longest)).collect::<Option<Vec<_>>>()?;
    let mut holding = 0;
    let mut values = vec![0; vars.len()];
    loop {
        let (mut first, mut end) = (0, extents[longest]);
        for row in &rows {
            (first, end) = row.cut(&values, longest, first, end);
        }
        holding += (end - first).max(0);
        if !step(&mut values, &extents, longest) {
            return Some(holding as f64 / points as f64);
        }
    }
}

/// The next point of a box, except along one dimension; false after the last one.
fn step(values: &mut [i64], extents: &[i64], fixed: usize) -> bool {
    for (place, value) in values.iter_mut().enumerate().filter(|(place, _)| *place != fixed) {
        *value += 1;
        if *value < extents[place] {
            return true;
        }
        *value = 0;
    }
    false
}

/// A linear condition: the sum of coefficients times values, plus a constant, is negative.
struct Row {
    coefficients: Vec<i64>,
    constant: i64,
}

impl Row {
    /// `None` when the condition is not linear, or does not depend on the longest range.
    fn of(condition: &Index, vars: &[VarId], longest: usize) -> Option<Self> {
        let coefficients: Vec<i64> =
            vars.iter().map(|var| condition.linear_coefficient(*var)).collect::<Option<Vec<_>>>()?;
        (coefficients[longest] != 0).then(|| Row { coefficients, constant: condition.constant_part() })
    }

    /// The values between `first` and `end` along the longest range for which the condition holds, with given other values.
    fn cut(&self, values: &[i64], longest: usize, first: i64, end: i64) -> (i64, i64) {
        let others = self.coefficients.iter().zip(values).enumerate().filter(|(place, _)| *place != longest);
        let rest = others.map(|(_, (factor, value))| factor * value).sum::<i64>() + self.constant;
        let factor = self.coefficients[longest];
        // factor * value + rest < 0
        match factor > 0 {
            true => (first, end.min((-rest - 1).div_euclid(factor) + 1)),
            false => (first.max(rest.div_euclid(-factor) + 1), end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of `k` taps and `n` columns with an element inside, for a stride and a padding.
    fn inside(n: i64, k: i64, stride: i64, pad: i64) -> f64 {
        let (row, tap) = (VarId(0), VarId(1));
        let outputs = (n + 2 * pad - k) / stride + 1;
        let place = &Index::var(row).scale(stride) + &Index::var(tap);
        let ranges: Ranges =
            [(row, Index::constant(outputs)), (tap, Index::constant(k))].into_iter().collect();
        let conditions = [place.scale(-1).offset(pad - 1), place.offset(-pad - n)];
        let found = share(&conditions, &ranges);
        let mut holding = 0;
        for output in 0..outputs {
            holding += (0..k).filter(|tap| (pad..pad + n).contains(&(output * stride + tap))).count();
        }
        assert_eq!(found, holding as f64 / (outputs * k) as f64, "{n} {k} {stride} {pad}");
        found
    }

    #[test]
    fn the_share_of_taps_inside_is_counted() {
        assert_eq!(inside(7, 3, 1, 1), 19.0 / 21.0);
        for n in [1, 2, 5, 13, 64] {
            for k in [1, 2, 3, 7] {
                for stride in [1, 2, 3] {
                    for pad in [0, 1, 2, 5] {
                        if n + 2 * pad >= k {
                            inside(n, k, stride, pad);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn conditions_on_other_variables_are_independent() {
        let (a, b) = (VarId(0), VarId(1));
        let ranges: Ranges = [(a, Index::constant(4)), (b, Index::constant(10))].into_iter().collect();
        let conditions = [Index::var(a).offset(-3), Index::var(b).offset(-5)];
        assert_eq!(share(&conditions, &ranges), 0.75 * 0.5);
        assert_eq!(share(&[], &ranges), 1.0);
    }
}
