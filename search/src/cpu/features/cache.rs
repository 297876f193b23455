//! The bytes that a block fetches into a cache.
//!
//! A loop around an access touches the same data again. The data is still in the cache if the accesses between the two uses did not
//! evict it. The model decides this loop by loop, for each access alone: an operand that streams through a cache does not evict a
//! small one. The widths of the transitions were fitted to the times of about a thousand candidates of the operator set (rank
//! correlation 0.80; 0.76 with one working set for all accesses).

use tilewright_core::stmt::LoopKind;

use crate::cpu::features::access::{AccessFact, LINE};
use crate::cpu::features::nest::{BlockFacts, LoopFact};

/// A cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cache {
    pub(super) bytes: f64,
    /// The size of a way, in bytes: lines at this distance compete for the same places.
    pub(super) way: f64,
}

/// The cost of a line that no hardware prefetcher expects, relative to one that it does.
const JUMP: f64 = 1.5;

/// Streams that hardware prefetchers follow at a time.
const STREAMS: f64 = 16.0;

/// Data of other blocks, or of an earlier call, is still cached when no more than this share of the cache was touched since.
const KEPT: f64 = 0.75;

impl Cache {
    /// Whether it keeps a number of bytes from one use to the next.
    pub(super) fn keeps(self, bytes: f64) -> bool {
        bytes <= KEPT * self.bytes
    }
}

impl BlockFacts<'_> {
    /// The bytes fetched into a cache, weighted by their latency, without the data that other blocks have just left in it. Of what a parallel loop
    /// touches, each of `caches` holds a part from one execution of the loop to the next.
    pub(super) fn fetched_into(&self, cache: Cache, caches: f64) -> f64 {
        let parallel = self.loops.iter().position(|node| node.kind == LoopKind::Parallel);
        let parts = parallel.map_or(1.0, |place| caches.min(self.loops[place].extent).max(1.0));
        let share = |depth: usize| if Some(depth) <= parallel { 1.0 / parts } else { 1.0 };
        let sets = self.working_set.iter().enumerate();
        let losses: Vec<f64> =
            sets.map(|(depth, touched)| loss(touched * share(depth) / cache.bytes)).collect();
        let from_afar = self.accesses.iter().filter(|access| !cache.keeps(access.distance));
        from_afar
            .map(|access| {
                access.fetched_into(cache, &losses, &share, &self.loops, self.loops_outside(access))
            })
            .sum()
    }

    /// The pages whose address is translated anew: they are not among the last `entries` ones.
    pub(super) fn translated_pages(&self, entries: f64) -> f64 {
        let pages = |depth: usize| self.accesses.iter().map(|access| access.pages(depth)).sum::<f64>();
        let losses: Vec<f64> = (0..=self.loops.len()).map(|depth| loss(pages(depth) / entries)).collect();
        let translated = |access: &AccessFact| {
            let pages = |depth: usize| access.pages(depth);
            fetched_by(&self.loops[..self.loops_outside(access)], &pages, &|depth| losses[depth])
        };
        self.accesses.iter().map(translated).sum()
    }

    /// The number of outer loops whose iterations each load or store the data of an access: the others do so once together.
    fn loops_outside(&self, access: &AccessFact) -> usize {
        let at_once = if self.is_transposed(access) { 2 } else { access.loops_in_registers(&self.loops) };
        self.loops.len() - at_once
    }
}

/// The bytes, or pages, that the loops around an access fetch. `size` gives the size of the data that the loops from a depth inwards touch, and `lost` the share of
/// these data that is evicted before the next use.
fn fetched_by(loops: &[LoopFact], size: &dyn Fn(usize) -> f64, lost: &dyn Fn(usize) -> f64) -> f64 {
    let mut inner = size(loops.len());
    let mut fetched = inner;
    for (depth, node) in loops.iter().enumerate().rev() {
        let outer = size(depth);
        // The data of all iterations over that of one: consecutive iterations may overlap.
        let growth = (outer / inner).clamp(1.0, node.extent.max(1.0));
        fetched *= growth + (node.extent - growth).max(0.0) * lost(depth + 1);
        inner = outer;
    }
    fetched
}

/// The share of the data that is evicted between two uses; `share` is the bytes touched between them, over the cache's size.
/// Replacement is not exact LRU, so that the transition is gradual.
fn loss(share: f64) -> f64 {
    ((share - 0.6) / 0.6).clamp(0.0, 1.0)
}

/// The share that is evicted by conflicts; `share` is the bytes that one access occupies, over the cache's size. The ways
/// overflow one after the other.
fn loss_by_conflicts(share: f64) -> f64 {
    ((share - 0.9) / 0.4).clamp(0.0, 1.0)
}

impl AccessFact {
    /// The bytes fetched into a cache by the `outside` outer loops. `losses` gives for each depth the share of the working set from there inwards that is
    /// evicted before its next use, and `share` the share of the data that one cache holds.
    fn fetched_into(
        &self,
        cache: Cache,
        losses: &[f64],
        share: &dyn Fn(usize) -> f64,
        loops: &[LoopFact],
        outside: usize,
    ) -> f64 {
        let lost = |depth: usize| {
            let occupied = self.occupied(depth, cache.way) * share(depth);
            let conflicts = loss_by_conflicts(occupied / cache.bytes);
            losses[depth].max(conflicts)
        };
        let fetched = fetched_by(&loops[..outside], &|depth| self.line_bytes(depth), &lost);
        let directions = if self.is_written && !self.is_streamed { 2.0 } else { 1.0 };
        let is_scattered = self.touched(0) > cache.bytes && self.jumps(loops);
        fetched * directions * if is_scattered { JUMP } else { 1.0 }
    }

    /// The number of innermost loops during which the results stay in registers.
    fn loops_in_registers(&self, loops: &[LoopFact]) -> usize {
        if !self.is_written {
            return 0;
        }
        let stays = |(node, stride): &(&LoopFact, &Option<i64>)| match node.kind {
            LoopKind::Unrolled | LoopKind::Vectorized => true,
            LoopKind::Serial | LoopKind::Parallel | LoopKind::Bound(_) => {
                node.is_reduction && **stride == Some(0)
            }
        };
        loops.iter().zip(&self.strides).rev().take_while(stays).count()
    }

    /// Whether it alternates between more streams than hardware prefetchers follow. Each iteration of an innermost loop that leaves gaps
    /// between its accesses is one stream. The few rows that the taps of a filter read are within the limit.
    fn jumps(&self, loops: &[LoopFact]) -> bool {
        let mut places = 1.0;
        for (depth, (node, stride)) in loops.iter().zip(&self.strides).enumerate().rev() {
            let is_unrolled = matches!(node.kind, LoopKind::Unrolled | LoopKind::Vectorized);
            if is_unrolled || *stride == Some(0) || node.extent <= 1.0 {
                continue;
            }
            let Some(stride) = stride else { return false };
            let run = self.touched(depth + 1) / self.runs[depth + 1];
            if stride.unsigned_abs() as f64 * self.bytes <= run.max(LINE) {
                return false;
            }
            places *= node.extent;
            if places > STREAMS {
                return true;
            }
        }
        false
    }

    /// The bytes of a cache that the loops from a depth inwards occupy: more than they touch when their runs map to a few of
    /// the cache's sets. `way` is the size of the cache divided by its associativity, in bytes.
    fn occupied(&self, depth: usize, way: f64) -> f64 {
        let touched = self.line_bytes(depth);
        let (runs, pitch) = (self.runs[depth], self.pitches[depth]);
        if runs <= 1.0 {
            return touched;
        }
        let starts = way / common_divisor(pitch as u64, way as u64) as f64;
        let reachable = (starts * (touched / runs)).min(way);
        touched * way / reachable
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a.max(1) } else { common_divisor(b, a % b) }
}
