//! Binding symbolic dimensions to the sizes of one call.

mod crop;
mod taps;

use std::sync::Arc;

use crate::dtype::DType;
use crate::expr::{Constant, Expr, ExprKind};
use crate::ids::VarId;
use crate::index::{Index, Ranges};
use crate::program::{Param, Program};
use crate::simplify::{compare_indices, simplify_expr};
use crate::stmt::{Block, For, IterKind, Stmt};
use crate::visit::{rewrite_expr, rewrite_stmt, substitute_stmt};

impl Program {
    /// The same program for given sizes: dimensions are replaced by constants and are no longer
    /// parameters, conditions that have become certain are decided, and a reduction over nothing leaves
    /// only its initial value. Dimensions that are not named stay symbolic.
    ///
    /// A size that comes out negative (`N - 1` for `N = 0`) counts as zero: there is nothing to compute.
    ///
    /// The structure stays as it is: loops of one iteration and of none are kept, so that the same
    /// schedule applies to every size.
    pub fn bind_dims(&self, sizes: &[(VarId, i64)]) -> Program {
        let size =
            |var: VarId| sizes.iter().find(|(dim, _)| *dim == var).map(|(_, size)| Index::constant(*size));
        let mut bound = self.clone();
        let kept = |param: &Param| !matches!(param, Param::Dim(var) if size(*var).is_some());
        bound.params = Arc::new(self.params.iter().copied().filter(kept).collect());
        for (id, buffer) in self.buffers() {
            let shape: Vec<Index> =
                buffer.shape.iter().map(|extent| not_negative(extent.substitute(&size))).collect();
            if shape != buffer.shape {
                bound.buffer_mut(id).shape = shape;
            }
        }
        for strides in Arc::make_mut(&mut bound.stride_table).values_mut().flatten() {
            *strides = strides.substitute(&size);
        }
        substitute_stmt(&mut bound.body, &size);
        clamp_extents(&mut bound.body);
        bound.body = keep_initial_values(&bound.body);
        decide_conditions(&mut bound.body);
        bound
    }

    /// The same program for given values of run-time scalars, which are no longer parameters. Scalars inside of indices stay.
    pub fn bind_scalars(&self, values: &[(VarId, Constant)]) -> Program {
        let mut bound = self.clone();
        let value = |var: VarId| values.iter().find(|(scalar, _)| *scalar == var).map(|(_, value)| *value);
        let kept = |param: &Param| !matches!(param, Param::Scalar(var, _) if value(*var).is_some());
        bound.params = Arc::new(self.params.iter().copied().filter(kept).collect());
        let expr = |expr: &Expr| {
            rewrite_expr(expr, &mut |node| match node.kind() {
                ExprKind::Scalar(var) => Some(Expr::new(node.dtype(), ExprKind::Constant(value(*var)?))),
                _ => None,
            })
        };
        rewrite_stmt(&mut bound.body, &|_| None, &expr);
        bound
    }
}

/// The extent, or zero when it is a negative constant.
fn not_negative(extent: Index) -> Index {
    if extent.as_constant().is_some_and(|size| size < 0) { Index::constant(0) } else { extent }
}

fn clamp_extents(stmt: &mut Stmt) {
    match stmt {
        Stmt::For(node) if node.extent.as_constant().is_some_and(|extent| extent < 0) => {
            Arc::make_mut(node).extent = Index::constant(0);
        }
        Stmt::Block(node) => {
            for iter in &mut Arc::make_mut(node).iters {
                iter.extent = not_negative(std::mem::take(&mut iter.extent));
            }
        }
        _ => {}
    }
    stmt.children_mut().into_iter().for_each(clamp_extents);
}

/// The statements with the initial values of all reductions without a point.
fn keep_initial_values(stmt: &Stmt) -> Stmt {
    if single_block(stmt).is_some() {
        return keep_initial_value(stmt);
    }
    match stmt {
        Stmt::Seq(stmts) => Stmt::seq(stmts.iter().map(keep_initial_values)),
        Stmt::For(node) if node.extent.is(0) => {
            let mut rest = stmt.clone();
            let mut nests = Vec::new();
            take_reductions(&mut rest, &mut Vec::new(), &mut nests);
            Stmt::seq(nests.into_iter().chain([rest]))
        }
        Stmt::For(node) => {
            Stmt::For(Arc::new(For { body: keep_initial_values(&node.body), ..For::clone(node) }))
        }
        _ => stmt.clone(),
    }
}

/// The block that perfectly nested loops hold alone.
fn single_block(mut stmt: &Stmt) -> Option<&Arc<Block>> {
    while let Stmt::For(node) = stmt {
        stmt = &node.body;
    }
    match stmt {
        Stmt::Block(block) => Some(block),
        _ => None,
    }
}

/// Takes the blocks with initial values out of loops of which the outermost has no iteration, each as a nest of its own.
fn take_reductions(stmt: &mut Stmt, around: &mut Vec<Arc<For>>, nests: &mut Vec<Stmt>) {
    if let Stmt::For(node) = stmt {
        around.push(node.clone());
        take_reductions(&mut Arc::make_mut(node).body, around, nests);
        around.pop();
        if node.body.is_nothing() {
            *stmt = Stmt::nothing();
        }
        return;
    }
    if let Stmt::Block(block) = stmt {
        let reduces = |var: VarId| {
            block.iters.iter().any(|iter| iter.kind == IterKind::Reduce && iter.binding.mentions(var))
        };
        if block.init.is_some() && around.iter().all(|node| !node.extent.is(0) || reduces(node.var)) {
            let nest = around
                .iter()
                .rev()
                .fold(stmt.clone(), |body, node| Stmt::For(Arc::new(For { body, ..For::clone(node) })));
            nests.push(keep_initial_value(&nest));
            *stmt = Stmt::nothing();
        }
        return;
    }
    stmt.children_mut().into_iter().for_each(|child| take_reductions(child, around, nests));
    if let Stmt::Seq(stmts) = stmt {
        *stmt = Stmt::seq(stmts.iter().cloned());
    }
}

/// A block whose reduction has no point never runs, and neither does its `init`. The definition then means
/// the initial value, which becomes the body of the block over the spatial loops alone.
fn keep_initial_value(nest: &Stmt) -> Stmt {
    let mut loops: Vec<&Arc<For>> = Vec::new();
    let mut inner = nest;
    while let Stmt::For(node) = inner {
        loops.push(node);
        inner = &node.body;
    }
    let Stmt::Block(block) = inner else { return nest.clone() };
    let Some(init) = &block.init else { return nest.clone() };
    let (reductions, spatial): (Vec<_>, Vec<_>) =
        block.iters.iter().cloned().partition(|iter| iter.kind == IterKind::Reduce);
    if reductions.iter().all(|iter| !iter.extent.is(0)) {
        return nest.clone();
    }
    let kept: Vec<&Arc<For>> = loops
        .into_iter()
        .filter(|node| {
            spatial.iter().any(|iter| iter.binding.mentions(node.var))
                || reductions.iter().all(|iter| !iter.binding.mentions(node.var))
        })
        .collect();
    let only_init = Block { iters: spatial, init: None, body: init.clone(), ..Block::clone(block) };
    kept.into_iter().rev().fold(Stmt::Block(Arc::new(only_init)), |body, node| {
        Stmt::For(Arc::new(For { body, ..For::clone(node) }))
    })
}

/// Decides the conditions in every block that the ranges of its iterators make certain.
fn decide_conditions(stmt: &mut Stmt) {
    if let Stmt::Block(node) = stmt {
        let all = node.iters.iter().map(|iter| (iter.var, iter.extent.clone()));
        let ranges = BlockRanges {
            all: all.clone().collect(),
            // An iterator of one value stays in the indices: it is part of the block's structure.
            variable: all.filter(|(_, extent)| !extent.is(1)).collect(),
        };
        let empty = node.iters.iter().any(|iter| iter.extent.is(0));
        if !empty {
            let block = Arc::make_mut(node);
            block.init.iter_mut().for_each(|init| ranges.decide(init));
            ranges.decide(&mut block.body);
        }
        return;
    }
    stmt.children_mut().into_iter().for_each(decide_conditions);
}

struct BlockRanges {
    /// Of every iterator.
    all: Ranges,
    /// Of those that take more than one value.
    variable: Ranges,
}

impl BlockRanges {
    fn decide(&self, stmt: &mut Stmt) {
        let decided = match stmt {
            Stmt::Store(node) => {
                if let Some(value) = self.simplify(&node.value) {
                    Arc::make_mut(node).value = value;
                }
                None
            }
            Stmt::If(node) => {
                let condition = self.simplify(&node.condition).unwrap_or_else(|| node.condition.clone());
                match condition.as_constant() {
                    Some(crate::expr::Constant::Int(0)) => {
                        Some(node.otherwise.clone().unwrap_or_else(Stmt::nothing))
                    }
                    Some(_) => Some(node.then.clone()),
                    None => {
                        Arc::make_mut(node).condition = condition;
                        None
                    }
                }
            }
            _ => None,
        };
        if let Some(decided) = decided {
            *stmt = decided;
            self.decide(stmt);
            return;
        }
        stmt.children_mut().into_iter().for_each(|child| self.decide(child));
    }

    fn simplify(&self, expr: &Expr) -> Option<Expr> {
        let compared = rewrite_expr(expr, &mut |node| match node.kind() {
            ExprKind::Binary(op, a, b) if op.is_comparison() && a.dtype() == DType::I64 => {
                match (a.kind(), b.kind()) {
                    (ExprKind::Index(a), ExprKind::Index(b)) => {
                        compare_indices(*op, a, b, &self.all).map(Expr::bool)
                    }
                    _ => None,
                }
            }
            _ => None,
        });
        let node = compared.as_ref().unwrap_or(expr);
        simplify_expr(node, &self.variable).or(compared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(text: &str, sizes: &[(&str, i64)]) -> String {
        let program: Program = text.parse().expect("the text is a program");
        let named: Vec<(VarId, i64)> = program
            .dims()
            .filter_map(|(var, name)| {
                sizes.iter().find(|(dim, _)| *dim == &**name).map(|(_, size)| (var, *size))
            })
            .collect();
        program.bind_dims(&named).to_string()
    }

    const SUM: &str = "kernel sum(M, K, in x: f32[M, K], out y: f32[M]) {
  for i in 0..M {
    for k in 0..K {
      block y(vi: spatial M = i, vk: reduce K = k) {
        init {
          y[vi] = 0.0
        }
        y[vi] = y[vi] + select(vk < 4, x[vi, vk], 0.0)
      }
    }
  }
}
";

    #[test]
    fn sizes_replace_dimensions_and_decide_conditions() {
        let text = bind(SUM, &[("M", 1), ("K", 4)]);
        assert!(text.contains("kernel sum(in x: f32[1, 4], out y: f32[1])"), "{text}");
        assert!(text.contains("y[vi] = y[vi] + x[vi, vk]"), "{text}");
        let text = bind(SUM, &[("K", 5)]);
        assert!(text.contains("kernel sum(M, in x: f32[M, 5], out y: f32[M])"), "{text}");
        assert!(text.contains("select(vk < 4, x[vi, vk], 0.0)"), "{text}");
    }

    #[test]
    fn a_reduction_over_nothing_leaves_its_initial_value() {
        let text = bind(SUM, &[("M", 3), ("K", 0)]);
        assert!(
            text.contains("for i in 0..3 {\n    block y(vi: spatial 3 = i) {\n      y[vi] = 0.0"),
            "{text}"
        );
        assert!(!text.contains("for k"), "{text}");
    }

    #[test]
    fn a_negative_size_counts_as_zero() {
        let program = SUM.replace("K", "(K - 1)").replace("(M, (K - 1),", "(M, K,");
        let text = bind(&program, &[("M", 2), ("K", 0)]);
        assert!(text.contains("x: f32[2, 0]"), "{text}");
        assert!(text.contains("y[vi] = 0.0") && !text.contains("for k"), "{text}");
    }

    #[test]
    fn nothing_to_do_is_still_a_program() {
        let text = bind(SUM, &[("M", 0), ("K", 3)]);
        assert!(text.contains("for i in 0..0"), "{text}");
    }
}
