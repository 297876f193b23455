//! Choices in files.

use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Once, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs, io, process};

use rustc_hash::FxHasher;
use tilewright_core::program::Program;
use tilewright_core::schedule::Trace;
use tilewright_core::target::RunContext;

use super::repeated;

/// The line between the key of an entry and its steps.
const SEPARATOR: &str = "\n=== trace ===\n";

/// The end of the names of entries.
const EXTENSION: &str = "choice";

/// The most entries that are kept. A process that finds more removes the oldest half before it adds one.
const MOST_ENTRIES: usize = 8192;

/// All that a choice depends on.
pub(super) fn key(program: &Program, context: &RunContext) -> String {
    let (version, executable) = (env!("CARGO_PKG_VERSION"), executable());
    format!("{version} {executable}\nthreads {}\n{:?}\n{program}", context.threads(), context.target)
}

/// The place of a choice.
pub(super) struct Entry<'a> {
    pub(super) path: PathBuf,
    key: &'a str,
}

impl<'a> Entry<'a> {
    /// The entry of a folder for a [`key`].
    pub(super) fn of(folder: &Path, key: &'a str) -> Self {
        let mut hasher = FxHasher::default();
        hasher.write(key.as_bytes());
        Entry { path: folder.join(format!("{:016x}.{EXTENSION}", hasher.finish())), key }
    }

    /// The steps that are kept, which can be repeated. `None` when there are none for this key.
    ///
    /// # Errors
    /// Why an entry of this key is of no use.
    pub(super) fn recall(&self, program: &Program, context: &RunContext) -> Result<Option<Trace>, String> {
        let text = match fs::read(&self.path) {
            Ok(bytes) => String::from_utf8(bytes).map_err(|error| error.to_string())?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let (key, trace) = text.split_once(SEPARATOR).ok_or("it has no trace")?;
        if key != self.key {
            return Ok(None);
        }
        let trace: Trace = trace.parse().map_err(|error| format!("{error}"))?;
        repeated(&trace, program, context)?;
        Ok(Some(trace))
    }

    /// Writes a choice. Readers see the whole entry or none.
    pub(super) fn keep(&self, folder: &Path, trace: &Trace) -> io::Result<()> {
        static FIRST: Once = Once::new();
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        fs::create_dir_all(folder)?;
        FIRST.call_once(|| remove_oldest(folder));
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let draft = self.path.with_extension(format!("{}-{number}.draft", process::id()));
        let written = fs::write(&draft, format!("{}{SEPARATOR}{trace}", self.key))
            .and_then(|()| fs::rename(&draft, &self.path));
        if written.is_err() {
            drop(fs::remove_file(&draft));
        }
        written
    }
}

/// The executable as far as it matters: a program that is built anew may choose otherwise.
fn executable() -> &'static str {
    static EXECUTABLE: OnceLock<String> = OnceLock::new();
    EXECUTABLE.get_or_init(|| {
        let described = env::current_exe().and_then(fs::metadata).and_then(|file| {
            let since = file.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            Ok(format!("{} {}", file.len(), since.as_nanos()))
        });
        described.unwrap_or_default()
    })
}

/// Makes room in a folder of too many entries. Files that are no entries stay.
fn remove_oldest(folder: &Path) {
    let Ok(files) = fs::read_dir(folder) else { return };
    let mut entries: Vec<(SystemTime, PathBuf)> = files
        .flatten()
        .filter(|file| file.path().extension().is_some_and(|extension| extension == EXTENSION))
        .filter_map(|file| Some((file.metadata().ok()?.modified().ok()?, file.path())))
        .collect();
    if entries.len() <= MOST_ENTRIES {
        return;
    }
    entries.sort_unstable();
    entries.truncate(entries.len() - MOST_ENTRIES / 2);
    // Another process may have removed some.
    entries.into_iter().for_each(|(_, path)| drop(fs::remove_file(path)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_core::target::Target;
    use tilewright_search::schedule_by_default;

    const PRODUCT: &str = "kernel product(in a: f32[64, 64], in b: f32[64, 64], out c: f32[64, 64]) {
  for i in 0..64 {
    for j in 0..64 {
      for k in 0..64 {
        block c(vi: spatial 64 = i, vj: spatial 64 = j, vk: reduce 64 = k) {
          init { c[vi, vj] = 0.0f32 }
          c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
        }
      }
    }
  }
}
";

    fn product() -> (String, Program, RunContext) {
        let program: Program = PRODUCT.parse().unwrap_or_else(|error| panic!("{error}"));
        let context = RunContext::from(Target::generic_cpu());
        (key(&program, &context), program, context)
    }

    fn in_folder(name: &str, test: impl FnOnce(&Path)) {
        let folder = env::temp_dir().join(format!("tilewright-choices-{name}-{}", process::id()));
        test(&folder);
        drop(fs::remove_dir_all(folder));
    }

    #[test]
    fn a_choice_is_repeated() {
        in_folder("repeated", |folder| {
            let (key, program, context) = product();
            let entry = Entry::of(folder, &key);
            assert!(entry.recall(&program, &context).unwrap().is_none(), "the folder is new");
            let chosen = schedule_by_default(&program, &context);
            entry.keep(folder, chosen.trace()).unwrap();
            let recalled = entry.recall(&program, &context).unwrap().expect("it is kept");
            assert_eq!(&recalled, chosen.trace());
            let fewer = self::key(&program, &context.with_threads(1));
            assert_ne!(Entry::of(folder, &fewer).path, entry.path, "threads are part of the key");
        });
    }

    #[test]
    fn entries_that_do_not_fit_are_not_used() {
        in_folder("misfits", |folder| {
            let (key, program, context) = product();
            let entry = Entry::of(folder, &key);
            entry.keep(folder, schedule_by_default(&program, &context).trace()).unwrap();
            let whole = fs::read_to_string(&entry.path).unwrap();
            let other = whole.replacen("threads", "fibres", 1);
            fs::write(&entry.path, other).unwrap();
            assert!(entry.recall(&program, &context).unwrap().is_none(), "the key is another one");
            for broken in ["", &whole[..whole.len() / 2], &whole.replace("split", "spilt")] {
                fs::write(&entry.path, broken).unwrap();
                let refused = entry.recall(&program, &context).map(|found| found.is_some());
                assert!(refused.is_err(), "{refused:?} for {broken}");
            }
            fs::write(&entry.path, [0xff, 0xfe]).unwrap();
            assert!(entry.recall(&program, &context).is_err());
        });
    }
}
