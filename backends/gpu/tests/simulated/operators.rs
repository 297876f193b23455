//! Every operator on every element type, in single lanes and in vectors.

use std::sync::Arc;

use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, Expr, ExprKind, UnaryOp};
use tilewright_core::index::Index;
use tilewright_core::math;
use tilewright_core::program::{Access, Buffer, Param, Program, Scope, VariableKind};
use tilewright_core::stmt::{For, LoopKind, Stmt};
use tilewright_core::tensor::AnyTensor;
use tilewright_core::thread_axis::ThreadAxis;

use crate::assembler::assemble_all;
use crate::support::{Call, computed_types};

/// One element, and as many as are accessed at once in different ways.
const LANES: [u32; 4] = [1, 4, 5, 16];

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

/// A program `out[lane] = value(inputs[lane])`, in each of some threads.
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
    let (kind, annotations) = (LoopKind::Bound(ThreadAxis::ThreadX), Default::default());
    program.body = Stmt::For(Arc::new(For { id, var, extent, kind, annotations, body }));
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

/// Compares an operator with the interpreter for each number of lanes. The answer is the module for four, for the assembler.
fn check_with(inputs: &[DType], output: DType, value: impl Fn(&[Expr]) -> Expr) -> String {
    let check = |lanes: u32| {
        let repeats = (SPECIAL.len() * SPECIAL.len()).div_ceil(lanes as usize).min(40);
        let program = elementwise(inputs, output, lanes, repeats, &value);
        let len = repeats * lanes as usize;
        let tensors =
            inputs.iter().enumerate().map(|(n, dtype)| specials(*dtype, len, 7 * n + lanes as usize, n + 1));
        let output = AnyTensor::zeros(output, &[len]).expect("a small tensor");
        let call = Call { tensors: tensors.chain([output]).collect(), ..Call::default() };
        (lanes, call.compare(&program).ptx)
    };
    let found = LANES.map(check).into_iter().find(|(lanes, _)| *lanes == 4);
    found.expect("four lanes are among those that are checked").1
}

fn unary_applies(op: UnaryOp, dtype: DType) -> bool {
    op.operands().accept(dtype) && !op.is_function()
}

fn binary_applies(op: BinaryOp, dtype: DType) -> bool {
    op.operands().accept(dtype) && !op.is_function()
}

fn check_unary(dtype: DType) {
    let operators = UnaryOp::ALL.iter().filter(|op| unary_applies(**op, dtype));
    let check = |op: &UnaryOp| check_with(&[dtype], dtype, |x| Expr::unary(*op, x[0].clone()));
    assemble_all(&operators.map(check).collect::<Vec<_>>());
}

fn check_binary(dtype: DType) {
    let operators = BinaryOp::ALL.iter().filter(|op| binary_applies(**op, dtype));
    let check = |op: &BinaryOp| {
        let output = if op.is_comparison() { DType::Bool } else { dtype };
        check_with(&[dtype, dtype], output, |x| Expr::binary(*op, x[0].clone(), x[1].clone()))
    };
    assemble_all(&operators.map(check).collect::<Vec<_>>());
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
                let types = computed_types().filter(|_| DType::$dtype != DType::Bool);
                let check =
                    |from| check_with(&[from], DType::$dtype, |x| Expr::cast(DType::$dtype, x[0].clone()));
                assemble_all(&types.map(check).collect::<Vec<_>>());
            }

            #[test]
            fn selections() {
                let module = check_with(&[DType::F32, DType::$dtype, DType::$dtype], DType::$dtype, |x| {
                    let condition = Expr::binary(BinaryOp::Gt, x[0].clone(), Expr::float(DType::F32, 0.5));
                    Expr::select(condition, x[1].clone(), x[2].clone())
                });
                assemble_all(&[module]);
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
    let mut modules = Vec::new();
    for dtype in computed_types().filter(|dtype| dtype.is_float()) {
        modules.push(check_with(&[dtype, dtype, dtype], dtype, |x| {
            Expr::mul_add(x[0].clone(), x[1].clone(), x[2].clone())
        }));
    }
    assemble_all(&modules);
}

#[test]
fn extremes_with_constants_on_either_side() {
    let mut modules = Vec::new();
    for dtype in [DType::F32, DType::F64, DType::F16, DType::I32, DType::U8] {
        for op in [BinaryOp::Min, BinaryOp::Max] {
            for constant in [0, 2] {
                let constant = Expr::int(dtype, constant);
                modules.extend([
                    check_with(&[dtype], dtype, |x| Expr::binary(op, x[0].clone(), constant.clone())),
                    check_with(&[dtype], dtype, |x| Expr::binary(op, constant.clone(), x[0].clone())),
                ]);
            }
        }
    }
    assemble_all(&modules);
}

#[test]
fn shifts_by_one_count_for_all_lanes() {
    let mut modules = Vec::new();
    for dtype in computed_types().filter(|dtype| dtype.is_int()) {
        for op in [BinaryOp::Shl, BinaryOp::Shr] {
            for count in [0, 1, 7, 9] {
                let shift = |x: &[Expr]| Expr::binary(op, x[0].clone(), Expr::int(dtype, count));
                modules.push(check_with(&[dtype], dtype, shift));
            }
        }
    }
    assemble_all(&modules);
}

#[test]
fn bits_as_another_type() {
    let mut modules = Vec::new();
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
        // Which NaN a narrow float is, is not kept: it is computed in `f32`.
        let is_narrow = matches!(from, DType::F16 | DType::BF16);
        modules.push(check_with(&[from], to, |x| {
            let zero = Expr::zero(from);
            let is_number = Expr::binary(BinaryOp::Eq, x[0].clone(), x[0].clone());
            let value = if is_narrow { Expr::select(is_number, x[0].clone(), zero) } else { x[0].clone() };
            Expr::new(to, ExprKind::Bitcast(value))
        }));
    }
    assemble_all(&modules);
}

#[test]
fn selections_that_are_a_minimum_or_maximum() {
    let mut modules = Vec::new();
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        for op in [BinaryOp::Lt, BinaryOp::Gt] {
            modules.push(check_with(&[dtype, dtype], dtype, |x| {
                Expr::select(Expr::binary(op, x[0].clone(), x[1].clone()), x[0].clone(), x[1].clone())
            }));
            modules.push(check_with(&[dtype], dtype, |x| {
                let bound = Expr::float(dtype, 2.5);
                Expr::select(Expr::binary(op, x[0].clone(), bound.clone()), bound, x[0].clone())
            }));
        }
    }
    assemble_all(&modules);
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

/// The elements from the last one to the first.
fn reversed(tensor: &AnyTensor) -> AnyTensor {
    let mut reversed = tensor.clone();
    let (bytes, from) = (tensor.dtype().bytes(), tensor.bytes());
    reversed
        .bytes_mut()
        .chunks_exact_mut(bytes)
        .zip(from.rchunks_exact(bytes))
        .for_each(|(to, from)| to.copy_from_slice(from));
    reversed
}

#[test]
fn remainders_of_floats_from_everywhere() {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let (lanes, repeats) = (4, 1024);
        let numbers = numbers_from_everywhere(dtype, lanes as usize * repeats);
        let remainder = |x: &[Expr]| Expr::binary(BinaryOp::Rem, x[0].clone(), x[1].clone());
        let program = elementwise(&[dtype, dtype], dtype, lanes, repeats, remainder);
        let output = AnyTensor::zeros(dtype, numbers.shape()).expect("a small tensor");
        // Large by small numbers and the other way round; then numbers by others of about the same size.
        let mut neighbours = numbers.clone();
        neighbours.bytes_mut().rotate_left(3 * dtype.bytes());
        for second in [reversed(&numbers), neighbours] {
            let tensors = vec![numbers.clone(), second, output.clone()];
            Call { tensors, ..Call::default() }.compare(&program);
        }
    }
}

#[test]
fn expanded_functions_of_numbers_from_everywhere() {
    for dtype in [DType::F32, DType::F64] {
        let (lanes, repeats) = (4, 256);
        let numbers = numbers_from_everywhere(dtype, lanes as usize * repeats);
        let output = AnyTensor::zeros(dtype, numbers.shape()).expect("a small tensor");
        for &op in UnaryOp::ALL.iter().filter(|op| op.is_function()) {
            let program = elementwise(&[dtype], dtype, lanes, repeats, |x| {
                math::expand(&Expr::unary(op, x[0].clone())).expect("a function")
            });
            Call { tensors: vec![numbers.clone(), output.clone()], ..Call::default() }.compare(&program);
        }
        let reversed = reversed(&numbers);
        for &op in BinaryOp::ALL.iter().filter(|op| op.is_function()) {
            let program = elementwise(&[dtype, dtype], dtype, lanes, repeats, |x| {
                math::expand(&Expr::binary(op, x[0].clone(), x[1].clone())).expect("a function")
            });
            let tensors = vec![numbers.clone(), reversed.clone(), output.clone()];
            Call { tensors, ..Call::default() }.compare(&program);
        }
    }
}
