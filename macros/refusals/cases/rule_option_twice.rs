#![allow(unused)]

use tilewright::schedule_rule;
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_search::rule::{RuleExtension as _, RuleResult};

#[schedule_rule(target = "cpu", after = "a", after = "b")]
fn f(s: &mut Schedule, block: BlockRv) -> RuleResult {
    s.unchanged()
}

#[schedule_rule(target = "cpu", target = "gpu")]
fn g(s: &mut Schedule, block: BlockRv) -> RuleResult {
    s.unchanged()
}

fn main() {}
