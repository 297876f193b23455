//! Groups: how many lanes of a statement are computed at once, and what they are held in.
//!
//! Whatever its type, a value has the same lanes in a group, so that conversions never cross groups. As many lanes form
//! a group as fit into a vector of the widest type that the statement has in several lanes. Narrower types take
//! narrower registers. The lanes that are left over form one group, but for elements of fewer than 32 bits without AVX-512: these have
//! no loads under masks, so that several groups of 4, 2 and 1 lanes take them.

use smallvec::SmallVec;

pub(in crate::simd::build) use crate::flat::form::Form;
use crate::simd::ir::Width;

/// Consecutive lanes that are computed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::simd::build) struct Group {
    /// The first lane.
    pub(in crate::simd::build) start: u32,
    /// The number of lanes.
    pub(in crate::simd::build) lanes: u32,
    /// Whether the statement has no other lane.
    pub(in crate::simd::build) is_scalar: bool,
}

impl Group {
    /// The only group of a scalar. No group of a vector is equal to it.
    pub(in crate::simd::build) const SCALAR: Group = Group { start: 0, lanes: 1, is_scalar: true };

    /// The groups of a statement with `lanes` lanes, whose full groups have `full` lanes.
    pub(in crate::simd::build) fn of(lanes: u32, full: u32, rest: Rest) -> SmallVec<[Group; 8]> {
        if lanes == 1 {
            return SmallVec::from_iter([Group::SCALAR]);
        }
        let mut groups = SmallVec::new();
        let mut start = 0;
        while start < lanes {
            let left = lanes - start;
            let size = match rest {
                _ if left >= full => full,
                Rest::Masked => left,
                Rest::Narrow if left < 4 => 1,
                Rest::Pieces | Rest::Narrow => 1 << left.ilog2(),
            };
            groups.push(Group { start, lanes: size, is_scalar: false });
            start += size;
        }
        groups
    }

    /// The width of the register that holds the group in a form.
    pub(in crate::simd::build) fn width(self, form: Form) -> Width {
        Width::of_bytes(self.lanes * form.bytes())
    }
}

/// How the lanes that fill no vector are divided into groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::simd::build) enum Rest {
    /// One group, under a mask.
    Masked,
    /// Powers of two.
    Pieces,
    /// Powers of two, of which those below four lanes are single lanes: elements of fewer than 32 bits.
    Narrow,
}

impl Form {
    /// The bytes of a lane.
    pub(in crate::simd::build) const fn bytes(self) -> u32 {
        if self.is_wide() { 8 } else { 4 }
    }

    /// Whether these are floats.
    pub(in crate::simd::build) const fn is_float(self) -> bool {
        matches!(self, Form::Float32 | Form::Float64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(lanes: u32, full: u32, rest: Rest) -> Vec<u32> {
        Group::of(lanes, full, rest).iter().map(|group| group.lanes).collect()
    }

    #[test]
    fn lanes_that_are_left_over_are_one_group_with_masks_and_several_without() {
        assert_eq!(sizes(37, 16, Rest::Masked), [16, 16, 5]);
        assert_eq!(sizes(15, 8, Rest::Masked), [8, 7]);
        assert_eq!(sizes(15, 8, Rest::Pieces), [8, 4, 2, 1]);
        assert_eq!(sizes(15, 8, Rest::Narrow), [8, 4, 1, 1, 1]);
        assert_eq!(sizes(7, 4, Rest::Pieces), [4, 2, 1]);
    }

    #[test]
    fn the_lane_left_over_is_not_the_group_of_a_scalar() {
        for rest in [Rest::Masked, Rest::Pieces, Rest::Narrow] {
            assert_ne!(Group::of(17, 16, rest).last(), Some(&Group::SCALAR));
            assert_eq!(Group::of(1, 16, rest)[0], Group::SCALAR);
        }
    }
}
