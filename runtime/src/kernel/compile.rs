//! Making a version of a kernel.

use std::sync::Arc;

use smallvec::SmallVec;
use tilewright_core::lower::{LowerError, LowerOptions, LoweredKernel, lower_kernel_with};
use tilewright_core::program::Program;
use tilewright_core::schedule::Trace;
use tilewright_core::target::RunContext;
use tilewright_core::verify::{Level, verify};
use tilewright_search::records::{Database, Shape};

use super::buckets::Buckets;
use super::select::{
    Choice, Fitted, Selection, Source, WAYS, WAYS_WITHOUT_RECORDS, fitted_to_symbols, quick, symbolic,
};
use super::state::State;
use super::versions::DeviceGeneration;
use crate::choices::choose_near;
use crate::code::{self, Compiled};
use crate::devices::{self, DeviceId};
use crate::error::Error;
use crate::records;
use crate::settings::{self, Dump};

/// Compiled code, and how it came about.
pub(super) struct Version {
    pub(super) code: Compiled,
    /// Which of a call's dimensions the code takes.
    pub(super) passed: Passed,
    pub(super) source: Source,
    pub(super) trace: Trace,
    pub(super) scheduled: Program,
    /// How it was lowered. The lowered program is not kept: it is much larger than the scheduled one.
    options: LowerOptions,
    /// Why better schedules were not used.
    pub(super) notes: Vec<String>,
}

impl Version {
    /// The program that was compiled.
    ///
    /// # Errors
    /// None that lowering has not given before.
    pub(super) fn lower(&self) -> Result<LoweredKernel, LowerError> {
        lower_kernel_with(&self.scheduled, &self.options, &mut |_, _| {})
    }

    /// Whether its schedule is that of a record of these very dimensions.
    pub(super) fn has_record(&self) -> bool {
        matches!(self.source, Source::Exact { .. })
    }
}

/// Which of a call's dimensions code takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Passed {
    /// The first buckets, by their number: none, or all symbolic ones.
    First(usize),
    /// The buckets at these positions.
    These(SmallVec<[usize; 4]>),
}

impl State {
    /// The best version for these dimensions that needs no measurement: code for them alone, or the code of their class when the
    /// kernel has met many shapes.
    pub(super) fn make_own(&self, dims: &[i64], at: DeviceGeneration) -> Result<Arc<Version>, Error> {
        let hash = self.hash;
        let (shape, context, records) =
            (self.shape(dims), devices::run_context_of(at.device)?, records::current()?);
        let has_exact_record = records.best(hash, &shape, &context).is_some();
        let buckets = self.buckets();
        let mut bucket_note = None;
        if !has_exact_record
            && !buckets.is_empty()
            && let Some(raised) = buckets.raise(dims)
        {
            // A size within a bucket needs its program for nothing else.
            self.check_bounds(dims)?;
            match self.bucket_version(&raised, &buckets, at) {
                Ok(version) => return Ok(version),
                Err(error) => {
                    bucket_note =
                        Some(format!("the bucket of {} does not serve: {error}", self.shape(&raised)));
                }
            }
        }
        let program = self.bind(dims, 0)?;
        let program_at = |shape: &Shape| self.program_at(shape);
        let selection = Selection {
            program: &program,
            hash,
            shape: &shape,
            context: &context,
            records: &records,
            program_at: &program_at,
        };
        let mut notes = selection.passed_over();
        notes.extend(bucket_note);
        let is_own = has_exact_record
            || self.symbols == 0
            || self.versions.take_place(settings::specialized_shapes(), at);
        if !is_own && let Ok(version) = self.class_version(dims, at) {
            return Ok(version);
        }
        let ways: &[_] = if dims.contains(&0) { &WAYS_WITHOUT_RECORDS } else { &WAYS };
        let mut failure = None;
        for way in ways {
            match way(&selection) {
                Ok(None) => {}
                Ok(Some(choice)) => {
                    let source = choice.source.clone();
                    match build(&self.describe(dims), choice, Passed::First(0), at.device) {
                        Ok(version) => return Ok(Arc::new(Version { notes, ..version })),
                        Err(error) => {
                            notes.push(format!("{source} cannot be compiled: {error}"));
                            failure = Some(error);
                        }
                    }
                }
                Err(note) => notes.push(note),
            }
        }
        Err(failure.expect("the last way always gives a choice"))
    }

    /// Chooses a default schedule for these dimensions near that of a program with other sizes, unless there is a record to follow.
    pub(super) fn choose_near(&self, dims: &[i64], at: DeviceGeneration, trace: &Trace) -> Result<(), Error> {
        let program = self.bind(dims, 0)?;
        let (context, records) = (devices::run_context_of(at.device)?, records::current()?);
        if !self.has_usable_record(dims, &context, &records) {
            choose_near(&program, &context, trace);
        }
        Ok(())
    }

    /// Whether there is a record that could be used, of these dimensions or of others.
    fn has_usable_record(&self, dims: &[i64], context: &RunContext, records: &Database) -> bool {
        !records.nearest_few(self.hash, &self.shape(dims), context, 1).is_empty()
    }

    /// Code with symbolic dimensions for all shapes that are rounded to the same one, for which it is scheduled: the powers of two
    /// that follow, which the shapes resemble in their tiles. When there are many such classes, further ones share a version.
    fn class_version(&self, dims: &[i64], at: DeviceGeneration) -> Result<Arc<Version>, Error> {
        let typical = self.typical(dims);
        let limit = settings::specialized_shapes().max(1);
        let slot = match self.versions.class_slot(&typical, limit, at) {
            Some(slot) => slot,
            None => self.versions.general_slot(&dims[self.symbols..], at),
        };
        slot.get_or_init(|| {
            let program = self.bind(dims, self.symbols)?;
            let (context, records) = (devices::run_context_of(at.device)?, records::current()?);
            let (bound, shape) = (self.bind(&typical, 0)?, self.shape(&typical));
            let (hash, shape, context, records) = (self.hash, &shape, &context, &*records);
            let program_at = |shape: &Shape| self.program_at(shape);
            let program_at = &program_at;
            let selection = Selection { program: &bound, hash, shape, context, records, program_at };
            let Fitted { choice, notes, .. } = symbolic(&selection, &program);
            let what = format!("{} (like {shape})", self.name());
            let version = build(&what, choice, Passed::First(self.symbols), at.device)?;
            Ok(Arc::new(Version { notes, ..version }))
        })
        .clone()
    }

    /// Code for all shapes with the `usize` arguments among these dimensions, with a schedule that is chosen in little time: by the record of the
    /// nearest shape, if there is one. `None` where there is a record of these dimensions, which is followed in little time as well.
    pub(super) fn make_quick(
        &self,
        dims: &[i64],
        at: DeviceGeneration,
    ) -> Result<Option<Arc<Version>>, Error> {
        let program = self.bind(dims, self.symbols)?;
        let (context, records) = (devices::run_context_of(at.device)?, records::current()?);
        let shape = self.shape(dims);
        if records.best(self.hash, &shape, &context).is_some() {
            return Ok(None);
        }
        let what = format!("{} (at once)", self.name());
        let source = if self.symbols > 0 { Source::Symbolic } else { Source::Default };
        let choice = match records.nearest(self.hash, &shape, &context) {
            Some((record, _)) if self.symbols > 0 => fitted_to_symbols(&record.trace, &program, &context),
            _ => quick(source, &program, &context),
        };
        Ok(Some(Arc::new(build_compact(&what, choice, Passed::First(self.symbols), at.device)?)))
    }

    /// Code with symbolic dimensions for all shapes, scheduled as a version for one of them is.
    pub(super) fn make_general(
        &self,
        version: &Arc<Version>,
        dims: &[i64],
        at: DeviceGeneration,
    ) -> Result<Arc<Version>, Error> {
        if version.passed == Passed::First(self.symbols) {
            return Ok(Arc::clone(version));
        }
        let program = self.bind(dims, self.symbols)?;
        let choice = fitted_to_symbols(&version.trace, &program, &devices::run_context_of(at.device)?);
        let what = format!("{} (symbolic)", self.name());
        Ok(Arc::new(build_compact(&what, choice, Passed::First(self.symbols), at.device)?))
    }

    /// The code of a bucket, whose bounds are among these dimensions: bucketed ones are symbolic, scheduled as for
    /// the bounds.
    fn bucket_version(
        &self,
        bounds: &[i64],
        buckets: &Buckets,
        at: DeviceGeneration,
    ) -> Result<Arc<Version>, Error> {
        // Each bound may do alone, and all of them together not.
        self.tensor_shapes(bounds)?;
        let slot = self.versions.bucket_slot(bounds, at);
        slot.get_or_init(|| {
            let positions = buckets.positions();
            let program = self.bind_where(bounds, &|position| !positions.contains(&position))?;
            let (bound, shape) = (self.bind(bounds, 0)?, self.shape(bounds));
            let (hash, context, records) =
                (self.hash, &devices::run_context_of(at.device)?, &*records::current()?);
            let program_at = |shape: &Shape| self.program_at(shape);
            let program_at = &program_at;
            let selection = Selection { program: &bound, hash, shape: &shape, context, records, program_at };
            let Fitted { choice, from, notes } = symbolic(&selection, &program);
            let is_tuned = matches!(from, Source::Exact { .. });
            let choice = Choice { source: Source::Bucket { shape: shape.clone(), is_tuned }, ..choice };
            let what = format!("{} (bucket of {shape})", self.name());
            Ok(Arc::new(Version { notes, ..build(&what, choice, Passed::These(positions), at.device)? }))
        })
        .clone()
    }
}

/// Lowers and compiles a scheduled program for a device.
fn build(what: &str, choice: Choice, passed: Passed, device: DeviceId) -> Result<Version, Error> {
    build_with(what, choice, passed, device, |options| options)
}

/// As [`build`], with less code, which takes less time and memory to compile: for versions that run until a better one is made.
fn build_compact(what: &str, choice: Choice, passed: Passed, device: DeviceId) -> Result<Version, Error> {
    build_with(what, choice, passed, device, LowerOptions::compact)
}

fn build_with(
    what: &str,
    choice: Choice,
    passed: Passed,
    device: DeviceId,
    adapt: fn(LowerOptions) -> LowerOptions,
) -> Result<Version, Error> {
    let dump = Dump::requested()?;
    let Choice { source, program: scheduled, trace } = choice;
    dump.print(what, "trace", || trace.to_string());
    dump.print(what, "scheduled", || scheduled.to_string());
    // Whatever a record says, only a well-formed program is lowered.
    verify(&scheduled, Level::Blocks).map_err(LowerError::Malformed)?;
    let device = devices::device(device)?;
    let options = LowerOptions { verify: settings::verifies()?, ..adapt(LowerOptions::of(device.target())) };
    let lowered = lower_kernel_with(&scheduled, &options, &mut |pass, program| {
        dump.print(what, pass, || program.to_string());
    })?;
    if let Some(prologue) = &lowered.prologue {
        dump.print(&format!("{what}, prologue"), "flat", || prologue.program.to_string());
    }
    dump.print(what, "flat", || lowered.main.to_string());
    let mut compiled = code::compile(&device, &[&lowered]);
    let code = compiled.pop().expect("one result for one program")?;
    dump.print(what, "assembly", || code::list(&*device, &lowered).unwrap_or_else(|error| error.to_string()));
    Ok(Version { code, passed, source, trace, scheduled, options, notes: Vec::new() })
}
