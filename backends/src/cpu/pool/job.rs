//! One parallel region: its task, the counter that hands out chunks, and who has finished.

use std::any::Any;
use std::mem::forget;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How many ranges each thread claims on average when there are many more chunks than threads: enough for an
/// even end, few enough that the shared counter is no bottleneck.
const CLAIMS_PER_THREAD: usize = 16;

/// Set in [`Job::finished`] when the caller has gone to sleep and wants to be woken.
const WATCHED: usize = 1 << (usize::BITS - 1);

/// A parallel region. It lives on the stack of the thread that started it, which does not leave the region
/// before every worker that took the job has called [`Job::finish`].
///
/// All that every thread needs is on the first cache line, and a thread's first access is the claim of a
/// chunk, which makes the line its own: each further line that travels between cores costs as much as an
/// empty chunk. The alignment is 128, because x86-64 prefetches lines in pairs, and some AArch64 cores have
/// lines of that size.
#[repr(C, align(128))]
pub(super) struct Job {
    next_claim: AtomicUsize,
    finished: AtomicUsize,
    claims: usize,
    chunks: usize,
    grain: usize,
    call: unsafe fn(*const (), Range<usize>),
    task: *const (),
    slots: SlotRange,
    wake_cursor: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// The worker slots that a region may use: `count` consecutive ones from `first` on, around the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotRange {
    pub(super) first: usize,
    pub(super) count: usize,
}

impl Job {
    /// A region over `0..chunks` for at most `threads` threads, calling `task`.
    ///
    /// The job forgets the lifetime of `task`: whoever makes it must keep `task` until no thread can run the
    /// job.
    pub(super) fn new<F: Fn(Range<usize>) + Sync>(
        task: &F,
        chunks: usize,
        threads: usize,
        slots: SlotRange,
    ) -> Self {
        unsafe fn call<F: Fn(Range<usize>)>(task: *const (), range: Range<usize>) {
            // SAFETY: `Job::new` made `task` from an `&F` of this very `F`, which outlives the job's
            // execution.
            let task = unsafe { &*task.cast::<F>() };
            task(range);
        }
        let grain = (chunks / (threads * CLAIMS_PER_THREAD)).max(1);
        Self {
            next_claim: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            wake_cursor: AtomicUsize::new(usize::MAX / 2),
            claims: chunks.div_ceil(grain),
            chunks,
            grain,
            slots,
            call: call::<F>,
            task: std::ptr::from_ref(task).cast(),
            panic: Mutex::new(None),
        }
    }

    /// The slots that the region may use.
    pub(super) fn slots(&self) -> SlotRange {
        self.slots
    }

    fn claim(&self) -> Option<Range<usize>> {
        // Relaxed: the counter only has to give every chunk once; the data are published by the mailbox and
        // `finish`. Nothing can wrap: each thread overshoots by one claim, and `chunks` is at most
        // `isize::MAX`.
        let claim = self.next_claim.fetch_add(1, Ordering::Relaxed);
        let begin = claim * self.grain;
        (claim < self.claims).then(|| begin..self.chunks.min(begin + self.grain))
    }

    fn exhausted(&self) -> bool {
        self.next_claim.load(Ordering::Relaxed) >= self.claims
    }

    /// Runs chunks until none is left. A panic of the task ends the region early and is kept for the caller.
    ///
    /// # Safety
    /// The task given to [`Job::new`] is still alive.
    pub(super) unsafe fn work(&self) {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            while let Some(range) = self.claim() {
                let is_last = range.end == self.chunks;
                // SAFETY: `call` is the instance for the type that `task` points to, and `task` is alive.
                unsafe { (self.call)(self.task, range) };
                if is_last {
                    break;
                }
            }
        }));
        if let Err(payload) = outcome {
            self.next_claim.store(self.claims, Ordering::Relaxed);
            let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
            if first.is_none() {
                *first = Some(payload);
            } else {
                // Dropping a payload runs the task's code, which could panic again and end the worker.
                forget(payload);
            }
        }
    }

    /// What the task panicked with, if it did.
    pub(super) fn into_panic(self) -> Option<Box<dyn Any + Send>> {
        self.panic.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker's last access to the job; true when the caller sleeps and must be woken.
    ///
    /// It takes a pointer, because a reference to the whole job would claim that the job lives until the call
    /// returns.
    ///
    /// # Safety
    /// `job` points to a job that this worker took and has not finished before.
    pub(super) unsafe fn finish(job: *const Self) -> bool {
        // SAFETY: the caller of the region waits for this increment, so the counter is alive while it
        // happens.
        let finished = unsafe { &(*job).finished };
        // Release: the caller, which loads with acquire, sees all that the worker wrote.
        finished.fetch_add(1, Ordering::Release) & WATCHED != 0
    }

    /// How many workers have finished.
    pub(super) fn finished(&self) -> usize {
        self.finished.load(Ordering::Acquire) & !WATCHED
    }

    /// Asks the workers that finish from now on to wake the caller.
    pub(super) fn watch(&self) {
        self.finished.fetch_or(WATCHED, Ordering::AcqRel);
    }

    /// Lets [`Job::next_to_wake`] begin.
    pub(super) fn start_waking(&self) {
        self.wake_cursor.store(0, Ordering::Release);
    }

    /// The next place within [`Job::slots`] that may hold a sleeping worker; none when all have been looked
    /// at, when waking has not begun, or when no chunk is left that would be worth waking anyone for.
    pub(super) fn next_to_wake(&self) -> Option<usize> {
        if self.wake_cursor.load(Ordering::Acquire) >= self.slots.count || self.exhausted() {
            return None;
        }
        let place = self.wake_cursor.fetch_add(1, Ordering::Relaxed);
        (place < self.slots.count).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOTS: SlotRange = SlotRange { first: 1, count: 3 };

    #[test]
    fn claims_cover_every_chunk_once() {
        let task = |_: Range<usize>| {};
        for (chunks, threads) in [(0, 2), (1, 2), (7, 3), (97, 2), (1000, 4), (100_003, 8)] {
            let job = Job::new(&task, chunks, threads, SLOTS);
            let claimed: Vec<usize> = std::iter::from_fn(|| job.claim()).flatten().collect();
            assert!(claimed.iter().copied().eq(0..chunks), "{chunks} chunks, {threads} threads");
        }
    }

    #[test]
    fn few_chunks_are_claimed_one_by_one() {
        let task = |_: Range<usize>| {};
        let job = Job::new(&task, 63, 4, SLOTS);
        assert_eq!(job.claim(), Some(0..1));
        let job = Job::new(&task, 640, 4, SLOTS);
        assert_eq!(job.claim(), Some(0..10));
    }

    #[test]
    fn a_panic_ends_the_region_and_the_first_payload_is_kept() {
        let task = |range: Range<usize>| panic!("chunk {}", range.start);
        let job = Job::new(&task, 5, 2, SLOTS);
        // SAFETY: `task` is alive.
        unsafe { job.work() };
        assert!(job.exhausted());
        let payload = job.into_panic().expect("the task panicked");
        assert_eq!(payload.downcast_ref::<String>().map(String::as_str), Some("chunk 0"));
    }

    #[test]
    fn waking_visits_each_slot_once_and_only_after_it_began() {
        let task = |_: Range<usize>| {};
        let job = Job::new(&task, 5, 2, SLOTS);
        assert_eq!(job.next_to_wake(), None, "not begun");
        job.start_waking();
        assert_eq!([0; 4].map(|_| job.next_to_wake()), [Some(0), Some(1), Some(2), None]);
    }

    #[test]
    fn nobody_is_woken_for_an_exhausted_region() {
        let task = |_: Range<usize>| {};
        let job = Job::new(&task, 1, 2, SLOTS);
        job.start_waking();
        job.claim();
        assert_eq!(job.next_to_wake(), None);
    }

    #[test]
    fn finishing_tells_whether_the_caller_watches() {
        let task = |_: Range<usize>| {};
        let job = Job::new(&task, 1, 2, SLOTS);
        // SAFETY: `job` is alive, and two workers are played here.
        assert!(!unsafe { Job::finish(&job) });
        job.watch();
        assert_eq!(job.finished(), 1);
        // SAFETY: as above.
        assert!(unsafe { Job::finish(&job) });
        assert_eq!(job.finished(), 2);
    }
}
