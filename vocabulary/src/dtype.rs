//! Element types.
//!
//! A [`DType`] names how an element is stored and computed with. Index arithmetic always uses
//! [`DType::I64`]; Rust's `usize` and `isize` in a kernel definition become `I64`.

use std::fmt;
use std::str::FromStr;

/// What the bits of an element mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One of two values.
    Bool,
    /// A signed integer in two's complement.
    Signed,
    /// An unsigned integer.
    Unsigned,
    /// A floating-point number.
    Float,
}

macro_rules! types {
    ($count:literal: $($(#[$doc:meta])* $variant:ident $name:literal $kind:ident $bits:literal;)*) => {
        /// The type of one element.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum DType {
            $($(#[$doc])* $variant,)*
        }

        impl DType {
            /// Every element type, in declaration order.
            pub const ALL: [DType; $count] = [$(DType::$variant),*];

            /// The name used in the text form and in Rust: `f32`, `bool`, ….
            pub const fn name(self) -> &'static str {
                match self {
                    $(DType::$variant => $name,)*
                }
            }

            /// What the bits mean.
            pub const fn kind(self) -> Kind {
                match self {
                    $(DType::$variant => Kind::$kind,)*
                }
            }

            /// The size of one stored element, in bits.
            pub const fn bits(self) -> usize {
                match self {
                    $(DType::$variant => $bits,)*
                }
            }
        }
    };
}

types! { 9:
    /// A byte that is 0 or 1.
    Bool "bool" Bool 8;
    /// 8-bit signed integer.
    I8 "i8" Signed 8;
    /// 8-bit unsigned integer.
    U8 "u8" Unsigned 8;
    /// 32-bit signed integer.
    I32 "i32" Signed 32;
    /// 64-bit signed integer, also the type of every index.
    I64 "i64" Signed 64;
    /// IEEE 754 binary16. Arithmetic is done in `f32` and rounded after each operation.
    F16 "f16" Float 16;
    /// bfloat16. Arithmetic is done in `f32` and rounded after each operation.
    BF16 "bf16" Float 16;
    /// IEEE 754 binary32.
    F32 "f32" Float 32;
    /// IEEE 754 binary64.
    F64 "f64" Float 64;
}

impl DType {
    /// The size of one stored element, in bytes.
    pub const fn bytes(self) -> usize {
        self.bits() / 8
    }

    /// Whether this is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), Kind::Float)
    }

    /// Whether this is an integer type ([`DType::Bool`] is not).
    pub const fn is_int(self) -> bool {
        matches!(self.kind(), Kind::Signed | Kind::Unsigned)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DType {
    type Err = UnknownDType;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        DType::ALL.into_iter().find(|dtype| dtype.name() == text).ok_or_else(|| UnknownDType(text.to_owned()))
    }
}

/// A name that is no element type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownDType(pub String);

impl fmt::Display for UnknownDType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = DType::ALL.map(DType::name).join(", ");
        write!(f, "unknown element type `{}`; expected one of {names}", self.0)
    }
}

impl std::error::Error for UnknownDType {}
