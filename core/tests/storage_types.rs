//! Elements that are only stored: conversions before and after lowering, which replaces them by bytes.

use tilewright_core::dtype::DType;
use tilewright_core::interp;
use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::Program;
use tilewright_core::tensor::{AnyTensor, Random};
use tilewright_core::verify::{Level, verify};

const STORED: [DType; 4] = [DType::Float8E4M3FN, DType::Float8E5M2, DType::Int4, DType::UInt4];

fn program(text: &str) -> Program {
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(program.to_string().parse::<Program>().unwrap().canonical(), program.canonical());
    program
}

/// `out[i] = value`, for each element of `x`.
fn map(input: DType, output: DType, value: &str) -> Program {
    program(&format!(
        "kernel map(N, in x: {input}[N], out y: {output}[N]) {{
           for i in 0..N {{
             block y(vi: spatial N = i) {{
               y[vi] = {value}
             }}
           }}
         }}"
    ))
}

/// Runs a program and its lowered form, compares the results, and gives them.
fn run(program: &Program, x: &AnyTensor, output: DType) -> AnyTensor {
    let flat = lower(program, &LowerOptions::default()).unwrap_or_else(|error| panic!("{error}\n{program}"));
    let is_stored = |buffer: &tilewright_core::program::Buffer| buffer.dtype.is_storage_only();
    assert!(!flat.buffers().any(|(_, buffer)| is_stored(buffer)), "{flat}");
    let len = x.len();
    let [before, after] = [program, &flat].map(|program| {
        let mut tensors = [x.clone(), AnyTensor::zeros(output, &[len]).unwrap()];
        interp::run(program, &[len as i64], &[], &mut tensors)
            .unwrap_or_else(|error| panic!("{error}\n{program}"));
        tensors[1].clone()
    });
    for (position, (a, b)) in before.to_f64_vec().iter().zip(after.to_f64_vec()).enumerate() {
        let is_same = a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        assert!(is_same, "element {position} is {a} before and {b} after lowering\n{flat}");
    }
    before
}

/// Every code of a type.
fn all_codes(dtype: DType) -> AnyTensor {
    let codes: Vec<u8> = (0..=u8::MAX).collect();
    let len = codes.len() * 8 / dtype.bits();
    let mut tensor = AnyTensor::zeros(dtype, &[len]).unwrap();
    tensor.bytes_mut().copy_from_slice(&codes);
    tensor
}

#[test]
fn every_code_becomes_its_number() {
    for dtype in STORED {
        let codes = all_codes(dtype);
        for output in [DType::F32, DType::F64, DType::BF16] {
            let found = run(&map(dtype, output, &format!("x[vi] as {output}")), &codes, output);
            for (found, expected) in found.to_f64_vec().into_iter().zip(codes.to_f64_vec()) {
                assert!(found == expected || (found.is_nan() && expected.is_nan()), "{dtype} to {output}");
            }
        }
        run(&map(dtype, DType::I32, "x[vi] as i32"), &codes, DType::I32);
        run(&map(dtype, DType::F32, "select(x[vi] as f32 < 1.0, x[vi], x[vi]) as f32"), &codes, DType::F32);
    }
}

/// Numbers around every number of a format and between two of them, and arbitrary ones.
fn numbers(dtype: DType) -> Vec<f64> {
    let mut numbers: Vec<f32> =
        vec![0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN_POSITIVE, 1e-42];
    let values: Vec<f32> = all_codes(dtype).to_f64_vec().into_iter().map(|value| value as f32).collect();
    for &value in values.iter().filter(|value| value.is_finite()) {
        let above = values
            .iter()
            .copied()
            .filter(|other| *other > value && other.is_finite())
            .fold(f32::MAX, f32::min);
        let middle = if above == f32::MAX { value * 1.03125 } else { value + (above - value) / 2.0 };
        for number in [value, middle] {
            numbers.extend([number.next_down(), number, number.next_up()]);
        }
    }
    let mut random = Random::new(1);
    numbers.extend((0..1000).map(|_| f32::from_bits(random.bits() as u32)));
    numbers.into_iter().map(f64::from).collect()
}

#[test]
fn numbers_become_the_nearest_floats() {
    for dtype in [DType::Float8E4M3FN, DType::Float8E5M2] {
        let numbers = numbers(dtype);
        for input in [DType::F32, DType::F64] {
            let x = AnyTensor::from_f64s(input, &numbers, &[numbers.len()]).unwrap();
            let found = run(&map(input, dtype, &format!("x[vi] as {dtype}")), &x, dtype);
            assert_eq!(found, AnyTensor::from_f64s(dtype, &numbers, &[numbers.len()]).unwrap(), "{dtype}");
        }
        let x = AnyTensor::random(DType::I32, &[100], 3).unwrap();
        run(&map(DType::I32, dtype, &format!("(x[vi] * 7i32) as {dtype}")), &x, dtype);
    }
}

#[test]
fn integers_of_four_bits_wrap_and_saturate() {
    for dtype in [DType::Int4, DType::UInt4] {
        let numbers = numbers(dtype);
        let x = AnyTensor::from_f64s(DType::F32, &numbers, &[numbers.len()]).unwrap();
        let found = run(&map(DType::F32, DType::F32, &format!("x[vi] as {dtype} as f32")), &x, DType::F32);
        let (least, greatest) = dtype.int_range().unwrap();
        for (found, number) in found.to_f64_vec().into_iter().zip(&numbers) {
            let expected =
                if number.is_nan() { 0.0 } else { number.trunc().clamp(least as f64, greatest as f64) };
            assert!((found - expected).abs() < 0.5, "{dtype} of {number} is {found}");
        }
        let x =
            AnyTensor::from_f64s(DType::I32, &(-40..40).map(f64::from).collect::<Vec<_>>(), &[80]).unwrap();
        let found = run(&map(DType::I32, DType::I32, &format!("x[vi] as {dtype} as i32")), &x, DType::I32);
        for (found, value) in found.to_f64_vec().into_iter().zip(-40..40) {
            assert_eq!(found as i64, dtype.wrap(value), "{dtype} of {value}");
        }
    }
}

/// Rows of five elements of 4 bits, so that some rows begin inside a byte.
#[test]
fn rows_may_begin_inside_a_byte() {
    let text = "kernel rows(M, in w: int4[M, 5], out y: f32[M, 5]) {
      for i in 0..M {
        for j in 0..5 {
          block y(vi: spatial M = i, vj: spatial 5 = j) {
            y[vi, vj] = w[vi, vj] as f32 * 0.5
          }
        }
      }
    }";
    let flat = lower(&program(text), &LowerOptions::default()).unwrap();
    let w = AnyTensor::from_f64s(
        DType::Int4,
        &(0..15).map(|n| f64::from(n % 16 - 8)).collect::<Vec<_>>(),
        &[3, 5],
    );
    let mut tensors = [w.unwrap(), AnyTensor::zeros(DType::F32, &[3, 5]).unwrap()];
    interp::run(&flat, &[3], &[], &mut tensors).unwrap_or_else(|error| panic!("{error}\n{flat}"));
    let expected: Vec<f64> = tensors[0].to_f64_vec().into_iter().map(|value| value * 0.5).collect();
    assert_eq!(tensors[1].to_f64_vec(), expected);
}

#[test]
fn elements_that_share_bytes_cannot_be_stored() {
    let error = lower(&map(DType::F32, DType::Int4, "x[vi] as int4"), &LowerOptions::default()).unwrap_err();
    let message = error.to_string();
    assert!(message.starts_with("buffer `y` of int4 cannot be stored to"), "{message}");
}

#[test]
fn programs_do_not_compute_with_elements_that_are_only_stored() {
    for (dtype, value) in [
        (DType::Float8E5M2, "(x[vi] + x[vi]) as f32"),
        (DType::Int4, "select(x[vi] < x[vi], 1.0, 0.0)"),
        (DType::Float8E4M3FN, "max(x[vi], x[vi]) as f32"),
    ] {
        let errors = verify(&map(dtype, DType::F32, value), Level::Blocks).unwrap_err();
        assert!(errors.to_string().contains(dtype.name()), "{errors}");
    }
    let flat = verify(&map(DType::Int4, DType::F32, "x[vi] as f32"), Level::Flat).unwrap_err().to_string();
    assert!(flat.contains("buffer `x` is of type int4; level `flat` has bytes instead"), "{flat}");
    assert!(flat.contains("a value is of type int4"), "{flat}");
    let scalar = program(
        "kernel f(s: float8_e5m2, out y: f32[1]) { for i in 0..1 { block y(v: spatial 1 = i) { y[v] = s as f32 } } }",
    );
    let errors = verify(&scalar, Level::Blocks).unwrap_err();
    assert!(errors.to_string().contains("a scalar cannot be of type float8_e5m2"), "{errors}");
}
