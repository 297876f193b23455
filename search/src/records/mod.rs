//! Tuning records: schedules that were tried, the machine, and their times.
//!
//! A [`Record`] is one trial. Records live in text files, one JSON object a line, that only ever grow at
//! their end, so that they can be committed, compared, merged and read after a crash. A [`Database`] is such
//! records in memory together with the location that new ones are written to.
//!
//! Two further kinds of line stand beside them for people and their tools, and may be missing: a [`StoredProgram`] is the program
//! on which the records' traces replay, a [`Run`] the result of a tuning run.
//!
//! Nothing in a file is trusted. A line that is corrupt, cut off, of another version or otherwise not a record
//! becomes a [`Problem`] that names file and line, and is skipped; a record holds a [trace], and a trace
//! can do nothing but replay checked primitives. This module decides nothing about schedules: it stores and
//! finds them.
//!
//! [trace]: tilewright_core::schedule::Trace

mod cache_state;
mod error;
mod file;
mod line;
mod lookup;
mod merge;
mod order;
mod program;
mod prune;
mod record;
mod record_line;
mod run;
mod shape;
mod tuned_for;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use tilewright_core::program::Program;

pub use cache_state::{CacheState, UnknownCacheState};
pub use error::{DatabaseError, Problem};
pub use line::FORMAT_VERSION;
pub use lookup::PassedOver;
pub use merge::Merged;
pub use order::{Ranked, Standing, best_of, ranked};
pub use program::StoredProgram;
pub use record::{Measurement, Outcome, Provenance, Record};
pub use run::Run;
pub use shape::Shape;
pub use tuned_for::{TunedFor, TunedForError};

use file::Line;
use line::{Item, parse_line};

/// The extension of files of records.
const EXTENSION: &str = "jsonl";

/// The longest time before records are forced to the disk: a
/// power cut loses at most this much measuring, and the disk does not slow down the tuner.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// Records in memory, and the location of new ones.
#[derive(Clone, Debug, Default)]
pub struct Database {
    place: Option<Location>,
    entries: Vec<Entry>,
    by_program: FxHashMap<u64, Vec<usize>>,
    programs: Vec<ProgramEntry>,
    runs: Vec<Run>,
    later: Vec<LaterLine>,
    problems: Vec<Problem>,
    last_sync: Option<Instant>,
    unsynced: Vec<PathBuf>,
}

/// The location of records.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Location {
    /// One file for each kernel, `<kernel>.jsonl`.
    Directory(PathBuf),
    /// One file for all.
    File(PathBuf),
}

/// A record and its source.
#[derive(Clone, Debug)]
struct Entry {
    record: Record,
    /// File and line, for a record that was read.
    origin: Option<(PathBuf, usize)>,
}

/// A program and the file that it stands in, `None` for one that stands in none.
#[derive(Clone, Debug)]
struct ProgramEntry {
    stored: StoredProgram,
    file: Option<PathBuf>,
}

/// A line that a later version of Tilewright has written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LaterLine {
    kernel: String,
    text: String,
}

impl Database {
    /// An empty database that writes nothing to disk.
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// Reads the records at `path`: a file whose name ends in `.jsonl`, or a directory of such files, one for
    /// each kernel. A path that does not exist is empty, and is created when the first record is written. Lines that
    /// are no records are in [`Database::problems`].
    ///
    /// # Errors
    /// When a directory cannot be listed. A file that cannot be read is a problem, not an error.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DatabaseError> {
        let path = path.as_ref();
        let is_file = path.extension().is_some_and(|extension| extension == EXTENSION) && !path.is_dir();
        let place =
            if is_file { Location::File(path.to_owned()) } else { Location::Directory(path.to_owned()) };
        let mut database = Self::in_memory();
        database.place = Some(place);
        for file in database.files()? {
            database.read_file(&file);
        }
        Ok(database)
    }

    /// Adds records from a text, for example one embedded in the program. `source` names it in problems. Nothing is
    /// written.
    pub fn add_text(&mut self, source: &str, text: &[u8]) {
        self.read_lines(Path::new(source), text);
    }

    /// Adds a record to memory alone.
    pub fn add(&mut self, record: Record) {
        self.insert(record, None);
    }

    /// Adds the records, problems and further lines of another database to memory alone.
    pub fn add_all(&mut self, mut other: Database) {
        self.problems.append(&mut other.problems);
        self.programs.append(&mut other.programs);
        self.runs.append(&mut other.runs);
        self.later.append(&mut other.later);
        for entry in std::mem::take(&mut other.entries) {
            self.insert(entry.record, entry.origin);
        }
    }

    /// The lines that were skipped, in the order of reading.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// A problem for each record of a kernel that is not `known` by its name and its program's hash: the
    /// kernel was renamed or removed, or its definition has changed since the record was written. Such records are
    /// kept and never found.
    pub fn unknown_kernels(&self, known: impl Fn(&str, u64) -> bool) -> Vec<Problem> {
        let stale = self.entries.iter().filter(|entry| !known(&entry.record.kernel, entry.record.program));
        stale
            .filter_map(|entry| {
                let (file, line) = entry.origin.clone()?;
                let message = format!(
                    "no kernel `{}` with the definition {:016x} exists; it was renamed, removed or changed, so tune it again",
                    entry.record.kernel, entry.record.program
                );
                Some(Problem { file, line, message })
            })
            .collect()
    }

    /// Every record, in the order of reading and adding.
    pub fn records(&self) -> impl ExactSizeIterator<Item = &Record> {
        self.entries.iter().map(|entry| &entry.record)
    }

    /// The records of one program, in the order of reading and adding.
    pub fn records_of(&self, program: u64) -> impl Iterator<Item = &Record> {
        let positions = self.by_program.get(&program).map_or(&[][..], Vec::as_slice);
        positions.iter().map(|&position| &self.entries[position].record)
    }

    /// The program with a hash, if a line holds it.
    pub fn program(&self, hash: u64) -> Option<&Program> {
        self.programs.iter().find(|entry| entry.stored.hash == hash).map(|entry| &entry.stored.program)
    }

    /// Every tuning run, in the order of reading and adding.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Adds a record: to its file first, on a line of its own whatever the file ended with, then to memory.
    ///
    /// Several processes may append to one file. Records reach the disk within about a second; see
    /// [`Database::sync`].
    ///
    /// # Errors
    /// When the record cannot be written, for example because the disk is full. The records that were there before
    /// are intact, on disk and in memory.
    pub fn append(&mut self, record: Record) -> Result<(), DatabaseError> {
        self.write(&record.kernel, || record_line::print(&record))?;
        self.insert(record, None);
        Ok(())
    }

    /// Adds the unscheduled program of a kernel, with symbolic dimensions, unless the kernel's file has it.
    ///
    /// # Errors
    /// As [`Database::append`].
    pub fn append_program(&mut self, kernel: &str, program: &Program) -> Result<(), DatabaseError> {
        let file = self.path_of(kernel)?;
        let stored = StoredProgram::new(kernel, program);
        if self.programs.iter().any(|known| known.stored.hash == stored.hash && known.file == file) {
            return Ok(());
        }
        self.write(kernel, || program::print(&stored))?;
        self.programs.push(ProgramEntry { stored, file });
        Ok(())
    }

    /// Adds the result of a tuning run.
    ///
    /// # Errors
    /// As [`Database::append`].
    pub fn append_run(&mut self, run: Run) -> Result<(), DatabaseError> {
        self.write(&run.kernel, || run::print(&run))?;
        self.runs.push(run);
        Ok(())
    }

    /// Appends a line about a kernel to its file, if there is one.
    fn write(&mut self, kernel: &str, line: impl FnOnce() -> String) -> Result<(), DatabaseError> {
        let Some(path) = self.path_of(kernel)? else { return Ok(()) };
        file::append(&path, &line())?;
        self.written(path)
    }

    /// Notes that a file was written to, and forces recent writes to the disk when it is time.
    fn written(&mut self, path: PathBuf) -> Result<(), DatabaseError> {
        if !self.unsynced.contains(&path) {
            self.unsynced.push(path);
        }
        let due = self.last_sync.is_none_or(|last| last.elapsed() >= SYNC_INTERVAL);
        if due { self.sync() } else { Ok(()) }
    }

    /// Forces every record to the disk.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn sync(&mut self) -> Result<(), DatabaseError> {
        self.last_sync = Some(Instant::now());
        while let Some(path) = self.unsynced.last() {
            file::sync(path)?;
            self.unsynced.pop();
        }
        Ok(())
    }

    /// The files that there are, in the order of their names.
    fn files(&self) -> Result<Vec<PathBuf>, DatabaseError> {
        let directory = match &self.place {
            None => return Ok(Vec::new()),
            Some(Location::File(path)) => return Ok(if path.exists() { vec![path.clone()] } else { vec![] }),
            Some(Location::Directory(directory)) => directory,
        };
        let failed = |source| DatabaseError::io("list", directory, source);
        let listing = match fs::read_dir(directory) {
            Ok(listing) => listing,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut files = Vec::new();
        for entry in listing {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == EXTENSION) {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }

    /// The file of a kernel's records.
    fn path_of(&self, kernel: &str) -> Result<Option<PathBuf>, DatabaseError> {
        if !record::is_kernel_name(kernel) {
            return Err(DatabaseError::KernelName(kernel.to_owned()));
        }
        Ok(self.place.as_ref().map(|place| match place {
            Location::File(path) => path.clone(),
            Location::Directory(directory) => directory.join(kernel).with_extension(EXTENSION),
        }))
    }

    fn read_file(&mut self, path: &Path) {
        match file::open_for_reading(path) {
            Ok(reader) => self.read_lines(path, reader),
            Err(error) => {
                let message = format!("the file cannot be read: {error}");
                self.problems.push(Problem { file: path.to_owned(), line: 0, message });
            }
        }
    }

    fn read_lines(&mut self, path: &Path, reader: impl std::io::BufRead) {
        let outcome = file::for_each_line(reader, &mut |number, line| match parse_line(&line) {
            Ok(None) => {}
            Ok(Some(Item::Record(record))) => self.insert(record, Some((path.to_owned(), number))),
            Ok(Some(Item::Program(stored))) => {
                self.programs.push(ProgramEntry { stored, file: Some(path.to_owned()) });
            }
            Ok(Some(Item::Run(run))) => self.runs.push(run),
            Err(skipped) => {
                if let (Some(kernel), Line::Whole(bytes) | Line::Unfinished(bytes)) = (skipped.later, line) {
                    self.later.push(LaterLine { kernel, text: String::from_utf8_lossy(bytes).into_owned() });
                }
                let message = skipped.message;
                self.problems.push(Problem { file: path.to_owned(), line: number, message });
            }
        });
        if let Err((number, error)) = outcome {
            let message = format!("reading stopped here: {error}");
            self.problems.push(Problem { file: path.to_owned(), line: number, message });
        }
    }

    fn insert(&mut self, record: Record, origin: Option<(PathBuf, usize)>) {
        self.by_program.entry(record.program).or_default().push(self.entries.len());
        self.entries.push(Entry { record, origin });
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Err(error) = self.sync() {
            tracing::warn!(%error, "tuning records may not have reached the disk");
        }
    }
}
