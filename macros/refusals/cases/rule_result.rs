#![allow(unused)]

use tilewright::schedule_rule;
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_search::rule::{RuleExtension as _, RuleResult};

#[schedule_rule(target = "cpu")]
fn f(s: &mut Schedule, block: BlockRv) {
    drop(s.unchanged())
}

#[schedule_rule(target = "cpu")]
fn g(s: &mut Schedule, block: BlockRv) -> Result<(), String> {
    Ok(())
}

fn main() {}
