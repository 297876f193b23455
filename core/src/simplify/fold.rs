//! Constant folding, with exactly the meaning of the operators in [`crate::expr`].
//!
//! `None` means "not folded": transcendental functions, whose value is defined by their expansion;
//! results that are NaN, whose bits are not defined; minima and maxima of zeros of both signs; and
//! conversions that round twice through `f32` on some machines.

use crate::dtype::DType;
use crate::expr::{BinaryOp, Constant, Expr, UnaryOp};
use crate::math::scalar::Real;

/// `op a`
pub fn unary(op: UnaryOp, dtype: DType, a: Constant) -> Option<Expr> {
    match a {
        Constant::Int(value) => {
            let result = match op {
                UnaryOp::Neg if dtype.is_int() => value.wrapping_neg(),
                UnaryOp::Not => !value,
                UnaryOp::Abs if dtype.is_unsigned() => value,
                UnaryOp::Abs if dtype.is_int() => value.wrapping_abs(),
                _ => return None,
            };
            Some(Expr::int(dtype, dtype.wrap(result)))
        }
        Constant::Float(bits) => {
            let value = f64::from_bits(bits);
            let result = match op {
                UnaryOp::Neg => -value,
                UnaryOp::Abs => value.abs(),
                UnaryOp::Sqrt if dtype == DType::F64 => value.sqrt(),
                UnaryOp::Sqrt => f64::from((value as f32).sqrt()),
                UnaryOp::Floor => value.floor(),
                UnaryOp::Ceil => value.ceil(),
                UnaryOp::Round => value.round(),
                UnaryOp::RoundTiesEven => value.round_ties_even(),
                UnaryOp::Trunc => value.trunc(),
                _ => return None,
            };
            number(dtype, result)
        }
    }
}

/// A floating-point constant, unless it is NaN.
fn number(dtype: DType, value: f64) -> Option<Expr> {
    (!value.is_nan()).then(|| Expr::float(dtype, value))
}

/// `a op b` for operands of type `dtype`.
pub fn binary(op: BinaryOp, dtype: DType, a: Constant, b: Constant) -> Option<Expr> {
    match (a, b) {
        (Constant::Int(a), Constant::Int(b)) => int_binary(op, dtype, a, b),
        (Constant::Float(a), Constant::Float(b)) => {
            float_binary(op, dtype, f64::from_bits(a), f64::from_bits(b))
        }
        _ => None,
    }
}

fn int_binary(op: BinaryOp, dtype: DType, a: i64, b: i64) -> Option<Expr> {
    // Wide enough for the values of every type, so that order and quotient are those of the type.
    let value = |bits: i64| if dtype == DType::U64 { i128::from(bits as u64) } else { i128::from(bits) };
    let (a, b) = (value(a), value(b));
    // The count is taken modulo the width, which is a power of two.
    let count = (b as u32) & (dtype.bits() as u32 - 1);
    let result = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Div => a.checked_div(b).unwrap_or(0),
        BinaryOp::Rem => a.checked_rem(b).unwrap_or(0),
        BinaryOp::Min => a.min(b),
        BinaryOp::Max => a.max(b),
        BinaryOp::Eq => return Some(Expr::bool(a == b)),
        BinaryOp::Ne => return Some(Expr::bool(a != b)),
        BinaryOp::Lt => return Some(Expr::bool(a < b)),
        BinaryOp::Le => return Some(Expr::bool(a <= b)),
        BinaryOp::Gt => return Some(Expr::bool(a > b)),
        BinaryOp::Ge => return Some(Expr::bool(a >= b)),
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Shl if dtype.is_int() => a << count,
        BinaryOp::Shr if dtype.is_int() => a >> count,
        _ => return None,
    };
    Some(Expr::int(dtype, dtype.wrap(result as i64)))
}

fn float_binary(op: BinaryOp, dtype: DType, a: f64, b: f64) -> Option<Expr> {
    let compared = match op {
        BinaryOp::Eq => Some(a == b),
        BinaryOp::Ne => Some(a != b),
        BinaryOp::Lt => Some(a < b),
        BinaryOp::Le => Some(a <= b),
        BinaryOp::Gt => Some(a > b),
        BinaryOp::Ge => Some(a >= b),
        _ => None,
    };
    if let Some(result) = compared {
        return Some(Expr::bool(result));
    }
    if matches!(op, BinaryOp::Min | BinaryOp::Max) && a == b && a.to_bits() != b.to_bits() {
        return None;
    }
    let result = if dtype == DType::F64 {
        arithmetic_f64(op, a, b)?
    } else {
        f64::from(arithmetic_f32(op, a as f32, b as f32)?)
    };
    number(dtype, result)
}

macro_rules! arithmetic {
    ($name:ident, $float:ty) => {
        fn $name(op: BinaryOp, a: $float, b: $float) -> Option<$float> {
            Some(match op {
                BinaryOp::Add => a + b,
                BinaryOp::Sub => a - b,
                BinaryOp::Mul => a * b,
                BinaryOp::Div => a / b,
                BinaryOp::Rem => a % b,
                BinaryOp::Min => a.min(b),
                BinaryOp::Max => a.max(b),
                BinaryOp::Minimum => Real::minimum(a, b),
                BinaryOp::Maximum => Real::maximum(a, b),
                _ => return None,
            })
        }
    };
}

arithmetic!(arithmetic_f32, f32);
arithmetic!(arithmetic_f64, f64);

/// `a * b + c`, rounded once.
pub fn mul_add(dtype: DType, a: Constant, b: Constant, c: Constant) -> Option<Expr> {
    match (a, b, c) {
        (Constant::Int(a), Constant::Int(b), Constant::Int(c)) => {
            Some(Expr::int(dtype, dtype.wrap(a.wrapping_mul(b).wrapping_add(c))))
        }
        (Constant::Float(a), Constant::Float(b), Constant::Float(c)) => {
            let (a, b, c) = (f64::from_bits(a), f64::from_bits(b), f64::from_bits(c));
            let result = match dtype {
                DType::F64 => a.mul_add(b, c),
                _ => f64::from((a as f32).mul_add(b as f32, c as f32)),
            };
            number(dtype, result)
        }
        _ => None,
    }
}

/// `a as to`
pub fn cast(from: DType, to: DType, a: Constant) -> Option<Expr> {
    match a {
        Constant::Int(value) if to.is_int() => Some(Expr::int(to, to.wrap(value))),
        Constant::Int(bits) if to.is_float() => {
            let value = if from == DType::U64 { i128::from(bits as u64) } else { i128::from(bits) };
            // A 64-bit integer to `f32` rounds once; to a narrower float through `f32` it may round twice.
            let exact_in_f32 = value.unsigned_abs() <= 1 << f32::MANTISSA_DIGITS;
            match to {
                DType::F64 => Some(Expr::float(to, value as f64)),
                DType::F32 => Some(Expr::float(to, f64::from(value as f32))),
                _ => exact_in_f32.then(|| Expr::float(to, value as f64)),
            }
        }
        Constant::Float(bits) => {
            let value = f64::from_bits(bits);
            match to {
                DType::F32 | DType::F64 => number(to, value),
                _ if to.is_float() => {
                    let once = from != DType::F64 || f64::from(value as f32) == value;
                    if once { number(to, value) } else { None }
                }
                // Every float is exact in `f64`, and `as` saturates and turns NaN into 0.
                _ => {
                    let (least, greatest) = to.int_range().filter(|_| to.is_int())?;
                    let saturated = (value as i128).clamp(least, greatest);
                    Some(Expr::int(to, saturated as i64))
                }
            }
        }
        Constant::Int(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(value: i64) -> Constant {
        Constant::Int(value)
    }

    fn float(value: f64) -> Constant {
        Constant::float(value)
    }

    #[test]
    fn integers_wrap_at_their_width() {
        let cases = [
            (BinaryOp::Add, DType::I8, 127, 1, -128),
            (BinaryOp::Sub, DType::U8, 0, 1, 255),
            (BinaryOp::Mul, DType::I32, 1 << 20, 1 << 20, 0),
            (BinaryOp::Add, DType::I64, i64::MAX, 1, i64::MIN),
            (BinaryOp::Div, DType::I8, -128, -1, -128),
            (BinaryOp::Div, DType::I64, i64::MIN, -1, i64::MIN),
            (BinaryOp::Div, DType::I32, -7, 2, -3),
            (BinaryOp::Rem, DType::I32, -7, 2, -1),
            (BinaryOp::Div, DType::I32, 5, 0, 0),
            (BinaryOp::Rem, DType::I32, 5, 0, 0),
            (BinaryOp::Rem, DType::I64, i64::MIN, -1, 0),
            (BinaryOp::Shl, DType::I8, 1, 9, 2),
            (BinaryOp::Shl, DType::I32, 1, 31, i64::from(i32::MIN)),
            (BinaryOp::Shr, DType::I8, -128, 7, -1),
            (BinaryOp::Shr, DType::U8, 255, 7, 1),
            (BinaryOp::Shl, DType::I64, 1, 64, 1),
            (BinaryOp::Add, DType::U16, 65_535, 1, 0),
            (BinaryOp::Sub, DType::I16, -32_768, 1, 32_767),
            (BinaryOp::Div, DType::U64, -1, 2, i64::MAX),
            (BinaryOp::Max, DType::U64, -1, 2, -1),
            (BinaryOp::Shr, DType::U64, -1, 63, 1),
            (BinaryOp::Mul, DType::U64, -1, -1, 1),
            (BinaryOp::Shr, DType::U32, 0xFFFF_FFFF, 31, 1),
        ];
        for (op, dtype, a, b, expected) in cases {
            let folded = binary(op, dtype, int(a), int(b));
            assert_eq!(folded, Some(Expr::int(dtype, expected)), "{a} {} {b} in {dtype}", op.text());
        }
        assert_eq!(unary(UnaryOp::Neg, DType::I8, int(-128)), Some(Expr::int(DType::I8, -128)));
        assert_eq!(unary(UnaryOp::Not, DType::U8, int(1)), Some(Expr::int(DType::U8, 254)));
        assert_eq!(unary(UnaryOp::Not, DType::Bool, int(1)), Some(Expr::bool(false)));
        let sum = mul_add(DType::U8, int(16), int(16), int(7));
        assert_eq!(sum, Some(Expr::int(DType::U8, 7)));
    }

    #[test]
    fn floats_round_in_their_own_precision() {
        let tenth = f64::from(0.1f32);
        let sum = binary(BinaryOp::Add, DType::F32, float(tenth), float(f64::from(0.2f32)));
        assert_eq!(sum, Some(Expr::float(DType::F32, f64::from(0.1f32 + 0.2f32))));
        let sum = binary(BinaryOp::Add, DType::F16, float(2048.0), float(1.0));
        assert_eq!(sum, Some(Expr::float(DType::F16, 2048.0)), "2049 is no f16");
        let sum = binary(BinaryOp::Add, DType::BF16, float(256.0), float(1.0));
        assert_eq!(sum, Some(Expr::float(DType::BF16, 256.0)), "257 is no bf16");
        let fused = mul_add(DType::F32, float(tenth), float(10.0), float(-1.0));
        assert_eq!(fused, Some(Expr::float(DType::F32, f64::from(0.1f32.mul_add(10.0, -1.0)))));
        let root = unary(UnaryOp::Sqrt, DType::F32, float(2.0));
        assert_eq!(root, Some(Expr::float(DType::F32, f64::from(2f32.sqrt()))));
        let round = |op, value| unary(op, DType::F64, float(value)).and_then(|e| e.as_constant());
        assert_eq!(round(UnaryOp::Round, -2.5), Some(float(-3.0)));
        assert_eq!(round(UnaryOp::RoundTiesEven, -2.5), Some(float(-2.0)));
    }

    #[test]
    fn what_is_not_defined_to_the_bit_is_not_folded() {
        let nan = float(f64::NAN);
        assert_eq!(binary(BinaryOp::Div, DType::F32, float(0.0), float(0.0)), None);
        assert_eq!(binary(BinaryOp::Min, DType::F32, float(0.0), float(-0.0)), None);
        assert_eq!(unary(UnaryOp::Exp, DType::F32, float(0.0)), None);
        assert_eq!(unary(UnaryOp::Rsqrt, DType::F32, float(4.0)), None);
        assert_eq!(cast(DType::F64, DType::F16, float(1.0 + 1e-9)), None, "may round twice");
        assert_eq!(cast(DType::I64, DType::BF16, int((1 << 24) + 1)), None, "may round twice");
        let min = binary(BinaryOp::Min, DType::F32, nan, float(1.0));
        assert_eq!(min, Some(Expr::float(DType::F32, 1.0)), "a NaN is ignored");
        assert_eq!(binary(BinaryOp::Eq, DType::F32, nan, nan), Some(Expr::bool(false)));
    }

    #[test]
    fn casts_have_the_meaning_of_as() {
        let cases = [
            (DType::F32, DType::I8, float(300.0), 127),
            (DType::F32, DType::U8, float(-1.0), 0),
            (DType::F64, DType::I64, float(f64::NAN), 0),
            (DType::F64, DType::I32, float(-2.9), -2),
            (DType::I32, DType::U8, int(-1), 255),
            (DType::I64, DType::I8, int(200), -56),
            (DType::Bool, DType::I32, int(1), 1),
        ];
        for (from, to, value, expected) in cases {
            assert_eq!(cast(from, to, value), Some(Expr::int(to, expected)), "{value:?} from {from} to {to}");
        }
        let rounded = cast(DType::I64, DType::F32, int((1 << 24) + 1));
        assert_eq!(rounded, Some(Expr::float(DType::F32, 16_777_216.0)));
    }
}
