//! Where buffers are: the part of an intermediate that exists at once, and the loops that have one for each iteration.

use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::{Index, Ranges};
use tilewright_core::program::{Program, Scope};
use tilewright_core::stmt::{For, LoopKind, Stmt};
use tilewright_core::swizzle::{Exchange, Swizzle};

use super::access::RawAccess;
use super::block::Located;

/// Iterations assumed of a loop, and elements of a dimension, whose extent is symbolic.
pub(super) const SYMBOLIC_EXTENT: i64 = 1024;

/// Where a buffer is: all of it, or the part that exists at once in one block of threads that share it, or in one thread or warp.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    /// The elements, with the gaps between rows.
    pub(super) elements: i64,
    /// The distance of neighbours along each dimension, in elements.
    pub(super) strides: Vec<i64>,
    /// How the pieces of rows are exchanged, if they are.
    pub(super) exchange: Option<Exchange>,
    /// The variables of the loops each of whose iterations has elements of its own, besides those over blocks and threads.
    pub(super) fixed: Vec<VarId>,
    /// Whether a buffer of a thread is in memory, because loops that are not written out choose its elements.
    pub(super) is_in_memory: bool,
    /// Whether the last dimension of a fragment is the depth of the product that takes it as a factor.
    pub(super) is_along_depth: bool,
}

/// Where a buffer is that blocks of one kernel access.
pub(super) fn place(program: &Program, buffer: BufferId, located: &[Located<'_>]) -> Place {
    let declared = program.buffer(buffer);
    let shape: Vec<i64> =
        declared.shape.iter().map(|extent| extent.as_constant().unwrap_or(SYMBOLIC_EXTENT)).collect();
    if !matches!(declared.scope, Scope::Shared | Scope::Local | Scope::Fragment) {
        return match program.strides(buffer) {
            Some(strides) => Place::with_strides(&shape, strides),
            None => Place::new(program, buffer, &shape, Vec::new()),
        };
    }
    let users: Vec<&Located<'_>> =
        located.iter().filter(|block| block.accesses.iter().any(|access| access.buffer == buffer)).collect();
    let fixed = common_loops(&users, declared.scope);
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
    let extents: Vec<i64> = spans.iter().zip(&shape).map(used).collect();
    let is_along_depth = located.iter().any(|block| is_along_depth(block, buffer));
    let is_in_memory =
        declared.scope == Scope::Local && located.iter().any(|block| chooses_elements(block, buffer, &fixed));
    Place { is_along_depth, is_in_memory, ..Place::new(program, buffer, &extents, fixed) }
}

/// Whether a loop around a block chooses elements of a thread's buffer: one that is not written out, and whose iterations share the buffer.
fn chooses_elements(block: &Located<'_>, buffer: BufferId, fixed: &[VarId]) -> bool {
    let serial = block
        .path
        .iter()
        .filter(|node| node.kind == LoopKind::Serial && !node.extent.is(1) && !fixed.contains(&node.var));
    let mut indices =
        block.accesses.iter().filter(|access| access.buffer == buffer).flat_map(|access| &access.indices);
    let chosen: Vec<VarId> = serial.map(|node| node.var).collect();
    indices.any(|index| chosen.iter().any(|var| index.mentions(*var)))
}

/// Whether a block is a product along the last dimension of a buffer: what moves there moves no result.
fn is_along_depth(block: &Located<'_>, buffer: BufferId) -> bool {
    let Stmt::Intrinsic(_) = block.block.body else { return false };
    let mentions = |access: &RawAccess, var| access.indices.iter().any(|index| index.mentions(var));
    let moves_result = |var| block.accesses.iter().any(|access| access.is_store && mentions(access, var));
    let factors = block.accesses.iter().filter(|access| access.buffer == buffer && !access.is_store);
    factors
        .filter_map(|access| access.indices.last())
        .any(|last| block.inside.iter().any(|(var, _)| last.mentions(*var) && !moves_result(*var)))
}

impl Place {
    /// Of elements in the order of rows, whose distances may be aligned.
    fn new(program: &Program, buffer: BufferId, extents: &[i64], fixed: Vec<VarId>) -> Self {
        let mut strides = vec![1_i64; extents.len()];
        let mut elements = 1_i64;
        for (axis, extent) in extents.iter().enumerate().rev() {
            if let Some((_, alignment)) = program.alignments(buffer).find(|(other, _)| *other == axis) {
                let missing = (alignment.offset - elements).rem_euclid(alignment.factor.max(1));
                elements = elements.saturating_add(missing);
            }
            strides[axis] = elements;
            elements = elements.saturating_mul(*extent);
        }
        let bytes = program.buffer(buffer).dtype.bytes() as i64;
        let row = extents.last().copied().unwrap_or(0);
        let exchange = program.swizzle(buffer).and_then(|_| Swizzle { row }.exchange(bytes));
        Place { elements, strides, exchange, fixed, is_in_memory: false, is_along_depth: false }
    }

    /// Of a parameter whose strides the caller chooses.
    fn with_strides(extents: &[i64], strides: &[Index]) -> Self {
        let strides: Vec<i64> =
            strides.iter().map(|stride| stride.as_constant().unwrap_or(SYMBOLIC_EXTENT)).collect();
        Place { elements: extents.iter().product(), strides, ..Place::default() }
    }
}

/// Whether a loop's iterations each have a buffer of their own.
fn is_fixed(node: &For, scope: Scope) -> bool {
    match node.kind {
        LoopKind::Bound(axis) if axis.is_of_blocks() => true,
        LoopKind::Bound(axis) if axis.is_of_block() => scope.is_private(),
        _ => false,
    }
}

/// The variables of the loops around all blocks, for memory that threads share only those outside of loops over threads.
fn common_loops(users: &[&Located<'_>], scope: Scope) -> Vec<VarId> {
    let Some((first, others)) = users.split_first() else { return Vec::new() };
    let over_threads = |node: &For| matches!(node.kind, LoopKind::Bound(axis) if axis.is_of_block());
    first
        .path
        .iter()
        .enumerate()
        .take_while(|(depth, node)| {
            (scope.is_private() || !over_threads(node))
                && others.iter().all(|other| other.path.get(*depth).is_some_and(|own| own.id == node.id))
        })
        .map(|(_, node)| node.var)
        .collect()
}
