//! Choosing a schedule: exact record, nearest record, default, as it is written.

use std::fmt;

use tilewright_core::program::Program;
use tilewright_core::schedule::{Schedule, Trace};
use tilewright_core::target::RunContext;
use tilewright_search::candidate::{Candidate, Generator, Statistics};
use tilewright_search::fit::fit as fit_trace;
use tilewright_search::records::{Database, Shape};
use tilewright_search::schedule_quickly;
use tilewright_search::spec::{DeviceFunctions, SearchSpec};

use super::nearest::nearest;
use crate::choices::default_schedule;

/// Where the schedule of a version comes from.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Source {
    /// A record of this shape.
    Exact {
        /// The time that was measured when it was tuned, in nanoseconds.
        median_ns: f64,
    },
    /// A record of another shape, fitted to this one.
    Nearest {
        /// The record's shape.
        shape: Shape,
        /// [`Shape::distance`] to it.
        distance: f64,
    },
    /// The schedule for the bound of a bucket, with guards.
    Bucket {
        /// The bucket's bound.
        shape: Shape,
        /// Whether the schedule is that of a record of the bound; otherwise it is chosen as for any other shape.
        is_tuned: bool,
    },
    /// The schedule that is chosen without any measurement.
    Default,
    /// A schedule for symbolic dimensions, which serves many shapes.
    Symbolic,
    /// None: the loops as they are written, because no other schedule could be compiled.
    Unscheduled,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Exact { median_ns } => write!(f, "a record of this shape ({median_ns:.0} ns when tuned)"),
            Source::Nearest { shape, distance } => {
                write!(f, "the nearest record, of {shape} (distance {distance:.2})")
            }
            Source::Bucket { shape, is_tuned } => {
                let untuned = if *is_tuned { "" } else { ", which is not tuned" };
                write!(f, "the bucket of {shape}{untuned}")
            }
            Source::Default => f.write_str("the default schedule"),
            Source::Symbolic => f.write_str("a schedule for symbolic dimensions"),
            Source::Unscheduled => f.write_str("no schedule"),
        }
    }
}

/// A scheduled program and where it comes from.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) source: Source,
    pub(super) program: Program,
    pub(super) trace: Trace,
}

/// A choice for symbolic dimensions, made from one for a typical shape.
pub(super) struct Fitted {
    pub(super) choice: Choice,
    /// Where the schedule for the typical shape comes from.
    pub(super) from: Source,
    /// Why better schedules were not used.
    pub(super) notes: Vec<String>,
}

/// The inputs of the choice of a schedule.
pub(super) struct Selection<'a> {
    /// The unscheduled program with its dimensions bound.
    pub(super) program: &'a Program,
    /// The hash under which the kernel's records are kept.
    pub(super) hash: u64,
    pub(super) shape: &'a Shape,
    pub(super) context: &'a RunContext,
    pub(super) records: &'a Database,
    /// The unscheduled program at another shape; `None` for one that is no shape of the kernel.
    pub(super) program_at: &'a dyn Fn(&Shape) -> Option<Program>,
}

/// A way to choose: a choice, `None` when it has none, or why it does not do.
type Way = fn(&Selection<'_>) -> Result<Option<Choice>, String>;

/// The ways, best first. A version is made of the first that gives a choice that can be compiled.
pub(super) const WAYS: [Way; 4] = [exact, nearest, default, unscheduled];

/// The ways when there is no record of a shape that would do.
pub(super) const WAYS_WITHOUT_RECORDS: [Way; 2] = [default, unscheduled];

impl Selection<'_> {
    /// A note for each shape whose records would do if the machine had what they need.
    pub(super) fn passed_over(&self) -> Vec<String> {
        let mut notes: Vec<String> = self
            .records
            .passed_over(self.hash, &self.context.target)
            .into_iter()
            .map(|passed| {
                let missing: Vec<_> = passed.missing.into_iter().collect();
                format!(
                    "records of {} need {}, which this machine lacks",
                    passed.record.shape,
                    missing.join(", ")
                )
            })
            .collect();
        notes.sort();
        notes.dedup();
        notes
    }
}

/// The whole trace of a record of this shape.
fn exact(selection: &Selection<'_>) -> Result<Option<Choice>, String> {
    let Some(record) = selection.records.best(selection.hash, selection.shape, selection.context) else {
        return Ok(None);
    };
    let Some(median_ns) = record.median_ns() else { return Ok(None) };
    let schedule = record
        .trace
        .replay_exactly(selection.program, selection.context, 0)
        .map_err(|error| format!("the record of {} does not replay: {error}", record.shape))?;
    let kind = schedule.target().kind();
    let device = DeviceFunctions::built_in(kind);
    (device.verify_limits)(schedule.program(), schedule.context())
        .map_err(|reason| format!("the record of {} does not suit this machine: {reason}", record.shape))?;
    Ok(Some(choice(Source::Exact { median_ns }, schedule)))
}

/// A schedule for a program with symbolic dimensions, from that for a typical shape, which `selection` is of.
pub(super) fn symbolic(selection: &Selection<'_>, program: &Program) -> Fitted {
    let (context, mut notes) = (selection.context, Vec::new());
    for way in &WAYS[..3] {
        let typical = match way(selection) {
            Ok(Some(typical)) => typical,
            Ok(None) => continue,
            Err(note) => {
                notes.push(note);
                continue;
            }
        };
        let from = typical.source;
        match fitted(&typical.trace, program, context) {
            Ok(choice) => return Fitted { choice, from, notes },
            Err(reason) => notes.push(format!("{from} cannot be fitted to symbolic dimensions: {reason}")),
        }
    }
    let choice = choice(Source::Symbolic, default_schedule(program, context));
    Fitted { choice, from: Source::Default, notes }
}

/// A schedule for a program with symbolic dimensions, from that of a shape.
pub(super) fn fitted_to_symbols(trace: &Trace, program: &Program, context: &RunContext) -> Choice {
    fitted(trace, program, context).unwrap_or_else(|_| quick(Source::Symbolic, program, context))
}

/// A schedule that is chosen in little time.
pub(super) fn quick(source: Source, program: &Program, context: &RunContext) -> Choice {
    choice(source, schedule_quickly(program, context))
}

/// The decisions of a trace on a program with symbolic dimensions.
fn fitted(trace: &Trace, program: &Program, context: &RunContext) -> Result<Choice, String> {
    let spec = SearchSpec::built_in(context.target.kind()).map_err(|error| error.to_string())?;
    let candidate = fit(&Generator::new(program.clone(), context, spec), trace)?;
    Ok(Choice { source: Source::Symbolic, program: candidate.program, trace: candidate.trace })
}

/// The decisions of a trace on another program, as far as they suit it, with the postprocessing that this one needs; or the reasons
/// why there is none.
pub(super) fn fit(generator: &Generator, trace: &Trace) -> Result<Candidate, String> {
    let mut refusals = Statistics::default();
    fit_trace(generator, trace, &mut refusals)
        .ok_or_else(|| refusals.rejected.into_keys().collect::<Vec<_>>().join(", "))
}

/// The schedule that the draft model thinks best.
fn default(selection: &Selection<'_>) -> Result<Option<Choice>, String> {
    Ok(Some(choice(Source::Default, default_schedule(selection.program, selection.context))))
}

/// The program as it is.
fn unscheduled(selection: &Selection<'_>) -> Result<Option<Choice>, String> {
    let schedule = Schedule::new(selection.program.clone(), selection.context, 0);
    Ok(Some(choice(Source::Unscheduled, schedule)))
}

fn choice(source: Source, schedule: Schedule) -> Choice {
    let (program, trace) = schedule.into_parts();
    Choice { source, program, trace }
}
