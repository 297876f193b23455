//! Rules of users: registered by linking, and named explicitly.

use tilewright::schedule_rule;
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_core::target::TargetKind;
use tilewright_search::rule::{RuleExtension, RuleResult, RuleSet};

/// Documented.
#[schedule_rule(target = "cpu", after = "auto_inline", before = ["parallelize_vectorize_unroll"])]
pub(crate) fn look_around(s: &mut Schedule, _block: BlockRv) -> RuleResult {
    s.unchanged()
}

#[schedule_rule(target = "any", after = "auto_inline")]
fn everywhere(s: &mut Schedule, _: BlockRv) -> RuleResult {
    s.unchanged()
}

#[schedule_rule(target = "gpu", name = "elsewhere", replace = "add_rfactor")]
fn for_another_machine(s: &mut Schedule, _block: BlockRv) -> RuleResult {
    s.changed()
}

fn names(rules: &RuleSet) -> Vec<&'static str> {
    rules.rules().iter().map(|rule| rule.name).collect()
}

#[test]
fn a_linked_rule_is_found_for_its_target() {
    let cpu = names(&RuleSet::registered(TargetKind::Cpu).expect("the rules can be ordered"));
    assert!(cpu.contains(&"look_around"), "it is missing among {cpu:?}");
    assert!(!cpu.contains(&"elsewhere"), "it is for another target: {cpu:?}");
    let gpu = RuleSet::registered(TargetKind::Gpu).expect("the rules can be ordered");
    assert!(cpu.contains(&"everywhere") && names(&gpu).contains(&"everywhere"), "it is for every target");
    let rule = gpu.rules().iter().find(|rule| rule.name == "elsewhere").expect("it is for this target");
    assert_eq!((rule.replace, rule.after.len()), (Some("add_rfactor"), 0));
}

#[test]
fn a_rule_can_be_named_explicitly() {
    let rules = RuleSet::built_in(TargetKind::Cpu)
        .and_then(|rules| rules.with(look_around::ENTRY))
        .expect("the rules can be ordered");
    let names = names(&rules);
    let place = |name: &str| names.iter().position(|other| *other == name).expect("it is in the set");
    assert!(place("auto_inline") < place("look_around"), "{names:?}");
    assert!(place("look_around") < place("parallelize_vectorize_unroll"), "{names:?}");
}

#[test]
fn an_entry_tells_where_it_is_written() {
    assert!(look_around::ENTRY.file.ends_with("rule.rs"), "{}", look_around::ENTRY.file);
    assert!((8..=12).contains(&look_around::ENTRY.line), "{}", look_around::ENTRY.line);
    assert_eq!(for_another_machine::ENTRY.target, "gpu");
}
