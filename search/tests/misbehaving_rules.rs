//! Rules of others that misbehave cost nothing but themselves, and are named.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tilewright_core::program::Program;
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_core::target::{Target, TargetKind};
use tilewright_search::rule::{RuleEntry, RuleExtension, RuleFunction, RuleOutcome, RuleResult, RuleSet};
use tilewright_search::space::{
    DesignSpaces, MAX_SPACES, Misbehaviour, RuleLimits, design_spaces, generate_design_spaces_within,
};

const SCALE: &str = r#"
kernel scale(in x: f32[64, 32], out y: f32[64, 32]) {
  for i in 0..64 {
    for j in 0..32 {
      block y(vi: spatial 64 = i, vj: spatial 32 = j) {
        y[vi, vj] = x[vi, vj] * 2.0
      }
    }
  }
}
"#;

fn panics(_: &mut Schedule, _: BlockRv) -> RuleResult {
    panic!("no such loop")
}

fn never_returns(_: &mut Schedule, _: BlockRv) -> RuleResult {
    loop {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn applies_without_end(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    loop {
        schedule.annotate(block, "again", 1)?;
        schedule.unannotate(block, "again")?;
    }
}

fn forks_at_once(schedule: &mut Schedule, _: BlockRv) -> RuleResult {
    Ok(RuleOutcome::Variants((0..1000).map(|_| schedule.fork()).collect()))
}

fn annotates(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    schedule.annotate(block, "seen", 1)?;
    schedule.changed()
}

fn rule(name: &'static str, apply: RuleFunction) -> RuleEntry {
    RuleEntry {
        name,
        target: "cpu",
        after: &[],
        before: &[],
        replace: None,
        apply,
        module: "tests",
        file: "tests.rs",
        line: 7,
    }
}

/// The time limit of rules that do not end. Rules that end have the usual limit: on a busy machine, the report of
/// a panic alone takes longer than this.
const PATIENCE: Duration = Duration::from_secs(1);

/// A rule that does not end is remembered by its name, so that each test has one of its own.
fn spanned(name: &'static str, apply: RuleFunction, limits: RuleLimits) -> DesignSpaces {
    let program: Program = SCALE.trim().parse().unwrap_or_else(|error| panic!("{error}"));
    let target = Arc::new(Target::generic_cpu());
    let built_in = RuleSet::built_in(TargetKind::Cpu).expect("the built-in rules are in order");
    let rules = built_in.clone().with(rule("well_behaved", annotates)).expect("the name is free");
    let expected = design_spaces(&program, &target, &rules, 1);
    let all = rules.with(rule(name, apply)).expect("the name is free");
    let spanned = generate_design_spaces_within(&program, &target, &all, 1, limits);
    assert_eq!(spanned.spaces, expected, "the spaces are those without the rule");
    assert!(spanned.spaces.iter().all(|space| space.to_string().contains("\"seen\"")));
    spanned
}

fn assert_fault(name: &'static str, apply: RuleFunction, misbehaviour: Misbehaviour, text: &str) {
    let time = match misbehaviour {
        Misbehaviour::Endless { limit } => limit,
        _ => RuleLimits::default().time,
    };
    let faults = spanned(name, apply, RuleLimits { time, ..RuleLimits::default() }).faults;
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!((faults[0].rule, &faults[0].misbehaviour), (name, &misbehaviour));
    let message = faults[0].to_string();
    assert!(message.contains(&format!("`{name}` (tests.rs:7)")) && message.contains(text), "{message}");
}

#[test]
fn a_rule_that_panics_is_skipped_with_its_message() {
    assert_fault(
        "panics",
        panics,
        Misbehaviour::Panicked("no such loop".into()),
        "panicked at the block `y`: no such loop",
    );
}

#[test]
fn a_rule_that_never_returns_is_abandoned() {
    assert_fault(
        "never_returns",
        never_returns,
        Misbehaviour::Endless { limit: PATIENCE },
        "did not come to an end within 1 s",
    );
}

#[test]
fn a_rule_that_applies_primitives_without_end_is_stopped() {
    assert_fault(
        "applies_without_end",
        applies_without_end,
        Misbehaviour::TooManySteps,
        "more than 4096 primitives",
    );
}

#[test]
fn a_rule_that_forks_without_end_is_skipped() {
    assert_fault(
        "forks_at_once",
        forks_at_once,
        Misbehaviour::Forks { most: 64 },
        "more than 64 variants at the block `y`",
    );
}

static STARTS: AtomicUsize = AtomicUsize::new(0);

fn counts_and_never_returns(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    STARTS.fetch_add(1, Ordering::Relaxed);
    never_returns(schedule, block)
}

#[test]
fn a_rule_that_never_returns_is_started_once() {
    let limits = RuleLimits { time: PATIENCE, ..RuleLimits::default() };
    let first = spanned("never_again", counts_and_never_returns, limits).faults;
    let again = spanned("never_again", counts_and_never_returns, limits).faults;
    assert_eq!(first, again, "it is reported each time");
    assert_eq!(STARTS.load(Ordering::Relaxed), 1);
}

/// Variants that differ in an annotation.
fn fork(schedule: &Schedule, block: BlockRv, key: &str, count: i64) -> RuleResult {
    let variant = |number| {
        let mut variant = schedule.clone();
        variant.annotate(block, key, number)?;
        Ok(variant)
    };
    Ok(RuleOutcome::Variants((0..count).map(variant).collect::<Result<_, _>>()?))
}

fn forks_much(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    fork(schedule, block, "much", 64)
}

fn forks_a_little(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    fork(schedule, block, "little", 8)
}

#[test]
fn a_rule_is_not_blamed_for_what_others_forked() {
    let program: Program = SCALE.trim().parse().unwrap_or_else(|error| panic!("{error}"));
    let target = Arc::new(Target::generic_cpu());
    let little = RuleEntry { after: &["much"], ..rule("little", forks_a_little) };
    let rules = RuleSet::new().with(rule("much", forks_much)).and_then(|rules| rules.with(little));
    let rules = rules.expect("the rules are in order");
    let spanned = generate_design_spaces_within(&program, &target, &rules, 1, RuleLimits::default());
    assert_eq!(spanned.faults, []);
    assert_eq!(spanned.spaces.len(), MAX_SPACES);
    assert!(spanned.spaces.iter().all(|space| space.to_string().contains("\"little\"")));
}
