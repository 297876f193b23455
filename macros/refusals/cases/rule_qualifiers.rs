#![allow(unused)]

use tilewright::schedule_rule;
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_search::rule::{RuleExtension as _, RuleResult};

#[schedule_rule(target = "cpu")]
async unsafe extern "C" fn f(s: &mut Schedule, block: BlockRv) -> RuleResult {
    s.unchanged()
}

#[schedule_rule(target = "cpu")]
fn g<T>(s: &mut Schedule, block: BlockRv) -> RuleResult {
    s.unchanged()
}

fn main() {}
