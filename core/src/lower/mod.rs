//! Lowering: from a scheduled program of blocks to the flat program that backends compile.
//!
//! A pass is one file under `pass/` with one function that edits the program; it does one thing and leaves tidying to
//! [`simplify`](crate::simplify). `pipelines.rs` lists the passes for each kind of target; `util/` holds the code that several passes
//! share. Lowering decides nothing that a schedule could decide: it carries out loop kinds, scopes and annotations, and makes
//! cheap what the schedule left implicit (guards, initial values, places and sizes of intermediates).
//!
//! [`lower_kernel`] is the entry point for programs that are to be called: it also splits off the prologue, the computation that
//! depends on constant tensors alone. [`lower`] lowers one program as it is.
//!
//! Results stay the same to the bit, except for contraction to fused multiply-adds, which
//! [`LowerOptions::contract`] turns off.

mod error;
mod kernel;
mod options;
mod pass;
mod pipelines;
mod prologue;
mod util;

pub use error::LowerError;
pub use kernel::{LoweredKernel, LoweredPrologue, lower_kernel, lower_kernel_with};
pub use options::LowerOptions;
pub use prologue::{ConstantSplit, split_constants};

use crate::lower::pipelines::{Pass, Pipeline};
use crate::program::Program;
use crate::target::TargetKind;
use crate::verify::{Level, verify};

/// The names of all passes of all pipelines, which the observer of [`lower_with`] is given.
pub fn pass_names() -> impl Iterator<Item = &'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    for pass in TargetKind::ALL.into_iter().flat_map(|kind| Pipeline::of(kind).passes()) {
        if !names.contains(&pass.name) {
            names.push(pass.name);
        }
    }
    names.into_iter()
}

/// Lowers a program from the `Blocks` level to the `Flat` level.
///
/// # Errors
/// [`LowerError`] when an intermediate is too large to address.
pub fn lower(program: &Program, options: &LowerOptions) -> Result<Program, LowerError> {
    lower_with(program, options, &mut |_, _| {})
}

/// As [`lower`]; `observer` sees the name of each pass and the program after it.
///
/// # Errors
/// As [`lower`].
pub fn lower_with(
    program: &Program,
    options: &LowerOptions,
    observer: &mut dyn FnMut(&str, &Program),
) -> Result<Program, LowerError> {
    run(program, Pipeline::of(options.kind).passes(), options, observer)
}

/// Lowers a program from the `Blocks` level to the `Loops` level: every loop of the schedule is still
/// there, with its kind, so that estimates of its speed can be computed from it.
///
/// # Errors
/// As [`lower`].
pub fn lower_to_loops(program: &Program, options: &LowerOptions) -> Result<Program, LowerError> {
    run(program, Pipeline::of(options.kind).to_loops, options, &mut |_, _| {})
}

fn run(
    program: &Program,
    passes: impl IntoIterator<Item = &'static Pass>,
    options: &LowerOptions,
    observer: &mut dyn FnMut(&str, &Program),
) -> Result<Program, LowerError> {
    if options.verify {
        verify(program, Level::Blocks).map_err(LowerError::Malformed)?;
    }
    let mut program = program.clone();
    for pass in passes {
        (pass.run)(&mut program, options)?;
        observer(pass.name, &program);
        if let (true, Some(level)) = (options.verify, pass.level) {
            verify(&program, level).map_err(|errors| LowerError::Broken { pass: pass.name, errors })?;
        }
    }
    Ok(program)
}
