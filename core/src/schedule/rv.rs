//! Random variables: the names by which a trace refers to blocks, loops and numbers.
//!
//! They are dense and numbered in order of creation, so that their values are a plain vector and
//! renaming is arithmetic. An id ([`crate::ids`]) is an entity of one program; a variable is its name in a trace.

use crate::ids::{BlockId, LoopId};
use crate::schedule::ScheduleError;
use crate::stmt::Symbol;

macro_rules! variable_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);
    };
}

variable_type!(
    /// Names a block.
    BlockRv);
variable_type!(
    /// Names a loop.
    LoopRv);
variable_type!(
    /// Names an integer.
    IntRv);

/// The value of a variable in one schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A block.
    Block(BlockId),
    /// A loop.
    Loop(LoopId),
    /// An integer.
    Int(i64),
}

/// An integer argument: a number or a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntArgument {
    /// A number.
    Number(i64),
    /// The value of a variable.
    Variable(IntRv),
}

impl Default for IntArgument {
    fn default() -> Self {
        IntArgument::Number(0)
    }
}

impl From<i64> for IntArgument {
    fn from(number: i64) -> Self {
        IntArgument::Number(number)
    }
}

impl From<IntRv> for IntArgument {
    fn from(variable: IntRv) -> Self {
        IntArgument::Variable(variable)
    }
}

/// The value of an annotation to be made: an integer, possibly the value of a variable, a word, or integers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AnnotationArgument {
    /// An integer.
    Int(IntArgument),
    /// A word.
    Text(Symbol),
    /// Integers.
    Numbers(Vec<i64>),
}

impl From<Vec<i64>> for AnnotationArgument {
    fn from(numbers: Vec<i64>) -> Self {
        AnnotationArgument::Numbers(numbers)
    }
}

impl From<i64> for AnnotationArgument {
    fn from(number: i64) -> Self {
        AnnotationArgument::Int(number.into())
    }
}

impl From<IntRv> for AnnotationArgument {
    fn from(variable: IntRv) -> Self {
        AnnotationArgument::Int(variable.into())
    }
}

impl From<&str> for AnnotationArgument {
    fn from(text: &str) -> Self {
        AnnotationArgument::Text(text.into())
    }
}

/// Which loads a loop prefetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PrefetchMode {
    /// Its own, at a distance in iterations.
    Ahead(IntArgument),
    /// The elements that the sibling loops read in the next iteration of the loop around them.
    Siblings,
}

impl PrefetchMode {
    /// The word for [`PrefetchMode::Siblings`] in a trace.
    pub(crate) const SIBLINGS: &str = "siblings";
}

impl Default for PrefetchMode {
    fn default() -> Self {
        PrefetchMode::Ahead(1.into())
    }
}

/// A block or a loop, for primitives that take either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockOrLoopRv {
    /// A block.
    Block(BlockRv),
    /// A loop.
    Loop(LoopRv),
}

impl Default for BlockOrLoopRv {
    fn default() -> Self {
        BlockOrLoopRv::Block(BlockRv::default())
    }
}

impl From<BlockRv> for BlockOrLoopRv {
    fn from(block: BlockRv) -> Self {
        BlockOrLoopRv::Block(block)
    }
}

impl From<LoopRv> for BlockOrLoopRv {
    fn from(target: LoopRv) -> Self {
        BlockOrLoopRv::Loop(target)
    }
}

/// The values of the variables of one schedule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values(Vec<Value>);

impl Values {
    /// How many variables there are: the number of the next one.
    pub fn len(&self) -> u32 {
        self.0.len() as u32
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds variables.
    pub fn extend(&mut self, values: &[Value]) {
        self.0.extend_from_slice(values);
    }

    fn get(&self, number: u32) -> Result<Value, ScheduleError> {
        self.0.get(number as usize).copied().ok_or(ScheduleError::UnknownVariable(number))
    }

    /// The block that a variable stands for.
    ///
    /// # Errors
    /// When there is no such variable or it is no block.
    pub fn block(&self, variable: BlockRv) -> Result<BlockId, ScheduleError> {
        match self.get(variable.0)? {
            Value::Block(block) => Ok(block),
            _ => Err(ScheduleError::VariableKind { variable: variable.0, expected: "a block" }),
        }
    }

    /// The loop that a variable stands for.
    ///
    /// # Errors
    /// When there is no such variable or it is no loop.
    pub fn target_loop(&self, variable: LoopRv) -> Result<LoopId, ScheduleError> {
        match self.get(variable.0)? {
            Value::Loop(target) => Ok(target),
            _ => Err(ScheduleError::VariableKind { variable: variable.0, expected: "a loop" }),
        }
    }

    /// The loops that variables stand for.
    ///
    /// # Errors
    /// As [`Values::target_loop`].
    pub fn loops(&self, variables: &[LoopRv]) -> Result<Vec<LoopId>, ScheduleError> {
        variables.iter().map(|variable| self.target_loop(*variable)).collect()
    }

    /// The value of an integer argument.
    ///
    /// # Errors
    /// When there is no such variable or it is no integer.
    pub fn int(&self, argument: IntArgument) -> Result<i64, ScheduleError> {
        match argument {
            IntArgument::Number(number) => Ok(number),
            IntArgument::Variable(variable) => match self.get(variable.0)? {
                Value::Int(value) => Ok(value),
                _ => Err(ScheduleError::VariableKind { variable: variable.0, expected: "an integer" }),
            },
        }
    }
}
