#![allow(unused)]

use tilewright::schedule_rule;
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_search::rule::{RuleExtension as _, RuleResult};

#[schedule_rule(target = "cpu", priority = 10)]
fn f(s: &mut Schedule, block: BlockRv) -> RuleResult {
    s.unchanged()
}

#[schedule_rule("cpu")]
fn g(s: &mut Schedule, block: BlockRv) -> RuleResult {
    s.unchanged()
}

fn main() {}
