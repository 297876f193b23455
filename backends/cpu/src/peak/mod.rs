//! Measured peaks of the machine, to which the speed of kernels is compared.
//!
//! Peaks are measured and not computed from a data sheet, because the clock follows the temperature, the
//! number of busy cores and the vector width, and because virtual machines share their cores. Compare a
//! kernel only with peaks of the same run. These are limits of the arithmetic units and of copying, not
//! predictions of a kernel's time.

mod fma;

use std::fmt;
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fma::FmaLoop;

use super::machine::Machine;
use super::pool::ThreadPool;

/// The vector widths that are tried, in bits.
pub const VECTOR_BITS: [u32; 3] = [128, 256, 512];

/// A sample on one thread lasts at least this long, so that reading the clock does not count.
const SHORTEST_SAMPLE: Duration = Duration::from_micros(200);

/// A sample on several threads: waking a thread, which takes some 10 µs, must not count either.
const SHORTEST_PARALLEL_SAMPLE: Duration = Duration::from_millis(2);

/// Samples that are taken even when the time is up.
const FEWEST_SAMPLES: usize = 5;

/// A working set that does not fit into a core's own caches is this many times the second level, and at least
/// [`LARGE_WORKING_SET_BYTES`]. The third level says little: a virtual machine sees all of its host's.
const LARGE_OVER_L2: usize = 32;
/// See [`LARGE_OVER_L2`].
const LARGE_WORKING_SET_BYTES: usize = 64 << 20;

/// A measured rate, in 10⁹ per second: GFLOP/s or GB/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throughput {
    /// The median of the samples: the sustained rate.
    pub median: f64,
    /// The fastest sample: the rate without disturbances.
    pub best: f64,
}

/// The f32 fused multiply-add rate with one vector width; an addition and a multiplication count as two
/// operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FmaPeak {
    /// Width of the vectors in bits.
    pub vector_bits: u32,
    /// How many threads ran at once.
    pub threads: usize,
    /// The rate of all threads together.
    pub gflops: Throughput,
}

/// The rate of copying memory, with bytes read and bytes written both counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CopyPeak {
    /// Bytes of source and destination together, of all threads.
    pub working_set_bytes: usize,
    /// How many threads ran at once, each on its own part.
    pub threads: usize,
    /// The rate of all threads together. A cache that first reads the lines to be written moves more.
    pub gigabytes_per_second: Throughput,
}

/// The peaks of the running machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Peaks {
    /// For one thread and for all, each vector width that the machine has.
    pub fma: Vec<FmaPeak>,
    /// For one thread and for all, a working set within the first-level cache, one within the second, and one
    /// that fits into neither.
    pub copy: Vec<CopyPeak>,
}

impl Peaks {
    /// Measures everything, in about `duration` altogether.
    /// Features that the environment disables are measured all the same, because they belong to the machine.
    pub fn measure(duration: Duration) -> Self {
        let threads = match ThreadPool::global().threads() {
            1 => vec![1],
            all => vec![1, all],
        };
        // Without a readable override the sizes are those of a small machine, which is what they are used for
        // here.
        let (l1, l2) =
            Machine::host().map_or((32 << 10, 512 << 10), |machine| (machine.l1_bytes, machine.l2_bytes));
        let working_sets = [l1 / 2, l2 / 2, (l2 * LARGE_OVER_L2).max(LARGE_WORKING_SET_BYTES)];
        let figures = threads.len() * (VECTOR_BITS.len() + working_sets.len());
        let each = duration / figures as u32;
        let mut peaks = Self { fma: Vec::new(), copy: Vec::new() };
        for &threads in &threads {
            peaks.fma.extend(VECTOR_BITS.iter().filter_map(|&bits| fma_peak(bits, threads, each)));
            peaks.copy.extend(working_sets.iter().map(|&bytes| copy_peak(bytes * threads, threads, each)));
        }
        peaks
    }

    /// The rate with vectors of `vector_bits` on `threads` threads, if it was measured.
    pub fn fma(&self, vector_bits: u32, threads: usize) -> Option<FmaPeak> {
        self.fma.iter().copied().find(|peak| peak.vector_bits == vector_bits && peak.threads == threads)
    }
}

/// One line for each figure.
impl fmt::Display for Peaks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for FmaPeak { vector_bits, threads, gflops } in &self.fma {
            let Throughput { median, best } = gflops;
            writeln!(
                f,
                "f32 FMA {vector_bits:>3} bits, threads {threads:>3}: {median:8.1} GFLOP/s (best {best:.1})"
            )?;
        }
        for CopyPeak { working_set_bytes, threads, gigabytes_per_second } in &self.copy {
            let (Throughput { median, best }, kib) = (gigabytes_per_second, working_set_bytes >> 10);
            writeln!(f, "copy {kib:>8} KiB, threads {threads:>3}: {median:8.1} GB/s (best {best:.1})")?;
        }
        Ok(())
    }
}

/// Measures the f32 fused multiply-add rate for about `duration`; none when the machine lacks that vector
/// width.
///
/// `threads` is limited by the global pool, and 0 stands for all of it.
pub fn fma_peak(vector_bits: u32, threads: usize, duration: Duration) -> Option<FmaPeak> {
    let fma_loop = FmaLoop::detect(vector_bits)?;
    let threads = limit(threads);
    let gflops = sample(threads, duration, |repetitions| {
        each_thread(threads, |_| fma_loop.run(repetitions));
        fma_loop.flops(repetitions) * threads as u64
    });
    Some(FmaPeak { vector_bits, threads, gflops })
}

/// Measures the copying rate for about `duration`, with source and destination together of
/// `working_set_bytes` (at least two bytes a thread), cut into equal parts for the threads.
///
/// `threads` is limited by the global pool, and 0 stands for all of it.
pub fn copy_peak(working_set_bytes: usize, threads: usize, duration: Duration) -> CopyPeak {
    let threads = limit(threads);
    let half = (working_set_bytes / (2 * threads)).max(1);
    let parts: Vec<CopyPart> = (0..threads).map(|_| CopyPart::new(half)).collect();
    let gigabytes_per_second = sample(threads, duration, |repetitions| {
        each_thread(threads, |part| parts[part].copy(repetitions));
        2 * (half * threads) as u64 * repetitions
    });
    CopyPeak { working_set_bytes: 2 * half * threads, threads, gigabytes_per_second }
}

fn limit(threads: usize) -> usize {
    match ThreadPool::global().threads() {
        all if threads == 0 => all,
        all => threads.min(all),
    }
}

/// Runs `work` with the numbers `0..threads`, each on a thread of its own as long as the pool is free.
fn each_thread(threads: usize, work: impl Fn(usize) + Sync) {
    ThreadPool::global().parallel_for(threads, threads, |parts| parts.for_each(&work));
}

/// Source and destination of one thread.
struct CopyPart {
    source: Vec<u8>,
    destination: Mutex<Vec<u8>>,
}

impl CopyPart {
    fn new(bytes: usize) -> Self {
        // Not zeros: all zero pages could be one and the same in physical memory.
        Self { source: vec![1; bytes], destination: Mutex::new(vec![2; bytes]) }
    }

    fn copy(&self, repetitions: u64) {
        let mut destination = self.destination.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..repetitions {
            black_box(&mut destination[..]).copy_from_slice(black_box(&self.source));
        }
    }
}

/// Samples the rate of `work`, which repeats an operation a given number of times and returns the amount of work done.
fn sample(threads: usize, duration: Duration, work: impl Fn(u64) -> u64) -> Throughput {
    let shortest = if threads == 1 { SHORTEST_SAMPLE } else { SHORTEST_PARALLEL_SAMPLE };
    let begin = Instant::now();
    let mut repetitions = 1;
    // The search for the number of repetitions also warms up the clock, the caches and the workers.
    while time(|| _ = work(repetitions)) < shortest {
        repetitions *= 2;
    }
    let mut rates = Vec::new();
    while rates.len() < FEWEST_SAMPLES || begin.elapsed() < duration {
        let mut amount = 0;
        let taken = time(|| amount = work(repetitions));
        // Nanoseconds make it 10⁹ per second. At least one, for a clock that stands still.
        rates.push(amount as f64 / taken.as_nanos().max(1) as f64);
    }
    rates.sort_by(f64::total_cmp);
    Throughput { median: rates[rates.len() / 2], best: rates[rates.len() - 1] }
}

fn time(work: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    work();
    begin.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_sensible(Throughput { median, best }: Throughput) {
        assert!(median.is_finite() && median > 0.0 && median <= best && best.is_finite(), "{median} {best}");
    }

    #[test]
    fn fma_rates_are_measured_where_the_machine_has_the_width() {
        for bits in VECTOR_BITS {
            let peak = fma_peak(bits, 1, Duration::ZERO);
            assert_eq!(peak.is_some(), FmaLoop::detect(bits).is_some(), "{bits} bits");
            if let Some(peak) = peak {
                assert_eq!((peak.vector_bits, peak.threads), (bits, 1));
                assert_sensible(peak.gflops);
            }
        }
        assert_eq!(fma_peak(96, 1, Duration::ZERO), None);
    }

    #[test]
    fn threads_are_limited_by_the_pool() {
        let all = ThreadPool::global().threads();
        for (asked, used) in [(0, all), (1, 1), (all + 1, all)] {
            assert_eq!(copy_peak(4096, asked, Duration::ZERO).threads, used, "{asked} asked");
        }
    }

    #[test]
    fn tiny_working_sets_are_rounded_up() {
        for bytes in [0, 1, 2, 100] {
            let peak = copy_peak(bytes, 1, Duration::ZERO);
            assert_eq!(peak.working_set_bytes, bytes.max(2));
            assert_sensible(peak.gigabytes_per_second);
        }
    }

    #[test]
    fn all_peaks_are_measured_and_printed() {
        let peaks = Peaks::measure(Duration::ZERO);
        let counts = if ThreadPool::global().threads() == 1 { 1 } else { 2 };
        assert_eq!(peaks.copy.len(), 3 * counts);
        for peak in &peaks.fma {
            assert_eq!(peaks.fma(peak.vector_bits, peak.threads), Some(*peak));
        }
        assert_eq!(peaks.fma(64, 1), None);
        assert_eq!(peaks.to_string().lines().count(), peaks.fma.len() + peaks.copy.len());
    }
}
