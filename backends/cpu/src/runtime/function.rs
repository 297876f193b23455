//! The functions that compiled code imports.
//!
//! Compiled code holds no address of this process: it calls functions of the run time by name. A JIT module gets their
//! addresses from this table; an object file leaves the names to the linker.

use cranelift_codegen::ir::types::{F32, F64, I64};
use cranelift_codegen::ir::{AbiParam, Signature, Type};
use cranelift_codegen::isa::CallConv;

use super::{arithmetic, workspace};
use crate::pool::{RawTask, parallel_for_entry};

/// A function of the run time. Each has the calling convention of C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuntimeFunction {
    /// `(threads, iterations, body, context)`: runs `body(context, begin, end)` on chunks of `0..iterations`.
    ParallelFor,
    /// `(bytes) -> address`: the running thread's workspace for bodies of parallel loops.
    BodyWorkspace,
    /// The remainder of two `f32`, with the sign of the first.
    RemainderF32,
    /// The remainder of two `f64`, with the sign of the first.
    RemainderF64,
}

impl RuntimeFunction {
    /// All functions, in the order of their numbers.
    pub(crate) const ALL: [Self; 4] =
        [Self::ParallelFor, Self::BodyWorkspace, Self::RemainderF32, Self::RemainderF64];

    /// The name by which compiled code imports it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ParallelFor => "tilewright_parallel_for",
            Self::BodyWorkspace => "tilewright_body_workspace",
            Self::RemainderF32 => "tilewright_remainder_f32",
            Self::RemainderF64 => "tilewright_remainder_f64",
        }
    }

    /// Its address in this process.
    pub(crate) fn address(self) -> *const u8 {
        match self {
            Self::ParallelFor => {
                let function: unsafe extern "C" fn(i64, i64, RawTask, *mut u8) = parallel_for_entry;
                function as *const u8
            }
            Self::BodyWorkspace => {
                let function: extern "C" fn(i64) -> *mut u8 = workspace::of_body;
                function as *const u8
            }
            Self::RemainderF32 => {
                let function: extern "C" fn(f32, f32) -> f32 = arithmetic::remainder_f32;
                function as *const u8
            }
            Self::RemainderF64 => {
                let function: extern "C" fn(f64, f64) -> f64 = arithmetic::remainder_f64;
                function as *const u8
            }
        }
    }

    /// Its parameters and results as compiled code passes them.
    pub(crate) fn signature(self, call_conv: CallConv) -> Signature {
        let (params, returns): (&[Type], &[Type]) = match self {
            Self::ParallelFor => (&[I64, I64, I64, I64], &[]),
            Self::BodyWorkspace => (&[I64], &[I64]),
            Self::RemainderF32 => (&[F32, F32], &[F32]),
            Self::RemainderF64 => (&[F64, F64], &[F64]),
        };
        let mut signature = Signature::new(call_conv);
        signature.params = params.iter().copied().map(AbiParam::new).collect();
        signature.returns = returns.iter().copied().map(AbiParam::new).collect();
        signature
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_positions_and_names_are_distinct() {
        for (position, function) in RuntimeFunction::ALL.into_iter().enumerate() {
            assert_eq!(function as usize, position);
            let same = RuntimeFunction::ALL.into_iter().filter(|other| other.name() == function.name());
            assert_eq!(same.count(), 1, "{}", function.name());
        }
    }
}
