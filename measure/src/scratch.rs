//! A directory for results that a run computes once for all its measuring processes: the expected results.
//!
//! A run that is killed cannot remove its own. Each run holds a lock on a file beside its directory, which the system releases
//! when the process ends, however it ends; the next run removes the directories whose locks are free.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Begins the names of all such directories.
const PREFIX: &str = "tilewright-run-";

/// Ends the name of the file that is locked.
const LOCK: &str = "lock";

/// The number of names to try.
const ATTEMPTS: u32 = 100;

/// A directory that is removed when the run ends.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    lock: PathBuf,
    _held: File,
}

impl Scratch {
    /// Makes a directory for temporary files, and removes the directories of runs that were killed.
    pub fn new() -> io::Result<Self> {
        Self::within(&std::env::temp_dir())
    }

    fn within(parent: &Path) -> io::Result<Self> {
        remove_abandoned(parent);
        let mut last = None;
        for _ in 0..ATTEMPTS {
            match Self::named(parent, &name()) {
                Ok(made) => return Ok(made),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| io::ErrorKind::AlreadyExists.into()))
    }

    fn named(parent: &Path, name: &str) -> io::Result<Self> {
        let path = parent.join(name);
        let lock = path.with_extension(LOCK);
        let held = File::create_new(&lock)?;
        // Another run may have taken the file for an abandoned one just before it was locked.
        if held.try_lock().is_err() || !lock.exists() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        if let Err(error) = builder.create(&path) {
            drop(fs::remove_file(&lock));
            return Err(error);
        }
        Ok(Scratch { path, lock, _held: held })
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.path, &self.lock);
    }
}

/// A name that no other run of this machine is likely to use.
fn name() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let moment = now.map_or(0, |since| since.subsec_nanos());
    format!("{PREFIX}{}-{number}-{moment:x}", std::process::id())
}

/// Removes the directories of runs that ended without doing so. A directory that cannot be removed, such as another user's, stays.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let lock = entry.path();
        let is_lock = lock.extension().is_some_and(|extension| extension == LOCK)
            && entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.file_type().is_ok_and(|kind| kind.is_file());
        if !is_lock {
            continue;
        }
        let Ok(held) = File::open(&lock) else { continue };
        if held.try_lock().is_ok() {
            remove(&lock.with_extension(""), &lock);
        }
    }
}

/// Removes a directory and its lock, which the caller holds.
fn remove(path: &Path, lock: &Path) {
    let removed = match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::remove_file(lock),
    };
    if let Err(error) = removed {
        tracing::debug!(%error, path = %path.display(), "a temporary directory stays");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(parent: &Path) -> Vec<String> {
        let entries = fs::read_dir(parent).expect("a directory");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_run_leaves_nothing_and_takes_away_what_killed_ones_left() {
        let parent = tempfile::tempdir().expect("a directory");
        let parent = parent.path();
        fs::create_dir(parent.join("tilewright-run-1-0-a")).expect("a disk");
        fs::write(parent.join("tilewright-run-1-0-a/results"), "of a killed run").expect("a disk");
        fs::write(parent.join("tilewright-run-1-0-a.lock"), "").expect("a disk");
        // A run that was killed before it made its directory.
        fs::write(parent.join("tilewright-run-2-0-b.lock"), "").expect("a disk");
        // These files are not of this kind.
        fs::write(parent.join("other-run-3.lock"), "").expect("a disk");
        fs::create_dir(parent.join("tilewright-run-4.lock")).expect("a disk");
        let others = ["other-run-3.lock", "tilewright-run-4.lock"];

        let first = Scratch::within(parent).expect("a directory");
        fs::write(first.path().join("results"), "of this run").expect("a disk");
        let second = Scratch::within(parent).expect("a directory");
        assert!(first.path().join("results").exists() && second.path().is_dir());
        assert_ne!(first.path(), second.path());
        assert_eq!(names(parent).len(), 4 + others.len(), "{:?}", names(parent));
        drop((first, second));
        assert_eq!(names(parent), others);
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_sees_what_is_inside() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().expect("a directory");
        let scratch = Scratch::within(parent.path()).expect("a directory");
        let mode = fs::metadata(scratch.path()).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
