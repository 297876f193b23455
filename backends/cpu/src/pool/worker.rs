//! The worker threads: what they share, how they wait and how they run a job.

use std::cell::Cell;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::affinity::pin_current_thread;
use super::job::Job;
use super::slot::{Mail, Slot};
use super::spin::Spinner;

/// Stack of a worker: that of a usual main thread, so that a kernel which runs there also runs here.
const STACK_BYTES: usize = 8 << 20;

/// How many sleepers each thread that has a job rouses before it starts to work on it; with two, all are
/// awake after a logarithmic number of wake-up times, while one thread alone would pay a system call for
/// each.
const ROUSED_BY_EACH: usize = 2;

thread_local! {
    /// Whether this thread runs a task of a region, so that a region inside it must run inline.
    static IN_REGION: Cell<bool> = const { Cell::new(false) };
}

/// Marks the current thread as inside a region until dropped.
pub(super) struct RegionGuard {
    outer: bool,
}

impl RegionGuard {
    /// Enters a region.
    pub(super) fn enter() -> Self {
        Self { outer: IN_REGION.replace(true) }
    }

    /// Whether the thread was inside a region already.
    pub(super) fn is_nested(&self) -> bool {
        self.outer
    }
}

impl Drop for RegionGuard {
    fn drop(&mut self) {
        IN_REGION.set(self.outer);
    }
}

/// A job that a worker took, and whether the worker slept before. One that did joins in rousing the others;
/// one that was awake has no reason to look for sleepers.
struct Taken {
    job: *const Job,
    slept: bool,
}

/// The state that the callers and the workers of a pool share.
pub(super) struct Shared {
    slots: Box<[Slot]>,
    spin: Duration,
    finished_lock: Mutex<()>,
    finished_event: Condvar,
}

impl Shared {
    /// Slots for one worker per element of `cpus`; each waits for `spin` before it sleeps.
    pub(super) fn new(cpus: impl Iterator<Item = Option<usize>>, spin: Duration) -> Self {
        Self {
            slots: cpus.map(Slot::new).collect(),
            spin,
            finished_lock: Mutex::new(()),
            finished_event: Condvar::new(),
        }
    }

    /// The slots of all workers.
    pub(super) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The slots that `job` may use, in the order in which they are offered the job.
    pub(super) fn slots_of(&self, job: &Job) -> impl Iterator<Item = (usize, &Slot)> {
        let range = job.slots();
        (range.first..range.first + range.count).map(|place| {
            let index = place % self.slots.len();
            (index, &self.slots[index])
        })
    }

    /// The place of a worker among the [slots of a job](Shared::slots_of).
    fn place_in(&self, job: &Job, index: usize) -> usize {
        let count = self.slots.len();
        (index + count - job.slots().first % count) % count
    }

    /// Rouses a few of the workers that sleep on `job`.
    pub(super) fn rouse_some(&self, job: &Job) {
        let mut roused = 0;
        while roused < ROUSED_BY_EACH
            && let Some(place) = job.next_to_wake()
        {
            let slot = &self.slots[(job.slots().first + place) % self.slots.len()];
            roused += usize::from(slot.rouse(job));
        }
    }

    /// Returns when `workers` workers have finished `job`: spins first, then sleeps.
    pub(super) fn wait_for(&self, job: &Job, workers: usize) {
        let mut spinner = Spinner::new(self.spin);
        while job.finished() < workers {
            if !spinner.pause() {
                return self.sleep_until(job, workers);
            }
        }
    }

    fn sleep_until(&self, job: &Job, workers: usize) {
        // A worker that finishes before `watch` is seen by the test below; one that finishes after it takes
        // the lock, and so comes either before that test or when the condition variable waits.
        job.watch();
        let mut guard = self.finished_lock.lock().unwrap_or_else(PoisonError::into_inner);
        while job.finished() < workers {
            guard = self.finished_event.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn wake_callers(&self) {
        drop(self.finished_lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.finished_event.notify_all();
    }

    fn run(&self, index: usize) {
        let slot = &self.slots[index];
        slot.set_thread(thread::current());
        if let Some(cpu) = slot.cpu()
            && !pin_current_thread(cpu)
        {
            tracing::debug!(cpu, "worker thread could not be bound to its CPU");
        }
        let _region = RegionGuard::enter();
        while let Some(Taken { job, slept }) = self.wait_for_job(slot) {
            // SAFETY: the slot gave the job to this worker alone, and the region's caller waits for
            // `Job::finish`, so both the job and its task are alive until then.
            let job_reference = unsafe { &*job };
            if slept {
                self.rouse_some(job_reference);
            }
            let participant = 1 + self.place_in(job_reference, index);
            // SAFETY: as above.
            unsafe { job_reference.work(participant) };
            // Open for the next job before the caller can go on, or its next region might find no worker.
            slot.release();
            // SAFETY: this worker took the job and finishes it here, once; it is not touched after.
            if unsafe { Job::finish(job) } {
                self.wake_callers();
            }
        }
    }

    fn wait_for_job(&self, slot: &Slot) -> Option<Taken> {
        let mut slept = false;
        let mut spinner = Spinner::new(self.spin);
        loop {
            match slot.take() {
                Mail::Job(job) => return Some(Taken { job, slept }),
                Mail::Stop => return None,
                Mail::Nothing => {
                    if !spinner.pause() {
                        slot.park();
                    }
                }
                Mail::Parked => {
                    thread::park();
                    slept = true;
                    spinner = Spinner::new(self.spin);
                }
            }
        }
    }
}

/// Starts the thread of worker `index`.
pub(super) fn start(shared: &Arc<Shared>, index: usize) -> io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    thread::Builder::new()
        .name(format!("tilewright-{index}"))
        .stack_size(STACK_BYTES)
        .spawn(move || shared.run(index))
}
