//! Problems and errors of files of records.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A line of a file that was skipped, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The file, or the name given to an embedded text.
    pub file: PathBuf,
    /// The line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// The reason.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// The reason why records could not be written or listed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// The disk is full. Records that were written before are intact.
    #[error("the disk is full: `{}` cannot take another tuning record; earlier records are intact, free some space and run again", .path.display())]
    DiskFull {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file system refused.
    #[error("cannot {action} `{}`: {source}", .path.display())]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A kernel's name cannot be the name of a file.
    #[error("`{0}` is no kernel name: expected letters, digits and underscores")]
    KernelName(String),
}

impl DatabaseError {
    pub(super) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                DatabaseError::DiskFull { path, source }
            }
            _ => DatabaseError::Io { action, path, source },
        }
    }
}
