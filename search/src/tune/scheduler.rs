//! The task scheduler: which of many tasks to tune next, under one budget.
//!
//! The gradient scheduler is that of Ansor (Zheng et al., "Ansor: Generating High-Performance Tensor Programs for Deep
//! Learning", OSDI 2020, section 6), which MetaSchedule has as `GradientBased`: the next round goes to the task whose round
//! promises the largest reduction of the whole time. The whole time is the sum of each task's best time by its weight. With `g` the
//! best time after `n` rounds and `w` the backward window, a round promises
//!
//! ```text
//! α·(g(n - w) - g(n))/w + (1 - α)·max(g(n)/n, g(n) - β·C/V)
//! ```
//!
//! that is, the gain of the last rounds, and the larger of two estimates of the gain to come: that the time goes on to fall
//! in proportion to the rounds, or that it comes down to `β` times what its `C` operations take at the speed `V` of the
//! fastest task of its kind. Differences, with their reasons:
//! - Where the roofline is known, the estimate is at most the distance to it: a task at the limit of the machine has
//!   nothing to gain.
//! - Under a budget of time the promise is divided by the duration of a round, since a round of a slow kernel costs more.
//! - Ties go to the task that was named first, so that one seed gives one search.
//! - Every task has a round before any has two; rounds are shorter when the trials do not suffice for that.
//!
//! This module measures nothing and reads no clock: its caller reports the result of each round.

use std::time::Duration;

use crate::tune::tuner::End;

/// How the next task is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// The task whose round promises most.
    Gradient(Gradient),
    /// The task with the fewest rounds.
    RoundRobin,
}

impl Default for Policy {
    fn default() -> Self {
        Policy::Gradient(Gradient::default())
    }
}

/// The constants of the gradient scheduler, as in Ansor's `TaskScheduler` and MetaSchedule's `GradientBased`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gradient {
    /// The weight of the gain of the last rounds, against the estimated gain to come.
    pub alpha: f64,
    /// The expected slowdown of a task against the fastest task of its kind.
    pub beta: f64,
    /// The number of past rounds whose gain counts.
    pub window: usize,
}

impl Default for Gradient {
    fn default() -> Self {
        Gradient { alpha: 0.2, beta: 2.0, window: 3 }
    }
}

/// The budget of tuning: the limit that is reached first ends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// The most trials.
    pub trials: Option<usize>,
    /// The most time, of generating, compiling and measuring.
    pub time: Option<Duration>,
}

impl Budget {
    /// A number of trials.
    pub fn trials(trials: usize) -> Self {
        Budget { trials: Some(trials), time: None }
    }

    /// A time.
    pub fn time(time: Duration) -> Self {
        Budget { trials: None, time: Some(time) }
    }
}

/// The text is no budget.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no budget: expected measurements or time, such as `500`, `90s`, `10min` or `500,10min`")]
pub struct BudgetError(pub String);

/// The units of a time, with their seconds. Of two that end alike, the longer one comes first.
const TIME_UNITS: [(&str, f64); 3] = [("min", 60.0), ("s", 1.0), ("h", 3600.0)];

impl Budget {
    /// Whether a word is a unit of time that may follow a number.
    pub fn is_unit(word: &str) -> bool {
        TIME_UNITS.iter().any(|(name, _)| *name == word)
    }
}

/// `500` measurements, `90s`, `10min`, `2h`, or both with a comma.
impl std::str::FromStr for Budget {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Self, BudgetError> {
        let wrong = || BudgetError(text.to_owned());
        let mut budget = Budget::default();
        for part in text.split(',').map(str::trim) {
            if let Ok(trials) = part.parse::<usize>() {
                match budget.trials.replace(trials) {
                    None => continue,
                    Some(_) => return Err(wrong()),
                }
            }
            let (number, unit) = TIME_UNITS
                .iter()
                .find_map(|(name, seconds)| Some((part.strip_suffix(name)?, seconds)))
                .ok_or_else(wrong)?;
            let number: f64 = number.trim().parse().map_err(|_| wrong())?;
            let time = Duration::try_from_secs_f64(number * unit).map_err(|_| wrong())?;
            if budget.time.replace(time).is_some() {
                return Err(wrong());
            }
        }
        Ok(budget)
    }
}

/// The facts of a task before it is tuned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TaskFacts {
    /// The number of its runs, relative to the others.
    pub weight: f64,
    /// The arithmetic operations of one run.
    pub flops: f64,
    /// The roofline time, in seconds: no schedule is faster.
    pub roofline_seconds: Option<f64>,
    /// Equal for tasks that are alike, such as one kernel at several shapes.
    pub kind: u64,
    /// The best time of earlier runs, in seconds.
    pub best: Option<f64>,
}

/// The result of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// The number of trials.
    pub trials: usize,
    /// Its duration.
    pub elapsed: Duration,
    /// The best time of the task so far, in seconds.
    pub best: Option<f64>,
    /// Why tuning of the task has ended, if it has.
    pub end: Option<End>,
}

/// The next round to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextRound {
    /// The number of the task.
    pub task: usize,
    /// The most trials.
    pub trials: usize,
}

/// The state of one task.
#[derive(Clone, Debug)]
struct TaskState {
    facts: TaskFacts,
    /// The best time after each round, in seconds; infinite as long as there is none.
    best_after: Vec<f64>,
    trials: usize,
    elapsed: Duration,
    end: Option<End>,
}

/// Distributes a budget over tasks.
#[derive(Clone, Debug)]
pub struct Scheduler {
    policy: Policy,
    budget: Budget,
    batch: usize,
    tasks: Vec<TaskState>,
}

impl Scheduler {
    /// A scheduler of rounds of `batch` trials.
    pub fn new(policy: Policy, budget: Budget, batch: usize) -> Self {
        Scheduler { policy, budget, batch: batch.max(1), tasks: Vec::new() }
    }

    /// Adds a task and gives its number.
    pub fn add(&mut self, facts: TaskFacts) -> usize {
        self.tasks.push(TaskState {
            facts,
            best_after: Vec::new(),
            trials: 0,
            elapsed: Duration::ZERO,
            end: None,
        });
        self.tasks.len() - 1
    }

    /// The next round to run; `None` when the budget is spent or every task has ended.
    pub fn next_round(&self) -> Option<NextRound> {
        if self.time_left().is_some_and(|left| left.is_zero()) {
            return None;
        }
        let left = self.trials_left().unwrap_or(usize::MAX);
        let open: Vec<usize> = (0..self.tasks.len()).filter(|task| self.tasks[*task].end.is_none()).collect();
        let untried = open.iter().filter(|task| self.tasks[**task].best_after.is_empty()).count();
        let task = self.choose(&open)?;
        // The trials must suffice for every task without a round.
        let trials = self.batch.min((left / untried.max(1)).max(1)).min(left);
        (trials > 0).then_some(NextRound { task, trials })
    }

    /// Records the result of a round.
    pub fn record(&mut self, task: usize, round: Round) {
        let state = &mut self.tasks[task];
        state.trials += round.trials;
        state.elapsed += round.elapsed;
        state.best_after.push(round.best.unwrap_or(f64::INFINITY));
        state.end = round.end;
    }

    /// The trials that are left, if they are limited.
    pub fn trials_left(&self) -> Option<usize> {
        let spent: usize = self.tasks.iter().map(|task| task.trials).sum();
        self.budget.trials.map(|trials| trials.saturating_sub(spent))
    }

    /// The time that is left, if it is limited.
    pub fn time_left(&self) -> Option<Duration> {
        let spent: Duration = self.tasks.iter().map(|task| task.elapsed).sum();
        self.budget.time.map(|time| time.saturating_sub(spent))
    }

    fn choose(&self, open: &[usize]) -> Option<usize> {
        let fewest = *open.iter().min_by_key(|task| self.tasks[**task].best_after.len())?;
        let Policy::Gradient(gradient) = self.policy else { return Some(fewest) };
        if self.tasks[fewest].best_after.is_empty() {
            return Some(fewest);
        }
        let promises = open.iter().map(|task| (self.promise(&gradient, *task), *task));
        // Of equal ones, the first.
        promises.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, task)| task)
    }

    /// The reduction of the whole time that a round of a task promises: seconds per round, or per second under a budget of
    /// time. A task without a time yet promises least, so that one that always fails does not use up the budget.
    fn promise(&self, gradient: &Gradient, task: usize) -> f64 {
        let state = &self.tasks[task];
        let rounds = state.best_after.len();
        let best = state.best_after[rounds - 1];
        if !best.is_finite() {
            return f64::MIN;
        }
        let window = gradient.window.min(rounds);
        let before = match rounds.checked_sub(1 + window) {
            Some(round) => Some(state.best_after[round]),
            None => state.facts.best,
        };
        let past = before.filter(|before| before.is_finite()).map_or(0.0, |before| before - best);
        let past = past.max(0.0) / window.max(1) as f64;
        let hoped_for = (best / rounds as f64).max(best - self.similar(gradient, task));
        let future = hoped_for.min(best - state.facts.roofline_seconds.unwrap_or(0.0)).max(0.0);
        let promise = state.facts.weight * (gradient.alpha * past + (1.0 - gradient.alpha) * future);
        match self.budget.time {
            Some(_) => promise / (state.elapsed.as_secs_f64() / rounds as f64).max(1e-6),
            None => promise,
        }
    }

    /// The expected time of a task, by the speed of the fastest task of its kind.
    fn similar(&self, gradient: &Gradient, task: usize) -> f64 {
        let facts = &self.tasks[task].facts;
        let speed = |other: &TaskState| {
            let best = other.best_after.last().copied().unwrap_or(f64::INFINITY);
            other.facts.flops / best
        };
        let alike = self.tasks.iter().filter(|other| other.facts.kind == facts.kind);
        let fastest = alike.map(speed).fold(0.0, f64::max);
        if fastest > 0.0 { gradient.beta * facts.flops / fastest } else { f64::INFINITY }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(weight: f64) -> TaskFacts {
        TaskFacts { weight, flops: 1e6, roofline_seconds: None, kind: 0, best: None }
    }

    /// A task: its best time after a number of rounds, and the seconds of one round.
    type Fake = (TaskFacts, fn(usize) -> f64, f64);

    /// Rounds for each task.
    fn rounds(policy: Policy, budget: Budget, tasks: &[Fake]) -> (Vec<usize>, Scheduler) {
        let mut scheduler = Scheduler::new(policy, budget, 16);
        for (number, (facts, ..)) in tasks.iter().enumerate() {
            scheduler.add(TaskFacts { kind: number as u64, ..*facts });
        }
        let mut rounds = vec![0; tasks.len()];
        while let Some(next) = scheduler.next_round() {
            let (_, best, seconds) = tasks[next.task];
            rounds[next.task] += 1;
            let best = Some(best(rounds[next.task])).filter(|best| best.is_finite());
            let elapsed = Duration::from_secs_f64(seconds);
            scheduler.record(next.task, Round { trials: next.trials, elapsed, best, end: None });
        }
        (rounds, scheduler)
    }

    /// Falls for many rounds, in proportion to them.
    fn improving(round: usize) -> f64 {
        1e-2 / round as f64
    }

    fn at_rest(_: usize) -> f64 {
        1e-4
    }

    fn failing(_: usize) -> f64 {
        f64::INFINITY
    }

    #[test]
    fn rounds_go_where_they_take_most_off() {
        let tasks: [Fake; 2] = [(facts(1.0), at_rest, 1.0), (facts(1.0), improving, 1.0)];
        let (gradient, _) = rounds(Policy::default(), Budget::trials(320), &tasks);
        assert!(gradient[1] > 2 * gradient[0] && gradient[0] >= 1, "{gradient:?}");
        let (even, _) = rounds(Policy::RoundRobin, Budget::trials(320), &tasks);
        assert_eq!(even, [10, 10]);
    }

    #[test]
    fn weights_count() {
        let tasks: [Fake; 2] = [(facts(1.0), at_rest, 1.0), (facts(10.0), at_rest, 1.0)];
        let (rounds, _) = rounds(Policy::default(), Budget::trials(640), &tasks);
        assert!(rounds[1] > 5 * rounds[0], "{rounds:?}");
    }

    #[test]
    fn a_task_at_the_roofline_gets_no_more() {
        let bound = TaskFacts { roofline_seconds: Some(1e-4), ..facts(100.0) };
        let tasks: [Fake; 2] = [(bound, at_rest, 1.0), (facts(1.0), improving, 1.0)];
        let (rounds, _) = rounds(Policy::default(), Budget::trials(320), &tasks);
        assert_eq!(rounds[0], 1, "{rounds:?}");
    }

    #[test]
    fn slow_rounds_are_a_bad_bargain_when_time_is_short() {
        let tasks: [Fake; 2] = [(facts(1.0), improving, 10.0), (facts(1.0), improving, 1.0)];
        let (rounds, scheduler) = rounds(Policy::default(), Budget::time(Duration::from_secs(100)), &tasks);
        assert!(rounds[1] > 2 * rounds[0] && rounds[0] >= 1, "{rounds:?}");
        assert_eq!(scheduler.time_left(), Some(Duration::ZERO));
    }

    #[test]
    fn none_is_left_out_and_none_that_fails_eats_the_budget() {
        let few: Vec<Fake> = vec![(facts(1.0), improving, 1.0); 20];
        let (shares, scheduler) = rounds(Policy::default(), Budget::trials(30), &few);
        assert!(shares.iter().all(|rounds| *rounds >= 1), "{shares:?}");
        assert_eq!(scheduler.trials_left(), Some(0));
        let tasks: [Fake; 2] = [(facts(1.0), failing, 1.0), (facts(1.0), at_rest, 1.0)];
        let (rounds, _) = rounds(Policy::default(), Budget::trials(320), &tasks);
        assert_eq!(rounds[0], 1, "{rounds:?}");
    }

    #[test]
    fn the_fastest_of_a_kind_shows_what_the_others_may_reach() {
        let mut scheduler = Scheduler::new(Policy::default(), Budget::trials(1000), 16);
        for best in [1e-5, 1e-3] {
            let task = scheduler.add(facts(1.0));
            let round = Round { trials: 16, elapsed: Duration::ZERO, best: Some(best), end: None };
            scheduler.record(task, round);
        }
        assert_eq!(scheduler.next_round().map(|next| next.task), Some(1));
        let gradient = Gradient::default();
        assert!((scheduler.similar(&gradient, 1) - 2e-5).abs() < 1e-12);
    }

    #[test]
    fn ended_tasks_get_no_turn() {
        let mut scheduler = Scheduler::new(Policy::default(), Budget::trials(1000), 16);
        let task = scheduler.add(facts(1.0));
        let end = Some(End::Exhausted);
        scheduler.record(task, Round { trials: 3, elapsed: Duration::ZERO, best: Some(1.0), end });
        assert_eq!(scheduler.next_round(), None);
    }

    #[test]
    fn budgets_are_read() {
        let budget = |text: &str| text.parse::<Budget>();
        assert_eq!(budget("500"), Ok(Budget::trials(500)));
        assert_eq!(budget("90s"), Ok(Budget::time(Duration::from_secs(90))));
        assert_eq!(budget("1.5min"), Ok(Budget::time(Duration::from_secs(90))));
        let both = Budget { trials: Some(500), time: Some(Duration::from_secs(7200)) };
        assert_eq!(budget("500, 2h"), Ok(both));
        for text in ["", "many", "-3s", "5 days", "500,", "500,300", "1h,30min"] {
            assert_eq!(budget(text), Err(BudgetError(text.to_owned())));
        }
    }
}
