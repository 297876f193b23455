//! Prefetches of later iterations.
//!
//! A prefetch changes no result and never faults, whatever its address.

use std::ops::Range;

use tilewright_core::annotation::{MAX_PREFETCH, PREFETCH};
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::Index;
use tilewright_core::stmt::For;

use crate::simd::build::memory::linear::{Product, Sum};
use crate::simd::build::{Binding, Builder};
use crate::simd::ir::{Base, Inst, Op, Operand, Reg, Width};

/// A cache line, in bytes.
pub(in crate::simd::build) const LINE: i64 = 64;

/// The greatest distance in bytes of a prefetch into the first-level cache, which would lose data from farther ahead before it is
/// used. Such data goes to the second-level cache.
const NEAR: i64 = 16 << 10;

/// A loop whose later iterations are prefetched.
#[derive(Clone, Copy, Debug)]
pub(in crate::simd::build) struct PrefetchedLoop {
    var: VarId,
    /// The prefetch distance, in iterations.
    distance: i64,
    /// The number of its iterations, where that is a constant.
    extent: Option<i64>,
}

/// A prefetched line: the registers of its address, and its number from there.
pub(in crate::simd::build) type Line = (Base, Option<(Reg, u8)>, i32);

impl Builder<'_> {
    /// Lets the loads of a loop be prefetched while its body is built.
    pub(in crate::simd::build) fn open_prefetch(&mut self, node: &For) -> bool {
        let Some(distance) = PREFETCH.get(&node.annotations) else { return false };
        let extent = self.resolve(&node.extent).as_constant();
        self.prefetched_loops.push(PrefetchedLoop {
            var: node.var,
            distance: distance.clamp(1, MAX_PREFETCH),
            extent,
        });
        true
    }

    /// Prefetches the data that an access touches in later iterations of the loops around, where it moves to another line.
    pub(in crate::simd::build) fn prefetch_ahead(&mut self, buffer: BufferId, index: &Index) {
        for number in 0..self.prefetched_loops.len() {
            if let Some((later, bytes)) = self.later(buffer, index, self.prefetched_loops[number]) {
                self.prefetch_line(buffer, &later, bytes.is_none_or(|bytes| bytes.abs() <= NEAR));
            }
        }
    }

    /// Prefetches the line of an element that lies inside or behind a buffer, into the first-level cache if it is `near`.
    pub(in crate::simd::build) fn prefetch_line(&mut self, buffer: BufferId, index: &Index, near: bool) {
        // An address that cannot be formed is not prefetched.
        let Ok(mem) = self.address(buffer, index) else { return };
        let line = (mem.base, mem.index, mem.offset.div_euclid(LINE as i32));
        if self.scope().prefetched_lines.insert(line) {
            // It changes nothing, so that loads may be moved past it.
            let mem = crate::simd::build::Mem { buffer: None, ..mem };
            self.push(Inst::new(Op::Prefetch { near }, Width::Xmm, None, [Operand::Mem(mem)]));
        }
    }

    /// The index to prefetch for an access, and its distance in bytes (unknown with run-time strides); `None` when a prefetch is
    /// not worth it: the access stays in its line, a loop inside goes through the line in small steps, or the next run of the
    /// loop touches the same lines again.
    fn later(&self, buffer: BufferId, index: &Index, ahead: PrefetchedLoop) -> Option<(Index, Option<i64>)> {
        if self.allocated.contains(&buffer) {
            return None;
        }
        let size = self.program.buffer(buffer).dtype.bytes() as i64;
        let index = self.resolve(index);
        let products = Sum::of(&index).scaled(size).products;
        let Some(Binding::Loop(level)) = self.variables.get(&ahead.var) else { return None };
        let goes_on = |around: VarId| match step(&products, around) {
            Step::None | Step::Unknown => true,
            Step::Constant(bytes) => bytes.abs() >= LINE,
            Step::Uneven => false,
        };
        if !self.loops(level + 1..self.scopes.len()).all(goes_on) {
            return None;
        }
        let bytes = match step(&products, ahead.var) {
            Step::Constant(bytes) if bytes.abs() >= LINE => bytes.checked_mul(ahead.distance),
            Step::Unknown => None,
            _ => return None,
        };
        if ahead.extent.is_some_and(|extent| ahead.distance >= extent)
            && self.stays(&index, &products, *level)
        {
            return None;
        }
        let by = |other: VarId| (other == ahead.var).then(|| Index::var(ahead.var).offset(ahead.distance));
        Some((index.substitute(&by), bytes))
    }

    /// Whether no loop around that of a scope changes an address.
    fn stays(&self, index: &Index, products: &[Product], level: usize) -> bool {
        let mut is_known = true;
        index.for_each_var(&mut |var| is_known &= matches!(self.variables.get(&var), Some(Binding::Loop(_))));
        is_known && self.loops(0..level).all(|around| matches!(step(products, around), Step::None))
    }

    /// The variables of the loops whose bodies some scopes are, from the outermost.
    fn loops(&self, scopes: Range<usize>) -> impl Iterator<Item = VarId> {
        self.scopes[scopes].iter().filter_map(|scope| Some(scope.around.as_ref()?.var))
    }
}

/// The change of an address or index from one iteration of a loop to the next.
pub(in crate::simd::build) enum Step {
    /// No change.
    None,
    /// A constant.
    Constant(i64),
    /// A value that is known at run time only, the same in each iteration.
    Unknown,
    /// Another value in each iteration.
    Uneven,
}

pub(in crate::simd::build) fn step(products: &[Product], var: VarId) -> Step {
    let mut total = 0i64;
    let (mut moves, mut is_known) = (false, true);
    for product in products.iter().filter(|product| product.atoms.iter().any(|atom| atom.mentions(var))) {
        let Some(slope) = product.slope(var) else { return Step::Uneven };
        moves = true;
        is_known &= slope.atoms.is_empty();
        total = total.wrapping_add(slope.coefficient);
    }
    match (moves, is_known) {
        (false, _) => Step::None,
        (true, true) => Step::Constant(total),
        (true, false) => Step::Unknown,
    }
}
