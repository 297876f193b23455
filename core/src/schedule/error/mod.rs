//! Why a schedule primitive refused.
//!
//! An error holds identities only, because refusals are frequent in the search. [`ScheduleError::describe`] renders it with the
//! names of the program.

mod describe;
mod reason;

use crate::analysis::pipeline::PipelineFault;
use crate::annotation::ValueType;
use crate::ids::{BlockId, BufferId, LoopId};
use crate::index::map::MapError;
use crate::target::WrongTargetKind;

/// Why a schedule primitive refused. The program is as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScheduleError {
    /// A trace refers to a variable that no step has made.
    UnknownVariable(u32),
    /// A variable stands for another kind of thing.
    VariableKind {
        /// The variable's number.
        variable: u32,
        /// The kind that the primitive takes.
        expected: &'static str,
    },
    /// A step made another number of results than the trace says.
    ResultCount {
        /// As the trace says.
        expected: u32,
        /// As it was now.
        found: u32,
    },
    /// The schedule has as many steps as it may ([`MAX_STEPS`](crate::schedule::MAX_STEPS)).
    TooManySteps,
    /// A rule is for another kind of target.
    WrongTargetKind(WrongTargetKind),
    /// A decision is not of the kind, or not within the range, of the sampling primitive it belongs to.
    BadDecision(&'static str),
    /// No block has the name.
    UnknownBlock,
    /// The block is no longer in the program.
    MissingBlock(BlockId),
    /// The loop is no longer in the program.
    MissingLoop(LoopId),
    /// The loops must be distinct and at least one.
    BadLoopList,
    /// `inner` is not the only statement of `outer`'s nest at that place.
    NotAChain {
        /// The outer loop.
        outer: LoopId,
        /// The loop that must be its only statement.
        inner: LoopId,
    },
    /// The loop is not serial: it is parallel, vectorized, unrolled or bound to threads.
    NotSerial(LoopId),
    /// Factors must be positive, at most one open, and cover the loop.
    BadFactors(LoopId),
    /// The primitive needs a constant extent.
    SymbolicExtent(LoopId),
    /// The loop enumerates a reduction of the block, so its iterations depend on each other.
    ReductionLoop {
        /// The loop.
        target: LoopId,
        /// The block that reduces over it.
        block: BlockId,
    },
    /// The loop enumerates a reduction of the block whose values threads cannot combine.
    NotCombined {
        /// The loop.
        target: LoopId,
        /// The block that reduces over it.
        block: BlockId,
    },
    /// The loop executes points of the block that follow each other in order.
    OrderedLoop {
        /// The loop.
        target: LoopId,
        /// The block.
        block: BlockId,
    },
    /// Points of the block follow each other in order, and the primitive is not made for that.
    OrderedBlock(BlockId),
    /// The block does more than to update elements in a way that gives the same result in any order.
    OrderMatters(BlockId),
    /// The loop does not belong to ordered iterators of the block alone.
    NotOrderedLoop {
        /// The loop.
        target: LoopId,
        /// The block.
        block: BlockId,
    },
    /// Every iteration of the loop writes the same elements of a buffer that is used outside of it.
    SharedWrite {
        /// The loop.
        target: LoopId,
        /// The block that writes.
        block: BlockId,
        /// The buffer.
        buffer: BufferId,
    },
    /// The block is not complete: spatial iterators only, one unconditional store, not read back.
    NotComplete(BlockId),
    /// The block is not a reduction with an initial value and a commutative update.
    NotReduction(BlockId),
    /// The block writes a parameter.
    OutputBlock(BlockId),
    /// The block's buffer has another writer.
    SeveralWriters(BlockId),
    /// Another block accesses a buffer in a place where this would change what it finds there.
    UsedElsewhere {
        /// The buffer.
        buffer: BufferId,
        /// The other block.
        by: BlockId,
    },
    /// The block reads the buffer that it writes.
    UpdatesInPlace {
        /// The block.
        block: BlockId,
        /// The buffer.
        buffer: BufferId,
    },
    /// The block has no read or write of that number.
    NoSuchAccess {
        /// The block.
        block: BlockId,
        /// The number asked for.
        number: i64,
    },
    /// The loop already contains the block.
    AlreadyInside {
        /// The block.
        block: BlockId,
        /// The loop.
        target: LoopId,
    },
    /// Some block that reads this block's result is not inside the loop.
    ConsumerOutside {
        /// The producer.
        block: BlockId,
        /// The consumer.
        consumer: BlockId,
    },
    /// Some block that makes what this block reads is not inside, or not before, the place asked for.
    ProducerOutside {
        /// The consumer.
        block: BlockId,
        /// The producer.
        producer: BlockId,
    },
    /// The block has no consumer (or no producer) to move to.
    NoNeighbour(BlockId),
    /// The block's accesses are not `iterator + constant` in each dimension, so its iterators cannot be
    /// solved for a region.
    NotInvertible(BlockId),
    /// The region touched inside the loop does not cover the block's domain exactly.
    NotCovered(BlockId),
    /// The loop must contain every reduction loop of the block.
    ReductionOutside {
        /// The loop.
        target: LoopId,
        /// The block.
        block: BlockId,
    },
    /// A guard that involves the loop cannot be moved.
    Guarded {
        /// The loop.
        target: LoopId,
        /// The block with the guard.
        block: BlockId,
    },
    /// The loop does not belong to a reduction of the block alone.
    NotReductionLoop {
        /// The loop.
        target: LoopId,
        /// The block.
        block: BlockId,
    },
    /// The loops from `target` on do not enumerate whole tiles of the block's domain.
    NotDivisible {
        /// The outermost of the loops.
        target: LoopId,
        /// The block.
        block: BlockId,
    },
    /// The loop must hold one block and nothing else.
    NotOneBlock {
        /// The loop.
        target: LoopId,
        /// How many blocks it holds.
        blocks: u32,
    },
    /// The index map of a primitive does not fit.
    BadMap(MapError),
    /// The buffer is a parameter: its layout and its place are the caller's.
    ParameterBuffer {
        /// The block that accesses it.
        block: BlockId,
        /// The buffer.
        buffer: BufferId,
    },
    /// The buffer is an intermediate; only a result can be streamed.
    NotResult {
        /// The block that writes it.
        block: BlockId,
        /// The buffer.
        buffer: BufferId,
    },
    /// The buffer is read in the kernel, which wants it in a cache.
    ReadAgain {
        /// The block that reads it.
        block: BlockId,
        /// The buffer.
        buffer: BufferId,
    },
    /// The distance of a prefetch must be between 1 and [`MAX_PREFETCH`](crate::annotation::MAX_PREFETCH).
    BadDistance(i64),
    /// The statements of the loop cannot be executed in the stages asked for.
    Pipeline {
        /// The loop.
        target: LoopId,
        /// Why.
        fault: PipelineFault,
    },
    /// No axis of threads has the name.
    UnknownAxis,
    /// A loop around or inside is bound to the axis.
    AxisTaken {
        /// The loop to bind.
        target: LoopId,
        /// The loop that has the axis.
        other: LoopId,
    },
    /// Another loop of the nest gives the axis another extent.
    AxisExtent {
        /// The loop to bind.
        target: LoopId,
        /// The other loop.
        other: LoopId,
    },
    /// The block accesses several elements of the buffer at one point, or elements that depend on data.
    SeveralElements {
        /// The block.
        block: BlockId,
        /// The buffer.
        buffer: BufferId,
    },
    /// The block accesses the buffer under a condition, and some elements may not exist.
    ConditionalAccess {
        /// The block.
        block: BlockId,
        /// The buffer.
        buffer: BufferId,
    },
    /// The block does not update the buffer in place.
    NotUpdate {
        /// The block.
        block: BlockId,
        /// The buffer.
        buffer: BufferId,
    },
    /// Some elements of the buffer may never be written, so that it cannot be copied as a whole.
    PartlyWritten {
        /// The block that reads it.
        block: BlockId,
        /// The buffer.
        buffer: BufferId,
    },
    /// The block, in the loops around it, may leave elements of the buffer unwritten, so that a copy of the whole buffer
    /// would read elements that nothing wrote.
    NotFilled {
        /// The block that writes it.
        block: BlockId,
        /// The buffer.
        buffer: BufferId,
    },
    /// The loops are not in nests that follow each other directly, of the same depth and the same extents, with
    /// no other statement in them.
    NotSiblings {
        /// The first of the loops.
        first: LoopId,
        /// The one that does not go with it.
        second: LoopId,
    },
    /// An iteration would touch what another iteration of another block writes.
    CrossingDependence {
        /// The first of the loops.
        first: LoopId,
        /// The second.
        second: LoopId,
        /// The buffer.
        buffer: BufferId,
    },
    /// The loop does not run through consecutive parts of the block's domain.
    NotConsecutive {
        /// The loop.
        target: LoopId,
        /// The block.
        block: BlockId,
    },
    /// The block does not combine the result of a reduction with a value by the reduction's own operator.
    NotEpilogue(BlockId),
    /// The block is not a sum of products of elements at distinct iterators, with an initial value of zero; other indices
    /// may stand where nothing is padded.
    NotEinsum(BlockId),
    /// The block is not a sum of products of two elements of type `f32`.
    NotProducts(BlockId),
    /// The block is not a sum of products of two integers of 32 or 64 bits with an initial value.
    NotIntegerProducts(BlockId),
    /// The program's accuracy does not allow products that are as far off.
    BeyondAccuracy(BlockId),
    /// The padding must be one positive number of moderate size for each iterator of the block.
    BadPadding(BlockId),
    /// The block is not `select(condition, element, constant)` with a condition that bounds its iterators.
    NotPadding(BlockId),
    /// A new iterator would be made of spatial and of reduction iterators.
    MixedIterators(BlockId),
    /// Loops that the block shares with others enumerate its domain.
    SharedLoops(BlockId),
    /// The loops that hold the block alone do not enumerate its whole domain, each point once.
    NotEnumerated(BlockId),
    /// The order must name each iterator of the block once.
    BadOrder(BlockId),
    /// No tensor intrinsic has the name.
    UnknownIntrinsic,
    /// The block's body is not what the intrinsic computes, or is marked as one already.
    IntrinsicMismatch(BlockId),
    /// The factor of an alignment is between 1 and 4096, and the offset below it.
    BadAlignment,
    /// The axis lies outside the buffer's dimensions.
    AxisOutOfRange(i64),
    /// The annotation does not exist.
    NoAnnotation,
    /// The value of the annotation is of another type than its key has.
    AnnotationType {
        /// The annotation's name.
        key: &'static str,
        /// The type that its value must be of.
        expected: ValueType,
    },
    /// Candidates and probabilities must be as many, at least one, with a positive sum.
    BadCandidates,
}

impl std::fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason().replace('_', " "))
    }
}

impl std::error::Error for ScheduleError {}
