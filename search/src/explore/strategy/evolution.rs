//! Evolutionary search.
//!
//! Follows MetaSchedule's search (population, genetic rounds, ε-greedy picks) with two differences: parents
//! are drawn by rank instead of by score, since a ranking model's scores have no scale; and every slot of a
//! population has a random stream of its own, so that the result does not depend on the number of threads.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use tilewright_core::schedule::{Decision, Rng, Trace};

use super::interface::{MakeStrategy, Strategy};
use super::search_space::SearchSpace;
use crate::explore::candidate::{Candidate, Statistics};
use crate::model::{CostModel, ProgramFeatures};
use crate::space::mutate::{self, Change, Mutation};

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
    /// The number of attempts to draw a mutation that is not refused.
    pub mutation_attempts: usize,
    /// The share of picks that are random instead of best.
    pub random_share: f64,
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
        }
    }
}

/// The evolutionary strategy with given options.
pub fn evolutionary(options: EvolutionOptions) -> MakeStrategy {
    Arc::new(move |space| Box::new(Evolution::new(space, options.clone())))
}

/// The state of a search over the design spaces of one program.
#[derive(Debug)]
pub struct Evolution {
    space: SearchSpace,
    options: EvolutionOptions,
    round: u64,
    /// Hashes of programs that were proposed before.
    proposed: FxHashSet<u64>,
    /// Measured candidates, fastest first.
    measured: Vec<(f64, Arc<Candidate>)>,
    /// The candidates of the traces that the search begins with, made at the first proposal.
    starts: Option<Vec<Arc<Candidate>>>,
    statistics: Statistics,
}

/// The content of a slot of a population.
enum Slot {
    /// A random point of a design space.
    Random,
    /// A candidate as it is.
    Keep(Arc<Candidate>),
    /// A mutation of a candidate.
    Mutate(Arc<Candidate>),
}

/// Candidates by their decisions, so that none is generated twice in one proposal.
#[derive(Default)]
struct Known(FxHashMap<u64, Arc<Candidate>>);

impl Known {
    fn note(&mut self, candidate: &Arc<Candidate>) {
        let key = key(&candidate.decisions, candidate.space, None);
        self.0.entry(key).or_insert_with(|| Arc::clone(candidate));
    }

    /// The candidate that a mutation of another one makes.
    fn find(&self, parent: &Candidate, mutation: &Mutation) -> Option<Arc<Candidate>> {
        let Change::Decide(decision) = &mutation.change else { return None };
        let found = self.0.get(&key(&parent.decisions, parent.space, Some((mutation.step, decision))))?;
        let is_same = found.space == parent.space
            && found.decisions.steps().len() == parent.decisions.steps().len()
            && found.decisions.steps().iter().zip(parent.decisions.steps()).enumerate().all(
                |(number, (own, other))| {
                    let wanted =
                        if number == mutation.step { Some(decision) } else { other.decision.as_ref() };
                    own.decision.as_ref() == wanted && own.instruction == other.instruction
                },
            );
        is_same.then(|| Arc::clone(found))
    }
}

/// A hash of the decisions of a trace, one of them replaced.
fn key(trace: &Trace, space: usize, replaced: Option<(usize, &Decision)>) -> u64 {
    let mut hasher = FxHasher::default();
    space.hash(&mut hasher);
    for (number, decision) in trace.decisions() {
        let replacement = replaced.filter(|(step, _)| *step == number).map(|(_, decision)| decision);
        (number, replacement.unwrap_or(decision)).hash(&mut hasher);
    }
    hasher.finish()
}

impl Strategy for Evolution {
    fn propose(&mut self, count: usize, model: &dyn CostModel) -> Vec<Candidate> {
        let pool = self.pool(model);
        let picks = self.pick(pool, count);
        self.proposed.extend(picks.iter().map(|candidate| candidate.hash));
        picks.into_iter().map(Arc::unwrap_or_clone).collect()
    }

    fn learn(&mut self, candidate: &Candidate, seconds: Option<f64>) {
        self.proposed.insert(candidate.hash);
        if let Some(seconds) = seconds {
            let place = self.measured.partition_point(|(other, _)| *other <= seconds);
            self.measured.insert(place, (seconds, Arc::new(candidate.clone())));
        }
    }

    fn statistics(&self) -> &Statistics {
        &self.statistics
    }
}

impl Evolution {
    /// A search of a space. The same seed and the same measurements give the same proposals.
    pub fn new(space: SearchSpace, options: EvolutionOptions) -> Self {
        Evolution {
            space,
            options,
            round: 0,
            proposed: FxHashSet::default(),
            measured: Vec::new(),
            starts: None,
            statistics: Statistics::default(),
        }
    }

    /// The candidates of all generations of one proposal, best first.
    fn pool(&mut self, model: &dyn CostModel) -> Vec<(f32, Arc<Candidate>)> {
        self.round += 1;
        let mut population = self.first_population();
        let mut pool: Vec<(f32, Arc<Candidate>)> = Vec::new();
        let mut pooled = FxHashSet::default();
        let mut known = Known::default();
        for generation in 0..=self.options.generations {
            let features: Vec<ProgramFeatures> =
                population.iter().map(|candidate| candidate.features.clone()).collect();
            let mut scores = model.predict(&features);
            // A model of others may leave some out; those come last.
            scores.resize(population.len(), f32::NEG_INFINITY);
            for (candidate, score) in population.iter().zip(&scores) {
                if !self.proposed.contains(&candidate.hash) && pooled.insert(candidate.hash) {
                    pool.push((*score, Arc::clone(candidate)));
                }
                known.note(candidate);
            }
            if generation < self.options.generations && !population.is_empty() {
                population = self.next_population(&population, &scores, generation as u64, &known);
            }
        }
        pool.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.hash.cmp(&b.1.hash)));
        pool
    }

    /// The best measured candidates, the candidates that the search begins with, and random ones.
    fn first_population(&mut self) -> Vec<Arc<Candidate>> {
        let size = self.options.population;
        let kept = (size as f64 * self.options.measured_share) as usize;
        let measured = self.measured.iter().map(|(_, candidate)| candidate);
        let known: Vec<Arc<Candidate>> = measured.take(kept).cloned().collect();
        let left = kept - known.len();
        let starts = self.starts().iter().take(left).cloned().collect::<Vec<_>>();
        let slots = known.into_iter().chain(starts).map(Slot::Keep);
        let slots: Vec<Slot> = slots.chain(std::iter::repeat_with(|| Slot::Random)).take(size).collect();
        self.fill(&slots, u64::MAX, &Known::default())
    }

    fn starts(&mut self) -> &[Arc<Candidate>] {
        let Evolution { space, statistics, .. } = self;
        self.starts.get_or_insert_with(|| {
            let made = space.generate(space.starts.len(), statistics, |number, statistics| {
                space.start(number, statistics)
            });
            made.into_iter().flatten().map(Arc::new).collect()
        })
    }

    /// Children of a population, parents drawn by rank.
    fn next_population(
        &mut self,
        population: &[Arc<Candidate>],
        scores: &[f32],
        generation: u64,
        known: &Known,
    ) -> Vec<Arc<Candidate>> {
        let mut ranked: Vec<usize> = (0..population.len()).collect();
        ranked.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
        // The best tenth of the population parents about two thirds of the next.
        let decay = (-10.0 / population.len() as f64).exp();
        let weights: Vec<f64> = (0..ranked.len()).map(|rank| decay.powi(rank as i32)).collect();
        let mut rng = self.stream(generation, u64::MAX);
        let slots: Vec<Slot> = (0..self.options.population)
            .map(|_| {
                let rank = rng.weighted(&weights).unwrap_or(0);
                let parent = Arc::clone(&population[ranked[rank]]);
                if rng.unit() < self.options.mutation_probability {
                    Slot::Mutate(parent)
                } else {
                    Slot::Keep(parent)
                }
            })
            .collect();
        self.fill(&slots, generation, known)
    }

    fn stream(&self, generation: u64, slot: u64) -> Rng {
        let mut rng = Rng::stream(self.space.seed, self.round);
        let mut inner = Rng::stream(rng.next_u64(), generation);
        Rng::stream(inner.next_u64(), slot)
    }

    /// Generates the candidates of slots, on several threads, in the order of the slots.
    fn fill(&mut self, slots: &[Slot], generation: u64, known: &Known) -> Vec<Arc<Candidate>> {
        let mut statistics = std::mem::take(&mut self.statistics);
        let this = &*self;
        let filled = this.space.generate(slots.len(), &mut statistics, |number, statistics| {
            this.fill_slot(&slots[number], this.stream(generation, number as u64), known, statistics)
        });
        self.statistics = statistics;
        filled.into_iter().flatten().collect()
    }

    fn fill_slot(
        &self,
        slot: &Slot,
        mut rng: Rng,
        known: &Known,
        statistics: &mut Statistics,
    ) -> Option<Arc<Candidate>> {
        match slot {
            Slot::Random => self.space.draw(&mut rng, statistics).map(Arc::new),
            Slot::Keep(candidate) => Some(Arc::clone(candidate)),
            Slot::Mutate(parent) => {
                let mutant = (0..self.options.mutation_attempts)
                    .find_map(|_| self.mutate(parent, &mut rng, known, statistics));
                Some(mutant.unwrap_or_else(|| Arc::clone(parent)))
            }
        }
    }

    fn mutate(
        &self,
        parent: &Candidate,
        rng: &mut Rng,
        known: &Known,
        statistics: &mut Statistics,
    ) -> Option<Arc<Candidate>> {
        let mutation = mutate::draw(&parent.decisions, &self.space.generator.spec.mutators, rng)?;
        let seed = rng.next_u64();
        if let Some(known) = known.find(parent, &mutation) {
            return Some(known);
        }
        let decide = |number: usize, step: &tilewright_core::schedule::Step| match &mutation.change {
            Change::Decide(decision) if number == mutation.step => Some(decision.clone()),
            Change::Resample if number == mutation.step => None,
            _ => step.decision.clone(),
        };
        let made = self.space.generator.generate(parent.space, &parent.decisions, seed, decide, statistics);
        made.map(Arc::new)
    }

    /// The best of a sorted pool; in the first round the best of each design space comes first, so that no space is
    /// overlooked; a share is random. Of candidates with equal features one is measured; the
    /// others follow when the pool has nothing else.
    fn pick(&self, pool: Vec<(f32, Arc<Candidate>)>, count: usize) -> Vec<Arc<Candidate>> {
        let (mut pool, alike) = self.partition_alike(pool);
        let mut picks = Vec::new();
        if self.round == 1 && self.measured.is_empty() {
            let mut seen = FxHashSet::default();
            let mut number = 0;
            while number < pool.len() && picks.len() < count / 2 {
                if seen.insert(pool[number].space) {
                    picks.push(pool.remove(number));
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
                picks.push(pool.remove(chosen));
            }
        }
        picks.extend(pool.into_iter().chain(alike));
        picks.truncate(count);
        picks
    }

    /// Partitions a pool into the first candidate with each set of features that was not measured yet, and the others.
    fn partition_alike(
        &self,
        pool: Vec<(f32, Arc<Candidate>)>,
    ) -> (Vec<Arc<Candidate>>, Vec<Arc<Candidate>>) {
        let measured = self.measured.iter().map(|(_, candidate)| candidate.features.fingerprint());
        let mut looks: FxHashSet<u64> = measured.collect();
        let candidates = pool.into_iter().map(|(_, candidate)| candidate);
        candidates.partition(|candidate| looks.insert(candidate.features.fingerprint()))
    }
}
