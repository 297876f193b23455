//! The positions in a definition where a call may have failed.

use tilewright_core::analysis::block::all_loads;
use tilewright_core::analysis::scope::blocks;
use tilewright_core::device::CallError;
use tilewright_core::expr::{Expr, ExprKind};
use tilewright_core::index::{Base, Index};
use tilewright_core::program::Program;
use tilewright_core::stmt::Block;
use tilewright_core::visit::for_each_expr;

/// The error with the positions in the definition that it can come from: accesses that take an index into a dimension of the
/// extent in the error. Compiled code does not know which it was. The first of the programs that has such an access answers;
/// `dims` begins with the values of each one's dimensions.
pub(super) fn locate<'p>(
    error: CallError,
    programs: impl IntoIterator<Item = &'p Program>,
    dims: &[i64],
) -> CallError {
    let CallError::IndexOutOfBounds { value, extent, location: None } = error else { return error };
    let mut places = programs.into_iter().map(|program| places_of(program, extent, dims));
    let location =
        places.find(|places| !places.is_empty()).map(|places| format!("at {}", places.join(" or ")));
    CallError::IndexOutOfBounds { value, extent, location }
}

/// The accesses that take a checked index into a dimension of an extent.
fn places_of(program: &Program, extent: i64, dims: &[i64]) -> Vec<String> {
    let sizes: Vec<_> = program.dims().map(|(var, _)| var).zip(dims.iter().copied()).collect();
    let size = |var| sizes.iter().find(|(dim, _)| *dim == var).map(|(_, size)| Index::constant(*size));
    let mut places: Vec<String> = blocks(&program.body)
        .into_iter()
        .filter(|block| checked_extents(block).iter().any(|index| index.substitute(&size).is(extent)))
        .filter_map(|block| block.location.as_ref().map(ToString::to_string))
        .collect();
    places.sort();
    places.dedup();
    places
}

/// The extents that indices in a block are checked against.
fn checked_extents(block: &Block) -> Vec<Index> {
    let mut found = Vec::new();
    for load in all_loads(block) {
        load.indices.iter().for_each(|index| collect(index, &mut found));
    }
    found
}

fn collect(index: &Index, found: &mut Vec<Index>) {
    for term in index.terms() {
        match &term.digit.base {
            Base::Sum(sum) => collect(sum, found),
            Base::Value(value) => for_each_expr(value, &mut |node: &Expr| {
                if let ExprKind::Bounded(_, extent) = node.kind() {
                    found.push(extent.clone());
                }
            }),
            Base::Var(_) | Base::Lane(_) => {}
        }
    }
}
