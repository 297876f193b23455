//! The visitor of a primitive's arguments. Printing, parsing, renaming variables and finding unused steps are visitors.

use crate::index::map::IndexMap;
use crate::schedule::rv::{
    AnnotationArgument, BlockOrLoopRv, BlockRv, IntArgument, IntRv, LoopRv, PrefetchMode,
};
use crate::stmt::Symbol;

/// One argument of a primitive, open for reading and writing.
#[derive(Debug)]
pub enum Argument<'a> {
    /// A block.
    Block(&'a mut BlockRv),
    /// A loop.
    Loop(&'a mut LoopRv),
    /// A block or a loop.
    Place(&'a mut BlockOrLoopRv),
    /// Several loops.
    Loops(&'a mut Vec<LoopRv>),
    /// Several blocks.
    Blocks(&'a mut Vec<BlockRv>),
    /// An integer, possibly the value of a variable.
    Int(&'a mut IntArgument),
    /// Factors, of which some may be left open.
    Factors(&'a mut Vec<Option<IntArgument>>),
    /// A plain number.
    Number(&'a mut i64),
    /// Plain numbers.
    Numbers(&'a mut Vec<i64>),
    /// Probabilities.
    Weights(&'a mut Vec<f64>),
    /// A word.
    Text(&'a mut Symbol),
    /// A map of indices.
    Map(&'a mut IndexMap),
    /// The value of an annotation.
    Annotation(&'a mut AnnotationArgument),
    /// Which loads are prefetched.
    Prefetch(&'a mut PrefetchMode),
}

/// An operation on each argument, in order.
pub trait ArgumentVisitor {
    /// Why the visit ends early.
    type Error;

    /// Called once per argument.
    ///
    /// # Errors
    /// When the visitor cannot go on, such as a parser at unexpected text.
    fn visit(&mut self, argument: Argument<'_>) -> Result<(), Self::Error>;
}

/// Calls a function with the number of every variable, and stores what it answers.
pub(crate) struct Rename<F>(pub F);

impl<F: FnMut(u32) -> u32> Rename<F> {
    fn int(&mut self, argument: &mut IntArgument) {
        if let IntArgument::Variable(IntRv(number)) = argument {
            *number = (self.0)(*number);
        }
    }
}

impl<F: FnMut(u32) -> u32> ArgumentVisitor for Rename<F> {
    type Error = std::convert::Infallible;

    fn visit(&mut self, argument: Argument<'_>) -> Result<(), Self::Error> {
        match argument {
            Argument::Block(BlockRv(number)) | Argument::Loop(LoopRv(number)) => *number = (self.0)(*number),
            Argument::Place(BlockOrLoopRv::Block(BlockRv(number)) | BlockOrLoopRv::Loop(LoopRv(number))) => {
                *number = (self.0)(*number);
            }
            Argument::Loops(loops) => loops.iter_mut().for_each(|LoopRv(number)| *number = (self.0)(*number)),
            Argument::Blocks(blocks) => {
                blocks.iter_mut().for_each(|BlockRv(number)| *number = (self.0)(*number))
            }
            Argument::Int(argument)
            | Argument::Annotation(AnnotationArgument::Int(argument))
            | Argument::Prefetch(PrefetchMode::Ahead(argument)) => {
                self.int(argument);
            }
            Argument::Factors(factors) => factors.iter_mut().flatten().for_each(|factor| self.int(factor)),
            Argument::Number(_)
            | Argument::Numbers(_)
            | Argument::Weights(_)
            | Argument::Text(_)
            | Argument::Map(_)
            | Argument::Prefetch(PrefetchMode::Siblings)
            | Argument::Annotation(AnnotationArgument::Text(_) | AnnotationArgument::Numbers(_)) => {}
        }
        Ok(())
    }
}
