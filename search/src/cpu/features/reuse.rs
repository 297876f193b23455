//! Reuse distances between blocks: data that another block touched recently is still in a cache.
//!
//! Stages that share loops exchange their results in pieces. The reuse distance of a piece is the memory touched between
//! its two uses: the footprint of the blocks from one to the other, in the loops that they share.

use tilewright_core::ids::BufferId;

use crate::cpu::features::nest::BlockFacts;

/// Sets the [distance](crate::cpu::features::access::AccessFact::distance) of every access; blocks are in program order.
pub(super) fn measure(blocks: &mut [BlockFacts<'_>], is_intermediate: &dyn Fn(BufferId) -> bool) {
    for number in 0..blocks.len() {
        for place in 0..blocks[number].accesses.len() {
            let buffer = blocks[number].accesses[place].buffer;
            let before = (0..number).rev().find(|earlier| touches(&blocks[*earlier], buffer));
            blocks[number].accesses[place].distance = match before {
                Some(earlier) => footprint(&blocks[earlier..=number]),
                None if is_intermediate(buffer) => size_in_use(&blocks[number..], buffer),
                None => f64::INFINITY,
            };
        }
    }
}

fn touches(block: &BlockFacts<'_>, buffer: BufferId) -> bool {
    block.accesses.iter().any(|access| access.buffer == buffer)
}

/// The number of outermost loops that all blocks are in.
fn shared_loops<'f>(blocks: impl Iterator<Item = &'f BlockFacts<'f>> + Clone) -> usize {
    let Some(first) = blocks.clone().next() else { return 0 };
    let shared = |other: &BlockFacts<'_>| {
        first.loops.iter().zip(&other.loops).take_while(|(a, b)| a.var == b.var).count()
    };
    blocks.map(shared).min().unwrap_or(0)
}

/// The bytes that blocks touch in one iteration of the loops that they share.
fn footprint(blocks: &[BlockFacts<'_>]) -> f64 {
    touched(blocks, shared_loops(blocks.iter()))
}

/// The bytes that blocks touch in the loops from a depth inwards; depth 0 is a whole call.
pub(super) fn touched(blocks: &[BlockFacts<'_>], depth: usize) -> f64 {
    // Few blocks touch few buffers: a list is faster than a map.
    let mut largest: Vec<(BufferId, f64)> = Vec::new();
    for access in blocks.iter().flat_map(|block| &block.accesses) {
        let bytes = access.line_bytes(depth);
        match largest.iter_mut().find(|(buffer, _)| *buffer == access.buffer) {
            Some((_, known)) => *known = known.max(bytes),
            None => largest.push((access.buffer, bytes)),
        }
    }
    largest.iter().map(|(_, bytes)| bytes).sum()
}

/// The bytes of an intermediate that are in use at once: those of one iteration of the loops around all its uses.
fn size_in_use(blocks: &[BlockFacts<'_>], buffer: BufferId) -> f64 {
    let users = blocks.iter().filter(|block| touches(block, buffer));
    let depth = shared_loops(users.clone());
    users
        .flat_map(|block| &block.accesses)
        .filter(|access| access.buffer == buffer)
        .map(|access| access.line_bytes(depth))
        .fold(0.0, f64::max)
}
