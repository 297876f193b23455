//! Expected results that are more exact than the results judged by them.
//!
//! A definition that adds up millions of terms in `f32`, one by one, has a larger error than any schedule that adds them up in
//! several sums. The program is therefore evaluated with `f64` in place of all lesser floats as well. These results are
//! used where they agree with the definition's, as far as the rounding errors of the definition allow in the worst case.
//!
//! The same program with all signs removed adds up the magnitudes of all terms. Rounding errors of an element are relative to
//! that sum (Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., §4.2). Programs with functions or quotients have
//! no such sum.

use std::sync::Arc;

use tilewright_core::analysis::block::is_ordered;
use tilewright_core::analysis::scope::blocks;
use tilewright_core::device::{Arguments, Device};
use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, Constant, Expr, ExprKind, UnaryOp};
use tilewright_core::interp;
use tilewright_core::lower::lower_kernel;
use tilewright_core::program::{Access, Param, Program};
use tilewright_core::stmt::Stmt;
use tilewright_core::target::{RunContext, RunOptions};
use tilewright_core::tensor::AnyTensor;
use tilewright_core::verify::{Level, verify};
use tilewright_core::visit::{for_each_load, for_each_stmt, rewrite_expr, rewrite_stmt};
use tilewright_runtime::code;
use tilewright_search::schedule_by_default;

use super::inputs::Inputs;
use super::oracle::points;
use super::tolerance::{Expected, Tolerance};
use super::{buffer_arguments, written};

/// Up to this number of points the program is interpreted: some hundredths of a second.
const INTERPRETED_POINTS: f64 = 1e5;

/// Up to this number of points it is compiled without a schedule: about a second. Beyond, it gets the default schedule.
const UNSCHEDULED_POINTS: f64 = 2e8;

/// The results of a program in `f64`, with magnitudes where there are any; `None` where none agree with those of
/// the definition.
pub(super) fn exact(
    program: &Program,
    inputs: &Inputs,
    reference: &[Option<AnyTensor>],
    device: &Arc<dyn Device>,
    options: RunOptions,
) -> Option<Vec<Option<Expected>>> {
    // Errors of a recurrence may grow from step to step without bound, and its order is the definition's.
    if blocks(&program.body).into_iter().any(|block| is_ordered(block)) {
        return None;
    }
    let wide = widened(program)?;
    let results =
        evaluate(&wide, &inputs.scalars, wide_tensors(&inputs.tensors, |value| value)?, device, options)?;
    let magnitudes = magnitudes(&wide).and_then(|program| {
        evaluate(&program, &inputs.scalars, wide_tensors(&inputs.tensors, f64::abs)?, device, options)
    });
    let mut magnitudes = magnitudes.unwrap_or_default().into_iter();
    let expected: Vec<Option<Expected>> = results
        .into_iter()
        .map(|values| {
            let magnitudes = magnitudes.next().flatten().filter(|tensor| tensor.dtype().is_float());
            Some(Expected { values: values?, magnitudes })
        })
        .collect();
    let tolerance = Tolerance::of(program);
    let agree = reference.iter().zip(&expected).all(|(reference, expected)| match (reference, expected) {
        (Some(reference), Some(expected)) => tolerance.agree(reference, expected),
        (None, None) => true,
        _ => false,
    });
    if !agree {
        tracing::debug!(program = %program.name, "results in f64 are other ones than the definition's");
    }
    agree.then_some(expected)
}

/// A program with `f64` in place of lesser floats; `None` where that has no meaning, as for the bits of a float.
fn widened(program: &Program) -> Option<Program> {
    let mut wide = program.clone();
    wide.accuracy = None;
    let narrow: Vec<_> =
        wide.buffers().filter(|(_, buffer)| buffer.dtype.is_float()).map(|(id, _)| id).collect();
    narrow.into_iter().for_each(|id| wide.buffer_mut(id).dtype = DType::F64);
    let widen = |param: &mut Param| {
        if let Param::Scalar(_, dtype) = param
            && dtype.is_float()
        {
            *dtype = DType::F64;
        }
    };
    Arc::make_mut(&mut wide.params).iter_mut().for_each(widen);
    let mut has_bits = false;
    let mut found = |expr: &Expr| has_bits |= matches!(expr.kind(), ExprKind::Bitcast(_));
    for_each_stmt(&wide.body, &mut |stmt| match stmt {
        Stmt::Store(node) => tilewright_core::visit::for_each_expr(&node.value, &mut found),
        Stmt::If(node) => tilewright_core::visit::for_each_expr(&node.condition, &mut found),
        _ => {}
    });
    if has_bits {
        return None;
    }
    rewrite_stmt(&mut wide.body, &|_| None, &|expr| rewrite_expr(expr, &mut wide_node));
    // Floats inside indices keep their type, which the verifier notices.
    verify(&wide, Level::Blocks).is_ok().then_some(wide)
}

/// A node with operands of `f64`; `None` where it stays.
fn wide_node(node: &Expr) -> Option<Expr> {
    if !node.dtype().is_float() {
        return None;
    }
    match node.kind() {
        ExprKind::Cast(operand) if operand.dtype() == DType::F64 => Some(operand.clone()),
        kind => (node.dtype() != DType::F64).then(|| Expr::new(DType::F64, kind.clone())),
    }
}

/// A program of `f64` that adds up the magnitudes of the terms of another one, from the magnitudes of its arguments; `None`
/// where the other one does more than add, multiply and choose.
fn magnitudes(program: &Program) -> Option<Program> {
    let loads_floats = |condition: &Expr| {
        let mut found = false;
        for_each_load(condition, &mut |buffer, _| found |= program.buffer(buffer).dtype.is_float());
        found
    };
    let mut is_linear = true;
    for_each_stmt(&program.body, &mut |stmt| match stmt {
        Stmt::Store(node) if program.buffer(node.buffer).dtype.is_float() => {
            is_linear &= magnitude(&node.value, &loads_floats).is_some();
        }
        Stmt::Store(node) => is_linear &= !loads_floats(&node.value),
        Stmt::If(node) => is_linear &= !loads_floats(&node.condition),
        _ => {}
    });
    if !is_linear {
        return None;
    }
    let mut found = program.clone();
    let rewrite = |expr: &Expr| match expr.dtype().is_float() {
        true => magnitude(expr, &loads_floats),
        false => None,
    };
    rewrite_stmt(&mut found.body, &|_| None, &rewrite);
    Some(found)
}

fn magnitude(expr: &Expr, loads_floats: &dyn Fn(&Expr) -> bool) -> Option<Expr> {
    let of = |operand: &Expr| magnitude(operand, loads_floats);
    Some(match expr.kind() {
        ExprKind::Constant(constant) => Expr::float(expr.dtype(), constant.as_f64().abs()),
        ExprKind::Load(..) => expr.clone(),
        ExprKind::Scalar(_) => Expr::unary(UnaryOp::Abs, expr.clone()),
        ExprKind::Unary(UnaryOp::Neg | UnaryOp::Abs, a) => of(a)?,
        ExprKind::Binary(BinaryOp::Add | BinaryOp::Sub, a, b) => Expr::binary(BinaryOp::Add, of(a)?, of(b)?),
        ExprKind::Binary(BinaryOp::Mul, a, b) => Expr::binary(BinaryOp::Mul, of(a)?, of(b)?),
        ExprKind::Binary(BinaryOp::Min | BinaryOp::Max, a, b) => Expr::binary(BinaryOp::Max, of(a)?, of(b)?),
        ExprKind::Binary(BinaryOp::Minimum | BinaryOp::Maximum, a, b) => {
            Expr::binary(BinaryOp::Maximum, of(a)?, of(b)?)
        }
        ExprKind::MulAdd(a, b, c) => Expr::mul_add(of(a)?, of(b)?, of(c)?),
        ExprKind::Select(condition, a, b) if !loads_floats(condition) => {
            Expr::select(condition.clone(), of(a)?, of(b)?)
        }
        ExprKind::Cast(a) if !a.dtype().is_float() && !loads_floats(a) => {
            Expr::unary(UnaryOp::Abs, expr.clone())
        }
        _ => return None,
    })
}

/// Tensors with `f64` in place of lesser floats.
fn wide_tensors(tensors: &[AnyTensor], map: fn(f64) -> f64) -> Option<Vec<AnyTensor>> {
    let widen = |tensor: &AnyTensor| {
        if !tensor.dtype().is_float() {
            return Some(tensor.clone());
        }
        let values: Vec<f64> = tensor.to_f64_vec().into_iter().map(map).collect();
        AnyTensor::from_f64s(DType::F64, &values, tensor.shape()).ok()
    };
    tensors.iter().map(widen).collect()
}

/// The tensors after a run of a program with bound dimensions; `None` for tensors that it only reads, and where it cannot be run.
fn evaluate(
    program: &Program,
    scalars: &[Constant],
    mut tensors: Vec<AnyTensor>,
    device: &Arc<dyn Device>,
    options: RunOptions,
) -> Option<Vec<Option<AnyTensor>>> {
    let points = points(program);
    if points <= INTERPRETED_POINTS {
        interp::run(program, &[], scalars, &mut tensors).ok()?;
        return Some(written(program, tensors));
    }
    let scheduled = match points <= UNSCHEDULED_POINTS {
        true => program.clone(),
        false => {
            let context = RunContext::new(device.target().clone(), options);
            schedule_by_default(program, context).into_parts().0
        }
    };
    let lowered = lower_kernel(&scheduled, device.target()).ok()?;
    let compiled = code::compile(device, &[&lowered]).pop()?.ok()?;
    let accesses: Vec<Access> = program.buffer_params().map(|(_, access)| access).collect();
    let mut buffers = buffer_arguments(&mut tensors, &accesses);
    compiled.run(&mut Arguments { dims: &[], scalars, buffers: &mut buffers }, options).ok()?;
    drop(buffers);
    Some(written(program, tensors))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(value: &str) -> Program {
        let text = format!(
            "kernel k(s: f32, in x: f32[2, 64], out y: f32[2]) {{
  for i in 0..2 {{
    for k in 0..64 {{
      block y(vi: spatial 2 = i, vk: reduce 64 = k) {{
        init {{
          y[vi] = 0.0
        }}
        y[vi] = y[vi] + {value}
      }}
    }}
  }}
}}
"
        );
        text.parse().expect("the text is a program")
    }

    /// The result of a program of `f64` for arguments that alternate between 0.1 and -0.1.
    fn result(program: &Program, map: fn(f64) -> f64) -> Vec<f64> {
        let values: Vec<f64> = (0..128).map(|n| map(if n % 2 == 0 { 0.1 } else { -0.1 })).collect();
        let x = AnyTensor::from_f64s(DType::F64, &values, &[2, 64]).expect("it fits");
        let y = AnyTensor::zeros(DType::F64, &[2]).expect("it fits");
        let mut tensors = [x, y];
        interp::run(program, &[], &[Constant::float(3.0)], &mut tensors).expect("it runs");
        tensors[1].to_f64_vec()
    }

    #[test]
    fn sums_are_formed_in_f64_and_magnitudes_beside_them() {
        let wide = widened(&program("s * x[vi, vk] - 0.5")).expect("it has a form in f64");
        assert!(wide.buffers().all(|(_, buffer)| buffer.dtype == DType::F64), "{wide}");
        for value in result(&wide, |value| value) {
            assert!((value + 32.0).abs() < 1e-12, "{value}");
        }
        let magnitudes = magnitudes(&wide).expect("it only adds and multiplies");
        for value in result(&magnitudes, f64::abs) {
            assert!((value - 64.0 * 0.8).abs() < 1e-12, "{value}");
        }
    }

    #[test]
    fn functions_have_results_and_no_magnitudes() {
        let wide = widened(&program("exp(x[vi, vk])")).expect("it has a form in f64");
        assert!(magnitudes(&wide).is_none());
        let chosen = widened(&program("select(x[vi, vk] < 0.0, 0.0, x[vi, vk])")).expect("as above");
        assert!(magnitudes(&chosen).is_none(), "which one is chosen depends on signs");
    }
}
