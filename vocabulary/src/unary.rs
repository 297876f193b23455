//! Operators on one operand.

use crate::{Cost, ErrorBound, Operands};

macro_rules! define {
    (
        { $($(#[$doc:meta])* $variant:ident $text:literal $operands:ident $cost:ident;)* }
        $(
            $(#[$function_doc:meta])* $function:ident $name:ident
            [$single:literal, $double:literal] $kind:ident($count:literal);
        )*
    ) => {
        /// Operators on one operand. The result has the operand's type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum UnaryOp {
            $($(#[$doc])* $variant,)*
            $($(#[$function_doc])* $function,)*
        }

        impl UnaryOp {
            /// Every operator, in declaration order.
            pub const ALL: &'static [UnaryOp] = &[$(UnaryOp::$variant,)* $(UnaryOp::$function,)*];

            /// The name in the text form.
            pub const fn text(self) -> &'static str {
                match self {
                    $(UnaryOp::$variant => $text,)*
                    $(UnaryOp::$function => stringify!($name),)*
                }
            }

            /// The types that it takes.
            pub const fn operands(self) -> Operands {
                match self {
                    $(UnaryOp::$variant => Operands::$operands,)*
                    $(UnaryOp::$function => Operands::Floats,)*
                }
            }

            /// The cost.
            pub const fn cost(self) -> Cost {
                match self {
                    $(UnaryOp::$variant => operator_cost!($cost),)*
                    $(UnaryOp::$function => Cost::$kind($count),)*
                }
            }

            /// The greatest error of a function that lowering expands into basic operations; `None` for basic operations.
            pub const fn error_bound(self) -> Option<ErrorBound> {
                match self {
                    $(UnaryOp::$variant => None,)*
                    $(UnaryOp::$function => Some(ErrorBound { single: $single, double: $double }),)*
                }
            }
        }
    };
}

macro_rules! operator_cost {
    (Division) => {
        Cost::Division(1)
    };
    ($simple:ident) => {
        Cost::$simple
    };
}

crate::unary_functions! { define {
    /// Arithmetic negation.
    Neg "neg" Numbers Simple;
    /// Logical not of a `bool`, bitwise not of an integer.
    Not "not" Bits Simple;
    /// Absolute value.
    Abs "abs" Numbers Simple;
    /// Square root.
    Sqrt "sqrt" Floats Division;
    /// Largest integer not above.
    Floor "floor" Floats Simple;
    /// Smallest integer not below.
    Ceil "ceil" Floats Simple;
    /// Nearest integer, ties away from zero, as Rust's `round`.
    Round "round" Floats Simple;
    /// Nearest integer, ties to even.
    RoundTiesEven "round_ties_even" Floats Simple;
    /// Integer part.
    Trunc "trunc" Floats Simple;
} }

impl UnaryOp {
    /// Whether lowering expands it into basic operations.
    pub const fn is_function(self) -> bool {
        self.error_bound().is_some()
    }

    /// The token before the operand in Rust and in the text form; `None` for operators that are called by name.
    pub const fn prefix(self) -> Option<&'static str> {
        match self {
            UnaryOp::Neg => Some("-"),
            UnaryOp::Not => Some("!"),
            _ => None,
        }
    }

    /// The operator with this method in Rust: `x.exp()`.
    pub fn from_method(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|op| op.prefix().is_none() && op.text() == name)
    }
}
