//! Schedule rules: functions that span the space of schedules.
//!
//! A rule looks at one block of a schedule and does something to it, leaves it alone, or offers several
//! variants. Users' rules and built-in ones are written with the same attribute and stand in the same list;
//! rules are collected by linking ([`RuleSet::registered`]) or named explicitly ([`RuleSet::with`]).

use tilewright_core::schedule::{BlockRv, Schedule, ScheduleError};
use tilewright_core::target::TargetKind;

/// What a rule answers. A refusal of a primitive counts as "unchanged".
pub type RuleResult = Result<RuleOutcome, ScheduleError>;

/// What a rule has done.
#[derive(Debug)]
pub enum RuleOutcome {
    /// Nothing; the schedule is used as it was before the rule.
    Unchanged,
    /// It has edited the schedule it was given.
    Changed,
    /// The space forks: each of these takes the place of the schedule.
    Variants(Vec<Schedule>),
}

/// Short ways to end a rule.
pub trait RuleExtension {
    /// The rule does not apply.
    ///
    /// # Errors
    /// Never; it is a result so that a rule can end with it.
    fn unchanged(&self) -> RuleResult;

    /// The rule has edited the schedule.
    ///
    /// # Errors
    /// Never; it is a result so that a rule can end with it.
    fn changed(&self) -> RuleResult;
}

impl RuleExtension for Schedule {
    fn unchanged(&self) -> RuleResult {
        Ok(RuleOutcome::Unchanged)
    }

    fn changed(&self) -> RuleResult {
        Ok(RuleOutcome::Changed)
    }
}

/// A rule's function.
pub type RuleFunction = fn(&mut Schedule, BlockRv) -> RuleResult;

/// A schedule rule, as `#[schedule_rule]` registers it.
#[derive(Clone, Copy, Debug)]
pub struct RuleEntry {
    /// The rule's name, unique in a set.
    pub name: &'static str,
    /// The kind of target it is for: `cpu` or `gpu`.
    pub target: &'static str,
    /// Rules that come before it, where present.
    pub after: &'static [&'static str],
    /// Rules that come after it, where present.
    pub before: &'static [&'static str],
    /// A rule that it stands in for.
    pub replace: Option<&'static str>,
    /// What it does.
    pub apply: RuleFunction,
    /// The file it is written in.
    pub file: &'static str,
    /// The line it is written on.
    pub line: u32,
}

inventory::collect!(RuleEntry);

/// Why rules cannot be put in order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleSetError {
    /// Two rules have one name.
    #[error(
        "two schedule rules are named `{name}`: {first} and {second}; rename one or let it `replace` the other"
    )]
    DuplicateName {
        /// The name.
        name: &'static str,
        /// Where the first is.
        first: String,
        /// Where the second is.
        second: String,
    },
    /// `after` and `before` contradict each other.
    #[error("the order of the schedule rules {0} is circular; change their `after` or `before`")]
    Circular(String),
}

/// Rules in the order in which they are applied.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    rules: Vec<RuleEntry>,
}

impl RuleSet {
    /// No rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// Every rule for a kind of target that is linked into the program: the built-in ones and users'.
    ///
    /// # Errors
    /// When two have one name, or their order is circular.
    pub fn registered(kind: TargetKind) -> Result<Self, RuleSetError> {
        let rules = inventory::iter::<RuleEntry>.into_iter().filter(|rule| rule.target == kind.name());
        Self::ordered(rules.copied().collect())
    }

    /// The built-in rules alone.
    ///
    /// # Errors
    /// As [`RuleSet::registered`].
    pub fn built_in(kind: TargetKind) -> Result<Self, RuleSetError> {
        Self::ordered(crate::rules::all().into_iter().filter(|rule| rule.target == kind.name()).collect())
    }

    /// The set with one more rule, put in order.
    ///
    /// # Errors
    /// As [`RuleSet::registered`].
    pub fn with(mut self, rule: RuleEntry) -> Result<Self, RuleSetError> {
        self.rules.push(rule);
        Self::ordered(self.rules)
    }

    /// The set without the rule of a name.
    pub fn without(mut self, name: &str) -> Self {
        self.rules.retain(|rule| rule.name != name);
        self
    }

    /// The rules, first applied first.
    pub fn rules(&self) -> &[RuleEntry] {
        &self.rules
    }

    /// Puts rules in an order that depends only on what they say of themselves: linking gives them in none.
    fn ordered(mut rules: Vec<RuleEntry>) -> Result<Self, RuleSetError> {
        rules.sort_by_key(|rule| (rule.name, rule.file, rule.line));
        rules.dedup_by_key(|rule| (rule.name, rule.file, rule.line));
        let replaced: Vec<&str> = rules.iter().filter_map(|rule| rule.replace).collect();
        let stand_ins: Vec<(&str, &str)> =
            rules.iter().filter_map(|rule| Some((rule.replace?, rule.name))).collect();
        rules.retain(|rule| !replaced.contains(&rule.name));
        if let Some(pair) = rules.windows(2).find(|pair| pair[0].name == pair[1].name) {
            let place = |rule: &RuleEntry| format!("{}:{}", rule.file, rule.line);
            return Err(RuleSetError::DuplicateName {
                name: pair[0].name,
                first: place(&pair[0]),
                second: place(&pair[1]),
            });
        }
        let mut ordered: Vec<RuleEntry> = Vec::new();
        while !rules.is_empty() {
            let ready = rules.iter().position(|rule| {
                !rules.iter().any(|other| other.name != rule.name && precedes(other, rule, &stand_ins))
            });
            match ready {
                Some(ready) => ordered.push(rules.remove(ready)),
                None => {
                    let names: Vec<String> = rules.iter().map(|rule| format!("`{}`", rule.name)).collect();
                    return Err(RuleSetError::Circular(names.join(", ")));
                }
            }
        }
        Ok(RuleSet { rules: ordered })
    }
}

/// Whether `first` must come before `second`. A rule that replaces another also answers to its name.
fn precedes(first: &RuleEntry, second: &RuleEntry, stand_ins: &[(&str, &str)]) -> bool {
    let names = |list: &[&str], rule: &RuleEntry| {
        list.iter().any(|name| *name == rule.name || stand_ins.contains(&(*name, rule.name)))
    };
    names(second.after, first) || names(first.before, second)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(
        name: &'static str,
        after: &'static [&'static str],
        before: &'static [&'static str],
    ) -> RuleEntry {
        RuleEntry {
            name,
            target: "cpu",
            after,
            before,
            replace: None,
            apply: |schedule, _| schedule.unchanged(),
            file: "test",
            line: 1,
        }
    }

    fn names(set: &RuleSet) -> Vec<&str> {
        set.rules().iter().map(|rule| rule.name).collect()
    }

    #[test]
    fn order_follows_after_and_before_and_then_names() {
        let rules = vec![rule("c", &[], &["a"]), rule("b", &["a"], &[]), rule("a", &[], &[])];
        assert_eq!(names(&RuleSet::ordered(rules).unwrap()), ["c", "a", "b"]);
    }

    #[test]
    fn a_replacement_takes_the_place_of_the_other() {
        let stand_in = RuleEntry { replace: Some("a"), ..rule("z", &[], &[]) };
        let set = RuleSet::ordered(vec![rule("a", &[], &[]), rule("b", &["a"], &[]), stand_in]).unwrap();
        assert_eq!(names(&set), ["z", "b"]);
    }

    #[test]
    fn circular_order_and_equal_names_are_errors() {
        let circular = RuleSet::ordered(vec![rule("a", &["b"], &[]), rule("b", &["a"], &[])]);
        assert!(matches!(circular, Err(RuleSetError::Circular(_))), "{circular:?}");
        let twice = RuleSet::ordered(vec![rule("a", &[], &[]), RuleEntry { line: 2, ..rule("a", &[], &[]) }]);
        assert!(matches!(twice, Err(RuleSetError::DuplicateName { name: "a", .. })), "{twice:?}");
    }
}
