//! The representation of a leaf: instructions on virtual registers, in structured loops.
//!
//! Registers are in static single assignment form except for *variables*: loop counters, pointers that loops
//! advance, and elements of intermediates that live in registers. A variable keeps one machine register for its
//! whole life, so that nothing is moved where loops begin and end.

use smallvec::SmallVec;
use tilewright_core::ids::BufferId;

use super::x86::VectorOp;

/// A virtual register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Reg(pub(super) u32);

/// The kind of machine register that a virtual register needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Class {
    /// A 64-bit integer or address.
    General,
    /// A vector of any width.
    Vector,
    /// A mask of AVX-512.
    Mask,
    /// A tile of AMX: 16 rows of 64 bytes.
    Tile,
}

/// The width of vectors that an instruction works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Width {
    /// 128 bits.
    Xmm,
    /// 256 bits.
    Ymm,
    /// 512 bits.
    Zmm,
}

impl Width {
    /// The narrowest width that holds `bytes` bytes.
    pub(super) fn of_bytes(bytes: u32) -> Self {
        match bytes {
            ..=16 => Width::Xmm,
            17..=32 => Width::Ymm,
            _ => Width::Zmm,
        }
    }

    /// The number of bytes.
    pub(super) const fn bytes(self) -> u32 {
        match self {
            Width::Xmm => 16,
            Width::Ymm => 32,
            Width::Zmm => 64,
        }
    }

    /// The width of half as many bytes, which is at least that of the narrowest register.
    pub(super) fn half(self) -> Self {
        Width::of_bytes(self.bytes() / 2)
    }
}

/// The start of a memory operand's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Base {
    /// A pointer.
    Register(Reg),
    /// The words that the leaf is called with.
    Context,
    /// The constants behind the code.
    Pool,
}

/// A place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Mem {
    pub(super) base: Base,
    /// A register and what it is multiplied by: 1, 2, 4 or 8. A vector register in a gather.
    pub(super) index: Option<(Reg, u8)>,
    pub(super) offset: i32,
    /// The buffer that it is part of; nothing that changes when there is none.
    pub(super) buffer: Option<BufferId>,
}

/// An operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Operand {
    Reg(Reg),
    Imm(i64),
    /// Memory of the instruction's width.
    Mem(Mem),
    /// One element in every lane.
    Broadcast(Mem),
}

/// An operation on general registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum GeneralOp {
    /// The operand, which may be a word of memory.
    Copy,
    Add,
    Sub,
    Mul,
    And,
    Or,
    ShiftLeft,
    /// Keeps the sign.
    ShiftRight,
    /// The quotient by a constant of at least 2, rounded down.
    Divide,
    Min,
    Max,
    /// All bits where the comparison holds, otherwise none.
    Compare(Order),
    /// The second operand where the first has any bits, otherwise the third.
    Select,
    /// The address that a memory operand stands for.
    Address,
    /// A byte of memory, extended with zeros.
    Byte,
    /// A byte of memory, extended with its sign.
    SignedByte,
    /// Two bytes of memory, extended with zeros.
    HalfWord,
    /// Writes the low byte.
    StoreByte,
    /// Writes the two low bytes.
    StoreHalfWord,
    /// Sets as many low bits as the operand says: none if it is negative, at most 32.
    LowBits,
}

/// The outcome of a comparison of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Order {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// Less as unsigned numbers.
    Below,
}

/// An operation on masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum MaskOp {
    And,
    Or,
    Xor,
    Not,
    /// From a general register.
    OfGeneral,
    /// To a general register; also the first 32 bits of a vector.
    ToGeneral,
    /// The first 64 bits of a vector, to a general register.
    WideToGeneral,
    /// The highest bit of each 32-bit lane of a vector, to a general register.
    SignsToGeneral,
}

/// An operation on tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum TileOp {
    /// Clears all rows.
    Zero,
    /// Reads rows that are as many bytes apart as the index register of the memory operand says.
    Load,
    /// Writes such rows.
    Store,
    /// Adds the products of the second and the third operand to the first, which is the destination.
    Product(TileProduct),
}

/// The element types of the two factors of a tile product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum TileProduct {
    U8I8,
    I8I8,
    I8U8,
    U8U8,
    Bf16,
}

/// The operation of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Op {
    General(GeneralOp),
    /// Ends the leaf with a report unless the first operand is, unsigned, below the second.
    Check,
    Vector(VectorOp),
    /// The product of the first two operands plus the third, rounded once; the number of bytes of an element.
    MulAdd(u8),
    /// Adds a function of the last two operands to the first, which is the destination.
    Accumulate(VectorOp),
    /// A constant.
    Constant(Constant),
    /// Elements at computed addresses; the index of the memory operand is a vector. The number of bytes of an element.
    Gather(u8),
    /// A general register in every lane; the number of bytes of a lane.
    BroadcastGeneral(u8),
    /// Lane `immediate` of the operand in lane 0; the number of bytes of a lane.
    Extract(u8),
    Mask(MaskOp),
    Tile(TileOp),
    /// Prefetches a line of memory, which need not exist: into all caches, or into all but the first level.
    Prefetch {
        near: bool,
    },
}

/// A constant vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Constant {
    /// The same element in every lane: its bits and the number of its bytes.
    Same(u64, u8),
    /// Bytes of the pool, from here on.
    Bytes(u32),
}

/// An instruction.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Inst {
    pub(super) op: Op,
    pub(super) width: Width,
    pub(super) dst: Option<Reg>,
    pub(super) args: SmallVec<[Operand; 3]>,
    /// The lanes that are computed or written, or where a blend takes its second operand. Others become zero.
    pub(super) mask: Option<Reg>,
    pub(super) immediate: u8,
}

impl Inst {
    /// An instruction without mask.
    pub(super) fn new(
        op: Op,
        width: Width,
        dst: Option<Reg>,
        args: impl IntoIterator<Item = Operand>,
    ) -> Self {
        Inst { op, width, dst, args: args.into_iter().collect(), mask: None, immediate: 0 }
    }

    /// Calls `visit` with every register that is read.
    pub(super) fn for_each_use(&self, visit: &mut dyn FnMut(Reg)) {
        for arg in &self.args {
            match arg {
                Operand::Reg(reg) => visit(*reg),
                Operand::Imm(_) => {}
                Operand::Mem(mem) | Operand::Broadcast(mem) => mem.for_each_use(visit),
            }
        }
        self.mask.into_iter().for_each(visit);
    }

    /// Whether it is executed for its effect, not for its result.
    pub(super) fn has_effect(&self) -> bool {
        self.dst.is_none()
    }
}

impl Mem {
    /// Calls `visit` with every register that the address is made of.
    pub(super) fn for_each_use(&self, visit: &mut dyn FnMut(Reg)) {
        if let Base::Register(reg) = self.base {
            visit(reg);
        }
        self.index.into_iter().for_each(|(reg, _)| visit(reg));
    }

    /// The address `bytes` further.
    pub(super) fn further(self, bytes: i32) -> Self {
        Mem { offset: self.offset.wrapping_add(bytes), ..self }
    }
}

/// A step of a leaf.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Inst(Inst),
    /// The loop's number in [`Code::loops`].
    LoopBegin(usize),
    LoopEnd(usize),
    /// Goes on behind the matching `Else` or `EndIf` when the register is zero.
    If(Reg),
    Else,
    EndIf,
}

/// A loop.
#[derive(Clone, Debug)]
pub(super) struct Loop {
    /// Counts from 0, when anything uses it, otherwise down to 0.
    pub(super) counter: Reg,
    pub(super) extent: Operand,
    /// Whether there is at least one iteration.
    pub(super) runs: bool,
}

/// The code of a leaf.
#[derive(Clone, Debug, Default)]
pub(super) struct Code {
    pub(super) items: Vec<Item>,
    pub(super) loops: Vec<Loop>,
    pub(super) registers: Vec<Register>,
    /// Bytes behind the code.
    pub(super) pool: Vec<u8>,
    /// Where in the pool the configuration of the tile registers is, when they are used.
    pub(super) tiles: Option<i32>,
    /// Whether some stores go around the caches: they need a fence at the end.
    pub(super) streams: bool,
    /// Whether instructions of several groups of lanes are interleaved, which takes more registers.
    pub(super) is_interleaved: bool,
}

/// Facts about a virtual register.
#[derive(Clone, Copy, Debug)]
pub(super) struct Register {
    pub(super) class: Class,
    /// The number of loops around its declaration. It lives throughout every loop inside those where it is used.
    pub(super) depth: u32,
    /// The constant that it stands for, while no instruction defines it.
    pub(super) constant: Option<Constant>,
}

impl Code {
    /// A new register, declared inside `depth` loops.
    pub(super) fn register(&mut self, class: Class, depth: u32) -> Reg {
        self.registers.push(Register { class, depth, constant: None });
        Reg(self.registers.len() as u32 - 1)
    }

    /// Facts about a register.
    pub(super) fn of(&self, reg: Reg) -> Register {
        self.registers[reg.0 as usize]
    }

    /// How often the code accesses memory. Both branches of a condition count, and a loop of unknown extent counts as 16 iterations.
    pub(super) fn accesses(&self) -> u64 {
        const USUAL_EXTENT: u64 = 16;
        let (mut accesses, mut around) = (0u64, vec![1u64]);
        for item in &self.items {
            let times = *around.last().expect("the code itself runs once");
            match item {
                Item::Inst(inst) => {
                    let operands = inst
                        .args
                        .iter()
                        .filter(|arg| matches!(arg, Operand::Mem(_) | Operand::Broadcast(_)))
                        .count() as u64;
                    accesses = accesses.saturating_add(operands.saturating_mul(times));
                }
                Item::LoopBegin(number) => {
                    let extent = match self.loops[*number].extent {
                        Operand::Imm(extent) => u64::try_from(extent).unwrap_or(0),
                        _ => USUAL_EXTENT,
                    };
                    around.push(times.saturating_mul(extent));
                }
                Item::LoopEnd(_) => drop(around.pop()),
                Item::If(_) | Item::Else | Item::EndIf => {}
            }
        }
        accesses
    }

    /// How often each register is read.
    pub(super) fn uses(&self) -> Vec<u32> {
        let mut uses = vec![0; self.registers.len()];
        for item in &self.items {
            match item {
                Item::Inst(inst) => inst.for_each_use(&mut |reg| uses[reg.0 as usize] += 1),
                Item::If(reg) => uses[reg.0 as usize] += 1,
                Item::LoopBegin(number) => {
                    if let Operand::Reg(reg) = self.loops[*number].extent {
                        uses[reg.0 as usize] += 1;
                    }
                }
                Item::LoopEnd(_) | Item::Else | Item::EndIf => {}
            }
        }
        uses
    }
}
