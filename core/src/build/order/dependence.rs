//! The distance between iterations that touch the same element.

use super::domain::is_mixed_radix;
use crate::build::statement::{Kernel, Statement};
use crate::expr::Indices;
use crate::ids::VarId;
use crate::index::{Index, Ranges, greatest_common_divisor};
use crate::visit::{for_each_load, for_each_load_in_index};

/// One use of a tensor by a statement.
pub(in crate::build) struct TensorUse<'a> {
    pub(in crate::build) target: usize,
    pub(in crate::build) indices: &'a Indices,
    pub(in crate::build) writes: bool,
}

/// Every use of a tensor by a statement, the write first.
pub(in crate::build) type Accesses<'a> = Vec<TensorUse<'a>>;

/// The uses of tensors by a statement, the write first.
pub(in crate::build) fn accesses<'a>(kernel: &Kernel, statement: &'a Statement) -> Accesses<'a> {
    let mut found = vec![TensorUse { target: statement.target, indices: &statement.indices, writes: true }];
    let mut read = |read, indices| {
        found.push(TensorUse { target: kernel.tensor_read(read), indices, writes: false });
    };
    for expr in statement.effect.exprs().into_iter().chain(&statement.conditions) {
        for_each_load(expr, &mut read);
    }
    for index in &statement.indices {
        for_each_load_in_index(index, &mut read);
    }
    found
}

/// For iterations `q` of one statement and `p` of another that touch the same element, the distance `q - p` in
/// each shared loop: `Some(d)` where it is always `d`, `None` where it is not known. `None` for all when no such
/// iterations exist.
pub(in crate::build) fn distances(
    kernel: &Kernel,
    shared: &[VarId],
    first: &[Index],
    second: &[Index],
) -> Option<Vec<Option<i64>>> {
    distances_from(kernel, shared, first, second, vec![None; shared.len()])
}

/// As [`distances`], where some of them are known already.
pub(in crate::build) fn distances_from(
    kernel: &Kernel,
    shared: &[VarId],
    first: &[Index],
    second: &[Index],
    mut known: Vec<Option<i64>>,
) -> Option<Vec<Option<i64>>> {
    loop {
        let before = known.iter().flatten().count();
        for (first, second) in first.iter().zip(second) {
            solve(kernel, shared, first, second, &mut known)?;
        }
        if known.iter().flatten().count() == before {
            return Some(known);
        }
    }
}

/// Uses one dimension's equation `first(q) = second(p)`. `None` when it has no solution.
fn solve(
    kernel: &Kernel,
    shared: &[VarId],
    first: &Index,
    second: &Index,
    known: &mut [Option<i64>],
) -> Option<()> {
    if disjoint(kernel, shared, first, second, known) {
        return None;
    }
    // `Σ coefficient · distance + rest = 0`, with the rest free of loop variables.
    let mut rest = first - second;
    let mut open: Vec<(usize, i64)> = Vec::new();
    for (position, &var) in shared.iter().enumerate() {
        let (Some(a), Some(b)) = (first.linear_coefficient(var), second.linear_coefficient(var)) else {
            return Some(());
        };
        if a != b {
            return Some(());
        }
        match known[position] {
            Some(distance) => rest = rest.offset(a.wrapping_mul(distance)),
            None if a != 0 => open.push((position, a)),
            None => {}
        }
    }
    let private = |index: &Index| {
        let mut found = false;
        index.for_each_var(&mut |var| found |= kernel.loop_of(var).is_some() && !shared.contains(&var));
        found
    };
    if private(first) || private(second) {
        return Some(());
    }
    let Some(rest) = rest.as_constant() else { return Some(()) };
    let divisor = open.iter().fold(0, |common, (_, a)| greatest_common_divisor(common, *a));
    if rest != 0 && (divisor == 0 || rest % divisor != 0) {
        return None;
    }
    if let [(position, a)] = open[..] {
        let distance = -(rest / a);
        let reachable =
            kernel.extent(shared[position]).as_constant().is_none_or(|extent| distance.abs() < extent);
        known[position] = Some(distance);
        return reachable.then_some(());
    }
    let mut terms: Vec<(VarId, i64)> = open.iter().map(|&(position, a)| (shared[position], a)).collect();
    if rest == 0 && is_mixed_radix(kernel, &mut terms) {
        open.iter().for_each(|&(position, _)| known[position] = Some(0));
    }
    Some(())
}

/// Whether two indices never meet, whatever the iterations: one part of a tensor and another. Loops known to be in
/// the same iteration count as the same variable.
fn disjoint(kernel: &Kernel, shared: &[VarId], first: &Index, second: &Index, known: &[Option<i64>]) -> bool {
    let (mut free, mut common) = (kernel.ranges.clone(), Ranges::new());
    for (&var, distance) in shared.iter().zip(known) {
        if *distance == Some(0)
            && let Some(extent) = free.remove(var)
        {
            common.insert(var, extent);
        }
    }
    let above = |a: &Index, b: &Index| match (a.lower_bound(&free), b.scale(-1).lower_bound(&free)) {
        (Some(a), Some(b)) => (&a + &b).offset(-1).is_provably_nonnegative(&common),
        _ => false,
    };
    above(first, second) || above(second, first)
}
