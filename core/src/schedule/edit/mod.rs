//! Edits of programs that primitives share. The functions of this file check no precondition; the modules below it document
//! the preconditions of theirs.

mod access;
mod annotations;
mod inline;
mod placement;
mod reindex;
mod tile;

pub(in crate::schedule) use access::{
    redirect_accesses, redirect_stores_to, replace_loads, replace_loads_in,
};
pub(in crate::schedule) use annotations::edit_annotations;
pub(in crate::schedule) use inline::inline_block;
pub(in crate::schedule) use placement::place_block;
pub(in crate::schedule) use reindex::{reindex_read, reindex_write};
pub(in crate::schedule) use tile::{build_tile, check_tile};

use std::sync::Arc;

use smallvec::SmallVec;

use crate::analysis::scope::blocks;
use crate::expr::Expr;
use crate::ids::{BlockId, BufferId, LoopId, VarId};
use crate::index::{Index, Ranges};
use crate::program::{Program, VariableKind};
use crate::schedule::find::{contains_block, statements};
use crate::stmt::{Annotations, Block, For, Iter, IterKind, LoopKind, Stmt, Symbol};
use crate::visit::for_each_stmt;

/// Edits the statement that is the loop `id`. Only the path to it is copied.
pub(in crate::schedule) fn edit_loop(stmt: &mut Stmt, id: LoopId, edit: &mut dyn FnMut(&mut Stmt)) -> bool {
    edit_at(stmt, Wanted::Loop(id), edit)
}

/// Sets how a loop is executed.
pub(in crate::schedule) fn set_kind(program: &mut Program, id: LoopId, kind: LoopKind) {
    edit_loop(&mut program.body, id, &mut |stmt| {
        if let Stmt::For(node) = stmt {
            Arc::make_mut(node).kind = kind;
        }
    });
}

/// Edits the annotations of the loop `id`.
pub(in crate::schedule) fn edit_loop_annotations(
    stmt: &mut Stmt,
    id: LoopId,
    edit: &mut dyn FnMut(&mut Annotations),
) {
    edit_loop(stmt, id, &mut |stmt| {
        if let Stmt::For(node) = stmt {
            edit(&mut Arc::make_mut(node).annotations);
        }
    });
}

/// Edits the statement that is the block `id`. Only the path to it is copied.
pub(in crate::schedule) fn edit_block_stmt(
    stmt: &mut Stmt,
    id: BlockId,
    edit: &mut dyn FnMut(&mut Stmt),
) -> bool {
    edit_at(stmt, Wanted::Block(id), edit)
}

/// Edits the block `id`. Only the path to it is copied.
pub(in crate::schedule) fn edit_block(
    stmt: &mut Stmt,
    id: BlockId,
    edit: &mut dyn FnMut(&mut Block),
) -> bool {
    edit_block_stmt(stmt, id, &mut |stmt| {
        if let Stmt::Block(node) = stmt {
            edit(Arc::make_mut(node));
        }
    })
}

/// A statement that is looked for.
#[derive(Clone, Copy)]
enum Wanted {
    Loop(LoopId),
    Block(BlockId),
}

fn edit_at(stmt: &mut Stmt, wanted: Wanted, edit: &mut dyn FnMut(&mut Stmt)) -> bool {
    let mut path = SmallVec::new();
    if !path_to(stmt, wanted, &mut path) {
        return false;
    }
    let mut place = stmt;
    for number in path {
        place = match place {
            Stmt::Seq(stmts) => &mut Arc::make_mut(stmts)[number],
            Stmt::For(node) => &mut Arc::make_mut(node).body,
            other => other.children_mut().swap_remove(number),
        };
    }
    edit(place);
    true
}

/// Finds a statement: which child to follow at each level on the way to it.
fn path_to(mut stmt: &Stmt, wanted: Wanted, path: &mut SmallVec<[usize; 16]>) -> bool {
    let around = path.len();
    while let Stmt::For(node) = stmt {
        if matches!(wanted, Wanted::Loop(id) if id == node.id) {
            return true;
        }
        path.push(0);
        stmt = &node.body;
    }
    let is_inside = match (stmt, wanted) {
        // There are no blocks inside blocks.
        (Stmt::Block(node), Wanted::Block(id)) => node.id == id,
        _ => stmt.each_child().enumerate().any(|(number, child)| {
            path.push(number);
            let is_inside = path_to(child, wanted, path);
            if !is_inside {
                path.pop();
            }
            is_inside
        }),
    };
    if !is_inside {
        path.truncate(around);
    }
    is_inside
}

/// Edits every block inside a statement.
pub(in crate::schedule) fn edit_blocks(stmt: &mut Stmt, edit: &mut dyn FnMut(&mut Block)) {
    if let Stmt::Block(node) = stmt {
        edit(Arc::make_mut(node));
        return;
    }
    for child in stmt.children_mut() {
        edit_blocks(child, edit);
    }
}

/// Takes a block out, with the loops that become empty by that.
pub(in crate::schedule) fn remove_block(stmt: &mut Stmt, id: BlockId) {
    match stmt {
        Stmt::Block(node) if node.id == id => *stmt = Stmt::nothing(),
        Stmt::Seq(stmts) => {
            let stmts = Arc::make_mut(stmts);
            stmts
                .iter_mut()
                .filter(|child| contains_block(child, id))
                .for_each(|child| remove_block(child, id));
            stmts.retain(|child| !child.is_nothing());
            if stmts.len() == 1 {
                *stmt = stmts.remove(0);
            }
        }
        Stmt::For(node) if contains_block(&node.body, id) => {
            let node = Arc::make_mut(node);
            remove_block(&mut node.body, id);
            if node.body.is_nothing() {
                *stmt = Stmt::nothing();
            }
        }
        _ => {}
    }
}

/// Flattens sequences directly inside each other, and drops empty statements.
pub(in crate::schedule) fn flatten_sequences(stmt: &mut Stmt) {
    // A statement that other programs share is copied only where it changes.
    if !holds_nested_sequence(stmt) {
        return;
    }
    for child in stmt.children_mut() {
        flatten_sequences(child);
    }
    if let Stmt::Seq(stmts) = stmt
        && stmts.iter().any(|child| matches!(child, Stmt::Seq(_)))
    {
        *stmt = Stmt::seq(stmts.iter().cloned());
    }
}

fn holds_nested_sequence(mut stmt: &Stmt) -> bool {
    while let Stmt::For(node) = stmt {
        stmt = &node.body;
    }
    match stmt {
        Stmt::Block(_) | Stmt::Store(_) => false,
        Stmt::Seq(stmts) => {
            stmts.iter().any(|child| matches!(child, Stmt::Seq(_)) || holds_nested_sequence(child))
        }
        _ => stmt.each_child().any(holds_nested_sequence),
    }
}

/// Inserts a statement before the `position`-th of a body.
pub(crate) fn insert_statement(body: &mut Stmt, position: usize, stmt: Stmt) {
    let mut stmts = statements(body).to_vec();
    stmts.insert(position, stmt);
    *body = Stmt::seq(stmts);
}

/// A serial loop over `0..extent` with nothing inside.
pub(in crate::schedule) fn fresh_loop(program: &mut Program, name: &Symbol, extent: Index) -> For {
    For {
        id: program.fresh_loop(),
        var: program.add_variable(name.clone(), VariableKind::Loop),
        extent,
        kind: LoopKind::Serial,
        annotations: Annotations::new(),
        body: Stmt::nothing(),
    }
}

/// Nests loops around a body, the first outermost.
pub(in crate::schedule) fn nest(loops: Vec<For>, body: Stmt) -> Stmt {
    loops.into_iter().rev().fold(body, |body, node| Stmt::For(Arc::new(For { body, ..node })))
}

/// A block that copies `from` to `to`, element by element, over a whole shape, in its own loops.
pub(crate) fn copy_nest(program: &mut Program, name: Symbol, from: BufferId, to: BufferId) -> Stmt {
    let shape = program.buffer(to).shape.clone();
    let dtype = program.buffer(to).dtype;
    let mut loops = Vec::new();
    let mut iters = Vec::new();
    for (axis, extent) in shape.iter().enumerate() {
        let node = fresh_loop(program, &format!("a{axis}").into(), extent.clone());
        iters.push(Iter {
            var: program.add_variable(format!("v{axis}"), VariableKind::Iter),
            extent: extent.clone(),
            kind: IterKind::Spatial,
            binding: Index::var(node.var),
        });
        loops.push(node);
    }
    let indices: Vec<Index> = iters.iter().map(|iter| Index::var(iter.var)).collect();
    let value = Expr::load(dtype, from, indices.iter().cloned());
    let block = Block {
        id: program.fresh_block(),
        name,
        iters,
        guards: Vec::new(),
        init: None,
        body: Stmt::store(to, indices, value),
        annotations: Annotations::new(),
        location: None,
    };
    nest(loops, Stmt::Block(Arc::new(block)))
}

/// A block name that is not taken yet.
pub(crate) fn fresh_block_name(program: &Program, wanted: &str) -> Symbol {
    let blocks = blocks(&program.body);
    let is_taken = |name: &str| blocks.iter().any(|block| &*block.name == name);
    if !is_taken(wanted) {
        return wanted.into();
    }
    (1..)
        .map(|number| format!("{wanted}_{number}"))
        .find(|name| !is_taken(name))
        .expect("some number is free")
        .into()
}

/// Replaces a loop variable in the bindings and guards of every block inside a statement, and
/// simplifies them. `ranges` are those of the loops around the statement.
pub(in crate::schedule) fn replace_loop_var(
    stmt: &mut Stmt,
    ranges: &mut Ranges,
    var: VarId,
    replacement: &Index,
) {
    match stmt {
        Stmt::For(node) => {
            let node = Arc::make_mut(node);
            ranges.insert_loop(node);
            replace_loop_var(&mut node.body, ranges, var, replacement);
        }
        Stmt::Block(node) => {
            let node = Arc::make_mut(node);
            let replace = |index: &mut Index| {
                if index.mentions(var) {
                    let replaced = index.substitute(&|other| (other == var).then(|| replacement.clone()));
                    *index = replaced.simplify(ranges);
                }
            };
            node.iters.iter_mut().for_each(|iter| replace(&mut iter.binding));
            node.guards.iter_mut().for_each(|guard| replace(&mut guard.index));
        }
        _ => {
            for child in stmt.children_mut() {
                replace_loop_var(child, ranges, var, replacement);
            }
        }
    }
}

/// The ranges of a block's iterators and of the loops inside it.
pub(in crate::schedule) fn block_ranges(block: &Block) -> Ranges {
    let mut ranges = Ranges::new();
    for iter in &block.iters {
        ranges.insert(iter.var, iter.extent.clone());
    }
    for part in block.init.iter().chain([&block.body]) {
        for_each_stmt(part, &mut |stmt| {
            if let Stmt::For(node) = stmt {
                ranges.insert_loop(node);
            }
        });
    }
    ranges
}
