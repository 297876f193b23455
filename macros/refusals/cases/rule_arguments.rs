#![allow(unused)]

use tilewright::schedule_rule;
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_search::rule::{RuleExtension as _, RuleResult};

#[schedule_rule(target = "cpu")]
fn none() -> RuleResult {
    unimplemented!()
}

#[schedule_rule(target = "cpu")]
fn three(s: &mut Schedule, block: BlockRv, n: usize) -> RuleResult {
    s.unchanged()
}

#[schedule_rule(target = "cpu")]
fn types(s: &Schedule, block: usize) -> RuleResult {
    s.unchanged()
}

fn main() {}
