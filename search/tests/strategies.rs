//! Strategies propose legal candidates, and the same ones for the same seed and measurements, whatever the number of threads.

use std::sync::Arc;

use tilewright_core::program::Program;
use tilewright_core::schedule::Trace;
use tilewright_core::target::{Target, TargetKind};
use tilewright_search::candidate::{Candidate, Generator, Statistics};
use tilewright_search::model::{BoostedModel, CostModel, ProgramFeatures, RandomModel, Sample};
use tilewright_search::space::design_spaces;
use tilewright_search::spec::SearchSpec;
use tilewright_search::strategy::EvolutionOptions;
use tilewright_search::strategy::{self, MakeStrategy, SearchSpace, Strategy};
use tilewright_search::tuner::{
    Earlier, End, Method, Runner, Task, Trial, TrialObserver, TrialOutcome, TuneOptions, TuneResult, tune,
};

const MATMUL: &str = r#"
kernel matmul(in a: f32[96, 80], in b: f32[80, 64], out c: f32[96, 64]) {
  for i in 0..96 {
    for j in 0..64 {
      for k in 0..80 {
        block c(vi: spatial 96 = i, vj: spatial 64 = j, vk: reduce 80 = k) {
          init { c[vi, vj] = 0.0f32 }
          c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
        }
      }
    }
  }
}
"#;

fn task() -> Task {
    let program: Program = MATMUL.trim().parse().unwrap_or_else(|error| panic!("{error}"));
    Task { id: program.stable_hash(), program, context: Target::generic_cpu().into() }
}

fn built_in() -> SearchSpec {
    SearchSpec::built_in(TargetKind::Cpu).expect("a CPU can be searched")
}

fn space(threads: usize) -> SearchSpace {
    let Task { program, context, .. } = task();
    let spaces = design_spaces(&program, &context, &built_in().rules, 1);
    SearchSpace { threads, ..SearchSpace::new(Generator::new(program, context, built_in()), spaces, 7) }
}

/// A small population, so that tests in debug builds stay fast.
fn small() -> EvolutionOptions {
    EvolutionOptions { population: 24, ..EvolutionOptions::default() }
}

fn strategies() -> Vec<(&'static str, MakeStrategy)> {
    let traces: Vec<Trace> = space(1).spaces.into_iter().take(2).collect();
    vec![
        ("evolutionary", strategy::evolutionary(small())),
        ("random", strategy::random()),
        ("replay", strategy::replay(traces)),
    ]
}

/// A made-up time that depends on the candidate alone; some fail.
fn seconds(candidate: &Candidate) -> Option<f64> {
    (!candidate.hash.is_multiple_of(7)).then_some(1e-3 + (candidate.hash % 1000) as f64 * 1e-6)
}

/// The traces that a strategy proposes in a few rounds, in order.
fn proposals(make: &MakeStrategy, threads: usize) -> String {
    let mut strategy = make(space(threads));
    let mut model = BoostedModel::default();
    let mut text = String::new();
    for _ in 0..4 {
        let candidates = strategy.propose(8, &model);
        let mut samples = Vec::new();
        for candidate in &candidates {
            text += &candidate.trace.to_string();
            strategy.learn(candidate, seconds(candidate));
            let features = candidate.features.clone();
            samples.push(Sample { task: 1, features, seconds: seconds(candidate) });
        }
        model.update(&samples);
    }
    text
}

#[test]
fn the_number_of_threads_changes_nothing() {
    for (name, make) in strategies() {
        let alone = proposals(&make, 1);
        assert!(alone.len() > 1000, "{name} proposes nothing");
        for threads in [2, 4] {
            assert!(
                proposals(&make, threads) == alone,
                "{name} with {threads} threads proposes something else"
            );
        }
    }
}

#[test]
fn nothing_is_proposed_twice() {
    for (name, make) in strategies() {
        let mut strategy = make(space(2));
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..4 {
            for candidate in strategy.propose(8, &RandomModel::new(3)) {
                assert!(seen.insert(candidate.hash), "{name} proposes a candidate again");
                strategy.learn(&candidate, None);
            }
        }
        assert!(strategy.statistics().generated >= seen.len() as u64);
    }
}

#[test]
fn replay_begins_with_the_traces_and_goes_on_with_other_decisions() {
    let mut statistics = Statistics::default();
    let given = space(1).draw(&mut tilewright_core::schedule::Rng::new(5), &mut statistics).expect("a point");
    let mut strategy = strategy::replay(vec![given.trace.clone()])(space(1));
    let candidates = strategy.propose(6, &RandomModel::new(1));
    assert_eq!(candidates[0].trace, given.trace);
    let kinds = |trace: &Trace| -> Vec<&str> {
        trace.without_postprocessing().steps().iter().map(|step| step.instruction.name()).collect()
    };
    for candidate in &candidates[1..] {
        assert_eq!(kinds(&candidate.trace), kinds(&given.trace));
        assert_ne!(candidate.trace, given.trace);
    }
}

/// Measures without a machine.
struct FakeRunner;

impl Runner for FakeRunner {
    fn measure(&mut self, candidates: &[Candidate]) -> Vec<Option<TrialOutcome>> {
        let measure = |candidate: &Candidate| match seconds(candidate) {
            Some(seconds) => TrialOutcome::Ok { seconds, spread: 0.0, max_relative_error: 0.0 },
            None => TrialOutcome::Failed { reason: "made_up".into(), message: String::new() },
        };
        candidates.iter().map(|candidate| Some(measure(candidate))).collect()
    }

    fn compare(&mut self, first: &Candidate, second: &Candidate) -> Option<(f64, f64)> {
        seconds(first).zip(seconds(second))
    }
}

struct Nobody;

impl TrialObserver for Nobody {
    fn measured(&mut self, _: &Trial<'_>) {}

    fn should_stop(&self) -> bool {
        false
    }
}

fn tuned(strategy: &MakeStrategy, model: &mut dyn CostModel, threads: usize) -> TuneResult {
    let spec = built_in();
    let method = Method { strategy: strategy.clone(), ..Method::evolutionary(&spec) };
    let options = TuneOptions { trials: 24, batch: 8, threads: Some(threads), ..TuneOptions::default() };
    tune(&task(), &method, model, &mut FakeRunner, &mut Nobody, &[], &options)
}

#[test]
fn whole_runs_are_equal_on_any_number_of_threads() {
    for (name, make) in strategies() {
        let runs: Vec<TuneResult> = [1, 2, 4]
            .into_iter()
            .map(|threads| tuned(&make, &mut BoostedModel::default(), threads))
            .collect();
        for run in &runs {
            assert_eq!((run.trials, run.end), (24, End::Trials), "{name}");
            let traces = |run: &TuneResult| -> Vec<String> {
                run.confirmed.iter().map(|(candidate, _)| candidate.trace.to_string()).collect()
            };
            assert_eq!(traces(run), traces(&runs[0]), "{name}");
            assert_eq!(run.statistics, runs[0].statistics, "{name}");
        }
    }
}

/// A model from outside the crate: it likes programs with many stores.
struct ManyStores {
    updates: usize,
}

impl CostModel for ManyStores {
    fn predict(&self, programs: &[ProgramFeatures]) -> Vec<f32> {
        programs.iter().map(|program| program.row_count() as f32).collect()
    }

    fn update(&mut self, samples: &[Sample]) {
        self.updates += samples.len();
    }
}

/// A strategy from outside the crate: the corners of each space, by a seed for each number.
struct Corners {
    space: SearchSpace,
    next: u64,
    statistics: Statistics,
}

impl Strategy for Corners {
    fn propose(&mut self, count: usize, _: &dyn CostModel) -> Vec<Candidate> {
        let (space, first) = (&self.space, self.next);
        self.next += count as u64;
        let made = space.generate(count, &mut self.statistics, |number, statistics| {
            let seed = first + number as u64;
            let trace = &space.spaces[number % space.spaces.len()];
            space.generator.generate(number % space.spaces.len(), trace, seed, |_, _| None, statistics)
        });
        made.into_iter().flatten().collect()
    }

    fn learn(&mut self, _: &Candidate, _: Option<f64>) {}

    fn statistics(&self) -> &Statistics {
        &self.statistics
    }
}

#[test]
fn strategies_and_models_of_others_can_be_used() {
    let make: MakeStrategy =
        Arc::new(|space| Box::new(Corners { space, next: 0, statistics: Statistics::default() }));
    let mut model = ManyStores { updates: 0 };
    let found = tuned(&make, &mut model, 2);
    assert_eq!((found.trials, model.updates), (24, 24));
    let best = found.best.expect("some candidates succeed");
    assert_eq!(seconds(&best.0), Some(best.1));
}

#[test]
fn evolution_measures_one_of_those_that_look_alike() {
    let mut strategy = strategy::evolutionary(small())(space(2));
    let mut looks = std::collections::BTreeSet::new();
    for round in 0..4 {
        for candidate in strategy.propose(8, &BoostedModel::default()) {
            assert!(looks.insert(candidate.features.fingerprint()), "round {round} proposes a look again");
            strategy.learn(&candidate, Some(1e-3));
        }
    }
    assert_eq!(looks.len(), 32);
}

#[test]
fn what_earlier_runs_measured_is_not_proposed_again() {
    for (name, make) in strategies() {
        let first = tuned(&make, &mut BoostedModel::default(), 1);
        let (best, seconds) = first.best.expect("some candidates succeed");
        let mut strategy = make(space(1));
        let earlier = Earlier { trace: best.trace.clone(), seconds: Some(seconds), rules: None };
        let replayed = space(1).replay(&earlier.trace, &mut Statistics::default()).expect("it was legal");
        assert_eq!(replayed.hash, best.hash, "{name}");
        strategy.learn(&replayed, earlier.seconds);
        let again = strategy.propose(24, &BoostedModel::default());
        assert!(again.iter().all(|candidate| candidate.hash != best.hash), "{name}");
    }
}

/// Proposes more than it is asked for.
struct Eager(Corners);

impl Strategy for Eager {
    fn propose(&mut self, count: usize, model: &dyn CostModel) -> Vec<Candidate> {
        self.0.propose(count + 5, model)
    }

    fn learn(&mut self, _: &Candidate, _: Option<f64>) {}

    fn statistics(&self) -> &Statistics {
        self.0.statistics()
    }
}

/// Scores nothing but the first.
struct Lazy;

impl CostModel for Lazy {
    fn predict(&self, programs: &[ProgramFeatures]) -> Vec<f32> {
        vec![1.0; programs.len().min(1)]
    }

    fn update(&mut self, _: &[Sample]) {}
}

#[test]
fn strategies_that_propose_too_much_and_models_that_score_too_little_do_no_harm() {
    let make: MakeStrategy =
        Arc::new(|space| Box::new(Eager(Corners { space, next: 0, statistics: Statistics::default() })));
    assert_eq!(tuned(&make, &mut BoostedModel::default(), 2).trials, 24);
    assert_eq!(tuned(&strategy::evolutionary(small()), &mut Lazy, 2).trials, 24);
}
