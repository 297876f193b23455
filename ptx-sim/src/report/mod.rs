//! The result of a run: faults, remarks, counts.

mod collect;
mod remarks;

use serde::Serialize;

pub(crate) use collect::{Collector, Spot};
pub(crate) use remarks::{Addresses, Traffic};

/// The sort of a fault.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FaultKind {
    /// Two accesses of which one writes, with no order between them.
    Race,
    /// An access to the target of an asynchronous copy that is not waited for.
    AsyncCopyNotWaited,
    /// A value that nobody wrote is read.
    Uninitialised,
    /// An access outside of an allocation or a variable.
    OutOfBounds,
    /// An access whose address is no multiple of its size.
    Misaligned,
    /// An access to memory that was given back.
    UseAfterFree,
    /// A write to constant memory or to parameters.
    WriteToConstant,
    /// A barrier that not all threads reach that have to.
    DivergentBarrier,
    /// All threads wait.
    Deadlock,
    /// Threads wait in loops for what never comes.
    Livelock,
    /// An instruction between lanes in which lanes take part that are not there.
    WarpSync,
    /// A wrong use of a barrier, an mbarrier object or another instruction.
    InvalidUse,
    /// `trap`, or a failed assertion.
    Trap,
    /// Results depend on the order in which warps run.
    OrderDependent,
}

/// A fault: each is reported once for each pair of lines.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Finding {
    /// The sort.
    pub kind: FaultKind,
    /// The line of the instruction in the text; 0 if there is none.
    pub line: u32,
    /// The block, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<[u32; 3]>,
    /// The thread in its block, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<[u32; 3]>,
    /// The offset in the memory that is meant, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<i64>,
    /// A sentence.
    pub message: String,
    /// How often it happened.
    pub count: u64,
    /// The seeds of the schedules with which it happened.
    pub seeds: Vec<u64>,
}

/// The sort of a remark.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RemarkKind {
    /// Lanes access different words of one bank.
    BankConflict,
    /// Lanes touch more sectors of 32 bytes than their data needs.
    Uncoalesced,
    /// Lanes of a warp take different branches.
    DivergentBranch,
    /// Results differ between schedules, which order-dependent atomic operations explain.
    OrderDependent,
    /// Bytes of an output that nobody wrote.
    Unwritten,
    /// Threads write the value that is there already, with no order between them.
    RedundantWrite,
}

/// A slow or unusual action that is no fault.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Remark {
    /// The sort.
    pub kind: RemarkKind,
    /// The line of the instruction in the text; 0 if there is none.
    pub line: u32,
    /// How often, in the unit that the message names.
    pub count: u64,
    /// A sentence.
    pub message: String,
}

/// Sums over the whole run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Totals {
    /// Instructions that warps executed.
    pub warp_instructions: u64,
    /// Accesses to global memory by warps.
    pub global_requests: u64,
    /// Sectors of 32 bytes that they touched.
    pub global_sectors: u64,
    /// As many sectors as their data needs.
    pub global_sectors_needed: u64,
    /// Accesses to shared memory by warps.
    pub shared_requests: u64,
    /// Passes that they took.
    pub shared_passes: u64,
    /// As many passes as they need without bank conflicts.
    pub shared_passes_needed: u64,
    /// Branches that lanes of a warp took differently.
    pub divergent_branches: u64,
}

/// The result of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Report {
    /// Faults.
    pub findings: Vec<Finding>,
    /// Slow or unusual actions that are no faults.
    pub remarks: Vec<Remark>,
    /// Instructions that threads executed with the first schedule.
    pub instructions: u64,
    /// Sums of the first schedule.
    pub totals: Totals,
    /// The seeds of the schedules.
    pub seeds: Vec<u64>,
    /// Bytes of shared memory, static and of the launch.
    pub shared_bytes: u64,
}

impl Report {
    /// Adds a remark on bytes of an output that nobody wrote.
    pub fn note_unwritten(&mut self, bytes: u64, name: &str) {
        let message = format!("{bytes} bytes of {name} were not written");
        self.remarks.push(Remark { kind: RemarkKind::Unwritten, line: 0, count: bytes, message });
    }
}
