//! Atomic operations.

use crate::exec::access::little_endian;
use crate::exec::lanes::float::{maximum, minimum};
use crate::exec::lanes::mode::Mode;
use crate::exec::lanes::{LaneValue, WARP, half};
use crate::exec::op::{Atomic, AtomicOp, NONE};
use crate::exec::run::Exec;
use crate::exec::state::lanes_of;
use crate::isa::types::Type;

impl Exec<'_> {
    /// `atom` and `red`: the lanes come one after the other.
    pub(crate) fn atomic(&mut self, atomic: &Atomic, mask: u32) {
        self.need_defined(atomic.base, mask);
        for slot in atomic.sources.iter().chain([&atomic.swap]).filter(|slot| **slot != NONE) {
            self.need_defined(*slot, mask);
        }
        let bytes = atomic.ty.bytes() as usize;
        let total = bytes * atomic.sources.len();
        let bases = *self.value(atomic.base);
        let mut old = [[0; WARP]; 8];
        for lane in lanes_of(mask) {
            let address = bases[lane].wrapping_add_signed(atomic.offset);
            let place = self.resolve(atomic.window, address, total as u64, lane, true);
            let Some(place) = place else { continue };
            self.hear(place, atomic.order, lane);
            if !self.same_bytes_written(place, total) {
                self.check_read(place, total, 1 << lane, true);
            }
            let mut data = [0; 64];
            data[..total].copy_from_slice(self.bytes(place, total));
            for (position, source) in atomic.sources.iter().enumerate() {
                let range = position * bytes..(position + 1) * bytes;
                let before = little_endian(&data[range.clone()]);
                let value = self.value(*source)[lane];
                let swap = if atomic.swap == NONE { 0 } else { self.value(atomic.swap)[lane] };
                let after = combine(atomic.op, atomic.ty, before, value, swap);
                data[range].copy_from_slice(&after.to_le_bytes()[..bytes]);
                old[position][lane] = before;
            }
            self.tell(place, atomic.order, lane);
            self.write(place, &data[..total], lane, true);
        }
        self.note_order(atomic);
        for (position, slot) in atomic.results.iter().enumerate() {
            if *slot != NONE {
                self.set(*slot, mask, mask, &old[position]);
            }
        }
    }

    /// Results of such operations may depend on the order of threads without a fault.
    fn note_order(&mut self, atomic: &Atomic) {
        let commutes = match atomic.op {
            AtomicOp::Exchange | AtomicOp::CompareAndSwap => false,
            AtomicOp::Add => !atomic.ty.is_float(),
            _ => true,
        };
        let told = !atomic.results.is_empty();
        if !commutes || told {
            self.grid.order_matters = true;
        }
    }

    /// Whether all bytes have a value, so that an atomic operation reads nothing unwritten.
    fn same_bytes_written(&self, place: crate::exec::resolve::Location, bytes: usize) -> bool {
        use crate::exec::resolve::Location;
        match place {
            Location::Global(number, at) => self.grid.memory.allocation(number).is_written(at, bytes),
            Location::Shared(at) => self.block.shared.written[at..at + bytes].iter().all(|written| *written),
            _ => true,
        }
    }
}

/// The new value of an atomic operation.
pub(crate) fn combine(op: AtomicOp, ty: Type, old: u64, value: u64, swap: u64) -> u64 {
    let mask = u64::MAX >> (64 - ty.bits());
    match op {
        AtomicOp::And => old & value,
        AtomicOp::Or => old | value,
        AtomicOp::Xor => old ^ value,
        AtomicOp::Exchange => value & mask,
        AtomicOp::CompareAndSwap => {
            if old & mask == value & mask {
                swap & mask
            } else {
                old
            }
        }
        AtomicOp::Increment => {
            if old >= value {
                0
            } else {
                old + 1
            }
        }
        AtomicOp::Decrement => {
            if old == 0 || old > value {
                value
            } else {
                old - 1
            }
        }
        AtomicOp::Add | AtomicOp::Min | AtomicOp::Max => arithmetic(op, ty, old, value) & mask,
    }
}

fn arithmetic(op: AtomicOp, ty: Type, old: u64, value: u64) -> u64 {
    match ty {
        Type::F32 => {
            let (a, b) = (<f32 as LaneValue>::of(old), <f32 as LaneValue>::of(value));
            match op {
                AtomicOp::Add => (a + b).bits(),
                AtomicOp::Min => (minimum(a.into(), b.into(), false) as f32).bits(),
                _ => (maximum(a.into(), b.into(), false) as f32).bits(),
            }
        }
        Type::F64 => {
            let (a, b) = (f64::from_bits(old), f64::from_bits(value));
            match op {
                AtomicOp::Add => (a + b).bits(),
                AtomicOp::Min => minimum(a, b, false).bits(),
                _ => maximum(a, b, false).bits(),
            }
        }
        Type::F16 | Type::Bf16 | Type::F16x2 | Type::Bf16x2 => halves(op, ty, old, value),
        _ if op == AtomicOp::Add => old.wrapping_add(value),
        Type::S32 => pick(op, old as u32 as i32, value as u32 as i32) as u32 as u64,
        Type::S64 => pick(op, old as i64, value as i64) as u64,
        Type::U32 => u64::from(pick(op, old as u32, value as u32)),
        _ => pick(op, old, value),
    }
}

fn pick<T: Ord>(op: AtomicOp, a: T, b: T) -> T {
    if op == AtomicOp::Min { a.min(b) } else { a.max(b) }
}

fn halves(op: AtomicOp, ty: Type, old: u64, value: u64) -> u64 {
    let packed = matches!(ty, Type::F16x2 | Type::Bf16x2);
    let brain = matches!(ty, Type::Bf16 | Type::Bf16x2);
    let name = match op {
        AtomicOp::Add => "add",
        AtomicOp::Min => "min",
        _ => "max",
    };
    let mode = Mode { brain, ..Mode::PLAIN }.word();
    half::binary(name, packed).map_or(old, |f| f.scalar([old, value, mode, 0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_wrap_at_their_bound() {
        let of = |op, old, bound| combine(op, Type::U32, old, bound, 0);
        assert_eq!(of(AtomicOp::Increment, 2, 3), 3);
        assert_eq!(of(AtomicOp::Increment, 3, 3), 0);
        assert_eq!(of(AtomicOp::Decrement, 0, 3), 3);
        assert_eq!(of(AtomicOp::Decrement, 7, 3), 3);
        assert_eq!(of(AtomicOp::Decrement, 2, 3), 1);
    }

    #[test]
    fn signs_decide_extrema() {
        let minus = u64::from(-1_i32 as u32);
        assert_eq!(combine(AtomicOp::Min, Type::S32, 1, minus, 0), minus);
        assert_eq!(combine(AtomicOp::Min, Type::U32, 1, minus, 0), 1);
        assert_eq!(combine(AtomicOp::Max, Type::S32, 1, minus, 0), 1);
    }
}
