//! The cost of one warp's accesses to a buffer: the sectors of memory that they touch, and the passes over the banks of shared
//! memory.

use smallvec::SmallVec;
use tilewright_core::expr::Indices;
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::program::Scope;
use tilewright_core::stmt::LoopKind;
use tilewright_core::thread_axis::WARP;

use super::block::Located;

/// A sector of memory, in bytes: the unit of transfers (CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory").
const SECTOR: i64 = 32;
/// Bytes of a bank of shared memory, and the number of banks (CUDA C++ Programming Guide, "Shared Memory").
const BANK: i64 = 4;
const BANKS: i64 = 32;
/// The most bytes of one access.
const WIDEST: i64 = 16;

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
    /// The share of the bytes of these sectors that the warp uses, or one over the passes that are more than the data need.
    pub(crate) efficiency: f64,
    /// The registers that the elements of the unrolled loops take.
    pub(crate) registers: f64,
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

/// Describes an access of a block to a buffer with some extents in memory.
pub(super) fn describe(block: &Located<'_>, access: &RawAccess, extents: &[i64], axes: &Axes) -> AccessFact {
    let mentions = |var: VarId| access.indices.iter().any(|index| index.mentions(var));
    let stride_of = |var: VarId| {
        let at =
            |value| address(&access.indices, extents, &|other| Some(if other == var { value } else { 0 }));
        at(1).zip(at(0)).map(|(one, zero)| one - zero)
    };
    // The vector loop's elements beside each other come at once.
    let vector = block.path.iter().rfind(|node| node.kind == LoopKind::Vectorized);
    let mut width = 1;
    if let Some(node) = vector
        && stride_of(node.var) == Some(1)
    {
        let lanes = node.extent.as_constant().unwrap_or(1);
        width =
            (1..=lanes).rev().find(|width| lanes % width == 0 && width * access.bytes <= WIDEST).unwrap_or(1);
    }
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
            LoopKind::Vectorized => {
                requests *= extent / width as f64;
                registers *= extent;
            }
            _ => {
                requests *= extent;
                registers *= extent;
            }
        }
    }
    requests *= block
        .inside
        .iter()
        .filter(|(var, _)| mentions(*var))
        .map(|(_, extent)| *extent as f64)
        .product::<f64>();
    // The lanes of a warp divide the elements of a tile that they access together, one by one.
    if block.is_by_warp() {
        requests = (requests / WARP as f64).max(1.0);
    }
    let addresses = warp_addresses(access, extents, axes);
    // Lanes load 16 bytes of matrices at once from rows in different banks.
    let is_matrix =
        block.is_by_warp() && access.scope == Scope::Shared && !access.is_store && access.bytes <= 2;
    if is_matrix {
        width = WIDEST / access.bytes;
        requests /= width as f64;
    }
    let (units, efficiency) = match access.scope {
        Scope::Shared if is_matrix => (WIDEST as f64 / BANK as f64, 1.0),
        // The layout of fragments spreads lanes over rows and columns.
        Scope::Shared if block.is_by_warp() => (2.0, 0.5),
        Scope::Global | Scope::Streamed if block.is_by_warp() => (8.0, 1.0),
        Scope::Shared => passes(&addresses, width * access.bytes),
        Scope::Local | Scope::Fragment => (0.0, 1.0),
        Scope::Global | Scope::Streamed => sectors(&addresses, width * access.bytes),
    };
    let words = (access.bytes + BANK - 1) / BANK;
    AccessFact {
        buffer: access.buffer,
        scope: access.scope,
        is_store: access.is_store,
        requests,
        width,
        units,
        efficiency,
        registers: registers * words as f64,
    }
}

/// The place of an element in memory, in elements.
fn address(indices: &Indices, extents: &[i64], values: &dyn Fn(VarId) -> Option<i64>) -> Option<i64> {
    indices.iter().zip(extents).try_fold(0_i64, |place, (index, extent)| {
        place.checked_mul(*extent)?.checked_add(index.evaluate(values)?)
    })
}

/// The places that the threads of the first warp access, in bytes. Where data chooses the element, they are far apart.
fn warp_addresses(access: &RawAccess, extents: &[i64], axes: &Axes) -> SmallVec<[i64; 32]> {
    let threads: i64 = axes.iter().map(|(_, _, extent)| extent).product();
    (0..WARP.min(threads.max(1)))
        .map(|lane| {
            let mut rest = lane;
            let mut values: SmallVec<[(VarId, i64); 3]> = SmallVec::new();
            for (_, var, extent) in axes {
                values.push((*var, rest % extent));
                rest /= extent;
            }
            let value = |var: VarId| {
                Some(values.iter().find(|(other, _)| *other == var).map_or(0, |(_, value)| *value))
            };
            let place = address(&access.indices, extents, &value).unwrap_or(lane << 10);
            place.saturating_mul(access.bytes)
        })
        .collect()
}

/// The number of distinct sectors, and the share of their bytes that are accessed.
fn sectors(addresses: &[i64], bytes: i64) -> (f64, f64) {
    let of = |unit: i64, size: i64| -> usize {
        let mut found: SmallVec<[i64; 64]> = addresses
            .iter()
            .flat_map(|place| place.div_euclid(unit)..=(place + size - 1).div_euclid(unit))
            .collect();
        found.sort_unstable();
        found.dedup();
        found.len()
    };
    let touched = of(SECTOR, bytes) as f64;
    let used = of(1, bytes.min(WIDEST)) as f64;
    (touched, (used / (touched * SECTOR as f64)).min(1.0))
}

/// The passes over the banks, and how many as few as the data need they are.
fn passes(addresses: &[i64], bytes: i64) -> (f64, f64) {
    // Wide accesses are made by a half or a quarter of a warp at once.
    let at_once = (BANKS * BANK / bytes.max(BANK)).clamp(1, WARP) as usize;
    let mut total = 0_usize;
    let mut groups = 0_usize;
    for group in addresses.chunks(at_once) {
        let mut words: SmallVec<[i64; 64]> = group
            .iter()
            .flat_map(|place| place.div_euclid(BANK)..=(place + bytes - 1).div_euclid(BANK))
            .collect();
        words.sort_unstable();
        words.dedup();
        let mut of_bank = [0_usize; BANKS as usize];
        for word in &words {
            of_bank[word.rem_euclid(BANKS) as usize] += 1;
        }
        total += of_bank.into_iter().max().unwrap_or(1).max(1);
        groups += 1;
    }
    (total as f64, groups as f64 / total.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(stride: i64) -> Vec<i64> {
        (0..WARP).map(|lane| lane * stride).collect()
    }

    #[test]
    fn sectors_are_those_of_neighbours_and_of_strides() {
        assert_eq!(sectors(&lanes(4), 4), (4.0, 1.0));
        assert_eq!(sectors(&lanes(16), 16), (16.0, 1.0));
        assert_eq!(sectors(&lanes(0), 4), (1.0, 0.125));
        assert_eq!(sectors(&lanes(4096), 4), (32.0, 0.125));
    }

    #[test]
    fn passes_are_those_of_the_bank_with_the_most_words() {
        assert_eq!(passes(&lanes(4), 4), (1.0, 1.0));
        assert_eq!(passes(&lanes(0), 4), (1.0, 1.0), "one word for all");
        assert_eq!(passes(&lanes(128), 4), (32.0, 1.0 / 32.0));
        assert_eq!(passes(&lanes(8), 4).0, 2.0);
        assert_eq!(passes(&lanes(16), 16), (4.0, 1.0), "as many as 512 bytes need");
    }
}
