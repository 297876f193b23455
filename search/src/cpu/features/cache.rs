//! How much a block fetches into a cache.
//!
//! What an access touched is touched again when a loop around it repeats it, and is still there if what all accesses touch
//! meanwhile leaves it in its place. This is judged loop by loop, for each access alone: an operand that streams through a
//! cache does not hinder a small one to stay. Widths of transitions were fitted to the times of about a thousand candidates of the
//! operator set (rank correlation 0.80; 0.76 with one working set for all accesses).

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

/// How many times as long a line takes to come that no prefetcher expects.
const JUMP: f64 = 1.5;

/// Places that prefetchers follow at a time.
const STREAMS: f64 = 16.0;

/// Data that other blocks touched, or an earlier call, is still there when no more than this share of a cache was touched since.
const KEPT: f64 = 0.75;

impl Cache {
    /// Whether it keeps so many bytes from one use to the next.
    pub(super) fn keeps(self, bytes: f64) -> bool {
        bytes <= KEPT * self.bytes
    }
}

impl BlockFacts<'_> {
    /// The bytes fetched into a cache, weighted by how long they take to come, without what other blocks have just left in
    /// it.
    pub(super) fn fetched_into(&self, cache: Cache) -> f64 {
        let losses: Vec<f64> = self.working_set.iter().map(|touched| loss(touched / cache.bytes)).collect();
        let from_afar = self.accesses.iter().filter(|access| !cache.keeps(access.distance));
        let fetched = |access: &AccessFact| {
            let at_once = if self.is_transposed(access) { 2 } else { access.loops_in_registers(&self.loops) };
            access.fetched_into(cache, &losses, &self.loops, at_once)
        };
        from_afar.map(fetched).sum()
    }
}

/// The share of what was touched that is lost when it is touched again, after so many times a cache's size was
/// touched: replacement is not exact, so that neither is the limit.
fn loss(share: f64) -> f64 {
    ((share - 0.6) / 0.6).clamp(0.0, 1.0)
}

/// The same where an access alone takes up so many times a cache's size: ways run over one by one.
fn loss_by_conflicts(share: f64) -> f64 {
    ((share - 0.9) / 0.4).clamp(0.0, 1.0)
}

impl AccessFact {
    /// The bytes fetched into a cache. `losses` says for each depth which share of what the loops from there inwards touch is
    /// gone when it is touched next; what the innermost loops touch that are carried out `at_once` is fetched once for them all.
    fn fetched_into(&self, cache: Cache, losses: &[f64], loops: &[LoopFact], at_once: usize) -> f64 {
        let first = loops.len() - at_once;
        let mut fetched = self.line_bytes(first);
        for (depth, node) in loops[..first].iter().enumerate().rev() {
            // How much more an iteration touches that the one before did not.
            let growth = self.line_bytes(depth) / self.line_bytes(depth + 1);
            let growth = growth.clamp(1.0, node.extent.max(1.0));
            let conflicts = loss_by_conflicts(self.occupied(depth + 1, cache.way) / cache.bytes);
            fetched *= growth + (node.extent - growth).max(0.0) * losses[depth + 1].max(conflicts);
        }
        let directions = if self.is_written && !self.is_streamed { 2.0 } else { 1.0 };
        let is_scattered = self.touched(0) > cache.bytes && self.jumps(loops);
        fetched * directions * if is_scattered { JUMP } else { 1.0 }
    }

    /// The innermost loops during which what is written stays in registers.
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

    /// Whether it is touched at more places in turns than prefetchers follow: as many as the innermost loops have iterations that
    /// leave gaps between what they touch. The few rows that the taps of a filter read are followed each.
    fn jumps(&self, loops: &[LoopFact]) -> bool {
        let mut places = 1.0;
        for (depth, (node, stride)) in loops.iter().zip(&self.strides).enumerate().rev() {
            let is_written_out = matches!(node.kind, LoopKind::Unrolled | LoopKind::Vectorized);
            if is_written_out || *stride == Some(0) || node.extent <= 1.0 {
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

    /// The bytes of a cache that the loops from a depth inwards take up: more than they touch when runs lie at
    /// distances that let them compete for a few of the cache's sets. `way` is the size of the cache divided by its
    /// associativity, in bytes.
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
