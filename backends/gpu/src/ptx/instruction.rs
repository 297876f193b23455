//! Instructions.

use smallvec::SmallVec;

use super::operand::{Label, Operand, Register};
use super::table::{Op, Row};
use super::types::Type;

/// A line of code.
#[derive(Clone, Debug)]
pub(crate) enum Line {
    Instruction(Instruction),
    Label(Label),
    /// Behind the first label of a loop: the assembler does not unroll it (PTX ISA, 8.0, "Pragma Strings: nounroll").
    KeepLoop,
    /// Words for people, on one line.
    Comment(String),
}

/// The condition under which an instruction is executed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guard {
    pub(crate) predicate: Register,
    /// Whether the predicate is to be false.
    pub(crate) is_negated: bool,
}

/// An instruction: a row of the [table](super::table) with its operands.
#[derive(Clone, Debug)]
pub(crate) struct Instruction {
    pub(crate) row: &'static Row,
    pub(crate) ty: Option<Type>,
    pub(crate) source: Option<Type>,
    pub(crate) guard: Option<Guard>,
    /// In the order of the row's pattern; those in braces one by one.
    pub(crate) operands: SmallVec<[Operand; 4]>,
}

impl Instruction {
    /// Of an operation on values of a type, or on none.
    ///
    /// # Panics
    /// When the table has no such form: the emitter asks for what is in it.
    pub(crate) fn new(
        op: Op,
        ty: Option<Type>,
        source: Option<Type>,
        operands: impl IntoIterator<Item = Operand>,
    ) -> Self {
        let row = Row::find(op, ty, source);
        let row =
            row.unwrap_or_else(|| panic!("the instruction table has no {op:?} of {ty:?} from {source:?}"));
        Instruction { row, ty, source, guard: None, operands: operands.into_iter().collect() }
    }
}
