//! Calls: frames of registers and of local memory.

use crate::exec::build::{FormalStorage, Preset};
use crate::exec::grid::Grid;
use crate::exec::lanes::{Lanes, WARP};
use crate::exec::op::{Argument, Call, Callee, External, Slot};
use crate::exec::run::{Exec, Next};
use crate::exec::state::{Frame, Group, Scope, lanes_of};
use crate::memory::FUNCTIONS;
use crate::program::FunctionId;
use crate::report::FaultKind;
use crate::special::{LaneMask, Special};

/// How many calls may be inside of each other.
const DEEPEST: usize = 256;

/// Bytes of local memory that a thread may have.
const MOST_LOCAL: u64 = 512 << 10;

impl Exec<'_> {
    /// Makes room for the frame of a function, and sets its presets for all lanes of the mask.
    pub(crate) fn begin_frame(&mut self, code: u32, registers: u32, local: u64, mask: u32) {
        let code = &self.linked.codes[code as usize];
        let end = (registers + code.registers) as usize;
        if self.warp.registers.len() < end {
            self.warp.registers.resize(end, [0; WARP]);
            self.warp.defined.resize(end, 0);
        }
        for at in registers as usize..end {
            self.warp.defined[at] &= !mask;
        }
        self.grow_local((local + code.local_bytes) as usize);
        for (slot, preset) in &code.presets {
            let values = self.grid.preset(*preset, self.block, self.warp.index, local);
            let at = (registers + slot) as usize;
            for lane in lanes_of(mask) {
                self.warp.registers[at][lane] = values[lane];
            }
            self.warp.defined[at] |= mask;
        }
    }

    fn grow_local(&mut self, bytes: usize) {
        let stride = self.warp.local_stride;
        if bytes <= stride {
            return;
        }
        let mut local = vec![0xff; bytes * WARP];
        for lane in 0..WARP {
            let old = &self.warp.local[lane * stride..(lane + 1) * stride];
            local[lane * bytes..lane * bytes + stride].copy_from_slice(old);
        }
        self.warp.local = local;
        self.warp.local_stride = bytes;
    }

    /// `call`
    pub(crate) fn call(&mut self, call: &Call, mask: u32) -> Next {
        match call.callee {
            Callee::Known(code) => self.call_code(call, code, mask),
            Callee::Register(register) => self.call_through(call, register, mask),
        }
    }

    /// A call through a register, whose lanes may call different functions: those that call the one of the first lane do so now, and the
    /// others come here again on their own.
    fn call_through(&mut self, call: &Call, register: Slot, mask: u32) -> Next {
        self.need_defined(register, mask);
        let addresses = self.value(register);
        let address = addresses[mask.trailing_zeros() as usize];
        let same =
            lanes_of(mask).filter(|lane| addresses[*lane] == address).fold(0, |all, lane| all | 1 << lane);
        let number = u32::try_from(address ^ FUNCTIONS).ok();
        let code = number.and_then(|number| self.linked.functions.get(&FunctionId(number)).copied());
        let Some(code) = code else {
            return self.trap(mask, "a register holds no address of a function that is called through it");
        };
        let formals = &self.linked.codes[code as usize].formals;
        if !fits(&call.arguments, &formals.params) || !fits(&call.returns, &formals.returns) {
            return self.trap(mask, "a function that is called through a register has other parameters");
        }
        if same != mask {
            self.warp.groups.push(Group { mask: mask & !same, ..self.group.clone() });
            self.group.mask &= !(mask & !same);
        }
        self.call_code(call, code, same)
    }

    fn call_code(&mut self, call: &Call, code: u32, mask: u32) -> Next {
        let linked = self.linked;
        let caller = &linked.codes[self.group.code as usize];
        let callee = &linked.codes[code as usize];
        let registers = self.group.registers + caller.registers;
        let local = self.group.local + caller.local_bytes;
        if self.group.frames.len() >= DEEPEST || local + callee.local_bytes > MOST_LOCAL {
            return self.trap(mask, "calls nest too deeply: the stack is used up");
        }
        if mask != self.group.mask {
            // A call under a predicate is a branch around it.
            let rest = self.group.mask & !mask;
            let (place, scope) = (self.group.place + 1, self.group.scope);
            let scope = self.warp.open_scope(Scope {
                meet: place,
                depth: self.group.frames.len(),
                mask: self.group.mask,
                parent: scope,
            });
            let mut others = self.group.clone();
            (others.mask, others.place, others.scope) = (rest, place, scope);
            others.wait = crate::exec::state::Wait::Meeting;
            self.warp.groups.push(others);
            self.group.mask = mask;
            self.group.scope = scope;
        }
        self.begin_frame(code, registers, local, mask);
        for (argument, formal) in call.arguments.iter().zip(&callee.formals.params) {
            self.hand_over(*argument, *formal, registers, local, mask, true);
        }
        let scope = self.warp.open_scope(Scope {
            meet: self.group.place + 1,
            depth: self.group.frames.len(),
            mask,
            parent: self.group.scope,
        });
        self.group.frames.push(Frame {
            code: self.group.code,
            place: self.group.place,
            registers: self.group.registers,
            local: self.group.local,
        });
        self.group.scope = scope;
        self.group.code = code;
        self.group.registers = registers;
        self.group.local = local;
        self.group.place = 0;
        Next::Moved
    }

    /// Copies one parameter, from the caller (whose frame is the group's) to the callee or back.
    fn hand_over(
        &mut self,
        argument: Argument,
        formal: FormalStorage,
        registers: u32,
        local: u64,
        mask: u32,
        inwards: bool,
    ) {
        for lane in lanes_of(mask) {
            let stride = self.warp.local_stride;
            let at = |offset: u64| lane * stride + offset as usize;
            match (argument, formal) {
                (Argument::Bytes { offset: caller, .. }, FormalStorage::Local { offset, bytes }) => {
                    let outside = at(self.group.local + caller);
                    let inside = at(local + offset);
                    let (from, to) = if inwards { (outside, inside) } else { (inside, outside) };
                    self.warp.local.copy_within(from..from + bytes as usize, to);
                }
                (Argument::Register(slot), FormalStorage::Local { offset, bytes }) => {
                    let inside = at(local + offset);
                    let count = bytes.min(8) as usize;
                    if inwards {
                        let value = self.value(slot)[lane].to_le_bytes();
                        self.warp.local[inside..inside + count].copy_from_slice(&value[..count]);
                    } else {
                        let mut value = [0; 8];
                        value[..count].copy_from_slice(&self.warp.local[inside..inside + count]);
                        self.set(slot, 1 << lane, 1 << lane, &[u64::from_le_bytes(value); WARP]);
                    }
                }
                (Argument::Register(slot), FormalStorage::Register(inner)) => {
                    let inner = (registers + inner) as usize;
                    if inwards {
                        self.warp.registers[inner][lane] = self.value(slot)[lane];
                        self.warp.defined[inner] |= self.defined(slot) & 1 << lane;
                    } else {
                        let value = self.warp.registers[inner];
                        let defined = self.warp.defined[inner];
                        self.set(slot, 1 << lane, defined, &value);
                    }
                }
                (Argument::Bytes { offset: caller, .. }, FormalStorage::Register(inner)) => {
                    let outside = at(self.group.local + caller);
                    let inner = (registers + inner) as usize;
                    if inwards {
                        let mut value = [0; 8];
                        let count = 8.min(self.warp.local.len() - outside);
                        value[..count].copy_from_slice(&self.warp.local[outside..outside + count]);
                        self.warp.registers[inner][lane] = u64::from_le_bytes(value);
                        self.warp.defined[inner] |= 1 << lane;
                    }
                }
            }
        }
    }

    /// `ret`: of the kernel it is `exit`.
    pub(crate) fn ret(&mut self, mask: u32) -> Next {
        let Some(frame) = self.group.frames.last().copied() else { return self.exit(mask) };
        if mask != self.group.mask {
            // The lanes that stay are a group of their own.
            let mut stay = self.group.clone();
            stay.mask &= !mask;
            stay.place += 1;
            self.warp.groups.push(stay);
            self.group.mask = mask;
        }
        let linked = self.linked;
        let (registers, local) = (self.group.registers, self.group.local);
        let callee = &linked.codes[self.group.code as usize];
        self.group.frames.pop();
        self.group.code = frame.code;
        self.group.registers = frame.registers;
        self.group.local = frame.local;
        self.group.place = frame.place + 1;
        if let crate::exec::op::Op::Call(call) =
            &linked.codes[frame.code as usize].steps[frame.place as usize].op
        {
            for (argument, formal) in call.returns.iter().zip(&callee.formals.returns) {
                self.hand_over(*argument, *formal, registers, local, mask, false);
            }
        }
        Next::Moved
    }

    pub(crate) fn call_external(&mut self, external: External, mask: u32) -> Next {
        match external {
            External::Print => Next::Follow,
            External::AssertFail => {
                let lane = mask.trailing_zeros() as usize;
                self.fault(FaultKind::Trap, lane, 0, None, || "an assertion failed".into());
                self.grid.stopped = true;
                Next::Stop
            }
        }
    }
}

/// Whether what a caller hands over has the sizes of a function's formal parameters.
fn fits(given: &[Argument], formals: &[FormalStorage]) -> bool {
    given.len() == formals.len()
        && given.iter().zip(formals).all(|(given, formal)| match (given, formal) {
            (Argument::Bytes { bytes, .. }, FormalStorage::Local { bytes: wanted, .. }) => bytes == wanted,
            _ => true,
        })
}

impl Grid {
    /// The values of a preset for the lanes of a warp.
    pub(crate) fn preset(
        &self,
        preset: Preset,
        block: &crate::exec::state::Block,
        warp: u32,
        local: u64,
    ) -> Lanes {
        match preset {
            Preset::Constant(value) => [value; WARP],
            Preset::Variable(variable, offset) => {
                let address = self.variables.get(&variable).copied().unwrap_or(0);
                [address.wrapping_add_signed(offset); WARP]
            }
            Preset::Local(offset) => [local.wrapping_add(offset); WARP],
            Preset::DynamicShared(offset) => [self.dynamic_shared.wrapping_add_signed(offset); WARP],
            Preset::Special(special) => self.special(special, block, warp),
        }
    }

    fn special(&self, special: Special, block: &crate::exec::state::Block, warp: u32) -> Lanes {
        let mut lanes = [0; WARP];
        for (lane, value) in lanes.iter_mut().enumerate() {
            let thread = self.thread_at(warp as usize * WARP + lane);
            *value = match special {
                Special::Thread(axis) => u64::from(thread[axis as usize]),
                Special::Threads(axis) => u64::from(self.block_extents[axis as usize]),
                Special::Block(axis) => u64::from(block.at[axis as usize]),
                Special::Blocks(axis) => u64::from(self.grid_extents[axis as usize]),
                Special::Lane => lane as u64,
                Special::Warp => u64::from(warp),
                Special::Warps => u64::from(self.warps),
                Special::WarpSize => 32,
                Special::Processor => u64::from(block.index % 132),
                Special::Processors => 132,
                Special::LaneMask(mask) => u64::from(lane_mask(mask, lane as u32)),
                Special::DynamicShared => self.dynamic_shared_bytes,
                Special::TotalShared => self.shared_bytes,
                Special::ClusterOne => 1,
                _ => 0,
            };
        }
        lanes
    }
}

fn lane_mask(mask: LaneMask, lane: u32) -> u32 {
    let own = 1_u32 << lane;
    match mask {
        LaneMask::Equal => own,
        LaneMask::Less => own - 1,
        LaneMask::LessOrEqual => own | (own - 1),
        LaneMask::Greater => !(own | (own - 1)),
        LaneMask::GreaterOrEqual => !(own - 1),
    }
}
