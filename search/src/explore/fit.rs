//! Fits the schedule of one shape to another shape, without a search.

use tilewright_core::schedule::{Decision, Rng, Step, Trace};

use crate::explore::candidate::{Candidate, Generator, Statistics};

/// The number of attempts with aligned tiles.
const ATTEMPTS: u64 = 16;

/// The candidate of a trace of another shape. Tiles that do not divide the loops are repaired. When that candidate is refused, for
/// example because repaired tiles need too many registers, tiles aligned to the machine replace those of the trace. `None` when
/// all candidates are refused; `statistics` count the reasons.
pub fn fit(generator: &Generator, trace: &Trace, statistics: &mut Statistics) -> Option<Candidate> {
    let decisions = trace.without_postprocessing();
    let is_symbolic = generator.program.dims().next().is_some();
    let as_it_is = |_: usize, step: &Step| match &step.decision {
        // Lowering cannot leave out the comparisons of padding where sizes are unknown: every product would make one.
        Some(decision) if is_symbolic && *decision == Decision::INLINE => Some(Decision::STAY),
        decision => decision.clone(),
    };
    if let Some(found) = generator.generate(0, &decisions, 0, as_it_is, statistics) {
        return Some(found);
    }
    let Generator { program, context, .. } = generator;
    let (_, repaired) = decisions.replay_with(program, context, 0, as_it_is).ok()?.into_parts();
    let can_be_drawn = |step: &Step| generator.align(step, &mut Rng::new(0)).is_some();
    let attempts = if repaired.steps().iter().any(can_be_drawn) { ATTEMPTS } else { 0 };
    (0..attempts).find_map(|seed| {
        let mut rng = Rng::new(seed);
        let aligned =
            |place: usize, step: &Step| generator.align(step, &mut rng).or_else(|| as_it_is(place, step));
        generator.generate(0, &repaired, seed, aligned, statistics)
    })
}
