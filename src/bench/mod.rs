//! Benchmark programs: tune the cases without records, then compare.
//!
//! [`bench_main!`](crate::bench_main) makes the `main` of such a program. Its parts are public, for other benchmark
//! programs.

mod cases;
mod comparison;
mod contest;
mod options;

use std::error::Error;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tilewright_runtime::devices;
use tilewright_search::records::Database;

pub use comparison::{Checked, Comparison, Effort, Sampled, Variant};
pub use contest::Contest;
pub use options::{Audience, Options, OptionsError, list, usage};

use crate::kernel::Kernel;
use crate::tuning::TuneError;
use crate::tuning::report::{self, Peak, Series};

/// A kernel at a shape, as [`bench_main!`](crate::bench_main) lists them.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The kernel.
    pub kernel: fn() -> &'static Kernel,
    /// Its dimensions and `usize` arguments.
    pub dims: &'static [(&'static str, Sizes)],
}

/// Sizes of a dimension in a [`Case`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// One size.
    One(i64),
    /// The bounds of buckets: see [`Kernel::set_buckets`].
    Buckets(&'static [i64]),
}

/// The `main` of a benchmark that tunes the kernels it lists and then compares the definition, the default schedule and the
/// tuned one with `criterion`.
///
/// ```ignore
/// // benches/kernels.rs, with `harness = false` and the crate `criterion` among the dev-dependencies
/// tilewright::bench_main! {
///     matmul[M = 1024, N = 1024, K = 1024],
///     layers::convolve[N = 1, H = 56, W = 56, stride = 2],
/// }
/// ```
///
/// A dimension that takes many sizes has buckets, `matmul[M in [1, 16, 128], N = 768, K = 768]`: the kernel is tuned at each
/// bound, and the application calls [`Kernel::set_buckets`] with the same bounds.
///
/// `cargo bench` then tunes each shape that has no record for this machine, records every measurement in `tuned/` beside
/// the crate's `Cargo.toml`, and writes `tuned/report.html`. Ctrl-C ends tuning and keeps the measurements; the next
/// run continues. `cargo bench --bench kernels -- --help` lists the options.
#[macro_export]
macro_rules! bench_main {
    ($($kernel:ty [$($dims:tt)*]),* $(,)?) => {
        fn main() -> ::std::process::ExitCode {
            $crate::bench::run(
                ::core::env!("CARGO_MANIFEST_DIR"),
                &[$($crate::bench::Case {
                    kernel: <$kernel>::kernel,
                    dims: $crate::__bench_dims!([] $($dims)*),
                }),*],
                |comparison, variants| {
                    let mut criterion = ::criterion::Criterion::default()
                        .without_plots()
                        .sample_size(30)
                        .warm_up_time(::core::time::Duration::from_millis(500))
                        .measurement_time(::core::time::Duration::from_secs(2));
                    let mut group = criterion.benchmark_group(comparison.title());
                    for variant in variants {
                        group.bench_function(variant.name(), |bencher| {
                            bencher.iter_custom(|runs| comparison.run(*variant, runs).expect("it was checked"))
                        });
                    }
                    group.finish();
                },
            )
        }
    };
}

/// Dimensions as [`bench_main!`](crate::bench_main) takes them.
#[doc(hidden)]
#[macro_export]
macro_rules! __bench_dims {
    ([$($done:tt)*]) => { &[$($done)*] };
    ([$($done:tt)*] $dim:ident = $value:expr $(, $($rest:tt)*)?) => {
        $crate::__bench_dims!(
            [$($done)* (::core::stringify!($dim), $crate::bench::Sizes::One($value)),] $($($rest)*)?
        )
    };
    ([$($done:tt)*] $dim:ident in [$($bound:expr),+ $(,)?] $(, $($rest:tt)*)?) => {
        $crate::__bench_dims!(
            [$($done)* (::core::stringify!($dim), $crate::bench::Sizes::Buckets(&[$($bound),+])),]
            $($($rest)*)?
        )
    };
}

/// The result of one variant, which prints as a JSON object.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Line {
    /// The operator or case.
    pub op: String,
    /// `reference`, `default` or `tuned`.
    pub variant: &'static str,
    /// Where the operands were when a run began: `warm` or `cold`.
    pub cache: &'static str,
    /// The device, where it is not the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Threads that ran.
    pub threads: usize,
    /// The median time of a run, in nanoseconds.
    pub ns_median: f64,
    /// The median of the faster half of the samples, in nanoseconds.
    pub ns_clean: f64,
    /// The shortest time of a run, in nanoseconds.
    pub ns_min: f64,
    /// Operations per second at the median, in 10⁹.
    pub gflops: f64,
    /// The greatest error relative to the largest magnitude of the reference's results.
    pub max_rel_err: f64,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).expect("numbers and texts have a JSON form"))
    }
}

/// Runs the cases of [`bench_main!`](crate::bench_main). `compare` measures variants of one case.
pub fn run(
    directory: &str,
    cases: &[Case],
    mut compare: impl FnMut(&mut Comparison, &[Variant]),
) -> ExitCode {
    let benchmark = |options: &Options| cases::run_cases(directory, cases, options, &mut compare);
    run_for(Audience::Cases, |options| options.is_given, benchmark)
}

/// The `main` of a benchmark program: follows its arguments, and prints errors. Without arguments, as
/// `cargo test --all-targets` starts such programs, it does nothing: tuning is not a test.
pub fn run_when_asked(benchmark: impl FnOnce(&Options) -> Result<(), Box<dyn Error>>) -> ExitCode {
    run_when(|options| options.is_given, benchmark)
}

/// As [`run_when_asked`], for a program that takes requests in other ways than by arguments.
pub fn run_when(
    is_asked: impl FnOnce(&Options) -> bool,
    benchmark: impl FnOnce(&Options) -> Result<(), Box<dyn Error>>,
) -> ExitCode {
    run_for(Audience::Operators, is_asked, benchmark)
}

fn run_for(
    audience: Audience,
    is_asked: impl FnOnce(&Options) -> bool,
    benchmark: impl FnOnce(&Options) -> Result<(), Box<dyn Error>>,
) -> ExitCode {
    crate::init();
    let result = match Options::from_environment(audience) {
        Ok(options) if is_asked(&options) => benchmark(&options),
        Ok(_) => {
            println!("nothing to do; use `cargo bench`, or `--help` for the options");
            Ok(())
        }
        Err(help @ OptionsError::Help(_)) => {
            println!("{help}");
            Ok(())
        }
        Err(error) => Err(error.into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// True from the moment of the first Ctrl-C; the second ends the program at once.
pub fn stop_on_interrupt() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let handler = ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            // A shell reports this status for a program that was interrupted.
            std::process::exit(130);
        }
        // The program works without this message.
        drop(writeln!(std::io::stderr(), "\nending after the current measurement; once more ends at once"));
    });
    if let Err(error) = handler {
        tracing::warn!(%error, "Ctrl-C will end the program at once");
    }
    stop
}

/// Writes the report of all records: a page beside them (with the feature `report`), and a table on the terminal.
pub fn write_report(records: &Path, is_quiet: bool) -> Result<(), TuneError> {
    let series = Series::of_records(&Database::open(records)?, Peak::Measured(&devices::default_device()?));
    if series.is_empty() {
        return Ok(());
    }
    let page = write_page(records, &series)?;
    if !is_quiet {
        println!("\n{}", report::table(&series));
        if let Some(page) = page {
            println!("report: {}\n", page.display());
        }
    }
    Ok(())
}

/// Writes the page beside the records, and gives its place.
#[cfg(feature = "report")]
fn write_page(records: &Path, series: &[Series]) -> Result<Option<PathBuf>, TuneError> {
    let is_file = records.extension().is_some_and(|extension| extension == "jsonl");
    let page = if is_file { records.with_extension("html") } else { records.join("report.html") };
    report::write_html(&page, series)?;
    Ok(Some(page))
}

#[cfg(not(feature = "report"))]
fn write_page(_: &Path, _: &[Series]) -> Result<Option<PathBuf>, TuneError> {
    Ok(None)
}
