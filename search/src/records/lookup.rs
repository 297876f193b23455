//! Finds the best record for a shape and a machine.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use tilewright_core::target::{RunContext, Target};

use super::order::{Ranked, ranked_by_group};
use super::{Database, Record, Shape};

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
    /// Times from different machines do not compare, so the record whose features and number of threads are closest to the
    /// machine's comes first, and among equals the one that comes first in the [order of records](super::ranked).
    pub fn best(&self, program: u64, shape: &Shape, context: &RunContext) -> Option<&Record> {
        let of_shape = self.usable(program, context).filter(|record| record.shape == *shape);
        let ranked = ranked_by_group(of_shape);
        ranked.iter().min_by(|a, b| suitability(a, b, context)).map(|best| best.record)
    }

    /// The best record of a program for the shape that is nearest to this one, with the [distance](Shape::distance) between the
    /// shapes. Records at one distance are ordered as by [`Database::best`].
    pub fn nearest(&self, program: u64, shape: &Shape, context: &RunContext) -> Option<(&Record, f64)> {
        self.nearest_few(program, shape, context, 1).into_iter().next()
    }

    /// At most `count` records of a program, the most promising for a shape first: the one of [`Database::nearest`], those of
    /// shapes further away, then those that others have beaten. Not every schedule can be fitted to every shape.
    pub fn nearest_few(
        &self,
        program: u64,
        shape: &Shape,
        context: &RunContext,
        count: usize,
    ) -> Vec<(&Record, f64)> {
        let ranked = ranked_by_group(self.usable(program, context));
        let mut found: Vec<(Ranked<'_>, f64)> = ranked
            .into_iter()
            .filter_map(|ranked| Some((ranked, shape.distance(&ranked.record.shape)?)))
            .collect();
        found.sort_by(|(a, a_far), (b, b_far)| {
            (b.is_candidate().cmp(&a.is_candidate()))
                .then_with(|| a_far.total_cmp(b_far))
                .then_with(|| a.record.shape.cmp(&b.record.shape))
                .then_with(|| suitability(a, b, context))
        });
        found.truncate(count);
        found.into_iter().map(|(ranked, distance)| (ranked.record, distance)).collect()
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

    /// Records of a program that may be used on a machine.
    fn usable<'a, 't>(
        &'a self,
        program: u64,
        context: &'t RunContext,
    ) -> impl Iterator<Item = &'a Record> + use<'a, 't> {
        self.records_of(program).filter(|record| record.target.serves(&context.target))
    }
}

/// Orders records by how much they suit a machine, best first.
fn suitability(a: &Ranked<'_>, b: &Ranked<'_>, context: &RunContext) -> Ordering {
    let (a_unused, a_threads) = a.record.target.misfit(context);
    let (b_unused, b_threads) = b.record.target.misfit(context);
    a_unused.cmp(&b_unused).then(a_threads.total_cmp(&b_threads)).then_with(|| a.order(b))
}
