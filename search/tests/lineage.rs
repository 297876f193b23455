//! The names of the rules that made a candidate stay with what the search makes of it.

use std::collections::BTreeSet;

use tilewright_core::program::Program;
use tilewright_core::target::{Target, TargetKind};
use tilewright_search::candidate::Candidate;
use tilewright_search::default_schedule::default_with_rules;
use tilewright_search::model::BoostedModel;
use tilewright_search::rule::RuleSet;
use tilewright_search::space::{DesignSpaces, generate_design_spaces};
use tilewright_search::spec::SearchSpec;
use tilewright_search::strategy;
use tilewright_search::strategy::EvolutionOptions;
use tilewright_search::tuner::{
    Earlier, Method, Runner, Start, Task, Trial, TrialObserver, TrialOutcome, TuneOptions, tune,
};

const MATMUL: &str = "kernel matmul(in a: f32[96, 80], in b: f32[80, 64], out c: f32[96, 64]) {
  for i in 0..96 {
    for j in 0..64 {
      for k in 0..80 {
        block c(vi: spatial 96 = i, vj: spatial 64 = j, vk: reduce 80 = k) {
          init { c[vi, vj] = 0.0 }
          c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
        }
      }
    }
  }
}
";

fn task() -> Task {
    let program: Program = MATMUL.parse().expect("the program is well-formed");
    Task { id: program.stable_hash(), program, context: Target::generic_cpu().into() }
}

fn rules() -> RuleSet {
    RuleSet::built_in(TargetKind::Cpu).expect("the built-in rules are in order")
}

fn spec() -> SearchSpec {
    SearchSpec::new(TargetKind::Cpu, rules())
}

/// Finds everything equally fast.
struct Constant;

impl Runner for Constant {
    fn measure(&mut self, candidates: &[Candidate]) -> Vec<Option<TrialOutcome>> {
        let found = TrialOutcome::Ok { seconds: 1e-3, spread: 0.0, max_relative_error: 0.0 };
        candidates.iter().map(|_| Some(found.clone())).collect()
    }

    fn compare(&mut self, _: &Candidate, _: &Candidate) -> Option<(f64, f64)> {
        None
    }
}

/// The rules of each trial, joined.
#[derive(Default)]
struct Lineages(BTreeSet<Option<String>>);

impl TrialObserver for Lineages {
    fn measured(&mut self, trial: &Trial<'_>) {
        assert!(trial.predicted.is_finite());
        self.0.insert(trial.rules.map(|rules| rules.join("+")));
    }

    fn should_stop(&self) -> bool {
        false
    }
}

/// The lineages of the trials of a search that begins with traces and with what earlier runs measured.
fn lineages(starts: Vec<Start>, earlier: &[Earlier], fresh: bool) -> BTreeSet<Option<String>> {
    let spec = spec();
    // Without random candidates everything comes from what the search begins with.
    let measured_share = if fresh { 0.25 } else { 1.0 };
    let population = if fresh { 24 } else { starts.len() + earlier.len() };
    let options = EvolutionOptions { population, measured_share, ..EvolutionOptions::default() };
    let strategy = strategy::evolutionary(options);
    let method = Method { strategy, starts, ..Method::evolutionary(&spec) };
    let options = TuneOptions { trials: 8, batch: 8, threads: Some(1), ..TuneOptions::default() };
    let mut seen = Lineages::default();
    tune(&task(), &method, &mut BoostedModel::default(), &mut Constant, &mut seen, earlier, &options);
    seen.0
}

#[test]
fn each_space_is_known_by_its_rules() {
    let Task { program, context, .. } = task();
    let DesignSpaces { spaces, rules: names, .. } = generate_design_spaces(&program, &context, &rules(), 1);
    assert_eq!(spaces.len(), names.len());
    let all = rules();
    let known: Vec<&str> = all.rules().iter().map(|rule| rule.name).collect();
    for (space, names) in spaces.iter().zip(&names) {
        assert!(names.iter().all(|name| known.contains(name)), "{names:?}");
        let is_tiled = space.to_string().contains("sample_perfect_tile");
        assert!(is_tiled || !names.contains(&"multi_level_tiling"), "{names:?}\n{space}");
    }
    assert!(names.iter().any(|names| names.contains(&"multi_level_tiling")), "{names:?}");
    // Nothing is tiled where nothing is summed up.
    let scale = "kernel scale(in x: f32[64], out y: f32[64]) {
  for i in 0..64 {
    block y(vi: spatial 64 = i) {
      y[vi] = x[vi] * 2.0
    }
  }
}
";
    let DesignSpaces { rules: names, .. } =
        generate_design_spaces(&scale.parse().expect("a program"), &context, &all, 1);
    let names: BTreeSet<&str> = names.into_iter().flatten().collect();
    assert!(
        !names.contains("multi_level_tiling") && names.contains("parallelize_vectorize_unroll"),
        "{names:?}"
    );
}

#[test]
fn mutations_keep_the_rules_of_what_they_are_made_of() {
    let Task { program, context, .. } = task();
    let (default, names) = default_with_rules(&program, &context, &spec()).expect("some candidate is legal");
    assert!(!names.is_empty());
    let fresh = lineages(Vec::new(), &[], true);
    assert!(!fresh.contains(&None) && !fresh.is_empty(), "{fresh:?}");
    let mine = |name: &str| Some(vec![name.to_owned(), "another".to_owned()]);
    let trace = default.trace;
    let earlier = Earlier { trace: trace.clone(), seconds: Some(1e-3), rules: mine("earlier") };
    let seen = lineages(Vec::new(), std::slice::from_ref(&earlier), false);
    assert_eq!(seen, [Some("earlier+another".to_owned())].into());
    let start = |rules| vec![Start { trace: trace.clone(), rules }];
    let seen = lineages(start(mine("start")), &[], false);
    assert_eq!(seen, [Some("start+another".to_owned())].into());
    assert_eq!(lineages(start(None), &[], false), [None].into());
    let unknown = Earlier { rules: None, ..earlier };
    assert_eq!(lineages(Vec::new(), &[unknown], false), [None].into());
}
