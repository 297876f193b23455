//! Instructions on tiles.
//!
//! All eight registers have one shape, 16 rows of 64 bytes, so that any can hold any operand.

use iced_x86::{Code, Register};

use super::Encoder;
use super::assembler::{Address, Arg};
use crate::simd::Refusal;
use crate::simd::ir::{Inst, Operand, Reg, TileOp, TileProduct};

/// The operand of the instruction that configures tiles (Intel 64 and IA-32 Architectures Software Developer's Manual,
/// volume 2, `LDTILECFG`): the number of the palette, from byte 16 on the bytes of a row of each tile, and from byte 48 on
/// the rows.
pub(in crate::simd) fn configuration() -> [u8; 64] {
    const PALETTE: u8 = 1;
    const TILES: usize = 8;
    const ROWS: u8 = 16;
    const ROW_BYTES: u16 = 64;
    let mut bytes = [0; 64];
    bytes[0] = PALETTE;
    for tile in 0..TILES {
        bytes[16 + 2 * tile..18 + 2 * tile].copy_from_slice(&ROW_BYTES.to_le_bytes());
        bytes[48 + tile] = ROWS;
    }
    bytes
}

impl TileProduct {
    fn code(self) -> Code {
        match self {
            TileProduct::U8I8 => Code::VEX_Tdpbusd_tmm_tmm_tmm,
            TileProduct::I8I8 => Code::VEX_Tdpbssd_tmm_tmm_tmm,
            TileProduct::I8U8 => Code::VEX_Tdpbsud_tmm_tmm_tmm,
            TileProduct::U8U8 => Code::VEX_Tdpbuud_tmm_tmm_tmm,
            TileProduct::Bf16 => Code::VEX_Tdpbf16ps_tmm_tmm_tmm,
        }
    }
}

impl Encoder<'_> {
    /// Gives the tile registers their shapes, when the leaf uses any.
    pub(super) fn configure_tiles(&mut self) -> Result<(), Refusal> {
        match self.code.tiles {
            Some(place) => {
                self.add(Code::VEX_Ldtilecfg_m512, &[Arg::Mem(Address::new(Register::RIP, place))])
            }
            None => Ok(()),
        }
    }

    /// Releases the tile registers: the system need not save registers that are not in use.
    pub(super) fn release_tiles(&mut self) -> Result<(), Refusal> {
        match self.code.tiles {
            Some(_) => self.add(Code::VEX_Tilerelease, &[]),
            None => Ok(()),
        }
    }

    /// An instruction.
    pub(super) fn tile(&mut self, op: TileOp, inst: &Inst) -> Result<(), Refusal> {
        match (op, inst.dst, &inst.args[..]) {
            (TileOp::Zero, Some(dst), []) => {
                let dst = self.tile_register(dst)?;
                self.add(Code::VEX_Tilezero_tmm, &[dst])
            }
            (TileOp::Load, Some(dst), [Operand::Mem(mem)]) => {
                let rows = Arg::Mem(self.address(*mem, false)?);
                let dst = self.tile_register(dst)?;
                self.add(Code::VEX_Tileloadd_tmm_sibmem, &[dst, rows])
            }
            (TileOp::Store, None, [Operand::Mem(mem), Operand::Reg(value)]) => {
                let rows = Arg::Mem(self.address(*mem, false)?);
                let value = self.tile_register(*value)?;
                self.add(Code::VEX_Tilestored_sibmem_tmm, &[rows, value])
            }
            (TileOp::Product(product), Some(dst), [Operand::Reg(sum), Operand::Reg(a), Operand::Reg(b)]) => {
                let args = [self.tile_register(dst)?, self.tile_register(*a)?, self.tile_register(*b)?];
                // The instruction is invalid unless its operands differ.
                if *sum != dst || args[0] == args[1] || args[0] == args[2] || args[1] == args[2] {
                    return Err(Refusal::Encoding);
                }
                self.add(product.code(), &args)
            }
            _ => Err(Refusal::Encoding),
        }
    }

    fn tile_register(&self, reg: Reg) -> Result<Arg, Refusal> {
        Ok(Arg::Reg(Register::TMM0 + self.number(reg)?))
    }
}
