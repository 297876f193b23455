//! Edits of the statement tree that primitives share. None of them checks a precondition.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::analysis::region::Span;
use crate::dtype::DType;
use crate::expr::{Expr, ExprKind, Indices};
use crate::ids::{BlockId, BufferId, LoopId, VarId};
use crate::index::{Base, Index, Ranges};
use crate::program::{Program, VariableKind};
use crate::schedule::ScheduleError;
use crate::stmt::{Annotations, Block, For, Guard, Iter, IterKind, LoopKind, Stmt, Symbol};
use crate::visit::{
    find_block, find_loop, for_each_block, for_each_stmt, rewrite_expr, rewrite_indices, rewrite_stmt,
};

/// The loop of an identity.
pub(super) fn require_loop(program: &Program, id: LoopId) -> Result<&Arc<For>, ScheduleError> {
    find_loop(&program.body, id).ok_or(ScheduleError::MissingLoop(id))
}

/// The block of an identity.
pub(super) fn require_block(program: &Program, id: BlockId) -> Result<&Arc<Block>, ScheduleError> {
    find_block(&program.body, id).ok_or(ScheduleError::MissingBlock(id))
}

/// Edits the statement that is the loop `id`. Only the path to it is copied.
pub(super) fn edit_loop(stmt: &mut Stmt, id: LoopId, edit: &mut dyn FnMut(&mut Stmt)) -> bool {
    edit_at(stmt, Wanted::Loop(id), edit)
}

/// Edits the annotations of the loop `id`.
pub(super) fn edit_loop_annotations(stmt: &mut Stmt, id: LoopId, edit: &mut dyn FnMut(&mut Annotations)) {
    edit_loop(stmt, id, &mut |stmt| {
        if let Stmt::For(node) = stmt {
            edit(&mut Arc::make_mut(node).annotations);
        }
    });
}

/// Edits the statement that is the block `id`. Only the path to it is copied.
pub(super) fn edit_block_stmt(stmt: &mut Stmt, id: BlockId, edit: &mut dyn FnMut(&mut Stmt)) -> bool {
    edit_at(stmt, Wanted::Block(id), edit)
}

/// Edits the block `id`. Only the path to it is copied.
pub(super) fn edit_block(stmt: &mut Stmt, id: BlockId, edit: &mut dyn FnMut(&mut Block)) -> bool {
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

/// Whether a block is inside a statement.
pub(super) fn contains_block(stmt: &Stmt, id: BlockId) -> bool {
    find_block(stmt, id).is_some()
}

/// Edits every block inside a statement.
pub(super) fn edit_blocks(stmt: &mut Stmt, edit: &mut dyn FnMut(&mut Block)) {
    if let Stmt::Block(node) = stmt {
        edit(Arc::make_mut(node));
        return;
    }
    for child in stmt.children_mut() {
        edit_blocks(child, edit);
    }
}

/// Takes a block out, with the loops that become empty by that.
pub(super) fn remove_block(stmt: &mut Stmt, id: BlockId) {
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

/// Makes one sequence of sequences directly inside each other; statements that do nothing disappear.
pub(super) fn flatten_sequences(stmt: &mut Stmt) {
    // What is shared with other programs is copied only where something is to be done.
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

/// The statements of a body, in order.
pub(super) fn statements(body: &Stmt) -> &[Stmt] {
    match body {
        Stmt::Seq(stmts) => stmts,
        single => std::slice::from_ref(single),
    }
}

/// Inserts a statement before the `position`-th of a body.
pub(super) fn insert_statement(body: &mut Stmt, position: usize, stmt: Stmt) {
    let mut stmts = statements(body).to_vec();
    stmts.insert(position, stmt);
    *body = Stmt::seq(stmts);
}

/// The position of the first statement of a body in which some block satisfies the predicate.
pub(super) fn position_of(body: &Stmt, wanted: &dyn Fn(&Block) -> bool) -> Option<usize> {
    statements(body).iter().position(|stmt| any_block(stmt, wanted))
}

/// The position of the last statement of a body in which some block satisfies the predicate.
pub(super) fn last_position_of(body: &Stmt, wanted: &dyn Fn(&Block) -> bool) -> Option<usize> {
    statements(body).iter().rposition(|stmt| any_block(stmt, wanted))
}

fn any_block(stmt: &Stmt, wanted: &dyn Fn(&Block) -> bool) -> bool {
    let mut found = false;
    for_each_block(stmt, &mut |block| found |= wanted(block));
    found
}

/// A serial loop over `0..extent` with nothing inside.
pub(super) fn fresh_loop(program: &mut Program, name: &Symbol, extent: Index) -> For {
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
pub(super) fn nest(loops: Vec<For>, body: Stmt) -> Stmt {
    loops.into_iter().rev().fold(body, |body, node| Stmt::For(Arc::new(For { body, ..node })))
}

/// A block that copies `from` to `to`, element by element, over a whole shape, in its own loops.
pub(super) fn copy_nest(program: &mut Program, name: Symbol, from: BufferId, to: BufferId) -> Stmt {
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
pub(super) fn fresh_block_name(program: &Program, wanted: &str) -> Symbol {
    let blocks = crate::analysis::scope::blocks(&program.body);
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

/// The guard that `index` stays below `extent`, unless it provably does.
pub(super) fn guard_below(index: &Index, extent: &Index, ranges: &Ranges) -> Option<Guard> {
    (!index.is_provably_less(extent, ranges)).then(|| Guard { index: index.clone(), bound: extent.clone() })
}

/// The guard that `index` is not negative, unless it provably is not.
pub(super) fn guard_not_negative(index: &Index, ranges: &Ranges) -> Option<Guard> {
    (!index.is_provably_nonnegative(ranges))
        .then(|| Guard { index: index.scale(-1), bound: Index::constant(1) })
}

/// Replaces a loop variable in the bindings and guards of every block inside a statement, and
/// simplifies them. `ranges` are those of the loops around the statement.
pub(super) fn replace_loop_var(stmt: &mut Stmt, ranges: &mut Ranges, var: VarId, replacement: &Index) {
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

/// Replaces every load of a buffer inside a statement, also those inside indices. `replace` gets the
/// load's indices.
pub(super) fn replace_loads(stmt: &mut Stmt, buffer: BufferId, replace: &dyn Fn(&Indices) -> Expr) {
    rewrite_stmt(stmt, &|index| replace_loads_in_index(index, buffer, replace), &|expr| {
        replace_loads_in(expr, buffer, replace)
    });
}

/// Lets a block access, instead of the elements of a buffer, those that `moved` gives for their indices.
pub(super) fn redirect_accesses(
    block: &mut Block,
    buffer: BufferId,
    dtype: DType,
    moved: &dyn Fn(&Indices) -> (BufferId, Indices),
) {
    let load = |indices: &Indices| {
        let (target, indices) = moved(indices);
        Expr::load(dtype, target, indices)
    };
    for part in block.init.iter_mut().chain([&mut block.body]) {
        replace_loads(part, buffer, &load);
        redirect_stores(part, buffer, moved);
    }
}

fn redirect_stores(stmt: &mut Stmt, buffer: BufferId, moved: &dyn Fn(&Indices) -> (BufferId, Indices)) {
    if let Stmt::Store(node) = stmt {
        if node.buffer == buffer {
            let node = Arc::make_mut(node);
            (node.buffer, node.indices) = moved(&node.indices);
        }
        return;
    }
    stmt.children_mut().into_iter().for_each(|child| redirect_stores(child, buffer, moved));
}

/// Lets stores to a buffer go to another one.
pub(super) fn redirect_stores_to(stmt: &mut Stmt, from: BufferId, to: BufferId) {
    redirect_stores(stmt, from, &|indices| (to, indices.clone()));
}

/// The ranges of a block's iterators and of the loops inside it.
pub(super) fn block_ranges(block: &Block) -> Ranges {
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

/// The loops around a block that hold nothing besides, outermost first.
pub(super) fn single_block_chain(program: &Program, id: BlockId) -> Result<Vec<&Arc<For>>, ScheduleError> {
    let around =
        crate::analysis::scope::loops_around(&program.body, id).ok_or(ScheduleError::MissingBlock(id))?;
    let holds_one = |node: &&&Arc<For>| matches!(node.body, Stmt::For(_) | Stmt::Block(_));
    let length = around.iter().rev().take_while(holds_one).count();
    Ok(around[around.len() - length..].to_vec())
}

/// Replaces every load of a buffer in an expression; `None` when there is none.
pub(super) fn replace_loads_in(
    expr: &Expr,
    buffer: BufferId,
    replace: &dyn Fn(&Indices) -> Expr,
) -> Option<Expr> {
    let inside = rewrite_indices(expr, &|index| replace_loads_in_index(index, buffer, replace));
    let outer = rewrite_expr(inside.as_ref().unwrap_or(expr), &mut |node| match node.kind() {
        ExprKind::Load(loaded, indices) if *loaded == buffer => Some(replace(indices)),
        _ => None,
    });
    outer.or(inside)
}

fn replace_loads_in_index(
    index: &Index,
    buffer: BufferId,
    replace: &dyn Fn(&Indices) -> Expr,
) -> Option<Index> {
    // Most indices are sums of variables.
    if index.terms().iter().all(|term| matches!(term.digit.base, Base::Var(_) | Base::Lane(_))) {
        return None;
    }
    let mut found = Vec::new();
    let probe = Expr::index(index.clone());
    crate::analysis::block::loads_in(&probe, &mut found);
    if !found.iter().any(|access| access.buffer == buffer) {
        return None;
    }
    Some(index.map_bases(&|base| match base {
        Base::Value(value) => replace_loads_in(value, buffer, replace).map(Index::value),
        Base::Sum(sum) => replace_loads_in_index(sum, buffer, replace),
        Base::Var(_) | Base::Lane(_) => None,
    }))
}

/// The statement of the whole program that contains a block: the outermost nest it stands in.
pub(super) fn root_position(program: &Program, id: BlockId) -> Result<usize, ScheduleError> {
    position_of(&program.body, &|block| block.id == id).ok_or(ScheduleError::MissingBlock(id))
}

/// New iterators for a block, each over a given span of its old domain (`None`: all of it), with loops
/// that run through them and guards against leaving the domain.
pub(super) struct Placement {
    /// The loops, outermost first.
    pub loops: Vec<For>,
    /// The bindings of the block's iterators, in their order.
    pub bindings: Vec<Index>,
    /// What keeps the bindings inside the domain.
    pub guards: Vec<Guard>,
}

/// Makes the loops for a block that is moved to a place where the loops of `ranges` run.
pub(super) fn place_block(
    program: &mut Program,
    block: &Block,
    spans: &[Option<Span>],
    mut ranges: Ranges,
) -> Placement {
    let mut placement = Placement { loops: Vec::new(), bindings: Vec::new(), guards: Vec::new() };
    for (iter, span) in block.iters.iter().zip(spans) {
        let (min, extent) = match span {
            // A span as large as the domain, or larger, gains nothing by its offset.
            Some(span) if !(&span.extent - &iter.extent).is_provably_nonnegative(&ranges) => {
                (span.min.clone(), span.extent.clone())
            }
            _ => (Index::constant(0), iter.extent.clone()),
        };
        let mut binding = min;
        if !extent.is(1) {
            let name = program.variable(iter.var).name.clone();
            let node = fresh_loop(program, &name, extent);
            ranges.insert_loop(&node);
            binding = &binding + &Index::var(node.var);
            placement.loops.push(node);
        }
        placement.guards.extend(guard_below(&binding, &iter.extent, &ranges));
        placement.guards.extend(guard_not_negative(&binding, &ranges));
        placement.bindings.push(binding);
    }
    placement
}

impl Placement {
    /// The block in its new loops.
    pub(super) fn build(self, block: &Block) -> Stmt {
        let mut block = block.clone();
        block.guards = self.guards;
        for (iter, binding) in block.iters.iter_mut().zip(self.bindings) {
            iter.binding = binding;
        }
        nest(self.loops, Stmt::Block(Arc::new(block)))
    }
}

/// Checks that nothing the block reads is written between it and the last of its consumers, so that it
/// may as well compute there: neither on the way nor in another iteration of a loop that it comes into.
pub(super) fn check_inputs_stay(
    program: &Program,
    block: &Block,
    consumers: &[BlockId],
) -> Result<(), ScheduleError> {
    let inputs = crate::analysis::block::reads(block);
    let order = crate::analysis::scope::blocks(&program.body);
    let own = order.iter().position(|other| other.id == block.id);
    let last = order.iter().rposition(|other| consumers.contains(&other.id));
    let (Some(own), Some(last)) = (own, last) else { return Ok(()) };
    let overwrites =
        |other: &Block| crate::analysis::block::writes(other).iter().any(|buffer| inputs.contains(buffer));
    let refusal = |other: BlockId| ScheduleError::ProducerOutside { block: block.id, producer: other };
    for other in order.iter().take(last + 1).skip(own + 1) {
        if overwrites(other) {
            return Err(refusal(other.id));
        }
    }
    for consumer in consumers {
        let around = crate::analysis::scope::loops_around(&program.body, *consumer).unwrap_or_default();
        let entered = around.into_iter().find(|node| !contains_block(&node.body, block.id));
        let inside = entered.map(|node| crate::analysis::scope::blocks(&node.body)).unwrap_or_default();
        if let Some(other) = inside.into_iter().find(|other| overwrites(other)) {
            return Err(refusal(other.id));
        }
    }
    Ok(())
}
