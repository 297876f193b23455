//! Lowering: from a scheduled program of blocks to the flat program that backends compile.
//!
//! A pass is one file under `pass/` with one function that edits the program; it does its one thing and leaves tidying to
//! [`simplify`](crate::simplify). `pipelines.rs` lists the passes for each kind of target; `util/` holds what several passes
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
pub use pass::loops::unroll_loops::UNROLL_FACTOR;
pub use prologue::{ConstantSplit, split_constants};

/// The annotation of a serial loop that asks for what it will read so many iterations ahead; see
/// [`Prefetch`](crate::schedule::prim::Prefetch). It has no effect on what is computed: a backend without
/// such an instruction passes over it.
pub const PREFETCH: &str = "prefetch";

/// The annotation, with the value 1, of a serial loop that asks for what the loops beside it will read in the next iteration of the
/// loop around; see [`PrefetchBeside`](crate::schedule::prim::PrefetchBeside). It has no effect on what is computed either.
pub const PREFETCH_BESIDE: &str = "prefetch_beside";

/// The farthest that is asked for ahead, in iterations.
pub const MAX_PREFETCH: i64 = 1024;

use crate::lower::pipelines::{CPU, Pass};
use crate::program::Program;
use crate::verify::{Level, verify};

/// The names of all passes, in the order in which they run; what the observer of [`lower_with`] is told.
pub fn pass_names() -> impl Iterator<Item = &'static str> {
    CPU.passes().map(|pass| pass.name)
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
    run(program, CPU.passes(), options, observer)
}

/// Lowers a program from the `Blocks` level to the `Loops` level: every loop of the schedule is still
/// there, with its kind, which is what estimates of its speed are made from.
///
/// # Errors
/// As [`lower`].
pub fn lower_to_loops(program: &Program, options: &LowerOptions) -> Result<Program, LowerError> {
    run(program, CPU.to_loops, options, &mut |_, _| {})
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
