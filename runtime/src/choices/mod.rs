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
//! | key | the text of the program with representative constants (`constants`), the target, the threads, the version of this crate, and size and time of the executable |
//!
//! Within a process, equal keys share a choice too, also while it is being made.

mod constants;
mod entry;

use std::env;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError, RwLock};

use rustc_hash::FxHashMap;
use tilewright_core::program::Program;
use tilewright_core::schedule::{Schedule, Trace};
use tilewright_core::target::RunContext;
use tilewright_search::spec::DeviceFunctions;
use tilewright_search::{schedule_by_default, schedule_near};

use crate::error::Error;
use crate::settings::variable;

use constants::with_representatives;
use entry::Entry;

const FOLDER_VARIABLE: &str = "TILEWRIGHT_CACHE";

/// The value of the variable, or of [`set_folder`], that keeps nothing.
const OFF: &str = "off";

/// The most choices that a process shares. Kernels keep what they have chosen.
const MOST_SHARED: usize = 1024;

/// The choices of this process by their keys.
static SHARED: LazyLock<Mutex<FxHashMap<String, Choice>>> = LazyLock::new(Mutex::default);

/// A choice that one thread makes, and others wait for.
type Choice = Arc<OnceLock<Trace>>;

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

/// The default schedule of a program: the one that is kept, or one that is chosen now and kept. Programs that differ in some
/// constants alone share it.
pub(crate) fn default_schedule(program: &Program, context: &RunContext) -> Schedule {
    let choose = |program: &Program| schedule_by_default(program, context);
    match repeated(&choice(program, context, &choose), program, context) {
        Ok(schedule) => schedule,
        Err(reason) => {
            tracing::debug!(kernel = &*program.name, reason, "a choice for other constants is not used");
            schedule_by_default(program, context)
        }
    }
}

/// Chooses the default schedule of a program now, near that of a program with other sizes, unless it is known.
pub(crate) fn choose_near(program: &Program, context: &RunContext, trace: &Trace) {
    choice(program, context, &|program| schedule_near(program, context, trace));
}

/// The choice for a program: the one that is known, or one that is made now for the program with representatives for its constants.
fn choice(program: &Program, context: &RunContext, choose: &dyn Fn(&Program) -> Schedule) -> Trace {
    let representative = with_representatives(program);
    let key = entry::key(&representative, context);
    let choice = shared(&key);
    choice.get_or_init(|| recalled_or_chosen(&representative, &key, context, choose)).clone()
}

/// The place of a choice in this process.
fn shared(key: &str) -> Choice {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if shared.len() >= MOST_SHARED {
        shared.clear();
    }
    Arc::clone(shared.entry(key.to_owned()).or_default())
}

/// The choice in the user's folder, or one that is made now and kept there.
fn recalled_or_chosen(
    program: &Program,
    key: &str,
    context: &RunContext,
    choose: &dyn Fn(&Program) -> Schedule,
) -> Trace {
    let choose = || choose(program).trace().clone();
    let Ok(Some(folder)) = folder() else { return choose() };
    let entry = Entry::of(&folder, key);
    match entry.recall(program, context) {
        Ok(Some(trace)) => return trace,
        Ok(None) => {}
        Err(reason) => {
            tracing::warn!(entry = %entry.path.display(), reason, "a kept default schedule is not used");
        }
    }
    let trace = choose();
    if let Err(error) = entry.keep(&folder, &trace) {
        tracing::debug!(entry = %entry.path.display(), %error, "a default schedule is not kept");
    }
    trace
}

/// The schedule that a trace makes of a program, within the limits of the machine.
///
/// # Errors
/// Why there is none.
fn repeated(trace: &Trace, program: &Program, context: &RunContext) -> Result<Schedule, String> {
    let schedule = trace.replay_exactly(program, context, 0).map_err(|error| error.to_string())?;
    let device = DeviceFunctions::built_in(context.target.kind());
    (device.verify_limits)(schedule.program(), schedule.context()).map_err(|reason| reason.to_string())?;
    Ok(schedule)
}
