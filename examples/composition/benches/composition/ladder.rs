//! The spaces of the experiment: each has one more rule than the one before.

use std::path::Path;

use tilewright::core::target::TargetKind;
use tilewright::search::rule::{RuleEntry, RuleSet, RuleSetError};
use tilewright_example_rules::strips::products_in_strips;

/// The built-in rules in the order in which they are added. A later rule depends on earlier ones, or matters to
/// fewer kernels.
const ORDER: &[&str] = &[
    "custom_rule",
    "inline_constant_scalars",
    "auto_inline",
    "parallelize_vectorize_unroll",
    "multi_level_tiling",
    "auto_tensorize",
    "split_products",
    "add_rfactor",
    "reduce_in_lanes",
    "separate_residues",
    "random_compute_location",
    "strip_rows",
    "tile_transposed",
    "stream_results",
    "prefetch_inputs",
];

/// A space of the experiment.
pub(crate) struct Rung {
    /// The rule that it has beyond the space before; `None` for the first, which has no rules.
    pub(crate) rule: Option<RuleEntry>,
    /// All its rules.
    pub(crate) rules: RuleSet,
}

/// The spaces, smallest first: without any rule, with one more built-in rule each, and with the rule of this crate.
pub(crate) fn rungs() -> Result<Vec<Rung>, RuleSetError> {
    let built_in = RuleSet::built_in(TargetKind::Cpu)?;
    // Rules that are newer than the list come after it.
    let rest = ORDER.iter().try_fold(built_in.clone(), |rest, name| rest.without(name))?;
    let order: Vec<&str> = ORDER.iter().copied().chain(rest.names()).collect();
    let mut rungs = vec![Rung { rule: None, rules: RuleSet::new() }];
    for count in 1..=order.len() {
        let rules = built_in.clone().only(&order[..count])?;
        let rule = rules.rules().iter().find(|rule| rule.name == order[count - 1]).copied();
        rungs.push(Rung { rule, rules });
    }
    let rules = built_in.with(products_in_strips::ENTRY)?;
    rungs.push(Rung { rule: Some(products_in_strips::ENTRY), rules });
    Ok(rungs)
}

/// The lines of code of the file that a rule is written in, without comments, blank lines and tests. Code that rules share is not
/// counted. `None` where the sources are not at hand.
pub(crate) fn lines_of_code(rule: &RuleEntry) -> Option<usize> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?;
    let text = std::fs::read_to_string(root.join(rule.file)).ok()?;
    let code = text.split("#[cfg(test)]").next().unwrap_or(&text);
    let counts = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    Some(code.lines().filter(counts).count())
}
