//! How long virtual registers live, and how much each is used.

use super::ir::{Code, Item, Operand, Reg};

/// The life of a virtual register. Item number n reads at 2·n and writes at 2·n + 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    pub(super) reg: Reg,
    pub(super) start: u32,
    pub(super) end: u32,
    /// The number of uses, each ten times as much for every loop around it.
    pub(super) weight: f32,
}

/// Whether a loop's counter counts up because something uses it.
pub(super) fn counts_up(uses: &[u32], counter: Reg) -> bool {
    uses[counter.0 as usize] > 0
}

/// The lives of all registers that occur, in order of their starts.
pub(super) fn intervals(code: &Code) -> Vec<Interval> {
    let uses = code.uses();
    let mut survey = Survey {
        code,
        ends: ends_of_loops(code),
        lives: vec![None; code.registers.len()],
        around: Vec::new(),
    };
    for (position, item) in code.items.iter().enumerate() {
        let (read, write) = (2 * position as u32, 2 * position as u32 + 1);
        match item {
            Item::Inst(inst) => {
                inst.for_each_use(&mut |reg| survey.touch(reg, read));
                if let Some(dst) = inst.dst {
                    let is_early = matches!(inst.op, super::ir::Op::Gather(_));
                    survey.touch(dst, if is_early { read } else { write });
                }
            }
            Item::If(reg) => survey.touch(*reg, read),
            Item::LoopBegin(number) => {
                let own = &code.loops[*number];
                if let Operand::Reg(extent) = own.extent {
                    survey.touch(extent, read);
                }
                survey.around.push(position as u32);
                // The counter is written here and lives throughout the loop.
                survey.touch(own.counter, write);
                if let (Operand::Reg(extent), true) = (own.extent, counts_up(&uses, own.counter)) {
                    survey.touch(extent, write);
                }
            }
            Item::LoopEnd(_) => {
                survey.around.pop();
            }
            Item::Else | Item::EndIf => {}
        }
    }
    let mut found: Vec<Interval> = survey.lives.into_iter().flatten().collect();
    found.sort_by_key(|interval| (interval.start, interval.reg));
    found
}

struct Survey<'c> {
    code: &'c Code,
    /// For the beginning of each loop, its end.
    ends: Vec<u32>,
    lives: Vec<Option<Interval>>,
    /// The beginnings of the loops around the current item.
    around: Vec<u32>,
}

impl Survey<'_> {
    fn touch(&mut self, reg: Reg, at: u32) {
        let register = self.code.of(reg);
        if register.constant.is_some() {
            return;
        }
        let (mut start, mut end) = (at, at);
        if let Some(outer) = self.around.get(register.depth as usize) {
            // Used in a loop inside those around its declaration: it has to live until the last iteration.
            end = 2 * self.ends[*outer as usize] + 1;
            start = start.min(2 * outer + 1);
        }
        let weight = 10f32.powi(self.around.len().min(6) as i32);
        let life = self.lives[reg.0 as usize].get_or_insert(Interval { reg, start, end, weight: 0.0 });
        life.start = life.start.min(start);
        life.end = life.end.max(end);
        life.weight += weight;
    }
}

fn ends_of_loops(code: &Code) -> Vec<u32> {
    let mut ends = vec![0; code.items.len()];
    let mut open = Vec::new();
    for (position, item) in code.items.iter().enumerate() {
        match item {
            Item::LoopBegin(_) => open.push(position),
            Item::LoopEnd(_) => {
                if let Some(begin) = open.pop() {
                    ends[begin] = position as u32;
                }
            }
            _ => {}
        }
    }
    ends
}
