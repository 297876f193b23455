//! Refusals as sentences.

use crate::annotation::MAX_PREFETCH;
use crate::ids::{BlockId, BufferId, LoopId};
use crate::program::Program;
use crate::schedule::ScheduleError;
use crate::thread_axis::ThreadAxis;
use crate::visit::{find_block, find_loop};

impl ScheduleError {
    /// The error as a sentence, with the program's names.
    pub fn describe(&self, program: &Program) -> String {
        let names = Names(program);
        match *self {
            ScheduleError::UnknownVariable(number) => format!("no earlier step makes %{number}"),
            ScheduleError::VariableKind { variable, expected } => format!("%{variable} is not {expected}"),
            ScheduleError::TooManySteps => {
                format!("the schedule has {} steps, the largest number allowed", crate::schedule::MAX_STEPS)
            }
            ScheduleError::WrongTargetKind(error) => error.to_string(),
            ScheduleError::ResultCount { expected, found } => {
                format!(
                    "the trace expects {expected} results of this step, but it has {found} on this program"
                )
            }
            ScheduleError::BadDecision(what) => format!("the decision does not fit: {what}"),
            ScheduleError::UnknownBlock => {
                "no block has this name; print the program to see its blocks".into()
            }
            ScheduleError::MissingBlock(_) => "the block is no longer in the program".into(),
            ScheduleError::MissingLoop(_) => {
                "the loop is no longer in the program; fetch the loops again".into()
            }
            ScheduleError::BadLoopList => "the loops must be distinct and at least one".into(),
            ScheduleError::NotAChain { outer, inner } => {
                format!("{} is not the only statement inside {}", names.target(inner), names.target(outer))
            }
            ScheduleError::NotSerial(target) => {
                format!(
                    "{} is not serial: it is parallel, vectorized, unrolled or bound to threads",
                    names.target(target)
                )
            }
            ScheduleError::BadFactors(target) => format!(
                "the factors of {} must be positive, with at most one left open, and their product must be at least its extent",
                names.target(target)
            ),
            ScheduleError::SymbolicExtent(target) => {
                format!("{} has a symbolic extent; split off a constant part first", names.target(target))
            }
            ScheduleError::ReductionLoop { target, block } => format!(
                "{} is a reduction loop of {}; use rfactor to make it parallel",
                names.target(target),
                names.block(block)
            ),
            ScheduleError::NotCombined { target, block } => format!(
                "threads cannot combine the values of {} over {}: the loop must be the innermost one, have a power of two of iterations, and take part in no guard; use rfactor to make one",
                names.block(block),
                names.target(target)
            ),
            ScheduleError::OrderedLoop { target, block } => format!(
                "{} executes points of {} that follow each other in order",
                names.target(target),
                names.block(block)
            ),
            ScheduleError::OrderedBlock(block) => {
                format!(
                    "points of {} follow each other in order; leave the recurrence as it is",
                    names.block(block)
                )
            }
            ScheduleError::OrderMatters(block) => format!(
                "{} does more than to update integers by a sum, product, minimum or maximum",
                names.block(block)
            ),
            ScheduleError::NotOrderedLoop { target, block } => format!(
                "{} must belong to ordered iterators of {} alone",
                names.target(target),
                names.block(block)
            ),
            ScheduleError::SharedWrite { target, block, buffer } => format!(
                "iterations of {} write the same elements of `{}` in {}",
                names.target(target),
                names.buffer(buffer),
                names.block(block)
            ),
            ScheduleError::NotComplete(block) => {
                format!("{} is not a plain element-wise block", names.block(block))
            }
            ScheduleError::NotReduction(block) => {
                format!("{} is not a reduction with an initial value", names.block(block))
            }
            ScheduleError::OutputBlock(block) => format!("{} writes a parameter", names.block(block)),
            ScheduleError::SeveralWriters(block) => {
                format!("other blocks write the buffer of {}, too", names.block(block))
            }
            ScheduleError::UsedElsewhere { buffer, by } => {
                format!(
                    "{} accesses `{}`, too, and would find other values there",
                    names.block(by),
                    names.buffer(buffer)
                )
            }
            ScheduleError::UpdatesInPlace { block, buffer } => format!(
                "{} reads and writes `{}`; cache_inplace copies such a buffer",
                names.block(block),
                names.buffer(buffer)
            ),
            ScheduleError::NoSuchAccess { block, number } => {
                format!("{} has no access number {number}", names.block(block))
            }
            ScheduleError::AlreadyInside { block, target } => {
                format!("{} already contains {}", names.target(target), names.block(block))
            }
            ScheduleError::ConsumerOutside { block, consumer } => format!(
                "{} reads the result of {} outside of the loop",
                names.block(consumer),
                names.block(block)
            ),
            ScheduleError::ProducerOutside { block, producer } => format!(
                "{} writes an operand of {}, but not before that place",
                names.block(producer),
                names.block(block)
            ),
            ScheduleError::NoNeighbour(block) => {
                format!("{} has no producer or consumer to move to", names.block(block))
            }
            ScheduleError::NotInvertible(block) => format!(
                "the accesses of {} are not `iterator + constant` in each dimension",
                names.block(block)
            ),
            ScheduleError::NotCovered(block) => {
                format!("the region inside the loop does not cover the domain of {}", names.block(block))
            }
            ScheduleError::ReductionOutside { target, block } => {
                format!("{} lies inside a reduction loop of {}", names.target(target), names.block(block))
            }
            ScheduleError::Guarded { target, block } => {
                format!("{} has a guard that involves {}", names.block(block), names.target(target))
            }
            ScheduleError::NotReductionLoop { target, block } => {
                format!("{} is not a reduction loop of {} alone", names.target(target), names.block(block))
            }
            ScheduleError::NotDivisible { target, block } => format!(
                "{} and the loops inside it do not enumerate whole tiles of {}; split its loops by divisors of their extents",
                names.target(target),
                names.block(block)
            ),
            ScheduleError::NotOneBlock { target, blocks } => {
                format!("{} holds {blocks} blocks; it must hold one alone", names.target(target))
            }
            ScheduleError::BadMap(error) => error.to_string(),
            ScheduleError::ParameterBuffer { block, buffer } => format!(
                "`{}` in {} is a parameter; change a copy of it (cache_read, cache_write) instead",
                names.buffer(buffer),
                names.block(block)
            ),
            ScheduleError::NotResult { block, buffer } => format!(
                "`{}`, which {} writes, is an intermediate; only a result can be streamed",
                names.buffer(buffer),
                names.block(block)
            ),
            ScheduleError::ReadAgain { block, buffer } => format!(
                "{} reads `{}`, so that it should stay in a cache; let the reader use an intermediate (cache_write)",
                names.block(block),
                names.buffer(buffer)
            ),
            ScheduleError::BadDistance(distance) => {
                format!("the distance {distance} of a prefetch is not between 1 and {MAX_PREFETCH}")
            }
            ScheduleError::Pipeline { target, fault } => format!(
                "{} cannot be pipelined: {}",
                names.target(target),
                fault.describe(|buffer| names.buffer(buffer).to_owned())
            ),
            ScheduleError::UnknownAxis => {
                let axes: Vec<&str> = ThreadAxis::ALL.iter().map(|axis| axis.text()).collect();
                format!("an axis of threads is one of {}", axes.join(", "))
            }
            ScheduleError::AxisTaken { target, other } => format!(
                "{} cannot be bound to the axis of {}, which is around or inside it; use another axis, or fuse the loops",
                names.target(target),
                names.target(other)
            ),
            ScheduleError::AxisExtent { target, other } => format!(
                "{} and {} are bound to one axis in this nest and have different extents; split both by the same factors",
                names.target(target),
                names.target(other)
            ),
            ScheduleError::SeveralElements { block, buffer } => {
                format!(
                    "{} accesses several elements of `{}` at one point",
                    names.block(block),
                    names.buffer(buffer)
                )
            }
            ScheduleError::ConditionalAccess { block, buffer } => format!(
                "{} accesses `{}` under a condition, and not all of these elements may exist",
                names.block(block),
                names.buffer(buffer)
            ),
            ScheduleError::NotUpdate { block, buffer } => {
                format!("{} does not update `{}` in place", names.block(block), names.buffer(buffer))
            }
            ScheduleError::NotFilled { block, buffer } => format!(
                "the loops of {} may leave elements of `{}` unwritten, which cannot be copied; copy the buffer before compute_at moves the block",
                names.block(block),
                names.buffer(buffer)
            ),
            ScheduleError::PartlyWritten { block, buffer } => format!(
                "some elements of `{}` may never be written; copy it before compute_at moves a block, or copy only the elements that {} reads (reindex_cache_read)",
                names.buffer(buffer),
                names.block(block)
            ),
            ScheduleError::NotSiblings { first, second } => format!(
                "{} and {} are not in adjacent nests of the same depth and extents",
                names.target(first),
                names.target(second)
            ),
            ScheduleError::CrossingDependence { first, second, buffer } => format!(
                "fusing {} with {} would change the order of dependent accesses to `{}`",
                names.target(first),
                names.target(second),
                names.buffer(buffer)
            ),
            ScheduleError::NotConsecutive { target, block } => format!(
                "{} does not run through consecutive parts of the domain of {}",
                names.target(target),
                names.block(block)
            ),
            ScheduleError::NotEpilogue(block) => format!(
                "{} does not combine the result of a reduction with a value by the reduction's operator",
                names.block(block)
            ),
            ScheduleError::NotEinsum(block) => {
                format!("{} is not a sum of products of elements at distinct iterators", names.block(block))
            }
            ScheduleError::NotProducts(block) => {
                format!("{} is not a sum of products of two elements of type f32", names.block(block))
            }
            ScheduleError::NotIntegerProducts(block) => format!(
                "{} is not a sum of products of two integers of 32 or 64 bits with an initial value",
                names.block(block)
            ),
            ScheduleError::BeyondAccuracy(block) => match program.accuracy {
                None => {
                    format!("{} has products of f32, and the kernel states no accuracy", names.block(block))
                }
                Some(accuracy) => format!(
                    "the error of the products of {} would exceed the kernel's accuracy of {:?}",
                    names.block(block),
                    accuracy.relative()
                ),
            },
            ScheduleError::BadPadding(block) => {
                format!("the padding must be one positive number for each iterator of {}", names.block(block))
            }
            ScheduleError::NotPadding(block) => format!(
                "{} is not `select(condition, element, constant)` with bounds of its iterators as the condition",
                names.block(block)
            ),
            ScheduleError::MixedIterators(block) => {
                format!("a new iterator of {} would mix spatial and reduction iterators", names.block(block))
            }
            ScheduleError::SharedLoops(block) => {
                format!("{} shares loops that enumerate its domain with other blocks", names.block(block))
            }
            ScheduleError::NotEnumerated(block) => {
                format!("the loops of {} do not enumerate each point of its domain once", names.block(block))
            }
            ScheduleError::BadOrder(block) => {
                format!("the order must name each iterator of {} once, from 0", names.block(block))
            }
            ScheduleError::UnknownIntrinsic => "no tensor intrinsic has this name; register it first".into(),
            ScheduleError::IntrinsicMismatch(block) => {
                format!("the body of {} does not match the description of the intrinsic", names.block(block))
            }
            ScheduleError::BadAlignment => {
                "the factor of an alignment is between 1 and 4096, and the offset is below it".into()
            }
            ScheduleError::AxisOutOfRange(axis) => format!("axis {axis} is outside the buffer's dimensions"),
            ScheduleError::NoAnnotation => "there is no annotation of this name".into(),
            ScheduleError::AnnotationType { key, expected } => {
                format!("the value of `{key}` must be {}", expected.text())
            }
            ScheduleError::BadCandidates => {
                "candidates and probabilities must be equally many, at least one, with a positive sum".into()
            }
        }
    }
}

/// Names as in the program.
struct Names<'a>(&'a Program);

impl Names<'_> {
    fn target(&self, id: LoopId) -> String {
        match find_loop(&self.0.body, id) {
            Some(node) => format!("loop `{}`", self.0.variable(node.var).name),
            None => "a loop that is gone".into(),
        }
    }

    fn block(&self, id: BlockId) -> String {
        match find_block(&self.0.body, id) {
            Some(node) => format!("block `{}`", node.name),
            None => "a block that is gone".into(),
        }
    }

    fn buffer(&self, id: BufferId) -> &str {
        &self.0.buffer(id).name
    }
}
