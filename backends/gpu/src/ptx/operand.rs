//! Operands of instructions.

use std::fmt;

use super::types::Class;

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Register {
    pub(crate) class: Class,
    pub(crate) number: u32,
}

/// A place in the code that branches lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Label(pub(crate) u32);

/// Registers with fixed contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Special {
    /// The position of the thread in its block, by axis.
    Thread(usize),
    /// The position of the block in the grid, by axis.
    Block(usize),
}

/// The memory that the module itself reserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Symbol {
    /// Memory that the threads of a block share.
    Shared,
    /// Memory of one thread.
    Local,
}

/// An operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operand {
    /// A register.
    Register(Register),
    /// An integer; for a predicate, 0 or 1.
    Integer(i64),
    /// The bits of an `f32`.
    Float(u32),
    /// The bits of an `f64`.
    DoubleFloat(u64),
    /// A register with fixed contents.
    Special(Special),
    /// The address of memory that the module reserves.
    Symbol(Symbol),
    /// The memory at an address and a distance in bytes.
    Address(Register, i32),
    /// The memory of the parameter with a number.
    Parameter(u32),
    /// A place in the code.
    Label(Label),
}

impl Operand {
    /// The register, where it is one.
    pub(crate) fn register(self) -> Option<Register> {
        match self {
            Operand::Register(register) => Some(register),
            _ => None,
        }
    }

    /// The integer, where it is one.
    pub(crate) fn integer(self) -> Option<i64> {
        match self {
            Operand::Integer(value) => Some(value),
            _ => None,
        }
    }
}

impl From<Register> for Operand {
    fn from(register: Register) -> Self {
        Operand::Register(register)
    }
}

impl From<Label> for Operand {
    fn from(label: Label) -> Self {
        Operand::Label(label)
    }
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.class.prefix(), self.number)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "$L{}", self.0)
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Symbol::Shared => "shared_memory",
            Symbol::Local => "local_memory",
        })
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const AXES: [&str; 3] = ["x", "y", "z"];
        match self {
            Operand::Register(register) => register.fmt(f),
            Operand::Integer(value) => value.fmt(f),
            Operand::Float(bits) => write!(f, "0f{bits:08X}"),
            Operand::DoubleFloat(bits) => write!(f, "0d{bits:016X}"),
            Operand::Special(Special::Thread(axis)) => write!(f, "%tid.{}", AXES[*axis]),
            Operand::Special(Special::Block(axis)) => write!(f, "%ctaid.{}", AXES[*axis]),
            Operand::Symbol(symbol) => symbol.fmt(f),
            Operand::Address(base, 0) => write!(f, "[{base}]"),
            Operand::Address(base, offset) => write!(f, "[{base}+{offset}]"),
            Operand::Parameter(number) => write!(f, "[p{number}]"),
            Operand::Label(label) => label.fmt(f),
        }
    }
}
