//! Where the time of a model goes, step by step.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tilewright::background;
use tilewright_session::{Profile, StepTime};

use crate::arguments::ModelProfile;
use crate::model::Opened;
use crate::{Failure, Outcome};

/// How many steps a profile lists.
const LISTED: usize = 30;

pub(super) fn run(options: &ModelProfile) -> Outcome {
    let opened = Opened::of(&options.call)?;
    let (inputs, mut session) = (opened.inputs(), opened.session());
    let start = Instant::now();
    session.run(&inputs).map_err(Failure::new)?;
    let first = start.elapsed();
    background::finish();
    // Each step's shortest time of several runs, and the shortest time between the steps of one run.
    let (_, mut best) = session.profile(&inputs).map_err(Failure::new)?;
    let (mut whole, mut between) = (Duration::MAX, between_steps(&best));
    for _ in 0..options.rounds {
        let start = Instant::now();
        session.run(&inputs).map_err(Failure::new)?;
        whole = whole.min(start.elapsed());
        let (_, profile) = session.profile(&inputs).map_err(Failure::new)?;
        between = between.min(between_steps(&profile));
        best.whole = best.whole.min(profile.whole);
        for (best, step) in best.steps.iter_mut().zip(profile.steps) {
            best.time = best.time.min(step.time);
        }
    }
    let measured = Measured { first, whole, between, kernels: opened.model.kernels(), profile: best };
    if options.json { Ok(format!("{:#}\n", measured.object())) } else { Ok(measured.text()) }
}

/// The times of a model.
struct Measured {
    /// The first call.
    first: Duration,
    /// The shortest of the later ones, without measuring steps.
    whole: Duration,
    /// The shortest time of one run that no step took.
    between: Duration,
    kernels: usize,
    /// The shortest times of all runs.
    profile: Profile,
}

/// The time of a run that no step took.
fn between_steps(profile: &Profile) -> Duration {
    profile.whole.saturating_sub(profile.steps.iter().map(|step| step.time).sum())
}

impl Measured {
    fn object(&self) -> Value {
        let seconds = |time: Duration| time.as_secs_f64();
        let step = |step: &StepTime| {
            json!({
                "node": step.node.to_string(),
                "kernel": step.kernel,
                "reason": step.reason.as_deref(),
                "runs": step.runs,
                "seconds": seconds(step.time),
                "bytes": step.bytes,
            })
        };
        json!({
            "first_seconds": seconds(self.first),
            "seconds": seconds(self.whole),
            "kernels": self.kernels,
            "arena_bytes": self.profile.arena,
            "arena_lower_bound": self.profile.lower_bound,
            "measured_seconds": seconds(self.profile.whole),
            "steps": self.profile.steps.iter().map(step).collect::<Vec<Value>>(),
        })
    }

    fn text(&self) -> String {
        let Measured { first, whole, between, kernels, profile } = self;
        let mut text = format!(
            "first call, with {} kernels made: {first:.1?}; then {whole:.1?} at best\narena: {} bytes, {} needed at least\n",
            kernels, profile.arena, profile.lower_bound
        );
        let inside: Duration = profile.steps.iter().map(|step| step.time).sum();
        let total = inside + *between;
        let percent =
            |time: Duration| 100.0 * time.as_secs_f64() / total.as_secs_f64().max(f64::MIN_POSITIVE);
        text += &format!("{:5.1} %  {between:>10.1?}  between the steps\n", percent(*between));
        let mut steps: Vec<&StepTime> = profile.steps.iter().collect();
        steps.sort_by_key(|step| std::cmp::Reverse(step.time));
        for step in steps.into_iter().take(LISTED) {
            let share = percent(step.time);
            let kind = step.kernel.as_deref().unwrap_or("evaluated");
            let rate = step.bytes as f64 / step.time.as_secs_f64().max(f64::MIN_POSITIVE) / 1e9;
            let runs = if step.runs > 1 { format!("{} runs of ", step.runs) } else { String::new() };
            let reason = step.reason.as_ref().map(|reason| format!("  ({reason})")).unwrap_or_default();
            text += &format!(
                "{share:5.1} %  {:>10.1?}  {rate:6.1} GB/s  {runs}{kind}  {}{reason}\n",
                step.time, step.node
            );
        }
        text
    }
}
