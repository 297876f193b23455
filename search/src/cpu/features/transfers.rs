//! The cycles that transfers of data and translations of addresses add to the instructions of a block.

use tilewright_core::target::CpuTarget;

use crate::cpu::features::cache::Cache;
use crate::cpu::features::nest::BlockFacts;
use crate::cpu::features::reuse::touched;

/// The bytes of a way of the first-level cache: one page, where the cache is virtually indexed and physically tagged.
const L1_WAY: f64 = 4096.0;
/// The ways of a second- or third-level cache.
const WAYS: f64 = 16.0;
/// The pages whose translations a core has at hand: the entries of the first-level buffer for data that CPUID reports on Zen 3. Later cores have 96.
const TRANSLATIONS: f64 = 64.0;
/// Cycles to translate the address of a page that is not among the last [`TRANSLATIONS`]: the latency of the second-level buffer, on cores with AVX2
/// and with AVX-512.
const TRANSLATION: f64 = 7.0;

/// How fast a core gets data.
#[derive(Debug)]
struct Rates {
    /// Bytes per cycle from the second-level cache.
    second: f64,
    /// Bytes per cycle from the third-level cache.
    third: f64,
    /// Bytes per cycle from memory.
    memory: f64,
    /// The bytes of the third-level cache for each of the machine's cores. A virtual machine sees all of a cache that it shares with others.
    share_of_third: f64,
}

/// A core with vectors of 512 bits: fitted to measured candidates on Zen 5.
const WIDE: Rates = Rates { second: 64.0, third: 16.0, memory: 8.0, share_of_third: f64::INFINITY };

/// A core with shorter vectors: fitted to default schedules on two cores of a virtual machine on Zen 3, which find 8 of 32 MiB in the third-level cache.
const NARROW: Rates = Rates { second: 24.0, third: 16.0, memory: 4.0, share_of_third: 4.0 * 1024.0 * 1024.0 };

/// The caches that data comes through.
pub(super) struct Caches {
    rates: &'static Rates,
    first: Cache,
    second: Cache,
    /// The third-level cache, where a call's data does not fit into it.
    third: Option<Cache>,
    /// The threads, each with first- and second-level caches of its own.
    threads: f64,
}

impl Caches {
    /// The caches of a CPU. A third-level cache that holds all data of the blocks keeps it from one call to the next, and is left out.
    pub(super) fn of(cpu: &CpuTarget, blocks: &[BlockFacts<'_>], threads: f64) -> Self {
        let rates = if cpu.vector_bits < 512 { &NARROW } else { &WIDE };
        let by_ways = |bytes: f64| Cache { bytes, way: bytes / WAYS };
        let second = by_ways(cpu.l2_bytes as f64);
        let third = (cpu.l3_bytes.max(cpu.l2_bytes) as f64).min(rates.share_of_third * f64::from(cpu.cores));
        Caches {
            rates,
            first: Cache { bytes: cpu.l1_bytes as f64, way: L1_WAY },
            second,
            third: Some(by_ways(third)).filter(|third| !third.keeps(touched(blocks, 0))),
            threads,
        }
    }

    /// The cycles of one core for the instructions of a block and the transfers of its data. Transfers between caches go on while
    /// instructions do; loads wait for the translations of their addresses.
    pub(super) fn with_transfers(&self, instructions: f64, block: &BlockFacts<'_>) -> f64 {
        let rates = self.rates;
        let translations = TRANSLATION * block.translated_pages(TRANSLATIONS);
        let from_second = block.fetched_into(self.first, self.threads) / rates.second;
        let from_third = block.fetched_into(self.second, self.threads) / rates.third;
        let from_memory = self.third.map_or(0.0, |third| block.fetched_into(third, 1.0)) / rates.memory;
        overlapped(overlapped(instructions + translations, from_second), from_third) + from_memory
    }
}

/// The cycles of two kinds of work that run concurrently. Where both take about equally long, they delay each
/// other: a register tile of 16 × 16 floats, with as many loads as multiply-adds, took 1.17 times as long as
/// one of 8 × 32 (1024³, AVX-512), which the 4-norm gives and the maximum does not.
pub(super) fn overlapped(a: f64, b: f64) -> f64 {
    (a.powi(4) + b.powi(4)).powf(0.25)
}
