//! `wmma.load` and `wmma.store`: matrices between memory and fragments whose layout PTX leaves open.

use crate::exec::access::little_endian;
use crate::exec::lanes::WARP;
use crate::exec::mma::{Fragment, element_bits, elements_per_register};
use crate::exec::op::{FragmentMove, NONE};
use crate::exec::run::{Exec, Next};

impl Exec<'_> {
    /// `wmma.load` and `wmma.store`. Each lane moves the elements that its registers hold.
    pub(crate) fn move_fragment(&mut self, moved: &FragmentMove, mask: u32) -> Next {
        if !self.whole_warp(mask) {
            return Next::Follow;
        }
        self.need_defined(moved.base, mask);
        if moved.stride != NONE {
            self.need_defined(moved.stride, mask);
        }
        let per_register = elements_per_register(moved.ty);
        for (number, slot) in moved.registers.iter().enumerate() {
            if moved.stores {
                self.need_defined(*slot, mask);
            }
            let mut values = if moved.stores { *self.value(*slot) } else { [0; WARP] };
            for (lane, value) in values.iter_mut().enumerate() {
                for part in 0..per_register {
                    let index = number * per_register + part;
                    let shift = element_bits(moved.ty) * part as u32;
                    if moved.stores {
                        self.store_element(moved, lane, index, *value >> shift);
                    } else {
                        *value |= self.load_element(moved, lane, index) << shift;
                    }
                }
            }
            if !moved.stores && *slot != NONE {
                self.set(*slot, mask, mask, &values);
            }
        }
        Next::Follow
    }

    /// The address of an element of a lane.
    fn element_address(&self, moved: &FragmentMove, lane: usize, index: usize) -> u64 {
        let total = moved.inner * moved.outer;
        let per_lane = moved.registers.len() * elements_per_register(moved.ty);
        let place = Fragment::Spread { per_lane, total }.place(lane, index, element_bits(moved.ty));
        let (outer, inner) = if moved.same_order {
            (place / moved.inner, place % moved.inner)
        } else {
            (place % moved.outer, place / moved.outer)
        };
        let stride = match moved.stride {
            NONE => moved.inner as u64,
            slot => self.value(slot)[lane] & 0xffff_ffff,
        };
        let at = outer as u64 * stride + inner as u64;
        let bytes = at * u64::from(element_bits(moved.ty) / 8);
        self.value(moved.base)[lane].wrapping_add_signed(moved.offset).wrapping_add(bytes)
    }

    fn load_element(&mut self, moved: &FragmentMove, lane: usize, index: usize) -> u64 {
        let bytes = element_bits(moved.ty) as usize / 8;
        let address = self.element_address(moved, lane, index);
        let Some(place) = self.resolve(moved.window, address, bytes as u64, lane, false) else { return 0 };
        self.check_read(place, bytes, 1 << lane, false);
        little_endian(self.bytes(place, bytes))
    }

    fn store_element(&mut self, moved: &FragmentMove, lane: usize, index: usize, value: u64) {
        let bytes = element_bits(moved.ty) as usize / 8;
        let address = self.element_address(moved, lane, index);
        let Some(place) = self.resolve(moved.window, address, bytes as u64, lane, true) else { return };
        self.write(place, &value.to_le_bytes()[..bytes], lane, false);
    }
}
