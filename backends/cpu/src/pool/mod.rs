//! The thread pool behind `parallel` loops.
//!
//! A region hands out chunks of an index range to a few pinned worker threads and to the calling thread,
//! which takes part; each begins with a share of its own. It is made for kernels that run for
//! microseconds: starting and joining a region among spinning workers takes no lock, no allocation and no
//! system call. Workers spin for a bounded time after their last job and then sleep.
//!
//! It is no general task scheduler: nothing is queued, and a region inside a region runs inline. A region uses no worker
//! that is busy with another caller's region. A caller never waits for a worker to begin: it takes back every
//! job that no worker has taken when the chunks are used up. So nothing can deadlock,
//! and a worker that is slow to wake delays nobody.

mod affinity;
mod job;
mod slot;
mod spin;
#[cfg(test)]
mod stress;
mod worker;

use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{JoinHandle, available_parallelism};
use std::time::Duration;

use job::{Job, SlotRange};
use slot::{Posted, Slot};
use worker::{RegionGuard, Shared};

/// How long a thread spins before it sleeps: several times the cost of waking a thread, so that a sequence of
/// kernels keeps its workers, and short enough that an idle application does not keep its cores busy.
const SPIN: Duration = Duration::from_micros(50);

/// A task in the form that compiled kernels have: processes the chunks `begin..end` with the data behind
/// `context`.
pub type RawTask = unsafe extern "C" fn(context: *mut u8, begin: i64, end: i64);

/// Threads that run the regions of `parallel` loops; see the module's description.
///
/// Making a pool is cheap: a worker thread starts when a region first needs it. Dropping a pool ends its
/// threads.
pub struct ThreadPool {
    shared: Arc<Shared>,
    threads: usize,
    /// For each CPU, the place of the worker that is bound to it; empty when the workers are not pinned.
    slot_of_cpu: Box<[Option<usize>]>,
    handles: Mutex<Vec<JoinHandle<()>>>,
}

impl ThreadPool {
    /// The pool that compiled kernels use: as many threads as the process may use at once.
    pub fn global() -> &'static Self {
        static GLOBAL: OnceLock<ThreadPool> = OnceLock::new();
        GLOBAL.get_or_init(|| Self::new(available_parallelism().map_or(1, NonZeroUsize::get)))
    }

    /// A pool whose regions use at most `threads` threads, the calling one included (0 is taken as 1).
    ///
    /// Up to the number of CPUs that the process may use, workers are pinned, one to a CPU. With more threads
    /// than that they are left to the system's scheduler and sleep at once instead of spinning, because a
    /// spinning thread would take the CPU from one that has work.
    pub fn new(threads: usize) -> Self {
        let threads = threads.max(1);
        let cpus = affinity::allowed_cpus();
        let available =
            if cpus.is_empty() { available_parallelism().map_or(1, NonZeroUsize::get) } else { cpus.len() };
        let spin = if threads <= available { SPIN } else { Duration::ZERO };
        if cpus.is_empty() || threads > available {
            return Self::from_parts(Shared::new((1..threads).map(|_| None), spin), threads, Box::default());
        }
        // One worker for each CPU, although a region uses one less: the caller may be on any of them, and its
        // CPU's worker is then the one left out.
        let mut slot_of_cpu = vec![None; cpus.iter().max().map_or(0, |last| last + 1)];
        for (index, &cpu) in cpus.iter().enumerate() {
            slot_of_cpu[cpu] = Some(index);
        }
        Self::from_parts(Shared::new(cpus.into_iter().map(Some), spin), threads, slot_of_cpu.into())
    }

    fn from_parts(shared: Shared, threads: usize, slot_of_cpu: Box<[Option<usize>]>) -> Self {
        Self { shared: Arc::new(shared), threads, slot_of_cpu, handles: Mutex::new(Vec::new()) }
    }

    /// The most threads that one region uses, the calling one included.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Calls `task` with disjoint, non-empty ranges that together are `0..chunks`, from up to `threads`
    /// threads at once, and returns when all is done.
    ///
    /// `threads` is an upper limit; 0 stands for [`ThreadPool::threads`], which is the limit in any case. The
    /// calling thread takes part. The region runs on the calling thread alone when it is inside another
    /// region, or when all workers serve other callers. The ranges depend on timing: a task whose result
    /// depends on how the range is cut is not deterministic.
    ///
    /// When `task` panics: chunks that have not begun are left out, and the first payload is raised in the
    /// caller.
    pub fn parallel_for<F: Fn(Range<usize>) + Sync>(&self, threads: usize, chunks: usize, task: F) {
        if chunks == 0 {
            return;
        }
        let region = RegionGuard::enter();
        let limit = if threads == 0 { self.threads } else { threads.min(self.threads) };
        let participants = limit.min(chunks);
        if participants == 1 || region.is_nested() || isize::try_from(chunks).is_err() {
            return task(0..chunks);
        }
        let job = Job::new(&task, chunks, participants, self.usable_slots());
        self.run(&job, participants - 1);
        if let Some(payload) = job.into_panic() {
            resume_unwind(payload);
        }
    }

    /// [`ThreadPool::parallel_for`] for compiled code: calls `function(context, begin, end)`.
    /// A number of chunks below one is no work.
    ///
    /// # Safety
    /// `function` may be called with `context` and any ranges within `0..chunks`, from several threads at the
    /// same time as long as the ranges are disjoint. It does not unwind.
    pub unsafe fn parallel_for_raw(&self, threads: usize, chunks: i64, function: RawTask, context: *mut u8) {
        let Ok(chunks) = usize::try_from(chunks) else { return };
        let context = SharedContext(context);
        self.parallel_for(threads, chunks, |range| {
            // SAFETY: the caller promises that `function` may be called so; `chunks` came from an i64, so the
            // bounds fit.
            unsafe { function(context.get(), range.start as i64, range.end as i64) }
        });
    }

    /// Offers the job to workers, works on it, and waits for those that took it.
    fn run(&self, job: &Job, helpers: usize) {
        let posted = self.post(job, helpers);
        // SAFETY: `parallel_for` keeps the task until after this function.
        unsafe { job.work(0) };
        if posted == 0 || job.finished() == posted {
            return;
        }
        // A job that no worker has taken by now is taken back; a job is only ever in the slots that it was posted
        // to.
        let retracted = self.shared.slots_of(job).filter(|(_, slot)| slot.retract(job)).count();
        self.shared.wait_for(job, posted - retracted);
    }

    /// Puts the job into the slots of up to `helpers` free workers and returns their number.
    fn post(&self, job: &Job, helpers: usize) -> usize {
        let mut posted = 0;
        let mut sleepers = false;
        for (index, slot) in self.shared.slots_of(job) {
            if posted == helpers {
                break;
            }
            match slot.post(job) {
                None => continue,
                Some(Posted::Awake) => {}
                Some(Posted::Asleep) => sleepers = true,
                Some(Posted::Vacant) => {
                    if !self.start_worker(index, slot, job) {
                        continue;
                    }
                }
            }
            posted += 1;
        }
        if sleepers {
            job.start_waking();
            self.shared.rouse_some(job);
        }
        posted
    }

    /// Starts the thread of a worker that has been given its first job; false when the system has no thread
    /// for us.
    #[cold]
    fn start_worker(&self, index: usize, slot: &Slot, job: &Job) -> bool {
        match worker::start(&self.shared, index) {
            Ok(handle) => {
                self.handles.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
                true
            }
            Err(error) => {
                tracing::warn!(%error, index, "worker thread could not be started; going on with fewer");
                slot.retire(job);
                false
            }
        }
    }

    /// All workers except the one that is bound to the CPU that the caller runs on.
    fn usable_slots(&self) -> SlotRange {
        let count = self.shared.slots().len();
        if self.slot_of_cpu.is_empty() {
            return SlotRange { first: 0, count };
        }
        let own = affinity::current_cpu().and_then(|cpu| self.slot_of_cpu.get(cpu).copied().flatten());
        SlotRange { first: own.map_or(0, |own| own + 1), count: count - 1 }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        for slot in self.shared.slots() {
            slot.stop();
        }
        let handles = self.handles.get_mut().unwrap_or_else(PoisonError::into_inner);
        for handle in handles.drain(..) {
            // A worker catches the panics of tasks, and has none of its own that could matter here.
            drop(handle.join());
        }
    }
}

/// A context pointer that may be given to several threads; [`ThreadPool::parallel_for_raw`] says why.
struct SharedContext(*mut u8);

// SAFETY: the pointer is only passed on, to a function that promises to accept it from several threads at
// once.
unsafe impl Sync for SharedContext {}

impl SharedContext {
    fn get(&self) -> *mut u8 {
        self.0
    }
}

/// The entry point for compiled code: [`ThreadPool::parallel_for_raw`] on the global pool. A value of `threads` below
/// one stands for all.
///
/// # Safety
/// As for [`ThreadPool::parallel_for_raw`].
pub unsafe extern "C" fn parallel_for_entry(threads: i64, chunks: i64, function: RawTask, context: *mut u8) {
    // SAFETY: the caller promises the same.
    unsafe {
        ThreadPool::global().parallel_for_raw(threads.max(0) as usize, chunks, function, context);
    }
}
