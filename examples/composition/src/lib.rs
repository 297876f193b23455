//! Schedule rules in a crate of their own: what an expert adds to the space that Tilewright searches, without touching
//! Tilewright.
//!
//! Linking the crate is enough to have its rules applied wherever kernels are tuned ([`RuleSet::registered`]); a tuner can also
//! be given a set in which each rule has its place ([`RuleSet::before`], [`RuleSet::after`], [`RuleSet::instead_of`]).
//! `cargo bench -p tilewright-example-rules` measures what each rule is worth, those that are built in and the one that is here.
//!
//! [`RuleSet::registered`]: tilewright::search::rule::RuleSet::registered
//! [`RuleSet::before`]: tilewright::search::rule::RuleSet::before
//! [`RuleSet::after`]: tilewright::search::rule::RuleSet::after
//! [`RuleSet::instead_of`]: tilewright::search::rule::RuleSet::instead_of

pub mod functions;
pub mod strips;
