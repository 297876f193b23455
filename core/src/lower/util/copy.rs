//! Copies of statements. Every loop, variable and buffer that a copy declares is its own, so that an
//! identity still names one thing.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::access::rewrite_accesses;
use crate::ids::{BufferId, VarId};
use crate::index::Index;
use crate::program::{Program, VariableKind};
use crate::stmt::Stmt;
use crate::visit::substitute_stmt;

/// A copy of `stmt`.
pub(in crate::lower) fn copy(program: &mut Program, stmt: &Stmt) -> Stmt {
    copy_replacing(program, stmt, FxHashMap::default())
}

/// A copy of `stmt` in which `replaced` replaces `var`.
pub(in crate::lower) fn copy_with(program: &mut Program, stmt: &Stmt, var: VarId, replaced: Index) -> Stmt {
    copy_replacing(program, stmt, FxHashMap::from_iter([(var, replaced)]))
}

fn copy_replacing(program: &mut Program, stmt: &Stmt, vars: FxHashMap<VarId, Index>) -> Stmt {
    let mut renaming = Renaming { vars, buffers: FxHashMap::default() };
    let mut copy = stmt.clone();
    renaming.declare(program, &mut copy);
    if !renaming.vars.is_empty() {
        substitute_stmt(&mut copy, &|var| renaming.vars.get(&var).cloned());
    }
    if !renaming.buffers.is_empty() {
        rewrite_accesses(&mut copy, &|buffer, indices| {
            Some((*renaming.buffers.get(&buffer)?, indices.clone()))
        });
    }
    copy
}

/// The replacements for the variables and buffers of the original.
struct Renaming {
    vars: FxHashMap<VarId, Index>,
    buffers: FxHashMap<BufferId, BufferId>,
}

impl Renaming {
    /// Gives new identities to all that `stmt` declares.
    fn declare(&mut self, program: &mut Program, stmt: &mut Stmt) {
        match stmt {
            Stmt::For(node) => {
                let node = Arc::make_mut(node);
                let name = program.variable(node.var).name.clone();
                let var = program.add_variable(name, VariableKind::Loop);
                self.vars.insert(node.var, Index::var(var));
                (node.id, node.var) = (program.fresh_loop(), var);
            }
            Stmt::Alloc(node) => {
                let node = Arc::make_mut(node);
                let buffer = program.buffer(node.buffer).clone();
                let fresh = program.add_buffer(buffer);
                for (axis, alignment) in program.alignments(node.buffer).collect::<Vec<_>>() {
                    program.align(fresh, axis, alignment);
                }
                if let Some(swizzle) = program.swizzle(node.buffer) {
                    program.set_swizzle(fresh, swizzle);
                }
                if program.has_fixed_scope(node.buffer) {
                    program.fix_scope(fresh, program.buffer(node.buffer).scope);
                }
                self.buffers.insert(node.buffer, fresh);
                node.buffer = fresh;
            }
            Stmt::Store(_) => return,
            Stmt::Seq(_)
            | Stmt::If(_)
            | Stmt::Block(_)
            | Stmt::Intrinsic(_)
            | Stmt::Barrier
            | Stmt::Copies(_)
            | Stmt::Shuffle(_) => {}
        }
        for child in stmt.children_mut() {
            self.declare(program, child);
        }
    }
}
