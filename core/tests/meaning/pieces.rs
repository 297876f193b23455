//! Products formed from pieces, and of rounded factors, are as exact as promised, whatever is done to the blocks afterwards.
//!
//! Only here does a schedule change results; how far they may be off is what [`tilewright_core::accuracy`] says.

use std::sync::Arc;

use tilewright_core::accuracy::{PieceProducts, ROUNDED_FACTORS};
use tilewright_core::lower::{LowerError, LowerOptions, lower, lower_to_loops};
use tilewright_core::program::Program;
use tilewright_core::schedule::{Rng, Schedule};
use tilewright_core::target::Target;
use tilewright_core::tensor::AnyTensor;

use crate::{execute, steps};

const PRODUCT: &str = "
kernel product(M, N, K, in a: f32[M, K], in b: f32[K, N], out c: f32[M, N]) accuracy 0.01 {
  for i in 0..M { for j in 0..N { for k in 0..K {
    block c(vi: spatial M = i, vj: spatial N = j, vk: reduce K = k) {
      init { c[vi, vj] = 0.0 }
      c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
    }
  } } }
}";

const DIMS: &[[i64; 3]] = &[[1, 1, 1], [3, 5, 7], [2, 3, 16], [4, 1, 13], [2, 2, 0]];

/// Elements of exponents within a range of 80; some are such that pieces are as large as they can be, and some cancel their
/// neighbours.
fn elements(count: usize, random: &mut Rng) -> Vec<f64> {
    let mut made: Vec<f32> = Vec::new();
    for position in 0..count {
        let bits = random.next_u64() as u32;
        let low = if bits & 1 == 0 { bits >> 7 & 0xFFFF } else { 0x7FFF + (bits >> 1 & 3) };
        let exponent = 87 + bits.rotate_left(9) % 80;
        let fresh = f32::from_bits((bits & 0x807F_0000) | exponent << 23 | low);
        let previous = made.last().copied().unwrap_or(1.0);
        made.push(if position % 3 == 1 { -previous * (1.0 + f32::EPSILON) } else { fresh });
    }
    made.into_iter().map(f64::from).collect()
}

fn tensor(values: &[f64], shape: [i64; 2]) -> AnyTensor {
    let made = AnyTensor::from_f64s(
        tilewright_core::dtype::DType::F32,
        values,
        &shape.map(|extent| extent as usize),
    );
    made.expect("a small shape")
}

/// A way of forming products.
#[derive(Clone, Copy, Debug)]
enum Way {
    Pieces(PieceProducts),
    Rounded,
}

impl Way {
    fn all() -> Vec<Way> {
        PieceProducts::ALL.into_iter().map(Way::Pieces).chain([Way::Rounded]).collect()
    }

    fn apply(self, schedule: &mut Schedule) {
        let block = schedule.get_block("c").unwrap();
        match self {
            Way::Pieces(way) => drop(schedule.split_products(block, way.count).unwrap()),
            Way::Rounded => schedule.round_products(block).unwrap(),
        }
    }

    /// How many products are added for each one, and the error of each one.
    fn promised(self) -> (i64, f64) {
        match self {
            Way::Pieces(way) => (way.count, way.error),
            Way::Rounded => (1, ROUNDED_FACTORS),
        }
    }
}

/// Runs a program and compares each output with the exact sum of products.
fn check(program: &Program, way: Way, dims: [i64; 3], seed: u64) -> Result<(), String> {
    let [m, n, k] = dims;
    let mut random = Rng::new(seed);
    let (a, b) = (elements((m * k) as usize, &mut random), elements((k * n) as usize, &mut random));
    let unwritten = vec![f64::NAN; (m * n) as usize];
    let arguments = [tensor(&a, [m, k]), tensor(&b, [k, n]), tensor(&unwritten, [m, n])];
    let found = execute(program, &dims, &arguments, Some(seed))?.remove(2).to_f64_vec();
    // Each term is added once, and partial sums are added to each other; pieces are rounded up by 1 % at most.
    let (count, error) = way.promised();
    let additions = (2 * count * k) as f64;
    let promised = error + 1.01 * additions * f64::from(f32::EPSILON) / 2.0;
    for (position, found) in found.into_iter().enumerate() {
        let (row, column) = (position / n as usize, position % n as usize);
        let products = || (0..k as usize).map(|k| a[row * dims[2] as usize + k] * b[k * n as usize + column]);
        let (exact, magnitude) = (products().sum::<f64>(), products().map(f64::abs).sum::<f64>());
        let error = (found - exact).abs();
        if error.is_nan() || error > promised * magnitude {
            return Err(format!(
                "c[{row}, {column}] is {found:e}, not {exact:e}; the products reach {magnitude:e}"
            ));
        }
    }
    Ok(())
}

#[test]
fn products_of_pieces_are_as_exact_as_promised() {
    let cases = std::env::var("TILEWRIGHT_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let mut taken = 0;
    for seed in 0..cases {
        let way = Way::all()[seed as usize % Way::all().len()];
        let program: Program = PRODUCT.parse().unwrap_or_else(|error| panic!("{error}"));
        let mut schedule = Schedule::new(program, Arc::new(Target::generic_cpu()), seed);
        way.apply(&mut schedule);
        let mut random = Rng::new(seed);
        for _ in 0..random.below(10) {
            taken += usize::from(steps::random_step(&mut schedule, &mut random).is_ok());
        }
        let options = LowerOptions::default();
        let loops = match lower_to_loops(schedule.program(), &options) {
            // A loop that has got other statements since it was pipelined, and a buffer that was fixed to be local before
            // threads shared it.
            Err(LowerError::Pipeline { .. } | LowerError::Scope { .. }) => continue,
            loops => loops.unwrap(),
        };
        let flat = lower(schedule.program(), &options).unwrap();
        for dims in DIMS {
            for (level, program) in [("blocks", schedule.program()), ("loops", &loops), ("flat", &flat)] {
                if let Err(problem) = check(program, way, *dims, seed) {
                    panic!("{level}, seed {seed}, {dims:?}: {problem}\n{}\n{program}", schedule.trace());
                }
            }
        }
    }
    assert!(taken as u64 > cases, "only {taken} random steps were legal");
}

/// Runs one product of two numbers in each way.
fn products(a: f32, b: f32) -> Vec<f64> {
    let run = |way: Way| {
        let program: Program = PRODUCT.parse().unwrap();
        let mut schedule = Schedule::new(program, Arc::new(Target::generic_cpu()), 0);
        way.apply(&mut schedule);
        let arguments = [a, b, 0.0].map(|value| tensor(&[f64::from(value)], [1, 1]));
        execute(schedule.program(), &[1, 1, 1], &arguments, None).unwrap()[2].to_f64_vec()[0]
    };
    Way::all().into_iter().map(run).collect()
}

#[test]
fn factors_are_rounded_to_the_nearest_of_eleven_digits() {
    let rounded = |value: f32| products(value, 1.0).pop().expect("rounding is the last way");
    let unit = 2.0f32.powi(-10);
    for (value, expected) in [
        (1.0, 1.0),
        (1.0 + unit, 1.0 + unit),
        (1.0 + unit / 2.0, 1.0 + unit),
        (-1.0 - unit / 2.0, -1.0 - unit),
        (1.0 + unit * 0.499, 1.0),
        (1.0 + unit * 1.501, 1.0 + 2.0 * unit),
        (2.0 - unit / 2.0, 2.0),
        (f32::from_bits(0x1000), f32::from_bits(0x2000)),
        (f32::from_bits(0xFFF), 0.0),
        (f32::from_bits(0x7F7F_EFFF), f32::from_bits(0x7F7F_E000)),
    ] {
        assert_eq!(rounded(value), f64::from(expected), "{value:e}");
    }
    for nan in [0x7FFF_FFFF, 0xFFFF_FFFF, 0x7F80_0001, 0x7FC0_0000] {
        assert!(rounded(f32::from_bits(nan)).is_nan(), "{nan:x}");
    }
}

#[test]
fn what_is_not_finite_is_noticed() {
    let largest = f32::from_bits(0x7F7F_7FFF);
    assert!(f64::from(largest) < 2f64.powi(128) - 2f64.powi(119));
    for (number, product) in products(largest, 0.5).into_iter().enumerate() {
        let way = Way::all()[number];
        let (count, error) = way.promised();
        let exact = f64::from(largest) * 0.5;
        let promised = error + count as f64 * f64::from(f32::EPSILON) / 2.0;
        assert!((product - exact).abs() <= promised * exact, "{way:?}: {product:e}");
    }
    for special in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX] {
        for other in [1.0, 0.0, -0.5, f32::INFINITY] {
            for (number, product) in products(special, other).into_iter().enumerate() {
                // A single piece and rounding keep infinities as they are.
                let is_one_product = Way::all()[number].promised().0 == 1;
                let is_noticed = if is_one_product { !product.is_finite() } else { product.is_nan() };
                assert!(is_noticed, "{special} · {other}, way {number}: {product}");
            }
        }
    }
}
