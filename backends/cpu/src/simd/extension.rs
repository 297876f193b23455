//! The instruction sets that leaves are made of.

use crate::machine::{Feature, Machine};

/// The instructions that leaves are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VectorExtension {
    /// 256-bit vectors.
    Avx2,
    /// 512-bit vectors and masks.
    Avx512,
}

impl VectorExtension {
    /// The widest that a machine has, if any, for the C calling convention that leaves have.
    pub(crate) fn of(machine: &Machine) -> Option<Self> {
        let has = |features: &[Feature]| features.iter().all(|feature| machine.features.contains(*feature));
        if !cfg!(all(target_arch = "x86_64", unix)) {
            return None;
        }
        use Feature::{Avx2, Avx512bw, Avx512dq, Avx512f, Avx512vl, Bmi2, F16c, Fma};
        if has(&[Avx512f, Avx512bw, Avx512dq, Avx512vl, Bmi2]) {
            return Some(VectorExtension::Avx512);
        }
        has(&[Avx2, Fma, F16c, Bmi2]).then_some(VectorExtension::Avx2)
    }

    /// The width of a vector in bytes.
    pub(crate) const fn bytes(self) -> u32 {
        match self {
            VectorExtension::Avx2 => 32,
            VectorExtension::Avx512 => 64,
        }
    }

    /// The number of vector registers.
    pub(crate) const fn registers(self) -> u32 {
        match self {
            VectorExtension::Avx2 => 16,
            VectorExtension::Avx512 => 32,
        }
    }
}
