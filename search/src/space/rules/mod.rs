//! The built-in schedule rules that serve every device: one file each.

pub mod add_rfactor;
pub mod auto_inline;
pub(crate) mod block;
pub mod custom_rule;
pub mod inline_constant_scalars;
pub(crate) mod tiles;

use crate::space::rule::RuleEntry;

/// Every built-in rule that serves every device.
pub(crate) fn all() -> Vec<RuleEntry> {
    vec![
        custom_rule::custom_rule::ENTRY,
        inline_constant_scalars::inline_constant_scalars::ENTRY,
        auto_inline::auto_inline::ENTRY,
        add_rfactor::add_rfactor::ENTRY,
    ]
}
