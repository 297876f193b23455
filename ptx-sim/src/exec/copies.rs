//! Asynchronous copies.
//!
//! A copy is as late as it may be: its data are read when it is started, and written when its thread waits for it. A read
//! of its target before that is a fault, and gives the old value.

use crate::exec::lanes::WARP;
use crate::exec::op::{CopyAsync, NONE, Window};
use crate::exec::resolve::{Location, accessor};
use crate::exec::run::Exec;
use crate::exec::state::{PendingCopy, lanes_of};
use crate::report::{Addresses, FaultKind};

impl Exec<'_> {
    /// `cp.async`
    pub(crate) fn copy_async(&mut self, copy: &CopyAsync, mask: u32) {
        for slot in [copy.to, copy.from, copy.source_bytes, copy.ignore.0] {
            if slot != NONE {
                self.need_defined(slot, mask);
            }
        }
        let ignored = match copy.ignore {
            (NONE, _) => 0,
            (slot, negated) => self.bits(slot) ^ if negated { u32::MAX } else { 0 },
        };
        let (to, from) = (*self.value(copy.to), *self.value(copy.from));
        let (mut read_at, mut written_at) = (Addresses::new(), Addresses::new());
        for lane in lanes_of(mask) {
            let target = to[lane].wrapping_add_signed(copy.to_offset);
            let source = from[lane].wrapping_add_signed(copy.from_offset);
            let bytes = copy.bytes as usize;
            let place = self.resolve(Window::Shared, target, bytes as u64, lane, true);
            let Some(Location::Shared(at)) = place else { continue };
            written_at.push(at as u64);
            let wanted = self.source_bytes(copy, lane, ignored);
            if !source.is_multiple_of(bytes as u64) {
                self.fault(FaultKind::Misaligned, lane, 1, Some(source as i64), || {
                    format!("the source {source:#x} of a copy of {bytes} bytes is not a multiple of them")
                });
                continue;
            }
            let mut data = [0; 16];
            if wanted > 0 {
                let Some(place) = self.source_place(copy, source, wanted, lane) else { continue };
                read_at.push(source);
                self.check_read(place, wanted, 1 << lane, false);
                data[..wanted].copy_from_slice(self.bytes(place, wanted));
            }
            self.start_copy(at, data, bytes, lane);
        }
        self.grid.traffic.global(self.line, &read_at, u64::from(copy.bytes));
    }

    /// How many bytes a lane reads.
    fn source_bytes(&mut self, copy: &CopyAsync, lane: usize, ignored: u32) -> usize {
        if ignored >> lane & 1 != 0 {
            return 0;
        }
        if copy.source_bytes == NONE {
            return copy.bytes as usize;
        }
        let wanted = self.value(copy.source_bytes)[lane] as u32;
        if wanted > copy.bytes {
            self.fault(FaultKind::InvalidUse, lane, 7, None, || {
                format!("a copy of {} bytes with {wanted} bytes of source", copy.bytes)
            });
        }
        wanted.min(copy.bytes) as usize
    }

    fn source_place(&mut self, copy: &CopyAsync, source: u64, bytes: usize, lane: usize) -> Option<Location> {
        // Parts of a vector are aligned as the whole is, so that only bounds are looked at.
        let first = self.resolve(copy.from_window, source, 1, lane, false)?;
        if bytes > 1 {
            self.resolve(copy.from_window, source + bytes as u64 - 1, 1, lane, false)?;
        }
        Some(first)
    }

    fn start_copy(&mut self, at: usize, data: [u8; 16], bytes: usize, lane: usize) {
        let place = Location::Shared(at);
        let (warps, block, warp) = (self.grid.warps, self.block.index, self.warp.index);
        let by = accessor(&self.block.clocks, warps, block, warp, lane, self.line, false);
        let conflict = self.block.shared.shadow.write(at, bytes, &by, false);
        self.block.shared.shadow.set_in_flight(at, bytes, true);
        if let Some(conflict) = conflict {
            self.report_conflict(conflict, place, lane);
        }
        self.warp.copies.push(PendingCopy {
            lane: lane as u8,
            group: self.warp.committed[lane],
            to: at as u64,
            data,
            bytes: bytes as u8,
            line: self.line,
        });
    }

    /// `cp.async.commit_group`
    pub(crate) fn commit_copies(&mut self, mask: u32) {
        for lane in lanes_of(mask) {
            self.warp.committed[lane] += 1;
        }
    }

    /// `cp.async.wait_group` and `cp.async.wait_all`
    pub(crate) fn wait_copies(&mut self, left: u32, all: bool, mask: u32) {
        let committed = self.warp.committed;
        self.land(mask, |lane, group| all || u64::from(group) + u64::from(left) < u64::from(committed[lane]));
    }

    /// Lets copies of the lanes of a mask land that are chosen by lane and group.
    pub(crate) fn land(&mut self, mask: u32, chosen: impl Fn(usize, u32) -> bool) {
        if self.warp.copies.is_empty() {
            return;
        }
        let copies = std::mem::take(&mut self.warp.copies);
        let mut kept = Vec::with_capacity(copies.len());
        for copy in copies {
            let lane = copy.lane as usize;
            if mask >> lane & 1 == 0 || !chosen(lane, copy.group) {
                kept.push(copy);
                continue;
            }
            let (at, bytes) = (copy.to as usize, copy.bytes as usize);
            self.block.shared.shadow.set_in_flight(at, bytes, false);
            let line = std::mem::replace(&mut self.line, copy.line);
            self.write(Location::Shared(at), &copy.data[..bytes], lane, false);
            self.line = line;
        }
        self.warp.copies = kept;
    }

    /// The thread's number in its block.
    pub(crate) fn thread(&self, lane: usize) -> usize {
        self.warp.index as usize * WARP + lane
    }
}
