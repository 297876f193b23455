//! `tdpbusd` and similar instructions: products of tiles of AMX, 16 rows of 64 bytes each.
//!
//! The sums live in tile registers [while loops run](crate::simd::build::intrinsic::tile_sums) that do not change their place, and
//! otherwise from a load to a store around products that follow each other, or around one.

use tilewright_core::ids::BufferId;
use tilewright_core::index::Index;
use tilewright_core::intrinsic::{Match, Operand};

use super::{Rule, Sums};
use crate::machine::{Feature, FeatureSet};
use crate::simd::build::scope::{Key, LoadKey};
use crate::simd::build::{Builder, Outcome};
use crate::simd::ir::{self, Class, Inst, Mem, Op, Reg, TileOp, TileProduct, Width};
use crate::simd::x86::configuration;
use crate::simd::{Refusal, VectorExtension};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "tdpbusd", is_available: multiplies_bytes, sums: Sums::Tile, emit: emit_u8_i8 },
    Rule { name: "tdpbssd", is_available: multiplies_bytes, sums: Sums::Tile, emit: emit_i8_i8 },
    Rule { name: "tdpbsud", is_available: multiplies_bytes, sums: Sums::Tile, emit: emit_i8_u8 },
    Rule { name: "tdpbuud", is_available: multiplies_bytes, sums: Sums::Tile, emit: emit_u8_u8 },
    Rule { name: "tdpbf16ps", is_available: multiplies_bf16, sums: Sums::Tile, emit: emit_bf16 },
];

/// The rows of a tile, and the bytes of each.
pub(in crate::simd::build) const ROWS: i64 = 16;
const ROW_BYTES: i64 = 64;

fn multiplies_bytes(extension: VectorExtension, features: FeatureSet) -> bool {
    extension == VectorExtension::Avx512 && features.contains(Feature::AmxInt8)
}

fn multiplies_bf16(extension: VectorExtension, features: FeatureSet) -> bool {
    extension == VectorExtension::Avx512 && features.contains(Feature::AmxBf16)
}

fn emit_u8_i8(builder: &mut Builder<'_>, found: &Match) -> Outcome<()> {
    builder.tile_product(TileProduct::U8I8, found)
}

fn emit_i8_i8(builder: &mut Builder<'_>, found: &Match) -> Outcome<()> {
    builder.tile_product(TileProduct::I8I8, found)
}

fn emit_i8_u8(builder: &mut Builder<'_>, found: &Match) -> Outcome<()> {
    builder.tile_product(TileProduct::I8U8, found)
}

fn emit_u8_u8(builder: &mut Builder<'_>, found: &Match) -> Outcome<()> {
    builder.tile_product(TileProduct::U8U8, found)
}

fn emit_bf16(builder: &mut Builder<'_>, found: &Match) -> Outcome<()> {
    builder.tile_product(TileProduct::Bf16, found)
}

impl Builder<'_> {
    fn tile_product(&mut self, product: TileProduct, found: &Match) -> Outcome<()> {
        let [a, b, sums] = &found.operands[..] else { return Err(Refusal::Mark) };
        let sums = self.resolved(sums);
        if let Some(sum) = self.sum_at(&sums) {
            return self.multiply(product, sum, [a, b]);
        }
        if self.holds_sums() {
            return Err(Refusal::Accumulators);
        }
        let sum = self.tile_from(&sums)?;
        self.multiply(product, sum, [a, b])?;
        self.tile_to(&sums, sum)
    }

    fn multiply(&mut self, product: TileProduct, sum: Reg, operands: [&Operand; 2]) -> Outcome<()> {
        let mut args = [sum; 3];
        for (number, operand) in (1..).zip(operands) {
            let operand = self.resolved(operand);
            args[number] = self.shared_tile(&operand, number as u32)?;
        }
        let op = Op::Tile(TileOp::Product(product));
        self.push(Inst::new(op, Width::Zmm, Some(sum), args.map(ir::Operand::Reg)));
        Ok(())
    }

    /// A tile that is not loaded again as the operand of this number while nothing is stored to its buffer. The operands
    /// of an instruction must differ, which is why a tile loaded as one is not used as the other.
    fn shared_tile(&mut self, operand: &Operand, number: u32) -> Outcome<Reg> {
        let op = Op::Tile(TileOp::Load);
        let mem = self.rows_of(operand)?;
        let key = LoadKey { op, width: Width::Zmm, mem, lanes: number };
        if let Some(reg) = self.known_load(key) {
            return Ok(reg);
        }
        let reg = self.emit(Class::Tile, op, Width::Zmm, [ir::Operand::Mem(mem)]);
        self.remember_load(key, reg);
        Ok(reg)
    }

    /// The operand with known constants for variables.
    pub(in crate::simd::build) fn resolved(&self, operand: &Operand) -> Operand {
        let strides = operand.strides.iter().map(|stride| self.resolve(stride)).collect();
        Operand { buffer: operand.buffer, first: self.resolve(&operand.first), strides }
    }

    /// A tile read into a register of its own.
    pub(in crate::simd::build) fn tile_from(&mut self, operand: &Operand) -> Outcome<Reg> {
        let mem = self.rows_of(operand)?;
        Ok(self.emit(Class::Tile, Op::Tile(TileOp::Load), Width::Zmm, [ir::Operand::Mem(mem)]))
    }

    /// A tile of zeros in a register of its own.
    pub(in crate::simd::build) fn tile_of_zeros(&mut self) -> Reg {
        self.configure_tiles();
        self.emit(Class::Tile, Op::Tile(TileOp::Zero), Width::Zmm, [])
    }

    /// Writes a tile.
    pub(in crate::simd::build) fn tile_to(&mut self, operand: &Operand, value: Reg) -> Outcome<()> {
        let mem = self.rows_of(operand)?;
        self.forget_loads(operand.buffer);
        let args = [ir::Operand::Mem(mem), ir::Operand::Reg(value)];
        self.push(Inst::new(Op::Tile(TileOp::Store), Width::Zmm, None, args));
        Ok(())
    }

    /// The rows of a tile as a memory operand, which are checked to lie inside their buffer.
    fn rows_of(&mut self, operand: &Operand) -> Outcome<Mem> {
        self.configure_tiles();
        if self.is_in_registers(operand.buffer) {
            return Err(Refusal::Access);
        }
        self.require_address(operand.buffer)?;
        for index in self.ends_of(operand)? {
            self.require_inside(operand.buffer, &index)?;
        }
        let mem = self.address_without_index(operand.buffer, &operand.first)?;
        let bytes = operand.strides[0].scale(self.bytes_of(operand.buffer));
        let distance = match self.index_value(&bytes)? {
            ir::Operand::Reg(reg) => reg,
            value => {
                let key = Key::Sum(Vec::new(), bytes.constant_part());
                self.value_at(0, key, |this| Ok::<_, Refusal>(this.integer(value)))?
            }
        };
        Ok(Mem { index: Some((distance, 1)), ..mem })
    }

    /// The first and the last element of a tile.
    pub(in crate::simd::build) fn ends_of(&self, operand: &Operand) -> Outcome<[Index; 2]> {
        let distance = operand.strides.first().ok_or(Refusal::Mark)?;
        if !distance.is_provably_nonnegative(&self.ranges) {
            return Err(Refusal::Access);
        }
        let row = &operand.first + &distance.scale(ROWS - 1);
        Ok([operand.first.clone(), row.offset(ROW_BYTES / self.bytes_of(operand.buffer) - 1)])
    }

    fn bytes_of(&self, buffer: BufferId) -> i64 {
        self.program.buffer(buffer).dtype.bytes() as i64
    }

    fn configure_tiles(&mut self) {
        if self.code.tiles.is_none() {
            let place = self.pool_bytes(&configuration());
            self.code.tiles = Some(place as i32);
        }
    }
}
