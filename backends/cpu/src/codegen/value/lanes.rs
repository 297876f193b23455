//! Values in registers: how the lanes of a vector are cut into groups, and what a group is held in.
//!
//! A vector statement of n lanes is compiled group by group: as many groups of four lanes as fit, then
//! perhaps one of two and one of one. Whatever the element type, a group has the same lanes, so that
//! conversions and comparisons between types of different sizes never cross groups. A group of four
//! elements of 64 bits takes two registers, all others take one.
//!
//! | register form | element types | group of 1 | group of 2 | group of 4 |
//! |---|---|---|---|---|
//! | [`Form::Bool`] | `bool` | 0 or 1 in an `i8` | mask in an `i32x4` | mask in an `i32x4` |
//! | [`Form::Int32`] | `i8`, `u8` (extended), `i32` | `i32` | low half of an `i32x4` | `i32x4` |
//! | [`Form::Int64`] | `i64` | `i64` | `i64x2` | two `i64x2` |
//! | [`Form::Float32`] | `f16`, `bf16` (exactly), `f32` | `f32` | low half of an `f32x4` | `f32x4` |
//! | [`Form::Float64`] | `f64` | `f64` | `f64x2` | two `f64x2` |
//!
//! The upper half of a register that holds a group of two is unspecified.

use cranelift_codegen::ir::types::{F32, F32X4, F64, F64X2, I8, I32, I32X4, I64, I64X2};
use cranelift_codegen::ir::{Type, Value};
use smallvec::SmallVec;

pub(in crate::codegen) use crate::flat::form::Form;

/// How many lanes are computed at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::codegen) enum Width {
    /// A scalar, or the last lane of an odd number.
    One,
    /// Two lanes.
    Pair,
    /// Four lanes.
    Quad,
}

impl Width {
    /// The number of lanes.
    pub(in crate::codegen) const fn lanes(self) -> u32 {
        match self {
            Width::One => 1,
            Width::Pair => 2,
            Width::Quad => 4,
        }
    }
}

/// Consecutive lanes of a vector that are computed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::codegen) struct Group {
    /// How many lanes.
    pub(in crate::codegen) width: Width,
    /// The first of them.
    pub(in crate::codegen) start: u32,
}

impl Group {
    /// The only group of a scalar. No group of a vector is equal to it.
    pub(in crate::codegen) const SCALAR: Group = Group { width: Width::One, start: 0 };

    /// The groups of a vector, in order.
    pub(in crate::codegen) fn of(lanes: u32) -> SmallVec<[Group; 8]> {
        let mut groups = SmallVec::new();
        let mut start = 0;
        while start < lanes {
            let width = match lanes - start {
                1 => Width::One,
                2 | 3 => Width::Pair,
                _ => Width::Quad,
            };
            groups.push(Group { width, start });
            start += width.lanes();
        }
        groups
    }
}

impl Form {
    /// The type of a register that holds (part of) a group.
    pub(in crate::codegen) const fn register(self, width: Width) -> Type {
        match (self, width) {
            (_, Width::One) => self.scalar(),
            (Form::Bool | Form::Int32, _) => I32X4,
            (Form::Int64, _) => I64X2,
            (Form::Float32, _) => F32X4,
            (Form::Float64, _) => F64X2,
        }
    }

    /// The type of one lane on its own.
    pub(in crate::codegen) const fn scalar(self) -> Type {
        match self {
            Form::Bool => I8,
            Form::Int32 => I32,
            Form::Int64 => I64,
            Form::Float32 => F32,
            Form::Float64 => F64,
        }
    }

    /// Whether a group takes two registers.
    pub(in crate::codegen) const fn is_split(self, width: Width) -> bool {
        self.is_wide() && matches!(width, Width::Quad)
    }
}

/// The registers of one group of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::codegen) struct Lanes {
    /// The only register, or that of the first two lanes.
    pub(in crate::codegen) low: Value,
    /// The register of the last two of four 64-bit lanes.
    pub(in crate::codegen) high: Option<Value>,
}

impl From<Value> for Lanes {
    fn from(low: Value) -> Self {
        Lanes { low, high: None }
    }
}

impl Lanes {
    /// Two registers with two lanes each.
    pub(in crate::codegen) fn split(low: Value, high: Value) -> Self {
        Lanes { low, high: Some(high) }
    }

    /// Applies an operation to each register.
    pub(in crate::codegen) fn map(self, mut operation: impl FnMut(Value) -> Value) -> Self {
        Lanes { low: operation(self.low), high: self.high.map(operation) }
    }

    /// Applies an operation to the registers of two equally shaped groups.
    pub(in crate::codegen) fn zip(
        self,
        other: Lanes,
        mut operation: impl FnMut(Value, Value) -> Value,
    ) -> Self {
        let low = operation(self.low, other.low);
        Lanes { low, high: self.high.zip(other.high).map(|(a, b)| operation(a, b)) }
    }

    /// The registers in order.
    pub(in crate::codegen) fn registers(self) -> impl Iterator<Item = Value> {
        [Some(self.low), self.high].into_iter().flatten()
    }

    /// The inverse of [`Lanes::registers`].
    pub(in crate::codegen) fn from_registers(registers: &[Value]) -> Self {
        Lanes { low: registers[0], high: registers.get(1).copied() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_cover_all_lanes_once() {
        for lanes in 1..70 {
            let groups = Group::of(lanes);
            let mut next = 0;
            for group in &groups {
                assert_eq!(group.start, next, "{lanes} lanes");
                next += group.width.lanes();
            }
            assert_eq!(next, lanes);
            assert_eq!(groups.contains(&Group::SCALAR), lanes == 1, "{lanes} lanes");
        }
    }
}
