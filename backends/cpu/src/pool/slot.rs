//! The mailbox of one worker.
//!
//! One atomic word holds the whole state, so that every hand-over is a single compare-and-exchange:
//!
//! ```text
//! VACANT ──post──▶ job            nobody has started this worker's thread yet; the poster starts it
//! IDLE ──post──▶ job              the worker spins and takes the job by itself
//! PARKED ──post──▶ job + ASLEEP   the worker sleeps; someone has to rouse it
//! job + ASLEEP ──rouse──▶ job     and the thread is unparked
//! job (+ ASLEEP) ──take──▶ BUSY ──release──▶ IDLE
//! job ──retract──▶ IDLE           the region ended before the worker came
//! job + ASLEEP ──retract──▶ PARKED
//! IDLE ──park──▶ PARKED
//! ```
//!
//! `RETIRED` (its thread could not be started) and `STOP` (the pool is being dropped) are final.

use std::ptr::without_provenance_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::thread::Thread;

use super::job::Job;

// Job addresses are multiples of the alignment of `Job`, hence greater than all of these and with a free
// lowest bit.
const VACANT: *mut Job = without_provenance_mut(2);
const IDLE: *mut Job = without_provenance_mut(4);
const PARKED: *mut Job = without_provenance_mut(6);
const BUSY: *mut Job = without_provenance_mut(8);
const RETIRED: *mut Job = without_provenance_mut(10);
const STOP: *mut Job = without_provenance_mut(12);
const LAST_MARKER: usize = 12;
const ASLEEP: usize = 1;
const _: () = assert!(align_of::<Job>() > LAST_MARKER);

/// The duty of a poster after its job was put into a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Posted {
    /// Nothing: the worker is awake.
    Awake,
    /// Rouse the worker.
    Asleep,
    /// Start the worker's thread.
    Vacant,
}

/// The contents of a slot, as its worker finds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mail {
    /// Nothing; keep looking, or park.
    Nothing,
    /// Nothing, and the slot says that the worker sleeps.
    Parked,
    /// A job, which the worker has now taken.
    Job(*const Job),
    /// The pool is being dropped.
    Stop,
}

/// The mailbox of one worker, on cache lines of its own.
#[repr(align(128))]
pub(super) struct Slot {
    state: AtomicPtr<Job>,
    thread: OnceLock<Thread>,
    cpu: Option<usize>,
}

impl Slot {
    /// The slot of a worker that has not started, to be bound to `cpu`.
    pub(super) fn new(cpu: Option<usize>) -> Self {
        Self { state: AtomicPtr::new(VACANT), thread: OnceLock::new(), cpu }
    }

    /// The CPU that the worker is bound to.
    pub(super) fn cpu(&self) -> Option<usize> {
        self.cpu
    }

    /// Called by the worker once, before anything else: whom to unpark.
    pub(super) fn set_thread(&self, thread: Thread) {
        self.thread.get_or_init(|| thread);
    }

    /// Offers `job` to the worker if it has nothing to do.
    pub(super) fn post(&self, job: *const Job) -> Option<Posted> {
        loop {
            let state = self.state.load(Ordering::Relaxed);
            let (next, posted) = match state {
                VACANT => (job.cast_mut(), Posted::Vacant),
                IDLE => (job.cast_mut(), Posted::Awake),
                PARKED => (asleep(job), Posted::Asleep),
                _ => return None,
            };
            // Release publishes the job; acquire, with `park`, makes the worker's handle visible.
            if self.exchange(state, next, Ordering::AcqRel) {
                return Some(posted);
            }
        }
    }

    /// Wakes the worker if it sleeps on `job`; false when it does not.
    pub(super) fn rouse(&self, job: *const Job) -> bool {
        let roused = self.exchange(asleep(job), job.cast_mut(), Ordering::AcqRel);
        if roused {
            self.unpark();
        }
        roused
    }

    /// Takes back `job` if the worker has not taken it. True means that the worker never will.
    pub(super) fn retract(&self, job: *const Job) -> bool {
        self.exchange(job.cast_mut(), IDLE, Ordering::AcqRel)
            || self.exchange(asleep(job), PARKED, Ordering::AcqRel)
    }

    /// Takes back `job` from a worker whose thread could not be started, for ever.
    pub(super) fn retire(&self, job: *const Job) {
        let retired = self.exchange(job.cast_mut(), RETIRED, Ordering::AcqRel);
        debug_assert!(retired, "a worker without a thread took a job");
    }

    /// The worker looks for a job and takes it.
    pub(super) fn take(&self) -> Mail {
        let state = self.state.load(Ordering::Relaxed);
        match state {
            IDLE => Mail::Nothing,
            PARKED => Mail::Parked,
            STOP => Mail::Stop,
            VACANT | BUSY | RETIRED => unreachable!("the worker itself leaves these states before it looks"),
            job if self.exchange(job, BUSY, Ordering::AcqRel) => {
                Mail::Job(job.map_addr(|address| address & !ASLEEP).cast_const())
            }
            _ => Mail::Nothing,
        }
    }

    /// The worker is done with the job that it took and open for another.
    pub(super) fn release(&self) {
        self.state.store(IDLE, Ordering::Release);
    }

    /// The worker announces that it is about to sleep; does nothing if something has come in the meantime.
    pub(super) fn park(&self) {
        self.exchange(IDLE, PARKED, Ordering::AcqRel);
    }

    /// Ends the worker. No job is in the slot: the pool is borrowed by nobody.
    pub(super) fn stop(&self) {
        self.state.swap(STOP, Ordering::AcqRel);
        self.unpark();
    }

    fn unpark(&self) {
        // A worker that has not set its handle yet has not parked either.
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    fn exchange(&self, from: *mut Job, to: *mut Job, success: Ordering) -> bool {
        self.state.compare_exchange(from, to, success, Ordering::Relaxed).is_ok()
    }
}

fn asleep(job: *const Job) -> *mut Job {
    job.cast_mut().map_addr(|address| address | ASLEEP)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An address that is never dereferenced.
    const JOB: *const Job = without_provenance_mut(4096);

    fn idle_slot() -> Slot {
        let slot = Slot::new(None);
        slot.release();
        slot
    }

    #[test]
    fn a_vacant_slot_asks_for_a_thread() {
        let slot = Slot::new(Some(3));
        assert_eq!(slot.cpu(), Some(3));
        assert_eq!(slot.post(JOB), Some(Posted::Vacant));
        assert_eq!(slot.take(), Mail::Job(JOB));
    }

    #[test]
    fn a_retired_slot_takes_no_job() {
        let slot = Slot::new(None);
        slot.post(JOB);
        slot.retire(JOB);
        assert_eq!(slot.post(JOB), None);
    }

    #[test]
    fn a_busy_slot_takes_no_second_job() {
        let slot = idle_slot();
        assert_eq!(slot.post(JOB), Some(Posted::Awake));
        assert_eq!(slot.post(JOB), None, "posted");
        assert_eq!(slot.take(), Mail::Job(JOB));
        assert_eq!(slot.post(JOB), None, "taken");
        assert!(!slot.retract(JOB), "taken");
        slot.release();
        assert_eq!(slot.take(), Mail::Nothing);
        assert_eq!(slot.post(JOB), Some(Posted::Awake));
    }

    #[test]
    fn a_job_retracted_from_a_sleeper_leaves_it_asleep() {
        let slot = idle_slot();
        slot.park();
        assert_eq!(slot.take(), Mail::Parked);
        assert_eq!(slot.post(JOB), Some(Posted::Asleep));
        assert!(slot.retract(JOB));
        assert_eq!(slot.take(), Mail::Parked, "the next poster must learn that the worker sleeps");
    }

    #[test]
    fn a_roused_worker_is_awake_even_after_a_retraction() {
        let slot = idle_slot();
        slot.park();
        slot.post(JOB);
        assert!(slot.rouse(JOB));
        assert!(!slot.rouse(JOB), "once is enough");
        assert!(slot.retract(JOB));
        assert_eq!(slot.take(), Mail::Nothing);
    }

    #[test]
    fn a_worker_that_wakes_by_itself_takes_the_job_without_the_mark() {
        let slot = idle_slot();
        slot.park();
        slot.post(JOB);
        assert_eq!(slot.take(), Mail::Job(JOB));
        assert!(!slot.rouse(JOB));
    }

    #[test]
    fn a_job_of_another_region_is_not_retracted() {
        let slot = idle_slot();
        slot.post(JOB);
        assert!(!slot.retract(without_provenance_mut(8192)));
        assert_eq!(slot.take(), Mail::Job(JOB));
    }

    #[test]
    fn stop_reaches_the_worker() {
        let slot = idle_slot();
        slot.stop();
        assert_eq!(slot.take(), Mail::Stop);
    }
}
