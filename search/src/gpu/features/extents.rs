//! The extents of intermediates in memory: the part that exists at once.

use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::Ranges;
use tilewright_core::program::{Program, Scope};
use tilewright_core::stmt::{For, LoopKind};

use super::block::Located;

/// Iterations assumed of a loop, and elements of a dimension, whose extent is symbolic.
pub(super) const SYMBOLIC_EXTENT: i64 = 1024;

/// The elements of each dimension of a buffer that exist at once, in one block of threads for a buffer that they share, and in one
/// thread for a local one.
pub(super) fn extents(program: &Program, buffer: BufferId, located: &[Located<'_>]) -> Vec<i64> {
    let declared = program.buffer(buffer);
    let shape: Vec<i64> =
        declared.shape.iter().map(|extent| extent.as_constant().unwrap_or(SYMBOLIC_EXTENT)).collect();
    if !matches!(declared.scope, Scope::Shared | Scope::Local | Scope::Fragment) {
        return shape;
    }
    let users: Vec<&Located<'_>> =
        located.iter().filter(|block| block.accesses.iter().any(|access| access.buffer == buffer)).collect();
    let fixed = common_loops(&users);
    let mut spans: Vec<Option<(i64, i64)>> = vec![None; shape.len()];
    for user in users {
        let mut ranges = Ranges::new();
        for node in &user.path {
            let stays = fixed.contains(&node.var) || is_fixed(node, declared.scope);
            let extent = if stays { 1 } else { node.extent.as_constant().unwrap_or(SYMBOLIC_EXTENT) };
            ranges.insert_constant(node.var, extent);
        }
        user.inside.iter().for_each(|(var, extent)| ranges.insert_constant(*var, *extent));
        for access in user.accesses.iter().filter(|access| access.buffer == buffer) {
            for (span, index) in spans.iter_mut().zip(&access.indices) {
                let found = index.interval(&ranges);
                *span = Some(match *span {
                    None => (found.min, found.max),
                    Some((min, max)) => (min.min(found.min), max.max(found.max)),
                });
            }
        }
    }
    let used = |(span, extent): (&Option<(i64, i64)>, &i64)| match span {
        Some((min, max)) => max.saturating_sub(*min).saturating_add(1).clamp(1, (*extent).max(1)),
        None => (*extent).max(1),
    };
    spans.iter().zip(&shape).map(used).collect()
}

/// Whether a loop's iterations each have a buffer of their own.
fn is_fixed(node: &For, scope: Scope) -> bool {
    match node.kind {
        LoopKind::Bound(axis) if axis.is_of_blocks() => true,
        LoopKind::Bound(axis) if axis.is_of_block() => scope.is_private(),
        _ => false,
    }
}

/// The variables of the loops around all blocks, outside of loops over threads.
fn common_loops(users: &[&Located<'_>]) -> Vec<VarId> {
    let Some((first, others)) = users.split_first() else { return Vec::new() };
    let over_threads = |node: &For| matches!(node.kind, LoopKind::Bound(axis) if axis.is_of_block());
    first
        .path
        .iter()
        .enumerate()
        .take_while(|(depth, node)| {
            !over_threads(node)
                && others.iter().all(|other| other.path.get(*depth).is_some_and(|own| own.id == node.id))
        })
        .map(|(_, node)| node.var)
        .collect()
}
