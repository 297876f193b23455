//! The options of lowering.

use crate::stmt::Symbol;
use crate::target::{Target, TargetKind};

/// The options of lowering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LowerOptions {
    /// The kind of target, which decides which passes run.
    pub kind: TargetKind,
    /// Whether `a * b + c` may be rounded once instead of twice.
    pub contract: bool,
    /// Whether to check the program after each pass that ends at a [level](crate::verify::Level).
    pub verify: bool,
    /// How many statements may be added so that full tiles of anything but sums need no guards.
    pub max_partition_statements: usize,
    /// How many statements may be added so that the last tiles of loops have constant sizes, and so that full tiles of sums need no guards.
    pub max_cut_statements: usize,
    /// How many statements a loop may become when it is written out; a larger one stays a loop.
    pub max_unrolled_statements: usize,
    /// How many statements a loop of the schedule may become, where that is decided before all else.
    pub max_scheduled_unrolling: Option<usize>,
    /// The bytes of a core's second-level cache, where steps of recurrences alternate between the directions in which they read weights that it does not
    /// hold; `None` where all of them read forwards.
    pub second_cache_bytes: Option<u64>,
    /// The largest intermediate, in bytes, that is kept in memory of its thread alone.
    pub max_local_bytes: usize,
    /// The names of the [tensor intrinsics](crate::intrinsic) that the backend emits. They stay marked in the flat
    /// program; all others become the statements that describe them.
    pub intrinsics: Vec<Symbol>,
}

impl Default for LowerOptions {
    fn default() -> Self {
        LowerOptions {
            kind: TargetKind::Cpu,
            contract: true,
            verify: cfg!(debug_assertions),
            max_partition_statements: 256,
            max_cut_statements: 2048,
            max_unrolled_statements: 512,
            max_scheduled_unrolling: None,
            second_cache_bytes: None,
            max_local_bytes: 64 << 10,
            intrinsics: Vec::new(),
        }
    }
}

impl LowerOptions {
    /// The same with less code: loops stay loops where writing them out makes many statements.
    pub fn compact(self) -> Self {
        LowerOptions {
            max_cut_statements: 256,
            max_unrolled_statements: 64,
            max_scheduled_unrolling: Some(64),
            ..self
        }
    }

    /// The options for a target: its passes run, and the intrinsics that it emits stay marked.
    pub fn of(target: &Target) -> Self {
        let (kind, intrinsics) = (target.kind(), target.intrinsics().to_vec());
        let second_cache_bytes = target.cpu().ok().map(|cpu| cpu.l2_bytes);
        LowerOptions { kind, intrinsics, second_cache_bytes, ..LowerOptions::default() }
    }
}
