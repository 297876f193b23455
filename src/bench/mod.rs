//! Benchmark programs: tune the cases without records, then compare.
//!
//! [`bench_main!`](crate::bench_main) makes the `main` of such a program. Its parts are public, for other benchmark
//! programs.

mod comparison;
mod contest;
mod options;

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tilewright_search::records::{Database, TunedFor};

pub use comparison::{Checked, Comparison, Effort, Sampled, Variant};
pub use contest::Contest;
pub use options::{Options, OptionsError, USAGE, list};

use crate::kernel::Kernel;
use crate::tuning::report::{self, Peak, Series};
use crate::tuning::{TuneError, TuneTask, Tuner};
use crate::{records, settings};
use tilewright_runtime::devices;

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

/// A kernel at one shape: the unit of tuning and comparison.
struct Point {
    kernel: &'static Kernel,
    dims: Vec<(&'static str, i64)>,
}

impl Case {
    /// The shapes of the case, one for each combination of bounds.
    fn points(&self) -> Vec<Point> {
        let mut points = vec![Point { kernel: (self.kernel)(), dims: Vec::new() }];
        for (name, sizes) in self.dims {
            let sizes = match sizes {
                Sizes::One(size) => std::slice::from_ref(size),
                Sizes::Buckets(bounds) => bounds,
            };
            let extended = |point: &Point| -> Vec<Point> {
                let extend = |size: &i64| {
                    let dims = point.dims.iter().copied().chain([(*name, *size)]).collect();
                    Point { kernel: point.kernel, dims }
                };
                sizes.iter().map(extend).collect()
            };
            points = points.iter().flat_map(extended).collect();
        }
        points
    }

    /// Lets calls of the kernel use the buckets.
    fn set_buckets(&self) -> Result<(), crate::Error> {
        let buckets = self.dims.iter().filter_map(|(name, sizes)| match sizes {
            Sizes::Buckets(bounds) => Some((*name, *bounds)),
            Sizes::One(_) => None,
        });
        let buckets: Vec<(&str, &[i64])> = buckets.collect();
        if buckets.is_empty() { Ok(()) } else { (self.kernel)().set_buckets(&buckets) }
    }
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

/// The definition is compared when one run of it takes no longer than this: a comparison takes dozens.
const SLOWEST_REFERENCE: std::time::Duration = std::time::Duration::from_millis(50);

/// Runs the cases of [`bench_main!`](crate::bench_main). `compare` measures variants of one case.
pub fn run(
    directory: &str,
    cases: &[Case],
    mut compare: impl FnMut(&mut Comparison, &[Variant]),
) -> ExitCode {
    run_when_asked(|options| Ok(run_cases(directory, cases, options, &mut compare)?))
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
    crate::init();
    let result = match Options::from_environment() {
        Ok(options) if is_asked(&options) => benchmark(&options),
        Ok(_) => {
            println!("nothing to do; use `cargo bench`, or `--help` for the options");
            Ok(())
        }
        Err(help @ OptionsError::Help) => {
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

fn run_cases(
    directory: &str,
    cases: &[Case],
    options: &Options,
    compare: &mut dyn FnMut(&mut Comparison, &[Variant]),
) -> Result<(), TuneError> {
    settings::set_threads(options.threads.unwrap_or(0));
    let records = options.records.clone().unwrap_or_else(|| Path::new(directory).join("tuned"));
    cases.iter().try_for_each(Case::set_buckets)?;
    let points = cases.iter().flat_map(Case::points);
    let selected: Vec<Point> = points.filter(|point| options.selects(&title(point))).collect();
    if !options.no_tune {
        let stop = stop_on_interrupt();
        tune_cases(&selected, options, &records, &stop)?;
        write_report(&records, options.json)?;
        if stop.load(Ordering::Relaxed) {
            eprintln!("stopped; what was measured is in `{}`", records.display());
            return Ok(());
        }
    }
    records::use_records(&records)?;
    selected.iter().try_for_each(|point| compare_case(point, options, compare))
}

fn title(case: &Point) -> String {
    let dims: Vec<String> = case.dims.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("{}[{}]", case.kernel.name(), dims.join(", "))
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

/// Tunes the cases that have not been tuned for such a machine: under a budget for all of them together where there is
/// one, else one after the other.
fn tune_cases(
    cases: &[Point],
    options: &Options,
    records: &Path,
    stop: &Arc<AtomicBool>,
) -> Result<(), TuneError> {
    let budget = match options.budget {
        Some(budget) => Some(budget),
        None => settings::budget()?,
    };
    let is_asked_for = budget.is_some() || options.trials.is_some() || options.time_limit.is_some();
    let mut open = Vec::new();
    for case in cases {
        if is_asked_for || !is_tuned(case, records)? {
            open.push(TuneTask { kernel: case.kernel, dims: &case.dims, weight: 1.0 });
        }
    }
    let mut tuner = Tuner::new().records(records).progress(true).stop_when(Arc::clone(stop));
    if let Some(trials) = options.trials {
        tuner = tuner.trials(trials);
    }
    if let Some(limit) = options.time_limit {
        tuner = tuner.time_limit(limit);
    }
    if let Some(seed) = options.seed {
        tuner = tuner.seed(seed);
    }
    match budget {
        Some(budget) if !open.is_empty() => eprintln!("\n{}", tuner.tune_all(&open, budget)?),
        Some(_) => {}
        None => {
            for task in open {
                if !stop.load(Ordering::Relaxed) {
                    tuner.tune(task.kernel, task.dims)?;
                }
            }
        }
    }
    Ok(())
}

/// Whether a case was tuned for such a machine and its best records were kept.
fn is_tuned(case: &Point, records: &Path) -> Result<bool, TuneError> {
    let kernel = case.kernel;
    let shape = kernel.shape(&kernel.dims_by_name(&case.dims)?);
    let needed = TunedFor::of(&devices::run_context()?);
    let known = Database::open(records)?;
    let own = known.records_of(kernel.hash()?);
    let own = own.filter(|record| record.shape == shape && record.target == needed);
    let trials: BTreeSet<u64> = own.map(|record| record.provenance.trial).collect();
    // Records without gaps are those of a run that may have been interrupted; with gaps, somebody has kept the best
    // ones.
    let is_whole = trials.iter().copied().eq(0..trials.len() as u64);
    Ok(!trials.is_empty() && !is_whole)
}

/// Writes the report of all records: a page beside them, and a table on the terminal.
pub fn write_report(records: &Path, is_quiet: bool) -> Result<(), TuneError> {
    let series = Series::of_records(&Database::open(records)?, Peak::Measured(&*devices::default_device()?));
    if series.is_empty() {
        return Ok(());
    }
    let is_file = records.extension().is_some_and(|extension| extension == "jsonl");
    let path: PathBuf = if is_file { records.with_extension("html") } else { records.join("report.html") };
    report::write_html(&path, &series)?;
    if !is_quiet {
        println!("\n{}\nreport: {}\n", report::table(&series), path.display());
    }
    Ok(())
}

fn compare_case(
    case: &Point,
    options: &Options,
    compare: &mut dyn FnMut(&mut Comparison, &[Variant]),
) -> Result<(), TuneError> {
    let mut comparison = Comparison::new(case.kernel, &case.dims, None)?;
    for variant in [Variant::Default, Variant::Tuned] {
        comparison.check(variant)?;
    }
    let reference = comparison.check(Variant::Reference)?.duration;
    let mut variants = vec![Variant::Default, Variant::Tuned];
    if reference <= SLOWEST_REFERENCE || options.reference {
        variants.insert(0, Variant::Reference);
    } else {
        let time = report::duration(reference.as_secs_f64());
        eprintln!(
            "{}: the reference takes {time} and is not sampled; --reference insists",
            comparison.title()
        );
    }
    if !options.json {
        compare(&mut comparison, &variants);
        return Ok(());
    }
    let sampled = comparison.measure(&variants, &Effort::default())?;
    for (variant, sampled) in variants.iter().zip(sampled) {
        let line = Line {
            op: comparison.title(),
            variant: variant.name(),
            threads: if *variant == Variant::Reference { 1 } else { settings::threads()? },
            ns_median: sampled.median_ns,
            ns_clean: sampled.clean_ns,
            ns_min: sampled.min_ns,
            gflops: comparison.flops() / sampled.median_ns,
            max_rel_err: comparison.check(*variant)?.max_rel_err,
        };
        println!("{line}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::*;

    /// y = 2·x
    #[tensor_kernel]
    fn doubled(x: &Tensor<f32, M, N>) -> Tensor<f32, M, N> {
        let mut y = Tensor::zeros();
        for i in 0..M {
            for j in 0..N {
                y[[i, j]] = 2.0 * x[[i, j]];
            }
        }
        y
    }

    #[test]
    fn cases_with_buckets_stand_for_a_shape_at_each_bound() {
        let dims: &'static [(&'static str, Sizes)] = crate::__bench_dims!([] M in [1, 16], N = 4 + 4);
        let case = Case { kernel: doubled::kernel, dims };
        let titles: Vec<String> = case.points().iter().map(title).collect();
        assert_eq!(titles, ["doubled[M=1, N=8]", "doubled[M=16, N=8]"]);
        let plain: &'static [(&'static str, Sizes)] = crate::__bench_dims!([] M = 3, N = 5,);
        let titles: Vec<String> =
            Case { kernel: doubled::kernel, dims: plain }.points().iter().map(title).collect();
        assert_eq!(titles, ["doubled[M=3, N=5]"]);
        let empty: &'static [(&'static str, Sizes)] = &[("M", Sizes::Buckets(&[])), ("N", Sizes::One(5))];
        let error = Case { kernel: doubled::kernel, dims: empty }.set_buckets().unwrap_err().to_string();
        assert!(error.contains("`M` has no bounds"), "{error}");
    }
}
