//! The order of records: which one is the better of two that are of the same program, shape and machine.
//!
//! Look-ups, pruning, tools and reports all go by this order. A time that was measured alone may be lucky, and times of different hours
//! do not compare. The winner of a comparison at the end of a run therefore comes before all others, whatever their times
//! are. Without a winner, and after it, records come in the order of their times.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use super::{Record, Shape, TunedFor};

/// How a record compares with the others of its program, shape and machine, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It won the last comparison at the end of a run.
    Winner,
    /// No comparison has had a winner yet.
    Open,
    /// Another record won the last comparison.
    Beaten,
    /// Its schedule was timed again later, for a comparison or afterwards.
    Superseded,
}

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
        (self.standing.cmp(&other.standing))
            .then_with(|| other.is_confirmed.cmp(&self.is_confirmed))
            .then_with(|| self.median_ns.total_cmp(&other.median_ns))
    }
}

/// Records of one program, shape and machine in the order of reading, the best first. Those of trials that failed are left out.
pub fn ranked<'a>(records: &[&'a Record]) -> Vec<Ranked<'a>> {
    let mut timed: Vec<&Record> =
        records.iter().copied().filter(|record| record.median_ns().is_some()).collect();
    // Files may have been merged in any order.
    timed.sort_by_key(|record| record.provenance.time);
    let winner = timed.iter().rposition(|record| is_confirmed(record));
    let is_timed_later = |position: usize| {
        let trace = &timed[position].trace;
        timed[position + 1..].iter().any(|later| later.trace == *trace)
    };
    let rank = |(position, record): (usize, &&'a Record)| {
        let standing = match winner {
            None => Standing::Open,
            Some(winner) if winner == position => Standing::Winner,
            Some(_) if is_timed_later(position) => Standing::Superseded,
            Some(_) => Standing::Beaten,
        };
        let median_ns = record.median_ns().unwrap_or(f64::INFINITY);
        Ranked { record, standing, is_confirmed: is_confirmed(record), median_ns }
    };
    let mut ranked: Vec<Ranked<'a>> = timed.iter().enumerate().map(rank).collect();
    ranked.sort_by(Ranked::order);
    ranked
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
