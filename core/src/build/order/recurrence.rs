//! Which loops carry values from one iteration to the next, and must be executed in order.
//!
//! Distribution runs all iterations of one statement before all iterations of the next. That changes the order of a later
//! statement's early iterations and an earlier statement's late ones, which is wrong when both touch the same element and
//! one writes it. Such statements, and those between them, stay together in one loop: a *recurrence*, whose iterations
//! are executed in the user's order. So does a statement that reads what its own earlier iterations have written, and one
//! whose iterations may write the same element, one after the other (a scatter).
//!
//! The test solves for the distance between iterations that touch the same element: exact for index expressions with equal
//! coefficients, and otherwise conservative. Statements before and after a recurrence become loops of their own as
//! usual (the distribution of Allen and Kennedy, on intervals of statements rather than on components of the graph of
//! dependences, so that the user's order stays).

use std::collections::BTreeMap;

use super::dependence::{Accesses, accesses, distances, distances_from};
use super::domain::{drop_idle_loops, undetermined};
use crate::build::statement::{Effect, Kernel, Statement};
use crate::ids::VarId;
use crate::index::Index;
use crate::visit::for_each_load_in_index;

/// A recurrence: statements that stay together in one loop, whose iterations are executed in order.
pub(in crate::build) type Recurrence = usize;

/// Finds the recurrences and marks the loops of their statements. Loops without effect are dropped first, except where the
/// statements of a recurrence would then stand in different loops.
pub(in crate::build) fn find_recurrences(kernel: &mut Kernel) {
    let written = kernel.statements.clone();
    drop_idle_loops(kernel);
    mark_recurrences(kernel);
    if !share_loops(kernel) {
        kernel.statements = written;
        mark_recurrences(kernel);
    }
}

fn mark_recurrences(kernel: &mut Kernel) {
    let accessed: Vec<Accesses<'_>> =
        kernel.statements.iter().map(|statement| accesses(kernel, statement)).collect();
    let mut search = Search { kernel, accessed, intervals: BTreeMap::new() };
    search.within_statements();
    search.between_statements();
    while search.around_recurrences() {}
    let intervals = search.merged();
    mark(kernel, &intervals);
    for recurrence in 0..intervals.len() {
        gather(kernel, recurrence);
    }
}

/// Whether the statements of each recurrence have all loops around it in common.
fn share_loops(kernel: &Kernel) -> bool {
    let mut around: BTreeMap<Recurrence, &[VarId]> = BTreeMap::new();
    kernel.statements.iter().all(|statement| {
        statement.recurrences.iter().enumerate().all(|(level, recurrence)| {
            let own = &statement.loops[..=level];
            recurrence.is_none_or(|recurrence| *around.entry(recurrence).or_insert(own) == own)
        })
    })
}

/// Statements that stay together in a loop, from the first to the last.
type Interval = (VarId, usize, usize);

struct Search<'k> {
    kernel: &'k Kernel,
    accessed: Vec<Accesses<'k>>,
    /// For each loop, the intervals of statements that must stay together.
    intervals: BTreeMap<VarId, Vec<(usize, usize)>>,
}

impl Search<'_> {
    /// Adds an interval; whether it was not part of one before.
    fn add(&mut self, var: VarId, first: usize, last: usize) -> bool {
        let own = self.intervals.entry(var).or_default();
        if own.iter().any(|(start, end)| *start <= first && last <= *end) {
            return false;
        }
        let (mut first, mut last) = (first, last);
        own.retain(|(start, end)| {
            let apart = last < *start || *end < first;
            if !apart {
                (first, last) = (first.min(*start), last.max(*end));
            }
            apart
        });
        own.push((first, last));
        true
    }

    /// Statements whose own iterations depend on each other.
    fn within_statements(&mut self) {
        for at in 0..self.kernel.statements.len() {
            let statement = &self.kernel.statements[at];
            let (write, reads) = self.accessed[at].split_first().expect("a statement writes");
            let mut carrying = overwriting_loops(self.kernel, statement);
            for read in reads.iter().filter(|read| read.target == statement.target) {
                carrying.extend(
                    self.levels(&statement.loops, (write.indices, read.indices), &|distance| distance != 0),
                );
            }
            for var in carrying {
                self.add(var, at, at);
            }
        }
    }

    /// Statements of which a later one must run before an earlier one's next iterations.
    fn between_statements(&mut self) {
        for last in 0..self.kernel.statements.len() {
            for first in 0..last {
                let shared = self.shared_loops(first, last);
                for var in self.carrying(first, last, &shared, &|distance| distance > 0) {
                    self.add(var, first, last);
                }
            }
        }
    }

    /// Statements of one recurrence share the loops around it, too, so that these carry what one statement leaves for
    /// another, and are in order for all of them if they are for one; whether any such loop was found.
    fn around_recurrences(&mut self) -> bool {
        let mut found = false;
        let intervals = self.merged();
        for &(var, start, end) in &intervals {
            let loops = &self.kernel.statements[start].loops;
            let around: Vec<VarId> = loops.iter().copied().take_while(|other| *other != var).collect();
            for outer in around {
                let own = self.intervals.get(&outer).into_iter().flatten();
                if own.into_iter().any(|(first, last)| *first <= end && start <= *last) {
                    found |= self.add(outer, start, end);
                }
            }
            for last in start..=end {
                for first in start..last {
                    let shared = self.shared_loops(first, last);
                    let Some(depth) = shared.iter().position(|other| *other == var) else { continue };
                    let carrying = self.carrying(first, last, &shared, &|distance| distance != 0);
                    for outer in carrying.into_iter().filter(|outer| shared[..depth].contains(outer)) {
                        found |= self.add(outer, start, end);
                    }
                }
            }
        }
        found
    }

    fn shared_loops(&self, first: usize, second: usize) -> Vec<VarId> {
        let (first, second) = (&self.kernel.statements[first], &self.kernel.statements[second]);
        first.loops.iter().zip(&second.loops).take_while(|(a, b)| a == b).map(|(var, _)| *var).collect()
    }

    /// The shared loops whose iterations a dependence between two statements may connect, at a distance that matters.
    fn carrying(
        &self,
        earlier: usize,
        later: usize,
        shared: &[VarId],
        matters: &dyn Fn(i64) -> bool,
    ) -> Vec<VarId> {
        let mut found = Vec::new();
        if shared.is_empty() {
            return found;
        }
        let operator = |at: usize| self.kernel.statements[at].effect.operator();
        for first in &self.accessed[earlier] {
            for second in &self.accessed[later] {
                if first.target != second.target || !(first.writes || second.writes) {
                    continue;
                }
                let commute = first.writes
                    && second.writes
                    && operator(earlier).is_some()
                    && operator(earlier) == operator(later);
                if !commute {
                    found.extend(self.levels(shared, (first.indices, second.indices), matters));
                }
            }
        }
        found
    }

    /// The loops that carry a dependence between two elements: of each distance, the outermost loop at which it is not 0.
    fn levels(
        &self,
        shared: &[VarId],
        (first, second): (&[Index], &[Index]),
        matters: &dyn Fn(i64) -> bool,
    ) -> Vec<VarId> {
        let mut found = Vec::new();
        let Some(mut known) = distances(self.kernel, shared, first, second) else { return found };
        for (level, &var) in shared.iter().enumerate() {
            match known[level] {
                Some(0) => {}
                None if self.kernel.extent(var).is(1) => {}
                Some(distance) => {
                    if matters(distance) {
                        found.push(var);
                    }
                    return found;
                }
                None => {
                    found.push(var);
                    // Iterations of the loops inside are compared within one iteration of this one.
                    known[level] = Some(0);
                    match distances_from(self.kernel, shared, first, second, known) {
                        Some(better) => known = better,
                        None => return found,
                    }
                }
            }
        }
        found
    }

    fn merged(&self) -> Vec<Interval> {
        let all = self.intervals.iter();
        all.flat_map(|(var, own)| own.iter().map(|(start, end)| (*var, *start, *end))).collect()
    }
}

/// The loops of a statement whose iterations may write the same element in the user's order: those that the indices do not
/// determine, and those that do not index an element that is assigned on a condition.
fn overwriting_loops(kernel: &Kernel, statement: &Statement) -> Vec<VarId> {
    let is_known = |index: &&Index| {
        let mut reads = false;
        for_each_load_in_index(index, &mut |_, _| reads = true);
        !reads && statement.loops.iter().all(|&var| index.linear_coefficient(var).is_some())
    };
    let known: Vec<_> = statement.indices.iter().filter(is_known).cloned().collect();
    let indexing: Vec<VarId> =
        statement.loops.iter().copied().filter(|&var| statement.is_spatial(var)).collect();
    let mut found = undetermined(kernel, &known, indexing);
    let is_scattered = known.len() < statement.indices.len() || !found.is_empty();
    if matches!(statement.effect, Effect::Set(_)) && (is_scattered || !statement.conditions.is_empty()) {
        found.extend(statement.loops.iter().copied().filter(|&var| !statement.is_spatial(var)));
    }
    found
}

/// Marks, for each statement of a recurrence, the loop that keeps it together.
fn mark(kernel: &mut Kernel, intervals: &[Interval]) {
    for (recurrence, &(var, start, end)) in intervals.iter().enumerate() {
        for statement in &mut kernel.statements[start..=end] {
            if let Some(level) = statement.loops.iter().position(|other| *other == var) {
                statement.recurrences[level] = Some(recurrence);
            }
        }
    }
}

/// Moves statements that stand among those of a recurrence but not in its loop, which did nothing for them, to before it.
fn gather(kernel: &mut Kernel, recurrence: Recurrence) {
    let is_member = |statement: &Statement| statement.recurrences.contains(&Some(recurrence));
    let first = kernel.statements.iter().position(is_member);
    let last = kernel.statements.iter().rposition(is_member);
    if let (Some(first), Some(last)) = (first, last) {
        kernel.statements[first..=last].sort_by_key(is_member);
    }
}

/// Whether, in one iteration of each of a statement's recurrences, its target's elements are not those of other iterations:
/// the loops of the recurrences cut the target into parts.
pub(in crate::build) fn is_cut_by_recurrences(kernel: &Kernel, statement: &Statement) -> bool {
    statement.recurrences.iter().enumerate().all(|(level, recurrence)| {
        let Some(recurrence) = recurrence else { return true };
        let var = statement.loops[level];
        let members: Vec<&Statement> =
            kernel.statements.iter().filter(|other| other.recurrences.contains(&Some(*recurrence))).collect();
        let uses: Vec<_> = members
            .iter()
            .flat_map(|member| accesses(kernel, member).into_iter().map(move |access| (*member, access)))
            .filter(|(_, access)| access.target == statement.target)
            .collect();
        uses.iter().all(|(first, written)| {
            !written.writes
                || uses.iter().all(|(second, other)| {
                    let shared: Vec<VarId> = first
                        .loops
                        .iter()
                        .zip(&second.loops)
                        .take_while(|(a, b)| a == b)
                        .map(|(var, _)| *var)
                        .collect();
                    let at = shared.iter().position(|own| *own == var);
                    match (at, distances(kernel, &shared, written.indices, other.indices)) {
                        (_, None) => true,
                        (Some(at), Some(distances)) => distances[at] == Some(0),
                        (None, Some(_)) => false,
                    }
                })
        })
    })
}
