//! Loads into the instructions that use them, and removal of instructions that nothing needs.

use rustc_hash::FxHashMap;

use super::VectorExtension;
use super::ir::{Class, Code, Inst, Item, Mem, Op, Operand, Reg, Width};
use super::x86::VectorOp;

/// The load that filled a register and could be a memory operand instead.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// A vector of this width from memory.
    Whole(Mem, Width),
    /// One element of this number of bytes, in every lane or in the only one that is used.
    Element(Mem, u8),
}

impl Source {
    fn mem(self) -> Mem {
        match self {
            Source::Whole(mem, _) | Source::Element(mem, _) => mem,
        }
    }
}

/// Removes unused instructions and folds loads with a single use.
pub(super) fn fold(code: &mut Code, extension: VectorExtension) {
    remove_unused(code);
    fold_loads(code, extension);
}

fn remove_unused(code: &mut Code) {
    let mut uses = code.uses();
    let mut kept = Vec::with_capacity(code.items.len());
    while let Some(item) = code.items.pop() {
        if let Item::Inst(inst) = &item
            && let Some(dst) = inst.dst
            && uses[dst.0 as usize] == 0
        {
            inst.for_each_use(&mut |reg| uses[reg.0 as usize] -= 1);
            continue;
        }
        kept.push(item);
    }
    kept.reverse();
    code.items = kept;
}

fn fold_loads(code: &mut Code, extension: VectorExtension) {
    let uses = code.uses();
    let mut definitions = vec![0u32; code.registers.len()];
    for item in &code.items {
        if let Item::Inst(Inst { dst: Some(dst), .. }) = item {
            definitions[dst.0 as usize] += 1;
        }
    }
    let mut pending: FxHashMap<Reg, (usize, Source)> = FxHashMap::default();
    let mut folded = vec![false; code.items.len()];
    for position in 0..code.items.len() {
        let Item::Inst(inst) = &mut code.items[position] else {
            pending.clear();
            continue;
        };
        let mut read: smallvec::SmallVec<[Reg; 4]> = smallvec::SmallVec::new();
        inst.for_each_use(&mut |reg| read.push(reg));
        let mut takes = true;
        for reg in read {
            // This is its only use: a load that is not folded here never will be.
            if let Some((load, source)) = pending.remove(&reg)
                && takes
                && fold_into(inst, reg, source, extension)
            {
                folded[load] = true;
                takes = false;
            }
        }
        if inst.has_effect() {
            let written = inst.args.iter().find_map(|arg| match arg {
                Operand::Mem(mem) => mem.buffer,
                _ => None,
            });
            pending.retain(|_, (_, source)| source.mem().buffer.is_none() || source.mem().buffer != written);
        }
        let Some(dst) = inst.dst else { continue };
        // A pending load is no gather: its address is made of general registers.
        if code.registers[dst.0 as usize].class == Class::General {
            pending.retain(|_, (_, source)| {
                let mut reads = false;
                source.mem().for_each_use(&mut |reg| reads |= reg == dst);
                !reads
            });
        }
        if let Some(source) = source_of(inst)
            && uses[dst.0 as usize] == 1
            && definitions[dst.0 as usize] == 1
        {
            pending.insert(dst, (position, source));
        }
    }
    let mut position = 0;
    code.items.retain(|_| {
        position += 1;
        !folded[position - 1]
    });
}

/// The operand that an instruction loads, if it does nothing else.
fn source_of(inst: &Inst) -> Option<Source> {
    let (Op::Vector(op), [Operand::Mem(mem)], None) = (inst.op, &inst.args[..], inst.mask) else {
        return None;
    };
    match op {
        VectorOp::Load | VectorOp::Load64 => Some(Source::Whole(*mem, inst.width)),
        VectorOp::Broadcast32 | VectorOp::LoadOne32 => Some(Source::Element(*mem, 4)),
        VectorOp::Broadcast64 => Some(Source::Element(*mem, 8)),
        VectorOp::LoadOne64 if inst.width == Width::Xmm => None,
        _ => None,
    }
}

/// Puts a memory operand in the place of a register, where the instruction can take it.
pub(super) fn fold_into(inst: &mut Inst, reg: Reg, source: Source, extension: VectorExtension) -> bool {
    let has_memory = inst.args.iter().any(|arg| matches!(arg, Operand::Mem(_) | Operand::Broadcast(_)));
    let places = inst.args.iter().filter(|arg| **arg == Operand::Reg(reg)).count();
    if has_memory || places != 1 || inst.dst.is_none() || inst.mask == Some(reg) {
        return false;
    }
    let element = match inst.op {
        Op::MulAdd(bytes) => bytes,
        Op::Vector(op) | Op::Accumulate(op) => op.broadcast_bytes(),
        _ => 0,
    };
    let operand = match source {
        _ if element == 0 => return false,
        Source::Whole(mem, width) if width == inst.width => Operand::Mem(mem),
        Source::Element(mem, bytes) if bytes == element && extension == VectorExtension::Avx512 => {
            Operand::Broadcast(mem)
        }
        _ => return false,
    };
    let Some(place) = inst.args.iter().position(|arg| *arg == Operand::Reg(reg)) else { return false };
    if let Op::Vector(op) | Op::Accumulate(op) = inst.op {
        let last = inst.args.len() - 1;
        if place != last {
            if !op.commutes() {
                return false;
            }
            inst.args.swap(place, last);
        }
        inst.args[last] = operand;
    } else {
        inst.args[place] = operand;
    }
    true
}
