//! Faults while they happen.

use rustc_hash::FxHashMap;

use crate::report::{FaultKind, Finding};

/// The most different faults that are kept.
const MOST: usize = 200;

/// Where a fault happens.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spot {
    pub(crate) line: u32,
    pub(crate) block: Option<[u32; 3]>,
    pub(crate) thread: Option<[u32; 3]>,
}

/// Gathers faults; the first of each sort and pair of lines is kept, the others are counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collector {
    findings: Vec<Finding>,
    known: FxHashMap<(FaultKind, u32, u64), usize>,
    seed: u64,
}

impl Collector {
    /// Faults that follow happen with this schedule.
    pub(crate) fn begin(&mut self, seed: u64) {
        self.seed = seed;
    }

    /// Adds a fault; `other` tells faults of one line apart. The message is made for the first of its sort only.
    pub(crate) fn add(
        &mut self,
        kind: FaultKind,
        spot: Spot,
        other: u64,
        offset: Option<i64>,
        message: impl FnOnce() -> String,
    ) {
        let key = (kind, spot.line, other);
        if let Some(place) = self.known.get(&key) {
            let finding = &mut self.findings[*place];
            finding.count += 1;
            if finding.seeds.last() != Some(&self.seed) {
                finding.seeds.push(self.seed);
            }
            return;
        }
        if self.findings.len() >= MOST {
            return;
        }
        self.known.insert(key, self.findings.len());
        self.findings.push(Finding {
            kind,
            line: spot.line,
            block: spot.block,
            thread: spot.thread,
            offset,
            message: message(),
            count: 1,
            seeds: vec![self.seed],
        });
    }

    /// All faults, by line.
    pub(crate) fn finish(mut self) -> Vec<Finding> {
        self.findings.sort_by_key(|finding| finding.line);
        self.findings
    }
}
