//! The number of arithmetic operations of a definition, and the number of bytes that it must move.
//!
//! Each addition, multiplication, division, minimum, maximum and elementary function on values counts as one
//! operation, a fused multiply-add as two; index arithmetic, comparisons, selections, conversions and initial
//! values count nothing, and of two branches the longer counts. The count is that of the unscheduled program,
//! for every schedule of it, and a value that is written out at each of its uses counts each time.

use tilewright_core::analysis::scope::blocks;
use tilewright_core::dtype::DType;
use tilewright_core::expr::{Expr, ExprKind, UnaryOp};
use tilewright_core::ids::BufferId;
use tilewright_core::program::{Access, Program};
use tilewright_core::stmt::Stmt;

/// The operations of one run of an unscheduled program whose dimensions are bound.
pub fn count_flops(program: &Program) -> f64 {
    blocks(&program.body)
        .into_iter()
        .map(|block| {
            let points: f64 = block.iters.iter().map(|iter| extent(iter.extent.as_constant())).product();
            points * of_stmt(&block.body)
        })
        .sum()
}

/// The bytes that one run of an unscheduled program whose dimensions are bound must move: each tensor that it reads once, each
/// tensor that it writes once, and updated tensors both ways. Intermediates count nothing.
pub fn count_bytes(program: &Program) -> f64 {
    let bytes = |(id, access): (BufferId, Access)| {
        let buffer = program.buffer(id);
        let ways = if access == Access::InOut { 2.0 } else { 1.0 };
        ways * buffer.constant_len().unwrap_or(0).max(0) as f64 * buffer.dtype.bits() as f64 / 8.0
    };
    program.buffer_params().map(bytes).sum()
}

fn extent(constant: Option<i64>) -> f64 {
    constant.unwrap_or(1).max(0) as f64
}

fn of_stmt(stmt: &Stmt) -> f64 {
    match stmt {
        Stmt::Store(node) => of_expr(&node.value),
        Stmt::For(node) => extent(node.extent.as_constant()) * of_stmt(&node.body),
        Stmt::If(node) => {
            let otherwise = node.otherwise.as_ref().map_or(0.0, of_stmt);
            of_expr(&node.condition) + of_stmt(&node.then).max(otherwise)
        }
        Stmt::Seq(_) | Stmt::Block(_) | Stmt::Alloc(_) | Stmt::Intrinsic(_) | Stmt::Barrier => {
            stmt.children().into_iter().map(of_stmt).sum()
        }
    }
}

fn of_expr(expr: &Expr) -> f64 {
    if let ExprKind::Select(condition, then, otherwise) = expr.kind() {
        return of_expr(condition) + of_expr(then).max(of_expr(otherwise));
    }
    let own = match expr.kind() {
        _ if expr.dtype() == DType::Bool => 0.0,
        ExprKind::Unary(UnaryOp::Neg | UnaryOp::Not, _) => 0.0,
        ExprKind::Unary(..) | ExprKind::Binary(..) => 1.0,
        ExprKind::MulAdd(..) => 2.0,
        _ => 0.0,
    };
    own + expr.operands().into_iter().map(of_expr).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(body: &str) -> f64 {
        let text = format!(
            "kernel k(in x: f32[4, 8], out y: f32[4]) {{
  for i in 0..4 {{
    for k in 0..8 {{
      block y(vi: spatial 4 = i, vk: reduce 8 = k) {{
        init {{
          y[vi] = 0.0
        }}
        {body}
      }}
    }}
  }}
}}
"
        );
        count_flops(&text.parse().expect("the text is a program"))
    }

    #[test]
    fn a_multiply_add_is_two() {
        assert_eq!(count("y[vi] = y[vi] + x[vi, vk] * x[vi, vk]"), 4.0 * 8.0 * 2.0);
        assert_eq!(count("y[vi] = mul_add(x[vi, vk], x[vi, vk], y[vi])"), 4.0 * 8.0 * 2.0);
    }

    #[test]
    fn bytes_are_those_of_the_tensors() {
        let text = "kernel k(in x: f32[4, 8], inout y: f64[4]) {
  for i in 0..4 {
    block y(vi: spatial 4 = i) {
      y[vi] = y[vi] + (x[vi, 0] as f64)
    }
  }
}
";
        let program = text.parse().expect("the text is a program");
        assert_eq!(count_bytes(&program), 4.0 * 8.0 * 4.0 + 2.0 * 4.0 * 8.0);
    }

    #[test]
    fn of_branches_the_longer_counts_and_comparisons_nothing() {
        let text = "y[vi] = y[vi] + select(vk < 3, exp(x[vi, vk]) * 2.0, 0.0)";
        assert_eq!(count(text), 4.0 * 8.0 * 3.0);
    }
}
