//! The cost of the accesses of a block to a buffer.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_core::expr::Indices;
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::program::Scope;
use tilewright_core::stmt::{For, LoopKind};
use tilewright_core::thread_axis::WARP;

use super::block::Located;
use super::by_warp;
use super::memory::{BANK, WIDEST, addresses, passes, sectors, stride_of};
use super::place::Place;

/// The accesses of a block at one place of its body.
#[derive(Clone, Debug)]
pub(crate) struct AccessFact {
    pub(crate) buffer: BufferId,
    pub(crate) scope: Scope,
    pub(crate) is_store: bool,
    /// Instructions that a thread executes for them.
    pub(crate) requests: f64,
    /// Elements of an instruction.
    pub(crate) width: i64,
    /// Sectors that a warp's instruction touches in device memory; passes that it takes in shared memory.
    pub(crate) units: f64,
    /// How many times as few sectors, or passes, the data of the warp need.
    pub(crate) efficiency: f64,
    /// The registers that the elements of the unrolled loops take.
    pub(crate) registers: f64,
    /// Whether its buffer is in memory of the thread, and not in registers.
    pub(crate) is_in_memory: bool,
}

/// The accesses of a block as it stands.
#[derive(Clone, Debug)]
pub(super) struct RawAccess {
    pub(super) buffer: BufferId,
    pub(super) scope: Scope,
    pub(super) is_store: bool,
    pub(super) bytes: i64,
    pub(super) indices: Indices,
}

/// The axes of the threads of a block: the variables of the loops around a statement that are bound to them, and their extents.
pub(super) type Axes = SmallVec<[(usize, VarId, i64); 3]>;

/// Describes an access of a block.
pub(super) fn describe(
    block: &Located<'_>,
    access: &RawAccess,
    axes: &Axes,
    places: &FxHashMap<BufferId, Place>,
) -> AccessFact {
    let nowhere = Place::default();
    let place = places.get(&access.buffer).unwrap_or(&nowhere);
    let group = group_of(block, access, &place.strides);
    let width = group.width;
    let (requests, registers) = executions(block, access, group);
    let fact = AccessFact {
        buffer: access.buffer,
        scope: access.scope,
        is_store: access.is_store,
        requests,
        width,
        units: 0.0,
        efficiency: 1.0,
        registers: registers * ((access.bytes + BANK - 1) / BANK) as f64,
        is_in_memory: place.is_in_memory,
    };
    if block.is_by_warp() {
        return by_warp::divided(block, access, fact, places);
    }
    let addresses = warp_addresses(access, place, axes);
    let (units, efficiency) = match access.scope {
        Scope::Shared => passes(&addresses, width * access.bytes),
        Scope::Local | Scope::Fragment => (0.0, 1.0),
        Scope::Global | Scope::Streamed => sectors(&addresses, width * access.bytes),
    };
    AccessFact { units, efficiency, ..fact }
}

/// The elements of a loop that one instruction accesses.
#[derive(Clone, Copy)]
struct Group {
    width: i64,
    along: Option<VarId>,
}

/// How many elements one instruction accesses: those of the vector loop, where they lie beside each other. A load takes those of a loop that
/// is written out, too, where all its places begin at multiples of their size.
fn group_of(block: &Located<'_>, access: &RawAccess, strides: &[i64]) -> Group {
    let stride = |node: &For| stride_of(&access.indices, strides, node.var);
    let widest = |node: &For| {
        let lanes = node.extent.as_constant().unwrap_or(1);
        let fits = |width: &i64| lanes % width == 0 && width * access.bytes <= WIDEST;
        Group { width: (1..=lanes).rev().find(fits).unwrap_or(1), along: Some(node.var) }
    };
    let mut path = block.path.iter().rev();
    if let Some(vector) = path.find(|node| node.kind == LoopKind::Vectorized)
        && stride(vector) == Some(1)
    {
        return widest(vector);
    }
    let single = Group { width: 1, along: None };
    if access.is_store || block.is_by_warp() {
        return single;
    }
    let written_out = || block.path.iter().filter(|node| node.kind == LoopKind::Unrolled);
    let Some(along) = written_out().find(|node| stride(node) == Some(1)) else { return single };
    let mut group = widest(along);
    let begins = |width: i64| {
        let mut others = block.path.iter().filter(|node| node.var != along.var);
        others.all(|node| stride(node).is_some_and(|stride| stride % width == 0))
    };
    while group.width > 1 && !begins(group.width) {
        group.width /= 2;
    }
    if (group.width as u64).is_power_of_two() { group } else { single }
}

/// How many instructions a thread executes for an access, and the elements of the loops that are written out.
fn executions(block: &Located<'_>, access: &RawAccess, group: Group) -> (f64, f64) {
    let mentions = |var: VarId| access.indices.iter().any(|index| index.mentions(var));
    let is_serial = |kind: LoopKind| matches!(kind, LoopKind::Serial | LoopKind::Parallel);
    let innermost = block.path.iter().rposition(|node| is_serial(node.kind) && mentions(node.var));
    let (mut requests, mut registers) = (1.0, 1.0);
    for (depth, node) in block.path.iter().enumerate() {
        let extent = block.extent(node);
        match node.kind {
            LoopKind::Bound(axis) if axis.is_of_grid() => {}
            kind if is_serial(kind) => {
                // A loop that does not move the access repeats it only where a loop inside does.
                let repeats = mentions(node.var) || innermost.is_some_and(|innermost| innermost > depth);
                requests *= if repeats { extent } else { 1.0 };
            }
            _ if !mentions(node.var) => {}
            _ => {
                let width = if group.along == Some(node.var) { group.width as f64 } else { 1.0 };
                requests *= extent / width;
                // Steps of a reduction need their elements one after the other: as they are loaded, and those of the next step.
                let of_steps = width.max(extent.min(2.0));
                registers *= if block.is_reduced_by(node.var) { of_steps } else { extent };
            }
        }
    }
    requests *= block
        .inside
        .iter()
        .filter(|(var, _)| mentions(*var))
        .map(|(_, extent)| *extent as f64)
        .product::<f64>();
    (requests, registers)
}

/// The places that the threads of the first warp access, in bytes.
fn warp_addresses(access: &RawAccess, place: &Place, axes: &Axes) -> SmallVec<[i64; 32]> {
    let threads: i64 = axes.iter().map(|(_, _, extent)| extent).product();
    let value = |lane: i64, var: VarId| {
        let mut rest = lane;
        for (_, own, extent) in axes {
            if *own == var {
                return rest % extent;
            }
            rest /= extent;
        }
        0
    };
    addresses(&access.indices, place, access.bytes, WARP.min(threads.max(1)), &value)
}
