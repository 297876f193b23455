//! Finds the best record for a shape and a machine.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use rustc_hash::FxHashSet;
use tilewright_core::target::{RunContext, Target};

use super::{Database, Record, Shape, TunedFor};

/// A record that was not considered because the machine lacks features that its code needs.
#[derive(Clone, Debug, PartialEq)]
pub struct PassedOver<'a> {
    /// The record.
    pub record: &'a Record,
    /// The missing features.
    pub missing: BTreeSet<String>,
}

impl Database {
    /// The best record of a program for exactly this shape that may be used on a machine.
    ///
    /// Times from different machines do not compare, so the record whose features and number of threads are
    /// closest to the machine's comes first, and the fastest among equals. A record that a run
    /// [confirmed](super::Measurement::is_confirmed) replaces all records before it.
    pub fn best(&self, program: u64, shape: &Shape, context: &RunContext) -> Option<&Record> {
        self.usable(program, context)
            .filter(|(record, _)| record.shape == *shape)
            .min_by(|(a, a_ns), (b, b_ns)| suitability((a, *a_ns), (b, *b_ns), context))
            .map(|(record, _)| record)
    }

    /// The best record of a program for the shape that is nearest to this one, with the [distance](Shape::distance) between the
    /// shapes. Records at one distance are ordered as by [`Database::best`].
    pub fn nearest(&self, program: u64, shape: &Shape, context: &RunContext) -> Option<(&Record, f64)> {
        self.nearest_few(program, shape, context, 1).into_iter().next()
    }

    /// At most `count` records of a program, the most promising for a shape first: the one of [`Database::nearest`], records of
    /// shapes further away, then replaced records. Not every schedule can be fitted to every shape.
    pub fn nearest_few(
        &self,
        program: u64,
        shape: &Shape,
        context: &RunContext,
        count: usize,
    ) -> Vec<(&Record, f64)> {
        let of_program: Vec<&Record> =
            self.records_of(program).filter(|record| record.target.serves(&context.target)).collect();
        let standing = standing(&of_program);
        let stands = |record: &Record| standing.iter().any(|other| std::ptr::eq(*other, record));
        let mut found: Vec<(&Record, f64, f64)> = of_program
            .iter()
            .filter_map(|record| Some((*record, record.median_ns()?, shape.distance(&record.shape)?)))
            .collect();
        found.sort_by(|(a, a_ns, a_far), (b, b_ns, b_far)| {
            (stands(b).cmp(&stands(a)))
                .then_with(|| a_far.total_cmp(b_far))
                .then_with(|| a.shape.cmp(&b.shape))
                .then_with(|| suitability((a, *a_ns), (b, *b_ns), context))
        });
        found.truncate(count);
        found.into_iter().map(|(record, _, distance)| (record, distance)).collect()
    }

    /// Records of a program that succeeded on their own machine but need features that this machine lacks.
    pub fn passed_over(&self, program: u64, target: &Target) -> Vec<PassedOver<'_>> {
        let other = self.records_of(program).filter(|record| {
            record.median_ns().is_some()
                && record.target.kind == target.kind()
                && !record.target.serves(target)
        });
        other.map(|record| PassedOver { record, missing: record.target.missing(target) }).collect()
    }

    /// Records of a program that succeeded and may be used on a machine, with their median times.
    fn usable<'a, 't>(
        &'a self,
        program: u64,
        context: &'t RunContext,
    ) -> impl Iterator<Item = (&'a Record, f64)> + use<'a, 't> {
        standing(
            &self
                .records_of(program)
                .filter(|record| record.target.serves(&context.target))
                .collect::<Vec<_>>(),
        )
        .into_iter()
        .filter_map(|record| Some((record, record.median_ns()?)))
    }
}

/// The records that no later one replaces: a confirmed record replaces all before it of the same shape and
/// machine, and a later record of a confirmed schedule replaces the earlier one.
pub(super) fn standing<'a>(records: &[&'a Record]) -> Vec<&'a Record> {
    let mut confirmed: FxHashSet<(&Shape, &TunedFor)> = FxHashSet::default();
    let mut kept: Vec<&Record> = Vec::new();
    for (position, &record) in records.iter().enumerate().rev() {
        let group = (&record.shape, &record.target);
        let is_confirmed = record.measurement().is_some_and(|measurement| measurement.is_confirmed);
        let is_repeated = |later: &&Record| {
            (&later.shape, &later.target) == group
                && later.median_ns().is_some()
                && later.trace == record.trace
        };
        let is_past = match is_confirmed {
            true => records[position + 1..].iter().any(is_repeated),
            false => confirmed.contains(&group),
        };
        if is_confirmed {
            confirmed.insert(group);
        }
        if !is_past {
            kept.push(record);
        }
    }
    kept.reverse();
    kept
}

/// Orders records with their median times by their misfit to a machine, the best first.
pub(super) fn suitability(
    (a, a_ns): (&Record, f64),
    (b, b_ns): (&Record, f64),
    context: &RunContext,
) -> Ordering {
    let (a_unused, a_threads) = a.target.misfit(context);
    let (b_unused, b_threads) = b.target.misfit(context);
    a_unused.cmp(&b_unused).then(a_threads.total_cmp(&b_threads)).then(a_ns.total_cmp(&b_ns))
}
