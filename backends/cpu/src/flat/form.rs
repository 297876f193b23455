//! How elements are held in registers, whichever code generator fills them.

use tilewright_core::dtype::DType;

/// How elements are held in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    /// A boolean, which each code generator represents in its own way.
    Bool,
    /// An integer of up to 32 bits, extended to 32 according to its type.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// A float of up to 32 bits; the narrower ones are exact.
    Float32,
    /// A 64-bit float.
    Float64,
}

/// The arm of a storage type: lowering replaces it by bytes, and the verifier refuses it at the `Flat` level.
pub(crate) const fn no_storage_type() -> ! {
    panic!("a program at the `Flat` level has no elements that are only stored")
}

impl Form {
    /// The form in which elements of a type are held.
    pub(crate) const fn of(dtype: DType) -> Form {
        match dtype {
            DType::Bool => Form::Bool,
            DType::I8 | DType::U8 | DType::I16 | DType::U16 | DType::I32 | DType::U32 => Form::Int32,
            DType::I64 | DType::U64 => Form::Int64,
            DType::F16 | DType::BF16 | DType::F32 => Form::Float32,
            DType::F64 => Form::Float64,
            DType::Float8E4M3FN | DType::Float8E5M2 | DType::Int4 | DType::UInt4 => no_storage_type(),
        }
    }

    /// Whether a lane takes 64 bits.
    pub(crate) const fn is_wide(self) -> bool {
        matches!(self, Form::Int64 | Form::Float64)
    }
}
