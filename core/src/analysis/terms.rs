//! The terms of a reduction that change its result: products with padding do not.

use crate::analysis::block::{complete_store, loads_in, reduction_of, single_store, writes};
use crate::analysis::condition::difference;
use crate::analysis::neutral::{Products, conditions_of_term};
use crate::analysis::scope::producers;
use crate::analysis::share::share_of_points;
use crate::analysis::zeros::ZeroElements;
use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::index::{Index, Ranges};
use crate::program::Program;
use crate::stmt::Block;
use crate::visit::for_each_expr;

/// The share of a block's points that every schedule has to evaluate: all of them, or those with terms that are not
/// [neutral](crate::analysis::neutral). `None` where a selection leaves open how many these are, because its condition depends on
/// data, on remainders, or on something else that is not counted.
pub fn share_of_needed_terms(program: &Program, block: &Block, zeros: &ZeroElements) -> Option<f64> {
    let Some(store) = single_store(block) else { return Some(1.0) };
    let Some(reduction) = reduction_of(store) else { return Some(1.0) };
    let conditions = conditions_of_term(store, Products::of(program), zeros);
    let is_counted = |condition: Option<Index>| condition.is_some_and(|known| conditions.contains(&known));
    if !comparisons(reduction.value).into_iter().all(|one| is_counted(difference(one))) {
        return None;
    }
    let mut loads = Vec::new();
    loads_in(reduction.value, &mut loads);
    for producer in producers(program, block) {
        let selections = complete_store(producer).map_or(0, |store| comparisons(&store.value).len());
        let stored = writes(producer);
        for load in loads.iter().filter(|load| stored.contains(&load.buffer)) {
            let known = zeros.conditions(load.buffer, load.indices);
            if known.filter(|condition| conditions.contains(condition)).count() < selections {
                return None;
            }
        }
    }
    let ranges: Ranges = block.iters.iter().map(|iter| (iter.var, iter.extent.clone())).collect();
    share_of_points(&conditions, &ranges)
}

/// The comparisons in the conditions of all selections in an expression.
fn comparisons(value: &Expr) -> Vec<&Expr> {
    fn conjuncts<'a>(condition: &'a Expr, found: &mut Vec<&'a Expr>) {
        match condition.kind() {
            ExprKind::Binary(BinaryOp::And, a, b) => {
                conjuncts(a, found);
                conjuncts(b, found);
            }
            _ => found.push(condition),
        }
    }
    let mut found = Vec::new();
    for_each_expr(value, &mut |node| {
        if let ExprKind::Select(condition, ..) = node.kind() {
            conjuncts(condition, &mut found);
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::scope::blocks;

    /// The share of the terms of block `y`, with `padded` as the element that it multiplies.
    fn share(padded: &str) -> Option<f64> {
        let text = format!(
            "kernel k(in x: f32[10], in n: i64[10], in w: f32[3], out y: f32[10]) {{
               buffer p: f32[12] global
               for a in 0..12 {{
                 block p(va: spatial 12 = a) {{
                   p[va] = select((va >= 1) & (va < 11), x[va - 1], 0.0)
                 }}
               }}
               for i in 0..10 {{
                 for j in 0..3 {{
                   block y(vi: spatial 10 = i, vj: reduce 3 = j) {{
                     init {{ y[vi] = 0.0 }}
                     y[vi] = y[vi] + {padded} * w[vj]
                   }}
                 }}
               }}
             }}"
        );
        let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
        let all = blocks(&program.body);
        let zeros = ZeroElements::of_blocks(&program, all.iter().map(|block| &***block));
        share_of_needed_terms(&program, all[1], &zeros)
    }

    #[test]
    fn products_with_padding_are_not_needed() {
        let inside = Some(28.0 / 30.0);
        assert_eq!(share("select((vi + vj >= 1) & (vi + vj < 11), x[vi], 0.0)"), inside);
        assert_eq!(share("p[vi + vj]"), inside, "the padding is stored");
        assert_eq!(share("x[vi]"), Some(1.0));
    }

    #[test]
    fn other_selections_leave_the_number_open() {
        assert_eq!(share("select((vi + vj)%2 == 0, x[vi], 0.0)"), None, "a remainder");
        assert_eq!(share("select(n[vi] > 3i64, x[vi], 0.0)"), None, "data");
        assert_eq!(share("select(vi + vj >= 1, x[vi], 1.0)"), None, "neither branch is zero");
    }
}
