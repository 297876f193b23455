//! The number of arithmetic operations of a definition, and the number of bytes that it must move.
//!
//! Each addition, multiplication, division, minimum, maximum and elementary function on values counts as one
//! operation, a fused multiply-add as two; index arithmetic, comparisons, selections, conversions and initial
//! values count nothing, and of two branches the longer counts. The count is that of the unscheduled program,
//! for every schedule of it, and a value that is written out at each of its uses counts each time.

use tilewright_core::analysis::scope::blocks;
use tilewright_core::analysis::terms::share_of_needed_terms;
use tilewright_core::analysis::zeros::ZeroElements;
use tilewright_core::dtype::DType;
use tilewright_core::expr::{Expr, ExprKind, UnaryOp};
use tilewright_core::ids::BufferId;
use tilewright_core::program::{Access, Program};
use tilewright_core::stmt::{Block, Stmt};

/// The operations of one run of an unscheduled program whose dimensions are bound.
pub fn count_flops(program: &Program) -> f64 {
    blocks(&program.body).into_iter().map(|block| points(block) * of_stmt(&block.body, f64::max)).sum()
}

fn points(block: &Block) -> f64 {
    block.iters.iter().map(|iter| extent(iter.extent.as_constant())).product()
}

/// The operations that no schedule of an unscheduled program leaves out: no terms of a reduction that cannot change its result, such
/// as products with padding, and of two branches the shorter. `None` where their number is not known.
pub fn count_needed_flops(program: &Program) -> Option<f64> {
    let blocks = blocks(&program.body);
    let zeros = ZeroElements::of_blocks(program, blocks.iter().map(|block| &***block));
    let needed = blocks.iter().map(|block| {
        let share = share_of_needed_terms(program, block, &zeros)?;
        Some(share * points(block) * of_stmt(&block.body, f64::min))
    });
    needed.sum()
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

/// Takes one of the counts of two branches.
type Choose = fn(f64, f64) -> f64;

fn of_stmt(stmt: &Stmt, choose: Choose) -> f64 {
    match stmt {
        Stmt::Store(node) => of_expr(&node.value, choose),
        Stmt::For(node) => extent(node.extent.as_constant()) * of_stmt(&node.body, choose),
        Stmt::If(node) => {
            let otherwise = node.otherwise.as_ref().map_or(0.0, |otherwise| of_stmt(otherwise, choose));
            of_expr(&node.condition, choose) + choose(of_stmt(&node.then, choose), otherwise)
        }
        Stmt::Seq(_)
        | Stmt::Block(_)
        | Stmt::Alloc(_)
        | Stmt::Intrinsic(_)
        | Stmt::Barrier
        | Stmt::Copies(_)
        | Stmt::Shuffle(_) => stmt.children().into_iter().map(|child| of_stmt(child, choose)).sum(),
    }
}

fn of_expr(expr: &Expr, choose: Choose) -> f64 {
    let of = |expr: &Expr| of_expr(expr, choose);
    if let ExprKind::Select(condition, then, otherwise) = expr.kind() {
        return of(condition) + choose(of(then), of(otherwise));
    }
    let own = match expr.kind() {
        _ if expr.dtype() == DType::Bool => 0.0,
        ExprKind::Unary(UnaryOp::Neg | UnaryOp::Not, _) => 0.0,
        ExprKind::Unary(..) | ExprKind::Binary(..) => 1.0,
        ExprKind::MulAdd(..) => 2.0,
        _ => 0.0,
    };
    own + expr.operands().into_iter().map(of).sum::<f64>()
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

    #[test]
    fn products_with_padding_are_counted_and_not_needed() {
        let text = "kernel k(in x: f32[4], in w: f32[3], out y: f32[4]) {
  for i in 0..4 {
    for j in 0..3 {
      block y(vi: spatial 4 = i, vj: reduce 3 = j) {
        init {
          y[vi] = 0.0
        }
        y[vi] = y[vi] + select((index(vi + vj) >= 1) & (index(vi + vj) < 5), x[vi + vj - 1], 0.0) * w[vj]
      }
    }
  }
}
";
        let program = text.parse().expect("the text is a program");
        assert_eq!(count_flops(&program), 4.0 * 3.0 * 2.0);
        assert_eq!(count_needed_flops(&program), Some(10.0 * 2.0));
    }
}
