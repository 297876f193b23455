//! The data files: a workload as a program, and the sketches that MetaSchedule makes of it.

use std::collections::BTreeMap;

use tilewright_core::program::Program;

use crate::nest::Nest;

/// A data file.
pub(crate) struct Case {
    /// The workload, as a program of ours.
    pub(crate) program: Program,
    /// How many categories are drawn in each sketch; given where that is not MetaSchedule's one.
    pub(crate) categories: Option<Vec<usize>>,
    /// The sketches with published decisions.
    pub(crate) sketches: Vec<Sketch>,
    /// By the number of a sketch: what we make of it where that is something else.
    pub(crate) differences: BTreeMap<usize, Difference>,
}

/// Our result for a sketch with published decisions.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    /// Other loops.
    Nests(Vec<Nest>),
    /// The primitive that refuses.
    Refused(String),
    /// A decision is none of what is possible, and another one takes its place.
    Repaired,
}

/// A sketch with published decisions, and what it then is.
pub(crate) struct Sketch {
    /// The factors of each tile.
    pub(crate) tiles: Vec<Vec<i64>>,
    /// The number of the candidate that is chosen, and the candidates.
    pub(crate) category: (usize, Vec<i64>),
    /// Where blocks are computed.
    pub(crate) locations: Vec<i64>,
    /// The annotations for the postprocessors: parallel iterations, copies of statements, elements in lanes.
    pub(crate) notes: [i64; 3],
    /// The loops and blocks.
    pub(crate) nests: Vec<Nest>,
}

/// Reads a data file.
///
/// # Panics
/// When it is malformed.
pub(crate) fn read(text: &str) -> Case {
    let (head, rest) = text.split_once("\nprogram\n").expect("a line `program`");
    let (program, sketches) = rest.split_once("\nsketches\n").expect("a line `sketches`");
    let categories = head
        .lines()
        .find_map(|line| line.strip_prefix("categories "))
        .map(|line| numbers(before_reason(line)).into_iter().map(|count| count as usize).collect());
    let differences = head.split("\ndiffers ").skip(1).map(difference).collect();
    let program = program.trim().parse().unwrap_or_else(|error| panic!("{error}"));
    let sketches = sketches.split("\nsketch\n").skip(1).map(sketch).collect();
    Case { program, categories, sketches, differences }
}

/// The text before the colon; the reason for a difference must follow it.
fn before_reason(line: &str) -> &str {
    let (before, reason) = line.split_once(':').expect("a colon");
    assert!(!reason.trim().is_empty(), "a difference needs a reason: {line}");
    before
}

fn difference(text: &str) -> (usize, Difference) {
    let (line, nests) = text.split_once('\n').expect("what we make of it");
    let what = match nests.trim().strip_prefix("refused ") {
        Some(primitive) => Difference::Refused(primitive.to_owned()),
        None => Difference::Nests(Nest::read(nests)),
    };
    (number(before_reason(line)) as usize, what)
}

fn sketch(text: &str) -> Sketch {
    let of =
        |word: &'static str| text.lines().filter_map(move |line| line.strip_prefix(word)?.strip_prefix(' '));
    let category = of("category").next().expect("a category");
    let (choice, candidates) = category.split_once(" of ").expect("`category NUMBER of CANDIDATES`");
    let note: Vec<&str> = of("note").next().expect("notes").split(' ').collect();
    let [_, parallel, _, unroll, _, vectorize] = note[..] else { panic!("three notes: {note:?}") };
    let nests = text.split_once("\nnote ").and_then(|(_, rest)| rest.split_once('\n')).expect("nests").1;
    Sketch {
        tiles: of("tile").map(numbers).collect(),
        category: (number(choice) as usize, numbers(candidates)),
        locations: of("location").map(number).collect(),
        notes: [parallel, unroll, vectorize].map(number),
        nests: Nest::read(nests),
    }
}

fn numbers(text: &str) -> Vec<i64> {
    text.split_whitespace().map(number).collect()
}

fn number(text: &str) -> i64 {
    text.trim().parse().unwrap_or_else(|error| panic!("`{text}`: {error}"))
}
