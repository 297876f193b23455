//! Loops of fused multiply-adds on f32 registers, and nothing else.
//!
//! Each has more independent chains than latency times throughput of the units (x86-64: 4 cycles ×
//! 2 units; the widest AArch64 cores: 4 × 4), and fewer than there are registers, so that nothing waits and
//! nothing spills.

/// Width of one lane.
const F32_BITS: u32 = 32;

/// A register-only loop of fused multiply-adds, checked to run on this machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct FmaLoop {
    body: unsafe fn(u64),
    flops_per_iteration: u64,
}

impl FmaLoop {
    /// The loop with vectors of `vector_bits`; none when the machine or its architecture has no such
    /// instruction.
    pub(super) fn detect(vector_bits: u32) -> Option<Self> {
        system::body(vector_bits).map(|body| {
            // A fused multiply-add counts as two operations.
            let flops_per_iteration = u64::from(vector_bits / F32_BITS) * 2 * system::CHAINS;
            Self { body, flops_per_iteration }
        })
    }

    /// Runs `iterations` of the loop.
    pub(super) fn run(self, iterations: u64) {
        // SAFETY: `detect` is the only constructor, and found that the machine has the instructions of
        // `body`.
        unsafe { (self.body)(iterations) }
    }

    /// How many floating-point operations `iterations` are.
    pub(super) fn flops(self, iterations: u64) -> u64 {
        self.flops_per_iteration * iterations
    }
}

/// Defines a loop over named accumulators: an array of them might end up in memory when optimisation is low.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! fma_loop {
    (
        $function:ident, $features:literal, $splat:path,
        |$sum:ident, $a:ident, $b:ident| $step:expr, $($chain:ident)*
    ) => {
        #[target_feature(enable = $features)]
        fn $function(iterations: u64) {
            // These values keep the sums from overflow and from vanishing: infinities and denormals could take another
            // time.
            let ($a, $b) = ($splat(black_box(0.999)), $splat(black_box(0.001)));
            $(let mut $chain = $splat(black_box(1.0));)*
            for _ in 0..iterations {
                $($chain = { let $sum = $chain; $step };)*
            }
            $(black_box($chain);)*
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod system {
    use std::arch::is_x86_feature_detected;
    use std::arch::x86_64::{
        _mm_fmadd_ps, _mm_set1_ps, _mm256_fmadd_ps, _mm256_set1_ps, _mm512_fmadd_ps, _mm512_set1_ps,
    };
    use std::hint::black_box;

    pub(super) const CHAINS: u64 = 12;

    pub(super) fn body(vector_bits: u32) -> Option<unsafe fn(u64)> {
        match vector_bits {
            128 if is_x86_feature_detected!("fma") => Some(fma_128),
            256 if is_x86_feature_detected!("fma") => Some(fma_256),
            512 if is_x86_feature_detected!("avx512f") => Some(fma_512),
            _ => None,
        }
    }

    fma_loop!(fma_128, "fma", _mm_set1_ps,
        |sum, a, b| _mm_fmadd_ps(sum, a, b),
        c0 c1 c2 c3 c4 c5 c6 c7 c8 c9 c10 c11);
    fma_loop!(fma_256, "fma", _mm256_set1_ps,
        |sum, a, b| _mm256_fmadd_ps(sum, a, b),
        c0 c1 c2 c3 c4 c5 c6 c7 c8 c9 c10 c11);
    fma_loop!(fma_512, "avx512f", _mm512_set1_ps,
        |sum, a, b| _mm512_fmadd_ps(sum, a, b),
        c0 c1 c2 c3 c4 c5 c6 c7 c8 c9 c10 c11);
}

#[cfg(target_arch = "aarch64")]
mod system {
    use std::arch::aarch64::{vdupq_n_f32, vfmaq_f32};
    use std::arch::is_aarch64_feature_detected;
    use std::hint::black_box;

    pub(super) const CHAINS: u64 = 24;

    pub(super) fn body(vector_bits: u32) -> Option<unsafe fn(u64)> {
        (vector_bits == 128 && is_aarch64_feature_detected!("neon")).then_some(fma_128 as unsafe fn(u64))
    }

    // Unlike on x86-64 the first operand, which the instruction overwrites, is the addend.
    fma_loop!(fma_128, "neon", vdupq_n_f32,
        |sum, a, b| vfmaq_f32(sum, a, b),
        c0 c1 c2 c3 c4 c5 c6 c7 c8 c9 c10 c11 c12 c13 c14 c15 c16 c17 c18 c19 c20 c21 c22 c23);
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod system {
    pub(super) const CHAINS: u64 = 0;

    pub(super) fn body(_vector_bits: u32) -> Option<unsafe fn(u64)> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_that_no_machine_has_are_refused() {
        for bits in [0, 64, 192, 1024] {
            assert!(FmaLoop::detect(bits).is_none(), "{bits}");
        }
    }

    #[test]
    fn loops_run_and_count_two_operations_per_lane() {
        for bits in [128, 256, 512] {
            let Some(fma_loop) = FmaLoop::detect(bits) else { continue };
            fma_loop.run(0);
            fma_loop.run(1000);
            assert_eq!(fma_loop.flops(10), u64::from(bits) / 32 * 2 * 10 * system::CHAINS);
        }
    }

    #[cfg(target_arch = "aarch64")]
    #[test]
    fn the_width_of_neon_is_there() {
        assert!(FmaLoop::detect(128).is_some());
    }
}
