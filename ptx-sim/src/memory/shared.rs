//! Shared memory of a block.

use crate::race::Shadow;

/// Shared memory of one block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    pub(crate) data: Vec<u8>,
    /// Ranges that variables have, ascending.
    ranges: Vec<(u64, u64)>,
    /// Per byte, whether it was written.
    pub(crate) written: Vec<bool>,
    pub(crate) shadow: Shadow,
}

impl Shared {
    /// Memory with these ranges; everything between them belongs to nobody.
    pub(crate) fn new(ranges: Vec<(u64, u64)>) -> Shared {
        let bytes = ranges.iter().map(|(_, end)| *end).max().unwrap_or(0) as usize;
        Shared { data: vec![0xff; bytes], ranges, written: vec![false; bytes], shadow: Shadow::default() }
    }

    /// Whether an access lies inside of one variable, or of the memory of the launch's size.
    pub(crate) fn contains(&self, offset: u64, bytes: u64) -> bool {
        let Some(end) = offset.checked_add(bytes) else { return false };
        if let [(start, stop)] = self.ranges[..] {
            return offset >= start && end <= stop;
        }
        self.ranges.iter().any(|(start, stop)| offset >= *start && end <= *stop)
    }
}
