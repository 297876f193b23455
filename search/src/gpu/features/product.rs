//! Products of matrices on tensor cores.

use tilewright_core::program::{Program, Scope};
use tilewright_core::stmt::Stmt;

use super::block::Located;

/// The bits of the factors for which a machine says how many multiply-adds it does in a cycle.
const USUAL_BITS: f64 = 16.0;

/// An instruction of tensor cores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product {
    /// Its multiply-adds.
    pub(crate) multiply_adds: f64,
    /// How many times as many multiply-adds a cycle has as with factors of 16 bits. A multiplier takes the same bits of factors in each
    /// cycle: twice as many of 8 bits, and half as many of 32 (NVIDIA A100 data sheet: 312 TFLOP/s of `bf16`, 156 of `tf32`, 624 TOP/s of `i8`).
    pub(crate) rate: f64,
}

impl Product {
    /// That of a block whose body is marked as an intrinsic.
    pub(super) fn of(program: &Program, block: &Located<'_>) -> Option<Self> {
        let Stmt::Intrinsic(_) = block.block.body else { return None };
        let loads =
            block.accesses.iter().filter(|access| !access.is_store && access.scope == Scope::Fragment);
        let bits = loads.map(|access| program.buffer(access.buffer).dtype.bits()).min()?;
        let multiply_adds = block.inside.iter().map(|(_, extent)| *extent as f64).product();
        Some(Product { multiply_adds, rate: USUAL_BITS / bits.max(1) as f64 })
    }
}
