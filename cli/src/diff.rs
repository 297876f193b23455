//! `tilewright diff`: what two records decide differently.

use similar::{Algorithm, DiffOp, TextDiff, capture_diff_slices};
use tilewright::core::schedule::Trace;
use tilewright::tuning::replay;

use crate::address::Address;
use crate::arguments::Diff;
use crate::records::{Found, Wanted};
use crate::words::outcome;
use crate::{Failure, Outcome};

/// What separates a step from the decision that it took.
const DECISION: &str = " !decision ";

/// A step of a trace as text.
struct Step {
    /// Without the decision.
    instruction: String,
    decision: Option<String>,
}

impl Step {
    fn all(trace: &Trace) -> Vec<Step> {
        let text = trace.to_string();
        let step = |line: &str| match line.split_once(DECISION) {
            Some((instruction, decision)) => {
                Step { instruction: instruction.to_owned(), decision: Some(decision.to_owned()) }
            }
            None => Step { instruction: line.to_owned(), decision: None },
        };
        // The first line is the version.
        text.lines().skip(1).map(step).collect()
    }

    /// The instruction without the numbers of variables, which depend on how many came before.
    fn shape(&self) -> String {
        let mut shape = String::new();
        let mut in_name = false;
        for character in self.instruction.chars() {
            if !(in_name && character.is_ascii_digit()) {
                shape.push(character);
                in_name = character == '%';
            }
        }
        shape
    }
}

pub(crate) fn run(options: &Diff) -> Outcome {
    let first = Wanted::from(&options.first).find()?;
    let second = Wanted::from(&options.second).find()?;
    let mut text = format!("A: {}\nB: {}\n", title(&first), title(&second));
    if let (Some(a), Some(b)) = (first.record.median_ns(), second.record.median_ns()) {
        text += &format!("B takes {:.2} × the time of A\n", b / a);
    }
    if first.record.program != second.record.program {
        text += "they are of different programs\n";
    }
    text += &traces(&first.record.trace, &second.record.trace);
    if options.program {
        let (a, b) = (scheduled(&first, &options.first)?, scheduled(&second, &options.second)?);
        let diff = TextDiff::from_lines(&a, &b);
        let unified = diff.unified_diff().context_radius(3).header("A", "B").to_string();
        text += match a == b {
            true => "\nthe scheduled programs are equal\n",
            false => "\nscheduled programs:\n",
        };
        text += &unified;
    }
    Ok(text)
}

fn title(found: &Found) -> String {
    format!("{}, trial {}: {}", found.series.title(), found.record.provenance.trial, outcome(&found.record))
}

/// Decisions that differ, side by side, and steps that are in one trace alone.
fn traces(first: &Trace, second: &Trace) -> String {
    let (a, b) = (Step::all(first), Step::all(second));
    let shapes = |steps: &[Step]| steps.iter().map(Step::shape).collect::<Vec<_>>();
    let operations = capture_diff_slices(Algorithm::Myers, &shapes(&a), &shapes(&b));
    let (mut decisions, mut only) = (Vec::new(), String::new());
    for operation in operations {
        if let DiffOp::Equal { old_index, new_index, len } = operation {
            let pairs = a[old_index..old_index + len].iter().zip(&b[new_index..new_index + len]);
            decisions.extend(pairs.filter(|(a, b)| a.decision != b.decision));
            continue;
        }
        for (sign, steps) in [('-', &a[operation.old_range()]), ('+', &b[operation.new_range()])] {
            for Step { instruction, decision } in steps {
                let decision = decision.as_ref().map(|decision| format!("{DECISION}{decision}"));
                only += &format!("  {sign} {instruction}{}\n", decision.unwrap_or_default());
            }
        }
    }
    let mut text = String::new();
    if decisions.is_empty() && only.is_empty() {
        text += "the traces are equal\n";
    }
    if !decisions.is_empty() {
        text += "\ndecisions (A | B):\n";
        let or_none = |step: &Step| step.decision.clone().unwrap_or_else(|| "–".to_owned());
        let width = decisions.iter().map(|(a, _)| or_none(a).chars().count()).max().unwrap_or(0);
        for (a, b) in decisions {
            text += &format!("  {:<width$} | {}   {}\n", or_none(a), or_none(b), a.instruction);
        }
    }
    if !only.is_empty() {
        text += "\nsteps of A alone (-) and of B alone (+):\n";
        text += &only;
    }
    text
}

fn scheduled(found: &Found, address: &Address) -> Outcome {
    let program = found.program(&address.path)?;
    let bound = replay::bind(program, &found.record.shape).map_err(Failure::new)?;
    let target = replay::target(found.record.target.threads).map_err(Failure::new)?;
    let scheduled = replay::schedule(&bound, &found.record.trace, &target).map_err(Failure::new)?;
    Ok(scheduled.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(steps: &str) -> Trace {
        format!("trace v1\n{steps}").parse().expect("a trace")
    }

    #[test]
    fn numbers_of_variables_do_not_count() {
        let a = trace(
            "%0 = get_block \"c\"\n%1, %2 = get_loops %0\n%3, %4 = sample_perfect_tile %1, 2, 64 !decision [2, 32]\n\
             %5, %6 = split %1, [%3, %4]\nvectorize %6\n",
        );
        let b = trace(
            "%0 = get_block \"c\"\n%1, %2 = get_loops %0\nparallel %1\n%3 = get_block \"c\"\n\
             %4, %5 = sample_perfect_tile %1, 2, 64 !decision [4, 16]\n%6, %7 = split %1, [%4, %5]\nvectorize %7\n",
        );
        let text = traces(&a, &b);
        assert!(text.contains("[2, 32] | [4, 16]   %3, %4 = sample_perfect_tile %1, 2, 64"), "{text}");
        assert!(text.contains("  + parallel %1\n  + %3 = get_block \"c\"\n"), "{text}");
        assert!(!text.contains("vectorize"), "{text}");
        assert_eq!(traces(&a, &a), "the traces are equal\n");
    }
}
