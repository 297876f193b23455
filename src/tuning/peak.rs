//! The machine's measured peak, as what a kernel's speed is compared with.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tilewright_backends::cpu::peak::fma_peak;
use tilewright_core::dtype::DType;
use tilewright_core::program::{Access, Program};
use tilewright_core::target::Target;

/// How long measuring a peak takes.
const DURATION: Duration = Duration::from_millis(60);

/// The f32 operations per second, in 10⁹, that a machine reaches with fused multiply-adds on vectors of a width and on
/// so many threads: the fastest of several samples. Measured once in a program.
pub fn peak_gflops(vector_bits: u32, threads: usize) -> Option<f64> {
    static KNOWN: Mutex<BTreeMap<(u32, usize), Option<f64>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let measure = || fma_peak(vector_bits, threads, DURATION).map(|peak| peak.gflops.best);
    *known.entry((vector_bits, threads)).or_insert_with(measure)
}

/// The peak that a program could reach, by the type that it computes in: half of that of f32 for f64, and unknown for
/// integers and for the types that are computed in another one.
pub(super) fn peak_of(program: &Program, target: &Target) -> Option<f64> {
    let (result, _) = program.buffer_params().find(|(_, access)| *access != Access::Input)?;
    let share = match program.buffer(result).dtype {
        DType::F32 => 1.0,
        DType::F64 => 0.5,
        _ => return None,
    };
    Some(share * peak_gflops(target.vector_bits, target.cores as usize)?)
}
