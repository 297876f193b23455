//! Opens records, and finds one among them.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use tilewright::core::program::Program;
use tilewright::search::records::{Database, Record, TunedFor};
use tilewright::tuning::replay;
use tilewright::tuning::report::{Peak, Series};

use crate::Failure;
use crate::address::{Address, Dims};
use crate::arguments::Which;

/// Reads the records at a path, which must exist. Lines that cannot be read are reported and skipped.
pub(crate) fn open(path: &Path) -> Result<Database, Failure> {
    let is_named = path.extension().is_some_and(|extension| extension == "jsonl");
    match std::fs::metadata(path) {
        Err(error) => return Err(Failure(format!("cannot read `{}`: {error}", path.display()))),
        Ok(found) if !found.is_dir() && !is_named => {
            let path = path.display();
            return Err(Failure(format!("`{path}` is no file of records: its name must end in `.jsonl`")));
        }
        Ok(_) => {}
    }
    let database = Database::open(path).map_err(Failure::new)?;
    for problem in database.problems() {
        drop(writeln!(io::stderr(), "warning: {problem}"));
    }
    Ok(database)
}

/// The records of several paths together.
pub(crate) fn open_all(paths: &[impl AsRef<Path>]) -> Result<Database, Failure> {
    let mut all = Database::in_memory();
    for path in paths {
        all.merge(&open(path.as_ref())?).map_err(Failure::new)?;
    }
    Ok(all)
}

/// The records that the arguments select.
pub(crate) struct Wanted<'a> {
    pub(crate) path: &'a Path,
    pub(crate) kernel: &'a str,
    pub(crate) shape: Option<&'a Dims>,
    pub(crate) trial: Option<u64>,
    pub(crate) threads: Option<u32>,
}

/// A record, with its program where a line beside it states it.
pub(crate) struct Found {
    pub(crate) record: Record,
    pub(crate) program: Option<Program>,
    /// The trials of its kernel, shape and machine.
    pub(crate) series: Series,
}

impl<'a> From<&'a Which> for Wanted<'a> {
    fn from(which: &'a Which) -> Self {
        Wanted {
            path: &which.path,
            kernel: &which.kernel,
            shape: which.shape.as_ref(),
            trial: which.trial,
            threads: which.threads,
        }
    }
}

impl<'a> From<&'a Address> for Wanted<'a> {
    fn from(address: &'a Address) -> Self {
        Wanted {
            path: &address.path,
            kernel: &address.kernel,
            shape: address.shape.as_ref(),
            trial: address.trial,
            threads: None,
        }
    }
}

impl Found {
    /// The program, or a hint at its source.
    pub(crate) fn program(&self, path: &Path) -> Result<&Program, Failure> {
        self.program.as_ref().ok_or_else(|| {
            Failure(format!(
                "`{}` has no text of the program {:016x} of `{}`: tune the kernel once more to write it",
                path.display(),
                self.record.program,
                self.record.kernel
            ))
        })
    }
}

/// The series of this machine, or all series if there are none of this machine.
fn of_this_machine(series: Vec<&Series>) -> Vec<&Series> {
    let is_own = |series: &&&Series| {
        replay::context(series.target.threads).is_ok_and(|context| TunedFor::of(&context) == series.target)
    };
    let own: Vec<&Series> = series.iter().filter(is_own).copied().collect();
    if own.is_empty() { series } else { own }
}

impl Wanted<'_> {
    /// Finds the record.
    pub(crate) fn find(&self) -> Result<Found, Failure> {
        let database = open(self.path)?;
        let all = Series::of_records(&database, Peak::Recorded);
        let of_kernel: Vec<&Series> = all.iter().filter(|series| series.kernel == self.kernel).collect();
        if of_kernel.is_empty() {
            let names: BTreeSet<&str> = all.iter().map(|series| series.kernel.as_str()).collect();
            return Err(self.none(&format!("no kernel `{}`", self.kernel), names));
        }
        let is_shape = |series: &&&Series| self.shape.is_none_or(|shape| shape.is(&series.shape));
        let of_shape: Vec<&Series> = of_kernel.iter().filter(is_shape).copied().collect();
        let shapes = |among: &[&Series]| -> BTreeSet<String> {
            among.iter().map(|series| series.shape.to_string()).collect()
        };
        if let (true, Some(shape)) = (of_shape.is_empty(), self.shape) {
            return Err(self.none(&format!("no record of `{}` for {shape}", self.kernel), shapes(&of_kernel)));
        }
        if shapes(&of_shape).len() > 1 {
            return Err(self.several("shapes", "name one", shapes(&of_shape)));
        }
        let is_meant = |series: &&&Series| {
            self.threads.is_none_or(|threads| series.target.threads == threads)
                && self.trial.is_none_or(|trial| series.trials.iter().any(|own| own.number == trial))
        };
        let meant = of_this_machine(of_shape.iter().filter(is_meant).copied().collect());
        let targets = |among: &[&Series]| -> BTreeSet<String> {
            among.iter().map(|series| series.target.to_string()).collect()
        };
        let Some(series) = meant.first() else {
            return Err(self.none("no such record", targets(&of_shape)));
        };
        if targets(&meant).len() > 1 {
            let hint = "choose with --threads or --trial, or keep the records of other machines elsewhere";
            return Err(self.several("machines", hint, targets(&meant)));
        }
        // Of several definitions, the one that was measured last.
        let newest = |series: &&&Series| series.last_time;
        let series = meant.iter().max_by_key(newest).map_or(*series, |newest| *newest);
        let record = match self.trial {
            None => series.winner.clone(),
            Some(trial) => database
                .records_of(series.program)
                .filter(|record| record.shape == series.shape && record.target == series.target)
                .filter(|record| record.provenance.trial == trial)
                .last()
                .cloned(),
        };
        let record = record.ok_or_else(|| {
            Failure(format!("no trial of {} has succeeded; name one with --trial", series.title()))
        })?;
        let program = database.program(record.program).cloned();
        Ok(Found { record, program, series: (*series).clone() })
    }

    fn none(&self, what: &str, known: BTreeSet<impl AsRef<str>>) -> Failure {
        let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
        let known = match known.is_empty() {
            true => "there are no records".to_owned(),
            false => format!("there are: {}", known.join(" | ")),
        };
        Failure(format!("{what} in `{}`; {known}", self.path.display()))
    }

    fn several(&self, what: &str, hint: &str, known: BTreeSet<String>) -> Failure {
        let mut text =
            format!("`{}` has records of `{}` for several {what}; ", self.path.display(), self.kernel);
        text += hint;
        known.iter().for_each(|known| text += &format!("\n  {known}"));
        Failure(text)
    }
}
