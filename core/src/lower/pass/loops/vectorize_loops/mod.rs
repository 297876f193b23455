//! Vectorized loops become statements on vectors: the loop variable becomes the
//! [lane](crate::index::Index::lane) number.
//!
//! ```text
//! vectorized for j in 0..8 { c[i, j] = a[i, j] + b[j] }
//! c[i, lane<8>] = a[i, lane<8>] + b[lane<8>]
//! ```
//!
//! The iterations are independent (the schedule checked that), so that loops inside run in lockstep, or all update
//! one element, which becomes a [tree](lane_reduction). A loop whose body has no vector form runs serially: one with a store,
//! condition or extent that differs in a way vectors cannot, with an index that depends on data other than a [byte](crate::flat::tables), or
//! without any contiguous access.

mod lane_reduction;

use std::sync::Arc;

use crate::analysis::block::loads_in;
use crate::analysis::condition::mentions;
use crate::expr::{Expr, ExprKind, Indices};
use crate::flat::tables::byte_of_look_up;
use crate::ids::{BufferId, VarId};
use crate::index::{Base, Index};
use crate::lower::pass::loops::vectorize_loops::lane_reduction::fold;
use crate::lower::util::shorten::{Lengths, clamp};
use crate::lower::{LowerError, LowerOptions};
use crate::program::Program;
use crate::stmt::{For, LoopKind, Stmt, Store};
use crate::visit::{for_each_expr, lanes, substitute_stmt};

/// The most lanes that one statement may have.
const MAX_LANES: i64 = 256;

/// Replaces every vectorized loop by statements on vectors, or makes it serial.
pub(in crate::lower) fn vectorize_loops(program: &mut Program, _: &LowerOptions) -> Result<(), LowerError> {
    let mut body = std::mem::replace(&mut program.body, Stmt::nothing());
    vectorize(&mut body, program);
    program.body = body;
    // The remaining loops may be shortened to any number of iterations.
    clamp(&mut program.body, Lengths::Any);
    Ok(())
}

fn vectorize(stmt: &mut Stmt, program: &mut Program) {
    for child in stmt.children_mut() {
        vectorize(child, program);
    }
    let Stmt::For(node) = stmt else { return };
    if node.kind != LoopKind::Vectorized {
        return;
    }
    match vector_form(node, program) {
        Some(body) => *stmt = body,
        None => Arc::make_mut(node).kind = LoopKind::Serial,
    }
}

fn vector_form(node: &For, program: &mut Program) -> Option<Stmt> {
    let count = node.extent.as_constant().filter(|count| (1..=MAX_LANES).contains(count))?;
    if count > 1
        && !(has_vector_form(&node.body, node.var, program)
            && has_contiguous_access(&node.body, node.var, program))
    {
        return fold(node, count, program);
    }
    let lane = Index::lane(count as u32);
    let mut body = node.body.clone();
    substitute_stmt(&mut body, &|var| (var == node.var).then(|| lane.clone()));
    Some(body)
}

/// Whether a statement can be executed for all values of `var` at once.
fn has_vector_form(stmt: &Stmt, var: VarId, program: &Program) -> bool {
    match stmt {
        Stmt::Seq(stmts) => stmts.iter().all(|stmt| has_vector_form(stmt, var, program)),
        Stmt::For(node) => {
            node.kind != LoopKind::Parallel
                && !node.extent.mentions(var)
                && has_vector_form(&node.body, var, program)
        }
        Stmt::Store(store) => store_has_vector_form(store, var, program),
        Stmt::If(node) => {
            !mentions(&node.condition, var)
                && has_vector_form(&node.then, var, program)
                && node.otherwise.iter().all(|stmt| has_vector_form(stmt, var, program))
        }
        // A private buffer would have to exist once for each lane.
        Stmt::Alloc(_)
        | Stmt::Block(_)
        | Stmt::Intrinsic(_)
        | Stmt::Barrier
        | Stmt::Copies(_)
        | Stmt::Shuffle(_) => false,
    }
}

fn store_has_vector_form(store: &Store, var: VarId, program: &Program) -> bool {
    let is_vector_already = store.indices.iter().any(|index| index.lanes() > 1) || lanes(&store.value) > 1;
    let chooses_element = store.indices.iter().any(|index| index.mentions(var));
    !is_vector_already
        && !store.is_atomic()
        && chooses_element
        && are_affine(&store.indices, var)
        && value_has_vector_form(&store.value, var, program)
}

/// Whether a value can be computed for all values of `var` at once.
pub(in crate::lower) fn value_has_vector_form(value: &Expr, var: VarId, program: &Program) -> bool {
    let mut has_form = true;
    for_each_expr(value, &mut |node| match node.kind() {
        ExprKind::Bounded(..) => has_form &= !mentions(node, var),
        ExprKind::Load(buffer, indices) => {
            has_form &= match byte_of_look_up(program, *buffer, indices) {
                Some(byte) => value_has_vector_form(byte, var, program),
                None => are_affine(indices, var),
            }
        }
        ExprKind::Index(index) => has_form &= is_affine(index, var),
        _ => {}
    });
    has_form
}

fn are_affine(indices: &Indices, var: VarId) -> bool {
    indices.iter().all(|index| is_affine(index, var))
}

/// Whether the variable does not occur inside a value that is not affine.
fn is_affine(index: &Index, var: VarId) -> bool {
    index.terms().iter().all(|term| match &term.digit.base {
        Base::Var(_) | Base::Lane(_) => true,
        Base::Sum(sum) => is_affine(sum, var),
        Base::Value(value) => !mentions(value, var),
    })
}

/// Whether some load or store touches neighbours in neighbouring lanes; without any, every lane would
/// be handled on its own.
fn has_contiguous_access(stmt: &Stmt, var: VarId, program: &Program) -> bool {
    match stmt {
        Stmt::Store(store) => {
            let mut found = Vec::new();
            loads_in(&store.value, &mut found);
            is_contiguous(store.buffer, &store.indices, var, program)
                || found.iter().any(|load| is_contiguous(load.buffer, load.indices, var, program))
        }
        _ => stmt.children().into_iter().any(|child| has_contiguous_access(child, var, program)),
    }
}

/// Whether the address moves by one element with `var`. A loop that was fused over several dimensions may
/// run through all of them at once.
pub(in crate::lower) fn is_contiguous(
    buffer: BufferId,
    indices: &Indices,
    var: VarId,
    program: &Program,
) -> bool {
    let place = program.place(buffer, indices);
    place.linear_coefficient(var) == Some(1)
}
