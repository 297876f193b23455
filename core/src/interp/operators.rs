//! The function of each operator, for each element type.

use crate::dtype::DType;
use crate::expr::{BinaryOp, Constant, UnaryOp};
use crate::interp::slot::{Slot, StoredE4M3FN, StoredE5M2, StoredInt4, StoredUInt4};
use crate::math::scalar::{self, Bits, Integer, Number, Real, cast};
use crate::tensor::{Element, narrow, with_element};

/// An operator on one register.
pub(super) type Unary = fn(u64) -> u64;
/// An operator on two registers.
pub(super) type Binary = fn(u64, u64) -> u64;
/// An operator on three registers.
pub(super) type Ternary = fn(u64, u64, u64) -> u64;
/// Reads the element at a position.
pub(super) type Read = fn(&[u8], usize) -> u64;
/// Writes the element at a position.
pub(super) type Write = fn(&mut [u8], usize, u64);

/// Runs one expression with `$T` bound to a type that has the bound, or gives `None` for the others.
macro_rules! with_type {
    ($dtype:expr, [$($variant:ident = $type:ty),*], $T:ident => $body:expr) => {
        match $dtype {
            $(DType::$variant => { type $T = $type; $body })*
            _ => None,
        }
    };
}

/// Runs one expression with `$T` bound to the type that holds elements of a [`DType`] in registers.
macro_rules! with_slot {
    ($dtype:expr, $T:ident => $body:expr) => {
        with_element!($dtype, $T => $body, else match $dtype {
            DType::Float8E4M3FN => { type $T = StoredE4M3FN; $body }
            DType::Float8E5M2 => { type $T = StoredE5M2; $body }
            DType::Int4 => { type $T = StoredInt4; $body }
            DType::UInt4 => { type $T = StoredUInt4; $body }
            element => unreachable!("{element} has an element type"),
        })
    };
}

macro_rules! with_real {
    ($dtype:expr, $T:ident => $body:expr) => {
        with_type!($dtype, [F16 = half::f16, BF16 = half::bf16, F32 = f32, F64 = f64], $T => $body)
    };
}

macro_rules! with_integer {
    ($dtype:expr, $T:ident => $body:expr) => {
        with_type!($dtype, [I8 = i8, U8 = u8, I16 = i16, U16 = u16, I32 = i32, U32 = u32, I64 = i64, U64 = u64], $T => $body)
    };
}

macro_rules! with_number {
    ($dtype:expr, $T:ident => $body:expr) => {
        with_real!($dtype, $T => $body).or_else(|| with_integer!($dtype, $T => $body))
    };
}

macro_rules! with_bits {
    ($dtype:expr, $T:ident => $body:expr) => {
        with_type!($dtype, [Bool = bool], $T => $body).or_else(|| with_integer!($dtype, $T => $body))
    };
}

/// The function on registers of a function on elements.
macro_rules! lift {
    ($function:path, $a:ident) => {
        |$a| $function(T::from_slot($a)).to_slot()
    };
    ($function:path, $a:ident, $b:ident) => {
        |$a, $b| $function(T::from_slot($a), T::from_slot($b)).to_slot()
    };
}

/// An operator on one operand, or `None` when the type does not have it.
pub(super) fn unary(op: UnaryOp, dtype: DType) -> Option<Unary> {
    match op {
        UnaryOp::Neg | UnaryOp::Abs => with_number!(dtype, T => number_unary::<T>(op)),
        UnaryOp::Not => with_bits!(dtype, T => Some(bits_not::<T>())),
        _ => with_real!(dtype, T => real_unary::<T>(op)),
    }
}

fn number_unary<T: Slot + Number>(op: UnaryOp) -> Option<Unary> {
    match op {
        UnaryOp::Neg => Some(lift!(Number::neg, a)),
        UnaryOp::Abs => Some(lift!(Number::abs, a)),
        _ => None,
    }
}

fn bits_not<T: Slot + Bits>() -> Unary {
    lift!(Bits::not, a)
}

macro_rules! real_unary {
    ({} $($(#[$doc:meta])* $variant:ident $name:ident $bounds:tt $kind:ident($count:literal);)*) => {
        fn real_unary<T: Slot + Real>(op: UnaryOp) -> Option<Unary> {
            Some(match op {
                UnaryOp::Sqrt => lift!(Real::sqrt, a),
                UnaryOp::Floor => lift!(Real::floor, a),
                UnaryOp::Ceil => lift!(Real::ceil, a),
                UnaryOp::Round => lift!(Real::round, a),
                UnaryOp::RoundTiesEven => lift!(Real::round_ties_even, a),
                UnaryOp::Trunc => lift!(Real::trunc, a),
                UnaryOp::Neg | UnaryOp::Not | UnaryOp::Abs => return None,
                $(UnaryOp::$variant => lift!(scalar::$name, a),)*
            })
        }
    };
}

macro_rules! real_binary {
    ({} $($(#[$doc:meta])* $variant:ident $name:ident $bounds:tt $kind:ident($count:literal);)*) => {
        fn real_binary<T: Slot + Real>(op: BinaryOp) -> Option<Binary> {
            match op {
                $(BinaryOp::$variant => Some(lift!(scalar::$name, a, b)),)*
                _ => None,
            }
        }
    };
}

tilewright_vocabulary::unary_functions!(real_unary {});
tilewright_vocabulary::binary_functions!(real_binary {});

/// An operator on two operands of one type, or `None` when the type does not have it.
pub(super) fn binary(op: BinaryOp, dtype: DType) -> Option<Binary> {
    match op {
        _ if op.is_comparison() => with_element!(dtype, T => comparison::<T>(op), else None),
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => with_bits!(dtype, T => bits_binary::<T>(op)),
        BinaryOp::Shl | BinaryOp::Shr => with_integer!(dtype, T => shift::<T>(op)),
        _ if op.is_function() => with_real!(dtype, T => real_binary::<T>(op)),
        BinaryOp::Min if dtype == DType::Bool => bits_binary::<bool>(BinaryOp::And),
        BinaryOp::Max if dtype == DType::Bool => bits_binary::<bool>(BinaryOp::Or),
        BinaryOp::Minimum | BinaryOp::Maximum => with_real!(dtype, T => extremum::<T>(op)),
        _ => with_number!(dtype, T => number_binary::<T>(op)),
    }
}

fn extremum<T: Slot + Real>(op: BinaryOp) -> Option<Binary> {
    Some(match op {
        BinaryOp::Minimum => lift!(Real::minimum, a, b),
        BinaryOp::Maximum => lift!(Real::maximum, a, b),
        _ => return None,
    })
}

fn comparison<T: Slot + PartialOrd>(op: BinaryOp) -> Option<Binary> {
    Some(match op {
        BinaryOp::Eq => |a, b| u64::from(T::from_slot(a) == T::from_slot(b)),
        BinaryOp::Ne => |a, b| u64::from(T::from_slot(a) != T::from_slot(b)),
        BinaryOp::Lt => |a, b| u64::from(T::from_slot(a) < T::from_slot(b)),
        BinaryOp::Le => |a, b| u64::from(T::from_slot(a) <= T::from_slot(b)),
        BinaryOp::Gt => |a, b| u64::from(T::from_slot(a) > T::from_slot(b)),
        BinaryOp::Ge => |a, b| u64::from(T::from_slot(a) >= T::from_slot(b)),
        _ => return None,
    })
}

fn bits_binary<T: Slot + Bits>(op: BinaryOp) -> Option<Binary> {
    Some(match op {
        BinaryOp::And => lift!(Bits::and, a, b),
        BinaryOp::Or => lift!(Bits::or, a, b),
        BinaryOp::Xor => lift!(Bits::xor, a, b),
        _ => return None,
    })
}

fn shift<T: Slot + Integer>(op: BinaryOp) -> Option<Binary> {
    Some(match op {
        BinaryOp::Shl => lift!(Integer::shl, a, b),
        BinaryOp::Shr => lift!(Integer::shr, a, b),
        _ => return None,
    })
}

fn number_binary<T: Slot + Number>(op: BinaryOp) -> Option<Binary> {
    Some(match op {
        BinaryOp::Add => lift!(Number::add, a, b),
        BinaryOp::Sub => lift!(Number::sub, a, b),
        BinaryOp::Mul => lift!(Number::mul, a, b),
        BinaryOp::Div => lift!(Number::div, a, b),
        BinaryOp::Rem => lift!(Number::rem, a, b),
        BinaryOp::Min => lift!(Number::min, a, b),
        BinaryOp::Max => lift!(Number::max, a, b),
        _ => return None,
    })
}

/// `a * b + c`, or `None` when the type does not have it.
pub(super) fn mul_add(dtype: DType) -> Option<Ternary> {
    fn of<T: Slot + Number>() -> Option<Ternary> {
        Some(|a, b, c| Number::mul_add(T::from_slot(a), T::from_slot(b), T::from_slot(c)).to_slot())
    }
    with_number!(dtype, T => of::<T>())
}

/// The conversion between two types.
pub(super) fn conversion(from: DType, to: DType) -> Unary {
    fn of<From: Slot, To: Slot>() -> Unary {
        |value| cast::<From, To>(From::from_slot(value)).to_slot()
    }
    fn from_type<From: Slot>(to: DType) -> Unary {
        with_slot!(to, T => of::<From, T>())
    }
    with_slot!(from, T => from_type::<T>(to))
}

/// How elements of a type are read and written.
pub(super) fn access(dtype: DType) -> (Read, Write) {
    with_slot!(dtype, T => (<T as Slot>::read as Read, <T as Slot>::write as Write))
}

/// The bits of a constant of a type.
pub(super) fn constant(dtype: DType, value: Constant) -> u64 {
    with_element!(dtype, T => <T as Element>::from_constant(value).to_slot(),
        else u64::from(narrow::encode(dtype, value.as_f64() as f32)))
}
