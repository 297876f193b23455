//! Machine code.
//!
//! | module | holds |
//! |---|---|
//! | [`table`] | the instructions for vector operations |
//! | [`vector`], [`general`], [`tile`] | instructions on vectors and masks, on general registers, and on tiles |
//! | [`assembler`] | bytes, jumps and constants |

mod assembler;
mod general;
mod listing;
mod table;
mod tile;
mod vector;

use iced_x86::{Code, Register};

use crate::simd::allocate::{Allocation, Location};
use crate::simd::ir::{self, Base, Item, Mem, Operand, Reg};
use crate::simd::liveness::counts_up;
use crate::simd::{Refusal, VectorExtension};
use assembler::{Address, Arg, Assembler, Jump, Label};

pub(crate) use listing::listing;
pub(super) use table::VectorOp;
pub(super) use tile::configuration;

/// The general registers for virtual ones; the registers that need not be saved come first.
pub(super) const GENERAL: [Register; 11] = [
    Register::RCX,
    Register::RSI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::RBX,
    Register::RBP,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];
/// The number of general registers that need not be saved.
const UNSAVED: usize = 5;
/// The address of the words that the leaf is called with.
const CONTEXT: Register = Register::RDI;
/// Registers for values that have no register of their own while they are used.
const FIRST: Register = Register::RAX;
const SECOND: Register = Register::RDX;
const THIRD: Register = Register::R11;
/// The alignment of innermost loops in bytes: the unit in which processors cache decoded instructions.
const LOOP_ALIGNMENT: usize = 64;

/// The code of a leaf.
pub(super) struct Encoded {
    pub(super) bytes: Vec<u8>,
    pub(super) instruction_bytes: usize,
    pub(super) can_fail: bool,
}

/// Encodes a leaf.
pub(super) fn encode(
    code: &ir::Code,
    places: &Allocation,
    extension: VectorExtension,
) -> Result<Encoded, Refusal> {
    let saved: Vec<Register> = (UNSAVED..GENERAL.len())
        .filter(|number| places.places_general(code).any(|own| own == *number as u8))
        .map(|number| GENERAL[number])
        .collect();
    let mut encoder = Encoder {
        assembler: Assembler::new(code.pool.clone()),
        code,
        places,
        extension,
        loops: Vec::new(),
        branches: Vec::new(),
        failures: Vec::new(),
    };
    encoder.function(&saved)?;
    let can_fail = !encoder.failures.is_empty();
    let (bytes, instruction_bytes) = encoder.assembler.finish()?;
    Ok(Encoded { bytes, instruction_bytes, can_fail })
}

impl Allocation {
    /// The numbers of the general registers that are in use.
    fn places_general<'a>(&'a self, code: &'a ir::Code) -> impl Iterator<Item = u8> + 'a {
        self.places.iter().zip(&code.registers).filter_map(|(place, register)| match place {
            Location::Register(number) if register.class == ir::Class::General => Some(*number),
            _ => None,
        })
    }
}

struct Encoder<'c> {
    assembler: Assembler,
    code: &'c ir::Code,
    places: &'c Allocation,
    extension: VectorExtension,
    /// The beginnings and ends of the loops around.
    loops: Vec<(Label, Label)>,
    /// For each branch around, the labels of its other side and of its end.
    branches: Vec<(Label, Label)>,
    /// Checks: the label of the code for a failure, the value and the extent.
    failures: Vec<(Label, Reg, Reg)>,
}

impl Encoder<'_> {
    fn function(&mut self, saved: &[Register]) -> Result<(), Refusal> {
        for register in saved {
            self.add(Code::Push_r64, &[Arg::Reg(*register)])?;
        }
        let frame = 8 * i32::from(self.places.slots);
        if frame > 0 {
            self.add(Code::Sub_rm64_imm32, &[Arg::Reg(Register::RSP), Arg::Imm32(frame)])?;
        }
        self.configure_tiles()?;
        for (position, item) in self.code.items.iter().enumerate() {
            self.item(position, item)?;
        }
        let (failed, end) = (self.assembler.label(), self.assembler.label());
        self.add(Code::Xor_rm32_r32, &[Arg::Reg(Register::EAX), Arg::Reg(Register::EAX)])?;
        self.assembler.bind(end);
        self.release_tiles()?;
        if self.code.streams {
            // Other threads may read the results as soon as the leaf has returned.
            self.add(Code::Sfence, &[])?;
        }
        self.add(Code::VEX_Vzeroupper, &[])?;
        if frame > 0 {
            self.add(Code::Add_rm64_imm32, &[Arg::Reg(Register::RSP), Arg::Imm32(frame)])?;
        }
        for register in saved.iter().rev() {
            self.add(Code::Pop_r64, &[Arg::Reg(*register)])?;
        }
        self.add(Code::Retnq, &[])?;
        for (label, value, extent) in std::mem::take(&mut self.failures) {
            self.assembler.bind(label);
            for (offset, reg) in [(0, value), (8, extent)] {
                let own = self.read(reg, FIRST)?;
                let place = Arg::Mem(Address::new(CONTEXT, offset));
                self.add(Code::Mov_rm64_r64, &[place, Arg::Reg(own)])?;
            }
            self.assembler.jump(Jump::Always, failed);
            self.failures.push((label, value, extent));
        }
        if !self.failures.is_empty() {
            self.assembler.bind(failed);
            self.add(Code::Mov_rm64_imm32, &[Arg::Reg(Register::RAX), Arg::Imm32(1)])?;
            self.assembler.jump(Jump::Always, end);
        }
        Ok(())
    }

    fn item(&mut self, position: usize, item: &Item) -> Result<(), Refusal> {
        match item {
            Item::Inst(inst) => self.inst(inst),
            Item::LoopBegin(number) => self.loop_begin(position, *number),
            Item::LoopEnd(number) => self.loop_end(*number),
            Item::If(condition) => {
                let (otherwise, end) = (self.assembler.label(), self.assembler.label());
                let own = self.read(*condition, FIRST)?;
                self.add(Code::Test_rm64_r64, &[Arg::Reg(own), Arg::Reg(own)])?;
                self.assembler.jump(Jump::Zero, otherwise);
                self.branches.push((otherwise, end));
                Ok(())
            }
            Item::Else => {
                let (otherwise, end) = self.branches.pop().ok_or(Refusal::Encoding)?;
                self.assembler.jump(Jump::Always, end);
                self.assembler.bind(otherwise);
                self.branches.push((end, end));
                Ok(())
            }
            Item::EndIf => {
                let (otherwise, _) = self.branches.pop().ok_or(Refusal::Encoding)?;
                self.assembler.bind(otherwise);
                Ok(())
            }
        }
    }

    fn loop_begin(&mut self, position: usize, number: usize) -> Result<(), Refusal> {
        let own = &self.code.loops[number];
        let (begin, end) = (self.assembler.label(), self.assembler.label());
        let counter = self.rm(own.counter);
        if !own.runs {
            match own.extent {
                Operand::Imm(extent) if extent <= 0 => self.assembler.jump(Jump::Always, end),
                Operand::Imm(_) => {}
                _ => {
                    let extent = self.operand(own.extent, FIRST)?;
                    self.add(Code::Test_rm64_r64, &[Arg::Reg(extent), Arg::Reg(extent)])?;
                    self.assembler.jump(Jump::LessOrEqual, end);
                }
            }
        }
        if counts_up(&self.places.uses, own.counter) {
            self.add(Code::Mov_rm64_imm32, &[counter, Arg::Imm32(0)])?;
        } else {
            let extent = self.operand(own.extent, FIRST)?;
            self.add(Code::Mov_rm64_r64, &[counter, Arg::Reg(extent)])?;
        }
        let is_innermost = self.code.items[position + 1..]
            .iter()
            .find(|item| matches!(item, Item::LoopBegin(_) | Item::LoopEnd(_)))
            .is_some_and(|item| matches!(item, Item::LoopEnd(_)));
        if is_innermost {
            self.assembler.align(LOOP_ALIGNMENT);
        }
        self.assembler.bind(begin);
        self.loops.push((begin, end));
        Ok(())
    }

    fn loop_end(&mut self, number: usize) -> Result<(), Refusal> {
        let own = &self.code.loops[number];
        let (begin, end) = self.loops.pop().ok_or(Refusal::Encoding)?;
        let counter = self.rm(own.counter);
        if counts_up(&self.places.uses, own.counter) {
            self.add(Code::Add_rm64_imm32, &[counter, Arg::Imm32(1)])?;
            match own.extent {
                Operand::Imm(extent) if i32::try_from(extent).is_ok() => {
                    self.add(Code::Cmp_rm64_imm32, &[counter, Arg::Imm32(extent as i32)])?;
                }
                _ => {
                    let extent = self.operand(own.extent, FIRST)?;
                    self.add(Code::Cmp_rm64_r64, &[counter, Arg::Reg(extent)])?;
                }
            }
            self.assembler.jump(Jump::Less, begin);
        } else {
            self.add(Code::Sub_rm64_imm32, &[counter, Arg::Imm32(1)])?;
            self.assembler.jump(Jump::NotZero, begin);
        }
        self.assembler.bind(end);
        Ok(())
    }

    fn add(&mut self, code: Code, args: &[Arg]) -> Result<(), Refusal> {
        self.assembler.add(code, args, |_| {})
    }

    fn place(&self, reg: Reg) -> Location {
        self.places.places[reg.0 as usize]
    }

    /// A general register as an operand that may also be memory.
    fn rm(&self, reg: Reg) -> Arg {
        match self.place(reg) {
            Location::Register(number) => Arg::Reg(GENERAL[number as usize]),
            Location::Slot(slot) => Arg::Mem(Address::new(Register::RSP, 8 * i32::from(slot))),
            Location::Word(offset) => Arg::Mem(Address::new(CONTEXT, offset)),
            Location::Nowhere => Arg::Reg(FIRST),
        }
    }

    /// The machine register that holds a general register; a value in memory is loaded into it.
    fn read(&mut self, reg: Reg, scratch: Register) -> Result<Register, Refusal> {
        match self.rm(reg) {
            Arg::Reg(own) => Ok(own),
            place => {
                self.add(Code::Mov_r64_rm64, &[Arg::Reg(scratch), place])?;
                Ok(scratch)
            }
        }
    }

    /// A machine register with an operand's value.
    fn operand(&mut self, operand: Operand, scratch: Register) -> Result<Register, Refusal> {
        match operand {
            Operand::Reg(reg) => self.read(reg, scratch),
            Operand::Imm(value) => {
                self.load_integer(scratch, value)?;
                Ok(scratch)
            }
            Operand::Mem(mem) | Operand::Broadcast(mem) => {
                let address = self.address(mem, false)?;
                self.add(Code::Mov_r64_rm64, &[Arg::Reg(scratch), Arg::Mem(address)])?;
                Ok(scratch)
            }
        }
    }

    fn load_integer(&mut self, into: Register, value: i64) -> Result<(), Refusal> {
        match i32::try_from(value) {
            Ok(value) => self.add(Code::Mov_rm64_imm32, &[Arg::Reg(into), Arg::Imm32(value)]),
            Err(_) => self.add(Code::Mov_r64_imm64, &[Arg::Reg(into), Arg::Imm64(value)]),
        }
    }

    /// A memory operand. Its general registers may be loaded into the first two scratch registers.
    fn address(&mut self, mem: Mem, is_broadcast: bool) -> Result<Address, Refusal> {
        let base = match mem.base {
            Base::Register(reg) => self.read(reg, FIRST)?,
            Base::Context => CONTEXT,
            Base::Pool => Register::RIP,
        };
        let (index, scale) = match mem.index {
            None => (Register::None, 1),
            Some((reg, scale)) if self.code.of(reg).class == ir::Class::General => {
                (self.read(reg, SECOND)?, u32::from(scale))
            }
            Some((_, scale)) => (Register::None, u32::from(scale)),
        };
        Ok(Address { base, index, scale, offset: mem.offset, is_broadcast })
    }
}
