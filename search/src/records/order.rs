//! The order of records: which one is the better of two that are of the same program, shape and machine.
//!
//! Look-ups, pruning, tools and reports all go by this order. A time that was measured alone may be lucky, and times of different hours
//! do not compare. The winner of a comparison at the end of a run therefore comes before all others, whatever their times
//! are. Without a winner, and after it, records come in the order of their times.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use tilewright_core::schedule::Trace;
use tilewright_vocabulary::{Timed, better_first, rank};

use super::{Record, Shape, TunedFor};

pub use tilewright_vocabulary::Standing;

/// A record with a time, and how it compares with the others of its program, shape and machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked<'a> {
    /// The record.
    pub record: &'a Record,
    /// How it compares.
    pub standing: Standing,
    /// Whether it won any comparison, the last one or an earlier one.
    pub is_confirmed: bool,
    /// Its median time, in nanoseconds.
    pub median_ns: f64,
}

impl Ranked<'_> {
    /// Whether it may be the best of its program, shape and machine: the winner, or any while there is none.
    pub fn is_candidate(&self) -> bool {
        self.standing <= Standing::Open
    }

    /// The better one first.
    pub fn order(&self, other: &Ranked<'_>) -> Ordering {
        let key = |ranked: &Ranked<'_>| (ranked.standing, ranked.is_confirmed, ranked.median_ns);
        better_first(key(self), key(other))
    }
}

/// Records of one program, shape and machine in the order of reading, the best first. Records of failed trials are left out.
pub fn ranked<'a>(records: &[&'a Record]) -> Vec<Ranked<'a>> {
    let timed = records.iter().filter_map(|record| {
        let (time, median_ns) = (record.provenance.time, record.median_ns()?);
        Some((*record, Timed { time, median_ns, is_confirmed: is_confirmed(record), trace: &record.trace }))
    });
    let (timed, facts): (Vec<&'a Record>, Vec<Timed<&Trace>>) = timed.unzip();
    let ranked = rank(&facts).into_iter().map(|(position, standing)| {
        let Timed { is_confirmed, median_ns, .. } = facts[position];
        Ranked { record: timed[position], standing, is_confirmed, median_ns }
    });
    ranked.collect()
}

/// The best of records of one program, shape and machine; `None` when no trial has succeeded.
pub fn best_of<'a>(records: &[&'a Record]) -> Option<&'a Record> {
    ranked(records).first().map(|best| best.record)
}

/// As [`ranked`], for records of one program and several shapes and machines, each shape and machine by itself.
pub(super) fn ranked_by_group<'a>(records: impl Iterator<Item = &'a Record>) -> Vec<Ranked<'a>> {
    let mut groups: FxHashMap<(&Shape, &TunedFor), usize> = FxHashMap::default();
    let mut members: Vec<Vec<&Record>> = Vec::new();
    for record in records {
        let group = *groups.entry((&record.shape, &record.target)).or_insert(members.len());
        match members.get_mut(group) {
            Some(members) => members.push(record),
            None => members.push(vec![record]),
        }
    }
    members.iter().flat_map(|members| ranked(members)).collect()
}

fn is_confirmed(record: &Record) -> bool {
    record.measurement().is_some_and(|measurement| measurement.is_confirmed)
}
