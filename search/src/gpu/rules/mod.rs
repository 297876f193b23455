//! The built-in schedule rules of a GPU: one file each.
//!
//! With the [rules of every device](crate::space::rules) they form a set like MetaSchedule's for CUDA: tiles on several levels with
//! copies in shared memory, reductions by the threads of a block, updates in one step, and loops bound to threads. Tiles come in two kinds: those that divide
//! the loops, as in MetaSchedule, and those that depend on the device alone, as in Hidet.

pub mod atomic_updates;
pub mod auto_bind;
pub mod cross_thread_reduction;
pub mod inline_into_copies;
pub mod multi_level_thread_tiling;
pub mod pipeline_copies;
pub mod rows_in_block;
pub mod tensor_cores;
pub mod tiles_across;

use crate::space::rule::RuleEntry;

/// Every built-in rule of a GPU alone.
pub(crate) fn all() -> Vec<RuleEntry> {
    vec![
        tensor_cores::tensor_core_tiling::ENTRY,
        multi_level_thread_tiling::multi_level_thread_tiling::ENTRY,
        pipeline_copies::pipeline_copies::ENTRY,
        inline_into_copies::inline_into_copies::ENTRY,
        rows_in_block::rows_in_block::ENTRY,
        cross_thread_reduction::cross_thread_reduction::ENTRY,
        tiles_across::tiles_across::ENTRY,
        atomic_updates::atomic_updates::ENTRY,
        auto_bind::auto_bind::ENTRY,
    ]
}
