//! The uses of records of other shapes and other kernels: traces to begin with, and samples for the cost model.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_core::target::RunContext;
use tilewright_search::candidate::{Generator, Statistics};
use tilewright_search::model::{CostModel, Sample};
use tilewright_search::records::{Database, Record, Shape, TunedFor};
use tilewright_search::spec::SearchSpec;
use tilewright_search::strategy::SearchSpace;
use tilewright_search::transfer::anchored;
use tilewright_search::tuner::Start;

use super::plan::Plan;
use crate::kernel::{Kernel, kernels};

/// The most shapes of the same kernel whose traces are tried.
const SHAPES: usize = 8;

/// The most traces of other kernels that are tried as anchors.
const ANCHORS: usize = 8;

/// The most traces of other kernels that are examined as anchors; most do not fit.
const ATTEMPTS: usize = 4 * ANCHORS;

/// The most samples of one kernel at one shape for the model, the last ones, and the most in all.
const SAMPLES_PER_TASK: usize = 64;
const SAMPLES: usize = 1024;

/// The samples that a cost model has learned from: kernels at shapes on machines.
pub(super) type Learned = BTreeSet<(u64, Shape, TunedFor)>;

/// Traces to begin with: those of the same kernel at other shapes or for other numbers of threads, the nearest first, then
/// the schedules from anchors.
pub(super) fn starts(database: &Database, plan: &Plan) -> Vec<Start> {
    let (context, tuned_for) = (&plan.task.context, plan.tuned_for());
    // The search knows the measurements of this kernel and shape already.
    let is_foreign = |record: &&Record| record.shape != plan.shape || record.target != tuned_for;
    let mut shapes: Vec<(f64, &Shape)> = database
        .records_of(plan.hash)
        .filter(is_foreign)
        .map(|record| (plan.shape.distance(&record.shape).unwrap_or(f64::INFINITY), &record.shape))
        .collect();
    shapes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(b.1)));
    shapes.dedup_by(|a, b| a.1 == b.1);
    let nearest = shapes.into_iter().filter_map(|(_, shape)| database.best(plan.hash, shape, context));
    let nearest = nearest.filter(is_foreign);
    let own = |record: &Record| Start { trace: record.trace.clone(), rules: record.provenance.rules.clone() };
    let mut starts: Vec<Start> = nearest.take(SHAPES).map(own).collect();
    let others = best_of_others(database, plan.hash, context);
    let anchored = others
        .iter()
        .take(ATTEMPTS)
        .map(|record| anchored(&record.trace, &plan.task.program, context, &plan.spec, plan.seed))
        .filter(|traces| !traces.is_empty());
    // Rules have completed the anchor's trace; which rules generated it is no longer known.
    let anchored = anchored.take(ANCHORS).flatten();
    starts.extend(anchored.map(|trace| Start { trace, rules: None }));
    starts
}

/// The best record of each other kernel at each shape, in a fixed order.
fn best_of_others<'d>(database: &'d Database, own: u64, context: &RunContext) -> Vec<&'d Record> {
    let others = database.records().filter(|record| record.program != own);
    let groups: BTreeMap<(&str, u64, &Shape), ()> =
        others.map(|record| ((record.kernel.as_str(), record.program, &record.shape), ())).collect();
    groups.into_keys().filter_map(|(_, program, shape)| database.best(program, shape, context)).collect()
}

/// Lets a model learn from records of tasks other than `plans`, which learn from their own when they begin, and other than the
/// tasks in `learned`. Only kernels that are part of this program can be replayed.
pub(super) fn warm(
    model: &mut dyn CostModel,
    learned: &mut Learned,
    database: &Database,
    plans: &[&Plan],
    own: &[&Kernel],
) {
    let Some(first) = plans.first() else { return };
    let (context, tuned_for) = (&first.task.context, first.tuned_for());
    learned.extend(plans.iter().map(|plan| (plan.hash, plan.shape.clone(), plan.tuned_for())));
    let known = kernels();
    let known: Vec<&Kernel> = own.iter().copied().chain(known.iter().copied()).collect();
    let mut groups: BTreeMap<(&str, u64, &Shape), Vec<&Record>> = BTreeMap::new();
    for record in database.records().filter(|record| record.target == tuned_for) {
        if !learned.contains(&(record.program, record.shape.clone(), record.target.clone())) {
            groups.entry((&record.kernel, record.program, &record.shape)).or_default().push(record);
        }
    }
    let mut samples = Vec::new();
    for ((_, program, shape), records) in groups {
        let kernel = known.iter().find(|kernel| kernel.hash().is_ok_and(|hash| hash == program));
        if samples.len() < SAMPLES
            && let Some(kernel) = kernel
        {
            samples.extend(samples_of(kernel, shape, &records, context).unwrap_or_default());
            learned.insert((program, shape.clone(), tuned_for.clone()));
        }
    }
    if !samples.is_empty() {
        tracing::info!(samples = samples.len(), "the cost model learns from other tasks");
        model.update(&samples);
    }
}

/// Samples of one kernel at one shape; `None` when it has no such shape any more.
fn samples_of(
    kernel: &Kernel,
    shape: &Shape,
    records: &[&Record],
    context: &RunContext,
) -> Option<Vec<Sample>> {
    let sizes = shape.dims.iter().chain(&shape.params);
    let named: Vec<(&str, i64)> = sizes.map(|(name, size)| (name.as_str(), *size)).collect();
    let program = kernel.program_for(&kernel.dims_by_name(&named).ok()?).ok()?;
    let task = program.stable_hash();
    let spec = SearchSpec::built_in(context.target.kind()).ok()?;
    let generator = Generator::new(program, context, spec);
    let space = SearchSpace::new(generator, Vec::new(), 0);
    let last = &records[records.len().saturating_sub(SAMPLES_PER_TASK)..];
    let made = space.generate(last.len(), &mut Statistics::default(), |number, statistics| {
        space.replay(&last[number].trace, statistics)
    });
    let sample = |(candidate, record): (Option<_>, &&Record)| {
        let candidate: tilewright_search::candidate::Candidate = candidate?;
        let seconds = record.median_ns().map(|ns| ns * 1e-9);
        Some(Sample { task, features: candidate.features, seconds })
    };
    Some(made.into_iter().zip(last).filter_map(sample).collect())
}
