//! Tests of whole regions, with real threads.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

use super::*;

const CHUNK_COUNTS: [usize; 6] = [0, 1, 2, 13, 97, 1009];

/// Runs one region and says which chunk was not called exactly once.
fn check_region(pool: &ThreadPool, threads: usize, chunks: usize) {
    let calls: Vec<AtomicUsize> = (0..chunks).map(|_| AtomicUsize::new(0)).collect();
    pool.parallel_for(threads, chunks, |range| {
        assert!(!range.is_empty(), "empty range {range:?}");
        for chunk in range {
            calls[chunk].fetch_add(1, Ordering::Relaxed);
        }
    });
    for (chunk, calls) in calls.iter().enumerate() {
        let calls = calls.load(Ordering::Relaxed);
        assert_eq!(calls, 1, "chunk {chunk} of {chunks} with {threads} threads");
    }
}

/// A region of which each of `threads` chunks waits for all others, so that each needs a thread of its own.
fn meet(pool: &ThreadPool, threads: usize) {
    let barrier = Barrier::new(threads);
    pool.parallel_for(threads, threads, |range| {
        assert_eq!(range.len(), 1);
        barrier.wait();
    });
}

#[test]
fn every_chunk_runs_once_for_all_counts() {
    for size in 1..=8 {
        let pool = ThreadPool::new(size);
        for threads in 0..=8 {
            for chunks in CHUNK_COUNTS {
                for _ in 0..10 {
                    check_region(&pool, threads, chunks);
                }
            }
        }
    }
}

#[test]
fn thousands_of_small_regions() {
    for size in [2, 3] {
        let pool = ThreadPool::new(size);
        for round in 0..4000 {
            check_region(&pool, size, CHUNK_COUNTS[round % 4]);
        }
    }
}

#[test]
fn workers_wake_again_after_sleeping() {
    let pool = ThreadPool::new(2);
    for _ in 0..100 {
        meet(&pool, 2);
        thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn as_many_threads_take_part_as_were_asked_for() {
    let pool = ThreadPool::new(8);
    for threads in 1..=8 {
        for _ in 0..20 {
            meet(&pool, threads);
        }
    }
}

#[test]
fn the_default_limit_is_the_whole_pool() {
    let pool = ThreadPool::new(3);
    let (ids, barrier) = (Mutex::new(HashSet::new()), Barrier::new(3));
    pool.parallel_for(0, 3, |_| {
        barrier.wait();
        ids.lock().unwrap().insert(thread::current().id());
    });
    assert_eq!(ids.into_inner().unwrap().len(), 3);
    assert!(ThreadPool::global().threads() >= 1);
}

#[test]
fn the_limit_of_threads_is_kept() {
    let pool = ThreadPool::new(8);
    for limit in 1..=4 {
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        pool.parallel_for(limit, 200, |_| {
            most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::yield_now();
            inside.fetch_sub(1, Ordering::SeqCst);
        });
        assert!(most.into_inner() <= limit, "limit {limit}");
    }
}

#[test]
fn nested_regions_run_inline() {
    let pool = ThreadPool::new(2);
    for _ in 0..200 {
        let total = AtomicUsize::new(0);
        pool.parallel_for(2, 5, |outer| {
            let here = thread::current().id();
            for _ in outer {
                pool.parallel_for(2, 7, |inner| {
                    assert_eq!(thread::current().id(), here, "a nested region left its thread");
                    ThreadPool::global().parallel_for(2, inner.len(), |innermost| {
                        total.fetch_add(innermost.len(), Ordering::Relaxed);
                    });
                });
            }
        });
        assert_eq!(total.into_inner(), 35);
    }
}

#[test]
fn a_region_on_one_thread_makes_its_task_inline_too() {
    let pool = ThreadPool::new(2);
    let here = thread::current().id();
    pool.parallel_for(1, 3, |_| {
        pool.parallel_for(2, 100, |_| assert_eq!(thread::current().id(), here));
    });
    meet(&pool, 2);
}

#[test]
fn many_callers_at_once() {
    let pool = ThreadPool::new(2);
    thread::scope(|scope| {
        for caller in 0..6 {
            let pool = &pool;
            scope.spawn(move || {
                for round in 0..500 {
                    check_region(pool, 1 + (round + caller) % 4, CHUNK_COUNTS[(round + caller) % 5]);
                }
            });
        }
    });
}

#[test]
fn a_second_caller_gets_the_workers_left_over() {
    let pool = ThreadPool::new(4);
    // Two regions of two threads each fit into a pool of four and must be able to run at the same time.
    let barrier = Barrier::new(4);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| pool.parallel_for(2, 2, |_| _ = barrier.wait()));
        }
    });
}

#[test]
fn a_caller_that_finds_no_worker_runs_alone() {
    let pool = ThreadPool::new(2);
    let (begun, finish) = (Barrier::new(3), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            pool.parallel_for(2, 2, |_| {
                begun.wait();
                while !finish.load(Ordering::Acquire) {
                    thread::yield_now();
                }
            });
        });
        begun.wait();
        check_region(&pool, 2, 97);
        finish.store(true, Ordering::Release);
    });
}

#[test]
fn a_panic_reaches_the_caller_and_the_pool_goes_on() {
    for size in [1, 2, 4] {
        let pool = ThreadPool::new(size);
        for bad in 0..13 {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                pool.parallel_for(size, 13, |range| {
                    assert!(!range.contains(&bad), "chunk {bad} is bad");
                });
            }));
            let payload = outcome.expect_err("the panic was lost");
            let message = payload.downcast_ref::<String>().expect("the payload was changed");
            assert!(message.contains(&format!("chunk {bad} is bad")), "{message}");
            check_region(&pool, size, 97);
        }
        meet(&pool, size);
    }
}

#[test]
fn panics_in_all_threads_at_once() {
    let pool = ThreadPool::new(4);
    let barrier = Barrier::new(4);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        pool.parallel_for(4, 4, |_| {
            barrier.wait();
            panic!("each");
        });
    }));
    assert_eq!(outcome.expect_err("lost").downcast_ref::<&str>(), Some(&"each"));
    meet(&pool, 4);
}

#[test]
fn what_the_workers_wrote_is_seen_by_the_caller() {
    let pool = ThreadPool::new(2);
    for round in 0..2000_i64 {
        let data: Vec<AtomicI64> = (0..64).map(|_| AtomicI64::new(0)).collect();
        pool.parallel_for(2, 64, |range| {
            for index in range {
                // Relaxed: the end of the region alone has to publish it.
                data[index].store(round + index as i64, Ordering::Relaxed);
            }
        });
        for (index, value) in data.iter().enumerate() {
            assert_eq!(value.load(Ordering::Relaxed), round + index as i64, "round {round}, chunk {index}");
        }
    }
}

unsafe extern "C" fn add_range(context: *mut u8, begin: i64, end: i64) {
    // SAFETY: the tests below pass an `AtomicI64` that outlives the region.
    let sum = unsafe { &*context.cast::<AtomicI64>() };
    sum.fetch_add((begin..end).sum(), Ordering::Relaxed);
}

#[test]
fn the_raw_forms_cover_the_range() {
    let pool = ThreadPool::new(2);
    for chunks in [-3, 0, 1, 2, 97, 100_000_i64] {
        let sum = AtomicI64::new(0);
        let context = std::ptr::from_ref(&sum).cast_mut().cast();
        // SAFETY: `add_range` accepts any range from any thread, and `sum` outlives the call.
        unsafe { pool.parallel_for_raw(2, chunks, add_range, context) };
        // SAFETY: as above.
        unsafe { parallel_for_entry(-1, chunks, add_range, context) };
        let expected = if chunks > 0 { chunks * (chunks - 1) } else { 0 };
        assert_eq!(sum.into_inner(), expected, "{chunks} chunks");
    }
}

#[test]
fn a_pool_can_be_dropped_at_any_time() {
    for size in [1, 2, 5] {
        drop(ThreadPool::new(size));
        for _ in 0..50 {
            let pool = ThreadPool::new(size);
            check_region(&pool, size, 5);
            drop(pool);
        }
        let pool = ThreadPool::new(size);
        meet(&pool, size);
        thread::sleep(Duration::from_micros(300));
        drop(pool);
    }
}

#[test]
fn a_huge_number_of_chunks_does_not_wrap() {
    let pool = ThreadPool::new(2);
    for chunks in [isize::MAX as usize, usize::MAX] {
        let total = AtomicUsize::new(0);
        pool.parallel_for(2, chunks, |range| {
            total.fetch_add(range.len(), Ordering::Relaxed);
        });
        assert_eq!(total.into_inner(), chunks);
    }
}
