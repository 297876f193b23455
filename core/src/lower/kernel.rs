//! The entry point for programs that are called.

use crate::dtype::DType;
use crate::ids::BufferId;
use crate::lower::{LowerError, LowerOptions, lower_with, split_constants};
use crate::program::{Access, Program};
use crate::target::Target;

/// The programs of the `Flat` level for a scheduled program.
#[derive(Clone, Debug)]
pub struct LoweredKernel {
    /// Runs in each call. Its parameters are the kernel's, and then the results of the prologue.
    pub main: Program,
    /// Computes, once for the same constant tensors, the values that depend on them alone.
    pub prologue: Option<LoweredPrologue>,
}

/// The computation that depends on constant tensors alone.
#[derive(Clone, Debug)]
pub struct LoweredPrologue {
    /// Its parameters are the constant tensors and then the results.
    pub program: Program,
    /// The position of each constant tensor among the kernel's tensors.
    pub constants: Vec<usize>,
    /// The element type and the shape of each result.
    pub results: Vec<(DType, Vec<usize>)>,
    /// The scheduled program as text. Prologues with the same text compute the same results from the same tensors.
    pub text: String,
}

/// Lowers a scheduled kernel for a machine.
///
/// # Errors
/// As [`lower`](crate::lower::lower).
pub fn lower_kernel(scheduled: &Program, target: &Target) -> Result<LoweredKernel, LowerError> {
    lower_kernel_with(scheduled, &LowerOptions::of(target), &mut |_, _| {})
}

/// As [`lower_kernel`], with options of one's own. `observer` sees the name of each pass and the program after it: first for the
/// prologue, if there is one, then for the rest.
///
/// # Errors
/// As [`lower`](crate::lower::lower).
pub fn lower_kernel_with(
    scheduled: &Program,
    options: &LowerOptions,
    observer: &mut dyn FnMut(&str, &Program),
) -> Result<LoweredKernel, LowerError> {
    let Some(split) = split_constants(scheduled) else {
        return Ok(LoweredKernel { main: lower_with(scheduled, options, observer)?, prologue: None });
    };
    let program = lower_with(&split.prologue, options, observer)?;
    let outputs = split.prologue.buffer_params().filter(|(_, access)| *access == Access::Output);
    let results = outputs.map(|(id, _)| dtype_and_shape(&split.prologue, id)).collect();
    let text = split.prologue.to_string();
    let prologue = LoweredPrologue { program, constants: split.constants, results, text };
    Ok(LoweredKernel { main: lower_with(&split.main, options, observer)?, prologue: Some(prologue) })
}

fn dtype_and_shape(program: &Program, id: BufferId) -> (DType, Vec<usize>) {
    let buffer = program.buffer(id);
    let extent =
        |extent: &crate::index::Index| extent.as_constant().and_then(|extent| extent.try_into().ok());
    let shape = buffer.shape.iter().map(extent).collect::<Option<_>>();
    (buffer.dtype, shape.expect("only programs without symbolic sizes are split"))
}
