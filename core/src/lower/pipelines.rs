//! The passes of each kind of target, in order, with the reason for each pass's position beside it.

use crate::lower::pass::{loops, threads, to_flat, to_loops};
use crate::lower::{LowerError, LowerOptions};
use crate::program::Program;
use crate::target::TargetKind;
use crate::verify::Level;

/// One step of lowering.
pub(super) struct Pass {
    pub(super) name: &'static str,
    /// The level that the program is at afterwards; `None` between two levels.
    pub(super) level: Option<Level>,
    pub(super) run: fn(&mut Program, &LowerOptions) -> Result<(), LowerError>,
}

impl Pass {
    const fn new(
        name: &'static str,
        level: Option<Level>,
        run: fn(&mut Program, &LowerOptions) -> Result<(), LowerError>,
    ) -> Self {
        Pass { name, level, run }
    }
}

/// The passes for one kind of target.
pub(super) struct Pipeline {
    /// From the `Blocks` level to the `Loops` level. Every loop of the schedule is still there afterwards, with its kind.
    pub(super) to_loops: &'static [Pass],
    /// At the `Loops` level: the interior of a padded domain apart from its boundary.
    pub(super) boundaries: &'static [Pass],
    /// At the `Loops` level: from loops to vectors and registers.
    pub(super) to_vectors: &'static [Pass],
    /// Prepares the operands of the target's tensor instructions.
    pub(super) operands: &'static [Pass],
    /// To the `Flat` level.
    pub(super) to_flat: &'static [Pass],
}

impl Pipeline {
    /// The passes for a kind of target.
    pub(super) const fn of(kind: TargetKind) -> &'static Pipeline {
        match kind {
            TargetKind::Cpu => &CPU,
            TargetKind::Gpu => &GPU,
        }
    }

    /// All passes, in order.
    pub(super) fn passes(&self) -> impl Iterator<Item = &'static Pass> + use<> {
        let vectors = self.boundaries.iter().chain(self.to_vectors);
        self.to_loops.iter().chain(vectors).chain(self.operands).chain(self.to_flat)
    }
}

use Level::{Blocks, Flat, Loops};

/// For a processor with vector registers and a pool of threads.
static CPU: Pipeline = Pipeline {
    to_loops: &[
        // First: it decides how many statements all other passes see.
        Pass::new("limit_unrolling", Some(Blocks), to_loops::limit_unrolling::limit_unrolling),
        // Early: an expanded intrinsic is ordinary statements to all other passes.
        Pass::new("expand_intrinsics", Some(Blocks), to_loops::expand_intrinsics::expand_intrinsics),
        // Removes the last form that only schedules know. It reads iterators and reductions off the blocks.
        Pass::new("lower_blocks", None, to_loops::lower_blocks::lower_blocks),
        // Before buffers get their places, which depend on which loops are parallel.
        Pass::new(
            "keep_outermost_parallel",
            None,
            to_loops::keep_outermost_parallel::keep_outermost_parallel,
        ),
        // Before buffers get their places: a guard around a loop decides for all its accesses together.
        Pass::new("hoist_guards", None, to_loops::hoist_guards::hoist_guards),
        // Every intermediate is allocated from here on.
        Pass::new("place_buffers", Some(Loops), to_loops::place_buffers::place_buffers),
        // The size depends on the loops between the allocation and the accesses.
        Pass::new("compact_buffers", Some(Loops), to_loops::compact_buffers::compact_buffers),
        // Only a buffer's place shows whether it belongs to one iteration, and its size how much each copy takes.
        Pass::new("pipeline_loops", Some(Loops), to_loops::pipeline_loops::pipeline_loops),
    ],
    boundaries: &[
        // While loops are still whole, and before anything is written out: it makes a second copy of each step.
        Pass::new("alternate_directions", Some(Loops), loops::alternate_directions::alternate_directions),
        // While loops are still whole. Before peeling, which takes one side of a condition apart from the other.
        Pass::new("unswitch_selections", Some(Loops), loops::unswitch_selections::unswitch_selections),
        // While loops are still whole, and before guards are decided: it changes the loops that decide them.
        Pass::new("peel_boundaries", Some(Loops), loops::peel_boundaries::peel_boundaries),
        // After peeling, which makes the tiles at the boundary constant, and before the passes that decide guards.
        Pass::new("leave_out_padding", Some(Loops), loops::leave_out_padding::leave_out_padding),
    ],
    to_vectors: TO_VECTORS,
    operands: &[
        // After all passes that decide guards, and that keep sums in registers.
        Pass::new("stage_operands", None, to_flat::stage_operands::stage_operands),
    ],
    to_flat: TO_FLAT,
};

/// For a GPU, whose threads run in blocks.
static GPU: Pipeline = Pipeline {
    to_loops: &[
        // As for a processor, up to the places and sizes of buffers: loops over threads are like parallel loops until then.
        Pass::new("expand_intrinsics", Some(Blocks), to_loops::expand_intrinsics::expand_intrinsics),
        Pass::new("lower_blocks", None, to_loops::lower_blocks::lower_blocks),
        Pass::new("hoist_guards", None, to_loops::hoist_guards::hoist_guards),
        Pass::new("place_buffers", Some(Loops), to_loops::place_buffers::place_buffers),
        Pass::new("compact_buffers", Some(Loops), to_loops::compact_buffers::compact_buffers),
        Pass::new("pipeline_loops", Some(Loops), to_loops::pipeline_loops::pipeline_loops),
        // Before the accesses of warps are looked at. After pipelines, whose stages are loops around statements.
        Pass::new("mark_by_warp", Some(Loops), threads::mark_by_warp::mark_by_warp),
        // Before barriers are placed, which it may need. A loop over threads updates no element that is not its own afterwards.
        Pass::new("combine_across_threads", None, threads::combine_across_threads::combine_across_threads),
        // Needs the ends of loops over threads, which the next pass removes. Elements share memory by now as they will.
        Pass::new("insert_barriers", None, threads::insert_barriers::insert_barriers),
        // After barriers, which replace the ends of loops over threads. One grid of each nest remains.
        Pass::new("bind_threads", Some(Loops), threads::bind_threads::bind_threads),
        // Again: buffers of one thread are inside of the loops over threads only now.
        Pass::new("compact_thread_buffers", Some(Loops), to_loops::compact_buffers::compact_buffers),
    ],
    // A predicate costs a thread less than a second version of the code costs its warp.
    boundaries: &[],
    to_vectors: TO_VECTORS,
    // Lanes hold the operands of instructions of a warp together: a copy of a guarded one would be a thread's own.
    operands: &[],
    to_flat: TO_FLAT,
};

/// From loops to vectors and registers, for all targets.
const TO_VECTORS: &[Pass] = &[
    // Before loops are unrolled: it decides a guard once for all copies of a statement.
    Pass::new("partition_loops", Some(Loops), loops::partition_loops::partition_loops),
    // After partitioning, which gives tiles constant lengths.
    Pass::new("unroll_loops", Some(Loops), loops::unroll_loops::unroll_loops),
    // Guards that are left shorten loops. After unrolling, which makes more guards depend on one loop alone.
    Pass::new("clamp_loops", Some(Loops), loops::clamp_loops::clamp_loops),
    // A loop with a guard inside has no vector form, so that guards are gone by now where they can be.
    Pass::new("vectorize_loops", None, loops::vectorize_loops::vectorize_loops),
    // After vectorization: an element that stays the same may be a whole vector.
    Pass::new("promote_updates", None, to_flat::promote_updates::promote_updates),
    // After promotion, which shows that loads of sums do not change in a loop.
    Pass::new("hoist_invariants", None, to_flat::hoist_invariants::hoist_invariants),
    // Accumulators are buffers of their own by now, so that it is known which hold numbers only.
    Pass::new("choose_min_max", None, to_flat::choose_min_max::choose_min_max),
    // After all passes that look for sums in the form `c = c + a * b`.
    Pass::new("contract_products", None, to_flat::contract_products::contract_products),
];

/// To the `Flat` level, for all targets.
const TO_FLAT: &[Pass] = &[
    // Last of the passes that look at indices of several dimensions.
    Pass::new("flatten_buffers", None, to_flat::flatten_buffers::flatten_buffers),
    // After flattening: two elements of 4 bits share a byte, also across rows. Before simplification, which folds the indices.
    Pass::new("decode_storage", Some(Flat), to_flat::decode_storage::decode_storage),
    // After promotion, which leaves stores that nothing reads.
    Pass::new("remove_dead_stores", Some(Flat), to_flat::remove_dead_stores::remove_dead_stores),
    // After all passes that leave something to simplify: the indices of flat buffers, and loops whose stores are gone.
    Pass::new("simplify", Some(Flat), to_flat::simplify::simplify),
    // Last: expansions share nodes heavily, and a walk that does not remember nodes takes very long.
    Pass::new("expand_functions", None, to_flat::expand_functions::expand_functions),
];
