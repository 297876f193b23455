//! Marks the statements that access fragments as ones that the lanes of a warp execute together.
//!
//! ```text
//! for i in 0..16 { for j in 0..8 { c[i, j] = f[i, j] } }                        f: fragment
//! intrinsic by_warp { for i in 0..16 { for j in 0..8 { c[i, j] = f[i, j] } } }
//! ```
//!
//! The loops of a marked statement run through the elements of fragments. No later pass changes them: a backend divides them
//! among the lanes. Loops around that choose no element stay outside.

use std::sync::Arc;

use crate::analysis::block::loads_in;
use crate::expr::{Expr, Indices};
use crate::ids::{BufferId, VarId};
use crate::intrinsic::BY_WARP;
use crate::lower::pass::to_loops::expand_intrinsics::make_plain;
use crate::lower::{LowerError, LowerOptions};
use crate::program::{Program, Scope};
use crate::stmt::{Intrinsic, LoopKind, Stmt};

/// Marks all statements that access fragments and are not marked yet.
pub(in crate::lower) fn mark_by_warp(program: &mut Program, _: &LowerOptions) -> Result<(), LowerError> {
    if program.buffers().any(|(_, buffer)| buffer.scope == Scope::Fragment) {
        let mut body = std::mem::replace(&mut program.body, Stmt::nothing());
        mark(program, &mut body);
        program.body = body;
    }
    Ok(())
}

fn mark(program: &Program, stmt: &mut Stmt) {
    if let Stmt::Intrinsic(_) = stmt {
        return;
    }
    if chooses_elements(program, stmt) {
        let mut body = std::mem::replace(stmt, Stmt::nothing());
        make_plain(&mut body);
        *stmt = Stmt::Intrinsic(Arc::new(Intrinsic { name: BY_WARP.into(), body }));
        return;
    }
    stmt.children_mut().into_iter().for_each(|child| mark(program, child));
}

/// Whether a statement is a nest around one store, all of whose loops run through elements of fragments.
fn chooses_elements(program: &Program, stmt: &Stmt) -> bool {
    let accesses = fragment_accesses(program, stmt);
    let is_used =
        |var: VarId| accesses.iter().any(|(_, indices)| indices.iter().any(|index| index.mentions(var)));
    let is_outermost_used = match stmt {
        Stmt::For(node) => is_used(node.var),
        Stmt::If(_) | Stmt::Store(_) => true,
        _ => false,
    };
    !accesses.is_empty() && is_outermost_used && is_nest(stmt)
}

fn is_nest(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Store(_) => true,
        Stmt::For(node) => {
            !matches!(node.kind, LoopKind::Bound(_))
                && node.extent.as_constant().is_some()
                && is_nest(&node.body)
        }
        Stmt::If(node) => node.otherwise.is_none() && is_nest(&node.then),
        _ => false,
    }
}

/// The accesses to fragments in a statement.
pub(super) fn fragment_accesses(program: &Program, stmt: &Stmt) -> Vec<(BufferId, Indices)> {
    let mut found = Vec::new();
    collect(program, stmt, &mut found);
    found
}

fn collect(program: &Program, stmt: &Stmt, found: &mut Vec<(BufferId, Indices)>) {
    match stmt {
        Stmt::Store(store) => {
            if program.buffer(store.buffer).scope == Scope::Fragment {
                found.push((store.buffer, store.indices.clone()));
            }
            collect_loads(program, &store.value, found);
            store.indices.iter().for_each(|index| collect_loads(program, &Expr::index(index.clone()), found));
        }
        Stmt::If(node) => collect_loads(program, &node.condition, found),
        _ => {}
    }
    stmt.each_child().for_each(|child| collect(program, child, found));
}

fn collect_loads(program: &Program, value: &Expr, found: &mut Vec<(BufferId, Indices)>) {
    let mut loads = Vec::new();
    loads_in(value, &mut loads);
    loads.retain(|load| program.buffer(load.buffer).scope == Scope::Fragment);
    found.extend(loads.into_iter().map(|load| (load.buffer, load.indices.clone())));
}

/// Whether a statement accesses a fragment.
pub(super) fn accesses_fragment(program: &Program, stmt: &Stmt) -> bool {
    !fragment_accesses(program, stmt).is_empty()
}
