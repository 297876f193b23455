//! From addresses to places in memory.

use crate::exec::lanes::WARP;
use crate::exec::op::{Slot, Window};
use crate::exec::run::Exec;
use crate::memory::{FUNCTIONS, Fault, LOCAL, PARAMS, SHARED, WINDOW};
use crate::race::{Accessor, Conflict, ConflictKind, Stamp};
use crate::report::FaultKind;

/// A place in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Location {
    /// An allocation, and the offset in it.
    Global(usize, usize),
    Shared(usize),
    /// In the local memory of the warp.
    Local(usize),
    /// In the parameters of the kernel.
    Param(usize),
}

impl Exec<'_> {
    /// The place of an access, or nothing if it is a fault, which is reported.
    #[inline]
    pub(crate) fn resolve(
        &mut self,
        window: Window,
        address: u64,
        bytes: u64,
        lane: usize,
        writes: bool,
    ) -> Option<Location> {
        if address & (bytes - 1) != 0 {
            self.fault(FaultKind::Misaligned, lane, 0, Some(address as i64), || {
                format!("the address {address:#x} of an access to {bytes} bytes is not a multiple of them")
            });
            return None;
        }
        match window {
            Window::Global => self.in_global(address, bytes, lane, writes),
            Window::Shared => self.in_shared(address & 0xffff_ffff, bytes, lane),
            Window::Generic => match address & WINDOW {
                0 => self.in_global(address, bytes, lane, writes),
                SHARED => self.in_shared(address & !WINDOW, bytes, lane),
                LOCAL => self.in_local(address & !WINDOW, bytes, lane),
                PARAMS => self.in_params(address & !WINDOW, bytes, lane, writes),
                FUNCTIONS => self.nowhere(address, bytes, lane, "in the code"),
                _ => self.nowhere(address, bytes, lane, "in no memory"),
            },
            Window::Constant => self.in_global(address, bytes, lane, writes),
            Window::Local => self.in_local(address & 0xffff_ffff, bytes, lane),
            Window::Param => self.in_params(address & !PARAMS, bytes, lane, writes),
        }
    }

    #[cold]
    fn nowhere(&mut self, address: u64, bytes: u64, lane: usize, place: &str) -> Option<Location> {
        self.fault(FaultKind::OutOfBounds, lane, 0, Some(address as i64), || {
            format!("an access to {bytes} bytes at {address:#x}, which is {place}")
        });
        None
    }

    #[inline]
    fn in_global(&mut self, address: u64, bytes: u64, lane: usize, writes: bool) -> Option<Location> {
        match self.grid.memory.find(address, bytes) {
            Ok((number, offset)) => {
                if writes && self.grid.memory.allocation(number).constant {
                    let name = self.grid.memory.allocation(number).name.clone();
                    self.fault(FaultKind::WriteToConstant, lane, 0, Some(offset as i64), || {
                        format!("a write to the constant `{name}`")
                    });
                    return None;
                }
                Some(Location::Global(number, offset))
            }
            Err(fault) => {
                self.global_fault(&fault, address, bytes, lane);
                None
            }
        }
    }

    #[cold]
    fn global_fault(&mut self, fault: &Fault, address: u64, bytes: u64, lane: usize) {
        match fault {
            Fault::Nowhere if address < 1 << 20 => {
                let message = format!("an access to {bytes} bytes at {address:#x}: a null pointer");
                self.fault(FaultKind::OutOfBounds, lane, 0, Some(address as i64), || message);
            }
            Fault::Nowhere => {
                let message = format!("an access to {bytes} bytes at {address:#x}, near no allocation");
                self.fault(FaultKind::OutOfBounds, lane, 0, Some(address as i64), || message);
            }
            Fault::Outside { allocation, offset } => {
                let target = self.grid.memory.allocation(*allocation);
                let message = format!(
                    "an access to {bytes} bytes at offset {offset} of `{}`, which has {} bytes",
                    target.name,
                    target.data.len()
                );
                self.fault(FaultKind::OutOfBounds, lane, 0, Some(*offset), || message);
            }
            Fault::Freed { allocation } => {
                let name = self.grid.memory.allocation(*allocation).name.clone();
                self.fault(FaultKind::UseAfterFree, lane, 0, None, || {
                    format!("an access to `{name}`, which was given back")
                });
            }
        }
    }

    #[inline]
    fn in_shared(&mut self, offset: u64, bytes: u64, lane: usize) -> Option<Location> {
        if self.block.shared.contains(offset, bytes) {
            return Some(Location::Shared(offset as usize));
        }
        self.shared_fault(offset, bytes, lane);
        None
    }

    #[cold]
    fn shared_fault(&mut self, offset: u64, bytes: u64, lane: usize) {
        let linked = self.linked;
        let message = match linked.shared_variables.iter().rfind(|variable| variable.offset <= offset) {
            Some(variable) if offset < self.grid.dynamic_shared => format!(
                "an access to {bytes} bytes at offset {} of `{}`, which has {} bytes",
                offset - variable.offset,
                variable.name,
                variable.bytes
            ),
            _ if offset >= self.grid.dynamic_shared => format!(
                "an access to {bytes} bytes at offset {} of dynamic shared memory, of which the launch gave {} bytes",
                offset - self.grid.dynamic_shared,
                self.grid.dynamic_shared_bytes
            ),
            _ => format!("an access to {bytes} bytes at {offset:#x} of shared memory, where nothing is"),
        };
        self.fault(FaultKind::OutOfBounds, lane, 1, Some(offset as i64), || message);
    }

    fn in_local(&mut self, offset: u64, bytes: u64, lane: usize) -> Option<Location> {
        let code = &self.linked.codes[self.group.code as usize];
        let end = self.group.local + code.local_bytes;
        if offset + bytes <= end {
            return Some(Location::Local(lane * self.warp.local_stride + offset as usize));
        }
        self.fault(FaultKind::OutOfBounds, lane, 2, Some(offset as i64), || {
            format!("an access to {bytes} bytes at offset {offset} of local memory, of which there are {end} bytes")
        });
        None
    }

    fn in_params(&mut self, offset: u64, bytes: u64, lane: usize, writes: bool) -> Option<Location> {
        if writes {
            self.fault(FaultKind::WriteToConstant, lane, 1, Some(offset as i64), || {
                "a write to the parameters of the kernel".into()
            });
            return None;
        }
        let end = self.grid.params.len() as u64;
        if offset + bytes <= end {
            return Some(Location::Param(offset as usize));
        }
        self.fault(FaultKind::OutOfBounds, lane, 3, Some(offset as i64), || {
            format!("an access to {bytes} bytes at offset {offset} of the parameters, which have {end} bytes")
        });
        None
    }

    /// `isspacep`
    pub(crate) fn in_window(&mut self, to: Slot, from: Slot, window: Window, mask: u32) {
        let known = self.defined(from);
        let mut bits = 0;
        for (lane, address) in self.value(from).iter().enumerate() {
            let found = match address & WINDOW {
                SHARED => window == Window::Shared,
                LOCAL => window == Window::Local,
                PARAMS => window == Window::Param,
                0 => {
                    let constant = self
                        .grid
                        .memory
                        .find(*address, 1)
                        .is_ok_and(|(number, _)| self.grid.memory.allocation(number).constant);
                    window == if constant { Window::Constant } else { Window::Global }
                }
                _ => false,
            };
            bits |= u32::from(found) << lane;
        }
        self.set_bits(to, mask, known, bits);
    }

    /// Reports an access that is not ordered with an earlier one.
    #[cold]
    pub(crate) fn report_conflict(&mut self, conflict: Conflict, place: Location, lane: usize) {
        let Conflict { kind, earlier, offset } = conflict;
        if kind == ConflictKind::RedundantWrite {
            self.grid.traffic.redundant(self.line);
            return;
        }
        let memory = match place {
            Location::Global(number, _) => {
                format!("offset {offset} of `{}`", self.grid.memory.allocation(number).name)
            }
            _ => format!("shared byte {offset}"),
        };
        let who = self.describe(earlier);
        let line = earlier.line;
        let (fault, text) = match kind {
            ConflictKind::InFlight => (
                FaultKind::AsyncCopyNotWaited,
                format!("{memory} is touched while a copy to it by {who} (line {line}) is not waited for"),
            ),
            ConflictKind::ReadAfterWrite => (
                FaultKind::Race,
                format!("{memory}: this read is not ordered after the write by {who} (line {line})"),
            ),
            ConflictKind::WriteAfterRead => (
                FaultKind::Race,
                format!("{memory}: this write is not ordered after the read by {who} (line {line})"),
            ),
            ConflictKind::WriteAfterWrite | ConflictKind::RedundantWrite => (
                FaultKind::Race,
                format!("{memory}: this write is not ordered after the write by {who} (line {line})"),
            ),
        };
        self.fault(fault, lane, u64::from(line), Some(offset as i64), || text);
    }

    fn describe(&self, stamp: Stamp) -> String {
        let (block, warp) = (stamp.warp / self.grid.warps, stamp.warp % self.grid.warps);
        let thread = self.grid.thread_at(warp as usize * WARP + stamp.lane as usize);
        if block == self.block.index {
            format!("thread {thread:?} of warp {warp}")
        } else {
            format!("thread {thread:?} of block {:?}", self.grid.block_at(block))
        }
    }
}

/// The accessor for a lane, from parts that can be borrowed beside the memory.
#[inline]
pub(crate) fn accessor<'v>(
    clocks: &'v crate::race::Clocks,
    warps: u32,
    block: u32,
    warp: u32,
    lane: usize,
    line: u32,
    strong: bool,
) -> Accessor<'v> {
    Accessor {
        stamp: Stamp { warp: block * warps + warp, lane: lane as u8, time: clocks.time(warp as usize), line },
        view: clocks.view(warp as usize * WARP + lane),
        first_warp: block * warps,
        warps,
        strong,
        whole: false,
    }
}
