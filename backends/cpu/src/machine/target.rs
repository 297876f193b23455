//! The machine in the terms of schedules.

use tilewright_core::target::CpuTarget;

use super::Machine;
use crate::intrinsics;

impl Machine {
    /// The target for a code generator that uses vectors of `vector_bits`, which may be fewer than the
    /// machine's [`vector_bits`](Machine::vector_bits). The code generator adds the names of the tensor intrinsics that it emits.
    pub fn target(&self, vector_bits: u32) -> CpuTarget {
        // Instruction sets of x86-64 before AVX-512, whose code this is unless the vectors are wider, name 16
        // registers.
        let vector_registers = if self.architecture == "x86_64" && vector_bits < 512 { 16 } else { 32 };
        CpuTarget {
            cores: u32::try_from(self.cores).unwrap_or(u32::MAX),
            vector_bits,
            vector_registers,
            l1_bytes: self.l1_bytes as u64,
            l2_bytes: self.l2_bytes as u64,
            l3_bytes: self.l3_bytes as u64,
            cache_line_bytes: u32::try_from(self.line_bytes).unwrap_or(u32::MAX),
            features: self.features.iter().map(|feature| feature.name().to_owned()).collect(),
            intrinsics: Vec::new(),
            descriptions: intrinsics::known().clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_the_machines_numbers() {
        let machine: Machine =
            "x86_64;avx2;fma;avx512f;l1=48K;l2=2M;l3=32M;line=64;cores=2".parse().expect("a fingerprint");
        let target = machine.target(128);
        assert_eq!(target.cores, 2);
        assert_eq!((target.vector_bits, target.vector_registers), (128, 16));
        assert_eq!((target.l1_bytes, target.l2_bytes, target.l3_bytes), (48 << 10, 2 << 20, 32 << 20));
        assert_eq!(target.cache_line_bytes, 64);
        assert!(target.features.iter().eq(["avx2", "avx512f", "fma"]), "{:?}", target.features);
        assert_eq!(machine.target(512).vector_registers, 32);
        let neon: Machine = "aarch64;neon;l1=64K;l2=1M;l3=0;line=64;cores=4".parse().expect("a fingerprint");
        assert_eq!(neon.target(128).vector_registers, 32);
    }
}
