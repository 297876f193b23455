//! Running one warp.

use crate::exec::build::Code;
use crate::exec::build::link::Linked;
use crate::exec::grid::Grid;
use crate::exec::lanes::{Lanes, Pure, WARP};
use crate::exec::op::{Combine, NONE, Op, Slot, Step};
use crate::exec::state::{Block, FULL, Group, Wait, Warp, lanes_of};
use crate::report::{FaultKind, Spot};
use crate::special::Special;

/// Lanes that wait for others are released when those have run for this number of steps: they may wait for the waiting ones.
const PATIENCE: u32 = 1 << 16;

/// Runs warps of one block.
pub(crate) struct Exec<'a> {
    pub(crate) linked: &'a Linked,
    pub(crate) grid: &'a mut Grid,
    pub(crate) block: &'a mut Block,
    pub(crate) warp: Warp,
    /// The lanes that run, as [`Exec::run`] chose them.
    pub(crate) group: Group,
    /// The line of the instruction.
    pub(crate) line: u32,
}

/// The continuation after an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// The next instruction.
    Follow,
    /// Another place, which the group has already.
    Moved,
    /// The group waits, has separated or is gone: it is put back if it has lanes.
    Stop,
    /// The same as `Follow`, but others should run first.
    Yield,
}

impl<'a> Exec<'a> {
    /// Runs a warp for a limited number of steps. Gives the number that it ran.
    pub(crate) fn run(
        linked: &'a Linked,
        grid: &'a mut Grid,
        block: &'a mut Block,
        warp: usize,
        budget: u64,
    ) -> u64 {
        Exec::with(linked, grid, block, warp, |exec| exec.run_groups(budget))
    }

    /// Does something with a warp, which is taken out of its block meanwhile.
    pub(crate) fn with<T>(
        linked: &'a Linked,
        grid: &'a mut Grid,
        block: &'a mut Block,
        warp: usize,
        f: impl FnOnce(&mut Exec<'a>) -> T,
    ) -> T {
        let taken = std::mem::take(&mut block.warps[warp]);
        let group = Group {
            place: 0,
            mask: 0,
            scope: NONE,
            code: 0,
            registers: 0,
            local: 0,
            frames: Vec::new(),
            wait: Wait::Nothing,
        };
        let mut exec = Exec { linked, grid, block, warp: taken, group, line: 0 };
        let result = f(&mut exec);
        let Exec { block, warp: taken, .. } = exec;
        block.warps[warp] = taken;
        result
    }

    fn run_groups(&mut self, budget: u64) -> u64 {
        let mut steps = 0;
        while steps < budget && !self.grid.stopped {
            let Some(chosen) = self.choose_group() else { break };
            self.group = self.warp.groups.swap_remove(chosen);
            steps += self.run_group(budget - steps);
            if self.group.mask != 0 {
                let group = self.group.clone();
                self.warp.groups.push(group);
                self.group.mask = 0;
            }
            self.warp.close_scopes();
            if self.warp.groups.len() > 1 {
                self.warp.merge_groups();
            }
            if self.yielded() {
                break;
            }
        }
        self.grid.traffic.count_steps(steps);
        steps
    }

    fn yielded(&mut self) -> bool {
        std::mem::take(&mut self.grid.yielded)
    }

    /// The group that runs next: any that can go on, by the schedule.
    fn choose_group(&mut self) -> Option<usize> {
        let groups = &self.warp.groups;
        match groups.len() {
            0 => return None,
            1 => return (groups[0].wait == Wait::Nothing).then_some(0),
            _ => {}
        }
        if self.warp.steps_apart > PATIENCE && self.warp.break_scope() {
            return self.choose_group();
        }
        let ready: Vec<usize> = (0..self.warp.groups.len())
            .filter(|number| self.warp.groups[*number].wait == Wait::Nothing)
            .collect();
        match ready.len() {
            0 => None,
            1 => Some(ready[0]),
            count => Some(ready[self.grid.random.below(count)]),
        }
    }

    /// Runs the chosen group until it waits, separates or has used up its budget.
    fn run_group(&mut self, budget: u64) -> u64 {
        let linked = self.linked;
        let mut steps = 0;
        let mut code: &Code = &linked.codes[self.group.code as usize];
        let mut code_number = self.group.code;
        let alone = self.warp.groups.is_empty();
        // A group among others must let them run, too.
        let budget = if alone { budget } else { budget.min(1024) };
        let mut meet = self.meeting_place();
        let mut threads = 0;
        while steps < budget {
            if self.group.place == meet && self.warp.is_at_meeting(&self.group) {
                self.group.wait = Wait::Meeting;
                break;
            }
            let step = &code.steps[self.group.place as usize];
            steps += 1;
            self.line = step.line;
            let mask = self.guarded(step);
            threads += u64::from(mask.count_ones());
            if mask == 0 && !matches!(step.op, Op::Jump { .. }) {
                self.group.place += 1;
                continue;
            }
            match self.step(step, mask) {
                Next::Follow => self.group.place += 1,
                Next::Moved => {
                    if self.group.code != code_number {
                        code_number = self.group.code;
                        code = &linked.codes[code_number as usize];
                    }
                    meet = self.meeting_place();
                }
                Next::Yield => {
                    self.group.place += 1;
                    self.grid.yielded = true;
                    break;
                }
                Next::Stop => break,
            }
        }
        self.grid.instructions += threads;
        self.grid.steps_quiet += steps;
        if !alone {
            self.warp.steps_apart = self.warp.steps_apart.saturating_add(steps as u32);
        }
        steps
    }

    fn meeting_place(&self) -> u32 {
        match self.group.scope {
            NONE => NONE,
            scope => self.warp.scopes[scope as usize].meet,
        }
    }

    /// Lanes for which the predicate of an instruction holds.
    #[inline]
    fn guarded(&mut self, step: &Step) -> u32 {
        if step.guard == NONE {
            return self.group.mask;
        }
        let bits = self.bits(step.guard);
        self.need_defined(step.guard, self.group.mask);
        self.group.mask & if step.negated { !bits } else { bits }
    }

    /// A predicate of all lanes as a mask.
    #[inline]
    pub(crate) fn bits(&self, slot: Slot) -> u32 {
        let lanes = self.value(slot);
        let mut bits = 0;
        for (lane, value) in lanes.iter().enumerate() {
            bits |= ((*value & 1) as u32) << lane;
        }
        bits
    }

    #[inline]
    pub(crate) fn value(&self, slot: Slot) -> &Lanes {
        &self.warp.registers[(self.group.registers + slot) as usize]
    }

    #[inline]
    pub(crate) fn defined(&self, slot: Slot) -> u32 {
        self.warp.defined[(self.group.registers + slot) as usize]
    }

    /// Gives a register values in the lanes of a mask, of which those of `defined` have a meaning.
    #[inline]
    pub(crate) fn set(&mut self, slot: Slot, mask: u32, defined: u32, values: &Lanes) {
        let at = (self.group.registers + slot) as usize;
        let register = &mut self.warp.registers[at];
        if mask == FULL {
            *register = *values;
        } else {
            for lane in 0..WARP {
                let keep = ((mask >> lane & 1) as u64).wrapping_sub(1);
                register[lane] = register[lane] & keep | values[lane] & !keep;
            }
        }
        let known = &mut self.warp.defined[at];
        *known = *known & !mask | defined & mask;
    }

    /// The same with one bit for each lane.
    pub(crate) fn set_bits(&mut self, slot: Slot, mask: u32, defined: u32, bits: u32) {
        let mut values = [0; WARP];
        for (lane, value) in values.iter_mut().enumerate() {
            *value = u64::from(bits >> lane & 1);
        }
        self.set(slot, mask, defined, &values);
    }

    /// Reports lanes in which a register has no value, where its value decides what happens.
    #[inline]
    pub(crate) fn need_defined(&mut self, slot: Slot, mask: u32) {
        let missing = mask & !self.defined(slot);
        if missing != 0 {
            self.undefined(slot, missing);
        }
    }

    #[cold]
    fn undefined(&mut self, slot: Slot, missing: u32) {
        let names = &self.linked.codes[self.group.code as usize].names;
        let name = names.get(&slot).cloned().unwrap_or_else(|| "an operand".into());
        let lane = missing.trailing_zeros() as usize;
        self.fault(FaultKind::Uninitialised, lane, u64::from(slot), None, || {
            format!("the value of `{name}` comes from a register or memory that was never written")
        });
    }

    /// Reports a fault of a lane.
    #[cold]
    pub(crate) fn fault(
        &mut self,
        kind: FaultKind,
        lane: usize,
        other: u64,
        offset: Option<i64>,
        message: impl FnOnce() -> String,
    ) {
        let spot = Spot {
            line: self.line,
            block: Some(self.block.at),
            thread: Some(self.grid.thread_at(self.warp.index as usize * WARP + lane)),
        };
        self.grid.collector.add(kind, spot, other, offset, message);
    }

    /// Executes one instruction for the lanes of a mask.
    #[inline]
    fn step(&mut self, step: &Step, mask: u32) -> Next {
        match &step.op {
            Op::Pure { f, to, from } => self.pure(*f, *to, from, mask),
            Op::Load(access) => self.load(access, mask),
            Op::Store(access) => self.store(access, mask),
            Op::Jump { target, meet } => return self.jump(*target, *meet, mask),
            Op::Compare { f, to, complement, from, combine, truth } => {
                self.compare(*f, [*to, *complement], from, *combine, *truth, mask);
            }
            Op::Select { to, a, b, predicate, negated } => {
                self.select(*to, *a, *b, (*predicate, *negated), mask);
            }
            Op::Nothing => {}
            op => return self.rare(op, mask),
        }
        Next::Follow
    }

    fn rare(&mut self, op: &Op, mask: u32) -> Next {
        match op {
            Op::Twin { first, second, to, second_to, from } => {
                self.twin([*first, *second], [*to, *second_to], from, mask);
            }
            Op::Pack { to, parts, bits } => self.pack(*to, parts, *bits, mask),
            Op::Unpack { from, parts, bits } => self.unpack(*from, parts, *bits, mask),
            Op::Read { to, special } => self.read_special(*to, *special, mask),
            Op::JumpTable { index, targets, meet } => {
                return self.jump_table(*index, targets, *meet, mask);
            }
            Op::Call(call) => return self.call(call, mask),
            Op::CallExternal(external) => return self.call_external(*external, mask),
            Op::Return => return self.ret(mask),
            Op::Exit => return self.exit(mask),
            Op::Trap => return self.trap(mask, "`trap` was executed"),
            Op::Atomic(atomic) => self.atomic(atomic, mask),
            Op::CopyAsync(copy) => self.copy_async(copy, mask),
            Op::CommitCopies => self.commit_copies(mask),
            Op::WaitCopies { left, all } => self.wait_copies(*left, *all, mask),
            Op::Mbarrier(mbarrier) => return self.mbarrier(mbarrier, mask),
            Op::MatrixMove(moved) => return self.move_matrices(moved, mask),
            Op::TransposeMatrix { to, from } => return self.transpose_matrix(*to, *from, mask),
            Op::FragmentMove(moved) => return self.move_fragment(moved, mask),
            Op::Product(product) => return self.multiply_matrices(product, mask),
            Op::Barrier(barrier) => return self.barrier(barrier, mask),
            Op::Fence => lanes_of(mask).for_each(|lane| {
                let thread = self.warp.index as usize * WARP + lane;
                self.block.clocks.fence(thread);
            }),
            Op::InWindow { to, from, window } => self.in_window(*to, *from, *window, mask),
            Op::ActiveMask { to } => self.set(*to, mask, mask, &[u64::from(mask); WARP]),
            _ => return self.collective(op, mask),
        }
        Next::Follow
    }

    #[inline]
    fn pure(&mut self, f: Pure, to: Slot, from: &[Slot; 4], mask: u32) {
        let mut out = [0; WARP];
        let base = self.group.registers as usize;
        let registers = &self.warp.registers;
        let defined = &self.warp.defined;
        let at = |n: usize| base + from[n] as usize;
        let known = match f {
            Pure::One(f) => {
                f(&mut out, &registers[at(0)]);
                defined[at(0)]
            }
            Pure::Two(f) => {
                f(&mut out, &registers[at(0)], &registers[at(1)]);
                defined[at(0)] & defined[at(1)]
            }
            Pure::Three(f) => {
                f(&mut out, &registers[at(0)], &registers[at(1)], &registers[at(2)]);
                defined[at(0)] & defined[at(1)] & defined[at(2)]
            }
            Pure::Four(f) => {
                f(&mut out, &registers[at(0)], &registers[at(1)], &registers[at(2)], &registers[at(3)]);
                defined[at(0)] & defined[at(1)] & defined[at(2)] & defined[at(3)]
            }
        };
        self.set(to, mask, known, &out);
    }

    /// The values of a pure function, and the lanes in which they have a meaning.
    fn evaluate(&self, f: Pure, from: &[Slot]) -> (Lanes, u32) {
        let mut out = [0; WARP];
        let mut known = FULL;
        for slot in &from[..f.arity()] {
            known &= self.defined(*slot);
        }
        match f {
            Pure::One(f) => f(&mut out, self.value(from[0])),
            Pure::Two(f) => f(&mut out, self.value(from[0]), self.value(from[1])),
            Pure::Three(f) => {
                f(&mut out, self.value(from[0]), self.value(from[1]), self.value(from[2]));
            }
            Pure::Four(f) => f(
                &mut out,
                self.value(from[0]),
                self.value(from[1]),
                self.value(from[2]),
                self.value(from[3]),
            ),
        }
        (out, known)
    }

    fn compare(
        &mut self,
        f: Pure,
        to: [Slot; 2],
        from: &[Slot; 2],
        combine: Option<(Combine, Slot, bool)>,
        truth: u64,
        mask: u32,
    ) {
        let (mut out, mut known) = self.evaluate(f, from);
        let mut not: Lanes = out.map(|bit| bit ^ 1);
        if let Some((how, predicate, negated)) = combine {
            known &= self.defined(predicate);
            let with = self.value(predicate);
            let apply = |a: u64, b: u64| {
                let b = b & 1 ^ u64::from(negated);
                match how {
                    Combine::And => a & b,
                    Combine::Or => a | b,
                    Combine::Xor => a ^ b,
                }
            };
            for lane in 0..WARP {
                out[lane] = apply(out[lane], with[lane]);
                not[lane] = apply(not[lane], with[lane]);
            }
        }
        if truth != 1 {
            out = out.map(|bit| if bit != 0 { truth } else { 0 });
        }
        self.set(to[0], mask, known, &out);
        if to[1] != NONE {
            self.set(to[1], mask, known, &not);
        }
    }

    fn select(&mut self, to: Slot, a: Slot, b: Slot, predicate: (Slot, bool), mask: u32) {
        let choice = self.bits(predicate.0) ^ if predicate.1 { FULL } else { 0 };
        let known = self.defined(a) & choice | self.defined(b) & !choice;
        let known = known & self.defined(predicate.0);
        let (x, y) = (self.value(a), self.value(b));
        let mut out = [0; WARP];
        for lane in 0..WARP {
            out[lane] = if choice >> lane & 1 != 0 { x[lane] } else { y[lane] };
        }
        self.set(to, mask, known, &out);
    }

    fn twin(&mut self, f: [Pure; 2], to: [Slot; 2], from: &[Slot; 4], mask: u32) {
        let (first, known) = self.evaluate(f[0], from);
        let (second, _) = self.evaluate(f[1], from);
        self.set(to[0], mask, known, &first);
        if to[1] != NONE {
            self.set(to[1], mask, known, &second);
        }
    }

    fn pack(&mut self, to: Slot, parts: &[Slot], bits: u32, mask: u32) {
        let mut out = [0; WARP];
        let mut known = FULL;
        let low = u64::MAX >> (64 - bits);
        for (position, part) in parts.iter().enumerate() {
            known &= self.defined(*part);
            for (sum, value) in out.iter_mut().zip(self.value(*part)) {
                *sum |= (value & low) << (position as u32 * bits);
            }
        }
        self.set(to, mask, known, &out);
    }

    fn unpack(&mut self, from: Slot, parts: &[Slot], bits: u32, mask: u32) {
        let value = *self.value(from);
        let known = self.defined(from);
        let low = u64::MAX >> (64 - bits);
        for (position, part) in parts.iter().enumerate() {
            if *part != NONE {
                let shift = position as u32 * bits;
                self.set(*part, mask, known, &value.map(|value| value >> shift & low));
            }
        }
    }

    fn read_special(&mut self, to: Slot, special: Special, mask: u32) {
        let now = self.grid.clock();
        let value = match special {
            Special::Clock => now & u64::from(u32::MAX),
            Special::ClockHigh | Special::TimerHigh => now >> 32,
            Special::TimerLow => now & u64::from(u32::MAX),
            _ => now,
        };
        self.set(to, mask, mask, &[value; WARP]);
    }
}
