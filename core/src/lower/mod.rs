//! Lowering: from a scheduled program of blocks to the flat program that backends compile.
//!
//! [`lower`] runs the passes of `LOOP_PASSES` and then those of `FLAT_PASSES`, in order. A pass is
//! one file and one function that edits the program; it does its one thing and leaves tidying to
//! [`simplify`](crate::simplify). Lowering decides nothing that a schedule could decide: it carries
//! out loop kinds and annotations, and makes cheap what the schedule left implicit (guards, initial
//! values, places and sizes of intermediates).
//!
//! [`lower_kernel`] is what a program is lowered with that is to be called: it also takes off the prologue, which depends on
//! constant tensors alone.
//!
//! Results stay the same to the bit, except for contraction to fused multiply-adds, which
//! [`LowerOptions::contract`] turns off.

mod access;
mod blocks;
mod border;
mod clamp;
mod compact;
mod comparison;
mod condition;
mod contract;
mod copy;
mod dead;
mod error;
mod expand;
mod extrema;
mod flatten;
mod fold;
mod guards;
mod hoist;
mod interior;
mod intrinsics;
mod kernel;
mod marked;
mod options;
mod parallel;
mod partition;
mod pipeline;
mod place;
mod promote;
mod prune;
mod split;
mod tail;
mod unreached;
mod unroll;
mod vectorize;
mod warm_up;

pub use error::LowerError;
pub use kernel::{LoweredKernel, LoweredPrologue, lower_kernel, lower_kernel_with};
pub use options::LowerOptions;
pub use split::{ConstantSplit, split_constants};
pub use unroll::UNROLL_FACTOR;

/// The annotation of a serial loop that asks for what it will read so many iterations ahead; see
/// [`Prefetch`](crate::schedule::prim::Prefetch). It has no effect on what is computed: a backend without
/// such an instruction passes over it.
pub const PREFETCH: &str = "prefetch";

/// The annotation, with the value 1, of a serial loop that asks for what the loops beside it will read in the next iteration of the
/// loop around; see [`PrefetchBeside`](crate::schedule::prim::PrefetchBeside). It has no effect on what is computed either.
pub const PREFETCH_BESIDE: &str = "prefetch_beside";

/// The farthest that is asked for ahead, in iterations.
pub const MAX_PREFETCH: i64 = 1024;

use crate::index::Ranges;
use crate::program::Program;
use crate::simplify::simplify_stmt;
use crate::verify::{Level, verify};

/// One step of lowering.
struct Pass {
    name: &'static str,
    /// The level that the program is at afterwards; `None` between two levels.
    level: Option<Level>,
    run: fn(&mut Program, &LowerOptions) -> Result<(), LowerError>,
}

/// From blocks to loops around stores, with every intermediate in its place and no larger than needed.
const LOOP_PASSES: &[Pass] = &[
    Pass { name: "expand_intrinsics", level: Some(Level::Blocks), run: intrinsics::expand_intrinsics },
    Pass { name: "dissolve_blocks", level: None, run: blocks::dissolve_blocks },
    Pass { name: "keep_outermost_parallel", level: None, run: parallel::keep_outermost_parallel },
    Pass { name: "hoist_guards", level: None, run: guards::hoist_guards },
    Pass { name: "place_buffers", level: Some(Level::Loops), run: place::place_buffers },
    Pass { name: "compact_buffers", level: Some(Level::Loops), run: compact::compact_buffers },
    Pass { name: "pipeline_loops", level: Some(Level::Loops), run: pipeline::pipeline_loops },
];

/// From loops to explicit vectors, straight lines and one-dimensional buffers.
const FLAT_PASSES: &[Pass] = &[
    Pass { name: "split_warm_ups", level: Some(Level::Loops), run: warm_up::split_warm_ups },
    Pass { name: "split_interiors", level: Some(Level::Loops), run: interior::split_interiors },
    Pass { name: "partition_loops", level: Some(Level::Loops), run: partition::partition_loops },
    Pass { name: "unroll_loops", level: Some(Level::Loops), run: unroll::unroll_loops },
    Pass { name: "clamp_loops", level: Some(Level::Loops), run: clamp::clamp_loops },
    Pass { name: "vectorize_loops", level: None, run: vectorize::vectorize_loops },
    Pass { name: "promote_updates", level: None, run: promote::promote_updates },
    Pass { name: "hoist_invariants", level: None, run: hoist::hoist_invariants },
    Pass { name: "choose_extrema", level: None, run: extrema::choose_extrema },
    Pass { name: "contract_products", level: None, run: contract::contract_products },
    Pass { name: "flatten_buffers", level: Some(Level::Flat), run: flatten::flatten_buffers },
    Pass { name: "remove_dead_stores", level: Some(Level::Flat), run: dead::remove_dead_stores },
    Pass { name: "simplify", level: Some(Level::Flat), run: simplify },
    Pass { name: "expand_functions", level: None, run: expand::expand_functions },
];

/// The names of all passes, in the order in which they run; what the observer of [`lower_with`] is told.
pub fn pass_names() -> impl Iterator<Item = &'static str> {
    LOOP_PASSES.iter().chain(FLAT_PASSES).map(|pass| pass.name)
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
    let passes: Vec<&Pass> = LOOP_PASSES.iter().chain(FLAT_PASSES).collect();
    run(program, &passes, options, observer)
}

/// Lowers a program from the `Blocks` level to the `Loops` level: every loop of the schedule is still
/// there, with its kind, which is what estimates of its speed are made from.
///
/// # Errors
/// As [`lower`].
pub fn lower_to_loops(program: &Program, options: &LowerOptions) -> Result<Program, LowerError> {
    let passes: Vec<&Pass> = LOOP_PASSES.iter().collect();
    run(program, &passes, options, &mut |_, _| {})
}

fn run(
    program: &Program,
    passes: &[&Pass],
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

fn simplify(program: &mut Program, _: &LowerOptions) -> Result<(), LowerError> {
    simplify_stmt(&mut program.body, &Ranges::new());
    unreached::remove_unreached(program);
    Ok(())
}
