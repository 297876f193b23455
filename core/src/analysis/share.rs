//! The share of a domain's points for which conditions hold, such as the taps of a convolution that lie inside of its input.

use crate::ids::VarId;
use crate::index::{Index, Ranges};

/// The most points that are counted one by one.
const MOST_POINTS: i64 = 4096;

/// The share of the points of a domain for which all conditions, given as differences that are negative where they hold, hold.
/// Conditions on different variables count as independent. `None` where there are too many points to count, or unknown ones.
pub fn share_of_points(conditions: &[Index], ranges: &Ranges) -> Option<f64> {
    let mut rest: Vec<&Index> = conditions.iter().collect();
    let mut share = 1.0;
    while let Some(first) = rest.first() {
        let vars = vars_of(first);
        let (together, others): (Vec<&Index>, Vec<&Index>) =
            rest.iter().partition(|condition| vars_of(condition) == vars);
        share *= share_of(&together, &vars, ranges)?;
        rest = others;
    }
    Some(share)
}

/// The variables of an index, in ascending order.
fn vars_of(index: &Index) -> Vec<VarId> {
    let mut vars = Vec::new();
    index.for_each_var(&mut |var| vars.push(var));
    vars.sort();
    vars.dedup();
    vars
}

/// As [`share_of_points`], of conditions on the same variables.
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
        let found = share_of_points(&conditions, &ranges).expect("few points");
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
        assert_eq!(share_of_points(&conditions, &ranges), Some(0.75 * 0.5));
        assert_eq!(share_of_points(&[], &ranges), Some(1.0));
    }
}
