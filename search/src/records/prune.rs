//! Prunes files of records, so that they can be committed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Seek, SeekFrom, Write};
use std::path::Path;

use super::file::{self, Line};
use super::line::{Item, parse_line};
use super::order::ranked;
use super::{Database, DatabaseError, Record, Shape, TunedFor};

/// The group within which records compete: program, shape and machine.
type Group = (u64, Shape, TunedFor);

impl Database {
    /// Keeps only the `keep` best records for each program, shape and machine, in the [order of records](ranked), and drops those of trials that
    /// failed. Lines that are no records, such as those of runs, stay as they are. Says how many records were dropped.
    ///
    /// Each file is replaced as a whole or not at all. Records that another process has added in the meantime are
    /// taken into account and read.
    ///
    /// # Errors
    /// When a file cannot be read or replaced; files before it in the order of names are done.
    pub fn prune(&mut self, keep: usize) -> Result<usize, DatabaseError> {
        if self.place.is_none() {
            let before = self.entries.len();
            let kept = best(self.records().map(Some), keep);
            let entries = std::mem::take(&mut self.entries);
            self.by_program.clear();
            for (entry, _) in entries.into_iter().zip(kept).filter(|(_, kept)| *kept) {
                self.insert(entry.record, entry.origin);
            }
            return Ok(before - self.entries.len());
        }
        self.sync()?;
        let mut dropped = 0;
        for path in self.files()? {
            dropped += prune_file(&path, keep).map_err(|error| DatabaseError::io("prune", &path, error))?;
        }
        self.entries.clear();
        self.by_program.clear();
        self.programs.clear();
        self.runs.clear();
        self.later.clear();
        self.problems.clear();
        for path in self.files()? {
            self.read_file(&path);
        }
        Ok(dropped)
    }
}

/// For each record, whether it is among the best of its group; `None` stands for a line that stays.
fn best<'a>(records: impl Iterator<Item = Option<&'a Record>>, keep: usize) -> Vec<bool> {
    let records: Vec<Option<&Record>> = records.collect();
    let mut kept: Vec<bool> = records.iter().map(Option::is_none).collect();
    let mut groups: BTreeMap<Group, Vec<usize>> = BTreeMap::new();
    for (position, record) in records.iter().enumerate() {
        if let Some(record) = record {
            let group = (record.program, record.shape.clone(), record.target.clone());
            groups.entry(group).or_default().push(position);
        }
    }
    for members in groups.into_values() {
        let of_group: Vec<&Record> = members.iter().filter_map(|position| records[*position]).collect();
        for best in ranked(&of_group).into_iter().take(keep) {
            let place = of_group.iter().position(|record| std::ptr::eq(*record, best.record));
            kept[members[place.expect("it is one of them")]] = true;
        }
    }
    kept
}

fn prune_file(path: &Path, keep: usize) -> io::Result<usize> {
    let mut locked = file::open_locked(path)?;
    locked.file.seek(SeekFrom::Start(0))?;
    let mut lines: Vec<(Vec<u8>, Option<Record>)> = Vec::new();
    let mut too_long = None;
    file::for_each_line(BufReader::new(&locked.file), &mut |number, line| match line {
        Line::TooLong { limit } => too_long = Some((number, limit)),
        Line::Whole(bytes) | Line::Unfinished(bytes) => {
            let record = match parse_line(&line) {
                Ok(Some(Item::Record(record))) => Some(record),
                _ => None,
            };
            lines.push((bytes.to_vec(), record));
        }
    })
    .map_err(|(_, error)| error)?;
    if let Some((number, limit)) = too_long {
        let message = format!("line {number} is longer than {limit} bytes; remove it first");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let kept = best(lines.iter().map(|(_, record)| record.as_ref()), keep);
    let dropped = kept.iter().filter(|kept| !**kept).count();
    if dropped > 0 {
        let kept = lines.iter().zip(kept).filter(|(_, kept)| *kept).map(|((bytes, _), _)| &bytes[..]);
        replace(path, kept)?;
    }
    Ok(dropped)
}

/// Replaces a file by one with other lines: written beside it, forced to the disk, then renamed.
fn replace<'a>(path: &Path, lines: impl Iterator<Item = &'a [u8]>) -> io::Result<()> {
    let beside = path.with_extension(format!("jsonl.{}.new", std::process::id()));
    let written = (|| {
        let mut content = Vec::new();
        lines.for_each(|line| content.extend(line.iter().chain(b"\n")));
        let mut file = File::create(&beside)?;
        file.write_all(&content)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    })();
    if written.is_err() {
        drop(fs::remove_file(&beside));
    }
    written
}
