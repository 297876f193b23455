//! Merges the lines of several files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::file;
use super::{Database, DatabaseError, LaterLine, ProgramEntry, program, record_line, run};

/// The number of lines that merging has added, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Records.
    pub records: usize,
    /// Programs.
    pub programs: usize,
    /// Tuning runs.
    pub runs: usize,
    /// Lines that a later version of Tilewright has written.
    pub later: usize,
}

/// Lines for files, in the order of writing.
#[derive(Default)]
struct Pending(BTreeMap<PathBuf, Vec<String>>);

impl Pending {
    fn add(&mut self, file: Option<PathBuf>, line: impl FnOnce() -> String) {
        if let Some(file) = file {
            self.0.entry(file).or_default().push(line());
        }
    }
}

impl Database {
    /// Appends the records of another database that this one does not have, with the programs, the runs and the lines of
    /// later versions that stand beside them. Each file gets all of its new lines at once, or none.
    ///
    /// # Errors
    /// As [`Database::append`]; files before it in the order of names are done.
    pub fn merge(&mut self, other: &Database) -> Result<Merged, DatabaseError> {
        let mut merged = Merged::default();
        let mut pending = Pending::default();
        for ProgramEntry { stored, .. } in &other.programs {
            let file = self.path_of(&stored.kernel)?;
            let is_known =
                |own: &ProgramEntry| own.stored.hash == stored.hash && (own.file == file || file.is_none());
            if !self.programs.iter().any(is_known) {
                pending.add(file.clone(), || program::print(stored));
                self.programs.push(ProgramEntry { stored: stored.clone(), file });
                merged.programs += 1;
            }
        }
        for record in other.records() {
            if !self.records_of(record.program).any(|own| own == record) {
                pending.add(self.path_of(&record.kernel)?, || record_line::print(record));
                self.insert(record.clone(), None);
                merged.records += 1;
            }
        }
        for run in &other.runs {
            if !self.runs.contains(run) {
                pending.add(self.path_of(&run.kernel)?, || run::print(run));
                self.runs.push(run.clone());
                merged.runs += 1;
            }
        }
        for line in &other.later {
            if !self.later.contains(line) {
                pending.add(self.path_of(&line.kernel)?, || line.text.clone());
                self.later.push(LaterLine::clone(line));
                merged.later += 1;
            }
        }
        for (path, lines) in pending.0 {
            file::append(&path, &lines.join("\n"))?;
            self.written(path)?;
        }
        Ok(merged)
    }
}
