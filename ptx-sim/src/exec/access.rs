//! Loads and stores.

use crate::exec::lanes::WARP;
use crate::exec::op::{Access, NONE, Order, Window};
use crate::exec::resolve::{Location, accessor};
use crate::exec::run::Exec;
use crate::exec::state::lanes_of;
use crate::report::{Addresses, FaultKind};

/// Which bytes an access counts as, for remarks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Global,
    Shared,
    Other,
}

impl Location {
    fn kind(self) -> Kind {
        match self {
            Location::Global(..) => Kind::Global,
            Location::Shared(_) => Kind::Shared,
            _ => Kind::Other,
        }
    }
}

impl Exec<'_> {
    /// `ld`
    pub(crate) fn load(&mut self, access: &Access, mask: u32) {
        self.need_defined(access.base, mask);
        let count = access.registers.len();
        let bytes = access.bytes as usize;
        let total = bytes * count;
        let bases = *self.value(access.base);
        let mut values = [[0; WARP]; 8];
        let mut seen = Seen::new();
        let whole = self.block.clocks.is_whole(self.warp.index as usize);
        let mut left = mask;
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            let address = bases[lane].wrapping_add_signed(access.offset);
            left &= !(1 << lane);
            let place = self.resolve(access.window, address, total as u64, lane, false);
            let Some(place) = place else { continue };
            // Lanes beside each other that read the same are looked at together; local memory is each lane's own.
            let mut together = 1 << lane;
            if whole && !matches!(place, Location::Local(_)) {
                together |= same_address(&bases, lane, left);
                left &= !together;
            }
            seen.add(place, address);
            if access.order.strong {
                lanes_of(together).for_each(|lane| self.hear(place, access.order, lane));
            }
            self.check_read(place, total, together, access.order.strong);
            let data = self.bytes(place, total);
            for (position, value) in values.iter_mut().take(count).enumerate() {
                let element = little_endian(&data[position * bytes..(position + 1) * bytes]);
                for lane in lanes_of(together) {
                    value[lane] = element;
                }
            }
        }
        self.count_traffic(&seen, total);
        for (position, slot) in access.registers.iter().enumerate() {
            if *slot == NONE {
                continue;
            }
            let value = extended(&values[position], access.sign_from, access.register_bits);
            self.set(*slot, mask, mask, &value);
        }
    }

    /// `st`
    pub(crate) fn store(&mut self, access: &Access, mask: u32) {
        self.need_defined(access.base, mask);
        let bytes = access.bytes as usize;
        let total = bytes * access.registers.len();
        let bases = *self.value(access.base);
        for slot in &access.registers {
            self.need_defined(*slot, mask);
        }
        let mut seen = Seen::new();
        for lane in lanes_of(mask) {
            let address = bases[lane].wrapping_add_signed(access.offset);
            let Some(place) = self.resolve(access.window, address, total as u64, lane, true) else {
                continue;
            };
            seen.add(place, address);
            let mut data = [0; 64];
            for (position, slot) in access.registers.iter().enumerate() {
                let value = self.value(*slot)[lane].to_le_bytes();
                data[position * bytes..(position + 1) * bytes].copy_from_slice(&value[..bytes]);
            }
            if access.order.strong {
                self.tell(place, access.order, lane);
            }
            self.write(place, &data[..total], lane, access.order.strong);
        }
        self.count_traffic(&seen, total);
    }

    fn count_traffic(&mut self, seen: &Seen, bytes: usize) {
        match seen.kind {
            Kind::Global => self.grid.traffic.global(self.line, &seen.addresses, bytes as u64),
            Kind::Shared => self.grid.traffic.shared(self.line, &seen.addresses, bytes as u64),
            Kind::Other => {}
        }
    }

    /// The bytes of a place.
    #[inline]
    pub(crate) fn bytes(&self, place: Location, bytes: usize) -> &[u8] {
        match place {
            Location::Global(number, at) => &self.grid.memory.allocation(number).data[at..at + bytes],
            Location::Shared(at) => &self.block.shared.data[at..at + bytes],
            Location::Local(at) => &self.warp.local[at..at + bytes],
            Location::Param(at) => &self.grid.params[at..at + bytes],
        }
    }

    /// Remembers a read by some lanes; reports races and bytes that nobody wrote. Where there is more than one lane, all lanes of
    /// the warp know the same.
    #[inline]
    pub(crate) fn check_read(&mut self, place: Location, bytes: usize, lanes: u32, strong: bool) {
        let lane = lanes.trailing_zeros() as usize;
        let (warps, block, warp) = (self.grid.warps, self.block.index, self.warp.index);
        let mut by = accessor(&self.block.clocks, warps, block, warp, lane, self.line, strong);
        by.whole = lanes & (lanes - 1) != 0;
        let (conflict, written) = match place {
            Location::Global(number, at) => {
                let allocation = self.grid.memory.allocation_mut(number);
                let conflict =
                    if allocation.constant { None } else { allocation.shadow.read(at, bytes, &by, lanes) };
                (conflict, allocation.is_written(at, bytes))
            }
            Location::Shared(at) => {
                let shared = &mut self.block.shared;
                let conflict = shared.shadow.read(at, bytes, &by, lanes);
                (conflict, shared.written[at..at + bytes].iter().all(|written| *written))
            }
            Location::Local(_) | Location::Param(_) => return,
        };
        if let Some((conflict, lane)) = conflict {
            self.report_conflict(conflict, place, lane as usize);
        } else if !written {
            self.report_unwritten(place, lane);
        }
    }

    #[cold]
    fn report_unwritten(&mut self, place: Location, lane: usize) {
        let (text, offset) = match place {
            Location::Global(number, at) => {
                let name = &self.grid.memory.allocation(number).name;
                (format!("offset {at} of `{name}` is read before anything was written there"), at)
            }
            Location::Shared(at) | Location::Local(at) | Location::Param(at) => {
                (format!("shared byte {at} is read before anything was written there"), at)
            }
        };
        self.fault(FaultKind::Uninitialised, lane, 1 << 32, Some(offset as i64), || text);
    }

    /// Writes bytes, remembers the write, and reports races.
    #[inline]
    pub(crate) fn write(&mut self, place: Location, data: &[u8], lane: usize, strong: bool) {
        let conflict = self.check_write(place, data, lane, strong);
        let bytes = data.len();
        match place {
            Location::Global(number, at) => {
                let allocation = self.grid.memory.allocation_mut(number);
                allocation.data[at..at + bytes].copy_from_slice(data);
                allocation.mark_written(at, bytes);
            }
            Location::Shared(at) => {
                let shared = &mut self.block.shared;
                shared.data[at..at + bytes].copy_from_slice(data);
                shared.written[at..at + bytes].fill(true);
            }
            Location::Local(at) => self.warp.local[at..at + bytes].copy_from_slice(data),
            Location::Param(_) => {}
        }
        if let Some(conflict) = conflict {
            self.report_conflict(conflict, place, lane);
        }
    }

    /// Remembers a write of these bytes; says with what it races.
    #[inline]
    pub(crate) fn check_write(
        &mut self,
        place: Location,
        data: &[u8],
        lane: usize,
        strong: bool,
    ) -> Option<crate::race::Conflict> {
        let (warps, block, warp) = (self.grid.warps, self.block.index, self.warp.index);
        let same = self.bytes(place, data.len()) == data;
        if !same {
            self.grid.progress();
        }
        let by = accessor(&self.block.clocks, warps, block, warp, lane, self.line, strong);
        match place {
            Location::Global(number, at) => {
                let allocation = self.grid.memory.allocation_mut(number);
                let same = same && allocation.is_written(at, data.len());
                allocation.shadow.write(at, data.len(), &by, same)
            }
            Location::Shared(at) => {
                let shared = &mut self.block.shared;
                let same = same && shared.written[at];
                shared.shadow.write(at, data.len(), &by, same)
            }
            Location::Local(_) | Location::Param(_) => None,
        }
    }

    /// A strong read hears what was told through a place.
    pub(crate) fn hear(&mut self, place: Location, order: Order, lane: usize) {
        self.grid.spins += 1;
        let thread = self.warp.index as usize * WARP + lane;
        match place {
            Location::Global(number, at) => {
                let key = (0, (number as u64) << 36 | (at as u64) & !3);
                self.block.clocks.hear(thread, order.acquire, key, &self.grid.publications);
            }
            Location::Shared(at) => {
                let key = (1, at as u64 & !3);
                self.block.clocks.hear(thread, order.acquire, key, &self.block.publications);
            }
            _ => {}
        }
    }

    /// A strong write tells what its thread did.
    pub(crate) fn tell(&mut self, place: Location, order: Order, lane: usize) {
        let thread = self.warp.index as usize * WARP + lane;
        match place {
            Location::Global(number, at) => {
                let key = (0, (number as u64) << 36 | (at as u64) & !3);
                let all = &mut self.grid.publications;
                self.block.clocks.tell(thread, order.release, key, all);
            }
            Location::Shared(at) => {
                let key = (1, at as u64 & !3);
                let all = &mut self.block.publications;
                self.block.clocks.tell(thread, order.release, key, all);
            }
            _ => {}
        }
    }

    /// The window of an address, for instructions that take shared memory only.
    pub(crate) fn shared_place(
        &mut self,
        window: Window,
        address: u64,
        bytes: u64,
        lane: usize,
        writes: bool,
    ) -> Option<usize> {
        match self.resolve(window, address, bytes, lane, writes)? {
            Location::Shared(at) => Some(at),
            _ => {
                self.fault(FaultKind::InvalidUse, lane, 2, Some(address as i64), || {
                    format!("the address {address:#x} is not in shared memory")
                });
                None
            }
        }
    }
}

/// Addresses of one access by the sort of their memory.
struct Seen {
    kind: Kind,
    addresses: Addresses,
}

impl Seen {
    fn new() -> Seen {
        Seen { kind: Kind::Other, addresses: Addresses::new() }
    }

    #[inline]
    fn add(&mut self, place: Location, address: u64) {
        self.kind = place.kind();
        self.addresses.push(address);
    }
}

/// The number that these bytes are.
#[inline]
pub(crate) fn little_endian(data: &[u8]) -> u64 {
    match *data {
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a] => u64::from(a),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    }
}

/// The lanes of a mask right behind a lane that have the same address.
#[inline]
fn same_address(addresses: &[u64; WARP], lane: usize, mask: u32) -> u32 {
    let mut together = 0;
    for other in lane + 1..WARP {
        if mask >> other & 1 == 0 || addresses[other] != addresses[lane] {
            break;
        }
        together |= 1 << other;
    }
    together
}

/// Extends values by their sign to the width of a register.
fn extended(values: &[u64; WARP], sign_from: u32, register_bits: u32) -> [u64; WARP] {
    if sign_from == 0 || register_bits <= sign_from {
        return *values;
    }
    let mask = u64::MAX >> (64 - register_bits);
    values.map(|value| {
        let shift = 64 - sign_from;
        ((value << shift) as i64 >> shift) as u64 & mask
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_kept() {
        assert_eq!(extended(&[0x80; WARP], 8, 32)[0], 0xffff_ff80);
        assert_eq!(extended(&[0x7f; WARP], 8, 64)[0], 0x7f);
        assert_eq!(extended(&[0x8000_0000; WARP], 32, 64)[0], 0xffff_ffff_8000_0000);
        assert_eq!(extended(&[0x80; WARP], 0, 32)[0], 0x80);
    }
}
