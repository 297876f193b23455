//! Operands of intrinsics under a condition become buffers of their own.
//!
//! ```text
//! intrinsic dot { for l in 0..16 { for k in 0..4 { c[l] = c[l] + select(j + k < 802, x[j + k], 0) * w[l, k] } } }
//!
//! alloc operand {
//!   operand[lane<4>] = select(j + lane<4> < 802, x[j + lane<4>], 0)
//!   intrinsic dot { for l in 0..16 { for k in 0..4 { c[l] = c[l] + operand[k] * w[l, k] } } }
//! }
//! ```
//!
//! An intrinsic loads its operands without a condition, so that a marked statement with one is not what the intrinsic computes: all its products
//! would be formed one by one. Filters whose taps are padded to whole groups read beyond the end of a row like this, with weights of zero.
//! Intrinsics that follow each other share a buffer for equal operands.

use std::sync::Arc;

use crate::analysis::block::{loads_in, stores};
use crate::expr::{Expr, ExprKind, Indices};
use crate::ids::{BufferId, VarId};
use crate::index::Index;
use crate::lower::pass::to_loops::expand_intrinsics::holds_intrinsic;
use crate::lower::{LowerError, LowerOptions};
use crate::program::{Buffer, Program, Scope};
use crate::stmt::{Alloc, Intrinsic, Stmt};
use crate::visit::{for_each_expr, for_each_var, rewrite_expr, rewrite_stmt, substitute_expr};

/// The most elements of an operand: a vector register of bytes.
const MOST_ELEMENTS: i64 = 64;

/// Gives operands under a condition buffers of their own.
pub(in crate::lower) fn stage_operands(program: &mut Program, _: &LowerOptions) -> Result<(), LowerError> {
    if holds_intrinsic(&program.body) {
        let body = std::mem::replace(&mut program.body, Stmt::nothing());
        program.body = staged(program, &body);
    }
    Ok(())
}

fn staged(program: &mut Program, stmt: &Stmt) -> Stmt {
    match stmt {
        Stmt::Seq(stmts) => Sequence::of(program, stmts),
        Stmt::Intrinsic(_) => Sequence::of(program, std::slice::from_ref(stmt)),
        _ => {
            let mut stmt = stmt.clone();
            for child in stmt.children_mut() {
                *child = staged(program, child);
            }
            stmt
        }
    }
}

/// An operand in a buffer.
struct Operand {
    buffer: BufferId,
    /// All its elements at once.
    value: Expr,
}

/// Statements in order, with the operands that stand in front of them.
struct Sequence<'p> {
    program: &'p mut Program,
    /// The operands that nothing has changed so far.
    operands: Vec<Operand>,
    /// The buffers of all operands.
    allocated: Vec<BufferId>,
    body: Vec<Stmt>,
}

impl Sequence<'_> {
    /// Statements with the buffers of their operands around them.
    fn of(program: &mut Program, stmts: &[Stmt]) -> Stmt {
        let mut sequence =
            Sequence { program, operands: Vec::new(), allocated: Vec::new(), body: Vec::new() };
        for stmt in stmts {
            match stmt {
                Stmt::Intrinsic(node) => sequence.intrinsic(node),
                _ => {
                    sequence.operands.clear();
                    let stmt = staged(sequence.program, stmt);
                    sequence.body.push(stmt);
                }
            }
        }
        let body = Stmt::seq(sequence.body);
        let buffers = sequence.allocated.into_iter().rev();
        buffers.fold(body, |body, buffer| Stmt::Alloc(Arc::new(Alloc { buffer, body })))
    }

    /// Adds a marked statement that loads its operands without a condition.
    fn intrinsic(&mut self, node: &Intrinsic) {
        let mut node = node.clone();
        let loops = loops_of(&node.body);
        while let Some((guarded, var, extent)) = guarded_operand(&node.body, &loops) {
            let buffer = self.buffer_of(&guarded, var, extent);
            let load = Expr::load(guarded.dtype(), buffer, [Index::var(var)]);
            rewrite_stmt(&mut node.body, &|_| None, &|expr| {
                rewrite_expr(expr, &mut |node| (*node == guarded).then(|| load.clone()))
            });
        }
        let stored: Vec<BufferId> = stores(&node.body).iter().map(|store| store.buffer).collect();
        self.operands.retain(|operand| {
            let mut loads = Vec::new();
            loads_in(&operand.value, &mut loads);
            loads.iter().all(|load| !stored.contains(&load.buffer))
        });
        self.body.push(Stmt::Intrinsic(Arc::new(node)));
    }

    /// The buffer of an operand whose elements a loop chooses; a statement computes a new one.
    fn buffer_of(&mut self, guarded: &Expr, var: VarId, extent: u32) -> BufferId {
        let lanes = Index::lane(extent);
        let value = substitute_expr(guarded, &|other| (other == var).then(|| lanes.clone()));
        if let Some(known) = self.operands.iter().find(|operand| operand.value == value) {
            return known.buffer;
        }
        let shape = vec![Index::constant(i64::from(extent))];
        let (name, dtype, scope) = ("operand".into(), value.dtype(), Scope::Local);
        let buffer = self.program.add_buffer(Buffer { name, dtype, shape, scope });
        self.allocated.push(buffer);
        self.body.push(Stmt::store(buffer, Indices::from_iter([lanes]), value.clone()));
        self.operands.push(Operand { buffer, value });
        buffer
    }
}

/// The loops of a marked statement, with their extents.
fn loops_of(body: &Stmt) -> Vec<(VarId, i64)> {
    let (mut loops, mut current) = (Vec::new(), body);
    while let Stmt::For(node) = current {
        let Some(extent) = node.extent.as_constant() else { return Vec::new() };
        loops.push((node.var, extent));
        current = &node.body;
    }
    loops
}

/// A load under a condition, of which one loop of the statement chooses the element.
fn guarded_operand(body: &Stmt, loops: &[(VarId, i64)]) -> Option<(Expr, VarId, u32)> {
    let mut found = None;
    for store in stores(body) {
        for_each_expr(&store.value, &mut |expr: &Expr| {
            if found.is_some() || !matches!(expr.kind(), ExprKind::Select(_, then, _) if is_loaded(then)) {
                return;
            }
            let mut used: Vec<VarId> = Vec::new();
            for_each_var(expr, &mut |var| used.push(var));
            let mut own = loops.iter().filter(|(var, _)| used.contains(var));
            if let (Some((var, extent)), None) = (own.next(), own.next())
                && *extent <= MOST_ELEMENTS
                && let Ok(lanes) = u32::try_from(*extent)
            {
                found = Some((expr.clone(), *var, lanes));
            }
        });
    }
    found
}

/// Whether a value is loaded, also under further conditions. They stay together: the inner one alone does not keep the load inside of its
/// buffer.
fn is_loaded(expr: &Expr) -> bool {
    match expr.kind() {
        ExprKind::Load(..) => true,
        ExprKind::Select(_, then, _) => is_loaded(then),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::stage_operands;
    use crate::lower::LowerOptions;
    use crate::program::Program;

    #[test]
    fn an_operand_under_two_conditions_is_one_buffer() {
        let mut program: Program = "kernel narrow(in x: u8[9, 3], in w: i8[3, 16, 4], out y: i32[9, 16]) {
  for i in 0..9 {
    for t in 0..3 {
      intrinsic vpdpbusd_16 {
        for o in 0..16 {
          for c in 0..4 {
            y[i, o] = y[i, o] + select(index(c) < 3, select(index(i + t - 1) >= 0, x[i + t - 1, c], 7u8), 0u8) as i32 * w[t, o, c] as i32
          }
        }
      }
    }
  }
}
"
        .parse()
        .unwrap();
        stage_operands(&mut program, &LowerOptions::default()).unwrap();
        let text = program.to_string();
        // Where `c` is 3, the inner selection alone would load from behind the row.
        let whole = "operand[lane<4>] = select(index(lane<4>) < 3, select(index(i + t - 1) >= 0, x[i + t - 1, lane<4>], 7u8), 0u8)";
        assert!(text.contains(whole), "{text}");
        assert!(text.contains("y[i, o] + operand[c] as i32 * w[t, o, c] as i32"), "{text}");
    }
}
