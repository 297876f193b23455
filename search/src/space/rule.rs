//! Schedule rules: functions that make the design spaces of a program.
//!
//! A rule looks at one block of a schedule and does something to it, leaves it alone, or offers several
//! variants. Users' rules and built-in ones are written with the same attribute and stand in the same list;
//! rules are collected by linking ([`RuleSet::registered`]) or named explicitly ([`RuleSet::with`], [`RuleSet::before`]).

use tilewright_core::schedule::{BlockRv, Schedule, ScheduleError};
use tilewright_core::target::TargetKind;

use crate::space::chain::{Chain, ChainError, Named};

/// The result of a rule. When a primitive refuses, the rule counts as "unchanged".
pub type RuleResult = Result<RuleOutcome, ScheduleError>;

/// The outcome of a rule.
#[derive(Debug)]
pub enum RuleOutcome {
    /// Nothing; the schedule is used as it was before the rule.
    Unchanged,
    /// It has edited the schedule it was given.
    Changed,
    /// The design space forks: these schedules replace the given one.
    Variants(Vec<Schedule>),
}

/// Short forms for the end of a rule.
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
    /// The kind of target it is for: `cpu` or `gpu`, or `any` for every kind.
    pub target: &'static str,
    /// Rules that come before it, where present.
    pub after: &'static [&'static str],
    /// Rules that come after it, where present.
    pub before: &'static [&'static str],
    /// The rule that it replaces.
    pub replace: Option<&'static str>,
    /// The function.
    pub apply: RuleFunction,
    /// The path of the module it is written in.
    pub module: &'static str,
    /// The file it is written in.
    pub file: &'static str,
    /// The line it is written on.
    pub line: u32,
}

inventory::collect!(RuleEntry);

impl RuleEntry {
    /// Whether it is for a kind of target.
    pub fn serves(&self, kind: TargetKind) -> bool {
        self.target == ANY_TARGET || self.target == kind.name()
    }

    /// Whether it is a rule of this crate, which is trusted to end, and not one of a user.
    pub fn is_built_in(&self) -> bool {
        let own = env!("CARGO_CRATE_NAME");
        self.module.strip_prefix(own).is_some_and(|rest| rest.starts_with("::"))
    }
}

/// The target of rules that serve every kind.
const ANY_TARGET: &str = "any";

/// The reason why rules cannot be put in order.
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
    /// A rule names another one that is not linked into the program, for any target.
    #[error(
        "the schedule rule `{rule}` ({place}) says `{option} = \"{name}\"`, and there is no such rule; there are {known}"
    )]
    UnknownRule {
        /// The rule.
        rule: &'static str,
        /// Where it is.
        place: String,
        /// `after`, `before` or `replace`.
        option: &'static str,
        /// The name that it gives.
        name: &'static str,
        /// The names that there are.
        known: String,
    },
    /// `after` and `before` contradict each other.
    #[error("the order of the schedule rules {0} is circular; change their `after` or `before`")]
    Circular(String),
    /// A name is unknown, or taken.
    #[error(transparent)]
    Name(#[from] ChainError),
}

impl Named for RuleEntry {
    const KIND: &'static str = "schedule rule";

    fn name(&self) -> &'static str {
        self.name
    }
}

/// Rules in the order in which they are applied.
///
/// ```
/// use tilewright_core::target::TargetKind;
/// use tilewright_search::rule::RuleSet;
/// # use tilewright_search::cpu::rules::strip_rows::strip_rows;
///
/// let built_in = RuleSet::built_in(TargetKind::Cpu)?;
/// let small = built_in.clone().only(&["auto_inline", "multi_level_tiling"])?;
/// # let built_in = built_in.without("strip_rows")?;
/// let own = built_in.without("prefetch_inputs")?.before("multi_level_tiling", strip_rows::ENTRY)?;
///
/// let typo = small.without("auto_inlien").unwrap_err().to_string();
/// assert_eq!(typo, "there is no schedule rule `auto_inlien`; there are `auto_inline`, `multi_level_tiling`");
/// # Ok::<(), tilewright_search::rule::RuleSetError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    rules: Vec<RuleEntry>,
    /// Whether a user has arranged the rules. Their places then take precedence over the order that rules state.
    is_arranged: bool,
}

impl RuleSet {
    /// No rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// Every rule for a kind of target that is linked into the program: the built-in ones and users'.
    ///
    /// # Errors
    /// When two have one name, one names another that is not there, or their order is circular.
    pub fn registered(kind: TargetKind) -> Result<Self, RuleSetError> {
        let rules: Vec<RuleEntry> = inventory::iter::<RuleEntry>.into_iter().copied().collect();
        check_names(&rules)?;
        Self::of(rules, kind)
    }

    /// The rules among `rules` that serve a kind of target, in the order that they state by `after` and `before`.
    ///
    /// # Errors
    /// As [`RuleSet::registered`].
    pub fn of(rules: impl IntoIterator<Item = RuleEntry>, kind: TargetKind) -> Result<Self, RuleSetError> {
        Self::ordered(rules.into_iter().filter(|rule| rule.serves(kind)).collect(), &[])
    }

    /// The set with one more rule, at a place that fits its `after` and `before`.
    ///
    /// # Errors
    /// As [`RuleSet::registered`].
    pub fn with(mut self, rule: RuleEntry) -> Result<Self, RuleSetError> {
        let arranged: Vec<RuleEntry> = if self.is_arranged { self.rules.clone() } else { Vec::new() };
        self.rules.push(rule);
        Self::ordered(self.rules, &arranged)
    }

    /// The set with one more rule right before the named one, without regard to its `after` and `before`.
    ///
    /// # Errors
    /// When there is no rule of that name, or the new rule's name is taken.
    pub fn before(self, name: &str, rule: RuleEntry) -> Result<Self, RuleSetError> {
        self.arrange(|rules| rules.before(name, rule))
    }

    /// The set with one more rule right after the named one, without regard to its `after` and `before`.
    ///
    /// # Errors
    /// As [`RuleSet::before`].
    pub fn after(self, name: &str, rule: RuleEntry) -> Result<Self, RuleSetError> {
        self.arrange(|rules| rules.after(name, rule))
    }

    /// The set with another rule in the place of the named one. The new rule answers to both names.
    ///
    /// # Errors
    /// As [`RuleSet::before`]; the new rule may have the name of the replaced one.
    pub fn instead_of(self, name: &str, rule: RuleEntry) -> Result<Self, RuleSetError> {
        let replaced = self.rules.iter().map(|rule| rule.name).find(|known| *known == name);
        let replace = replaced.filter(|replaced| *replaced != rule.name);
        self.arrange(|rules| rules.instead_of(name, RuleEntry { replace, ..rule }))
    }

    /// The set without the named rule.
    ///
    /// # Errors
    /// When there is none.
    pub fn without(mut self, name: &str) -> Result<Self, RuleSetError> {
        self.rules = Chain::from(self.rules).without(name)?.into_elements();
        Ok(self)
    }

    /// The named rules alone, in the order that they had.
    ///
    /// # Errors
    /// When there is no rule of one of the names.
    pub fn only(mut self, names: &[&str]) -> Result<Self, RuleSetError> {
        self.rules = Chain::from(self.rules).only(names)?.into_elements();
        Ok(self)
    }

    /// The set without the named rule, if there is one.
    pub(crate) fn skipping(mut self, name: &str) -> Self {
        self.rules.retain(|rule| rule.name != name);
        self
    }

    fn arrange(
        self,
        change: impl FnOnce(Chain<RuleEntry>) -> Result<Chain<RuleEntry>, ChainError>,
    ) -> Result<Self, RuleSetError> {
        Ok(RuleSet { rules: change(self.rules.into())?.into_elements(), is_arranged: true })
    }

    /// The names of the rules, first applied first.
    pub fn names(&self) -> Vec<&'static str> {
        self.rules.iter().map(|rule| rule.name).collect()
    }

    /// The rules, first applied first.
    pub fn rules(&self) -> &[RuleEntry] {
        &self.rules
    }

    /// Sorts rules topologically. The order depends only on their `after` and `before`, since linking gives no order, and for
    /// arranged rules on their places.
    fn ordered(mut rules: Vec<RuleEntry>, arranged: &[RuleEntry]) -> Result<Self, RuleSetError> {
        rules.sort_by_key(|rule| (rule.name, rule.file, rule.line));
        rules.dedup_by_key(|rule| (rule.name, rule.file, rule.line));
        let replaced: Vec<&str> = rules.iter().filter_map(|rule| rule.replace).collect();
        let replacements: Vec<(&str, &str)> =
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
                let precedes = |other| match (place_of(arranged, other), place_of(arranged, rule)) {
                    (Some(other), Some(place)) => other < place,
                    _ => precedes(other, rule, &replacements),
                };
                !rules.iter().any(|other| other.name != rule.name && precedes(other))
            });
            match ready {
                Some(ready) => ordered.push(rules.remove(ready)),
                None => {
                    let names: Vec<String> = rules.iter().map(|rule| format!("`{}`", rule.name)).collect();
                    return Err(RuleSetError::Circular(names.join(", ")));
                }
            }
        }
        Ok(RuleSet { rules: ordered, is_arranged: !arranged.is_empty() })
    }
}

/// Refuses rules that name another one which is not among them: a name with a typing error would change nothing, silently.
fn check_names(rules: &[RuleEntry]) -> Result<(), RuleSetError> {
    let is_known = |name: &str| rules.iter().any(|rule| rule.name == name);
    for rule in rules {
        let replaced = rule.replace.as_slice();
        for (option, names) in [("after", rule.after), ("before", rule.before), ("replace", replaced)] {
            let Some(name) = names.iter().find(|name| !is_known(name)) else { continue };
            let mut known: Vec<String> = rules.iter().map(|rule| format!("`{}`", rule.name)).collect();
            known.sort();
            let (place, known) = (format!("{}:{}", rule.file, rule.line), known.join(", "));
            return Err(RuleSetError::UnknownRule { rule: rule.name, place, option, name, known });
        }
    }
    Ok(())
}

/// The place of a rule, or of the rule that it replaces.
fn place_of(arranged: &[RuleEntry], rule: &RuleEntry) -> Option<usize> {
    arranged.iter().position(|own| own.name == rule.name || Some(own.name) == rule.replace)
}

/// Whether `first` must come before `second`. A rule that replaces another also answers to its name.
fn precedes(first: &RuleEntry, second: &RuleEntry, replacements: &[(&str, &str)]) -> bool {
    let names = |list: &[&str], rule: &RuleEntry| {
        list.iter().any(|name| *name == rule.name || replacements.contains(&(*name, rule.name)))
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
            module: "test",
            file: "test",
            line: 1,
        }
    }

    fn ordered(rules: Vec<RuleEntry>) -> Result<RuleSet, RuleSetError> {
        RuleSet::ordered(rules, &[])
    }

    /// Rules whose stated order is that of their names.
    fn letters() -> RuleSet {
        ordered(vec![rule("a", &[], &["b"]), rule("b", &[], &["c"]), rule("c", &[], &[])]).unwrap()
    }

    #[test]
    fn order_follows_after_and_before_and_then_names() {
        let rules = vec![rule("c", &[], &["a"]), rule("b", &["a"], &[]), rule("a", &[], &[])];
        assert_eq!(ordered(rules).unwrap().names(), ["c", "a", "b"]);
    }

    #[test]
    fn names_of_rules_that_are_not_there_are_errors() {
        let good = [rule("auto_inline", &[], &["tile"]), rule("tile", &[], &[])];
        assert_eq!(check_names(&good), Ok(()));
        let late = rule("late", &["auto_inlin"], &[]);
        let error = check_names(&[good[0], good[1], late]).expect_err("there is none").to_string();
        assert_eq!(
            error,
            "the schedule rule `late` (test:1) says `after = \"auto_inlin\"`, and there is no such rule; there are \
             `auto_inline`, `late`, `tile`"
        );
        for (early, option) in [
            (rule("early", &[], &["til"]), "before"),
            (RuleEntry { replace: Some("til"), ..rule("early", &[], &[]) }, "replace"),
        ] {
            let error = check_names(&[good[0], good[1], early]).expect_err("there is none").to_string();
            assert!(error.contains(&format!("`{option} = \"til\"`")), "{error}");
        }
    }

    #[test]
    fn a_replacement_takes_the_place_of_the_other() {
        let replacement = RuleEntry { replace: Some("a"), ..rule("z", &[], &[]) };
        let set = ordered(vec![rule("a", &[], &[]), rule("b", &["a"], &[]), replacement]).unwrap();
        assert_eq!(set.names(), ["z", "b"]);
    }

    #[test]
    fn a_rule_for_any_target_serves_all_and_another_serves_its_own() {
        let rules = || ["cpu", "gpu", "any"].map(|target| RuleEntry { target, ..rule(target, &[], &[]) });
        assert_eq!(RuleSet::of(rules(), TargetKind::Cpu).unwrap().names(), ["any", "cpu"]);
        assert_eq!(RuleSet::of(rules(), TargetKind::Gpu).unwrap().names(), ["any", "gpu"]);
    }

    #[test]
    fn circular_order_and_equal_names_are_errors() {
        let circular = ordered(vec![rule("a", &["b"], &[]), rule("b", &["a"], &[])]);
        assert!(matches!(circular, Err(RuleSetError::Circular(_))), "{circular:?}");
        let twice = ordered(vec![rule("a", &[], &[]), RuleEntry { line: 2, ..rule("a", &[], &[]) }]);
        assert!(matches!(twice, Err(RuleSetError::DuplicateName { name: "a", .. })), "{twice:?}");
    }

    #[test]
    fn arranged_places_take_precedence_over_stated_order() {
        let says_first = rule("x", &[], &["a"]);
        assert_eq!(letters().with(says_first).unwrap().names(), ["x", "a", "b", "c"]);
        assert_eq!(letters().before("b", says_first).unwrap().names(), ["a", "x", "b", "c"]);
        assert_eq!(letters().after("b", says_first).unwrap().names(), ["a", "b", "x", "c"]);
        let set = letters().after("c", says_first).unwrap();
        assert_eq!(set.names(), ["a", "b", "c", "x"]);
        // One more rule goes to its stated place, and moves no other rule.
        let set = set.with(rule("y", &["b"], &["c"])).unwrap();
        assert_eq!(set.names(), ["a", "b", "y", "c", "x"]);
        assert_eq!(set.with(rule("z", &["x"], &[])).unwrap().names(), ["a", "b", "y", "c", "x", "z"]);
    }

    #[test]
    fn a_rule_that_is_put_in_anothers_place_answers_to_its_name() {
        let set = letters().instead_of("a", rule("x", &["c"], &[])).unwrap();
        assert_eq!(set.names(), ["x", "b", "c"]);
        assert_eq!(set.with(rule("d", &[], &["a"])).unwrap().names(), ["d", "x", "b", "c"]);
        let same = letters().instead_of("b", rule("b", &[], &[])).unwrap();
        assert_eq!(same.with(rule("d", &["a"], &["b"])).unwrap().names(), ["a", "d", "b", "c"]);
        let replacement = RuleEntry { replace: Some("b"), ..rule("x", &[], &[]) };
        let set = letters().before("a", rule("z", &[], &[])).unwrap().with(replacement).unwrap();
        assert_eq!(set.names(), ["z", "a", "x", "c"]);
    }

    #[test]
    fn rules_can_be_left_out_by_name() {
        assert_eq!(letters().without("b").unwrap().names(), ["a", "c"]);
        assert_eq!(letters().only(&["c", "b"]).unwrap().names(), ["b", "c"]);
        let error = letters().only(&["a", "bb"]).unwrap_err().to_string();
        assert_eq!(error, "there is no schedule rule `bb`; there are `a`, `b`, `c`");
        let taken = letters().before("a", rule("c", &[], &[])).unwrap_err();
        assert!(matches!(taken, RuleSetError::Name(ChainError::Duplicate { name: "c", .. })), "{taken:?}");
    }
}
