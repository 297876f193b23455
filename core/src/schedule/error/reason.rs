//! The words under which refusals are counted, and what each means.

use super::ScheduleError;

macro_rules! reasons {
    ($($variant:pat => $word:literal, $meaning:literal;)*) => {
        impl ScheduleError {
            /// Every word of [`ScheduleError::reason`], and what it means, as the end of a sentence.
            pub const REASONS: &[(&str, &str)] = &[$(($word, $meaning)),*];

            /// A short, stable word for statistics of refusals.
            pub fn reason(&self) -> &'static str {
                match self {
                    $($variant => $word,)*
                }
            }
        }
    };
}

reasons! {
    ScheduleError::UnknownVariable(_) => "unknown_variable", "the trace uses a variable that none of its steps makes";
    ScheduleError::VariableKind { .. } => "variable_kind", "a variable of the trace stands for another kind of thing";
    ScheduleError::ResultCount { .. } => "result_count", "a step made another number of results than the trace says";
    ScheduleError::TooManySteps => "too_many_steps", "the schedule has as many steps as it may have";
    ScheduleError::WrongTargetKind(_) => "wrong_target_kind", "a rule for another kind of device was applied";
    ScheduleError::BadDecision(_) => "bad_decision", "a decision does not fit its sampling primitive";
    ScheduleError::UnknownBlock => "unknown_block", "the program has no block of that name";
    ScheduleError::MissingBlock(_) => "missing_block", "an earlier step has removed the block";
    ScheduleError::MissingLoop(_) => "missing_loop", "an earlier step has removed the loop";
    ScheduleError::BadLoopList => "bad_loop_list", "a list of loops is empty or names one twice";
    ScheduleError::NotAChain { .. } => "not_a_chain", "loops to be fused or reordered have other statements between them";
    ScheduleError::NotSerial(_) => "not_serial", "the loop is parallel, vectorized, unrolled or bound already";
    ScheduleError::BadFactors(_) => "bad_factors", "the factors of a split do not cover the loop";
    ScheduleError::SymbolicExtent(_) => "symbolic_extent", "the primitive needs a loop whose extent is known";
    ScheduleError::ReductionLoop { .. } => "reduction_loop", "iterations of a reduction depend on each other and cannot run at the same time";
    ScheduleError::NotCombined { .. } => "not_combined", "threads cannot combine the values of the reduction";
    ScheduleError::OrderedLoop { .. } => "ordered_loop", "the iterations of the loop have to run in their order";
    ScheduleError::OrderedBlock(_) => "ordered_block", "the block carries values from one iteration to the next";
    ScheduleError::OrderMatters(_) => "order_matters", "the updates of the block give another result in another order";
    ScheduleError::NotOrderedLoop { .. } => "not_ordered_loop", "the loop does not belong to ordered iterators of the block alone";
    ScheduleError::SharedWrite { .. } => "shared_write", "every iteration would write the same elements";
    ScheduleError::NotComplete(_) => "not_complete", "the block does more than to compute each element once";
    ScheduleError::NotReduction(_) => "not_reduction", "the block is not a reduction with an initial value and a commutative update";
    ScheduleError::OutputBlock(_) => "output_block", "the block writes a result of the kernel, which has to exist";
    ScheduleError::SeveralWriters(_) => "several_writers", "the block's buffer is written by another block, too";
    ScheduleError::UsedElsewhere { .. } => "used_elsewhere", "another block would find other contents in a buffer";
    ScheduleError::UpdatesInPlace { .. } => "updates_in_place", "the block reads the buffer that it writes";
    ScheduleError::NoSuchAccess { .. } => "no_such_access", "the block has no read or write of that number";
    ScheduleError::AlreadyInside { .. } => "already_inside", "the block is inside the loop already";
    ScheduleError::ConsumerOutside { .. } => "consumer_outside", "a block that reads the result is outside the loop";
    ScheduleError::ProducerOutside { .. } => "producer_outside", "a block that makes what is read is outside the loop";
    ScheduleError::NoNeighbour(_) => "no_neighbour", "the block has no consumer or producer to move to";
    ScheduleError::NotInvertible(_) => "not_invertible", "the region that the block has to compute cannot be found from its indices";
    ScheduleError::NotCovered(_) => "not_covered", "the loop does not touch the whole domain of the block";
    ScheduleError::ReductionOutside { .. } => "reduction_outside", "a loop of the reduction is outside";
    ScheduleError::Guarded { .. } => "guarded", "a guard that involves the loop cannot be moved";
    ScheduleError::NotReductionLoop { .. } => "not_reduction_loop", "the loop does not belong to a reduction of this block alone";
    ScheduleError::NotDivisible { .. } => "not_divisible", "the loops do not enumerate whole tiles";
    ScheduleError::NotOneBlock { .. } => "not_one_block", "the loop holds more or less than one block";
    ScheduleError::BadMap(_) => "bad_map", "an index map does not fit the buffer";
    ScheduleError::ParameterBuffer { .. } => "parameter_buffer", "the layout of an argument is the caller's";
    ScheduleError::NotResult { .. } => "not_result", "only results of the kernel can be written around the caches";
    ScheduleError::ReadAgain { .. } => "read_again", "the kernel reads the result, which had better stay in a cache";
    ScheduleError::BadDistance(_) => "bad_distance", "the distance of a prefetch is out of range";
    ScheduleError::Pipeline { .. } => "pipeline", "the statements of the loop cannot run in these stages";
    ScheduleError::UnknownAxis => "unknown_axis", "there is no such axis of threads";
    ScheduleError::AxisTaken { .. } => "axis_taken", "a loop around or inside is bound to the same axis of threads";
    ScheduleError::AxisExtent { .. } => "axis_extent", "the axis of threads has another extent in this nest";
    ScheduleError::SeveralElements { .. } => "several_elements", "the block accesses several elements of the buffer at one point";
    ScheduleError::ConditionalAccess { .. } => "conditional_access", "the block accesses the buffer under a condition";
    ScheduleError::NotUpdate { .. } => "not_update", "the block does not update the buffer in place";
    ScheduleError::PartlyWritten { .. } => "partly_written", "some elements of the buffer may never be written";
    ScheduleError::NotFilled { .. } => "not_filled", "the loops may leave elements unwritten that a copy would read";
    ScheduleError::NotSiblings { .. } => "not_siblings", "the loops do not follow each other directly with the same extents";
    ScheduleError::CrossingDependence { .. } => "crossing_dependence", "an iteration would touch what an iteration of another block writes";
    ScheduleError::NotConsecutive { .. } => "not_consecutive", "the loop does not run through consecutive parts of the domain";
    ScheduleError::NotEpilogue(_) => "not_epilogue", "the block does not go on with the result of a reduction";
    ScheduleError::NotEinsum(_) => "not_einsum", "the block is not a plain sum of products";
    ScheduleError::NotProducts(_) => "not_products", "the block is not a sum of products of `f32`";
    ScheduleError::NotIntegerProducts(_) => "not_integer_products", "the block is not a sum of products of integers";
    ScheduleError::BeyondAccuracy(_) => "beyond_accuracy", "the kernel's accuracy does not allow it";
    ScheduleError::BadPadding(_) => "bad_padding", "the padding is not one moderate number for each iterator";
    ScheduleError::NotPadding(_) => "not_padding", "the block does not choose between an element and a constant";
    ScheduleError::MixedIterators(_) => "mixed_iterators", "spatial and reduction iterators would be mixed";
    ScheduleError::SharedLoops(_) => "shared_loops", "the block shares its loops with others";
    ScheduleError::NotEnumerated(_) => "not_enumerated", "the block's own loops do not enumerate its whole domain";
    ScheduleError::BadOrder(_) => "bad_order", "the order does not name each iterator once";
    ScheduleError::UnknownIntrinsic => "unknown_intrinsic", "there is no tensor intrinsic of that name";
    ScheduleError::IntrinsicMismatch(_) => "intrinsic_mismatch", "the block does not compute what the tensor intrinsic does";
    ScheduleError::BadAlignment => "bad_alignment", "the factor or the offset of an alignment is out of range";
    ScheduleError::AxisOutOfRange(_) => "axis_out_of_range", "the buffer has no such dimension";
    ScheduleError::NoAnnotation => "no_annotation", "there is no such annotation";
    ScheduleError::AnnotationType { .. } => "annotation_type", "the annotation's value is of another type";
    ScheduleError::BadCandidates => "bad_candidates", "candidates and probabilities do not go together";
}
