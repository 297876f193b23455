//! Mutations of PTX text: each leaves out one instruction that orders threads, or one predicate.

/// The opcodes, up to a dot, of instructions that only order accesses or wait.
const ORDERING: [&str; 11] = [
    "bar.sync",
    "bar.warp.sync",
    "barrier.sync",
    "barrier.cluster",
    "cp.async.wait_group",
    "cp.async.wait_all",
    "cp.async.commit_group",
    "cp.async.bulk.wait_group",
    "membar",
    "fence",
    "griddepcontrol.wait",
];

/// A place in a text where something can be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mutation {
    /// The number of the line, from 0.
    pub(super) line: usize,
    pub(super) kind: Kind,
}

/// The part that is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The whole instruction, which orders threads or waits.
    Ordering,
    /// The predicate of an instruction, as `@p` or `@!p`.
    Predicate(String),
}

/// All mutations of a text in which each instruction has its line.
pub(super) fn find(ptx: &str) -> Vec<Mutation> {
    let mut found = Vec::new();
    for (line, text) in ptx.lines().enumerate() {
        let (guard, instruction) = split_guard(text);
        if let Some(guard) = guard {
            found.push(Mutation { line, kind: Kind::Predicate(guard.to_owned()) });
        }
        let opcode = instruction.split([' ', ';']).next().unwrap_or_default();
        let is_ordering = |name: &str| {
            opcode.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if ORDERING.into_iter().any(is_ordering) {
            found.push(Mutation { line, kind: Kind::Ordering });
        }
    }
    found
}

/// The predicate of a line, if there is one, and the instruction.
fn split_guard(text: &str) -> (Option<&str>, &str) {
    let text = text.trim();
    match text.split_once(' ') {
        Some((guard, rest)) if guard.starts_with('@') => (Some(guard), rest.trim_start()),
        _ => (None, text),
    }
}

impl Mutation {
    /// The text without the part. All lines keep their numbers.
    pub(super) fn apply(&self, ptx: &str) -> String {
        self.replace(ptx, |text| match self.kind {
            Kind::Ordering => String::new(),
            Kind::Predicate(_) => split_guard(text).1.to_owned(),
        })
    }

    /// The text with a trap for threads that reach the instruction and for which its predicate does not hold.
    pub(super) fn trapping(&self, ptx: &str) -> Option<String> {
        let Kind::Predicate(guard) = &self.kind else { return None };
        let opposite = match guard.strip_prefix("@!") {
            Some(predicate) => format!("@{predicate}"),
            None => guard.replacen('@', "@!", 1),
        };
        Some(self.replace(ptx, |text| format!("{opposite} trap; {text}")))
    }

    fn replace(&self, ptx: &str, new: impl Fn(&str) -> String) -> String {
        let lines = ptx.lines().enumerate().map(|(number, text)| match number == self.line {
            true => new(text.trim()),
            false => text.to_owned(),
        });
        lines.collect::<Vec<String>>().join("\n")
    }
}

#[test]
fn mutations_are_found_and_leave_one_part_out() {
    let ptx = "a:\n    @!%p1 bra b;\n    bar.sync 0;\n    bar.synchronous 0;\n    @%p2 fence.acq_rel.gpu;\nb:\n    ret;";
    let found = find(ptx);
    let lines: Vec<usize> = found.iter().map(|mutation| mutation.line).collect();
    assert_eq!(lines, [1, 2, 4, 4]);
    assert!(found[0].apply(ptx).starts_with("a:\nbra b;\n    bar.sync 0;"));
    assert!(found[0].trapping(ptx).unwrap().starts_with("a:\n@%p1 trap; @!%p1 bra b;\n"));
    assert!(found[1].apply(ptx).contains("bra b;\n\n    bar.synchronous"));
    assert!(found[1].trapping(ptx).is_none());
    assert!(found[2].trapping(ptx).unwrap().contains("@!%p2 trap; @%p2 fence"));
    assert!(found[3].apply(ptx).contains("bar.synchronous 0;\n\nb:"));
}
