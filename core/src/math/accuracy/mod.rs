//! How exact the functions are, over the whole range of arguments, against the crate `libm` and against known values.
//!
//! `TILEWRIGHT_CASES` sets the number of arguments of each function and precision, and every bit pattern of `f32` is one of them from
//! 2³² on.

mod known;
mod special;

use super::scalar::{self, Real, cast};
use crate::expr::{BinaryOp, UnaryOp};
use crate::tensor::Random;

/// The function of an operator on one operand, computed independently in `f64`.
fn exact_unary(op: UnaryOp) -> fn(f64) -> f64 {
    match op {
        UnaryOp::Rsqrt => |x| 1.0 / libm::sqrt(x),
        UnaryOp::Exp => libm::exp,
        UnaryOp::Ln => libm::log,
        UnaryOp::Tanh => libm::tanh,
        UnaryOp::Erf => libm::erf,
        // Neither exponential overflows.
        UnaryOp::Sigmoid => |x| {
            if x < 0.0 { libm::exp(x) / (1.0 + libm::exp(x)) } else { 1.0 / (1.0 + libm::exp(-x)) }
        },
        UnaryOp::Sin => libm::sin,
        UnaryOp::Cos => libm::cos,
        UnaryOp::Tan => libm::tan,
        UnaryOp::Asin => libm::asin,
        UnaryOp::Acos => libm::acos,
        UnaryOp::Atan => libm::atan,
        UnaryOp::Sinh => libm::sinh,
        UnaryOp::Cosh => libm::cosh,
        UnaryOp::Exp2 => libm::exp2,
        UnaryOp::ExpM1 => libm::expm1,
        UnaryOp::Log2 => libm::log2,
        UnaryOp::Log10 => libm::log10,
        UnaryOp::Ln1p => libm::log1p,
        _ => panic!("`{}` has no independent implementation here", op.text()),
    }
}

/// The function of an operator on two operands, computed independently in `f64`.
fn exact_binary(op: BinaryOp) -> fn(f64, f64) -> f64 {
    match op {
        BinaryOp::Atan2 => libm::atan2,
        BinaryOp::Powf => libm::pow,
        _ => panic!("`{}` has no independent implementation here", op.text()),
    }
}

macro_rules! own_unary {
    ({} $($(#[$doc:meta])* $variant:ident $name:ident $bounds:tt $kind:ident($count:literal);)*) => {
        fn own_unary<T: Real>(op: UnaryOp) -> fn(T) -> T {
            match op {
                $(UnaryOp::$variant => scalar::$name,)*
                _ => unreachable!("`{}` is no function", op.text()),
            }
        }
    };
}

macro_rules! own_binary {
    ({} $($(#[$doc:meta])* $variant:ident $name:ident $bounds:tt $kind:ident($count:literal);)*) => {
        fn own_binary<T: Real>(op: BinaryOp) -> fn(T, T) -> T {
            match op {
                $(BinaryOp::$variant => scalar::$name,)*
                _ => unreachable!("`{}` is no function", op.text()),
            }
        }
    };
}

tilewright_vocabulary::unary_functions!(own_unary {});
tilewright_vocabulary::binary_functions!(own_binary {});

fn cases(default: u64) -> u64 {
    std::env::var("TILEWRIGHT_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(default)
}

/// The error in units of the last place that the exact value has in `f32`.
fn single_error(found: f32, exact: f64) -> f64 {
    if found.is_nan() && exact.is_nan() || f64::from(found) == exact {
        return 0.0;
    }
    let nearest = exact as f32;
    if nearest.is_infinite() || found.is_infinite() {
        // Where rounding begins to overflow, the largest number and infinity are neighbours.
        let bound = f64::from(f32::MAX) * (1.0 + f64::from(f32::EPSILON));
        return if found == nearest || exact.abs() <= bound && found.abs() >= f32::MAX {
            0.0
        } else {
            f64::INFINITY
        };
    }
    let ulp = f64::from(nearest.abs().next_up()) - f64::from(nearest.abs());
    let error = (f64::from(found) - exact).abs() / ulp;
    if error.is_nan() { f64::INFINITY } else { error }
}

/// The error in units of the last place of the value taken for exact.
fn double_error(found: f64, exact: f64) -> f64 {
    if found == exact || found.is_nan() && exact.is_nan() {
        return 0.0;
    }
    if found.is_infinite() || exact.is_infinite() {
        let neighbours =
            found.abs() >= f64::MAX && exact.abs() >= f64::MAX && found.signum() == exact.signum();
        return if neighbours { 1.0 } else { f64::INFINITY };
    }
    let ulp = exact.abs().next_up() - exact.abs();
    let error = (found - exact).abs() / ulp;
    if error.is_nan() { f64::INFINITY } else { error }
}

/// The greatest error so far, and where.
struct Greatest<P> {
    error: f64,
    at: Option<P>,
}

impl<P: Copy + std::fmt::Debug> Greatest<P> {
    fn new() -> Self {
        Greatest { error: 0.0, at: None }
    }

    fn add(&mut self, error: f64, at: P) {
        if error > self.error {
            *self = Greatest { error, at: Some(at) };
        }
    }

    /// A message, if the error is beyond the bound.
    fn beyond(&self, name: &str, bound: f64) -> Option<String> {
        let message = format!("{name}: {:.3} units at {:?}, with a bound of {bound}", self.error, self.at);
        if std::env::var_os("TILEWRIGHT_PRINT").is_some() {
            println!("{message}");
        }
        (self.error > bound).then_some(message)
    }
}

fn refuse(wrong: Vec<String>) {
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn single_precision_functions_of_one_operand_keep_their_bounds() {
    let step = ((1u64 << 32) / cases(200_000).max(1)).max(1) | 1;
    let check = |op: &UnaryOp| {
        let (own, exact) = (own_unary::<f32>(*op), exact_unary(*op));
        let mut greatest = Greatest::new();
        for bits in (0..1u64 << 32).step_by(step as usize) {
            let x = f32::from_bits(bits as u32);
            greatest.add(single_error(own(x), exact(f64::from(x))), x);
        }
        greatest.beyond(op.text(), op.error_bound().expect("a function has a bound").single)
    };
    refuse(UnaryOp::ALL.iter().filter(|op| op.is_function()).filter_map(check).collect());
}

/// Numbers of ordinary size, and numbers with bits from everywhere.
fn arguments(random: &mut Random, case: u64) -> f64 {
    match case % 4 {
        0 => random.unit(),
        1 => random.unit() * 10.0,
        2 => random.unit() * 800.0,
        _ => f64::from_bits(random.bits()),
    }
}

#[test]
fn double_precision_functions_of_one_operand_keep_their_bounds() {
    let check = |op: &UnaryOp| {
        let (own, exact) = (own_unary::<f64>(*op), exact_unary(*op));
        let (mut random, mut greatest) = (Random::new(1), Greatest::new());
        for case in 0..cases(200_000) {
            let x = arguments(&mut random, case);
            greatest.add(double_error(own(x), exact(x)), x);
        }
        greatest.beyond(op.text(), op.error_bound().expect("a function has a bound").double)
    };
    refuse(UnaryOp::ALL.iter().filter(|op| op.is_function()).filter_map(check).collect());
}

/// Pairs of which either has bits from everywhere, or both are of ordinary size, or a power of the first is close to the limits.
fn pairs(random: &mut Random, case: u64) -> (f64, f64) {
    match case % 5 {
        0 => (random.unit() * 4.0, random.unit() * 4.0),
        1 => (f64::from_bits(random.bits()), f64::from_bits(random.bits())),
        2 => {
            let base = random.unit().abs() * 4.0;
            (base, random.unit() * 750.0 / base.ln().abs())
        }
        3 => (random.unit() * 100.0, (random.unit() * 40.0).round()),
        _ => (1.0 + random.unit() / 1000.0, random.unit() * 1e5),
    }
}

#[test]
fn functions_of_two_operands_keep_their_bounds() {
    let mut wrong = Vec::new();
    for op in BinaryOp::ALL.iter().filter(|op| op.is_function()) {
        let (single, double, exact) = (own_binary::<f32>(*op), own_binary::<f64>(*op), exact_binary(*op));
        let bound = op.error_bound().expect("a function has a bound");
        let (mut of_single, mut of_double) = (Greatest::new(), Greatest::new());
        let mut random = Random::new(2);
        for case in 0..cases(400_000) {
            let (x, y) = pairs(&mut random, case);
            of_double.add(double_error(double(x, y), exact(x, y)), (x, y));
            let (x, y) = match case % 5 {
                1 => (f32::from_bits(random.bits() as u32), f32::from_bits(random.bits() as u32)),
                2 => (x as f32, (y / 8.0) as f32),
                _ => (x as f32, y as f32),
            };
            of_single.add(single_error(single(x, y), exact(f64::from(x), f64::from(y))), (x, y));
        }
        wrong.extend(of_single.beyond(&format!("{} of f32", op.text()), bound.single));
        wrong.extend(of_double.beyond(&format!("{} of f64", op.text()), bound.double));
    }
    refuse(wrong);
}

#[test]
fn half_precision_rounds_the_single_result() {
    for bits in 0..=u16::MAX {
        let x = half::f16::from_bits(bits);
        let (found, expected) = (scalar::tanh(x), half::f16::from_f32(x.to_f32().tanh()));
        let close = (found.to_f32() - expected.to_f32()).abs() <= 2f32.powi(-11) * expected.to_f32().abs();
        assert!(close || x.is_nan() && found.is_nan() || found == expected, "tanh of {x} gave {found}");
        let wide: f32 = cast(x);
        assert_eq!(found.to_bits(), cast::<f32, half::f16>(scalar::tanh(wide)).to_bits(), "{x}");
    }
}
