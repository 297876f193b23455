//! Scalars of references, and constants of programs.

use half::{bf16, f16};
use tilewright_core::build::Value;
use tilewright_core::dtype::DType;
use tilewright_core::expr::BinaryOp;
use tilewright_core::math::scalar::{self, Wide};
use tilewright_core::tensor::Element;

/// A scalar of a definition: an element type, `usize` or `isize`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no scalar of a kernel",
    note = "scalars are the floats f16, bf16, f32 and f64, the integers of 8 to 64 bits, bool and usize"
)]
pub trait Scalar: Copy {
    /// How a program computes it.
    const DTYPE: DType;

    /// The value in a type that holds it exactly.
    fn widen(self) -> Wide;
}

macro_rules! scalars {
    ($($type:ident: $dtype:ident),*) => {$(
        impl Scalar for $type {
            const DTYPE: DType = DType::$dtype;

            #[inline]
            fn widen(self) -> Wide {
                scalar::Cast::widen(self)
            }
        }
    )*};
}

scalars! {
    bool: Bool, i8: I8, u8: U8, i16: I16, u16: U16, i32: I32, u32: U32, i64: I64, u64: U64,
    f16: F16, bf16: BF16, f32: F32, f64: F64
}

macro_rules! positions {
    ($($type:ident)*) => {$(
        impl Scalar for $type {
            const DTYPE: DType = DType::I64;

            #[inline]
            fn widen(self) -> Wide {
                Wide::Int(self as i64)
            }
        }
    )*};
}

positions!(usize isize);

/// `value as To`
#[inline]
pub fn cast<To: scalar::Cast, From: Scalar>(value: From) -> To {
    To::narrow(value.widen())
}

/// An element of a type that is a parameter of the definition, as a scalar.
#[derive(Clone, Copy, Debug)]
pub struct Of<T>(pub T);

impl<T: Element> Scalar for Of<T> {
    const DTYPE: DType = T::DTYPE;

    #[inline]
    fn widen(self) -> Wide {
        self.0.into_wide()
    }
}

/// `value as T` for a parameter `T`.
#[inline]
pub fn cast_to_parameter<T: Element, From: Scalar>(value: From) -> T {
    T::of_wide(value.widen())
}

/// A whole literal as an element.
#[inline]
pub fn integer_literal<T: Element>(value: i64) -> T {
    T::of_wide(Wide::Int(value))
}

/// A literal with a fraction as an element.
#[inline]
pub fn float_literal<T: Element>(value: f64) -> T {
    T::of_wide(Wide::Double(value))
}

/// A constant of the user's program, as a literal of its type.
pub fn value<S: Scalar>(constant: S) -> Value {
    match constant.widen() {
        Wide::Int(value) => Value::typed_int(S::DTYPE, value),
        Wide::Unsigned(value) => Value::typed_int(S::DTYPE, value as i64),
        Wide::Single(value) => Value::typed_float(S::DTYPE, f64::from(value)),
        Wide::Double(value) => Value::typed_float(S::DTYPE, value),
    }
}

/// A literal that is rounded to `f32` first.
pub fn single(value: f32) -> f64 {
    f64::from(value)
}

/// How many values `(start..end).step_by(step)` has; not positive when there are none.
pub fn steps(start: &Value, end: &Value, step: &Value) -> Value {
    let length = end.binary(BinaryOp::Sub, start.clone());
    let rounding = step.binary(BinaryOp::Sub, Value::typed_int(DType::I64, 1));
    length.binary(BinaryOp::Add, rounding).binary(BinaryOp::Div, step.clone())
}

/// The value of `(start..end).step_by(step)` at a position.
pub fn stepped_index(start: &Value, position: &Value, step: &Value) -> Value {
    start.binary(BinaryOp::Add, position.binary(BinaryOp::Mul, step.clone()))
}
