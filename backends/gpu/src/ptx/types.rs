//! Types and classes of registers.

use std::fmt;

macro_rules! types {
    ($($variant:ident $name:literal $class:ident;)*) => {
        /// The type that an instruction names.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Type { $($variant),* }

        impl Type {
            /// The name, without the dot.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Type::$variant => $name),* }
            }

            /// The class of the registers that hold its values.
            pub(crate) const fn class(self) -> Class {
                match self { $(Type::$variant => Class::$class),* }
            }
        }
    };
}

types! {
    Pred "pred" Predicate;
    U8 "u8" Word;
    S8 "s8" Word;
    B16 "b16" Half;
    U16 "u16" Half;
    S16 "s16" Half;
    F16 "f16" Half;
    Bf16 "bf16" Half;
    Tf32 "tf32" Word;
    B32 "b32" Word;
    U32 "u32" Word;
    S32 "s32" Word;
    B64 "b64" Double;
    U64 "u64" Double;
    S64 "s64" Double;
    F32 "f32" Float;
    F64 "f64" DoubleFloat;
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A class of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Class {
    /// One bit.
    Predicate,
    /// 16 bits.
    Half,
    /// 32 bits, an integer.
    Word,
    /// 64 bits, an integer.
    Double,
    /// An `f32`.
    Float,
    /// An `f64`.
    DoubleFloat,
}

impl Class {
    /// Every class.
    pub(crate) const ALL: [Class; 6] =
        [Class::Predicate, Class::Half, Class::Word, Class::Double, Class::Float, Class::DoubleFloat];

    /// The type that registers are declared with.
    pub(crate) const fn declaration(self) -> &'static str {
        match self {
            Class::Predicate => "pred",
            Class::Half => "b16",
            Class::Word => "b32",
            Class::Double => "b64",
            Class::Float => "f32",
            Class::DoubleFloat => "f64",
        }
    }

    /// The prefix of register names.
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Class::Predicate => "%p",
            Class::Half => "%h",
            Class::Word => "%r",
            Class::Double => "%rd",
            Class::Float => "%f",
            Class::DoubleFloat => "%fd",
        }
    }
}
