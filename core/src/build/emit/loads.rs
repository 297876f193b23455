//! Replaces loads by other expressions, also loads inside indices.

use crate::dtype::DType;
use crate::expr::{Expr, ExprKind, Indices};
use crate::ids::BufferId;
use crate::index::{Base, Index};
use crate::visit::{for_each_load_in_index, rewrite_expr};

/// The replacement of a load whose indices have been rewritten already.
pub(in crate::build) type Replace<'r> = dyn Fn(DType, BufferId, Indices) -> Expr + 'r;

/// Replaces every load, innermost first.
pub(in crate::build) fn replace_loads(expr: &Expr, replace: &Replace<'_>) -> Expr {
    let rewritten = rewrite_expr(expr, &mut |node| {
        let kind = match node.kind() {
            ExprKind::Load(buffer, indices) => {
                let indices = indices.iter().map(|index| replace_loads_in_index(index, replace)).collect();
                return Some(replace(node.dtype(), *buffer, indices));
            }
            ExprKind::Index(index) => ExprKind::Index(replace_loads_in_index(index, replace)),
            ExprKind::Bounded(value, extent) => {
                ExprKind::Bounded(value.clone(), replace_loads_in_index(extent, replace))
            }
            _ => return None,
        };
        (kind != *node.kind()).then(|| Expr::new(node.dtype(), kind))
    });
    rewritten.unwrap_or_else(|| expr.clone())
}

/// As [`replace_loads`], inside an index.
pub(in crate::build) fn replace_loads_in_index(index: &Index, replace: &Replace<'_>) -> Index {
    let mut found = false;
    for_each_load_in_index(index, &mut |_, _| found = true);
    if !found {
        return index.clone();
    }
    index.map_bases(&|base| match base {
        Base::Var(_) | Base::Lane(_) => None,
        Base::Sum(sum) => Some(replace_loads_in_index(sum, replace)),
        Base::Value(value) => Some(Index::value(replace_loads(value, replace))),
    })
}
