//! Where the time of a run goes.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;
use tilewright_graph::ir::ValueId;

/// Where the time of a run went.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The steps in the order in which they first ran.
    pub steps: Vec<StepTime>,
    /// How long the run took as a whole. The time that no step took went into decisions and into values that were copied.
    pub whole: Duration,
    /// The size of the largest arena for intermediates, in bytes.
    pub arena: usize,
    /// That arena cannot be smaller, in bytes.
    pub lower_bound: usize,
}

/// The time of one step.
#[derive(Clone, Debug)]
pub struct StepTime {
    /// The nodes that it computes.
    pub node: Arc<str>,
    /// The kernel; `None` for an operator that is evaluated.
    pub kernel: Option<String>,
    /// Why it has no kernel, if it is evaluated and that is known.
    pub reason: Option<Arc<str>>,
    /// How long it took, all runs together.
    pub time: Duration,
    /// How many bytes its inputs and outputs have, all runs together.
    pub bytes: usize,
    /// How often it ran.
    pub runs: usize,
}

/// How a step was computed.
pub(crate) enum Way<'a> {
    /// By a kernel of this name.
    Kernel(&'a str),
    /// By evaluating its operator, with the reason why it has no kernel, if that is known.
    Evaluated(Option<&'a Arc<str>>),
}

/// Adds up the times of steps while a graph runs.
#[derive(Default)]
pub(crate) struct Clock(RefCell<Times>);

#[derive(Default)]
struct Times {
    steps: Vec<StepTime>,
    places: FxHashMap<(Arc<str>, Option<String>), usize>,
    /// Why the calls that give these values have no kernel.
    reasons: FxHashMap<ValueId, Arc<str>>,
    arena: usize,
    lower_bound: usize,
}

impl Clock {
    /// Counts a step.
    pub(crate) fn count(&self, node: &Arc<str>, way: &Way<'_>, time: Duration, bytes: usize) {
        let times = &mut *self.0.borrow_mut();
        let (kernel, reason) = match *way {
            Way::Kernel(kernel) => (Some(kernel.to_owned()), None),
            Way::Evaluated(reason) => (None, reason.cloned()),
        };
        let place = *times.places.entry((Arc::clone(node), kernel.clone())).or_insert(times.steps.len());
        if place == times.steps.len() {
            let node = Arc::clone(node);
            times.steps.push(StepTime { node, kernel, reason, time: Duration::ZERO, bytes: 0, runs: 0 });
        }
        let step = &mut times.steps[place];
        step.time += time;
        step.bytes += bytes;
        step.runs += 1;
    }

    /// Notes why the calls that give some values are about to be evaluated.
    pub(crate) fn note_reason(&self, values: impl Iterator<Item = ValueId>, reason: &Arc<str>) {
        self.0.borrow_mut().reasons.extend(values.map(|value| (value, Arc::clone(reason))));
    }

    /// Why the call that gives a value is evaluated, if that was noted.
    pub(crate) fn reason(&self, value: ValueId) -> Option<Arc<str>> {
        self.0.borrow().reasons.get(&value).cloned()
    }

    /// Notes an arena. The largest one counts.
    pub(crate) fn note_arena(&self, arena: usize, lower_bound: usize) {
        let times = &mut *self.0.borrow_mut();
        if arena >= times.arena {
            (times.arena, times.lower_bound) = (arena, lower_bound);
        }
    }

    /// All that was counted.
    pub(crate) fn profile(self, whole: Duration) -> Profile {
        let Times { steps, arena, lower_bound, .. } = self.0.into_inner();
        Profile { steps, whole, arena, lower_bound }
    }
}
