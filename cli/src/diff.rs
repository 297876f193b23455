//! `tilewright diff`: the decisions in which two records differ.

use std::collections::HashMap;

use similar::{Algorithm, DiffOp, TextDiff, capture_diff_slices};
use tilewright::core::schedule::{Step, Trace};
use tilewright::tuning::replay;

use crate::address::Address;
use crate::arguments::Diff;
use crate::records::{Found, Wanted};
use crate::words::outcome;
use crate::{Failure, Outcome};

/// A step without its decision and the numbers of variables, which depend on the steps before it.
fn shape(step: &Step) -> String {
    let instruction = step.renamed(|_| 0);
    Step { instruction, first_output: 0, outputs: step.outputs, decision: None }.to_string()
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

/// Decisions that differ, side by side, and steps that only one trace has.
fn traces(first: &Trace, second: &Trace) -> String {
    let differences = Differences::of(first, second);
    let Differences { decisions, steps } = &differences;
    let mut text = String::new();
    if decisions.is_empty() && steps.is_empty() {
        text += "the traces are equal\n";
    }
    if !decisions.is_empty() {
        text += "\ndecisions (A | B):\n";
        let or_none =
            |step: &Step| step.decision.as_ref().map_or_else(|| "–".to_owned(), ToString::to_string);
        let width = decisions.iter().map(|(a, _)| or_none(a).chars().count()).max().unwrap_or(0);
        for (a, b) in decisions {
            let undecided = Step { decision: None, ..Step::clone(a) };
            text += &format!("  {:<width$} | {}   {undecided}\n", or_none(a), or_none(b));
        }
    }
    if !steps.is_empty() {
        text += "\nsteps of A alone (-) and of B alone (+):\n";
        for (sign, step) in steps {
            text += &format!("  {sign} {step}\n");
        }
    }
    text
}

/// The differences of two traces.
#[derive(Default)]
struct Differences<'t> {
    /// The same step with two decisions.
    decisions: Vec<(&'t Step, &'t Step)>,
    /// Steps that only the first trace has, and steps that only the second has.
    steps: Vec<(char, &'t Step)>,
}

impl<'t> Differences<'t> {
    /// Aligns the traces by the shapes of their steps. Two steps of one shape are the same when they use the
    /// same variables: the results of aligned steps.
    fn of(first: &'t Trace, second: &'t Trace) -> Self {
        let (a, b) = (first.steps(), second.steps());
        let shapes = |steps: &[Step]| steps.iter().map(shape).collect::<Vec<_>>();
        let mut found = Differences::default();
        let mut in_second: HashMap<u32, u32> = HashMap::new();
        for operation in capture_diff_slices(Algorithm::Myers, &shapes(a), &shapes(b)) {
            let (old, new) = (&a[operation.old_range()], &b[operation.new_range()]);
            if !matches!(operation, DiffOp::Equal { .. }) {
                found.steps.extend(old.iter().map(|step| ('-', step)));
                found.steps.extend(new.iter().map(|step| ('+', step)));
                continue;
            }
            for (a, b) in old.iter().zip(new) {
                // No trace has that many variables.
                let name = |number| in_second.get(&number).copied().unwrap_or(u32::MAX);
                if a.renamed(name) != b.instruction {
                    found.steps.extend([('-', a), ('+', b)]);
                } else if a.decision != b.decision {
                    found.decisions.push((a, b));
                }
                // A changed step keeps its place in the steps after it.
                in_second.extend(a.output_range().zip(b.output_range()));
            }
        }
        found
    }
}

fn scheduled(found: &Found, address: &Address) -> Outcome {
    let program = found.program(&address.path)?;
    let bound = replay::bind(program, &found.record.shape).map_err(Failure::new)?;
    let context = replay::context(found.record.target.threads).map_err(Failure::new)?;
    let scheduled = replay::schedule(&bound, &found.record.trace, &context).map_err(Failure::new)?;
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

    const BEGIN: &str = "%0 = get_block \"c\"\n%1, %2, %3 = get_loops %0\n";

    #[test]
    fn the_same_step_of_another_loop_is_another_step() {
        let begun = |steps: &str| trace(&format!("{BEGIN}{steps}"));
        let text = traces(&begun("parallel %1\n"), &begun("parallel %2\n"));
        assert_eq!(text, "\nsteps of A alone (-) and of B alone (+):\n  - parallel %1\n  + parallel %2\n");
        // The values that it produces are the same in the steps that follow.
        let split = |of| begun(&format!("%4, %5 = split {of}, [4, none]\nvectorize %5\n"));
        let text = traces(&split("%1"), &split("%2"));
        assert!(text.contains("- %4, %5 = split %1") && text.contains("+ %4, %5 = split %2"), "{text}");
        assert!(!text.contains("vectorize"), "{text}");
    }

    #[test]
    fn texts_of_annotations_are_not_taken_for_variables_or_decisions() {
        let noted = |text: &str| trace(&format!("{BEGIN}annotate loop %1, \"note\", \"{text}\"\n"));
        let (a, b) = (noted("%2 !decision [1]"), noted("%3 !decision [2]"));
        let text = traces(&a, &b);
        assert!(text.contains("- annotate") && text.contains("+ annotate"), "{text}");
    }

    #[test]
    fn traces_are_equal_only_when_nothing_differs() {
        let decided = |tile: &str, place: &str| {
            trace(&format!(
                "{BEGIN}%4, %5 = sample_perfect_tile {place}, 2, 64 !decision {tile}\n%6, %7 = split {place}, [%4, %5]\n"
            ))
        };
        let all = [
            trace(BEGIN),
            trace(&format!("{BEGIN}vectorize %2\n")),
            trace(&format!("{BEGIN}vectorize %3\n")),
            trace(&format!("{BEGIN}reorder [%2, %3]\n")),
            trace(&format!("{BEGIN}reorder [%3, %2]\n")),
            trace(&format!("{BEGIN}reorder [%3, %2]\nvectorize %2\n")),
            trace(&format!("{BEGIN}vectorize %2\nreorder [%3, %2]\n")),
            trace(&format!("{BEGIN}%4 = get_block \"c\"\n%5, %6, %7 = get_loops %4\nvectorize %6\n")),
            decided("[2, 8]", "%1"),
            decided("[4, 4]", "%1"),
            decided("[4, 4]", "%2"),
        ];
        for a in &all {
            for b in &all {
                assert_eq!(traces(a, b) == "the traces are equal\n", a == b, "{a}{b}{}", traces(a, b));
            }
        }
    }
}
