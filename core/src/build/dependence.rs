//! Whether the statements of one loop body may become loops of their own.
//!
//! Distribution runs all iterations of one statement before all iterations of the next. That changes the order
//! of a later statement's early iterations and an earlier statement's late ones, which is wrong when both
//! touch the same element and one writes it. The test solves for the distance between such iterations: exact for
//! index expressions with equal coefficients, and otherwise conservative.

use super::domain::is_mixed_radix;
use super::error::DefinitionError;
use super::render;
use super::statement::{Kernel, Statement};
use crate::expr::Indices;
use crate::ids::VarId;
use crate::index::{Index, Ranges, greatest_common_divisor};
use crate::visit::for_each_load;

/// One use of a tensor by a statement.
struct TensorUse<'a> {
    target: usize,
    indices: &'a Indices,
    writes: bool,
}

/// Reports loop-carried values: those that an iteration takes from another one.
pub(super) fn check_dependences(kernel: &mut Kernel) {
    let mut errors = Vec::new();
    for (at, later) in kernel.statements.iter().enumerate() {
        errors.extend(check_itself(kernel, later));
        for earlier in &kernel.statements[..at] {
            let shared = earlier.loops.iter().zip(&later.loops).take_while(|(a, b)| a == b).count();
            if shared > 0 {
                errors.extend(check_pair(kernel, earlier, later, &later.loops[..shared]));
            }
        }
    }
    kernel.errors.extend(errors);
}

fn accesses<'a>(kernel: &Kernel, statement: &'a Statement) -> Vec<TensorUse<'a>> {
    let mut found = vec![TensorUse { target: statement.target, indices: &statement.indices, writes: true }];
    for expr in statement.effect.exprs().into_iter().chain(&statement.conditions) {
        for_each_load(expr, &mut |read, indices| {
            found.push(TensorUse { target: kernel.tensor_read(read), indices, writes: false });
        });
    }
    found
}

/// An assignment that reads its own target must read the very element that it writes.
fn check_itself(kernel: &Kernel, statement: &Statement) -> Option<DefinitionError> {
    let accesses = accesses(kernel, statement);
    let (write, reads) = accesses.split_first()?;
    let conflict = reads.iter().filter(|read| read.target == statement.target).find(|read| {
        let distances = distances(kernel, &statement.loops, write.indices, read.indices);
        distances.is_some_and(|distances| distances.iter().any(|distance| *distance != Some(0)))
    })?;
    let target = &kernel.targets[statement.target];
    let name = &target.name;
    let written = render::element(kernel, target, write.indices);
    let read = render::element(kernel, target, conflict.indices);
    let message = if written == read {
        format!("each iteration computes `{written}` from what other iterations have put there")
    } else {
        format!("`{written}` is computed from `{read}`, which another iteration writes")
    };
    Some(DefinitionError::new(
        message,
        statement.location,
        format!(
            "a recurrence has no parallel form: write to another tensor than `{name}`, or read only the element that \
             is written"
        ),
    ))
}

/// Two statements in the given shared loops, in the user's order.
fn check_pair(
    kernel: &Kernel,
    earlier: &Statement,
    later: &Statement,
    shared: &[VarId],
) -> Option<DefinitionError> {
    for first in &accesses(kernel, earlier) {
        for second in &accesses(kernel, later) {
            if first.target != second.target || !(first.writes || second.writes) {
                continue;
            }
            let commute = first.writes
                && second.writes
                && earlier.effect.operator().is_some()
                && earlier.effect.operator() == later.effect.operator();
            if commute {
                continue;
            }
            let Some(distances) = distances(kernel, shared, first.indices, second.indices) else { continue };
            if let Some(var) = carried(kernel, shared, &distances) {
                return Some(carried_error(kernel, earlier, later, first, second, var));
            }
        }
    }
    None
}

/// The loop, if any, whose order distribution reverses: the outermost that may be ahead in the earlier statement.
fn carried(kernel: &Kernel, shared: &[VarId], distances: &[Option<i64>]) -> Option<VarId> {
    for (&var, distance) in shared.iter().zip(distances) {
        match distance {
            Some(0) => {}
            Some(distance) if *distance < 0 => return None,
            None if kernel.extent(var).is(1) => {}
            _ => return Some(var),
        }
    }
    None
}

fn carried_error(
    kernel: &Kernel,
    earlier: &Statement,
    later: &Statement,
    first: &TensorUse<'_>,
    second: &TensorUse<'_>,
    var: VarId,
) -> DefinitionError {
    let target = &kernel.targets[first.target];
    let loop_name = render::variable(kernel, var);
    let element = render::element(kernel, target, first.indices);
    let other = render::element(kernel, target, second.indices);
    let (message, role) = if first.writes && second.writes {
        (format!("`{element}` is written again in a later iteration of `{loop_name}`"), "also written here")
    } else if second.writes {
        (
            format!(
                "`{element}` is read in an iteration of `{loop_name}` after an earlier one may have written `{other}`"
            ),
            "written here",
        )
    } else {
        (
            format!(
                "`{element}` is written in an iteration of `{loop_name}` after an earlier one has read `{other}`"
            ),
            "read here",
        )
    };
    let help = if target.shape.len() == target.prefix.len() {
        format!(
            "each statement becomes a loop of its own; declare `{}` inside the loop over `{loop_name}`, or use it only after that \
             loop has ended",
            target.name
        )
    } else {
        format!(
            "each statement becomes a loop of its own; use another tensor, or index `{}` by `{loop_name}` in the same way in both \
             statements",
            target.name
        )
    };
    DefinitionError::new(message, earlier.location, help).note(role, later.location)
}

/// For iterations `q` of one statement and `p` of another that touch the same element, the distance `q - p` in
/// each shared loop: `Some(d)` where it is always `d`, `None` where it is not known. `None` for all when no such
/// iterations exist.
fn distances(
    kernel: &Kernel,
    shared: &[VarId],
    first: &Indices,
    second: &Indices,
) -> Option<Vec<Option<i64>>> {
    let mut known: Vec<Option<i64>> = vec![None; shared.len()];
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
