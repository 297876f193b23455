//! Tuning a small kernel, with candidates that misbehave, records that cannot be written, and stops.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tilewright_core::device::{
    Arguments, CallError, CompileError, Device, DeviceBuffer, DeviceError, DeviceSlice, DeviceSliceMut,
    Executable,
};
use tilewright_core::dtype::DType;
use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::Program;
use tilewright_core::target::{RunOptions, Target};
use tilewright_measure::isolation::{IsolatedRunner, Limits};
use tilewright_measure::runner::Interrupt;
use tilewright_runtime::devices;
use tilewright_search::candidate::{Candidate, Generator, Statistics};
use tilewright_search::records::{Database, Record};
use tilewright_search::space::design_spaces;
use tilewright_search::spec::SearchSpec;
use tilewright_search::strategy::random;
use tilewright_search::tuner::{End, Runner, Start, TrialOutcome};

use super::job::{Job, MethodParts};
use super::observer::{Observer, Progress};
use super::rounds::Rounds;
use super::session::Session;
use super::transfer::Learned;
use super::{Budget, Isolation, TuneError, TuneTask, Tuned, Tuner, reason, worker};
use crate::prelude::*;

/// C = A·B
#[tensor_kernel]
pub(super) fn product(a: &Tensor<f32, M, K>, b: &Tensor<f32, K, N>) -> Tensor<f32, M, N> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                c[[i, j]] += a[[i, k]] * b[[k, j]];
            }
        }
    }
    c
}

/// Adds a row of a table, chosen by data, to each row.
#[tensor_kernel]
fn add_chosen_rows(
    y: &mut Tensor<f32, M, N>,
    table: &Tensor<f32, V, N>,
    chosen: &Tensor<i32, M>,
    scale: f32,
) {
    for i in 0..M {
        for j in 0..N {
            y[[i, j]] += scale * table[[chosen[[i]] as usize, j]];
        }
    }
}

pub(super) const DIMS: [(&str, i64); 3] = [("M", 24), ("N", 32), ("K", 40)];

/// The candidate that fails in a measuring process of these tests: `fault:hash` with the hash of a compiled program.
const FAULTS_VARIABLE: &str = "TILEWRIGHT_TEST_FAULTS";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Crash,
    Hang,
    Memory,
    WrongResult,
    CompilerCrash,
}

const FAULTS: [(Fault, &str); 5] = [
    (Fault::Crash, "crash"),
    (Fault::Hang, "hang"),
    (Fault::Memory, "memory"),
    (Fault::WrongResult, "wrong"),
    (Fault::CompilerCrash, "compiler"),
];

/// A device on which some programs misbehave.
struct FaultyDevice {
    inner: Arc<dyn Device>,
    faults: String,
}

impl FaultyDevice {
    fn fault(&self, program: &Program) -> Option<Fault> {
        let hash = format!("{:016x}", program.stable_hash());
        let named = self.faults.split(',').find_map(|fault| fault.strip_suffix(&hash));
        FAULTS.iter().find(|(_, name)| named == Some(&format!("{name}:"))).map(|(fault, _)| *fault)
    }
}

impl Device for FaultyDevice {
    fn label(&self) -> &str {
        self.inner.label()
    }

    fn target(&self) -> &Target {
        self.inner.target()
    }

    fn compile(&self, programs: &[&Program]) -> Vec<Result<Box<dyn Executable>, CompileError>> {
        let faults: Vec<Option<Fault>> = programs.iter().map(|program| self.fault(program)).collect();
        if faults.contains(&Some(Fault::CompilerCrash)) {
            std::process::abort();
        }
        let compiled = self.inner.compile(programs).into_iter().zip(faults);
        compiled
            .map(|(executable, fault)| match fault {
                None => executable,
                Some(fault) => executable.map(|_| Box::new(FaultyExecutable(fault)) as Box<dyn Executable>),
            })
            .collect()
    }

    fn list(&self, program: &Program) -> Result<String, CompileError> {
        self.inner.list(program)
    }

    fn allocate(&self, bytes: usize) -> Result<DeviceBuffer, DeviceError> {
        self.inner.allocate(bytes)
    }

    fn upload(&self, from: &[u8], to: DeviceSliceMut<'_>) -> Result<(), DeviceError> {
        self.inner.upload(from, to)
    }

    fn download(&self, from: DeviceSlice<'_>, to: &mut [u8]) -> Result<(), DeviceError> {
        self.inner.download(from, to)
    }

    fn measure_peak(&self, dtype: DType, options: RunOptions, window: Duration) -> Option<f64> {
        self.inner.measure_peak(dtype, options, window)
    }
}

struct FaultyExecutable(Fault);

impl Executable for FaultyExecutable {
    fn run(&self, _: &mut Arguments<'_, '_>, _: RunOptions) -> Result<(), CallError> {
        match self.0 {
            Fault::Crash => std::process::abort(),
            Fault::Hang => std::thread::sleep(Duration::from_secs(600)),
            Fault::Memory => drop(std::hint::black_box(Vec::<u8>::with_capacity(1 << 46))),
            Fault::WrongResult | Fault::CompilerCrash => {}
        }
        Ok(())
    }

    fn time(
        &self,
        arguments: &mut Arguments<'_, '_>,
        options: RunOptions,
        _: u64,
    ) -> Result<Duration, CallError> {
        self.run(arguments, options)?;
        Ok(Duration::from_millis(1))
    }

    fn code_bytes(&self) -> usize {
        0
    }
}

/// Acts as the measuring process of the other tests when they start this test again as such.
#[test]
fn measuring_process() {
    if std::env::var_os(worker::VARIABLE).is_none() {
        return;
    }
    let faults = std::env::var(FAULTS_VARIABLE).unwrap_or_default();
    let device: Arc<dyn Device> =
        Arc::new(FaultyDevice { inner: devices::default_device().expect("a device"), faults });
    worker::serve(&|_| Ok(Arc::clone(&device)));
    std::process::exit(0);
}

pub(super) fn worker_command(faults: String) -> impl FnMut() -> std::io::Result<Command> {
    move || {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--exact", "tuning::tests::measuring_process", "--nocapture", "--test-threads=1"]);
        command.env(worker::VARIABLE, "1").env(FAULTS_VARIABLE, &faults);
        command.env("RUST_BACKTRACE", "1");
        Ok(command)
    }
}

/// Different candidates for the kernel.
pub(super) fn candidates(count: usize) -> Vec<Candidate> {
    let kernel = product::kernel();
    let program = kernel.program_for(&kernel.dims_by_name(&DIMS).unwrap()).unwrap();
    let context = devices::run_context_with_threads(1).unwrap();
    let spec = SearchSpec::built_in(context.target.kind()).unwrap();
    let spaces = design_spaces(&program, &context, &spec.rules, 1);
    let generator = Generator::new(program, context, spec);
    let mut found: Vec<Candidate> = Vec::new();
    for seed in 0..1000 {
        let mut statistics = Statistics::default();
        let space = seed as usize % spaces.len();
        let candidate = generator.generate(space, &spaces[space], seed, |_, _| None, &mut statistics);
        let is_new = |candidate: &Candidate| found.iter().all(|other| other.hash != candidate.hash);
        if let Some(candidate) = candidate.filter(is_new) {
            found.push(candidate);
        }
        if found.len() == count {
            return found;
        }
    }
    panic!("only {} candidates", found.len());
}

fn runner(faults: String, cache: &std::path::Path, interrupt: Interrupt) -> IsolatedRunner {
    let tuner = Tuner::new().threads(1);
    let setup = tuner.plan(product::kernel(), &DIMS).unwrap().setup(cache).unwrap();
    let limits = Limits { run: Duration::from_secs(2), ..Limits::default() };
    IsolatedRunner::new(worker_command(faults), setup, limits, interrupt)
}

fn reasons(measurements: &[Option<TrialOutcome>]) -> Vec<&str> {
    measurements
        .iter()
        .map(|measurement| match measurement {
            Some(TrialOutcome::Ok { .. }) => "ok",
            Some(TrialOutcome::Failed { reason, .. }) => reason,
            None => "not reached",
        })
        .collect()
}

#[test]
fn a_candidate_that_misbehaves_costs_only_itself() {
    let candidates = candidates(8);
    let mut faults = String::new();
    for (number, (_, name)) in FAULTS.iter().enumerate() {
        let flat = lower(&candidates[number + 1].program, &LowerOptions::default()).unwrap();
        write!(faults, "{name}:{:016x},", flat.stable_hash()).unwrap();
    }
    let cache = tempfile::tempdir().unwrap();
    let mut runner = runner(faults, cache.path(), Interrupt::new(None, None));
    let measurements = runner.measure(&candidates);
    if let Some(failure) = runner.take_failure() {
        panic!("{failure}");
    }
    assert_eq!(
        reasons(&measurements),
        ["ok", reason::CRASH, reason::HANG, reason::MEMORY, reason::WRONG_RESULT, reason::CRASH, "ok", "ok"],
        "{measurements:?}"
    );
    let (first, second) = runner.compare(&candidates[0], &candidates[6]).expect("both run");
    assert!(first > 0.0 && second > 0.0, "{first} {second}");
}

#[test]
fn a_program_that_does_not_answer_is_an_error() {
    let setup =
        Tuner::new().plan(product::kernel(), &DIMS).unwrap().setup(std::path::Path::new(".")).unwrap();
    let command = || {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--list");
        Ok(command)
    };
    let interrupt = Interrupt::new(None, None);
    let mut runner = IsolatedRunner::new(command, setup, Limits::default(), interrupt.clone());
    assert_eq!(reasons(&runner.measure(&candidates(1))), ["not reached"]);
    assert!(!interrupt.is_stopped(), "other kernels can be measured");
    let error = runner.take_failure().expect("there was no measuring process").to_string();
    assert!(error.contains("is `tilewright::init()` the first thing that `main` does?"), "{error}");
}

fn tuner(records: &std::path::Path) -> Tuner {
    Tuner::new().trials(6).threads(1).isolation(Isolation::InProcess).records(records)
}

/// The number of schedules with records. Schedules that are compared in the end have several records.
fn records(path: &std::path::Path) -> usize {
    let database = Database::open(path).unwrap();
    assert_eq!(database.problems(), []);
    let traces: BTreeSet<String> = database.records().map(|record| record.trace.to_string()).collect();
    traces.len()
}

/// Asserts that a look-up gives the result of tuning, with the time of its comparison at the end.
fn assert_chosen(path: &std::path::Path, tuned: &Tuned) {
    let database = Database::open(path).unwrap();
    let context = devices::run_context().unwrap();
    let hash = product::kernel().hash().unwrap();
    let chosen = database.best(hash, &tuned.shape, &context).expect("a record");
    assert_eq!(Some(chosen), tuned.record.as_ref());
    assert!(chosen.measurement().is_some_and(|found| found.is_confirmed), "{chosen:?}");
    let seconds = chosen.median_ns().unwrap() * 1e-9;
    assert!((seconds / tuned.best_seconds.unwrap() - 1.0).abs() < 1e-6, "{seconds} {tuned:?}");
}

#[test]
fn a_rerun_goes_on_where_the_last_run_ended() {
    let directory = tempfile::tempdir().unwrap();
    let first = tuner(directory.path()).tune(product::kernel(), &DIMS).unwrap();
    assert_eq!((first.trials, first.earlier_trials, records(directory.path())), (6, 0, 6));
    assert!(first.best_seconds.unwrap() > 0.0 && first.default_seconds.is_some(), "{first:?}");
    assert_chosen(directory.path(), &first);
    let again = tuner(directory.path()).trials(8).tune(product::kernel(), &DIMS).unwrap();
    assert_eq!((again.trials, again.earlier_trials, records(directory.path())), (2, 6, 8));
    assert_chosen(directory.path(), &again);
    let done = tuner(directory.path()).trials(8).tune(product::kernel(), &DIMS).unwrap();
    assert_eq!((done.trials, done.earlier_trials), (0, 8));
    assert!(done.record.is_some(), "{done:?}");
}

#[test]
fn a_run_leaves_its_program_and_what_it_came_to() {
    let directory = tempfile::tempdir().unwrap();
    let first = tuner(directory.path()).tune(product::kernel(), &DIMS).unwrap();
    tuner(directory.path()).trials(8).tune(product::kernel(), &DIMS).unwrap();
    // Nothing is left to do or to report.
    tuner(directory.path()).trials(8).tune(product::kernel(), &DIMS).unwrap();
    let text = std::fs::read_to_string(directory.path().join("product.jsonl")).unwrap();
    assert!(text.starts_with(r#"{"version":1,"kind":"program","kernel":"product","#), "{text}");
    assert_eq!(text.matches(r#""kind":"program""#).count(), 1, "once for each file");
    let database = Database::open(directory.path()).unwrap();
    let program = database.program(product::kernel().hash().unwrap()).expect("it was written");
    assert_eq!(program.to_string(), product::kernel().program().unwrap().to_string());
    let [run, again] = database.runs() else { panic!("{:?}", database.runs()) };
    assert_eq!((run.trials, run.earlier, again.trials, again.earlier), (6, 0, 2, 6));
    assert_eq!((run.flops, run.bytes), (first.flops, 4.0 * (24.0 * 40.0 + 40.0 * 32.0 + 24.0 * 32.0)));
    assert_eq!((run.generated, run.forecast), (first.generated, first.forecast));
    // The default was not ranked, and all others in one round.
    let ranking = run.ranking().expect("there are times to rank");
    assert_eq!((ranking.candidates, run.rounds.len()), (5, 1), "{run:?}");
    let known = |record: &&Record| record.provenance.rules.is_some();
    assert!(database.records().filter(known).count() >= 6, "rules are known of fresh candidates");
    let predicted = database.records().filter(|record| record.provenance.predicted.is_some());
    let predicted: BTreeSet<u64> = predicted.map(|record| record.provenance.trial).collect();
    assert_eq!(predicted, (1..8).collect::<BTreeSet<u64>>());
    let rules = database.records().flat_map(|record| record.provenance.rules.iter().flatten());
    let rules: BTreeSet<&String> = rules.collect();
    assert!(rules.iter().any(|rule| *rule == "multi_level_tiling"), "{rules:?}");
}

/// Counts, and stops after some trials.
struct Counter {
    measured: Arc<AtomicUsize>,
    directory: std::path::PathBuf,
    stop: Arc<AtomicBool>,
    stop_at: usize,
}

impl Observer for Counter {
    fn measured(&mut self, progress: &Progress<'_>) {
        let count = self.measured.fetch_add(1, Ordering::Relaxed) + 1;
        assert_eq!(progress.trial, count);
        assert_eq!(records(&self.directory), count, "a trial is recorded before anybody hears of it");
        if count == self.stop_at {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_stop_keeps_what_was_measured() {
    let directory = tempfile::tempdir().unwrap();
    let (measured, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let counter = Counter {
        measured: Arc::clone(&measured),
        directory: directory.path().to_owned(),
        stop: Arc::clone(&stop),
        stop_at: 3,
    };
    let tuned = tuner(directory.path())
        .trials(1000)
        .observer(counter)
        .stop_when(stop)
        .tune(product::kernel(), &DIMS)
        .unwrap();
    assert_eq!(tuned.end, End::Stopped);
    assert!(tuned.trials >= 3 && tuned.trials < 40, "{tuned:?}");
    assert_eq!(records(directory.path()), tuned.trials);
    assert!(tuned.record.is_some());
    let database = Database::open(directory.path()).unwrap();
    let runs: Vec<_> = database.runs().iter().map(|run| (run.trials, run.end.as_str())).collect();
    assert_eq!(runs, [(tuned.trials as u64, "it was stopped")]);
}

#[test]
fn records_that_cannot_be_written_are_an_error_and_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("records.jsonl");
    tuner(&file).trials(2).tune(product::kernel(), &DIMS).unwrap();
    // A device that is always full takes the place of the file.
    let full = directory.path().join("full.jsonl");
    let made = std::os::unix::fs::symlink("/dev/full", &full);
    made.expect("a link can be made");
    let error = tuner(&full).tune(product::kernel(), &DIMS).expect_err("nothing can be recorded");
    assert!(matches!(error, TuneError::Records(_)), "{error}");
    assert_eq!(records(&file), 2);
}

#[test]
fn kernels_that_update_in_place_and_gather_are_measured() {
    let directory = tempfile::tempdir().unwrap();
    let dims = [("M", 20), ("N", 24), ("V", 7)];
    let tuned = tuner(directory.path()).trials(4).tune(add_chosen_rows::kernel(), &dims).unwrap();
    assert!(tuned.trials > 0 && tuned.best_seconds.is_some(), "{tuned:?}");
    let database = Database::open(directory.path()).unwrap();
    for record in database.records() {
        assert!(record.median_ns().is_some(), "{:?}", record.outcome);
    }
}

#[test]
fn a_time_limit_ends_tuning() {
    let tuned = Tuner::new()
        .trials(100_000)
        .threads(1)
        .time_limit(Duration::from_millis(300))
        .isolation(Isolation::InProcess)
        .tune(product::kernel(), &DIMS)
        .unwrap();
    assert!(matches!(tuned.end, End::Time), "{tuned:?}");
}

#[test]
fn wrong_dimensions_are_refused() {
    let error = Tuner::new().tune(product::kernel(), &[("M", 1)]).expect_err("two are missing");
    assert!(error.to_string().contains("`K` is missing"), "{error}");
}

/// y = 2·x
#[tensor_kernel]
fn doubled(x: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        y[[i]] = 2.0 * x[[i]];
    }
    y
}

/// Remembers the titles of measurements, in order.
struct Order(Rc<RefCell<Vec<String>>>, String);

impl Observer for Order {
    fn started(&mut self, started: &super::Started<'_>) {
        self.1 = started.title.to_owned();
    }

    fn resumed(&mut self, started: &super::Started<'_>) {
        self.1 = started.title.to_owned();
    }

    fn measured(&mut self, _: &Progress<'_>) {
        self.0.borrow_mut().push(self.1.clone());
    }
}

fn tasks() -> [TuneTask<'static>; 3] {
    let task = |kernel, dims| TuneTask { kernel, dims, weight: 1.0 };
    [
        task(product::kernel(), &DIMS),
        task(product::kernel(), &[("M", 8), ("N", 48), ("K", 32)]),
        task(doubled::kernel(), &[("N", 1000)]),
    ]
}

#[test]
fn a_budget_covers_every_task() {
    let directory = tempfile::tempdir().unwrap();
    let order = Rc::new(RefCell::new(Vec::new()));
    let mut tuner = Tuner::new()
        .threads(1)
        .isolation(Isolation::InProcess)
        .records(directory.path())
        .observer(Order(Rc::clone(&order), String::new()));
    let coverage = tuner.tune_all(&tasks(), Budget::trials(12)).unwrap();
    assert_eq!((coverage.trials(), coverage.left_out().count()), (12, 0), "{coverage}");
    let order = order.borrow().clone();
    for covered in &coverage.tasks {
        let tuned = covered.result.as_ref().unwrap();
        let own = order.iter().filter(|title| **title == covered.title).count();
        assert_eq!((tuned.trials, tuned.title()), (own, covered.title.clone()));
        assert!(tuned.forecast.is_some_and(|forecast| (0.0..=1.0).contains(&forecast.chance)));
        assert!(coverage.to_string().contains(&covered.title), "{coverage}");
    }
    // Recorded trials count; the run spends the rest of the greater budget.
    let again = tuner.tune_all(&tasks(), Budget::trials(15)).unwrap();
    assert_eq!(again.trials(), 3, "{again}");
    assert_eq!(tuner.tune_all(&tasks(), Budget::trials(15)).unwrap().left_out().count(), 0);
}

#[test]
fn one_that_cannot_be_measured_leaves_the_others() {
    let tuner = Tuner::new().threads(1).isolation(Isolation::InProcess);
    let (cache, interrupt) = (tempfile::tempdir().unwrap(), Interrupt::new(None, None));
    let database = Rc::new(RefCell::new(Database::in_memory()));
    let job = |task: TuneTask<'static>| {
        let plan = Rc::new(tuner.plan(task.kernel, task.dims).unwrap());
        let isolated = (task.kernel.name() == "product").then(|| {
            let no_process = || Err(std::io::Error::other("no more processes"));
            let setup = plan.setup(cache.path()).unwrap();
            IsolatedRunner::new(no_process, setup, Limits::default(), interrupt.clone())
        });
        let (database, observers) = (Rc::clone(&database), Rc::clone(&tuner.observers));
        let session = Session::new(Rc::clone(&plan), database, interrupt.clone(), observers);
        (Job::new(task.kernel, plan, session, interrupt.clone(), isolated), 1.0)
    };
    let jobs = tasks().map(job).into_iter().collect();
    let method = MethodParts { strategy: random(), starts: Box::new(|_| Vec::new()) };
    let (budget, mut model) = (Budget::trials(3), Counting::default());
    let rounds = Rounds::new(jobs, tuner.policy, budget, interrupt.clone());
    let coverage = rounds.run(&mut model, &method, &tuner.observers).unwrap();
    let trials = coverage.tasks.iter().map(|task| task.result.as_ref().ok().map(|tuned| tuned.trials));
    assert_eq!(trials.collect::<Vec<_>>(), [None, None, Some(3)], "{coverage}");
    assert!(coverage.to_string().contains("no more processes"), "{coverage}");
}

#[test]
fn a_short_budget_is_shared_evenly() {
    let mut tuner = Tuner::new().threads(1).isolation(Isolation::InProcess);
    let coverage = tuner.tune_all(&tasks(), Budget::trials(4)).unwrap();
    assert_eq!((coverage.trials(), coverage.left_out().count()), (4, 0), "{coverage}");
}

#[test]
fn a_budget_of_time_that_is_too_short_names_what_was_left_out() {
    let mut tuner = Tuner::new().threads(1).isolation(Isolation::InProcess);
    let coverage = tuner.tune_all(&tasks(), Budget::time(Duration::ZERO)).unwrap();
    assert_eq!((coverage.trials(), coverage.left_out().count()), (0, 3));
    let text = coverage.to_string();
    assert!(
        text.contains("3 without any measurement: product[") && text.contains("the time is used up"),
        "{text}"
    );
}

#[test]
fn records_of_other_shapes_are_begun_with() {
    let directory = tempfile::tempdir().unwrap();
    let first = tuner(directory.path()).tune(product::kernel(), &DIMS).unwrap();
    let plan = Tuner::new().threads(1).plan(product::kernel(), &[("M", 24), ("N", 48), ("K", 32)]).unwrap();
    let database = Database::open(directory.path()).unwrap();
    let starts = super::transfer::starts(&database, &plan);
    let best = first.record.unwrap();
    let best = Start { trace: best.trace, rules: best.provenance.rules };
    assert!(best.rules.is_some(), "{best:?}");
    assert_eq!(starts, std::slice::from_ref(&best));
    let (mut model, mut learned) = (Counting::default(), Learned::default());
    super::transfer::warm(&mut model, &mut learned, &database, &[&plan], &[product::kernel()]);
    let samples = model.0;
    assert!(samples >= 6, "{samples} samples");
    super::transfer::warm(&mut model, &mut learned, &database, &[&plan], &[product::kernel()]);
    assert_eq!(model.0, samples, "it learns nothing twice");
    // The same shape on more threads is the nearest; on as many it is the search's own.
    let starts_on = |threads: usize| {
        let plan = Tuner::new().threads(threads).plan(product::kernel(), &DIMS).unwrap();
        super::transfer::starts(&database, &plan)
    };
    assert_eq!((starts_on(2), starts_on(1)), (vec![best], vec![]));
}

#[test]
fn a_model_learns_from_each_record_once() {
    let directory = tempfile::tempdir().unwrap();
    tuner(directory.path()).tune(product::kernel(), &DIMS).unwrap();
    let known = Database::open(directory.path()).unwrap().records().count();
    let learned = Arc::new(AtomicUsize::new(0));
    let mut tuner = tuner(directory.path()).trials(2).cost_model(Shared(Arc::clone(&learned)));
    let mut made = 0;
    for n in [48, 64, 80] {
        made += tuner.tune(product::kernel(), &[("M", 24), ("N", n), ("K", 32)]).unwrap().trials;
    }
    let learned = learned.load(Ordering::Relaxed);
    assert!(made < learned && learned <= known + made, "{learned} samples of {known} and {made}");
}

#[test]
fn budgets_of_any_length_and_no_senseless_weights() {
    let mut tuner = Tuner::new().threads(1).isolation(Isolation::InProcess);
    for weight in [f64::NAN, f64::INFINITY, -1.0] {
        let task = TuneTask { weight, ..tasks()[2] };
        let error = tuner.tune_all(&[task], Budget::trials(1)).expect_err("it has no weight").to_string();
        assert!(error.contains("doubled[N=1000]` has the weight"), "{error}");
    }
    let budget = Budget { trials: Some(1), time: Some(Duration::MAX) };
    assert_eq!(tuner.tune_all(&tasks()[2..], budget).unwrap().trials(), 1);
}

/// Counts samples in a shared counter.
struct Shared(Arc<AtomicUsize>);

impl tilewright_search::model::CostModel for Shared {
    fn predict(&self, programs: &[tilewright_search::model::ProgramFeatures]) -> Vec<f32> {
        vec![0.0; programs.len()]
    }

    fn update(&mut self, samples: &[tilewright_search::model::Sample]) {
        self.0.fetch_add(samples.len(), Ordering::Relaxed);
    }
}

/// Counts samples.
#[derive(Default)]
struct Counting(usize);

impl tilewright_search::model::CostModel for Counting {
    fn predict(&self, programs: &[tilewright_search::model::ProgramFeatures]) -> Vec<f32> {
        vec![0.0; programs.len()]
    }

    fn update(&mut self, samples: &[tilewright_search::model::Sample]) {
        self.0 += samples.len();
    }
}
