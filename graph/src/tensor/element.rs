//! The types of elements of host tensors.
//!
//! Wider than [`tilewright_core::dtype::DType`], which lists the types that kernels compute with: models also carry
//! strings and integers of other widths, mostly around shapes and indices.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use half::{bf16, f16};
use tilewright_core::dtype::DType;

/// The type of one element of a [`HostTensor`](crate::tensor::HostTensor).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum ElementType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    BF16,
    F32,
    F64,
    String,
}

impl ElementType {
    /// Every type, in declaration order.
    pub const ALL: [ElementType; 14] = [
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
        ElementType::String,
    ];

    /// The name used in the text form: `f32`, `bool`, `string`, ….
    pub const fn name(self) -> &'static str {
        match self {
            ElementType::Bool => "bool",
            ElementType::I8 => "i8",
            ElementType::I16 => "i16",
            ElementType::I32 => "i32",
            ElementType::I64 => "i64",
            ElementType::U8 => "u8",
            ElementType::U16 => "u16",
            ElementType::U32 => "u32",
            ElementType::U64 => "u64",
            ElementType::F16 => "f16",
            ElementType::BF16 => "bf16",
            ElementType::F32 => "f32",
            ElementType::F64 => "f64",
            ElementType::String => "string",
        }
    }

    /// The type with which kernels compute with such elements, where there is one.
    pub const fn dtype(self) -> Option<DType> {
        Some(match self {
            ElementType::Bool => DType::Bool,
            ElementType::I8 => DType::I8,
            ElementType::U8 => DType::U8,
            ElementType::I32 => DType::I32,
            ElementType::I64 => DType::I64,
            ElementType::F16 => DType::F16,
            ElementType::BF16 => DType::BF16,
            ElementType::F32 => DType::F32,
            ElementType::F64 => DType::F64,
            ElementType::I16
            | ElementType::U16
            | ElementType::U32
            | ElementType::U64
            | ElementType::String => {
                return None;
            }
        })
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

/// The elements of a tensor in row-major order. Clones share them.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Elements {
    Bool(Arc<Vec<bool>>),
    I8(Arc<Vec<i8>>),
    I16(Arc<Vec<i16>>),
    I32(Arc<Vec<i32>>),
    I64(Arc<Vec<i64>>),
    U8(Arc<Vec<u8>>),
    U16(Arc<Vec<u16>>),
    U32(Arc<Vec<u32>>),
    U64(Arc<Vec<u64>>),
    F16(Arc<Vec<f16>>),
    BF16(Arc<Vec<bf16>>),
    F32(Arc<Vec<f32>>),
    F64(Arc<Vec<f64>>),
    String(Arc<Vec<Arc<str>>>),
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

macro_rules! elements {
    ($($variant:ident: $type:ty),* $(,)?) => {
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

elements! {
    Bool: bool, I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64,
    F16: f16, BF16: bf16, F32: f32, F64: f64, String: Arc<str>,
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

/// Runs one expression with `$T` bound to the Rust type of an [`ElementType`] that is a number; `$otherwise` for others.
macro_rules! with_number {
    ($element:expr, $T:ident => $body:expr, else $otherwise:expr) => {{
        use $crate::tensor::ElementType as E;
        match $element {
            E::I8 => {
                type $T = i8;
                $body
            }
            E::I16 => {
                type $T = i16;
                $body
            }
            E::I32 => {
                type $T = i32;
                $body
            }
            E::I64 => {
                type $T = i64;
                $body
            }
            E::U8 => {
                type $T = u8;
                $body
            }
            E::U16 => {
                type $T = u16;
                $body
            }
            E::U32 => {
                type $T = u32;
                $body
            }
            E::U64 => {
                type $T = u64;
                $body
            }
            E::F16 => {
                type $T = half::f16;
                $body
            }
            E::BF16 => {
                type $T = half::bf16;
                $body
            }
            E::F32 => {
                type $T = f32;
                $body
            }
            E::F64 => {
                type $T = f64;
                $body
            }
            E::Bool | E::String => $otherwise,
        }
    }};
}
pub(crate) use with_number;

/// As [`with_number`] for floating-point types only.
macro_rules! with_float {
    ($element:expr, $T:ident => $body:expr, else $otherwise:expr) => {{
        use $crate::tensor::ElementType as E;
        match $element {
            E::F16 => {
                type $T = half::f16;
                $body
            }
            E::BF16 => {
                type $T = half::bf16;
                $body
            }
            E::F32 => {
                type $T = f32;
                $body
            }
            E::F64 => {
                type $T = f64;
                $body
            }
            _ => $otherwise,
        }
    }};
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
