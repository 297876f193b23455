//! The types of elements of host tensors.
//!
//! Models also carry strings, which no kernel computes with: [`ElementType`] is [`tilewright_core::dtype::DType`] with
//! strings.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use half::{bf16, f16};
use tilewright_core::dtype::DType;

use crate::tensor::buffer::Buffer;
use crate::tensor::small::{F4E2M1, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0, I2, I4, Small, U2, U4};

macro_rules! element_types {
    ($count:literal: $($variant:ident $name:literal $type:ty,)*) => {
        /// The type of one element of a [`HostTensor`](crate::tensor::HostTensor).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs)]
        pub enum ElementType {
            $($variant,)*
        }

        impl ElementType {
            /// Every type, in declaration order.
            pub const ALL: [ElementType; $count] = [$(ElementType::$variant),*];

            /// The name used in the text form: `f32`, `bool`, `string`, ….
            pub const fn name(self) -> &'static str {
                match self {
                    $(ElementType::$variant => $name,)*
                }
            }
        }

        /// The elements of a tensor in row-major order. Clones share them.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)]
        pub enum Elements {
            $($variant(Arc<Buffer<$type>>),)*
        }

        impl Elements {
            /// Whether these are the very same elements as others.
            pub(super) fn is_same(&self, other: &Self) -> bool {
                match (self, other) {
                    $((Elements::$variant(own), Elements::$variant(other)) => Arc::ptr_eq(own, other),)*
                    _ => false,
                }
            }
        }

        $(impl Element for $type {
            const TYPE: ElementType = ElementType::$variant;

            fn wrap(elements: Buffer<Self>) -> Elements {
                Elements::$variant(Arc::new(elements))
            }

            fn view(elements: &Elements) -> Option<&Arc<Buffer<Self>>> {
                match elements {
                    Elements::$variant(elements) => Some(elements),
                    _ => None,
                }
            }
        })*
    };
}

element_types! { 24:
    Bool "bool" bool,
    I8 "i8" i8,
    I16 "i16" i16,
    I32 "i32" i32,
    I64 "i64" i64,
    U8 "u8" u8,
    U16 "u16" u16,
    U32 "u32" u32,
    U64 "u64" u64,
    F16 "f16" f16,
    BF16 "bf16" bf16,
    F32 "f32" f32,
    F64 "f64" f64,
    String "string" Arc<str>,
    I2 "i2" I2,
    U2 "u2" U2,
    I4 "i4" I4,
    U4 "u4" U4,
    F4E2M1 "f4e2m1" F4E2M1,
    F8E4M3FN "f8e4m3fn" F8E4M3FN,
    F8E4M3FNUZ "f8e4m3fnuz" F8E4M3FNUZ,
    F8E5M2 "f8e5m2" F8E5M2,
    F8E5M2FNUZ "f8e5m2fnuz" F8E5M2FNUZ,
    F8E8M0 "f8e8m0" F8E8M0,
}

/// Runs one expression with `$T` bound to the Rust type of an [`ElementType`] of a few bits; `$otherwise` for others.
macro_rules! with_small {
    ($element:expr, $T:ident => $body:expr, else $otherwise:expr) => {
        $crate::tensor::with_listed!($element, $T => $body, [
            I2: $crate::tensor::small::I2, U2: $crate::tensor::small::U2,
            I4: $crate::tensor::small::I4, U4: $crate::tensor::small::U4,
            F4E2M1: $crate::tensor::small::F4E2M1,
            F8E4M3FN: $crate::tensor::small::F8E4M3FN, F8E4M3FNUZ: $crate::tensor::small::F8E4M3FNUZ,
            F8E5M2: $crate::tensor::small::F8E5M2, F8E5M2FNUZ: $crate::tensor::small::F8E5M2FNUZ,
            F8E8M0: $crate::tensor::small::F8E8M0,
        ] else $otherwise)
    };
}
pub(crate) use with_small;

impl ElementType {
    /// The type of such elements in kernels; `None` for strings and for elements of a few bits.
    pub const fn dtype(self) -> Option<DType> {
        Some(match self {
            ElementType::Bool => DType::Bool,
            ElementType::I8 => DType::I8,
            ElementType::I16 => DType::I16,
            ElementType::I32 => DType::I32,
            ElementType::I64 => DType::I64,
            ElementType::U8 => DType::U8,
            ElementType::U16 => DType::U16,
            ElementType::U32 => DType::U32,
            ElementType::U64 => DType::U64,
            ElementType::F16 => DType::F16,
            ElementType::BF16 => DType::BF16,
            ElementType::F32 => DType::F32,
            ElementType::F64 => DType::F64,
            _ => return None,
        })
    }

    /// The type of elements that kernels have as such; `None` for storage types, which models do not have.
    pub fn of_dtype(dtype: DType) -> Option<Self> {
        let all = [
            ElementType::Bool,
            ElementType::I8,
            ElementType::I16,
            ElementType::I32,
            ElementType::I64,
            ElementType::U8,
            ElementType::U16,
            ElementType::U32,
            ElementType::U64,
            ElementType::F16,
            ElementType::BF16,
            ElementType::F32,
            ElementType::F64,
        ];
        all.into_iter().find(|element| element.dtype() == Some(dtype))
    }

    /// Whether this is a floating-point type.
    pub const fn is_float(self) -> bool {
        let is_small = with_small!(self, T => <T as Small>::IS_FLOAT, else false);
        is_small || matches!(self, ElementType::F16 | ElementType::BF16 | ElementType::F32 | ElementType::F64)
    }

    /// Whether this is an integer type; truth values are none.
    pub const fn is_integer(self) -> bool {
        !self.is_float() && !matches!(self, ElementType::Bool | ElementType::String)
    }

    /// Whether this is an integer type without negative values.
    pub const fn is_unsigned(self) -> bool {
        use ElementType as E;
        matches!(self, E::U2 | E::U4 | E::U8 | E::U16 | E::U32 | E::U64)
    }

    /// The bits of an element of fewer than 8 bits, or of a float of 8 bits; `None` for others.
    pub const fn small_bits(self) -> Option<u32> {
        with_small!(self, T => Some(<T as Small>::BITS), else None)
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no element type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown element type `{0}`")]
pub struct UnknownElementType(pub String);

impl FromStr for ElementType {
    type Err = UnknownElementType;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = ElementType::ALL.into_iter().find(|element| element.name() == text);
        found.ok_or_else(|| UnknownElementType(text.to_owned()))
    }
}

/// A Rust type that elements can have.
pub trait Element: Clone + Default + PartialEq + PartialOrd + fmt::Debug + Send + Sync + 'static {
    /// The same type as a value.
    const TYPE: ElementType;

    /// Wraps elements.
    fn wrap(elements: Buffer<Self>) -> Elements;

    /// The elements, if they are of this type.
    fn view(elements: &Elements) -> Option<&Arc<Buffer<Self>>>;
}

/// Runs one expression with the typed elements bound to a name, whatever their type.
macro_rules! with_elements {
    ($elements:expr, $values:ident => $body:expr) => {
        match $elements {
            $crate::tensor::Elements::Bool($values) => $body,
            $crate::tensor::Elements::I8($values) => $body,
            $crate::tensor::Elements::I16($values) => $body,
            $crate::tensor::Elements::I32($values) => $body,
            $crate::tensor::Elements::I64($values) => $body,
            $crate::tensor::Elements::U8($values) => $body,
            $crate::tensor::Elements::U16($values) => $body,
            $crate::tensor::Elements::U32($values) => $body,
            $crate::tensor::Elements::U64($values) => $body,
            $crate::tensor::Elements::F16($values) => $body,
            $crate::tensor::Elements::BF16($values) => $body,
            $crate::tensor::Elements::F32($values) => $body,
            $crate::tensor::Elements::F64($values) => $body,
            $crate::tensor::Elements::String($values) => $body,
            $crate::tensor::Elements::I2($values) => $body,
            $crate::tensor::Elements::U2($values) => $body,
            $crate::tensor::Elements::I4($values) => $body,
            $crate::tensor::Elements::U4($values) => $body,
            $crate::tensor::Elements::F4E2M1($values) => $body,
            $crate::tensor::Elements::F8E4M3FN($values) => $body,
            $crate::tensor::Elements::F8E4M3FNUZ($values) => $body,
            $crate::tensor::Elements::F8E5M2($values) => $body,
            $crate::tensor::Elements::F8E5M2FNUZ($values) => $body,
            $crate::tensor::Elements::F8E8M0($values) => $body,
        }
    };
}
pub(crate) use with_elements;

/// Runs one expression with `$T` bound to the Rust type of an [`ElementType`] that is in the list; `$otherwise` for others.
macro_rules! with_listed {
    ($element:expr, $T:ident => $body:expr, [$($variant:ident: $type:ty),* $(,)?] else $otherwise:expr) => {
        match $element {
            $($crate::tensor::ElementType::$variant => {
                type $T = $type;
                $body
            })*
            _ => $otherwise,
        }
    };
}
pub(crate) use with_listed;

/// Runs one expression with `$T` bound to the Rust type of an [`ElementType`] that is a number; `$otherwise` for others.
macro_rules! with_number {
    ($element:expr, $T:ident => $body:expr, else $otherwise:expr) => {
        $crate::tensor::with_listed!($element, $T => $body, [
            I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64,
            F16: half::f16, BF16: half::bf16, F32: f32, F64: f64,
        ] else $otherwise)
    };
}
pub(crate) use with_number;

/// As [`with_number`] for floating-point types only.
macro_rules! with_float {
    ($element:expr, $T:ident => $body:expr, else $otherwise:expr) => {
        $crate::tensor::with_listed!($element, $T => $body, [
            F16: half::f16, BF16: half::bf16, F32: f32, F64: f64,
        ] else $otherwise)
    };
}
pub(crate) use with_float;

/// Runs one expression with `$T` bound to the Rust type of any [`ElementType`].
macro_rules! with_element {
    ($element:expr, $T:ident => $body:expr) => {{
        match $element {
            $crate::tensor::ElementType::Bool => { type $T = bool; $body }
            $crate::tensor::ElementType::String => { type $T = std::sync::Arc<str>; $body }
            other => $crate::tensor::with_small!(other, $T => $body, else
                $crate::tensor::with_number!(other, $T => $body, else unreachable!("all others are above"))),
        }
    }};
}
pub(crate) use with_element;
