//! Points of the design spaces that the search makes.

use tilewright_core::program::Program;
use tilewright_core::schedule::{Rng, Step, Trace};
use tilewright_core::target::{RunContext, TargetKind};
use tilewright_search::candidate::{Candidate, Generator, Statistics};
use tilewright_search::space::design_spaces;
use tilewright_search::spec::SearchSpec;

/// Draws points of a program's spaces for which `is_wanted` holds, from each space in turn, and hands the legal ones to `check` until it has
/// seen `cases` of them; `TILEWRIGHT_CASES` asks for more.
pub(crate) fn draw_points(
    program: &Program,
    context: &RunContext,
    is_wanted: impl Fn(&Trace) -> bool,
    cases: usize,
    seed: u64,
    mut check: impl FnMut(&Candidate),
) {
    let spec = SearchSpec::built_in(TargetKind::Gpu).expect("a GPU can be searched");
    let mut spaces = design_spaces(program, context, &spec.rules, 1);
    spaces.retain(is_wanted);
    assert!(!spaces.is_empty(), "{program}");
    let generator = Generator::new(program.clone(), context.clone(), spec);
    let cases = std::env::var("TILEWRIGHT_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(cases);
    let (mut rng, mut statistics, mut executed) = (Rng::new(seed), Statistics::default(), 0);
    for number in 0..20 * cases {
        if executed >= cases {
            break;
        }
        let space = number % spaces.len();
        let (seed, mut own) = (rng.next_u64(), Rng::new(rng.next_u64()));
        let decide = |_: usize, step: &Step| generator.align(step, &mut own);
        if let Some(candidate) = generator.generate(space, &spaces[space], seed, decide, &mut statistics) {
            check(&candidate);
            executed += 1;
        }
    }
    println!("{}: {} spaces, {executed} executed, {statistics:?}", program.name, spaces.len());
    assert!(executed >= cases, "{executed} executed: {statistics:?}\n{program}");
}
