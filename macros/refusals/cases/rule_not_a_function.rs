#![allow(unused)]

use tilewright::schedule_rule;
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_search::rule::{RuleExtension as _, RuleResult};

#[schedule_rule(target = "cpu")]
const RULE: Option<(BlockRv, RuleResult, Schedule)> = None;

fn main() {}
