//! Operators on two operands.

use crate::{Cost, ErrorBound, Operands};

macro_rules! define {
    (
        { $(
            $(#[$doc:meta])* $variant:ident $text:literal $scalar:ident
            $operands:ident $cost:ident $precedence:expr, $associative:literal;
        )* }
        $(
            $(#[$function_doc:meta])* $function:ident $name:ident
            [$single:literal, $double:literal] $kind:ident($count:literal);
        )*
    ) => {
        /// Operators on two operands of equal type. Comparisons give `bool`, the others the operands' type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum BinaryOp {
            $($(#[$doc])* $variant,)*
            $($(#[$function_doc])* $function,)*
        }

        impl BinaryOp {
            /// Every operator, in declaration order.
            pub const ALL: &'static [BinaryOp] = &[$(BinaryOp::$variant,)* $(BinaryOp::$function,)*];

            /// The token or name in the text form.
            pub const fn text(self) -> &'static str {
                match self {
                    $(BinaryOp::$variant => $text,)*
                    $(BinaryOp::$function => stringify!($name),)*
                }
            }

            /// The name of the function that computes it on scalars.
            pub const fn scalar_function(self) -> &'static str {
                match self {
                    $(BinaryOp::$variant => stringify!($scalar),)*
                    $(BinaryOp::$function => stringify!($name),)*
                }
            }

            /// The types that it takes.
            pub const fn operands(self) -> Operands {
                match self {
                    $(BinaryOp::$variant => Operands::$operands,)*
                    $(BinaryOp::$function => Operands::Floats,)*
                }
            }

            /// The cost.
            pub const fn cost(self) -> Cost {
                match self {
                    $(BinaryOp::$variant => operator_cost!($cost),)*
                    $(BinaryOp::$function => Cost::$kind($count),)*
                }
            }

            /// How tightly it binds where it stands between its operands, as in Rust; `None` for operators that are called
            /// by name.
            pub const fn precedence(self) -> Option<u8> {
                match self {
                    $(BinaryOp::$variant => $precedence,)*
                    $(BinaryOp::$function => None,)*
                }
            }

            /// Whether it is commutative and, but for rounding, associative: a reduction may combine with it in any order.
            pub const fn is_associative(self) -> bool {
                match self {
                    $(BinaryOp::$variant => $associative,)*
                    $(BinaryOp::$function => false,)*
                }
            }

            /// The greatest error of a function that lowering expands into basic operations; `None` for basic operations.
            pub const fn error_bound(self) -> Option<ErrorBound> {
                match self {
                    $(BinaryOp::$variant => None,)*
                    $(BinaryOp::$function => Some(ErrorBound { single: $single, double: $double }),)*
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

crate::binary_functions! { define {
    /// Sum.
    Add "+" add Numbers Simple Some(6), true;
    /// Difference.
    Sub "-" sub Numbers Simple Some(6), false;
    /// Product.
    Mul "*" mul Numbers Simple Some(7), true;
    /// Quotient; truncated for integers.
    Div "/" div Numbers Division Some(7), false;
    /// Remainder with the sign of the dividend.
    Rem "%" rem Numbers Division Some(7), false;
    /// The smaller operand. A NaN is ignored when the other operand is a number.
    Min "min" min Numbers Comparison None, true;
    /// The larger operand. A NaN is ignored when the other operand is a number.
    Max "max" max Numbers Comparison None, true;
    /// The `minimum` of IEEE 754-2019: NaN where an operand is NaN, and −0 is smaller than +0.
    Minimum "minimum" minimum Floats Comparison None, true;
    /// The `maximum` of IEEE 754-2019: NaN where an operand is NaN, and +0 is larger than −0.
    Maximum "maximum" maximum Floats Comparison None, true;
    /// Equal.
    Eq "==" eq Any Comparison Some(1), false;
    /// Not equal.
    Ne "!=" ne Any Comparison Some(1), false;
    /// Less.
    Lt "<" lt Any Comparison Some(1), false;
    /// Less or equal.
    Le "<=" le Any Comparison Some(1), false;
    /// Greater.
    Gt ">" gt Any Comparison Some(1), false;
    /// Greater or equal.
    Ge ">=" ge Any Comparison Some(1), false;
    /// Logical and of `bool`, bitwise and of integers.
    And "&" and Bits Simple Some(4), true;
    /// Logical or of `bool`, bitwise or of integers.
    Or "|" or Bits Simple Some(2), true;
    /// Exclusive or.
    Xor "^" xor Bits Simple Some(3), true;
    /// Shift left; the count is taken modulo the width.
    Shl "<<" shl Integers Simple Some(5), false;
    /// Shift right, arithmetic for signed types; the count is taken modulo the width.
    Shr ">>" shr Integers Simple Some(5), false;
} }

impl BinaryOp {
    /// Whether lowering expands it into basic operations.
    pub const fn is_function(self) -> bool {
        self.error_bound().is_some()
    }

    /// Whether the result is a `bool` whatever the operands' type.
    pub const fn is_comparison(self) -> bool {
        matches!(self.operands(), Operands::Any)
    }

    /// The operator that is called by this name in the text form, and as a method in Rust: `x.max(y)`.
    pub fn from_method(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|op| op.precedence().is_none() && op.text() == name)
    }
}
