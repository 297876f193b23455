//! Evolutionary search: which candidates to measure next.
//!
//! Follows MetaSchedule's search (population, genetic rounds, ε-greedy picks) with two differences: parents
//! are drawn by rank instead of by score, since a ranking model's scores have no scale; and every slot of a
//! population has a random stream of its own, so that the result does not depend on the number of threads.

use std::num::NonZeroUsize;

use rustc_hash::FxHashSet;
use tilewright_core::schedule::{Rng, Step, Trace};

use crate::candidate::{Candidate, Generator, Statistics};
use crate::model::CostModel;
use crate::mutate::{self, Change, Mutator};
use crate::seed;

/// The share of random points whose register tiles are aligned to the machine.
const ALIGNED_SHARE: f64 = 0.5;

/// The sizes of the search.
#[derive(Clone, Debug, PartialEq)]
pub struct EvolutionOptions {
    /// Candidates in a population.
    pub population: usize,
    /// Genetic rounds per proposal.
    pub generations: usize,
    /// The share of a population that starts from the best measured candidates.
    pub measured_share: f64,
    /// The probability that a slot mutates its parent rather than keeping it.
    pub mutation_probability: f64,
    /// How often a mutation that is refused is drawn again.
    pub mutation_attempts: usize,
    /// The share of picks that are random instead of best.
    pub random_share: f64,
    /// Threads that generate candidates.
    pub threads: usize,
}

impl Default for EvolutionOptions {
    fn default() -> Self {
        EvolutionOptions {
            population: 256,
            generations: 3,
            measured_share: 0.25,
            mutation_probability: 0.85,
            mutation_attempts: 5,
            random_share: 0.05,
            threads: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
        }
    }
}

/// The state of a search over the design spaces of one program.
#[derive(Debug)]
pub struct Evolution {
    generator: Generator,
    spaces: Vec<Trace>,
    mutators: &'static [Mutator],
    options: EvolutionOptions,
    seed: u64,
    round: u64,
    /// Hashes of programs that were proposed before.
    proposed: FxHashSet<u64>,
    /// Measured candidates, fastest first.
    measured: Vec<(f64, usize, Trace)>,
    /// What became of the candidates so far.
    pub statistics: Statistics,
}

/// How a slot of a population is filled.
enum Slot<'a> {
    /// A random point of a design space.
    Random,
    /// A trace as it is.
    Keep(usize, &'a Trace),
    /// A mutation of a trace.
    Mutate(usize, &'a Trace),
}

impl Evolution {
    /// A search over given design spaces. The same seed and the same measurements give the same proposals.
    pub fn new(generator: Generator, spaces: Vec<Trace>, options: EvolutionOptions, seed: u64) -> Self {
        Evolution {
            generator,
            spaces,
            mutators: mutate::CPU,
            options,
            seed,
            round: 0,
            proposed: FxHashSet::default(),
            measured: Vec::new(),
            statistics: Statistics::default(),
        }
    }

    /// The design spaces.
    pub fn spaces(&self) -> &[Trace] {
        &self.spaces
    }

    /// Tells the search how fast a candidate is. Its program is not proposed again.
    pub fn record(&mut self, hash: u64, space: usize, decisions: &Trace, seconds: f64) {
        self.proposed.insert(hash);
        let place = self.measured.partition_point(|(other, ..)| *other <= seconds);
        self.measured.insert(place, (seconds, space, decisions.clone()));
    }

    /// Says that a program need not be proposed again, without a time for it.
    pub fn forget(&mut self, hash: u64) {
        self.proposed.insert(hash);
    }

    /// Up to `count` candidates that were not proposed before, the most promising first. Empty when the
    /// spaces seem exhausted.
    pub fn propose(&mut self, count: usize, model: &dyn CostModel) -> Vec<Candidate> {
        let pool = self.pool(model);
        let picks = self.pick(pool, count);
        self.proposed.extend(picks.iter().map(|candidate| candidate.hash));
        picks
    }

    /// The most promising candidate of one proposal, whichever design space it is from.
    pub fn propose_best(&mut self, model: &dyn CostModel) -> Option<Candidate> {
        self.pool(model).into_iter().next().map(|(_, candidate)| candidate)
    }

    /// The candidates of all generations of one proposal, best first.
    fn pool(&mut self, model: &dyn CostModel) -> Vec<(f32, Candidate)> {
        self.round += 1;
        let mut population = self.first_population();
        let mut pool: Vec<(f32, Candidate)> = Vec::new();
        let mut pooled = FxHashSet::default();
        for generation in 0..=self.options.generations {
            let features: Vec<_> = population.iter().map(|candidate| candidate.features.clone()).collect();
            let scores = model.predict(&features);
            for (candidate, score) in population.iter().zip(&scores) {
                if !self.proposed.contains(&candidate.hash) && pooled.insert(candidate.hash) {
                    pool.push((*score, candidate.clone()));
                }
            }
            if generation < self.options.generations && !population.is_empty() {
                population = self.next_population(&population, &scores, generation as u64);
            }
        }
        pool.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.hash.cmp(&b.1.hash)));
        pool
    }

    /// The best measured candidates and random ones.
    fn first_population(&mut self) -> Vec<Candidate> {
        let size = self.options.population;
        let kept = (size as f64 * self.options.measured_share) as usize;
        let measured: Vec<(usize, Trace)> =
            self.measured.iter().take(kept).map(|(_, space, trace)| (*space, trace.clone())).collect();
        let slots = measured.iter().map(|(space, trace)| Slot::Keep(*space, trace));
        let slots: Vec<Slot<'_>> = slots.chain(std::iter::repeat_with(|| Slot::Random)).take(size).collect();
        self.fill(&slots, u64::MAX)
    }

    /// Children of a population, parents drawn by rank.
    fn next_population(
        &mut self,
        population: &[Candidate],
        scores: &[f32],
        generation: u64,
    ) -> Vec<Candidate> {
        let mut ranked: Vec<usize> = (0..population.len()).collect();
        ranked.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
        // The best tenth of the population parents about two thirds of the next.
        let decay = (-10.0 / population.len() as f64).exp();
        let weights: Vec<f64> = (0..ranked.len()).map(|rank| decay.powi(rank as i32)).collect();
        let mut rng = self.stream(generation, u64::MAX);
        let slots: Vec<Slot<'_>> = (0..self.options.population)
            .map(|_| {
                let rank = rng.weighted(&weights).unwrap_or(0);
                let parent = &population[ranked[rank]];
                if rng.unit() < self.options.mutation_probability {
                    Slot::Mutate(parent.space, &parent.decisions)
                } else {
                    Slot::Keep(parent.space, &parent.decisions)
                }
            })
            .collect();
        self.fill(&slots, generation)
    }

    fn stream(&self, generation: u64, slot: u64) -> Rng {
        let mut rng = Rng::stream(self.seed, self.round);
        let mut inner = Rng::stream(rng.next_u64(), generation);
        Rng::stream(inner.next_u64(), slot)
    }

    /// Generates the candidates of slots, on several threads, in the order of the slots.
    fn fill(&mut self, slots: &[Slot<'_>], generation: u64) -> Vec<Candidate> {
        let threads = self.options.threads.clamp(1, slots.len().max(1));
        let share = slots.len().div_ceil(threads).max(1);
        let this = &*self;
        let parts: Vec<(Vec<Candidate>, Statistics)> = std::thread::scope(|scope| {
            let workers: Vec<_> = slots
                .chunks(share)
                .enumerate()
                .map(|(part, chunk)| {
                    scope.spawn(move || {
                        let mut statistics = Statistics::default();
                        let first = part * share;
                        let filled = chunk.iter().enumerate().filter_map(|(number, slot)| {
                            let rng = this.stream(generation, (first + number) as u64);
                            this.fill_slot(slot, rng, &mut statistics)
                        });
                        (filled.collect(), statistics)
                    })
                })
                .collect();
            workers
                .into_iter()
                .map(|worker| worker.join().expect("candidate generation does not panic"))
                .collect()
        });
        let mut candidates = Vec::with_capacity(slots.len());
        for (part, statistics) in parts {
            candidates.extend(part);
            self.statistics.merge(&statistics);
        }
        candidates
    }

    fn fill_slot(&self, slot: &Slot<'_>, mut rng: Rng, statistics: &mut Statistics) -> Option<Candidate> {
        match slot {
            Slot::Random => (0..self.options.mutation_attempts).find_map(|_| {
                let space = rng.below(self.spaces.len().max(1));
                let trace = self.spaces.get(space)?;
                let seed = rng.next_u64();
                let is_aligned = rng.unit() < ALIGNED_SHARE;
                let target = &self.generator.target;
                let decide = |_: usize, step: &Step| {
                    is_aligned.then(|| seed::aligned(step, target, &mut rng)).flatten()
                };
                self.generator.generate(space, trace, seed, decide, statistics)
            }),
            Slot::Keep(space, trace) => self.keep(*space, trace, statistics),
            Slot::Mutate(space, trace) => (0..self.options.mutation_attempts)
                .find_map(|_| {
                    let mutation = mutate::draw(trace, self.mutators, &mut rng)?;
                    self.generator.generate(
                        *space,
                        trace,
                        rng.next_u64(),
                        |number, step| match (&mutation.change, number == mutation.step) {
                            (Change::Decide(decision), true) => Some(decision.clone()),
                            (Change::Resample, true) => None,
                            _ => step.decision.clone(),
                        },
                        statistics,
                    )
                })
                .or_else(|| self.keep(*space, trace, statistics)),
        }
    }

    fn keep(&self, space: usize, trace: &Trace, statistics: &mut Statistics) -> Option<Candidate> {
        self.generator.generate(space, trace, 0, |_, step| step.decision.clone(), statistics)
    }

    /// The best of a sorted pool; in the first round the best of each design space comes first, so that none is
    /// overlooked; a share is random.
    fn pick(&self, mut pool: Vec<(f32, Candidate)>, count: usize) -> Vec<Candidate> {
        let mut picks = Vec::new();
        if self.round == 1 && self.measured.is_empty() {
            let mut seen = FxHashSet::default();
            let mut number = 0;
            while number < pool.len() && picks.len() < count / 2 {
                if seen.insert(pool[number].1.space) {
                    picks.push(pool.remove(number).1);
                } else {
                    number += 1;
                }
            }
        }
        let mut rng = self.stream(u64::MAX, u64::MAX);
        let random = (count as f64 * self.options.random_share).round() as usize;
        for _ in 0..random {
            if pool.len() > count {
                let chosen = count + rng.below(pool.len() - count);
                picks.push(pool.remove(chosen).1);
            }
        }
        let rest = count.saturating_sub(picks.len());
        picks.extend(pool.into_iter().take(rest).map(|(_, candidate)| candidate));
        picks.truncate(count);
        picks
    }
}
