//! Hill climbing on the draft model's score: points of design spaces are drawn, and changed for the better.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashSet, FxHasher};
use tilewright_core::schedule::{Decision, Instruction, Rng, Schedule, Step, Trace};

use crate::explore::candidate::{Candidate, Generator, Statistics};
use crate::space::mutate::{self, Change};

/// The weights of the moves: all tiles of a block are redrawn, the location of a block is redrawn, or a mutator changes one
/// decision. Mutators seldom draw locations, of which there are few among the decisions; each is worth as much as a whole tile.
const MOVES: [f64; 3] = [2.0, 1.0, 5.0];

/// How spaces drop out while points are drawn (successive halving: Karnin, Koren and Somekh, "Almost optimal exploration in
/// multi-armed bandits", 2013). The spaces that stay get the points of those that dropped out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Halving {
    /// So few spaces all stay.
    pub(super) few: usize,
    /// Points of each space between two times at which the worse half drops out.
    pub(super) period: usize,
}

/// The draft model's score of a candidate.
pub(super) fn score(candidate: &Candidate) -> f32 {
    candidate.features.prior()
}

/// A search for a candidate with a high score.
pub(super) struct Climb {
    generator: Generator,
    rng: Rng,
    /// The decisions of each point so far: the same ones make the same program, which is not postprocessed and described again.
    tried: FxHashSet<u64>,
    /// The programs of the points that were drawn.
    drawn: FxHashSet<u64>,
}

impl Climb {
    pub(super) fn new(generator: Generator) -> Climb {
        Climb { generator, rng: Rng::new(0), tried: FxHashSet::default(), drawn: FxHashSet::default() }
    }

    /// Legal points of the spaces, aligned to the machine where they can be: `rounds` of each. The worse half of many spaces drops out
    /// now and then.
    pub(super) fn sample(
        &mut self,
        spaces: &[Trace],
        rounds: usize,
        halving: Option<Halving>,
    ) -> Vec<Candidate> {
        let mut found = Vec::new();
        let mut left: Vec<usize> = (0..spaces.len()).collect();
        let mut best = vec![f32::MIN; spaces.len()];
        for round in 1..=rounds {
            let points = spaces.len() / left.len().max(1);
            for &number in &left {
                for _ in 0..points {
                    let Some(made) = self.point(number, &spaces[number]) else { continue };
                    best[number] = best[number].max(score(&made));
                    found.push(made);
                }
            }
            if let Some(halving) = halving
                && left.len() > halving.few
                && round % halving.period == 0
            {
                left.sort_by(|a, b| best[*b].total_cmp(&best[*a]).then(a.cmp(b)));
                left.truncate(halving.few.max(left.len() / 2));
                left.sort_unstable();
            }
        }
        found
    }

    /// A legal point of a space that has not been drawn before.
    fn point(&mut self, number: usize, space: &Trace) -> Option<Candidate> {
        let drawn = self.rng.next_u64();
        let mut rng = Rng::new(drawn);
        let (program, context) = (&self.generator.program, &self.generator.context);
        let decide = |_: usize, step: &Step| self.generator.align(step, &mut rng);
        let schedule = space.replay_with(program, context, drawn, decide).ok()?;
        let made = self.complete(number, schedule);
        made.filter(|candidate| self.drawn.insert(candidate.hash))
    }

    /// The candidate that a replayed trace makes, unless another one had the same decisions.
    fn complete(&mut self, space: usize, schedule: Schedule) -> Option<Candidate> {
        let mut hasher = FxHasher::default();
        space.hash(&mut hasher);
        schedule.trace().decisions().for_each(|(_, decision)| decision.hash(&mut hasher));
        if !self.tried.insert(hasher.finish()) {
            return None;
        }
        self.generator.complete(space, schedule, &mut Statistics::default())
    }

    /// Tries changes, each of the best candidate so far: now and then all tiles of a block or a location, else one decision.
    pub(super) fn ascend(&mut self, start: Candidate, steps: usize) -> Candidate {
        let mut best = Start::of(start, &self.generator);
        for _ in 0..steps {
            let redrawn = match self.rng.weighted(&MOVES) {
                Some(0) => self.tiles_of_a_block(&best.candidate),
                Some(1) => self.location(&best.candidate),
                _ => Vec::new(),
            };
            let made =
                if redrawn.is_empty() { self.mutated(&mut best) } else { self.redrawn(&mut best, &redrawn) };
            if let Some(made) = made
                && score(&made) >= score(&best.candidate)
            {
                best = Start::of(made, &self.generator);
            }
        }
        best.candidate
    }

    /// A candidate with one other decision.
    fn mutated(&mut self, from: &mut Start) -> Option<Candidate> {
        let mutators = &self.generator.spec.mutators;
        let mutation = mutate::draw(&from.candidate.decisions, mutators, &mut self.rng)?;
        let decide = |number: usize, step: &Step| match (&mutation.change, number == mutation.step) {
            (Change::Decide(decision), true) => Some(decision.clone()),
            (Change::Resample, true) => None,
            _ => step.decision.clone(),
        };
        let schedule = from.changed(mutation.step, self.rng.next_u64(), decide)?;
        self.complete(from.candidate.space, schedule)
    }

    /// A candidate whose decisions for some steps are drawn anew: locations, and tiles where they can be aligned to the machine. The tiles
    /// of a block's loops belong together: the best tile of one loop depends on those of the others.
    fn redrawn(&mut self, from: &mut Start, steps: &[usize]) -> Option<Candidate> {
        let seed = self.rng.next_u64();
        let mut rng = Rng::new(seed);
        let decide = |number: usize, step: &Step| match steps.contains(&number) {
            true if is_location(step) => None,
            true => self.generator.align(step, &mut rng).or_else(|| step.decision.clone()),
            false => step.decision.clone(),
        };
        let schedule = from.changed(*steps.iter().min()?, seed, decide)?;
        self.complete(from.candidate.space, schedule)
    }

    /// The number of a step that draws a location, chosen at random among them; none where no step does.
    fn location(&mut self, candidate: &Candidate) -> Vec<usize> {
        let steps = candidate.decisions.steps().iter().enumerate();
        let mut locations: Vec<usize> =
            steps.filter(|(_, step)| is_location(step)).map(|(number, _)| number).collect();
        if locations.is_empty() {
            return locations;
        }
        vec![locations.swap_remove(self.rng.below(locations.len()))]
    }

    /// The numbers of the steps that draw tiles of one block's loops: of a block chosen at random among those with such steps.
    fn tiles_of_a_block(&mut self, candidate: &Candidate) -> Vec<usize> {
        let mut blocks: Vec<Vec<usize>> = Vec::new();
        for (number, step) in candidate.decisions.steps().iter().enumerate() {
            match &step.instruction {
                Instruction::GetLoops(_) => blocks.push(Vec::new()),
                _ if matches!(step.decision, Some(Decision::Tile(_))) => {
                    if let Some(block) = blocks.last_mut() {
                        block.push(number);
                    }
                }
                _ => {}
            }
        }
        blocks.retain(|steps| steps.len() > 1);
        if blocks.is_empty() { Vec::new() } else { blocks.swap_remove(self.rng.below(blocks.len())) }
    }
}

fn is_location(step: &Step) -> bool {
    matches!(step.decision, Some(Decision::Location(_)))
}

/// A candidate that is changed, with schedules on the way to it: a change of one step leaves everything before it as it is, and is
/// replayed from there.
struct Start {
    candidate: Candidate,
    /// By the number of the step that comes next.
    schedules: BTreeMap<usize, Schedule>,
}

impl Start {
    fn of(candidate: Candidate, generator: &Generator) -> Start {
        let unscheduled = Schedule::new(generator.program.clone(), &generator.context, 0);
        Start { candidate, schedules: BTreeMap::from([(0, unscheduled)]) }
    }

    /// The schedule that the candidate's trace makes with other decisions from a step on; see [`Trace::replay_with`].
    fn changed(
        &mut self,
        step: usize,
        seed: u64,
        decide: impl FnMut(usize, &Step) -> Option<Decision>,
    ) -> Option<Schedule> {
        let trace = &self.candidate.decisions;
        let (&begin, before) = self.schedules.range(..=step).next_back()?;
        let mut schedule = before.clone();
        if begin < step {
            trace.resume(&mut schedule, step, |_, step| step.decision.clone()).ok()?;
            self.schedules.insert(step, schedule.clone());
        }
        *schedule.rng() = Rng::new(seed);
        trace.resume(&mut schedule, trace.steps().len(), decide).ok()?;
        Some(schedule)
    }
}
