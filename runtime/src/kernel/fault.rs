//! The positions in a definition where a call may have failed.

use tilewright_core::analysis::block::all_loads;
use tilewright_core::analysis::scope::blocks;
use tilewright_core::device::CallError;
use tilewright_core::expr::{Expr, ExprKind};
use tilewright_core::ids::BufferId;
use tilewright_core::index::{Base, Index};
use tilewright_core::program::Program;
use tilewright_core::stmt::Block;
use tilewright_core::visit::for_each_expr;

/// The error with the kernel's name and the positions in the definition that it can come from: accesses that take an index into a
/// dimension of the extent in the error. Compiled code does not know which it was. The first of the programs that has such an access
/// answers; `dims` begins with the values of each one's dimensions.
pub(super) fn locate<'p>(
    error: CallError,
    kernel: &str,
    programs: impl IntoIterator<Item = &'p Program>,
    dims: &[i64],
) -> CallError {
    let CallError::IndexOutOfBounds { value, extent, location: None } = error else { return error };
    let mut places = programs.into_iter().map(|program| places_of(program, extent, dims));
    let found = places.find(|places| !places.is_empty()).map(|places| format!("of {} ", places.join(" or ")));
    let location = format!("{}in kernel `{kernel}`", found.unwrap_or_default());
    CallError::IndexOutOfBounds { value, extent, location: Some(location) }
}

/// The tensors that are accessed by a checked index into a dimension of an extent, with the places where it is written:
/// ``tensor `table` at src/lib.rs:12:9``.
fn places_of(program: &Program, extent: i64, dims: &[i64]) -> Vec<String> {
    let sizes: Vec<_> = program.dims().map(|(var, _)| var).zip(dims.iter().copied()).collect();
    let size = |var| sizes.iter().find(|(dim, _)| *dim == var).map(|(_, size)| Index::constant(*size));
    let mut places = Vec::new();
    for block in blocks(&program.body) {
        let location = block.location.as_ref().map_or_else(String::new, |location| format!(" at {location}"));
        for (buffer, checked) in checked_extents(block) {
            if checked.substitute(&size).is(extent) {
                places.push(format!("tensor `{}`{location}", program.buffer(buffer).name));
            }
        }
    }
    places.sort();
    places.dedup();
    places
}

/// The tensors that a block loads by indices which are checked, with the extents that these are checked against.
fn checked_extents(block: &Block) -> Vec<(BufferId, Index)> {
    let mut found = Vec::new();
    for load in all_loads(block) {
        let mut extents = Vec::new();
        load.indices.iter().for_each(|index| collect(index, &mut extents));
        found.extend(extents.into_iter().map(|extent| (load.buffer, extent)));
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
