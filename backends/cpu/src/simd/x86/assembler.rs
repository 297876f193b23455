//! Instructions into bytes, with jumps and addresses that are known only later.

use iced_x86::{Code, Encoder, Instruction, OpKind, Register};

use crate::simd::Refusal;

/// An operand of a machine instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Arg {
    Reg(Register),
    Mem(Address),
    Imm8(u8),
    Imm32(i32),
    Imm64(i64),
}

/// A memory operand of a machine instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Address {
    /// `RIP` for the constants behind the code.
    pub(super) base: Register,
    pub(super) index: Register,
    pub(super) scale: u32,
    pub(super) offset: i32,
    /// Whether one element is broadcast to all lanes.
    pub(super) is_broadcast: bool,
}

impl Address {
    pub(super) fn new(base: Register, offset: i32) -> Self {
        Address { base, index: Register::None, scale: 1, offset, is_broadcast: false }
    }
}

/// The target of jumps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Label(usize);

/// The condition of a jump.
#[derive(Clone, Copy, Debug)]
pub(super) enum Jump {
    Always,
    /// After a comparison of signed integers.
    Less,
    LessOrEqual,
    /// After a comparison of unsigned integers.
    AboveOrEqual,
    Zero,
    NotZero,
}

pub(super) struct Assembler {
    encoder: Encoder,
    position: usize,
    labels: Vec<Option<usize>>,
    /// The positions of the distances of jumps, and where those lead.
    jumps: Vec<(usize, Label)>,
    /// The positions of the distances to constants, the ends of their instructions, and the constants' places.
    constants: Vec<(usize, usize, i32)>,
    /// The bytes behind the code.
    pool: Vec<u8>,
}

impl Assembler {
    /// An assembler of code with these constants behind it.
    pub(super) fn new(pool: Vec<u8>) -> Self {
        Assembler {
            pool,
            encoder: Encoder::new(64),
            position: 0,
            labels: Vec::new(),
            jumps: Vec::new(),
            constants: Vec::new(),
        }
    }

    /// Adds an instruction.
    pub(super) fn add(
        &mut self,
        code: Code,
        args: &[Arg],
        finish: impl FnOnce(&mut Instruction),
    ) -> Result<(), Refusal> {
        let mut instruction = Instruction::default();
        instruction.set_code(code);
        let mut constant = None;
        for (position, arg) in args.iter().enumerate() {
            let position = position as u32;
            match *arg {
                Arg::Reg(register) => {
                    instruction.set_op_kind(position, OpKind::Register);
                    instruction.set_op_register(position, register);
                }
                Arg::Mem(address) => {
                    instruction.set_op_kind(position, OpKind::Memory);
                    instruction.set_memory_base(address.base);
                    instruction.set_memory_index(address.index);
                    instruction.set_memory_index_scale(address.scale);
                    if address.base == Register::RIP {
                        constant = Some(address.offset);
                        instruction.set_memory_displ_size(8);
                        instruction.set_memory_displacement64(self.position as u64);
                    } else {
                        instruction.set_memory_displ_size(u32::from(address.offset != 0));
                        instruction.set_memory_displacement64(i64::from(address.offset) as u64);
                    }
                    instruction.set_is_broadcast(address.is_broadcast);
                }
                Arg::Imm8(value) => {
                    instruction.set_op_kind(position, OpKind::Immediate8);
                    instruction.set_immediate8(value);
                }
                Arg::Imm32(value) => {
                    instruction.set_op_kind(position, OpKind::Immediate32to64);
                    instruction.set_immediate32to64(i64::from(value));
                }
                Arg::Imm64(value) => {
                    instruction.set_op_kind(position, OpKind::Immediate64);
                    instruction.set_immediate64(value as u64);
                }
            }
        }
        finish(&mut instruction);
        let length = self.encoder.encode(&instruction, self.position as u64).map_err(|error| {
            tracing::debug!(%error, ?instruction, "an instruction of a leaf could not be encoded");
            Refusal::Encoding
        })?;
        let start = self.position;
        self.position += length;
        if let Some(place) = constant {
            let offsets = self.encoder.get_constant_offsets();
            self.constants.push((start + offsets.displacement_offset(), self.position, place));
        }
        Ok(())
    }

    /// The place of an element among the constants.
    pub(super) fn constant(&mut self, element: &[u8]) -> i32 {
        let known = self.pool.chunks_exact(element.len()).position(|chunk| chunk == element);
        let position = known.unwrap_or_else(|| {
            self.pool.resize(self.pool.len().next_multiple_of(element.len()), 0);
            self.pool.extend_from_slice(element);
            self.pool.len() / element.len() - 1
        });
        (position * element.len()) as i32
    }

    pub(super) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    pub(super) fn bind(&mut self, label: Label) {
        self.labels[label.0] = Some(self.position);
    }

    pub(super) fn jump(&mut self, jump: Jump, to: Label) {
        let opcode: &[u8] = match jump {
            Jump::Always => &[0xE9],
            Jump::Less => &[0x0F, 0x8C],
            Jump::LessOrEqual => &[0x0F, 0x8E],
            Jump::AboveOrEqual => &[0x0F, 0x83],
            Jump::Zero => &[0x0F, 0x84],
            Jump::NotZero => &[0x0F, 0x85],
        };
        self.bytes(opcode);
        self.jumps.push((self.position, to));
        self.bytes(&[0; 4]);
    }

    /// Fills up to a multiple of `alignment` with instructions that do nothing.
    pub(super) fn align(&mut self, alignment: usize) {
        let mut missing = self.position.next_multiple_of(alignment) - self.position;
        while missing > 0 {
            // The recommended forms of up to nine bytes.
            let nop: &[u8] = match missing.min(9) {
                1 => &[0x90],
                2 => &[0x66, 0x90],
                3 => &[0x0F, 0x1F, 0x00],
                4 => &[0x0F, 0x1F, 0x40, 0x00],
                5 => &[0x0F, 0x1F, 0x44, 0x00, 0x00],
                6 => &[0x66, 0x0F, 0x1F, 0x44, 0x00, 0x00],
                7 => &[0x0F, 0x1F, 0x80, 0x00, 0x00, 0x00, 0x00],
                8 => &[0x0F, 0x1F, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
                _ => &[0x66, 0x0F, 0x1F, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
            };
            self.bytes(nop);
            missing -= nop.len();
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.encoder.write_u8(*byte));
        self.position += bytes.len();
    }

    /// The code followed by its constants, and the number of bytes of the code.
    pub(super) fn finish(mut self) -> Result<(Vec<u8>, usize), Refusal> {
        let mut bytes = self.encoder.take_buffer();
        let end = bytes.len();
        if !self.pool.is_empty() {
            bytes.resize(end.next_multiple_of(64), 0);
        }
        let start = bytes.len();
        bytes.extend_from_slice(&self.pool);
        for (position, label) in &self.jumps {
            let target = self.labels[label.0].ok_or(Refusal::Encoding)?;
            write_distance(&mut bytes, *position, target as i64 - (*position as i64 + 4))?;
        }
        for (position, next, place) in &self.constants {
            let target = start as i64 + i64::from(*place);
            write_distance(&mut bytes, *position, target - *next as i64)?;
        }
        Ok((bytes, end))
    }
}

fn write_distance(bytes: &mut [u8], position: usize, distance: i64) -> Result<(), Refusal> {
    let distance = i32::try_from(distance).map_err(|_| Refusal::Encoding)?;
    bytes[position..position + 4].copy_from_slice(&distance.to_le_bytes());
    Ok(())
}
