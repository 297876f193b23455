//! The published design spaces of MetaSchedule's CPU workloads, against ours under the same rules. `README.md` beside this
//! file says what is compared and where the data is from.

mod case;
mod features;
mod grids;
mod nest;
mod rules;

use std::fs;
use std::path::Path;

use tilewright_core::analysis::scope::blocks;
use tilewright_core::program::Program;
use tilewright_core::schedule::{Decision, Instruction, Step, Trace};
use tilewright_core::stmt::{Annotation, Block};
use tilewright_core::target::RunContext;
use tilewright_search::space::design_spaces;

use case::{Case, Difference, Sketch, read};
use nest::Nest;

/// The data files, by workload.
fn cases() -> Vec<(String, Case)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/sketches");
    let entries = fs::read_dir(folder).expect("the folder is there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("it is readable").path()).collect();
    paths.sort();
    let name = |path: &Path| path.file_stem().expect("a name").to_string_lossy().into_owned();
    let text = |path: &Path| fs::read_to_string(path).expect("it is text");
    paths.iter().map(|path| (name(path), read(&text(path)))).collect()
}

/// The decisions of a space: the parts of each tile, the candidates of each category, the number of locations.
type Arities = (Vec<usize>, Vec<Vec<i64>>, usize);

fn arities(space: &Trace) -> Arities {
    let (mut tiles, mut candidates, mut locations) = (Vec::new(), Vec::new(), 0);
    for step in space.steps() {
        match (&step.instruction, &step.decision) {
            (_, Some(Decision::Tile(factors))) => tiles.push(factors.len()),
            (Instruction::SampleCategorical(drawn), _) => candidates.push(drawn.candidates.clone()),
            (_, Some(Decision::Location(_))) => locations += 1,
            _ => {}
        }
    }
    (tiles, candidates, locations)
}

/// The decisions that a sketch should take here.
fn wanted_arities(case: &Case, number: usize) -> Arities {
    let sketch = &case.sketches[number];
    let count = case.categories.as_ref().map_or(1, |counts| counts[number]);
    let tiles = sketch.tiles.iter().map(Vec::len).collect();
    (tiles, vec![sketch.category.1.clone(); count], sketch.locations.len())
}

/// A space with the published decisions, each kind in its order.
fn decided(case: &Case, context: &RunContext, space: &Trace, sketch: &Sketch) -> Result<Program, Difference> {
    let (mut tiles, mut locations) = (sketch.tiles.iter(), sketch.locations.iter());
    let mut taken = Vec::new();
    let decide = |_: usize, step: &Step| {
        let decision = match step.decision.as_ref()? {
            Decision::Tile(_) => Decision::Tile(tiles.next()?.clone()),
            Decision::Location(_) => Decision::Location(*locations.next()?),
            Decision::Choice(_) => Decision::Choice(sketch.category.0),
        };
        taken.push(decision.clone());
        Some(decision)
    };
    let drawn = space.replay_with(&case.program, context, 0, decide);
    let drawn = drawn.map_err(|error| Difference::Refused(error.name.to_owned()))?;
    let kept = drawn.trace().decisions().map(|(_, decision)| decision);
    if kept.eq(&taken) { Ok(drawn.program().clone()) } else { Err(Difference::Repaired) }
}

/// Checks that blocks say what the published root block says.
fn check_notes(program: &Program, sketch: &Sketch) {
    let note = |block: &Block, key: &str| match block.annotations.get(key) {
        Some(Annotation::Int(number)) => Some(*number),
        Some(other) => panic!("{key} is no number but {other:?}"),
        None => None,
    };
    let [parallel, unroll, vectorize] = sketch.notes;
    let mut unrolled = 0;
    for block in blocks(&program.body) {
        let notes = ["parallel", "vectorize"].map(|key| note(block, key));
        assert!(
            notes == [Some(parallel), Some(vectorize)] || notes == [None, None],
            "{}: {notes:?}",
            block.name
        );
        if let Some(found) = note(block, "unroll") {
            assert_eq!(found, unroll, "{}", block.name);
            unrolled += 1;
        }
    }
    assert!(unrolled > 0, "{program}");
}

#[test]
fn spaces_are_those_of_metaschedule() {
    let (context, rules) = (rules::context(), rules::rule_set());
    let cases = cases();
    assert_eq!(cases.iter().map(|(_, case)| case.sketches.len()).sum::<usize>(), 45);
    for (name, case) in cases {
        let mut spaces = design_spaces(&case.program, &context, &rules, 1);
        assert_eq!(spaces.len(), case.sketches.len(), "{name}");
        // Sketches for which our result is the same come first: a space stands for one sketch.
        let mut order: Vec<usize> = (0..case.sketches.len()).collect();
        order.sort_by_key(|number| case.differences.contains_key(number));
        for number in order {
            let sketch = &case.sketches[number];
            let wanted = wanted_arities(&case, number);
            let mut others = Vec::new();
            let found = spaces.iter().position(|space| {
                let found = arities(space);
                if found != wanted {
                    others.push(format!("decisions {found:?} instead of {wanted:?}"));
                    return false;
                }
                let outcome = decided(&case, &context, space, sketch).map(|program| {
                    check_notes(&program, sketch);
                    Nest::of(&program)
                });
                let is_it = match (case.differences.get(&number), &outcome) {
                    (None, Ok(nests)) => *nests == sketch.nests,
                    (Some(Difference::Nests(own)), Ok(nests)) => nests == own,
                    (Some(own), Err(refused)) => refused == own,
                    _ => false,
                };
                others.push(outcome.map_or_else(|refused| format!("{refused:?}"), |nests| text(&nests)));
                is_it
            });
            let found = found.unwrap_or_else(|| {
                panic!("{name}, sketch {number}: none of\n{}\nis\n{}", others.join("\n"), text(&sketch.nests))
            });
            spaces.remove(found);
        }
    }
}

fn text(nests: &[Nest]) -> String {
    nests.iter().map(ToString::to_string).collect()
}
