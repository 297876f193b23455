//! Every operator on every element type, with every number of lanes that is cut differently.

use std::sync::Arc;

use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, Expr, ExprKind, UnaryOp};
use tilewright_core::index::Index;
use tilewright_core::math;
use tilewright_core::program::{Access, Buffer, Param, Program, Scope, VariableKind};
use tilewright_core::stmt::{For, LoopKind, Stmt};
use tilewright_core::tensor::AnyTensor;

use crate::support::Call;

/// Scalars, pairs, quads, all that is put together from them, and what fills and overfills wide vectors.
const LANES: [u32; 10] = [1, 2, 3, 4, 5, 7, 8, 16, 17, 37];

/// Values at which operators are likely to differ, of every kind; conversions to a type saturate or wrap.
const SPECIAL: [f64; 34] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    -1.5,
    2.5,
    -2.5,
    3.0,
    -7.0,
    8.0,
    31.0,
    33.0,
    127.0,
    -128.0,
    200.0,
    255.0,
    65504.0,
    -65520.0,
    1e-7,
    6e-8,
    -6e-5,
    3.4e38,
    1e-40,
    2147483647.0,
    -2147483648.0,
    9.3e18,
    -9.3e18,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    0.333_333_333,
];

/// A program `out[lane] = value(inputs[lane])`, once for each of `repeats` places.
fn elementwise(
    inputs: &[DType],
    output: DType,
    lanes: u32,
    repeats: usize,
    value: impl Fn(&[Expr]) -> Expr,
) -> Program {
    let mut program = Program::new("elementwise");
    let mut add = |name: String, dtype, access| {
        let shape = vec![Index::constant(i64::from(lanes) * repeats as i64)];
        let buffer = program.add_buffer(Buffer { name: name.into(), dtype, shape, scope: Scope::Global });
        program.add_param(Param::Buffer(buffer, access));
        buffer
    };
    let sources: Vec<_> =
        inputs.iter().enumerate().map(|(n, dtype)| add(format!("x{n}"), *dtype, Access::Input)).collect();
    let target = add("y".into(), output, Access::Output);
    let (id, var) = (program.fresh_loop(), program.add_variable("repeat", VariableKind::Loop));
    let place = Index::lane(lanes).add_scaled(&Index::var(var), lanes.into());
    let loads: Vec<Expr> = sources
        .iter()
        .zip(inputs)
        .map(|(source, dtype)| Expr::load(*dtype, *source, [place.clone()]))
        .collect();
    let body = Stmt::store(target, [place.clone()], value(&loads));
    let extent = Index::constant(repeats as i64);
    let annotations = Default::default();
    program.body = Stmt::For(Arc::new(For { id, var, extent, kind: LoopKind::Serial, annotations, body }));
    program
}

/// The special values in a type, of which `offset` is the first, over and over.
fn specials(dtype: DType, len: usize, offset: usize, stride: usize) -> AnyTensor {
    let values: Vec<f64> = (0..len).map(|n| SPECIAL[(offset + n * stride) % SPECIAL.len()]).collect();
    let mut tensor = AnyTensor::from_f64s(dtype, &values, &[len]).expect("a small tensor");
    // `from_f64s` converts as a cast does; values in between come from the bits as they are.
    if dtype == DType::Bool {
        tensor
            .bytes_mut()
            .iter_mut()
            .enumerate()
            .for_each(|(n, byte)| *byte = ((n * stride + offset) % 3 % 2) as u8);
    }
    tensor
}

fn check_with(inputs: &[DType], output: DType, value: impl Fn(&[Expr]) -> Expr) {
    for lanes in LANES {
        let repeats = (SPECIAL.len() * SPECIAL.len()).div_ceil(lanes as usize).min(12);
        let program = elementwise(inputs, output, lanes, repeats, &value);
        let len = repeats * lanes as usize;
        let tensors =
            inputs.iter().enumerate().map(|(n, dtype)| specials(*dtype, len, 7 * n + lanes as usize, n + 1));
        let output = AnyTensor::zeros(output, &[len]).expect("a small tensor");
        Call { tensors: tensors.chain([output]).collect(), ..Call::default() }.check(&program);
    }
}

fn unary_applies(op: UnaryOp, dtype: DType) -> bool {
    op.operands().accept(dtype) && !op.is_function()
}

fn binary_applies(op: BinaryOp, dtype: DType) -> bool {
    op.operands().accept(dtype) && !op.is_function()
}

fn check_unary(dtype: DType) {
    for &op in UnaryOp::ALL.iter().filter(|op| unary_applies(**op, dtype)) {
        check_with(&[dtype], dtype, |x| Expr::unary(op, x[0].clone()));
    }
}

fn check_binary(dtype: DType) {
    for &op in BinaryOp::ALL.iter().filter(|op| binary_applies(**op, dtype)) {
        let output = if op.is_comparison() { DType::Bool } else { dtype };
        check_with(&[dtype, dtype], output, |x| Expr::binary(op, x[0].clone(), x[1].clone()));
    }
}

macro_rules! for_each_type {
    ($($name:ident $dtype:ident;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn unary() {
                check_unary(DType::$dtype);
            }

            #[test]
            fn binary() {
                check_binary(DType::$dtype);
            }

            #[test]
            fn casts() {
                for from in DType::COMPUTED.iter().copied().filter(|_| DType::$dtype != DType::Bool) {
                    check_with(&[from], DType::$dtype, |x| Expr::cast(DType::$dtype, x[0].clone()));
                }
            }

            #[test]
            fn selections() {
                check_with(&[DType::F32, DType::$dtype, DType::$dtype], DType::$dtype, |x| {
                    let condition = Expr::binary(BinaryOp::Gt, x[0].clone(), Expr::float(DType::F32, 0.5));
                    Expr::select(condition, x[1].clone(), x[2].clone())
                });
            }
        }
    )*};
}

for_each_type! {
    bool Bool;
    i8 I8;
    u8 U8;
    i16 I16;
    u16 U16;
    i32 I32;
    u32 U32;
    i64 I64;
    u64 U64;
    f16 F16;
    bf16 BF16;
    f32 F32;
    f64 F64;
}

#[test]
fn multiplications_with_additions() {
    for dtype in DType::COMPUTED.iter().copied().filter(|dtype| dtype.is_float()) {
        check_with(&[dtype, dtype, dtype], dtype, |x| {
            Expr::mul_add(x[0].clone(), x[1].clone(), x[2].clone())
        });
    }
}

/// A float between bounds is converted without the steps for numbers that do not fit, which a bound beyond 32 bits and a single one need.
#[test]
fn casts_of_floats_between_bounds() {
    let float = |value: f64| Expr::float(DType::F32, value);
    for bounds in [[-16_777_216.0, 16_777_216.0], [-2.5, 7.75], [0.0, 3e9], [-4e9, 1.0]] {
        let [least, greatest] = bounds.map(float);
        check_with(&[DType::F32], DType::I32, |x| {
            let raised = Expr::binary(BinaryOp::Max, x[0].clone(), least.clone());
            Expr::cast(DType::I32, Expr::binary(BinaryOp::Min, greatest.clone(), raised))
        });
        check_with(&[DType::F32], DType::I32, |x| {
            let lowered = Expr::binary(BinaryOp::Min, x[0].clone(), greatest.clone());
            Expr::cast(DType::I32, Expr::binary(BinaryOp::Max, lowered, least.clone()))
        });
        check_with(&[DType::F32], DType::I32, |x| {
            Expr::cast(DType::I32, Expr::binary(BinaryOp::Max, x[0].clone(), least.clone()))
        });
    }
}

#[test]
fn extremes_with_constants_on_either_side() {
    for dtype in [DType::F32, DType::F64, DType::F16, DType::I32, DType::U8] {
        for op in [BinaryOp::Min, BinaryOp::Max] {
            for constant in [0, 2] {
                check_with(&[dtype], dtype, |x| Expr::binary(op, x[0].clone(), Expr::int(dtype, constant)));
                check_with(&[dtype], dtype, |x| Expr::binary(op, Expr::int(dtype, constant), x[0].clone()));
            }
        }
    }
}

#[test]
fn extremes_that_propagate_nan_with_constants_on_either_side() {
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        for op in [BinaryOp::Minimum, BinaryOp::Maximum] {
            for constant in [0.0, -0.0, 2.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                let constant = || Expr::float(dtype, constant);
                check_with(&[dtype], dtype, |x| Expr::binary(op, x[0].clone(), constant()));
                check_with(&[dtype], dtype, |x| Expr::binary(op, constant(), x[0].clone()));
            }
        }
    }
}

#[test]
fn shifts_by_one_count_for_all_lanes() {
    for dtype in DType::COMPUTED.iter().copied().filter(|dtype| dtype.is_int()) {
        for op in [BinaryOp::Shl, BinaryOp::Shr] {
            for count in [0, 1, 7, 9] {
                check_with(&[dtype], dtype, |x| Expr::binary(op, x[0].clone(), Expr::int(dtype, count)));
            }
        }
    }
}

#[test]
fn bits_as_another_type() {
    for (from, to) in [
        (DType::F32, DType::I32),
        (DType::I32, DType::F32),
        (DType::F64, DType::I64),
        (DType::I64, DType::F64),
        (DType::F16, DType::BF16),
        (DType::BF16, DType::F16),
        (DType::I8, DType::U8),
        (DType::U8, DType::I8),
        (DType::I16, DType::U16),
        (DType::U16, DType::I16),
        (DType::F16, DType::I16),
        (DType::U16, DType::F16),
        (DType::BF16, DType::U16),
        (DType::I16, DType::BF16),
        (DType::F32, DType::U32),
        (DType::U64, DType::F64),
        (DType::I64, DType::U64),
    ] {
        check_with(&[from], to, |x| Expr::new(to, ExprKind::Bitcast(x[0].clone())));
    }
}

#[test]
fn every_half_survives_and_is_rounded_right() {
    for dtype in [DType::F16, DType::BF16] {
        let len = 1 << 16;
        let program = elementwise(&[dtype], DType::F32, 16, 1, |x| Expr::cast(DType::F32, x[0].clone()));
        let back = elementwise(&[DType::F32], dtype, 16, 1, |x| Expr::cast(dtype, x[0].clone()));
        for start in (0..len).step_by(16 * 61) {
            let bits: Vec<u8> = (start..start + 16).flat_map(|bits| (bits as u16).to_le_bytes()).collect();
            let mut halves = AnyTensor::zeros(dtype, &[16]).unwrap();
            halves.bytes_mut().copy_from_slice(&bits);
            let floats = AnyTensor::zeros(DType::F32, &[16]).unwrap();
            Call { tensors: vec![halves, floats], ..Call::default() }.check(&program);
            // Around the middle between neighbours.
            let singles: Vec<f64> = (0..16u32)
                .map(|n| {
                    f64::from(f32::from_bits(((start as u32) << 16) | (0x0FFE + (n % 5)) | ((n / 5) << 13)))
                })
                .collect();
            let singles = AnyTensor::from_f64s(DType::F32, &singles, &[16]).unwrap();
            let halves = AnyTensor::zeros(dtype, &[16]).unwrap();
            Call { tensors: vec![singles, halves], ..Call::default() }.check(&back);
        }
    }
}

#[test]
fn transcendental_functions_are_for_lowering_to_expand() {
    use tilewright_core::device::{CompileError, Device};
    let program = elementwise(&[DType::F32], DType::F32, 4, 1, |x| Expr::unary(UnaryOp::Exp, x[0].clone()));
    let error = crate::support::host().compile(&[&program]).remove(0).err().expect("refused");
    assert!(matches!(&error, CompileError::Unsupported { what, .. } if what.contains("exp")), "{error}");
}

#[test]
fn selections_that_are_a_minimum_or_maximum() {
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        for op in [BinaryOp::Lt, BinaryOp::Gt] {
            check_with(&[dtype, dtype], dtype, |x| {
                Expr::select(Expr::binary(op, x[0].clone(), x[1].clone()), x[0].clone(), x[1].clone())
            });
            check_with(&[dtype], dtype, |x| {
                let bound = Expr::float(dtype, 2.5);
                Expr::select(Expr::binary(op, x[0].clone(), bound.clone()), bound, x[0].clone())
            });
        }
    }
}

/// Numbers with bits from everywhere in their type: of all signs and exponents, infinite and NaN.
fn numbers_from_everywhere(dtype: DType, len: usize) -> AnyTensor {
    let mut tensor = AnyTensor::zeros(dtype, &[len]).expect("a small tensor");
    // Steps of an odd number, so that the lower bits differ, too.
    let (bytes, step) = (dtype.bytes(), (u64::MAX / len as u64) | 1);
    for (n, element) in tensor.bytes_mut().chunks_exact_mut(bytes).enumerate() {
        let bits = step.wrapping_mul(n as u64).to_be_bytes();
        element.iter_mut().rev().zip(bits).for_each(|(byte, own)| *byte = own);
    }
    tensor
}

#[test]
fn expanded_functions_of_numbers_from_everywhere() {
    for dtype in [DType::F32, DType::F64] {
        let (lanes, repeats) = (64, 256);
        let numbers = numbers_from_everywhere(dtype, lanes as usize * repeats);
        let output = AnyTensor::zeros(dtype, numbers.shape()).expect("a small tensor");
        for &op in UnaryOp::ALL.iter().filter(|op| op.is_function()) {
            let program = elementwise(&[dtype], dtype, lanes, repeats, |x| {
                math::expand(&Expr::unary(op, x[0].clone())).expect("a function")
            });
            Call { tensors: vec![numbers.clone(), output.clone()], ..Call::default() }.check(&program);
        }
        // The second operands are the first ones from the end.
        let mut reversed = numbers.clone();
        let (bytes, from) = (dtype.bytes(), numbers.bytes());
        reversed
            .bytes_mut()
            .chunks_exact_mut(bytes)
            .zip(from.rchunks_exact(bytes))
            .for_each(|(to, from)| to.copy_from_slice(from));
        for &op in BinaryOp::ALL.iter().filter(|op| op.is_function()) {
            let program = elementwise(&[dtype, dtype], dtype, lanes, repeats, |x| {
                math::expand(&Expr::binary(op, x[0].clone(), x[1].clone())).expect("a function")
            });
            let tensors = vec![numbers.clone(), reversed.clone(), output.clone()];
            Call { tensors, ..Call::default() }.check(&program);
        }
    }
}

/// A branch leaves out the reduction of large angles where no lane has one: groups with none, with one in each lane, and with all.
#[test]
fn large_angles_in_any_lane() {
    for dtype in [DType::F32, DType::F64] {
        let (lanes, repeats) = (64, 70);
        let len = lanes as usize * repeats;
        let angle = |position: usize| match (position / 64, position % 64) {
            (group, lane) if group == lane => 3e20 + 7e17 * lane as f64,
            (group, lane) if group == lane + 1 => -f64::INFINITY,
            (66.., lane) => 1e12 * (lane as f64 + 0.5),
            (_, lane) => lane as f64 * 0.11 - 3.0,
        };
        let numbers: Vec<f64> = (0..len).map(angle).collect();
        let numbers = AnyTensor::from_f64s(dtype, &numbers, &[len]).expect("a small tensor");
        let output = AnyTensor::zeros(dtype, &[len]).expect("a small tensor");
        for op in [UnaryOp::Sin, UnaryOp::Cos, UnaryOp::Tan] {
            let program = elementwise(&[dtype], dtype, lanes, repeats, |x| {
                let of = |x: Expr| math::expand(&Expr::unary(op, x)).expect("a function");
                // Two angles, each with a branch of its own, and one inside of the other.
                Expr::binary(BinaryOp::Add, of(x[0].clone()), of(Expr::unary(UnaryOp::Neg, of(x[0].clone()))))
            });
            Call { tensors: vec![numbers.clone(), output.clone()], ..Call::default() }.check(&program);
        }
    }
}
