//! Passes: functions that mean the same and do less.
//!
//! Each pass is a file, and [`PASSES`] lists them in the order in which they run. Most are rules that a [`Rewriter`]
//! applies to one binding after the other while it builds the function anew, so that all types are deduced again from
//! what has become known. The list is repeated until nothing changes.

mod fold_batch_normalization;
mod fold_constants;
mod fold_shapes;
mod fuse_attention;
mod fuse_normalisation;
mod hoist_from_loops;
mod inline_branches;
mod join_products;
mod keep_rows;
mod merge_equal;
mod quantise;
mod read_apart;
mod refine_loops;
mod remove_unused;
mod rewriter;
mod scale_gates;
mod simplify;

pub use quantise::{StaysFloat, stays_float};
pub use remove_unused::remove_unused;
pub use rewriter::{CallRule, Rewriter, Rule};

use crate::build::BuildError;
use crate::ir::{Binding, Body, Function};

/// A pass.
pub struct Pass {
    /// Its name, for messages.
    pub name: &'static str,
    run: fn(&Function) -> Result<Function, BuildError>,
}

/// All passes, in order.
pub const PASSES: &[Pass] = &[
    // Before constants are folded: weights that are read from integers would become floats.
    Pass {
        name: "fold_quantisation",
        run: |function| Rewriter::apply(function, &mut quantise::FoldQuantisation::default()),
    },
    Pass { name: "refine_loops", run: |function| Ok(refine_loops::refine_loops(function)) },
    Pass { name: "hoist_from_loops", run: |function| Ok(hoist_from_loops::hoist_from_loops(function)) },
    Pass {
        name: "fold_constants",
        run: |function| Rewriter::apply(function, &mut fold_constants::FoldConstants),
    },
    Pass { name: "fold_shapes", run: |function| Rewriter::apply(function, &mut fold_shapes::FoldShapes) },
    Pass {
        name: "inline_branches",
        run: |function| Rewriter::apply(function, &mut inline_branches::InlineBranches),
    },
    Pass { name: "simplify", run: |function| Rewriter::apply(function, &mut simplify::Simplify) },
    Pass { name: "scale_gates", run: |function| Rewriter::apply(function, &mut scale_gates::ScaleGates) },
    Pass { name: "keep_rows", run: |function| Rewriter::apply(function, &mut keep_rows::KeepRows) },
    Pass {
        name: "fold_batch_normalization",
        run: |function| Rewriter::apply(function, &mut fold_batch_normalization::FoldBatchNormalization),
    },
    Pass {
        name: "fuse_attention",
        run: |function| Rewriter::apply(function, &mut fuse_attention::FuseAttention),
    },
    Pass {
        name: "fuse_normalisation",
        run: |function| Rewriter::apply(function, &mut fuse_normalisation::FuseNormalisation),
    },
    // After attention is recognised, whose products stay apart.
    Pass { name: "join_products", run: join_products::join_products },
    Pass {
        name: "merge_equal",
        run: |function| Rewriter::apply(function, &mut merge_equal::MergeEqual::default()),
    },
    Pass { name: "remove_unused", run: |function| Ok(remove_unused::remove_unused(function)) },
];

/// How often the list is repeated at most.
const ROUNDS: usize = 8;

/// The function after all passes.
///
/// # Errors
/// When a pass makes a call that does not fit its operator, or a scale of quantised numbers is not above zero.
pub fn optimise(function: &Function) -> Result<Function, BuildError> {
    quantise::check_scales(function)?;
    let mut current = function.clone();
    let size = |function: &Function| (count(function), outputs(&function.body));
    for _ in 0..ROUNDS {
        let before = size(&current);
        for pass in PASSES {
            current = (pass.run)(&current)?;
            tracing::debug!(pass = pass.name, bindings = count(&current), "ran a pass");
        }
        if size(&current) == before {
            break;
        }
    }
    Ok(read_apart::read_apart(&current))
}

/// The number of values that bindings give, in bodies of control flow too.
fn outputs(body: &Body) -> usize {
    let inner = |binding: &Binding| binding.operation.bodies().into_iter().map(outputs).sum::<usize>();
    body.bindings.iter().map(|binding| binding.outputs.len() + inner(binding)).sum()
}

/// The number of bindings, in bodies of control flow too.
pub fn count(function: &Function) -> usize {
    fn of_body(body: &Body) -> usize {
        let inner = |binding: &Binding| binding.operation.bodies().into_iter().map(of_body).sum::<usize>();
        body.bindings.iter().map(|binding| 1 + inner(binding)).sum()
    }
    of_body(&function.body)
}

#[cfg(test)]
mod tests;
