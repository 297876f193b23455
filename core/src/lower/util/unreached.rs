//! Removes code that would read a buffer which no statement stores to: it never runs.
//!
//! ```text
//! if i < N { alloc s { if 2·i < 2·N { s[0] = … }  if i < N { y[i] = s[0] } } } else { alloc t { if i < N { y[i] = t[0] } } }
//! if i < N { alloc s { if 2·i < 2·N { s[0] = … }  if i < N { y[i] = s[0] } } }
//! ```
//!
//! Passes that decide guards leave such code. Where a guard fails, its statements are removed; if these
//! were all stores to a buffer, the guards of its loads fail too, whether or not the indices show it: a
//! program reads no element before it is stored.

use rustc_hash::FxHashSet;

use crate::analysis::block::{loads, loads_in};
use crate::expr::{Expr, ExprKind};
use crate::ids::BufferId;
use crate::lower::util::prune::without;
use crate::program::Program;
use crate::stmt::Stmt;
use crate::visit::{for_each_stmt, rewrite_expr, rewrite_stmt};

/// Removes the statements that read intermediates to which nothing stores.
pub(in crate::lower) fn remove_unreached(program: &mut Program) {
    loop {
        let undefined = undefined_buffers(program);
        if undefined.is_empty() {
            return;
        }
        if let Some(body) = without(&program.body, &|stmt| is_unreached(stmt, &undefined)) {
            program.body = body;
        }
        rewrite_stmt(&mut program.body, &|_| None, &|expr| reached(expr, &undefined));
    }
}

/// The intermediates that are read and not stored to.
fn undefined_buffers(program: &Program) -> FxHashSet<BufferId> {
    let mut stored = FxHashSet::default();
    for_each_stmt(&program.body, &mut |node| {
        if let Stmt::Store(store) = node {
            stored.insert(store.buffer);
        }
    });
    let read = loads(&program.body).into_iter().map(|access| access.buffer);
    read.filter(|buffer| program.access(*buffer).is_none() && !stored.contains(buffer)).collect()
}

/// Whether a statement, without its children, has to read undefined elements. An intrinsic runs as a
/// whole or not at all.
fn is_unreached(stmt: &Stmt, undefined: &FxHashSet<BufferId>) -> bool {
    match stmt {
        Stmt::Store(node) => {
            reached(&node.value, undefined).is_none()
                || node.indices.iter().any(|index| reads(&index.to_value(), undefined))
        }
        Stmt::If(node) => reached(&node.condition, undefined).is_none(),
        Stmt::Intrinsic(node) => loads(&node.body).iter().any(|access| undefined.contains(&access.buffer)),
        _ => false,
    }
}

fn reads(expr: &Expr, undefined: &FxHashSet<BufferId>) -> bool {
    let mut found = Vec::new();
    loads_in(expr, &mut found);
    found.iter().any(|access| undefined.contains(&access.buffer))
}

/// The value that an expression has without the arms of conditionals that it never takes; `None` when it is
/// never evaluated.
fn reached(expr: &Expr, undefined: &FxHashSet<BufferId>) -> Option<Expr> {
    if !reads(expr, undefined) {
        return Some(expr.clone());
    }
    let rebuilt = rewrite_expr(expr, &mut |node| match node.kind() {
        ExprKind::Select(condition, then, otherwise) if !reads(condition, undefined) => {
            match (reads(then, undefined), reads(otherwise, undefined)) {
                (true, false) => Some(otherwise.clone()),
                (false, true) => Some(then.clone()),
                _ => None,
            }
        }
        _ => None,
    });
    rebuilt.filter(|expr| !reads(expr, undefined))
}

#[cfg(test)]
mod tests {
    use super::remove_unreached;
    use crate::program::Program;

    fn without_unreached(text: &str) -> String {
        let mut program: Program = text.parse().unwrap();
        remove_unreached(&mut program);
        program.to_string()
    }

    #[test]
    fn what_reads_what_nothing_stores_to_disappears_with_its_guards() {
        let found = without_unreached(
            "kernel k(N, in x: f32[N], out y: f32[N], out z: f32[N]) {
  buffer s: f32[N] local
  buffer t: f32[N] local
  for i in 0..N {
    alloc s {
      alloc t {
        if i < N {
          t[i] = s[i] + x[i]
        }
        if i < N {
          y[i] = t[i]
        }
        z[i] = x[i]
      }
    }
  }
}
",
        );
        assert!(!found.contains("if") && !found.contains("y[i] ="), "{found}");
        assert!(found.contains("z[i] = x[i]"), "{found}");
    }

    #[test]
    fn a_conditional_value_takes_its_other_arm() {
        let found = without_unreached(
            "kernel k(N, in x: f32[N], out y: f32[N]) {
  buffer s: f32[N] local
  for i in 0..N {
    alloc s {
      y[i] = select(i < 3, s[i], x[i]) + 1.0
    }
  }
}
",
        );
        assert!(found.contains("y[i] = x[i] + 1.0"), "{found}");
    }
}
