//! Settings of the whole process: threads, diagnostics, and how many shapes get code of their own.
//!
//! | environment variable | meaning |
//! |---|---|
//! | `TILEWRIGHT_THREADS` | how many threads a kernel uses; the machine's number when it is absent |
//! | `TILEWRIGHT_BACKGROUND` | `0` makes every version during calls; see [`crate::background`] |
//! | `TILEWRIGHT_DUMP` | stages to print to the standard error stream: `definition`, `bound`, `trace`, `scheduled`, a pass of lowering, `flat`, `assembly`, or `all`; several with commas |
//! | `TILEWRIGHT_VERIFY` | `1` checks programs after every pass, as debug builds always do |
//! | `TILEWRIGHT_RECORDS` | a directory or file of tuning records to use besides those that are shipped |
//! | `TILEWRIGHT_CACHE` | the folder for default schedules that are kept between processes, or `off`; see [`crate::choices`] |
//! | `TILEWRIGHT_CPU_FEATURES` | CPU features to leave unused, such as `-avx512f` |

use std::collections::BTreeSet;
use std::env;
use std::num::NonZeroUsize;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::available_parallelism;

use tilewright_core::lower;
use tilewright_core::tensor::spare;

use crate::error::Error;
use crate::{background, choices};

const THREADS_VARIABLE: &str = "TILEWRIGHT_THREADS";
const DUMP_VARIABLE: &str = "TILEWRIGHT_DUMP";
const VERIFY_VARIABLE: &str = "TILEWRIGHT_VERIFY";
/// The variable that names records to use; see [`crate::records`].
pub(crate) const RECORDS_VARIABLE: &str = "TILEWRIGHT_RECORDS";

/// Stages that can be printed besides the passes of lowering.
const STAGES: [&str; 6] = ["definition", "bound", "trace", "scheduled", "flat", "assembly"];

/// How many shapes of one kernel get code of their own unless [`set_specialized_shapes`] says otherwise.
const SPECIALIZED_SHAPES: usize = 32;

/// The share of the machine's memory for kept results of constant tensors.
const PACKED_SHARE: usize = 4;

/// The limit where the machine's memory is unknown.
const PACKED_BYTES: usize = 1 << 30;

/// 0 until it is decided.
static THREADS: AtomicUsize = AtomicUsize::new(0);
static SHAPES: AtomicUsize = AtomicUsize::new(SPECIALIZED_SHAPES);
/// 0 until it is first read or set.
static PACKED_LIMIT: AtomicUsize = AtomicUsize::new(0);
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Checks the environment variables above, so that a mistake is reported before anything is computed. `TILEWRIGHT_CPU_FEATURES` is checked when
/// the CPU is opened.
///
/// # Errors
/// [`Error::Environment`], which names the first one whose value has no meaning.
pub fn check() -> Result<(), Error> {
    threads()?;
    background::is_enabled()?;
    Dump::requested()?;
    verifies()?;
    variable(RECORDS_VARIABLE)?;
    choices::folder().map(drop)
}

/// How many threads kernels use.
///
/// # Errors
/// [`Error::Environment`] when `TILEWRIGHT_THREADS` is no number above zero.
#[inline]
pub fn threads() -> Result<usize, Error> {
    match THREADS.load(Ordering::Relaxed) {
        0 => decide_threads(),
        threads => Ok(threads),
    }
}

#[cold]
fn decide_threads() -> Result<usize, Error> {
    let threads = match variable(THREADS_VARIABLE)? {
        None => available_parallelism().map_or(1, NonZeroUsize::get),
        Some(value) => match value.trim().parse() {
            Ok(threads) if threads > 0 => threads,
            _ => {
                let problem = "expected a number of threads, 1 or more".to_owned();
                return Err(Error::Environment { variable: THREADS_VARIABLE, value, problem });
            }
        },
    };
    // Another thread may have decided, or the application may have set it.
    let decided = THREADS.compare_exchange(0, threads, Ordering::Relaxed, Ordering::Relaxed);
    Ok(decided.err().unwrap_or(threads))
}

/// Sets how many threads kernels use from the next call on; 0 goes back to `TILEWRIGHT_THREADS` or the machine's
/// number. Kernels are compiled again when they are next called, because a good schedule depends on it.
pub fn set_threads(threads: usize) {
    if THREADS.swap(threads, Ordering::Relaxed) != threads {
        start_generation();
    }
}

/// How many shapes of one kernel get code of their own before further shapes without a record share one version.
pub fn specialized_shapes() -> usize {
    SHAPES.load(Ordering::Relaxed)
}

/// Sets how many shapes of one kernel get code of their own (32 at first).
///
/// A kernel that meets more shapes than that gets versions with symbolic dimensions, each of which serves the further shapes
/// without a record that are rounded to the same powers of two, so that an application whose shapes vary does not compile for
/// ever. As many such versions are made as shapes get code of their own, and at least one.
pub fn set_specialized_shapes(shapes: usize) {
    SHAPES.store(shapes, Ordering::Relaxed);
}

/// The most memory for kept results of computations on `#[constant]` tensors, in bytes.
pub fn packed_limit() -> usize {
    match PACKED_LIMIT.load(Ordering::Relaxed) {
        0 => {
            let limit = memory_bytes().map_or(PACKED_BYTES, |memory| memory / PACKED_SHARE);
            let decided =
                PACKED_LIMIT.compare_exchange(0, limit.max(1), Ordering::Relaxed, Ordering::Relaxed);
            decided.err().unwrap_or(limit)
        }
        limit => limit,
    }
}

/// Sets the most memory for kept results of computations on `#[constant]` tensors, in bytes; a quarter of the
/// machine's memory at first.
///
/// Kept results are freed with their tensors. Beyond the limit, the least recently used results are freed, and
/// computed again on their next use: a limit below the size of an application's working set costs time in every call.
pub fn set_packed_limit(bytes: usize) {
    PACKED_LIMIT.store(bytes.max(1), Ordering::Relaxed);
}

/// Sets how many bytes of dropped results are kept for new ones, 256 MiB at first, and frees the kept ones
/// now. The system clears and maps new memory on one thread; 0 keeps none.
pub fn set_spare_limit(bytes: usize) {
    spare::set_limit(bytes);
}

/// The machine's memory, where the system tells.
fn memory_bytes() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
}

/// A number that changes when compiled kernels become out of date: with the number of threads and with the records.
#[inline]
pub(crate) fn generation() -> u64 {
    GENERATION.load(Ordering::Acquire)
}

/// Makes every compiled kernel out of date.
pub(crate) fn start_generation() {
    GENERATION.fetch_add(1, Ordering::AcqRel);
}

/// Which stages to print.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dump {
    all: bool,
    stages: BTreeSet<String>,
}

impl Dump {
    /// The content of `TILEWRIGHT_DUMP`; read once.
    pub(crate) fn requested() -> Result<&'static Dump, Error> {
        static DUMP: OnceLock<Result<Dump, Error>> = OnceLock::new();
        let dump = DUMP.get_or_init(|| Dump::parse(&variable(DUMP_VARIABLE)?.unwrap_or_default()));
        dump.as_ref().map_err(Clone::clone)
    }

    fn parse(value: &str) -> Result<Dump, Error> {
        let mut dump = Dump::default();
        for stage in value.split(',').map(str::trim).filter(|stage| !stage.is_empty()) {
            if stage == "all" {
                dump.all = true;
            } else if STAGES.contains(&stage) || lower::pass_names().any(|name| name == stage) {
                dump.stages.insert(stage.to_owned());
            } else {
                let known: Vec<&str> = STAGES.into_iter().chain(lower::pass_names()).collect();
                let problem =
                    format!("`{stage}` is no stage; expected `all` or some of {}", known.join(", "));
                return Err(Error::Environment { variable: DUMP_VARIABLE, value: value.to_owned(), problem });
            }
        }
        Ok(dump)
    }

    /// Prints a stage if it was requested; `content` is computed only then.
    pub(crate) fn print(&self, what: &str, stage: &str, content: impl FnOnce() -> String) {
        if self.all || self.stages.contains(stage) {
            eprintln!("// {what}: {stage}\n{}", content().trim_end());
        }
    }
}

/// Whether to check programs after every pass.
pub(crate) fn verifies() -> Result<bool, Error> {
    static VERIFY: OnceLock<Result<bool, Error>> = OnceLock::new();
    let verify = VERIFY.get_or_init(|| match variable(VERIFY_VARIABLE)?.as_deref().map(str::trim) {
        None | Some("") => Ok(cfg!(debug_assertions)),
        Some("0") => Ok(false),
        Some("1") => Ok(true),
        Some(value) => {
            let (variable, value) = (VERIFY_VARIABLE, value.to_owned());
            Err(Error::Environment { variable, value, problem: "expected 0 or 1".to_owned() })
        }
    });
    verify.clone()
}

/// The value of an environment variable, if it is set.
///
/// # Errors
/// [`Error::Environment`] when it is not UTF-8.
pub fn variable(variable: &'static str) -> Result<Option<String>, Error> {
    match env::var(variable) {
        Ok(value) => Ok(Some(value)),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(value)) => {
            let (value, problem) = (value.to_string_lossy().into_owned(), "it is not UTF-8".to_owned());
            Err(Error::Environment { variable, value, problem })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_parsed_and_unknown_ones_named() {
        let dump = Dump::parse(" scheduled, flatten_buffers ,").expect("both are stages");
        assert!(dump.stages.contains("scheduled") && dump.stages.contains("flatten_buffers") && !dump.all);
        assert_eq!(Dump::parse("").expect("nothing is fine"), Dump::default());
        assert!(Dump::parse("all").expect("everything").all);
        let error = Dump::parse("scheduled,nonsense").expect_err("there is no such stage").to_string();
        assert!(error.contains("TILEWRIGHT_DUMP") && error.contains("`nonsense` is no stage"), "{error}");
    }
}
