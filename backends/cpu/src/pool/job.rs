//! One parallel region: its task, the counters that hand out chunks, and the number of threads that have finished.
//!
//! Each thread has a share of consecutive chunks, and takes chunks of other shares when its own is used up. The same thread
//! gets the same share in the next region with as many chunks, so that its data are still in its core's caches.
//! When two threads took the four chunks of a depthwise convolution alternately from one counter, it needed 50 to 60 µs; with shares it
//! needs 23 µs (1.6 MB read and as much written, caches of 1 MB a core, Zen 5).

use std::any::Any;
use std::mem::forget;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How many ranges each thread claims on average when there are many more chunks than threads: enough for an
/// even end, few enough that the counters are no bottleneck.
const CLAIMS_PER_THREAD: usize = 16;

/// The most shares of a region; with more threads some have one together.
const MAX_SHARES: usize = 64;

/// Set in [`Job::finished`] when the caller has gone to sleep and wants to be woken.
const WATCHED: usize = 1 << (usize::BITS - 1);

/// A parallel region. It lives on the stack of the thread that started it, which does not leave the region
/// before every worker that took the job has called [`Job::finish`].
///
/// All that every thread needs is on the first two cache lines, the counters of a few shares included: each further line that
/// travels between cores costs as much as an empty chunk. The alignment is 128, because x86-64 prefetches lines in
/// pairs, and some AArch64 cores have lines of that size.
#[repr(C, align(128))]
pub(super) struct Job {
    finished: AtomicUsize,
    claims: usize,
    chunks: usize,
    grain: usize,
    call: unsafe fn(*const (), Range<usize>),
    task: *const (),
    shares: usize,
    slots: SlotRange,
    /// How many claims of each share have been made; those after the first `shares` are not used.
    claimed: [AtomicU32; MAX_SHARES],
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
    /// The job forgets the lifetime of `task`: the caller must keep `task` until no thread can run the
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
            claimed: [const { AtomicU32::new(0) }; MAX_SHARES],
            shares: threads.clamp(1, MAX_SHARES),
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

    /// The share of a thread: 0 is the region's caller, and `n + 1` the worker at position `n` of [`Job::slots`]. Counted
    /// from the first slot on, a CPU keeps its share wherever the caller runs, if all CPUs take part.
    fn share_of(&self, participant: usize) -> usize {
        (self.slots.first + participant) % self.shares
    }

    /// The claims of a share.
    fn claims_of(&self, share: usize) -> Range<usize> {
        share * self.claims / self.shares..(share + 1) * self.claims / self.shares
    }

    /// The next chunks of a share.
    fn claim(&self, share: usize) -> Option<Range<usize>> {
        // Relaxed: the counter only has to give every chunk once; the data are published by the mailbox and
        // `finish`. Nothing can wrap: there are few claims, and each thread overshoots by one.
        let claimed = self.claimed[share].fetch_add(1, Ordering::Relaxed) as usize;
        let claim = self.claims_of(share).nth(claimed)?;
        let begin = claim * self.grain;
        Some(begin..self.chunks.min(begin.saturating_add(self.grain)))
    }

    fn is_used_up(&self, share: usize) -> bool {
        self.claimed[share].load(Ordering::Relaxed) as usize >= self.claims_of(share).len()
    }

    fn exhausted(&self) -> bool {
        (0..self.shares).all(|share| self.is_used_up(share))
    }

    /// Runs chunks until none is left, first those of the [participant's](Job::share_of) share. A panic of the task ends the region early
    /// and is kept for the caller.
    ///
    /// # Safety
    /// The task given to [`Job::new`] is still alive.
    pub(super) unsafe fn work(&self, participant: usize) {
        let own = self.share_of(participant);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            for share in (own..self.shares).chain(0..own) {
                // A claim takes the line of the counters from the other threads; a read leaves it shared.
                while share == own || !self.is_used_up(share) {
                    let Some(range) = self.claim(share) else { break };
                    // SAFETY: `call` is the instance for the type that `task` points to, and `task` is alive.
                    unsafe { (self.call)(self.task, range) };
                }
            }
        }));
        if let Err(payload) = outcome {
            for share in 0..self.shares {
                self.claimed[share].store(self.claims as u32, Ordering::Relaxed);
            }
            let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
            if first.is_none() {
                *first = Some(payload);
            } else {
                // Dropping a payload runs the task's code, which could panic again and end the worker.
                forget(payload);
            }
        }
    }

    /// The payload of the task's panic, if it panicked.
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

    /// Makes the workers that finish from now on wake the caller.
    pub(super) fn watch(&self) {
        self.finished.fetch_or(WATCHED, Ordering::AcqRel);
    }

    /// Lets [`Job::next_to_wake`] begin.
    pub(super) fn start_waking(&self) {
        self.wake_cursor.store(0, Ordering::Release);
    }

    /// The next position within [`Job::slots`] that may hold a sleeping worker; none when all have been
    /// visited, when waking has not begun, or when no chunk is left for another worker.
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
            let of_share = |share| std::iter::from_fn(|| job.claim(share)).flatten().collect::<Vec<usize>>();
            let claimed: Vec<usize> = (0..job.shares).flat_map(of_share).collect();
            assert!(claimed.iter().copied().eq(0..chunks), "{chunks} chunks, {threads} threads");
            assert!(job.exhausted());
        }
    }

    #[test]
    fn few_chunks_are_claimed_one_by_one() {
        let task = |_: Range<usize>| {};
        let job = Job::new(&task, 63, 4, SLOTS);
        assert_eq!(job.claim(0), Some(0..1));
        let job = Job::new(&task, 640, 4, SLOTS);
        assert_eq!(job.claim(0), Some(0..10));
    }

    #[test]
    fn each_thread_has_a_share_of_its_own_and_takes_what_is_left_of_others() {
        let order = Mutex::new(Vec::new());
        let task = |range: Range<usize>| order.lock().unwrap().extend(range);
        let job = Job::new(&task, 7, 3, SLOTS);
        let shares: Vec<usize> = (0..3).map(|participant| job.share_of(participant)).collect();
        assert_eq!(shares, [1, 2, 0]);
        job.claim(1);
        // SAFETY: `task` is alive.
        unsafe { job.work(1) };
        assert_eq!(*order.lock().unwrap(), [4, 5, 6, 0, 1, 3]);
        assert!(job.exhausted());
    }

    #[test]
    fn a_cpu_keeps_its_share_when_the_caller_moves() {
        let task = |_: Range<usize>| {};
        // Four workers, each bound to a CPU; the caller is on `own`.
        let share_of_cpu = |own: usize, cpu: usize| {
            let slots = SlotRange { first: own + 1, count: 3 };
            let participant = (cpu + 4 - own) % 4;
            Job::new(&task, 100, 4, slots).share_of(participant)
        };
        for cpu in 0..4 {
            let shares = [0, 1, 2, 3].map(|own| share_of_cpu(own, cpu));
            assert_eq!(shares, [shares[0]; 4], "CPU {cpu}");
        }
    }

    #[test]
    fn more_threads_than_shares_share_them() {
        let task = |_: Range<usize>| {};
        let job = Job::new(&task, 1000, 3 * MAX_SHARES, SLOTS);
        assert!((0..3 * MAX_SHARES).all(|participant| job.share_of(participant) < MAX_SHARES));
    }

    #[test]
    fn a_panic_ends_the_region_and_the_first_payload_is_kept() {
        let task = |range: Range<usize>| panic!("chunk {}", range.start);
        let job = Job::new(&task, 5, 2, SLOTS);
        // SAFETY: `task` is alive.
        unsafe { job.work(0) };
        assert!(job.exhausted());
        let payload = job.into_panic().expect("the task panicked");
        assert_eq!(payload.downcast_ref::<String>().map(String::as_str), Some("chunk 2"));
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
        job.claim(1);
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
