//! Bank conflicts, sectors and divergent branches.

use rustc_hash::FxHashMap;

use crate::report::{Remark, RemarkKind, Totals};

/// Bytes of a sector of global memory.
const SECTOR: u64 = 32;

/// Counts of one line.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    requests: u64,
    used: u64,
    needed: u64,
    shared: bool,
    diverged: u64,
    redundant: u64,
}

/// Counts accesses while they happen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic {
    lines: FxHashMap<u32, Line>,
    totals: Totals,
}

/// Addresses of the active lanes of one access, in a fixed buffer.
pub(crate) struct Addresses {
    list: [u64; 32],
    count: usize,
}

impl Addresses {
    pub(crate) fn new() -> Addresses {
        Addresses { list: [0; 32], count: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, address: u64) {
        self.list[self.count] = address;
        self.count += 1;
    }

    fn get(&self) -> &[u64] {
        &self.list[..self.count]
    }
}

impl Traffic {
    pub(crate) fn count_steps(&mut self, steps: u64) {
        self.totals.warp_instructions += steps;
    }

    pub(crate) fn diverge(&mut self, line: u32) {
        self.lines.entry(line).or_default().diverged += 1;
        self.totals.divergent_branches += 1;
    }

    pub(crate) fn redundant(&mut self, line: u32) {
        self.lines.entry(line).or_default().redundant += 1;
    }

    /// An access to global memory by the lanes of a warp, `bytes` bytes each.
    pub(crate) fn global(&mut self, line: u32, addresses: &Addresses, bytes: u64) {
        let list = addresses.get();
        if list.is_empty() {
            return;
        }
        let (used, needed) = sectors(list, bytes);
        let entry = self.lines.entry(line).or_default();
        entry.requests += 1;
        entry.used += used;
        entry.needed += needed;
        self.totals.global_requests += 1;
        self.totals.global_sectors += used;
        self.totals.global_sectors_needed += needed;
    }

    /// An access to shared memory by the lanes of a warp, `bytes` bytes each.
    pub(crate) fn shared(&mut self, line: u32, addresses: &Addresses, bytes: u64) {
        let list = addresses.get();
        if list.is_empty() {
            return;
        }
        let (used, needed) = passes(list, bytes);
        let entry = self.lines.entry(line).or_default();
        entry.shared = true;
        entry.requests += 1;
        entry.used += used;
        entry.needed += needed;
        self.totals.shared_requests += 1;
        self.totals.shared_passes += used;
        self.totals.shared_passes_needed += needed;
    }

    /// The sums, and remarks on lines that take more than they need.
    pub(crate) fn finish(self) -> (Totals, Vec<Remark>) {
        let mut remarks = Vec::new();
        let mut lines: Vec<_> = self.lines.into_iter().collect();
        lines.sort_unstable_by_key(|(line, _)| *line);
        for (line, counts) in lines {
            remarks.extend(remark(line, &counts));
        }
        (self.totals, remarks)
    }
}

fn remark(line: u32, counts: &Line) -> Vec<Remark> {
    let mut remarks = Vec::new();
    if counts.used > counts.needed && counts.shared {
        let count = counts.used - counts.needed;
        let message = format!(
            "bank conflicts: {} accesses by warps took {} passes, {} without conflicts",
            counts.requests, counts.used, counts.needed
        );
        remarks.push(Remark { kind: RemarkKind::BankConflict, line, count, message });
    } else if counts.used > counts.needed {
        let count = counts.used - counts.needed;
        let message = format!(
            "not coalesced: {} accesses by warps touched {} sectors of 32 bytes, their data fits into {}",
            counts.requests, counts.used, counts.needed
        );
        remarks.push(Remark { kind: RemarkKind::Uncoalesced, line, count, message });
    }
    if counts.diverged > 0 {
        let count = counts.diverged;
        let message = format!("lanes of a warp went different ways {count} times");
        remarks.push(Remark { kind: RemarkKind::DivergentBranch, line, count, message });
    }
    if counts.redundant > 0 {
        let count = counts.redundant;
        let message = format!("{count} times a value was written that was there already");
        remarks.push(Remark { kind: RemarkKind::RedundantWrite, line, count, message });
    }
    remarks
}

/// Sectors that are touched, and as many as the distinct bytes need.
fn sectors(list: &[u64], bytes: u64) -> (u64, u64) {
    let consecutive = list.windows(2).all(|pair| pair[1] == pair[0] + bytes);
    let total = list.len() as u64 * bytes;
    if consecutive {
        let (first, last) = (list[0], list[0] + total - 1);
        return (last / SECTOR - first / SECTOR + 1, total.div_ceil(SECTOR));
    }
    let mut sorted = [0; 32];
    let sorted = &mut sorted[..list.len()];
    sorted.copy_from_slice(list);
    sorted.sort_unstable();
    let (mut used, mut distinct) = (0, 0);
    let mut last_sector = None;
    let mut end = 0;
    for address in sorted {
        distinct += (*address + bytes).saturating_sub((*address).max(end));
        end = end.max(*address + bytes);
        let (first, last) = (*address / SECTOR, (*address + bytes - 1) / SECTOR);
        used += match last_sector {
            Some(known) if known >= last => 0,
            Some(known) if known >= first => last - known,
            _ => last - first + 1,
        };
        last_sector = Some(last.max(last_sector.unwrap_or(0)));
    }
    (used, distinct.div_ceil(SECTOR))
}

/// Passes that an access to shared memory takes: lanes are served in phases that move at most 128 bytes, and in a phase each of the
/// 32 banks gives one word of four bytes.
fn passes(list: &[u64], bytes: u64) -> (u64, u64) {
    let phase = match bytes {
        16.. => 8,
        8.. => 16,
        _ => 32,
    };
    let (mut used, mut needed) = (0, 0);
    for lanes in list.chunks(phase) {
        used += conflicts(lanes, bytes);
        needed += 1;
    }
    (used, needed)
}

/// The largest number of different words that one bank has to give.
fn conflicts(lanes: &[u64], bytes: u64) -> u64 {
    let consecutive = lanes.windows(2).all(|pair| pair[1] == pair[0] + bytes);
    let same = lanes.iter().all(|address| *address == lanes[0]);
    if same || (consecutive && lanes.len() as u64 * bytes <= 128) {
        return 1;
    }
    let words = (bytes / 4).max(1);
    // The word that each bank gives first; most accesses want no other.
    let mut first = [u64::MAX; 32];
    let mut others = [u64::MAX; 32];
    let mut count = 0;
    for address in lanes {
        for word in address / 4..address / 4 + words {
            let given = &mut first[(word % 32) as usize];
            if *given == u64::MAX {
                *given = word;
            } else if *given != word && !others[..count].contains(&word) {
                others[count] = word;
                count += 1;
            }
        }
    }
    let mut more = [0_u64; 32];
    for word in &others[..count] {
        more[(word % 32) as usize] += 1;
    }
    1 + more.into_iter().max().unwrap_or(0)
}
