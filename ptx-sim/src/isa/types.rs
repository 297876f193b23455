//! Scalar types of PTX.

use std::fmt;

/// To which class of values a type belongs; operands are compatible by class and size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Bits,
    Signed,
    Unsigned,
    Float,
    Predicate,
}

macro_rules! types {
    ($($variant:ident $name:literal $bits:literal $class:ident;)*) => {
        /// A scalar or packed type.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub(crate) enum Type { $($variant),* }

        impl Type {
            /// The type with this name, without the dot.
            pub(crate) fn named(name: &str) -> Option<Type> {
                Some(match name { $($name => Type::$variant,)* _ => return None })
            }

            /// Its name, without the dot.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Type::$variant => $name),* }
            }

            /// How many bits a value has; a predicate counts as one.
            pub(crate) fn bits(self) -> u32 {
                match self { $(Type::$variant => $bits),* }
            }

            /// The class of its values.
            pub(crate) fn class(self) -> Class {
                match self { $(Type::$variant => Class::$class),* }
            }
        }
    };
}

types! {
    U8 "u8" 8 Unsigned;
    U16 "u16" 16 Unsigned;
    U32 "u32" 32 Unsigned;
    U64 "u64" 64 Unsigned;
    S8 "s8" 8 Signed;
    S16 "s16" 16 Signed;
    S32 "s32" 32 Signed;
    S64 "s64" 64 Signed;
    B8 "b8" 8 Bits;
    B16 "b16" 16 Bits;
    B32 "b32" 32 Bits;
    B64 "b64" 64 Bits;
    B128 "b128" 128 Bits;
    F16 "f16" 16 Float;
    F16x2 "f16x2" 32 Float;
    Bf16 "bf16" 16 Float;
    Bf16x2 "bf16x2" 32 Float;
    Tf32 "tf32" 32 Float;
    F32 "f32" 32 Float;
    F64 "f64" 64 Float;
    E4m3 "e4m3" 8 Float;
    E5m2 "e5m2" 8 Float;
    E4m3x2 "e4m3x2" 16 Bits;
    E5m2x2 "e5m2x2" 16 Bits;
    U16x2 "u16x2" 32 Unsigned;
    S16x2 "s16x2" 32 Signed;
    U4 "u4" 4 Unsigned;
    S4 "s4" 4 Signed;
    B1 "b1" 1 Bits;
    Pred "pred" 1 Predicate;
}

impl Type {
    /// Bytes of a value in memory; predicates have none.
    pub(crate) fn bytes(self) -> u32 {
        self.bits() / 8
    }

    /// Whether values are integers with a sign.
    pub(crate) fn is_signed(self) -> bool {
        self.class() == Class::Signed
    }

    /// Whether values are floating-point numbers.
    pub(crate) fn is_float(self) -> bool {
        self.class() == Class::Float
    }

    /// The integer type of twice the width: what `.wide` gives.
    pub(crate) fn widened(self) -> Option<Type> {
        Some(match self {
            Type::U16 => Type::U32,
            Type::U32 => Type::U64,
            Type::S16 => Type::S32,
            Type::S32 => Type::S64,
            _ => return None,
        })
    }

    /// Whether a register that was declared with this type may be an operand of an instruction's type `wanted`.
    /// Sizes agree, and the classes too unless one of them is bits; signs of integers do not matter, and the narrow floating-point
    /// types are declared as bits as often as by name.
    pub(crate) fn fits(self, wanted: Type) -> bool {
        use Class::{Bits, Float, Predicate, Signed, Unsigned};
        if self.bits() != wanted.bits() {
            return false;
        }
        match (self.class(), wanted.class()) {
            (Predicate, other) | (other, Predicate) => other == Predicate,
            (Bits, _) | (_, Bits) => true,
            (Float, Float) | (Signed | Unsigned, Signed | Unsigned) => true,
            _ => false,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".{}", self.name())
    }
}
