//! Tuning and comparing the cases of a benchmark program, each by itself: one that fails costs only itself.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tilewright_runtime::devices;
use tilewright_search::records::{CacheState, Database, TunedFor};

use super::{Case, Comparison, Effort, Line, Options, Sizes, Variant, stop_on_interrupt, write_report};
use crate::kernel::Kernel;
use crate::tuning::{TuneError, TuneTask, Tuner, report};
use crate::{records, settings};

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

/// The definition is compared when one run of it takes no longer than this: a comparison takes dozens.
const SLOWEST_REFERENCE: std::time::Duration = std::time::Duration::from_millis(50);

pub(super) fn run_cases(
    directory: &str,
    cases: &[Case],
    options: &Options,
    compare: &mut dyn FnMut(&mut Comparison, &[Variant]),
) -> Result<(), Box<dyn Error>> {
    settings::set_threads(options.threads.unwrap_or(0));
    let variants = options.variants()?;
    let records = options.records.clone().unwrap_or_else(|| Path::new(directory).join("tuned"));
    let points: Vec<Point> = cases.iter().flat_map(Case::points).collect();
    options.check_selection(&points.iter().map(title).collect::<Vec<_>>())?;
    let mut selected: Vec<Point> =
        points.into_iter().filter(|point| options.selects(&title(point))).collect();
    let mut failures = Failures::default();
    for case in cases {
        if let Err(error) = case.set_buckets() {
            failures.add((case.kernel)().name(), &error);
        }
    }
    // A kernel that has no program can be neither tuned nor compared.
    selected.retain(|point| failures.check(&title(point), program_of(point)));
    if !options.no_tune {
        let stop = stop_on_interrupt();
        tune_cases(&selected, options, &records, &stop, &mut failures)?;
        write_report(&records, options.json)?;
        if stop.load(Ordering::Relaxed) {
            eprintln!("stopped; what was measured is in `{}`", records.display());
            return Ok(());
        }
    }
    records::use_records(&records)?;
    for point in &selected {
        failures.check(&title(point), compare_case(point, options, &variants, compare));
    }
    failures.into_result()
}

/// The program of a point, which has to exist for anything else.
fn program_of(point: &Point) -> Result<(), crate::Error> {
    point.kernel.program_for(&point.kernel.dims_by_name(&point.dims)?).map(drop)
}

/// Whose tuning or comparison failed. Each is told at once; the others go on.
#[derive(Debug, Default, PartialEq, Eq)]
struct Failures(BTreeSet<String>);

impl Failures {
    fn add(&mut self, title: &str, error: &dyn Error) {
        eprintln!("error: {title}: {error}");
        self.0.insert(title.to_owned());
    }

    /// Whether it went well.
    fn check<E: Error>(&mut self, title: &str, result: Result<(), E>) -> bool {
        result.map_err(|error| self.add(title, &error)).is_ok()
    }

    fn into_result(self) -> Result<(), Box<dyn Error>> {
        if self.0.is_empty() {
            return Ok(());
        }
        let titles: Vec<String> = self.0.into_iter().collect();
        Err(format!("not everything could be tuned or compared, see above: {}", titles.join(", ")).into())
    }
}

fn title(case: &Point) -> String {
    let dims: Vec<String> = case.dims.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("{}[{}]", case.kernel.name(), dims.join(", "))
}

/// Tunes the cases that have not been tuned for such a machine: under a budget for all of them together where there is
/// one, else one after the other.
fn tune_cases(
    cases: &[Point],
    options: &Options,
    records: &Path,
    stop: &Arc<AtomicBool>,
    failures: &mut Failures,
) -> Result<(), TuneError> {
    let budget = match options.budget {
        Some(budget) => Some(budget),
        None => settings::budget()?,
    };
    let is_asked_for = budget.is_some() || options.trials.is_some() || options.time_limit.is_some();
    let mut open = Vec::new();
    for case in cases {
        if is_asked_for || !is_tuned(case, options.cache, records)? {
            open.push(TuneTask { kernel: case.kernel, dims: &case.dims, weight: 1.0 });
        }
    }
    let mut tuner =
        Tuner::new().records(records).progress(true).stop_when(Arc::clone(stop)).cache(options.cache);
    if let Some(trials) = options.trials {
        tuner = tuner.trials(trials);
    }
    if let Some(limit) = options.time_limit {
        tuner = tuner.time_limit(limit);
    }
    if let Some(seed) = options.seed {
        tuner = tuner.seed(seed);
    }
    if let Some(budget) = budget.filter(|_| !open.is_empty()) {
        let coverage = tuner.tune_all(&open, budget)?;
        eprintln!("\n{coverage}");
        for task in coverage.tasks {
            failures.check(&task.title, task.result.map(drop));
        }
        return Ok(());
    }
    for task in open {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        match tuner.tune(task.kernel, task.dims) {
            // Without records nothing of what follows could be kept.
            Err(error @ TuneError::Records(_)) => return Err(error),
            result => {
                let dims = task.kernel.dims_by_name(task.dims)?;
                failures.check(
                    &format!("{}[{}]", task.kernel.name(), task.kernel.shape(&dims)),
                    result.map(drop),
                );
            }
        }
    }
    Ok(())
}

/// Whether a case was tuned for such a machine and its best records were kept.
fn is_tuned(case: &Point, cache: CacheState, records: &Path) -> Result<bool, TuneError> {
    let kernel = case.kernel;
    let shape = kernel.shape(&kernel.dims_by_name(&case.dims)?);
    let needed = TunedFor::of(&devices::run_context()?);
    let known = Database::open(records)?;
    let own = known.records_of(kernel.hash()?);
    let own = own.filter(|record| {
        record.shape == shape && record.target == needed && record.provenance.cache == cache
    });
    let trials: BTreeSet<u64> = own.map(|record| record.provenance.trial).collect();
    // Records without gaps are those of a run that may have been interrupted; with gaps, somebody has kept the best
    // ones.
    let is_whole = trials.iter().copied().eq(0..trials.len() as u64);
    Ok(!trials.is_empty() && !is_whole)
}

fn compare_case(
    case: &Point,
    options: &Options,
    asked: &[Variant],
    compare: &mut dyn FnMut(&mut Comparison, &[Variant]),
) -> Result<(), TuneError> {
    let mut comparison = Comparison::new(case.kernel, &case.dims, None)?;
    comparison.set_cache(options.cache);
    let variants = variants_of(&mut comparison, options, asked)?;
    if !options.json {
        compare(&mut comparison, &variants);
        return Ok(());
    }
    let sampled = comparison.measure(&variants, &Effort::default())?;
    for (variant, sampled) in variants.iter().zip(sampled) {
        let line = Line {
            op: comparison.title(),
            variant: variant.name(),
            device: None,
            cache: options.cache.name(),
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

/// The variants to measure, checked: those that are asked for, or else all, the reference only where that does not take too long.
fn variants_of(
    comparison: &mut Comparison,
    options: &Options,
    asked: &[Variant],
) -> Result<Vec<Variant>, TuneError> {
    if !asked.is_empty() {
        asked.iter().try_for_each(|variant| comparison.check(*variant).map(drop))?;
        return Ok(asked.to_vec());
    }
    for variant in [Variant::Default, Variant::Tuned] {
        comparison.check(variant)?;
    }
    let reference = comparison.check(Variant::Reference)?.duration;
    if reference <= SLOWEST_REFERENCE || options.reference {
        return Ok(Variant::ALL.to_vec());
    }
    let time = report::duration(reference.as_secs_f64());
    eprintln!("{}: the reference takes {time} and is not sampled; --reference insists", comparison.title());
    Ok(vec![Variant::Default, Variant::Tuned])
}

#[cfg(test)]
mod tests {
    use tilewright_search::scheduler::Budget;

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

    /// y[n] = x[n + 1], which is out of bounds.
    #[tensor_kernel]
    fn too_far(x: &Tensor<f32, N>) -> Tensor<f32, N> {
        let mut y = Tensor::zeros();
        for i in 0..N {
            y[[i]] = x[[i + 1]];
        }
        y
    }

    #[test]
    fn a_kernel_that_cannot_be_tuned_costs_only_itself() {
        let directory = tempfile::tempdir().unwrap();
        let case = |kernel: fn() -> &'static Kernel, dims| Case { kernel, dims };
        let cases = [
            case(too_far::kernel, &[("N", Sizes::One(5))]),
            case(doubled::kernel, &[("M", Sizes::One(3)), ("K", Sizes::One(5))]),
            case(doubled::kernel, &[("M", Sizes::One(3)), ("N", Sizes::One(5))]),
        ];
        for budget in [None, Some(Budget::trials(3))] {
            let records = Some(directory.path().join(format!("{}", budget.is_some())));
            let (options, mut compared) =
                (Options { trials: Some(3), budget, records, ..Options::default() }, Vec::new());
            let mut compare = |comparison: &mut Comparison, variants: &[Variant]| {
                compared.push((comparison.title(), variants.to_vec()));
            };
            let result = run_cases("nowhere", &cases, &options, &mut compare);
            let message = result.expect_err("two of three cannot be tuned").to_string();
            assert!(message.ends_with("see above: doubled[M=3, K=5], too_far[N=5]"), "{message}");
            assert_eq!(compared, [("doubled[M=3, N=5]".to_owned(), Variant::ALL.to_vec())]);
        }
    }

    #[test]
    fn only_the_variants_that_are_asked_for_are_measured() {
        let directory = tempfile::tempdir().unwrap();
        let dims: &'static [(&'static str, Sizes)] = &[("M", Sizes::One(3)), ("N", Sizes::One(4))];
        let options = Options {
            no_tune: true,
            records: Some(directory.path().to_owned()),
            variants: vec!["tuned".to_owned()],
            ..Options::default()
        };
        let mut compared = Vec::new();
        let mut compare = |_: &mut Comparison, variants: &[Variant]| compared.extend(variants.to_vec());
        run_cases("nowhere", &[Case { kernel: doubled::kernel, dims }], &options, &mut compare).unwrap();
        assert_eq!(compared, [Variant::Tuned]);
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
