//! Copying operands of a tiled block into dense tiles.

use tilewright_core::analysis::block::{BufferAccess, loads, reads, reduction};
use tilewright_core::annotation::PANELS;
use tilewright_core::expr::Indices;
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::Index;
use tilewright_core::index::map::IndexMap;
use tilewright_core::program::{Program, Scope};
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::Block;

use crate::space::rules::block::{block_of, is_used_again};

/// An operand to copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Operand {
    pub(super) buffer: BufferId,
    /// The permutation of the copy's dimensions, when there is one.
    order: Option<IndexMap>,
    /// Whether vectors are loaded from it.
    is_along_vectors: bool,
}

/// The sets of operands that are worth copying into dense tiles, besides none: the operand that varies along the
/// innermost output dimension, with that dimension last, and with it every other operand that is used again.
///
/// The first makes the vector loads of the inner loops contiguous. The others matter where rows lie so far apart that they
/// compete for the same cache sets.
pub(super) fn packings(program: &Program, block: &Block) -> Vec<Vec<Operand>> {
    let Some(found) = reduction(block) else { return Vec::new() };
    let output = found.store.buffer;
    let Some(vector) = found.store.indices.last().and_then(Index::as_var) else { return Vec::new() };
    let loads = loads(&block.body);
    // A buffer that is read at two places would need two copies, of different tiles.
    let is_read_once = |buffer: BufferId| loads.iter().filter(|access| access.buffer == buffer).count() == 1;
    let operands: Vec<&BufferAccess<'_>> = loads
        .iter()
        .filter(|access| access.buffer != output && is_read_once(access.buffer))
        .filter(|access| is_used_again(block, access.indices))
        .collect();
    let Some((first, order)) =
        operands.iter().find_map(|access| Some((access.buffer, order_along(access.indices, vector)?)))
    else {
        return Vec::new();
    };
    let along = Operand { buffer: first, order, is_along_vectors: true };
    // An operand that another block computes has a tile of its own already.
    let others = operands
        .iter()
        .filter(|access| access.buffer != first && program.access(access.buffer).is_some())
        .map(|access| Operand { buffer: access.buffer, order: None, is_along_vectors: false });
    let all: Vec<Operand> = std::iter::once(along.clone()).chain(others).collect();
    if all.len() > 1 { vec![vec![along], all] } else { vec![vec![along]] }
}

/// The permutation that moves the dimension indexed by `vector` last. `Some(None)` when it is last already; `None` when no dimension
/// is indexed by it, or other dimensions depend on it too.
pub(super) fn order_along(indices: &Indices, vector: VarId) -> Option<Option<IndexMap>> {
    let place = indices.iter().position(|index| index.as_var() == Some(vector))?;
    if indices.iter().filter(|index| index.mentions(vector)).count() != 1 {
        return None;
    }
    let last = indices.len() - 1;
    if place == last {
        return Some(None);
    }
    let moved = (0..=last).filter(|dimension| *dimension != place).chain([place]);
    let order: Vec<i64> = moved.map(|dimension| dimension as i64).collect();
    IndexMap::permutation(&order).map(Some)
}

/// Packs operands of a block, tile by tile, in a loop around it. A decision stores the operand of the vector loads in panels or in
/// rows.
///
/// # Errors
/// When an operand cannot be copied there.
pub(super) fn pack(
    schedule: &mut Schedule,
    block: BlockRv,
    operands: &[Operand],
    target: LoopRv,
) -> Result<(), ScheduleError> {
    for operand in operands {
        let found = block_of(schedule, block)?;
        let refusal = ScheduleError::NotReduction(found.id);
        let number = reads(&found).iter().position(|buffer| *buffer == operand.buffer).ok_or(refusal)?;
        let copy = schedule.cache_read(block, number as i64, Scope::Local)?;
        if let Some(order) = &operand.order {
            schedule.transform_layout(copy, "write", 0, order.clone())?;
        }
        schedule.compute_at(copy, target)?;
        if operand.is_along_vectors {
            let panels = schedule.sample_categorical(&[0, 1], &[0.25, 0.75])?;
            schedule.annotate(copy, PANELS, panels)?;
        }
    }
    Ok(())
}
