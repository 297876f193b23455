//! How long it takes to start and join a parallel region, and what the machine's peaks are.
//!
//! `cargo run --release --example dispatch_latency -p tilewright-cpu`

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tilewright_cpu::machine::Machine;
use tilewright_cpu::peak::Peaks;
use tilewright_cpu::pool::ThreadPool;

const REGIONS: usize = 20_000;
const COLD_REGIONS: usize = 200;

fn main() {
    match Machine::host() {
        Ok(machine) => println!("{}\n{machine}\n", machine.brand),
        Err(error) => println!("{error}\n"),
    }
    let pool = ThreadPool::global();
    println!("{:>8} {:>40} {:>10} {:>10} {:>10}", "threads", "region", "median", "90 %", "best");
    let mut threads = 1;
    while threads <= pool.threads() {
        report(threads, "empty", REGIONS, || empty(pool, threads));
        report(threads, "all threads meet, workers spinning", REGIONS, || meet(pool, threads));
        report(threads, "all threads meet, workers asleep", COLD_REGIONS, || {
            thread::sleep(Duration::from_millis(1));
            meet(pool, threads)
        });
        threads = if threads == pool.threads() { threads + 1 } else { (threads * 2).min(pool.threads()) };
    }
    for pool in [ThreadPool::new(1), ThreadPool::new(pool.threads()), ThreadPool::new(4 * pool.threads())] {
        report(pool.threads(), "64 chunks of 10 µs", COLD_REGIONS, || busy_chunks(&pool));
    }
    report(1, "a new thread, joined, for comparison", COLD_REGIONS, || {
        let begin = Instant::now();
        thread::spawn(|| ()).join().expect("the thread does nothing");
        begin.elapsed()
    });
    println!("\n{}", Peaks::measure(Duration::from_secs(3)));
}

/// A region with one chunk for each thread and nothing to do; the caller may do it all before a worker has
/// noticed.
fn empty(pool: &ThreadPool, threads: usize) -> Duration {
    let begin = Instant::now();
    pool.parallel_for(threads, threads, |range| _ = black_box(range));
    begin.elapsed()
}

/// A region in which every thread has to come before any may go: a full start and join.
fn meet(pool: &ThreadPool, threads: usize) -> Duration {
    let arrived = AtomicUsize::new(0);
    let begin = Instant::now();
    pool.parallel_for(threads, threads, |_| {
        arrived.fetch_add(1, Ordering::AcqRel);
        while arrived.load(Ordering::Acquire) < threads {
            spin_loop();
        }
    });
    begin.elapsed()
}

/// A region with real work, which also shows what more threads than CPUs cost.
fn busy_chunks(pool: &ThreadPool) -> Duration {
    let begin = Instant::now();
    pool.parallel_for(0, 64, |range| {
        for _ in range {
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_micros(10) {}
        }
    });
    begin.elapsed()
}

fn report(threads: usize, region: &str, count: usize, mut once: impl FnMut() -> Duration) {
    let mut times: Vec<Duration> = (0..count).map(|_| once()).collect();
    times.sort();
    let [median, most, best] =
        [times[count / 2], times[count * 9 / 10], times[0]].map(|time| time.as_nanos());
    println!("{threads:>8} {region:>40} {median:>7} ns {most:>7} ns {best:>7} ns");
}
