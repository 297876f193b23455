//! Loops written out.
//!
//! An `Unrolled` loop becomes its iterations, in order. A serial loop with the annotation
//! [`UNROLL_FACTOR`] keeps a shorter loop around several iterations, and a second one for the rest:
//!
//! ```text
//! @unroll_factor 4 for k in 0..K { body(k) }
//! for k in 0..K/4 { body(4·k) body(4·k + 1) body(4·k + 2) body(4·k + 3) } for k in 0..K%4 { body(K/4·4 + k) }
//! ```
//!
//! A loop whose unrolled form would be too long stays a loop. The distance of a [prefetch](PREFETCH) is then in iterations of the
//! shorter loop.

use std::sync::Arc;

use crate::annotation::{PREFETCH, PREFETCH_SIBLINGS, UNROLL_FACTOR};
use crate::index::Index;
use crate::lower::util::copy::copy_with;
use crate::lower::util::shorten::loop_over;
use crate::lower::{LowerError, LowerOptions};
use crate::program::{Program, VariableKind};
use crate::stmt::{For, LoopKind, Stmt};
use crate::visit::for_each_stmt;

/// Writes out unrolled loops, innermost first.
pub(in crate::lower) fn unroll_loops(
    program: &mut Program,
    options: &LowerOptions,
) -> Result<(), LowerError> {
    let mut body = std::mem::replace(&mut program.body, Stmt::nothing());
    unroll(program, &mut body, options.max_unrolled_statements);
    program.body = body;
    Ok(())
}

fn unroll(program: &mut Program, stmt: &mut Stmt, limit: usize) {
    for child in stmt.children_mut() {
        unroll(program, child, limit);
    }
    match stmt {
        Stmt::For(node) if node.kind == LoopKind::Unrolled => match written_out(program, node, limit) {
            Some(body) => *stmt = body,
            None => Arc::make_mut(node).kind = LoopKind::Serial,
        },
        Stmt::For(node) if node.kind == LoopKind::Serial => {
            if let Some(shorter) = partly_written_out(program, node, limit) {
                *stmt = shorter;
            }
        }
        // Sequences inside became longer ones.
        Stmt::Seq(stmts) if stmts.iter().any(|child| matches!(child, Stmt::Seq(_))) => {
            *stmt = Stmt::seq(stmts.iter().cloned());
        }
        _ => {}
    }
}

/// The number of stores in a statement.
fn size(stmt: &Stmt) -> usize {
    let mut count = 0;
    for_each_stmt(stmt, &mut |node| count += usize::from(matches!(node, Stmt::Store(_))));
    count
}

fn fits(body: &Stmt, copies: i64, limit: usize) -> bool {
    usize::try_from(copies).is_ok_and(|copies| size(body).saturating_mul(copies) <= limit)
}

fn written_out(program: &mut Program, node: &For, limit: usize) -> Option<Stmt> {
    let count = node.extent.as_constant()?;
    if !fits(&node.body, count, limit) {
        return None;
    }
    Some(Stmt::seq((0..count).map(|value| copy_with(program, &node.body, node.var, Index::constant(value)))))
}

fn partly_written_out(program: &mut Program, node: &For, limit: usize) -> Option<Stmt> {
    let factor = UNROLL_FACTOR.get(&node.annotations)?;
    if factor < 2 || !fits(&node.body, factor, limit) {
        return None;
    }
    let (whole, rest) = (node.extent.floor_div(factor), node.extent.modulo(factor));
    let mut outer = node.clone();
    UNROLL_FACTOR.remove(&mut outer.annotations);
    PREFETCH.update(&mut outer.annotations, |distance| distance.saturating_add(factor - 1) / factor);
    let tail = (!rest.is(0)).then(|| {
        let name = program.variable(node.var).name.clone();
        let (id, var) = (program.fresh_loop(), program.add_variable(name, VariableKind::Loop));
        let value = &whole.scale(factor) + &Index::var(var);
        let body = copy_with(program, &node.body, node.var, value);
        let mut annotations = outer.annotations.clone();
        PREFETCH_SIBLINGS.remove(&mut annotations);
        loop_over(For { id, var, extent: rest, body, annotations, ..outer.clone() })
    });
    let base = Index::var(node.var).scale(factor);
    let copies = (0..factor).map(|step| copy_with(program, &node.body, node.var, base.offset(step)));
    outer.body = Stmt::seq(copies);
    outer.extent = whole;
    Some(Stmt::seq([loop_over(outer)].into_iter().chain(tail)))
}
