//! Groups of lanes that take turns.
//!
//! What is computed with one group is mostly a chain of instructions, each of which waits for the one before. A processor
//! finds work in the next groups only as far as the instructions that wait for operands fit into its scheduler, which a few dozen of
//! them fill. So the instructions of several groups stand alternately.

use rustc_hash::FxHashMap;

use super::Builder;
use crate::cpu::leaf::ir::{Inst, Item, Mem, Op, Operand, Reg};

/// A group with fewer instructions leaves room for the next ones in the scheduler.
const FEWEST_INSTRUCTIONS: usize = 12;

/// The most bytes that an access touches from its place on.
const MOST_BYTES: i32 = 64;

impl Builder<'_> {
    /// Lets the groups whose instructions begin at these places of the current scope, and end at its end, take turns.
    pub(super) fn take_turns(&mut self, begins: &[usize]) {
        let at_once = self.limits.at_once;
        if at_once < 2 || begins.len() < 2 {
            return;
        }
        let end = self.scope().items.len();
        let groups: Vec<(usize, usize)> =
            begins.iter().copied().zip(begins[1..].iter().copied().chain([end])).collect();
        let mut has_turns = false;
        for groups in groups.chunks(at_once).filter(|groups| groups.len() > 1) {
            let (first, last) = (groups[0].0, groups[groups.len() - 1].1);
            let items = &mut self.scope().items;
            let own: Option<Vec<&[Item]>> =
                groups.iter().map(|(begin, end)| items.get(*begin..*end)).collect();
            if let Some(merged) = own.and_then(|own| merged(&own)) {
                items.splice(first..last, merged);
                has_turns = true;
            }
        }
        self.code.has_turns |= has_turns;
    }
}

/// Where registers are defined: in which group, and the last place in it.
type Definitions = FxHashMap<Reg, (usize, usize)>;

/// The instructions of all groups, one of each after the other; `None` where their order matters.
fn merged(groups: &[&[Item]]) -> Option<Vec<Item>> {
    let groups: Option<Vec<Vec<&Inst>>> = groups.iter().map(|items| plain_instructions(items)).collect();
    let groups = groups?;
    let definitions = definitions(&groups)?;
    if !are_apart(&groups) {
        return None;
    }
    let mut done = vec![0; groups.len()];
    let count = groups.iter().map(Vec::len).sum();
    let mut merged = Vec::with_capacity(count);
    while merged.len() < count {
        for number in 0..groups.len() {
            let Some(inst) = groups[number].get(done[number]) else { continue };
            let mut is_ready = true;
            inst.for_each_use(&mut |reg| {
                let defined = definitions.get(&reg).filter(|(group, _)| *group != number);
                is_ready &= defined.is_none_or(|(group, place)| done[*group] > *place);
            });
            if is_ready {
                merged.push(Item::Inst((*inst).clone()));
                done[number] += 1;
            }
        }
    }
    Some(merged)
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
fn definitions(groups: &[Vec<&Inst>]) -> Option<Definitions> {
    let mut definitions = Definitions::default();
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

/// Whether no group writes what another one touches.
fn are_apart(groups: &[Vec<&Inst>]) -> bool {
    let accesses = |group: &[&Inst]| -> Vec<(Mem, bool)> {
        let of = |inst: &&Inst| {
            let is_written = inst.has_effect() && !matches!(inst.op, Op::Prefetch { .. });
            let mems = inst.args.iter().filter_map(|arg| match arg {
                Operand::Mem(mem) | Operand::Spread(mem) => Some(*mem),
                _ => None,
            });
            mems.map(|mem| (mem, is_written)).collect::<Vec<_>>()
        };
        group.iter().flat_map(of).collect()
    };
    let all: Vec<Vec<(Mem, bool)>> = groups.iter().map(|group| accesses(group)).collect();
    let is_apart = |(a, a_written): &(Mem, bool), (b, b_written): &(Mem, bool)| {
        let is_same_sum = (a.base, a.index) == (b.base, b.index);
        !(*a_written || *b_written)
            || a.buffer != b.buffer
            || is_same_sum && a.offset.abs_diff(b.offset) >= MOST_BYTES.unsigned_abs()
    };
    all.iter().enumerate().all(|(number, group)| {
        all[..number].iter().flatten().all(|other| group.iter().all(|own| is_apart(own, other)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::leaf::encode::VectorOp;
    use crate::cpu::leaf::ir::{Base, Width};
    use tilewright_core::ids::BufferId;

    fn add(dst: u32, a: u32) -> Item {
        let args = [Operand::Reg(Reg(a)), Operand::Reg(Reg(a))];
        Item::Inst(Inst::new(Op::Vector(VectorOp::AddF32), Width::Zmm, Some(Reg(dst)), args))
    }

    fn access(dst: Option<u32>, buffer: u32, offset: i32) -> Item {
        let mem = Mem { base: Base::Context, index: None, offset, buffer: Some(BufferId(buffer)) };
        let args = [Operand::Mem(mem), Operand::Reg(Reg(900))];
        let op = if dst.is_some() { VectorOp::Load } else { VectorOp::Store };
        Item::Inst(Inst::new(Op::Vector(op), Width::Zmm, dst.map(Reg), args))
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
    fn order_that_matters_is_kept() {
        let with = |mut items: Vec<Item>, more: Vec<Item>| {
            items.extend(more);
            items
        };
        let (a, b) = (chain(1, 100), chain(2, 200));
        assert!(merged(&[&a, &with(b.clone(), vec![add(100, 1)])]).is_none(), "a register of both");
        assert!(merged(&[&chain(205, 100), &b]).is_none(), "a value of an iteration before");
        let writes = with(a.clone(), vec![access(None, 1, 0)]);
        assert!(merged(&[&writes, &with(b.clone(), vec![access(Some(300), 1, 32)])]).is_none());
        assert!(merged(&[&writes, &with(b.clone(), vec![access(Some(300), 1, 64)])]).is_some());
        assert!(merged(&[&writes, &with(b.clone(), vec![access(Some(300), 2, 0)])]).is_some());
        assert!(merged(&[&writes, &with(b, vec![access(None, 1, 8)])]).is_none());
        assert!(merged(&[&a, &[Item::Else]]).is_none());
    }
}
