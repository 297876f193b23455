//! Reads and appends lines of files to which other processes may append at the same time.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::SystemTime;

use super::DatabaseError;

/// The longest line that is read. A record of a large schedule has some ten thousand bytes.
const MAX_LINE_BYTES: usize = 4 << 20;

/// One line of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// A line with its end.
    Whole(&'a [u8]),
    /// The last line of a file that does not end in a newline.
    Unfinished(&'a [u8]),
    /// A line of more bytes than are read.
    TooLong {
        /// The most bytes of a line.
        limit: usize,
    },
}

/// Opens a file of records, and waits until no process is writing a line.
pub(super) fn open_for_reading(path: &Path) -> io::Result<BufReader<File>> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no ordinary file"));
    }
    // Without locks a half-written line may be read; it is then skipped as cut off, which is harmless.
    drop(file.lock_shared());
    Ok(BufReader::new(file))
}

/// Calls `each` with the number, from 1, and the content of every line. Memory stays bounded whatever the
/// file holds.
///
/// # Errors
/// The line at which reading failed, and the system's error.
pub(super) fn for_each_line(
    reader: impl BufRead,
    each: &mut dyn FnMut(usize, Line<'_>),
) -> Result<(), (usize, io::Error)> {
    lines_up_to(MAX_LINE_BYTES, reader, each)
}

fn lines_up_to(
    limit: usize,
    mut reader: impl BufRead,
    each: &mut dyn FnMut(usize, Line<'_>),
) -> Result<(), (usize, io::Error)> {
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let mut too_long = false;
        let finished = loop {
            let available = match reader.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err((number, error)),
            };
            if available.is_empty() {
                break false;
            }
            let end = available.iter().position(|&byte| byte == b'\n');
            let part = &available[..end.unwrap_or(available.len())];
            too_long |= line.len() + part.len() > limit;
            if !too_long {
                line.extend_from_slice(part);
            }
            let consumed = part.len() + usize::from(end.is_some());
            reader.consume(consumed);
            if end.is_some() {
                break true;
            }
        };
        match (too_long, finished) {
            (true, _) => each(number, Line::TooLong { limit }),
            (false, true) => each(number, Line::Whole(&line)),
            (false, false) if line.is_empty() => {}
            (false, false) => each(number, Line::Unfinished(&line)),
        }
        if !finished {
            break;
        }
    }
    Ok(())
}

/// Appends a line, or several with newlines between them, to a file, which is made if it does not exist, as are its directories.
pub(super) fn append(path: &Path, line: &str) -> Result<(), DatabaseError> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        fs::create_dir_all(directory).map_err(|error| DatabaseError::io("create", directory, error))?;
    }
    let is_new = !path.exists();
    let mut file = open_locked(path).map_err(|error| DatabaseError::io("open", path, error))?;
    append_line(&mut file, line).map_err(|error| DatabaseError::io("append to", path, error))?;
    if is_new {
        touch_neighbours(path);
    }
    Ok(())
}

/// Marks the neighbours of a new file as modified: a program that embeds a directory's files is compiled again
/// when one of them is newer, but nothing tells its compiler of files that were not there.
fn touch_neighbours(path: &Path) {
    let Some(listing) = path.parent().and_then(|directory| fs::read_dir(directory).ok()) else { return };
    for neighbour in listing.flatten().map(|entry| entry.path()).filter(|neighbour| neighbour != path) {
        let is_embedded = neighbour.extension().is_some_and(|extension| extension == super::EXTENSION)
            || neighbour.file_name().is_some_and(|name| name == ".gitkeep");
        if is_embedded && let Ok(file) = OpenOptions::new().append(true).open(&neighbour) {
            // At worst a program is compiled once more, or not until something else changes.
            drop(file.set_modified(SystemTime::now()));
        }
    }
}

/// Forces a file's content to the disk. A file that is gone has nothing to force.
pub(super) fn sync(path: &Path) -> Result<(), DatabaseError> {
    match OpenOptions::new().append(true).open(path) {
        Ok(file) => file.sync_data().map_err(|error| DatabaseError::io("write to", path, error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(DatabaseError::io("open", path, error)),
    }
}

/// A file open for appending, and whether it is locked against other processes.
#[derive(Debug)]
pub(super) struct LockedFile {
    pub(super) file: File,
    locked: bool,
}

/// Opens a file for reading and appending and waits for its lock. Where the system has no locks the file is
/// used without: a line is written by one call, which appending files keep together in practice.
pub(super) fn open_locked(path: &Path) -> io::Result<LockedFile> {
    loop {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no ordinary file"));
        }
        let locked = file.lock().is_ok();
        // While this process waited, pruning may have replaced the file; the open one then has no name any more.
        if is_still_at(&file, path) {
            return Ok(LockedFile { file, locked });
        }
    }
}

/// Whether the path leads to this very file.
#[cfg(unix)]
fn is_still_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(own), Ok(there)) => (own.dev(), own.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// Whether the path leads to this very file: elsewhere a file that is open cannot be replaced.
#[cfg(not(unix))]
fn is_still_at(_: &File, _: &Path) -> bool {
    true
}

/// The operations of a file that appending needs; a trait so that a full disk can be tested.
trait Log: Write {
    /// The length of the file.
    fn length(&mut self) -> io::Result<u64>;

    /// The last byte; the file is not empty.
    fn last_byte(&mut self) -> io::Result<u8>;

    /// Truncates the file to the end of its last whole line after a failed write, if that is safe.
    fn cut_back(&mut self, length: u64);
}

impl Write for LockedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Log for LockedFile {
    fn length(&mut self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn last_byte(&mut self) -> io::Result<u8> {
        self.file.seek(SeekFrom::End(-1))?;
        let mut byte = [0];
        self.file.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    fn cut_back(&mut self, length: u64) {
        // Without the lock another process may have written after us. If cutting fails the torn line stays, and
        // readers skip it.
        if self.locked {
            drop(self.file.set_len(length));
        }
    }
}

/// Writes a line on a line of its own: when a crash or a full disk left the last line unfinished, a newline ends that line first.
fn append_line(log: &mut impl Log, line: &str) -> io::Result<()> {
    let length = log.length()?;
    let torn = length > 0 && log.last_byte()? != b'\n';
    let text = format!("{}{line}\n", if torn { "\n" } else { "" });
    let written = log.write_all(text.as_bytes()).and_then(|()| log.flush());
    if written.is_err() {
        log.cut_back(length);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(limit: usize, text: &[u8], buffer: usize) -> Vec<String> {
        let mut seen = Vec::new();
        let reader = BufReader::with_capacity(buffer, text);
        lines_up_to(limit, reader, &mut |number, line| {
            seen.push(match line {
                Line::Whole(bytes) => format!("{number}:{}", String::from_utf8_lossy(bytes)),
                Line::Unfinished(bytes) => format!("{number}?{}", String::from_utf8_lossy(bytes)),
                Line::TooLong { .. } => format!("{number}!"),
            });
        })
        .unwrap();
        seen
    }

    #[test]
    fn lines_are_cut_at_newlines_and_limited() {
        for buffer in [1, 2, 3, 100] {
            assert_eq!(lines(4, b"ab\n\nabcd\nabcde\nx", buffer), ["1:ab", "2:", "3:abcd", "4!", "5?x"]);
            assert_eq!(lines(4, b"", buffer), Vec::<String>::new());
            assert_eq!(lines(4, b"ab\n", buffer), ["1:ab"]);
            assert_eq!(lines(4, b"abcdefgh", buffer), ["1!"]);
        }
    }

    /// A disk with room for a number of bytes.
    struct SmallDisk {
        content: Vec<u8>,
        room: usize,
        can_cut: bool,
    }

    impl Write for SmallDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.room - self.content.len());
            if count == 0 {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            self.content.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Log for SmallDisk {
        fn length(&mut self) -> io::Result<u64> {
            Ok(self.content.len() as u64)
        }

        fn last_byte(&mut self) -> io::Result<u8> {
            Ok(self.content[self.content.len() - 1])
        }

        fn cut_back(&mut self, length: u64) {
            if self.can_cut {
                self.content.truncate(length as usize);
            }
        }
    }

    #[test]
    fn a_full_disk_is_an_error_and_keeps_earlier_lines() {
        let mut disk = SmallDisk { content: Vec::new(), room: 8, can_cut: true };
        append_line(&mut disk, "first").unwrap();
        let error = append_line(&mut disk, "second").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(disk.content, b"first\n", "what was half written is gone");
        let error = DatabaseError::io("append to", Path::new("k.jsonl"), error);
        assert!(error.to_string().starts_with("the disk is full: `k.jsonl`"), "{error}");
    }

    #[test]
    fn a_torn_line_is_ended_before_the_next() {
        let mut disk = SmallDisk { content: Vec::new(), room: 8, can_cut: false };
        append_line(&mut disk, "first").unwrap();
        append_line(&mut disk, "second").unwrap_err();
        disk.room = 100;
        append_line(&mut disk, "third").unwrap();
        assert_eq!(disk.content, b"first\nse\nthird\n");
    }
}
