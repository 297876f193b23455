//! Default schedules that are kept between processes.
//!
//! Choosing a default schedule takes tens of milliseconds, and the same program on the same machine always gets the same one. So the
//! choice is kept in a folder of the user, and the next process repeats its steps instead of choosing. Nothing depends on the
//! folder: an entry that is missing, was made for something else or does not replay is chosen anew.
//!
//! | | |
//! |---|---|
//! | folder | `TILEWRIGHT_CACHE`, or `tilewright` in the user's cache folder; `off` keeps nothing |
//! | entry | a file for each program, target and number of threads; its key is stored and compared, its name is a hash of it |
//! | key | the text of the program, the target, the threads, the version of this crate, and size and time of the executable |

use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Once, OnceLock, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs, io, process};

use rustc_hash::FxHasher;
use tilewright_core::program::Program;
use tilewright_core::schedule::{Schedule, Trace};
use tilewright_core::target::RunContext;
use tilewright_search::schedule_by_default;
use tilewright_search::spec::DeviceFunctions;

use crate::error::Error;
use crate::settings::variable;

const FOLDER_VARIABLE: &str = "TILEWRIGHT_CACHE";

/// The value of the variable, or of [`set_folder`], that keeps nothing.
const OFF: &str = "off";

/// The line between the key of an entry and its steps.
const SEPARATOR: &str = "\n=== trace ===\n";

/// The end of the names of entries.
const EXTENSION: &str = "choice";

/// The most entries that are kept. A process that finds more removes the oldest half before it adds one.
const MOST_ENTRIES: usize = 8192;

/// The folder that the application has set; `Some(None)` when it keeps nothing.
static SET_FOLDER: RwLock<Option<Option<PathBuf>>> = RwLock::new(None);

/// Keeps default schedules in another folder from now on; `None` keeps nothing.
pub fn set_folder(folder: Option<PathBuf>) {
    *SET_FOLDER.write().unwrap_or_else(PoisonError::into_inner) = Some(folder);
}

/// The folder in which default schedules are kept; `None` when nothing is.
///
/// # Errors
/// [`Error::Environment`] when `TILEWRIGHT_CACHE` is not UTF-8.
pub fn folder() -> Result<Option<PathBuf>, Error> {
    if let Some(folder) = &*SET_FOLDER.read().unwrap_or_else(PoisonError::into_inner) {
        return Ok(folder.clone());
    }
    Ok(match variable(FOLDER_VARIABLE)?.as_deref().map(str::trim) {
        Some(OFF) => None,
        Some(folder) if !folder.is_empty() => Some(folder.into()),
        _ => user_folder().map(|folder| folder.join("tilewright")),
    })
}

/// The user's folder for files that can be made again.
fn user_folder() -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if cfg!(windows) {
        return absolute("LOCALAPPDATA");
    }
    let home = || absolute("HOME");
    if cfg!(target_os = "macos") {
        return Some(home()?.join("Library/Caches"));
    }
    absolute("XDG_CACHE_HOME").or_else(|| Some(home()?.join(".cache")))
}

/// The default schedule of a program: the one that is kept, or one that is chosen now and kept.
pub(crate) fn default_schedule(program: &Program, context: &RunContext) -> Schedule {
    let folder = match folder() {
        Ok(Some(folder)) => folder,
        _ => return schedule_by_default(program, context),
    };
    let entry = Entry::of(&folder, program, context);
    match entry.recall(program, context) {
        Ok(Some(schedule)) => return schedule,
        Ok(None) => {}
        Err(reason) => {
            tracing::warn!(entry = %entry.path.display(), reason, "a kept default schedule is not used");
        }
    }
    let schedule = schedule_by_default(program, context);
    if let Err(error) = entry.keep(&folder, schedule.trace()) {
        tracing::debug!(entry = %entry.path.display(), %error, "a default schedule is not kept");
    }
    schedule
}

/// The place of a choice.
struct Entry {
    path: PathBuf,
    key: String,
}

impl Entry {
    fn of(folder: &Path, program: &Program, context: &RunContext) -> Self {
        let (version, executable) = (env!("CARGO_PKG_VERSION"), executable());
        let key =
            format!("{version} {executable}\nthreads {}\n{:?}\n{program}", context.threads(), context.target);
        let mut hasher = FxHasher::default();
        hasher.write(key.as_bytes());
        Entry { path: folder.join(format!("{:016x}.{EXTENSION}", hasher.finish())), key }
    }

    /// The schedule that is kept. `None` when there is none for this key.
    ///
    /// # Errors
    /// Why an entry of this key is of no use.
    fn recall(&self, program: &Program, context: &RunContext) -> Result<Option<Schedule>, String> {
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
        let schedule = trace.replay_exactly(program, context, 0).map_err(|error| error.to_string())?;
        let device = DeviceFunctions::built_in(context.target.kind());
        (device.verify_limits)(schedule.program(), schedule.context())
            .map_err(|reason| reason.to_string())?;
        Ok(Some(schedule))
    }

    /// Writes a choice. Readers see the whole entry or none.
    fn keep(&self, folder: &Path, trace: &Trace) -> io::Result<()> {
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

    fn entry(folder: &Path) -> (Entry, Program, RunContext) {
        let program: Program = PRODUCT.parse().unwrap_or_else(|error| panic!("{error}"));
        let context = RunContext::from(Target::generic_cpu());
        (Entry::of(folder, &program, &context), program, context)
    }

    fn in_folder(name: &str, test: impl FnOnce(&Path)) {
        let folder = env::temp_dir().join(format!("tilewright-choices-{name}-{}", process::id()));
        test(&folder);
        drop(fs::remove_dir_all(folder));
    }

    #[test]
    fn a_choice_is_repeated() {
        in_folder("repeated", |folder| {
            let (entry, program, context) = entry(folder);
            assert!(entry.recall(&program, &context).unwrap().is_none(), "the folder is new");
            let chosen = schedule_by_default(&program, &context);
            entry.keep(folder, chosen.trace()).unwrap();
            let recalled = entry.recall(&program, &context).unwrap().expect("it is kept");
            assert_eq!(recalled.program().to_string(), chosen.program().to_string());
            let fewer = context.with_threads(1);
            assert_ne!(Entry::of(folder, &program, &fewer).path, entry.path, "threads are part of the key");
        });
    }

    #[test]
    fn entries_that_do_not_fit_are_not_used() {
        in_folder("misfits", |folder| {
            let (entry, program, context) = entry(folder);
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
