//! Records of other shapes: fitted, and used where they are predicted to be no slower than the default schedule.
//!
//! The draft model predicts both, and misjudges some schedules. A record shows by how much: at its own shape it won a search, so
//! that it is taken to be at least as fast there as the default schedule, whatever the model says. At another shape it is used where
//! the model predicts that it keeps as large a share of that speed as the default schedule does.

use tilewright_core::program::Program;
use tilewright_core::schedule::Trace;
use tilewright_search::candidate::{Candidate, Generator};
use tilewright_search::records::{Record, TunedFor};
use tilewright_search::spec::SearchSpec;

use super::select::{Choice, Selection, Source, fit};
use crate::choices::default_schedule;

/// How many records of other shapes are tried. The fastest schedule of a shape may be one that fits no other.
const TRIED: usize = 8;

/// Predictions of which one is at least this share of the other count as equal.
const EQUAL: f32 = 0.95;

/// The record of the nearest shape that can be fitted and is predicted to be no slower than the default schedule. Its decisions are
/// repaired where they do not divide, with the postprocessing that this shape needs. Where there is no such record, the default
/// schedule; `None` where there are no records of other shapes.
pub(super) fn nearest(selection: &Selection<'_>) -> Result<Option<Choice>, String> {
    let mut found = selection.records.nearest_few(selection.hash, selection.shape, selection.context, TRIED);
    // A record of this very case means what it says: it was followed, or refused with a note.
    let own = TunedFor::of(selection.context);
    found.retain(|(record, _)| record.shape != *selection.shape || record.target != own);
    if found.is_empty() {
        return Ok(None);
    }
    let spec = SearchSpec::built_in(selection.context.target.kind()).map_err(|error| error.to_string())?;
    let generator = Generator::new(selection.program.clone(), selection.context, spec);
    let default = DefaultSchedule::of(&generator, selection.program);
    let mut refusal = None;
    for (record, distance) in found {
        match fit(&generator, &record.trace) {
            Ok(fitted)
                if default
                    .as_ref()
                    .is_none_or(|default| keeps_up(&generator, record, &fitted, default, selection)) =>
            {
                let source = Source::Nearest { shape: record.shape.clone(), distance };
                return Ok(Some(Choice { source, program: fitted.program, trace: fitted.trace }));
            }
            Ok(_) => {}
            Err(reason) => {
                let first = format!("the record of {} cannot be fitted: {reason}", record.shape);
                refusal.get_or_insert(first);
            }
        }
    }
    match (refusal, default) {
        (None, Some(DefaultSchedule { program, trace, .. })) => {
            Ok(Some(Choice { source: Source::Default, program, trace }))
        }
        (refusal, _) => refusal.map_or(Ok(None), Err),
    }
}

/// Whether a fitted record is predicted to be no slower than the default schedule of this shape.
fn keeps_up(
    generator: &Generator,
    record: &Record,
    fitted: &Candidate,
    default: &DefaultSchedule,
    selection: &Selection<'_>,
) -> bool {
    let (fitted, default) = (fitted.features.prior(), default.speed);
    fitted >= EQUAL * default
        || underestimate(generator, record, selection)
            .is_some_and(|underestimate| fitted * underestimate >= EQUAL * default)
}

/// The speed of the default schedule over that of a record, both as predicted for the record's shape; at least 1.
fn underestimate(generator: &Generator, record: &Record, selection: &Selection<'_>) -> Option<f32> {
    let program = (selection.program_at)(&record.shape)?;
    let (scheduled, _) = record.trace.replay(&program, selection.context, 0).ok()?.into_parts();
    let recorded = (generator.spec.device.extract_features)(&scheduled, selection.context).ok()?;
    let ratio = DefaultSchedule::of(generator, &program)?.speed / recorded.prior();
    ratio.is_finite().then(|| ratio.max(1.0))
}

/// The default schedule of a program, which is chosen once: several records may be of one shape, and the next process needs it again.
struct DefaultSchedule {
    program: Program,
    trace: Trace,
    /// Its speed as the draft model predicts it.
    speed: f32,
}

impl DefaultSchedule {
    /// `None` where the draft model knows nothing of it.
    fn of(generator: &Generator, program: &Program) -> Option<Self> {
        let context = &generator.context;
        let (program, trace) = default_schedule(program, context).into_parts();
        let features = (generator.spec.device.extract_features)(&program, context).ok()?;
        Some(DefaultSchedule { program, trace, speed: features.prior() })
    }
}
