#![allow(unused)]

use tilewright::schedule_rule;
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_search::rule::{RuleExtension as _, RuleResult};

#[schedule_rule(target = "cpu", after = 3)]
fn f(s: &mut Schedule, block: BlockRv) -> RuleResult {
    s.unchanged()
}

#[schedule_rule(target, before = ["a", 2])]
fn g(s: &mut Schedule, block: BlockRv) -> RuleResult {
    s.unchanged()
}

#[schedule_rule(target = "cpu", replace = ["a", "b"], name = "")]
fn h(s: &mut Schedule, block: BlockRv) -> RuleResult {
    s.unchanged()
}

fn main() {}
