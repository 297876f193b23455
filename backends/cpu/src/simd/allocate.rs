//! Machine registers for virtual ones.
//!
//! Vectors, masks and tiles get theirs by a linear scan, which finds an assignment whenever there are enough registers; a
//! leaf whose vectors or tiles would spill is refused. Registers that are left over hold constants; other constants are operands in
//! memory. General registers go to the values with the most uses; other values live on the stack, or in the words that the
//! leaf is called with.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::fold::{Source, fold_into};
use super::ir::{Base, Class, Code, Constant, GeneralOp, Inst, Item, Mem, Op, Operand, Reg, Register, Width};
use super::liveness::{Interval, intervals};
use super::{Refusal, VectorExtension};

/// The number of general registers that can be given: all but the stack pointer, the address of the words that the leaf is
/// called with, and three that instructions are made with.
const GENERAL: usize = super::x86::GENERAL.len();
/// The masks from 1 on; 0 stands for no mask, and gathers overwrite the last one.
const MASKS: u8 = 6;
const TILES: u8 = 8;

/// Where a virtual register is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// A register of its class, by number.
    Register(u8),
    /// A word of the stack frame, by number.
    Slot(u16),
    /// A word that the leaf is called with, at this offset.
    Word(i32),
    /// Nowhere, because nothing uses it.
    Nowhere,
}

/// The places of all virtual registers.
#[derive(Debug)]
pub(super) struct Allocation {
    pub(super) places: Vec<Location>,
    pub(super) slots: u16,
    /// How often each virtual register is read.
    pub(super) uses: Vec<u32>,
}

/// Chooses places, after the code has been given its constants.
pub(super) fn allocate(code: &mut Code, extension: VectorExtension) -> Result<Allocation, Refusal> {
    let ranked = constants_by_weight(code, extension);
    let free = (extension.registers() as usize).checked_sub(pressure(code)).ok_or(Refusal::Spills)?;
    let mut hoisted = free.min(ranked.len());
    loop {
        let mut candidate = code.clone();
        place_constants(&mut candidate, &ranked[..hoisted], extension);
        let lives = intervals(&candidate);
        match vectors(&candidate, &lives, extension) {
            Some(mut places) => {
                let slots = generals(&candidate, &lives, &mut places);
                let uses = candidate.uses();
                *code = candidate;
                return Ok(Allocation { places, slots, uses });
            }
            None if hoisted > 0 => hoisted -= 1 + hoisted / 4,
            None => return Err(Refusal::Spills),
        }
    }
}

/// The constants that are used inside loops, in descending order of their gain from a register.
fn constants_by_weight(code: &Code, extension: VectorExtension) -> Vec<Reg> {
    let mut weights: FxHashMap<Reg, f32> = FxHashMap::default();
    let mut depth = 0;
    for item in &code.items {
        match item {
            Item::LoopBegin(_) => depth += 1,
            Item::LoopEnd(_) => depth -= 1,
            Item::Inst(inst) if depth > 0 => {
                for (reg, constant) in constants_in(code, inst) {
                    let worth = worth_in_register(inst, reg, constant, extension);
                    *weights.entry(reg).or_default() += worth * 10f32.powi(depth.min(6));
                }
            }
            _ => {}
        }
    }
    let mut ranked: Vec<(Reg, f32)> = weights.into_iter().collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    ranked.into_iter().map(|(reg, _)| reg).collect()
}

/// The constants that an instruction reads.
fn constants_in(code: &Code, inst: &Inst) -> SmallVec<[(Reg, Constant); 3]> {
    let mut found: SmallVec<[(Reg, Constant); 3]> = SmallVec::new();
    inst.for_each_use(&mut |reg| {
        if let Some(constant) = code.of(reg).constant
            && found.iter().all(|(known, _)| *known != reg)
        {
            found.push((reg, constant));
        }
    });
    found
}

/// The gain of an instruction from a constant in a register: small where the constant can be an operand in memory, and smallest
/// where it would be copied because the instruction overwrites its addend.
fn worth_in_register(inst: &Inst, reg: Reg, constant: Constant, extension: VectorExtension) -> f32 {
    if matches!(inst.op, Op::MulAdd(_)) && inst.args.last() == Some(&Operand::Reg(reg)) {
        return 0.5;
    }
    let source = source_at(0, constant, inst.width, extension);
    if fold_into(&mut inst.clone(), reg, source, extension) { 1.0 } else { 4.0 }
}

/// The most vectors that live at the same time, constants aside.
fn pressure(code: &Code) -> usize {
    let mut events: Vec<(u32, i32)> = Vec::new();
    for life in intervals(code) {
        if code.of(life.reg).class == Class::Vector {
            events.push((life.start, 1));
            events.push((life.end + 1, -1));
        }
    }
    events.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (_, change) in events {
        now += change;
        most = most.max(now);
    }
    most as usize
}

/// Defines the hoisted constants at the beginning, and the others where they are used.
fn place_constants(code: &mut Code, hoisted: &[Reg], extension: VectorExtension) {
    let full = Width::of_bytes(extension.bytes());
    let mut items = Vec::with_capacity(code.items.len() + hoisted.len());
    for reg in hoisted {
        if let Some(constant) = code.of(*reg).constant {
            items.push(Item::Inst(Inst::new(Op::Constant(constant), full, Some(*reg), [])));
        }
    }
    let hoisted: FxHashSet<Reg> = hoisted.iter().copied().collect();
    let mut elements: FxHashMap<(u64, u8), i32> = FxHashMap::default();
    for item in std::mem::take(&mut code.items) {
        let Item::Inst(mut inst) = item else {
            items.push(item);
            continue;
        };
        for (reg, constant) in constants_in(code, &inst) {
            if hoisted.contains(&reg) {
                continue;
            }
            let source = source(code, constant, inst.width, extension, &mut elements);
            if fold_into(&mut inst, reg, source, extension) {
                continue;
            }
            code.registers.push(Register { class: Class::Vector, depth: u32::MAX, constant: None });
            let temporary = Reg(code.registers.len() as u32 - 1);
            items.push(Item::Inst(Inst::new(Op::Constant(constant), full, Some(temporary), [])));
            replace(&mut inst, reg, temporary);
        }
        items.push(Item::Inst(inst));
    }
    code.items = items;
    for reg in hoisted {
        code.registers[reg.0 as usize].constant = None;
    }
}

/// A constant as a memory operand, which is put into the pool.
fn source(
    code: &mut Code,
    constant: Constant,
    width: Width,
    extension: VectorExtension,
    elements: &mut FxHashMap<(u64, u8), i32>,
) -> Source {
    let place = match constant {
        Constant::Bytes(start) => start as i32,
        Constant::Same(bits, bytes) => {
            let copies = if extension == VectorExtension::Avx512 {
                1
            } else {
                extension.bytes() as usize / bytes as usize
            };
            *elements.entry((bits, bytes)).or_insert_with(|| {
                let start = code.pool.len().next_multiple_of(usize::from(bytes) * copies);
                code.pool.resize(start, 0);
                code.pool.extend(bits.to_le_bytes()[..bytes as usize].repeat(copies));
                start as i32
            })
        }
    };
    source_at(place, constant, width, extension)
}

/// A constant as a memory operand at a place in the pool.
fn source_at(offset: i32, constant: Constant, width: Width, extension: VectorExtension) -> Source {
    let place = Mem { base: Base::Pool, index: None, offset, buffer: None };
    match (constant, extension) {
        (Constant::Same(_, bytes), VectorExtension::Avx512) => Source::Element(place, bytes),
        _ => Source::Whole(place, width),
    }
}

fn replace(inst: &mut Inst, from: Reg, to: Reg) {
    let swap = |reg: &mut Reg| {
        if *reg == from {
            *reg = to;
        }
    };
    for arg in &mut inst.args {
        match arg {
            Operand::Reg(reg) => swap(reg),
            Operand::Imm(_) => {}
            Operand::Mem(mem) | Operand::Broadcast(mem) => {
                if let Base::Register(reg) = &mut mem.base {
                    swap(reg);
                }
                if let Some((reg, _)) = &mut mem.index {
                    swap(reg);
                }
            }
        }
    }
    if let Some(mask) = &mut inst.mask {
        swap(mask);
    }
}

/// Registers for vectors, masks and tiles; `None` when there are too few.
fn vectors(code: &Code, lives: &[Interval], extension: VectorExtension) -> Option<Vec<Location>> {
    let mut places = vec![Location::Nowhere; code.registers.len()];
    let preferred = preferences(code);
    // Mask 0 stands for no mask.
    let counts = [
        (Class::Vector, 0..extension.registers() as u8),
        (Class::Mask, 1..MASKS + 1),
        (Class::Tile, 0..TILES),
    ];
    for (class, numbers) in counts {
        let mut free: Vec<u8> = numbers.rev().collect();
        let mut active: Vec<(u32, u8)> = Vec::new();
        for life in lives.iter().filter(|life| code.of(life.reg).class == class) {
            active.retain(|(end, number)| {
                let goes_on = *end >= life.start;
                if !goes_on {
                    free.push(*number);
                }
                goes_on
            });
            let wish = preferred[life.reg.0 as usize].iter().find_map(|reg| match places[reg.0 as usize] {
                Location::Register(number) => free.iter().position(|own| *own == number),
                _ => None,
            });
            let number = match wish {
                Some(position) => free.swap_remove(position),
                None => free.pop()?,
            };
            places[life.reg.0 as usize] = Location::Register(number);
            active.push((life.end, number));
        }
    }
    Some(places)
}

/// For each register, the registers whose machine register it should take over: the operands of the multiplication and
/// addition that computes it, the addend first.
fn preferences(code: &Code) -> Vec<SmallVec<[Reg; 3]>> {
    let mut preferred = vec![SmallVec::new(); code.registers.len()];
    for item in &code.items {
        if let Item::Inst(Inst { op: Op::MulAdd(_), dst: Some(dst), args, .. }) = item {
            let order = [2, 0, 1].map(|position| args[position]);
            preferred[dst.0 as usize].extend(order.into_iter().filter_map(|arg| match arg {
                Operand::Reg(reg) => Some(reg),
                _ => None,
            }));
        }
    }
    preferred
}

/// Allocation for general registers; gives the number of words on the stack.
fn generals(code: &Code, lives: &[Interval], places: &mut [Location]) -> u16 {
    let mut by_weight: Vec<&Interval> =
        lives.iter().filter(|life| code.of(life.reg).class == Class::General).collect();
    by_weight.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.reg.cmp(&b.reg)));
    let words = words(code);
    let mut taken: Vec<Vec<(u32, u32)>> = vec![Vec::new(); GENERAL];
    let mut slots = 0;
    for life in by_weight {
        let number = taken
            .iter()
            .position(|lives| lives.iter().all(|(start, end)| life.end < *start || *end < life.start));
        places[life.reg.0 as usize] = match (number, words.get(&life.reg)) {
            (Some(number), _) => {
                taken[number].push((life.start, life.end));
                Location::Register(number as u8)
            }
            (None, Some(offset)) => Location::Word(*offset),
            (None, None) => {
                slots += 1;
                Location::Slot(slots - 1)
            }
        };
    }
    slots
}

/// The registers that hold a word that the leaf is called with, and its offset.
fn words(code: &Code) -> FxHashMap<Reg, i32> {
    let mut words = FxHashMap::default();
    for item in &code.items {
        if let Item::Inst(Inst { op: Op::General(GeneralOp::Copy), dst: Some(dst), args, .. }) = item
            && let [Operand::Mem(Mem { base: Base::Context, offset, .. })] = args[..]
        {
            words.insert(*dst, offset);
        }
    }
    words
}
