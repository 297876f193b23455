//! The results of operators, for every element type.

use super::{run, tensor, zeros};
use crate::dtype::DType;

/// Applies `value`, an expression of `x` and `y` of type `from`, and gives the results as `f64`.
#[track_caller]
fn apply(from: DType, to: DType, value: &str, x: &[f64], y: &[f64]) -> Vec<f64> {
    let text = format!(
        "kernel apply(N, in x: {from}[N], in y: {from}[N], out z: {to}[N]) {{
  for i in 0..N {{
    z[i] = {}
  }}
}}",
        value.replace('x', "x[i]").replace('y', "y[i]").replace("max[i]", "max").replace("ex[i]p", "exp")
    );
    let mut buffers = [tensor(from, x), tensor(from, y), zeros(to, &[x.len()])];
    run(&text, &[x.len() as i64], &[], &mut buffers).unwrap_or_else(|error| panic!("{error} in {text}"));
    buffers[2].to_f64_vec()
}

#[test]
fn integers_wrap_and_division_by_zero_gives_zero() {
    for (dtype, least, greatest) in [
        (DType::I8, -128.0, 127.0),
        (DType::U8, 0.0, 255.0),
        (DType::I16, -32768.0, 32767.0),
        (DType::U16, 0.0, 65535.0),
        (DType::I32, f64::from(i32::MIN), f64::from(i32::MAX)),
        (DType::U32, 0.0, f64::from(u32::MAX)),
    ] {
        let check = |value: &str, x: f64, y: f64, expected: f64| {
            assert_eq!(apply(dtype, dtype, value, &[x], &[y]), [expected], "{value} of {x}, {y} in {dtype}");
        };
        check("x + y", greatest, 1.0, least);
        check("x - y", least, 1.0, greatest);
        check("x * y", greatest, 2.0, if least == 0.0 { greatest - 1.0 } else { -2.0 });
        check("x / y", 7.0, 0.0, 0.0);
        check("x % y", 7.0, 0.0, 0.0);
        check("x / y", 7.0, 2.0, 3.0);
        check("mul_add(x, y, y)", 5.0, 3.0, 18.0);
        if least != 0.0 {
            check("x / y", least, -1.0, least);
            check("x / y", -7.0, 2.0, -3.0);
            check("x % y", -7.0, 2.0, -1.0);
            check("abs(x)", least, 0.0, least);
        }
    }
    assert_eq!(apply(DType::I64, DType::I64, "x / (y - y)", &[5.0], &[1.0]), [0.0]);
    assert_eq!(apply(DType::U64, DType::U64, "x / (y - y)", &[5.0], &[1.0]), [0.0]);
}

#[test]
fn the_largest_unsigned_integers_are_no_negative_ones() {
    for (dtype, greatest) in [(DType::U32, f64::from(u32::MAX)), (DType::U64, 18446744073709551615.0)] {
        // The greatest value is one below 0.
        let check = |value: &str, expected: f64| {
            assert_eq!(apply(dtype, dtype, value, &[0.0], &[1.0]), [expected], "{value} in {dtype}");
        };
        check("max(x - y, y)", greatest);
        check("min(x - y, y)", 1.0);
        check("(x - y) / (x - y)", 1.0);
        check("(x - y) % (y + y)", 1.0);
        check("(x - y) / (y + y) - (x - y >> y)", 0.0);
        let larger = apply(dtype, DType::Bool, "x - y > y", &[0.0], &[1.0]);
        assert_eq!(larger, [1.0], "{dtype}");
        assert_eq!(apply(dtype, DType::F64, "(x - y) as f64", &[0.0], &[1.0]), [greatest], "{dtype}");
    }
    assert_eq!(
        apply(DType::F64, DType::U64, "x as u64", &[1e30, -1.0], &[0.0; 2]),
        [18446744073709551615.0, 0.0]
    );
    assert_eq!(apply(DType::U64, DType::U64, "x + 18446744073709551615u64", &[5.0], &[0.0]), [4.0]);
}

#[test]
fn shifts_take_counts_modulo_the_width() {
    assert_eq!(apply(DType::I8, DType::I8, "x << y", &[1.0, 1.0], &[9.0, 7.0]), [2.0, -128.0]);
    assert_eq!(apply(DType::I8, DType::I8, "x >> y", &[-128.0, -1.0], &[1.0, 8.0]), [-64.0, -1.0]);
    assert_eq!(apply(DType::U8, DType::U8, "x >> y", &[128.0], &[15.0]), [1.0]);
    assert_eq!(apply(DType::I32, DType::I32, "x << y", &[3.0], &[33.0]), [6.0]);
    assert_eq!(apply(DType::I64, DType::I64, "x << y", &[3.0], &[64.0]), [3.0]);
}

#[test]
fn minimum_and_maximum_ignore_nan() {
    let (x, y) = ([1.0, f64::NAN, 3.0], [2.0, 5.0, f64::NAN]);
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        assert_eq!(apply(dtype, dtype, "min(x, y)", &x, &y), [1.0, 5.0, 3.0], "{dtype}");
        assert_eq!(apply(dtype, dtype, "max(x, y)", &x, &y), [2.0, 5.0, 3.0], "{dtype}");
    }
    assert_eq!(apply(DType::I8, DType::I8, "max(x, y)", &[-3.0], &[2.0]), [2.0]);
    assert_eq!(apply(DType::U8, DType::U8, "min(x, y)", &[200.0], &[3.0]), [3.0]);
}

#[test]
fn propagating_minimum_and_maximum_give_nan_and_order_zeros() {
    let (x, y) = ([1.0, f64::NAN, 3.0, 0.0, -0.0], [2.0, 5.0, f64::NAN, -0.0, 0.0]);
    let bits = |values: Vec<f64>| -> Vec<u64> {
        values.iter().map(|value| if value.is_nan() { u64::MAX } else { value.to_bits() }).collect()
    };
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let smaller = apply(dtype, dtype, "minimum(x, y)", &x, &y).to_vec();
        assert_eq!(bits(smaller), bits(vec![1.0, f64::NAN, f64::NAN, -0.0, -0.0]), "{dtype}");
        let larger = apply(dtype, dtype, "maximum(x, y)", &x, &y).to_vec();
        assert_eq!(bits(larger), bits(vec![2.0, f64::NAN, f64::NAN, 0.0, 0.0]), "{dtype}");
    }
}

#[test]
fn comparisons_with_nan_are_false_but_for_unequal() {
    for (op, expected) in [("<", 0.0), ("<=", 0.0), (">", 0.0), (">=", 0.0), ("==", 0.0), ("!=", 1.0)] {
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            let found = apply(dtype, DType::Bool, &format!("x {op} y"), &[f64::NAN], &[1.0]);
            assert_eq!(found, [expected], "NaN {op} 1 in {dtype}");
        }
    }
    let less = apply(DType::U8, DType::Bool, "x < y", &[200.0, 1.0], &[100.0, 2.0]);
    assert_eq!(less, [0.0, 1.0]);
}

#[test]
fn casts_are_those_of_rust() {
    let floats = [300.7, -1.5, f64::NAN, f64::INFINITY, -1e30];
    assert_eq!(apply(DType::F32, DType::I8, "x as i8", &floats, &floats), [127.0, -1.0, 0.0, 127.0, -128.0]);
    assert_eq!(apply(DType::F64, DType::U8, "x as u8", &floats, &floats), [255.0, 0.0, 0.0, 255.0, 0.0]);
    assert_eq!(apply(DType::I32, DType::I8, "x as i8", &[300.0], &[0.0]), [44.0]);
    assert_eq!(apply(DType::I8, DType::U8, "x as u8", &[-1.0], &[0.0]), [255.0]);
    assert_eq!(
        apply(DType::F32, DType::F16, "x as f16", &[1e6, 1.0 + 1.0 / 4096.0], &[0.0; 2]),
        [f64::INFINITY, 1.0]
    );
    assert_eq!(apply(DType::Bool, DType::F32, "x as f32", &[1.0, 0.0], &[0.0; 2]), [1.0, 0.0]);
    assert_eq!(apply(DType::I32, DType::F32, "x as f32", &[16_777_217.0], &[0.0]), [16_777_216.0]);
}

#[test]
fn bitcasts_keep_the_bits() {
    assert_eq!(
        apply(DType::F32, DType::I32, "bitcast<i32>(x)", &[-1.0], &[0.0]),
        [f64::from(0xbf80_0000u32 as i32)]
    );
    assert_eq!(apply(DType::I32, DType::F32, "bitcast<f32>(x)", &[f64::from(0x4000_0000)], &[0.0]), [2.0]);
    assert_eq!(apply(DType::I8, DType::U8, "bitcast<u8>(x)", &[-1.0], &[0.0]), [255.0]);
}

#[test]
fn each_type_rounds_to_itself() {
    assert_eq!(apply(DType::F16, DType::F16, "x + y", &[2048.0], &[1.0]), [2048.0]);
    assert_eq!(apply(DType::BF16, DType::BF16, "x + y", &[256.0], &[1.0]), [256.0]);
    assert_eq!(apply(DType::F32, DType::F32, "x + y", &[16_777_216.0], &[1.0]), [16_777_216.0]);
    assert_eq!(apply(DType::F64, DType::F64, "x + y", &[16_777_216.0], &[1.0]), [16_777_217.0]);
    let tiny = 1.0 + 2f64.powi(-12);
    let separate = apply(DType::F32, DType::F32, "x * x - y", &[tiny], &[1.0 + 2f64.powi(-11)]);
    let fused = apply(DType::F32, DType::F32, "mul_add(x, x, -y)", &[tiny], &[1.0 + 2f64.powi(-11)]);
    assert_eq!((separate, fused), (vec![0.0], vec![2f64.powi(-24)]));
}

#[test]
fn logic_and_rounding() {
    let (x, y) = ([0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0]);
    assert_eq!(apply(DType::Bool, DType::Bool, "x & y", &x, &y), [0.0, 0.0, 0.0, 1.0]);
    assert_eq!(apply(DType::Bool, DType::Bool, "x | y", &x, &y), [0.0, 1.0, 1.0, 1.0]);
    assert_eq!(apply(DType::Bool, DType::Bool, "!(x ^ y)", &x, &y), [1.0, 0.0, 0.0, 1.0]);
    assert_eq!(apply(DType::U8, DType::U8, "!x", &[1.0], &[0.0]), [254.0]);
    assert_eq!(apply(DType::F32, DType::F32, "round(x)", &[2.5, -2.5], &[0.0; 2]), [3.0, -3.0]);
    assert_eq!(apply(DType::F32, DType::F32, "round_ties_even(x)", &[2.5, 3.5], &[0.0; 2]), [2.0, 4.0]);
    assert_eq!(apply(DType::F64, DType::F64, "floor(x) + ceil(y) + trunc(x)", &[-1.5], &[0.2]), [-2.0]);
}
