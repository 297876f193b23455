//! The strides of a block's accesses along a loop.

use tilewright_core::analysis::block::{loads, stores};
use tilewright_core::expr::Indices;
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::{Index, Ranges};
use tilewright_core::program::Program;
use tilewright_core::stmt::Block;

/// The distance, in elements, between the accesses of consecutive iterations; `None` when it is not constant.
pub(super) type Stride = Option<i64>;

/// The strides of a block's stores and loads for one loop variable.
pub(super) struct Strides {
    /// Of the stores.
    pub stores: Vec<Stride>,
    /// Of the loads.
    pub loads: Vec<Stride>,
}

/// The strides of every access of a block along a loop. `ranges` are those of the loops around the block.
pub(super) fn strides(program: &Program, block: &Block, var: VarId, ranges: &Ranges) -> Strides {
    let stride = strides_along(program, block, var, ranges);
    Strides {
        stores: stores(&block.body).iter().map(|store| stride(store.buffer, &store.indices)).collect(),
        loads: loads(&block.body).iter().map(|access| stride(access.buffer, access.indices)).collect(),
    }
}

/// Whether lanes along a loop read and write contiguous elements, or one element for all lanes, and write different
/// ones.
pub(super) fn are_contiguous(program: &Program, block: &Block, var: VarId, ranges: &Ranges) -> bool {
    let stride = strides_along(program, block, var, ranges);
    stores(&block.body).iter().all(|store| stride(store.buffer, &store.indices) == Some(1))
        && loads(&block.body).iter().all(|load| matches!(stride(load.buffer, load.indices), Some(0 | 1)))
}

/// The stride of an access along a loop.
fn strides_along<'a>(
    program: &'a Program,
    block: &'a Block,
    var: VarId,
    ranges: &'a Ranges,
) -> impl Fn(BufferId, &Indices) -> Stride + 'a {
    move |buffer, indices| {
        let coefficient = |index: &Index| coefficient_of(block, index, var, ranges);
        stride_of(program, buffer, indices, &coefficient)
    }
}

fn stride_of(
    program: &Program,
    buffer: BufferId,
    indices: &Indices,
    coefficient_of: &dyn Fn(&Index) -> Stride,
) -> Stride {
    by_dimension(program, buffer, indices, coefficient_of).or_else(|| {
        // A fused loop runs through several dimensions: `a[f/1009, f%1009]` lies at the place `f`.
        coefficient_of(&program.place(buffer, indices))
    })
}

/// The stride of an access whose indices are each linear in the loop variable.
fn by_dimension(
    program: &Program,
    buffer: BufferId,
    indices: &Indices,
    coefficient_of: &dyn Fn(&Index) -> Stride,
) -> Stride {
    let mut total = 0i64;
    for (index, distance) in indices.iter().zip(program.distances(buffer)) {
        let coefficient = coefficient_of(index)?;
        if coefficient != 0 {
            total = total.checked_add(coefficient.checked_mul(distance.as_constant()?)?)?;
        }
    }
    Some(total)
}

/// By how much an index grows with the loop variable, through the bindings of the block's iterators.
fn coefficient_of(block: &Block, index: &Index, var: VarId, ranges: &Ranges) -> Stride {
    linear_coefficient(block, index, var).or_else(|| {
        // Tiling may resolve a division: `(c·32 + l)/32` does not vary with `l` below 32.
        let bind =
            |inner: VarId| block.iters.iter().find(|iter| iter.var == inner).map(|iter| iter.binding.clone());
        index.substitute(&bind).simplify(ranges).linear_coefficient(var)
    })
}

fn linear_coefficient(block: &Block, index: &Index, var: VarId) -> Stride {
    let mut total = 0i64;
    for iter in &block.iters {
        if iter.binding.mentions(var) {
            let inner = iter.binding.linear_coefficient(var)?;
            total = total.checked_add(index.linear_coefficient(iter.var)?.checked_mul(inner)?)?;
        }
    }
    Some(total)
}
