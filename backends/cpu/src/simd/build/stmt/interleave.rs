//! Interleaved groups of lanes.
//!
//! The instructions of one group mostly form a chain, in which each waits for the one before. A processor finds independent
//! instructions in the next groups only as far as its scheduler holds them, and a few dozen waiting instructions fill that. So the
//! instructions of several groups alternate.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::simd::build::Builder;
use crate::simd::ir::{Inst, Item, Mem, Op, Operand, Reg, Width};

/// The fewest instructions of a group that is interleaved: the scheduler holds several shorter ones anyway.
const FEWEST_INSTRUCTIONS: usize = 12;

impl Builder<'_> {
    /// Interleaves groups whose instructions begin at these positions of the current scope; the last one ends at its end.
    pub(in crate::simd::build) fn interleave(&mut self, begins: &[usize]) {
        let interleaved_groups = self.limits.interleaved_groups;
        if interleaved_groups < 2 || begins.len() < 2 {
            return;
        }
        let end = self.scope().items.len();
        let groups: Vec<(usize, usize)> =
            begins.iter().copied().zip(begins[1..].iter().copied().chain([end])).collect();
        let mut is_interleaved = false;
        // As few rounds as possible, all about as large.
        let size = groups.len().div_ceil(groups.len().div_ceil(interleaved_groups));
        for groups in groups.chunks(size).filter(|groups| groups.len() > 1) {
            let (first, last) = (groups[0].0, groups[groups.len() - 1].1);
            let items = &mut self.scope().items;
            let own: Option<Vec<&[Item]>> =
                groups.iter().map(|(begin, end)| items.get(*begin..*end)).collect();
            if let Some(merged) = own.and_then(|own| merged(&own)) {
                items.splice(first..last, merged);
                is_interleaved = true;
            }
        }
        self.code.is_interleaved |= is_interleaved;
    }
}

/// Positions of registers: in which group, and where in it.
type Positions = FxHashMap<Reg, (usize, usize)>;

/// The instructions of all groups, alternating; two of one group stay together where the second frees the register that the first
/// takes. `None` where the order of the groups matters.
fn merged(groups: &[&[Item]]) -> Option<Vec<Item>> {
    let groups: Option<Vec<Vec<&Inst>>> = groups.iter().map(|items| plain_instructions(items)).collect();
    let groups = groups?;
    let definitions = definitions(&groups)?;
    if !are_apart(&groups) {
        return None;
    }
    let last_uses = last_uses(&groups);
    let is_ready = |number: usize, inst: &Inst, done: &[usize]| {
        let mut is_ready = true;
        inst.for_each_use(&mut |reg| {
            let defined = definitions.get(&reg).filter(|(group, _)| *group != number);
            is_ready &= defined.is_none_or(|(group, place)| done[*group] > *place);
        });
        is_ready
    };
    // The number of registers that an instruction frees, less the one that it takes.
    let frees = |number: usize, place: usize, inst: &Inst| {
        let mut own: SmallVec<[Reg; 4]> = SmallVec::new();
        inst.for_each_use(&mut |reg| {
            if !own.contains(&reg) && last_uses.get(&reg) == Some(&(number, place)) {
                own.push(reg);
            }
        });
        let read = own.iter().filter(|reg| definitions.contains_key(reg)).count();
        read as i32 - i32::from(inst.dst.is_some())
    };
    // Whether the next instruction of the group frees the register that this one takes. Kept together, only one group takes one at
    // a time.
    let takes_briefly = |number: usize, place: usize| {
        let [first, second] = [place, place + 1].map(|place| groups[number].get(place));
        first.is_some_and(|inst| frees(number, place, inst) < 0)
            && second.is_some_and(|inst| frees(number, place + 1, inst) > 0)
    };
    let mut done = vec![0; groups.len()];
    let count = groups.iter().map(Vec::len).sum();
    let mut merged = Vec::with_capacity(count);
    while merged.len() < count {
        for number in 0..groups.len() {
            while let Some(inst) = groups[number].get(done[number])
                && is_ready(number, inst, &done)
            {
                merged.push(Item::Inst((*inst).clone()));
                done[number] += 1;
                if !takes_briefly(number, done[number] - 1) {
                    break;
                }
            }
        }
    }
    Some(merged)
}

/// Where each register is read for the last time.
fn last_uses(groups: &[Vec<&Inst>]) -> Positions {
    let mut last_uses = Positions::default();
    for (number, group) in groups.iter().enumerate() {
        for (place, inst) in group.iter().enumerate() {
            inst.for_each_use(&mut |reg| {
                last_uses.insert(reg, (number, place));
            });
        }
    }
    last_uses
}

/// The instructions of a group that is long enough, if there is nothing but instructions and none ends the leaf.
fn plain_instructions(items: &[Item]) -> Option<Vec<&Inst>> {
    if items.len() < FEWEST_INSTRUCTIONS {
        return None;
    }
    items
        .iter()
        .map(|item| match item {
            Item::Inst(inst) if inst.op != Op::Check => Some(inst),
            _ => None,
        })
        .collect()
}

/// Where each register is defined, if in one group only, and not used in an earlier one.
fn definitions(groups: &[Vec<&Inst>]) -> Option<Positions> {
    let mut definitions = Positions::default();
    for (number, group) in groups.iter().enumerate() {
        for (place, inst) in group.iter().enumerate() {
            let Some(dst) = inst.dst else { continue };
            match definitions.insert(dst, (number, place)) {
                Some((other, _)) if other != number => return None,
                _ => {}
            }
        }
    }
    let mut in_order = true;
    for (number, group) in groups.iter().enumerate() {
        for inst in group {
            inst.for_each_use(&mut |reg| {
                in_order &= definitions.get(&reg).is_none_or(|(other, _)| *other <= number);
            });
        }
    }
    in_order.then_some(definitions)
}

/// A place in memory, and how it is accessed.
struct Access {
    mem: Mem,
    /// No byte from here on is touched.
    end: i32,
    is_written: bool,
}

impl Access {
    fn of(inst: &Inst, mem: Mem) -> Self {
        // A conversion touches fewer bytes than its width, never more.
        let bytes = match inst.op {
            Op::Vector(_) | Op::MulAdd(_) | Op::Accumulate(_) => inst.width.bytes(),
            _ => Width::Zmm.bytes(),
        };
        let is_written = inst.has_effect() && !matches!(inst.op, Op::Prefetch { .. });
        Access { mem, end: mem.offset.saturating_add(bytes as i32), is_written }
    }

    fn is_apart_from(&self, other: &Self) -> bool {
        let is_same_sum = (self.mem.base, self.mem.index) == (other.mem.base, other.mem.index);
        !(self.is_written || other.is_written)
            || self.mem.buffer != other.mem.buffer
            || is_same_sum && (self.end <= other.mem.offset || other.end <= self.mem.offset)
    }
}

/// Whether no group writes what another one touches.
fn are_apart(groups: &[Vec<&Inst>]) -> bool {
    let accesses = |group: &[&Inst]| -> Vec<Access> {
        let of = |inst: &&Inst| {
            let mems = inst.args.iter().filter_map(|arg| match arg {
                Operand::Mem(mem) | Operand::Broadcast(mem) => Some(Access::of(inst, *mem)),
                _ => None,
            });
            mems.collect::<Vec<_>>()
        };
        group.iter().flat_map(of).collect()
    };
    let all: Vec<Vec<Access>> = groups.iter().map(|group| accesses(group)).collect();
    all.iter().enumerate().all(|(number, group)| {
        all[..number].iter().flatten().all(|other| group.iter().all(|own| own.is_apart_from(other)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::ir::Base;
    use crate::simd::x86::VectorOp;
    use tilewright_core::ids::BufferId;

    fn add(dst: u32, a: u32) -> Item {
        let args = [Operand::Reg(Reg(a)), Operand::Reg(Reg(a))];
        Item::Inst(Inst::new(Op::Vector(VectorOp::AddF32), Width::Zmm, Some(Reg(dst)), args))
    }

    fn access(dst: Option<u32>, buffer: u32, offset: i32, width: Width) -> Item {
        let mem = Mem { base: Base::Context, index: None, offset, buffer: Some(BufferId(buffer)) };
        let args = [Operand::Mem(mem), Operand::Reg(Reg(900))];
        let op = if dst.is_some() { VectorOp::Load } else { VectorOp::Store };
        Item::Inst(Inst::new(Op::Vector(op), width, dst.map(Reg), args))
    }

    /// A chain that begins with a register, in registers of its own.
    fn chain(start: u32, first: u32) -> Vec<Item> {
        (0..12).map(|step| add(first + step, if step == 0 { start } else { first + step - 1 })).collect()
    }

    fn destinations(items: &[Item]) -> Vec<u32> {
        let dst = |item: &Item| match item {
            Item::Inst(inst) => inst.dst.map(|dst| dst.0),
            _ => None,
        };
        items.iter().filter_map(dst).collect()
    }

    #[test]
    fn chains_alternate_and_wait_for_what_they_share() {
        let (a, b) = (chain(1, 100), chain(2, 200));
        let found = destinations(&merged(&[&a, &b]).expect("they are independent"));
        assert_eq!(found[..6], [100, 200, 101, 201, 102, 202]);
        // The second one begins with what the first one has after four steps.
        let b = chain(103, 200);
        let found = destinations(&merged(&[&a, &b]).expect("the order can be kept"));
        assert_eq!(found[..6], [100, 101, 102, 103, 200, 104]);
        assert_eq!(found.len(), 24);
    }

    #[test]
    fn what_takes_a_register_and_what_gives_it_back_stay_together() {
        let with_square = |first: u32| {
            let product = Item::Inst(Inst::new(
                Op::MulAdd(4),
                Width::Zmm,
                Some(Reg(first + 13)),
                [first + 11, first + 12, first + 10].map(|reg| Operand::Reg(Reg(reg))),
            ));
            let mut items = chain(1, first);
            // Read again below, as is the one before: one more register until the product.
            items.extend([add(first + 12, first + 10), product]);
            items
        };
        let found =
            destinations(&merged(&[&with_square(100), &with_square(200)]).expect("they are independent"));
        assert_eq!(found[22..], [111, 211, 112, 113, 212, 213]);
    }

    #[test]
    fn order_that_matters_is_kept() {
        let with = |mut items: Vec<Item>, more: Vec<Item>| {
            items.extend(more);
            items
        };
        let (a, b) = (chain(1, 100), chain(2, 200));
        assert!(merged(&[&a, &with(b.clone(), vec![add(100, 1)])]).is_none(), "a register of both");
        assert!(merged(&[&chain(205, 100), &b]).is_none(), "a value of an iteration before");
        for width in [Width::Zmm, Width::Ymm] {
            let bytes = width.bytes() as i32;
            let writes = with(a.clone(), vec![access(None, 1, 0, width)]);
            let and = |other| merged(&[&writes, &with(b.clone(), vec![other])]);
            assert!(and(access(Some(300), 1, bytes - 4, width)).is_none());
            assert!(and(access(Some(300), 1, bytes, width)).is_some());
            assert!(and(access(Some(300), 1, -bytes, width)).is_some());
            assert!(and(access(Some(300), 2, 0, width)).is_some());
            assert!(and(access(None, 1, 8, width)).is_none());
        }
        assert!(merged(&[&a, &[Item::Else]]).is_none());
    }
}
