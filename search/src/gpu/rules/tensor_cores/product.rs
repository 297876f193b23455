//! The ways in which an intrinsic computes a block: which iterators are rows, columns and depth.

use std::sync::Arc;

use tilewright_core::analysis::block::{loads, single_store};
use tilewright_core::ids::BufferId;
use tilewright_core::intrinsic::{Mapping, TensorIntrinsic};
use tilewright_core::schedule::{BlockRv, Schedule, ScheduleError};
use tilewright_core::stmt::Block;

use crate::space::rules::block::block_of;

/// The most points that are computed for each point of the block.
const MAX_PADDING: f64 = 4.0;

/// The first parts of a product; the third one is its depth.
pub(super) const ROWS: usize = 0;
pub(super) const COLUMNS: usize = 1;

/// An intrinsic, and how it computes parts of a block.
pub(super) struct Product {
    pub(super) intrinsic: Arc<TensorIntrinsic>,
    /// The iterators of the block that rows, columns and depth run through, in their order. Several of them are numbered together, the
    /// last one fastest.
    pub(super) iters: [Vec<usize>; 3],
    /// The extents of one product.
    pub(super) extents: [i64; 3],
    /// For both factors and the result: the buffer, and the parts of the product along its last two dimensions.
    pub(super) operands: [(BufferId, [usize; 2]); 3],
    /// Whether the factors have to be rounded.
    pub(super) rounds_factors: bool,
    /// The points computed for each point of the block.
    padding: f64,
}

/// The products of a block: those with the least padding first, and of these the ones that take operands as they lie in memory. Where none
/// computes the block as it is, the factors are rounded, if that is allowed.
pub(super) fn products(schedule: &Schedule, block: BlockRv) -> Result<Vec<Product>, ScheduleError> {
    let found = products_of(schedule, &*block_of(schedule, block)?, false);
    let mut rounded = schedule.clone();
    if !found.is_empty() || rounded.round_products(block).is_err() {
        return Ok(found);
    }
    Ok(products_of(&rounded, &*block_of(&rounded, block)?, true))
}

fn products_of(schedule: &Schedule, block: &Block, rounds_factors: bool) -> Vec<Product> {
    let (names, known) = (schedule.target().intrinsics(), schedule.target().descriptions());
    let intrinsics =
        names.iter().filter_map(|name| known.get(name)).filter(|own| !own.fragments().is_empty());
    let mut found: Vec<Product> = Vec::new();
    for intrinsic in intrinsics {
        for mapping in intrinsic.mappings(schedule.program(), block) {
            let all = all_of_a_kind(&mapping, block);
            let single = mapping.iters.iter().map(|iter| vec![*iter]).collect();
            for iters in [Some(single), all].into_iter().flatten() {
                let product = Product::new(intrinsic, &mapping, block, iters);
                let is_new = |product: &Product| found.iter().all(|other| !other.is_like(product));
                found.extend(product.filter(is_new).map(|product| Product { rounds_factors, ..product }));
            }
        }
    }
    let reads_in_order =
        |product: &Product| product.operands.iter().all(|own| lies_along(block, product, *own));
    found.sort_by(|a, b| {
        let order = |product: &Product| (!reads_in_order(product), product.is_numbered());
        a.padding.total_cmp(&b.padding).then(order(a).cmp(&order(b)))
    });
    found
}

/// All iterators that move through the same operands as each of the three that a mapping takes. `None` where these are all.
fn all_of_a_kind(mapping: &Mapping, block: &Block) -> Option<Vec<Vec<usize>>> {
    let accesses = loads(&block.body);
    let moves = |number: usize| -> Vec<bool> {
        let own = &block.iters[number];
        accesses.iter().map(|access| access.indices.iter().any(|index| index.mentions(own.var))).collect()
    };
    let is_like = |iter: usize, other: usize| {
        let (own, of) = (&block.iters[other], &block.iters[iter]);
        other == iter || (own.kind == of.kind && !own.extent.is(1) && moves(other) == moves(iter))
    };
    let like = |iter: &usize| (0..block.iters.len()).filter(|other| is_like(*iter, *other)).collect();
    let all: Vec<Vec<usize>> = mapping.iters.iter().map(like).collect();
    all.iter().any(|iters| iters.len() > 1).then_some(all)
}

/// Whether the elements of an operand along the last dimension of the product are neighbours in memory.
fn lies_along(block: &Block, product: &Product, (buffer, parts): (BufferId, [usize; 2])) -> bool {
    let accesses = loads(&block.body);
    let last =
        accesses.iter().find(|access| access.buffer == buffer).and_then(|access| access.indices.last());
    last.is_some_and(|index| {
        product.iters[parts[1]].last().is_some_and(|iter| index.mentions(block.iters[*iter].var))
    })
}

impl Product {
    fn new(
        intrinsic: &Arc<TensorIntrinsic>,
        mapping: &Mapping,
        block: &Block,
        iters: Vec<Vec<usize>>,
    ) -> Option<Self> {
        let iters: [Vec<usize>; 3] = iters.try_into().ok()?;
        let extents: [i64; 3] = intrinsic.extents().collect::<Vec<_>>().try_into().ok()?;
        let are_distinct =
            (0..block.iters.len()).all(|iter| iters.iter().filter(|own| own.contains(&iter)).count() <= 1);
        let written = single_store(block)?.buffer;
        let operands = mapping.operands.iter().map(|operand| {
            let parts: [usize; 2] = operand.loops.clone().try_into().ok()?;
            Some((operand.buffer, parts))
        });
        let operands: [(BufferId, [usize; 2]); 3] = operands.collect::<Option<Vec<_>>>()?.try_into().ok()?;
        let is_plain = operands[2].0 == written && operands[0].0 != operands[1].0;
        let mut padding = 1.0;
        for (own, tile) in iters.iter().zip(extents) {
            match points(block, own) {
                // A product with a single row or column is one of a matrix and a vector.
                Some(points) if points < 2 => return None,
                Some(points) => padding *= (((points - 1) / tile + 1) * tile) as f64 / points as f64,
                // Iterators of unknown extents cannot be numbered together.
                None if own.len() > 1 => return None,
                None => {}
            }
        }
        let intrinsic = Arc::clone(intrinsic);
        let product = Product { intrinsic, iters, extents, operands, rounds_factors: false, padding };
        let has_tiles = product.is_numbered() || product.has_neighbours(block);
        (are_distinct && is_plain && padding <= MAX_PADDING && has_tiles).then_some(product)
    }

    /// Whether tiles of the operands have no gaps: a step along an iterator is one along a dimension, as it is not in a convolution with
    /// a stride.
    fn has_neighbours(&self, block: &Block) -> bool {
        let accesses = loads(&block.body);
        self.operands.iter().all(|(buffer, parts)| {
            let access = accesses.iter().find(|access| access.buffer == *buffer);
            access.is_some_and(|access| {
                let vars =
                    parts.iter().flat_map(|part| &self.iters[*part]).map(|iter| block.iters[*iter].var);
                vars.into_iter().all(|var| {
                    let mut mentioning = access.indices.iter().filter(|index| index.mentions(var));
                    mentioning.all(|index| index.linear_coefficient(var) == Some(1))
                })
            })
        })
    }

    /// Whether the size of the product is not known.
    pub(super) fn is_of_any_size(&self, block: &Block) -> bool {
        self.iters.iter().any(|iters| points(block, iters).is_none())
    }

    /// Whether several iterators are numbered together.
    pub(super) fn is_numbered(&self) -> bool {
        self.iters.iter().any(|iters| iters.len() > 1)
    }

    /// Whether another product computes the same iterators, with tiles of the same size and operands in the same order.
    fn is_like(&self, other: &Product) -> bool {
        self.iters == other.iters && self.operands == other.operands && self.extents == other.extents
    }
}

/// The points of some iterators; `None` where they are not known, or too many.
pub(super) fn points(block: &Block, iters: &[usize]) -> Option<i64> {
    iters
        .iter()
        .map(|iter| block.iters[*iter].extent.as_constant())
        .try_fold(1_i64, |points, extent| points.checked_mul(extent?).filter(|points| *points <= 1 << 40))
}
