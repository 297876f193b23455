//! The text form of symbolic integers.

use std::fmt;

use crate::symbolic::{Factor, Operation, SymInt, Symbol, Term};

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for SymInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, term) in self.terms.iter().enumerate() {
            match (place, term.coefficient < 0) {
                (0, false) => {}
                (0, true) => f.write_str("-")?,
                (_, false) => f.write_str(" + ")?,
                (_, true) => f.write_str(" - ")?,
            }
            write!(f, "{term}")?;
        }
        match (self.terms.is_empty(), self.constant) {
            (true, constant) => write!(f, "{constant}"),
            (false, 0) => Ok(()),
            (false, constant) if constant < 0 => write!(f, " - {}", constant.unsigned_abs()),
            (false, constant) => write!(f, " + {constant}"),
        }
    }
}

impl fmt::Display for Term {
    /// Without the sign.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.coefficient.unsigned_abs() != 1 {
            write!(f, "{}*", self.coefficient.unsigned_abs())?;
        }
        for (place, factor) in self.product.iter().enumerate() {
            if place > 0 {
                f.write_str("*")?;
            }
            write!(f, "{factor}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Factor::Symbol(symbol) => write!(f, "{symbol}"),
            Factor::Operation(operation, operands) => {
                write!(f, "{}({}, {})", operation.name(), operands[0], operands[1])
            }
        }
    }
}

impl Operation {
    pub(super) const ALL: [Operation; 4] =
        [Operation::Divide, Operation::Remainder, Operation::Minimum, Operation::Maximum];

    pub(super) fn name(self) -> &'static str {
        match self {
            Operation::Divide => "div",
            Operation::Remainder => "rem",
            Operation::Minimum => "min",
            Operation::Maximum => "max",
        }
    }
}
