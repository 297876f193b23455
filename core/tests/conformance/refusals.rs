//! Refusals that TVM's tests of schedule primitives expect, compared with ours.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tilewright_core::interp::{Interpreter, Options};
use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::{Access, Program};
use tilewright_core::schedule::{Schedule, Trace};
use tilewright_core::target::Target;
use tilewright_core::tensor::AnyTensor;
use tilewright_core::verify::{Level, verify};

/// A paragraph of the data file about one refusal.
struct Case<'t> {
    /// The test and the number of the refusal in it.
    name: &'t str,
    ours: Ours<'t>,
}

/// Our answer.
enum Ours<'t> {
    /// The last step is refused, for a reason.
    Refused { program: &'t str, steps: String, reason: &'t str },
    /// Every step is allowed, and changes no result.
    Allowed { program: &'t str, steps: String },
    /// There can be no such program: its reader or the verifier says why.
    Invalid { program: &'t str, message: &'t str },
    /// Nothing here can be asked for it.
    Absent,
}

/// The text before the colon; a reason must follow it.
fn before_reason(line: &str) -> &str {
    let (before, reason) = line.split_once(": ").unwrap_or_else(|| panic!("a reason is missing: {line}"));
    assert!(reason.ends_with('.'), "a reason is missing: {line}");
    before
}

impl<'t> Case<'t> {
    fn read(paragraph: &'t str) -> Self {
        let (head, rest) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
        let (word, head) = head.split_once(' ').expect("a word and more");
        match word {
            "case" => {
                let (name, program) = head.split_once(" on ").expect("the name of a program");
                let (steps, outcome) =
                    rest.trim_end().rsplit_once('\n').expect("steps and what comes of them");
                let steps = format!("trace v1\n{steps}\n");
                let ours = match outcome.strip_prefix("refused ") {
                    Some(reason) => Ours::Refused { program, steps, reason },
                    None => {
                        assert_eq!(before_reason(outcome), "allowed", "{name}");
                        Ours::Allowed { program, steps }
                    }
                };
                Case { name, ours }
            }
            "invalid" => {
                let (name, program) = before_reason(head).split_once(" on ").expect("the name of a program");
                assert!(!rest.is_empty(), "{name}: a reason must follow the colon");
                Case { name, ours: Ours::Invalid { program, message: rest } }
            }
            "absent" => Case { name: before_reason(head), ours: Ours::Absent },
            other => panic!("`{other}` is no word of the format"),
        }
    }

    /// Says where we do something else.
    fn check(&self, programs: &BTreeMap<&str, Result<Program, String>>) -> Result<(), String> {
        let program =
            |name: &str| programs.get(name).unwrap_or_else(|| panic!("there is no program `{name}`"));
        let (name, steps, wanted) = match &self.ours {
            Ours::Refused { program, steps, reason } => (program, steps, Some(*reason)),
            Ours::Allowed { program, steps } => (program, steps, None),
            Ours::Invalid { program: name, message } => {
                return match program(name) {
                    Err(found) if found.contains(message) => Ok(()),
                    Err(found) => Err(found.clone()),
                    Ok(_) => Err(format!("`{name}` is a program")),
                };
            }
            Ours::Absent => return Ok(()),
        };
        let steps: Trace = steps.parse().map_err(|error| format!("{error}"))?;
        let mut schedule = Schedule::new(program(name).clone()?, Arc::new(Target::generic_cpu()), 0);
        let (last, before) = steps.steps().split_last().expect("a step");
        for step in before {
            schedule
                .push(step.instruction.clone(), step.decision.clone())
                .map_err(|error| format!("{step}: {error}"))?;
        }
        let unchanged = schedule.program().clone();
        let outcome = schedule.push(last.instruction.clone(), last.decision.clone());
        let found = outcome.as_ref().err().map(|error| error.reason());
        if found != wanted {
            return Err(format!("{found:?} instead of {wanted:?}"));
        }
        match outcome {
            Ok(_) => same_meaning(&program(name).clone()?, schedule.program()),
            Err(_) if *schedule.program() == unchanged => Ok(()),
            Err(_) => Err("the refusal changes the program".to_owned()),
        }
    }
}

/// Says where a scheduled program is none, or does something else than the program.
fn same_meaning(program: &Program, scheduled: &Program) -> Result<(), String> {
    verify(scheduled, Level::Blocks).map_err(|errors| errors.render(scheduled))?;
    let lowered = lower(scheduled, &LowerOptions::default()).map_err(|error| error.to_string())?;
    let arguments = arguments(program);
    let expected = execute(program, &arguments)?;
    for (level, other) in [("blocks", scheduled), ("flat", &lowered)] {
        if execute(other, &arguments)? != expected {
            return Err(format!("another result at level {level}"));
        }
    }
    Ok(())
}

/// Small whole numbers, which are added in any order without rounding.
fn arguments(program: &Program) -> Vec<AnyTensor> {
    let tensors = program.buffer_params().enumerate().map(|(seed, (id, access))| {
        let buffer = program.buffer(id);
        let extents =
            buffer.shape.iter().map(|extent| extent.as_constant().expect("a constant shape") as usize);
        let shape: Vec<usize> = extents.collect();
        match access {
            Access::Output => AnyTensor::zeros(buffer.dtype, &shape),
            _ => AnyTensor::random_indices(buffer.dtype, &shape, 8, seed as u64),
        }
    });
    tensors.collect::<Result<_, _>>().expect("small tensors")
}

/// The tensors after a run.
fn execute(program: &Program, arguments: &[AnyTensor]) -> Result<Vec<AnyTensor>, String> {
    let mut tensors = arguments.to_vec();
    let interpreter = Interpreter::new(program).map_err(|error| error.to_string())?;
    interpreter.run(Options::default(), &[], &[], &mut tensors).map_err(|error| error.to_string())?;
    Ok(tensors)
}

/// The programs by name, and the errors of texts that are none.
fn programs(text: &str) -> BTreeMap<&str, Result<Program, String>> {
    let named = text.split("\n\n").filter_map(|paragraph| paragraph.strip_prefix("program "));
    named
        .map(|paragraph| {
            let (name, text) = paragraph.split_once('\n').expect("a name and a program");
            let program = text.parse().map_err(|error| format!("{error}")).and_then(|program: Program| {
                verify(&program, Level::Blocks).map_err(|errors| errors.render(&program)).map(|()| program)
            });
            (name, program)
        })
        .collect()
}

#[test]
fn what_tvm_refuses_is_refused_here_for_a_known_reason() {
    let text = include_str!("refusals.txt").trim();
    let programs = programs(text);
    let paragraphs = text.split("\n\n").filter(|paragraph| !paragraph.starts_with("program "));
    let cases: Vec<Case<'_>> = paragraphs.map(Case::read).collect();
    let mut wanted = BTreeSet::new();
    for line in include_str!("refusals_tvm.txt").lines() {
        let (test, count) = line.rsplit_once(' ').expect("a test and how often it is refused");
        let count: usize = count.parse().expect("a number");
        wanted.extend((1..=count).map(|number| format!("{test} {number}")));
    }
    let mut wrong = Vec::new();
    for case in &cases {
        if !wanted.remove(case.name) {
            wrong.push(format!("{}: TVM refuses no such thing, or it is here twice", case.name));
        }
        if let Err(problem) = case.check(&programs) {
            wrong.push(format!("{}: {problem}", case.name));
        }
    }
    wrong.extend(wanted.into_iter().map(|name| format!("{name}: nothing is said of it")));
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
