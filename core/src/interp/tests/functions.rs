//! Expanded functions give the bits that the functions give.

use crate::dtype::DType;
use crate::expr::{Expr, ExprKind, UnaryOp};
use crate::index::Index;
use crate::interp::run;
use crate::math::expand;
use crate::program::{Access, Buffer, Param, Program, Scope, VariableKind};
use crate::stmt::{Annotations, For, LoopKind, Stmt};
use crate::tensor::{AnyTensor, Random};

/// `y[i] = value(x[i])`, vectorised by hand with four lanes when `lanes` says so.
fn elementwise(dtype: DType, count: i64, lanes: u32, value: impl Fn(Expr) -> Expr) -> Program {
    let mut program = Program::new("elementwise");
    let tensor = |name: &str| Buffer {
        name: name.into(),
        dtype,
        shape: vec![Index::constant(count)],
        scope: Scope::Global,
    };
    let (x, y) = (program.add_buffer(tensor("x")), program.add_buffer(tensor("y")));
    program.add_param(Param::Buffer(x, Access::Input));
    program.add_param(Param::Buffer(y, Access::Output));
    let var = program.add_variable("i", VariableKind::Loop);
    let index = Index::var(var).scale(i64::from(lanes)).add_scaled(&Index::lane(lanes), 1);
    let operand = Expr::load(dtype, x, [index.clone()]);
    program.body = Stmt::For(std::sync::Arc::new(For {
        id: program.fresh_loop(),
        var,
        extent: Index::constant(count / i64::from(lanes)),
        kind: LoopKind::Serial,
        annotations: Annotations::new(),
        body: Stmt::store(y, [index], value(operand)),
    }));
    program
}

/// Arguments over the whole range: random bits, and numbers of ordinary size.
fn arguments(dtype: DType, count: usize) -> AnyTensor {
    let mut tensor = AnyTensor::random(dtype, &[count], 11).unwrap();
    let mut random = Random::new(12);
    let half = tensor.bytes().len() / 2;
    for chunk in tensor.bytes_mut()[..half].chunks_exact_mut(8) {
        chunk.copy_from_slice(&random.bits().to_ne_bytes());
    }
    tensor
}

/// Whether two tensors have the same bits, but for NaN, of which any equals any.
fn same_bits(dtype: DType, left: &AnyTensor, right: &AnyTensor) -> bool {
    let (a, b) = (left.to_f64_vec(), right.to_f64_vec());
    let mut pairs = a.iter().zip(&b);
    left.dtype() == dtype && pairs.all(|(a, b)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan())
}

#[test]
fn expanded_functions_equal_the_functions_bit_for_bit() {
    const COUNT: usize = 4096;
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        for &op in UnaryOp::ALL.iter().filter(|op| op.is_function()) {
            let whole = elementwise(dtype, COUNT as i64, 1, |x| Expr::unary(op, x));
            let expanded = elementwise(dtype, COUNT as i64, 4, |x| expand(&Expr::unary(op, x)).unwrap());
            let x = arguments(dtype, COUNT);
            let mut found = [x.clone(), AnyTensor::zeros(dtype, &[COUNT]).unwrap()];
            let mut expected = found.clone();
            run(&whole, &[], &[], &mut expected).unwrap();
            run(&expanded, &[], &[], &mut found).unwrap();
            assert!(same_bits(dtype, &found[1], &expected[1]), "{} of {dtype}", op.text());
        }
    }
}

#[test]
fn only_transcendental_functions_of_floats_are_expanded() {
    let x = Expr::float(DType::F32, 1.0);
    for op in UnaryOp::ALL {
        let expanded = expand(&Expr::unary(*op, x.clone()));
        assert_eq!(expanded.is_some(), op.is_function(), "{}", op.text());
        let remains = |expr: &Expr| matches!(expr.kind(), ExprKind::Unary(op, _) if op.is_function());
        assert!(expanded.is_none_or(|expr| !remains(&expr)), "{}", op.text());
    }
    assert!(expand(&Expr::unary(UnaryOp::Exp, Expr::int(DType::I32, 1))).is_none());
    assert!(expand(&x).is_none());
}
