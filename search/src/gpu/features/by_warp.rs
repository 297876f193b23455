//! Accesses that the lanes of a warp make together, each for the elements of a fragment that it holds.

use rustc_hash::FxHashMap;
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::Index;
use tilewright_core::program::Scope;
use tilewright_core::stmt::LoopKind;
use tilewright_core::thread_axis::WARP;

use super::access::{AccessFact, RawAccess};
use super::block::Located;
use super::memory::{BANK, WIDEST, addresses, sectors, stride_of};
use super::place::Place;

/// Lanes along a row of a tile of sums, and the neighbours in a row that a lane holds (PTX ISA 8.0, the accumulators of `mma.sync`: `lane c1 c2 r0
/// r1 r2 slot c0 r3`).
const LANES_IN_ROW: i64 = 4;
const SUMS_IN_ROW: i64 = 2;
/// Passes over the banks of single elements of a fragment, whose layout spreads lanes over rows and columns.
const PASSES: f64 = 2.0;

/// The description of an access that one lane would make for all elements, as the lanes of a warp make it.
pub(super) fn divided(
    block: &Located<'_>,
    access: &RawAccess,
    alone: AccessFact,
    places: &FxHashMap<BufferId, Place>,
) -> AccessFact {
    let of_lane = (alone.requests / WARP as f64).max(1.0);
    let (width, (units, efficiency)) = match access.scope {
        Scope::Local | Scope::Fragment => (1, (0.0, 1.0)),
        // Lanes load 16 bytes of matrices at once from rows in different banks.
        Scope::Shared if is_matrix(block, access, places) => {
            (WIDEST / access.bytes, (WIDEST as f64 / BANK as f64, 1.0))
        }
        Scope::Shared => (1, (PASSES, 1.0 / PASSES)),
        Scope::Global | Scope::Streamed => of_sums(block, access, places),
    };
    AccessFact { requests: of_lane / width as f64, width, units, efficiency, ..alone }
}

/// Whether a fragment is loaded as matrices: elements beside each other in memory are those that a register holds, or, where they have two
/// bytes, may be exchanged.
fn is_matrix(block: &Located<'_>, access: &RawAccess, places: &FxHashMap<BufferId, Place>) -> bool {
    let mut fragments =
        block.accesses.iter().filter(|other| other.scope == Scope::Fragment && other.is_store);
    let is_along_depth = fragments
        .next()
        .and_then(|other| places.get(&other.buffer))
        .is_some_and(|place| place.is_along_depth);
    !access.is_store && (access.bytes == 2 || (access.bytes < 8 && is_along_depth))
}

/// The elements of one instruction for sums in device memory, the sectors that it touches and the share of them that it uses.
fn of_sums(
    block: &Located<'_>,
    access: &RawAccess,
    places: &FxHashMap<BufferId, Place>,
) -> (i64, (f64, f64)) {
    let nowhere = Place::default();
    let place = places.get(&access.buffer).unwrap_or(&nowhere);
    let Some([row, column]) = tile_loops(block) else { return (1, (WARP as f64, 1.0)) };
    let is_pair =
        stride_of(&access.indices, &place.strides, column) == Some(1) && block.block.guards.is_empty();
    let width = if is_pair { SUMS_IN_ROW } else { 1 };
    let value = |lane: i64, var: VarId| match var {
        _ if var == row => lane / LANES_IN_ROW,
        _ if var == column => lane % LANES_IN_ROW * SUMS_IN_ROW,
        _ => 0,
    };
    let addresses = addresses(&access.indices, place, access.bytes, WARP, &value);
    (width, sectors(&addresses, width * access.bytes))
}

/// The loops through the rows and the columns of a tile of sums.
fn tile_loops(block: &Located<'_>) -> Option<[VarId; 2]> {
    let fragment = block.accesses.iter().find(|access| access.scope == Scope::Fragment)?;
    let [.., rows, columns] = &fragment.indices[..] else { return None };
    let along = |index: &Index| {
        let own = block
            .path
            .iter()
            .rfind(|node| node.kind == LoopKind::Serial && index.linear_coefficient(node.var) == Some(1));
        own.map(|node| node.var)
    };
    Some([along(rows)?, along(columns)?])
}
