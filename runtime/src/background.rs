//! Work beside calls: better versions are made on one thread while calls run the version that there is.
//!
//! The thread is started when there is work and ends when there has been none for a while. A job that panics is reported and
//! costs only itself.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::error::Error;
use crate::settings::variable;

const BACKGROUND_VARIABLE: &str = "TILEWRIGHT_BACKGROUND";

/// The thread ends when nothing was to be done for this long.
const IDLE: Duration = Duration::from_secs(1);

/// Something to do, and what it is for people.
struct Job {
    what: String,
    run: Box<dyn FnOnce() + Send>,
}

struct Queue {
    urgent: VecDeque<Job>,
    others: VecDeque<Job>,
    /// Whether there is a thread that takes jobs.
    has_thread: bool,
    is_busy: bool,
}

static QUEUE: Mutex<Queue> =
    Mutex::new(Queue { urgent: VecDeque::new(), others: VecDeque::new(), has_thread: false, is_busy: false });
/// Told when there is a job.
static ADDED: Condvar = Condvar::new();
/// Told when all jobs are done.
static DONE: Condvar = Condvar::new();

/// How soon a job is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Priority {
    /// Calls would have to wait without it.
    Urgent,
    /// It only makes calls faster.
    Ordinary,
}

const UNDECIDED: u8 = 0;
const ON: u8 = 1;
const OFF: u8 = 2;

static MODE: AtomicU8 = AtomicU8::new(UNDECIDED);

/// Whether better versions are made beside calls.
///
/// # Errors
/// [`Error::Environment`] when `TILEWRIGHT_BACKGROUND` is neither 0 nor 1.
pub fn is_enabled() -> Result<bool, Error> {
    match MODE.load(Ordering::Relaxed) {
        ON => Ok(true),
        OFF => Ok(false),
        _ => decide(),
    }
}

#[cold]
fn decide() -> Result<bool, Error> {
    let on = match variable(BACKGROUND_VARIABLE)?.as_deref().map(str::trim) {
        None | Some("" | "1") => true,
        Some("0") => false,
        Some(value) => {
            let (variable, value) = (BACKGROUND_VARIABLE, value.to_owned());
            return Err(Error::Environment { variable, value, problem: "expected 0 or 1".to_owned() });
        }
    };
    // The application may have set it meanwhile.
    let mode = if on { ON } else { OFF };
    let set = MODE.compare_exchange(UNDECIDED, mode, Ordering::Relaxed, Ordering::Relaxed);
    Ok(set.err().unwrap_or(mode) == ON)
}

/// Says whether better versions are made beside calls, as they are at first.
///
/// Without it, the first call of a shape waits until the code for it is made, and the same calls give the same bits in every run:
/// while versions change, so may the order in which a kernel adds up floats.
pub fn set_enabled(enabled: bool) {
    MODE.store(if enabled { ON } else { OFF }, Ordering::Relaxed);
}

/// Waits until everything that was begun or is to be done beside calls is done. For tests and measurements.
pub fn finish() {
    let mut queue = queue();
    while queue.has_thread && (queue.is_busy || !queue.is_empty()) {
        queue = DONE.wait(queue).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Whether nothing is being done or is to be done beside calls: no version of a kernel is about to change.
pub fn is_idle() -> bool {
    let queue = queue();
    !queue.is_busy && queue.is_empty()
}

/// Lets the thread do something. Nothing is done when the system gives no thread.
pub(crate) fn submit(priority: Priority, what: String, run: impl FnOnce() + Send + 'static) {
    let job = Job { what, run: Box::new(run) };
    let mut queue = queue();
    match priority {
        Priority::Urgent => queue.urgent.push_back(job),
        Priority::Ordinary => queue.others.push_back(job),
    }
    if !queue.has_thread {
        match thread::Builder::new().name("tilewright-compile".to_owned()).spawn(work) {
            Ok(_) => queue.has_thread = true,
            Err(error) => {
                tracing::warn!(%error, "better versions of kernels are not made: there is no thread for it");
                (queue.urgent, queue.others) = Default::default();
            }
        }
    }
    drop(queue);
    ADDED.notify_one();
}

/// Does what there is to do, until there is nothing.
fn work() {
    while let Some(job) = next() {
        if catch_unwind(AssertUnwindSafe(job.run)).is_err() {
            tracing::error!(what = job.what, "the compiler panicked beside calls, which go on as before");
        }
        let mut queue = queue();
        queue.is_busy = false;
        if queue.is_empty() {
            DONE.notify_all();
        }
    }
}

/// The next job; `None` when the thread is to end.
fn next() -> Option<Job> {
    let has_none = |queue: &mut Queue| queue.is_empty();
    let waited = ADDED.wait_timeout_while(queue(), IDLE, has_none);
    let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
    let job = queue.urgent.pop_front().or_else(|| queue.others.pop_front());
    (queue.is_busy, queue.has_thread) = (job.is_some(), job.is_some());
    job
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.urgent.is_empty() && self.others.is_empty()
    }
}

fn queue() -> MutexGuard<'static, Queue> {
    // No code that could panic runs while the queue is changed.
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc;

    use super::*;

    /// One test, because the thread is that of the process.
    #[test]
    fn jobs_run_beside_urgent_ones_first_and_panics_cost_only_themselves() {
        let (start, started) = mpsc::channel::<()>();
        let done = Arc::new(Mutex::new(Vec::new()));
        submit(Priority::Ordinary, "waits".to_owned(), move || assert!(started.recv().is_ok()));
        for (priority, number) in [(Priority::Ordinary, 1), (Priority::Urgent, 2), (Priority::Ordinary, 3)] {
            let done = Arc::clone(&done);
            submit(priority, number.to_string(), move || done.lock().unwrap().push(number));
        }
        submit(Priority::Urgent, "panics".to_owned(), || panic!("on purpose"));
        start.send(()).expect("the first job waits for it");
        finish();
        assert_eq!(*done.lock().unwrap(), [2, 1, 3]);
        assert!(queue().has_thread);
        thread::sleep(IDLE + IDLE / 2);
        assert!(!queue().has_thread, "it has ended");

        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        submit(Priority::Ordinary, "again".to_owned(), move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        finish();
        assert_eq!(count.load(Ordering::Relaxed), 1, "a new thread was started");
    }
}
