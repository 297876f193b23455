//! The types of elements of host tensors.
//!
//! Models also carry strings, which no kernel computes with: [`ElementType`] is [`tilewright_core::dtype::DType`] with
//! strings.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use half::{bf16, f16};
use tilewright_core::dtype::DType;

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
            $($variant(Arc<Vec<$type>>),)*
        }

        $(impl Element for $type {
            const TYPE: ElementType = ElementType::$variant;

            fn wrap(elements: Vec<Self>) -> Elements {
                Elements::$variant(Arc::new(elements))
            }

            fn view(elements: &Elements) -> Option<&Arc<Vec<Self>>> {
                match elements {
                    Elements::$variant(elements) => Some(elements),
                    _ => None,
                }
            }
        })*
    };
}

element_types! { 14:
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
}

impl ElementType {
    /// The type of such elements in kernels; `None` for strings.
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
            ElementType::String => return None,
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
        matches!(self, ElementType::F16 | ElementType::BF16 | ElementType::F32 | ElementType::F64)
    }

    /// Whether this is an integer type; truth values are none.
    pub const fn is_integer(self) -> bool {
        !self.is_float() && !matches!(self, ElementType::Bool | ElementType::String)
    }

    /// Whether this is an integer type without negative values.
    pub const fn is_unsigned(self) -> bool {
        matches!(self, ElementType::U8 | ElementType::U16 | ElementType::U32 | ElementType::U64)
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
    fn wrap(elements: Vec<Self>) -> Elements;

    /// The elements, if they are of this type.
    fn view(elements: &Elements) -> Option<&Arc<Vec<Self>>>;
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
            number => $crate::tensor::with_number!(number, $T => $body, else unreachable!("bool and string are above")),
        }
    }};
}
pub(crate) use with_element;
