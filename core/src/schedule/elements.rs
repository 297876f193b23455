//! Blocks that access a buffer at one element for each of their points, and copies of these elements.

use std::sync::Arc;

use crate::analysis::block::{all_loads, loads_in, stores};
use crate::expr::{Expr, ExprKind, Indices};
use crate::ids::{BlockId, BufferId};
use crate::index::map::{IndexMap, MapError};
use crate::index::{Index, Ranges};
use crate::program::{Program, VariableKind};
use crate::schedule::ScheduleError;
use crate::schedule::edit::{fresh_loop, nest};
use crate::stmt::{Annotations, Block, Iter, IterKind, Stmt};
use crate::visit::{for_each_expr, for_each_root_expr, for_each_stmt, substitute_expr};

/// The one element of `buffer` that a block accesses at each point, in terms of its iterators.
///
/// # Errors
/// When there are several, or the element depends on data or on loops inside the block.
pub(super) fn single_element(block: &Block, buffer: BufferId) -> Result<Indices, ScheduleError> {
    let refusal = ScheduleError::SeveralElements { block: block.id, buffer };
    let loads = all_loads(block).into_iter().map(|access| (access.buffer, access.indices));
    let stores = block.init.iter().flat_map(stores).chain(stores(&block.body));
    let mut accesses = loads
        .chain(stores.map(|store| (store.buffer, &store.indices)))
        .filter(|(accessed, _)| *accessed == buffer)
        .map(|(_, indices)| indices);
    let first = accesses.next().ok_or(refusal)?;
    if accesses.any(|other| other != first) || first.iter().any(|index| !is_of_iters(index, block)) {
        return Err(refusal);
    }
    Ok(first.clone())
}

fn is_of_iters(index: &Index, block: &Block) -> bool {
    let mut found = Vec::new();
    let value = Expr::index(index.clone());
    loads_in(&value, &mut found);
    let mut own = found.is_empty();
    let mut inner = Vec::new();
    for_each_stmt(&block.body, &mut |stmt| {
        if let Stmt::For(node) = stmt {
            inner.push(node.var);
        }
    });
    for_each_stmt(block.init.as_ref().unwrap_or(&Stmt::nothing()), &mut |stmt| {
        if let Stmt::For(node) = stmt {
            inner.push(node.var);
        }
    });
    index.for_each_var(&mut |var| own &= !inner.contains(&var));
    own
}

/// The positions of the iterators that indices mention, leaving out those with a single value.
pub(super) fn iters_in(block: &Block, indices: &[Index]) -> Vec<usize> {
    let is_used = |position: &usize| {
        let iter = &block.iters[*position];
        !iter.extent.is(1) && indices.iter().any(|index| index.mentions(iter.var))
    };
    (0..block.iters.len()).filter(is_used).collect()
}

/// The layout of a copy whose elements belong to points of a block's domain.
pub(super) struct PointLayout {
    /// The indices of the element of a point, in terms of the block's iterators.
    pub indices: Indices,
    /// The positions of the iterators that they depend on.
    pub iters: Vec<usize>,
    /// The shape of the copy.
    pub shape: Vec<Index>,
}

/// The layout that a map gives. Points whose `element` differs must have different indices.
///
/// # Errors
/// When the map takes another number of iterators, or is not injective.
pub(super) fn point_layout(
    block: &Block,
    map: &IndexMap,
    element: &Indices,
) -> Result<PointLayout, ScheduleError> {
    if map.inputs() != block.iters.len() {
        return Err(ScheduleError::BadMap(MapError::Arity));
    }
    let point: Vec<Index> = block.iters.iter().map(|iter| Index::var(iter.var)).collect();
    let indices = map.apply(&point);
    let iters = iters_in(block, &indices);
    if iters_in(block, element).iter().any(|position| !iters.contains(position)) {
        return Err(ScheduleError::BadMap(MapError::NotInjective));
    }
    let domain: Vec<Index> = (0..block.iters.len())
        .map(|position| match iters.contains(&position) {
            true => block.iters[position].extent.clone(),
            false => Index::constant(1),
        })
        .collect();
    let shape = map.image(&domain).map_err(ScheduleError::BadMap)?;
    Ok(PointLayout { indices, iters, shape })
}

/// Whether a block makes all of its accesses, whatever the data are.
fn is_unconditional(block: &Block) -> bool {
    let mut unconditional = true;
    for part in block.init.iter().chain([&block.body]) {
        for_each_stmt(part, &mut |stmt| unconditional &= !matches!(stmt, Stmt::If(_)));
        for_each_root_expr(part, &mut |expr| {
            for_each_expr(expr, &mut |node| {
                unconditional &= !matches!(node.kind(), ExprKind::Select(..));
            });
        });
    }
    unconditional
}

/// Checks that a block may access an element at every point of its domain: because it does, or because all of
/// them are inside the buffer.
pub(super) fn check_inside(
    program: &Program,
    block: &Block,
    buffer: BufferId,
    element: &Indices,
) -> Result<(), ScheduleError> {
    if is_unconditional(block) {
        return Ok(());
    }
    let mut ranges = Ranges::new();
    for iter in &block.iters {
        ranges.insert(iter.var, iter.extent.clone());
    }
    let is_inside = |(index, extent): (&Index, &Index)| {
        index.is_provably_nonnegative(&ranges) && index.is_provably_less(extent, &ranges)
    };
    match element.iter().zip(&program.buffer(buffer).shape).all(is_inside) {
        true => Ok(()),
        false => Err(ScheduleError::ConditionalAccess { block: block.id, buffer }),
    }
}

/// A block that copies an element for each value of some of the iterators of another block, in its own loops; both
/// elements are given in terms of that block's iterators.
pub(super) fn copy_elements(
    program: &mut Program,
    name: crate::stmt::Symbol,
    (block, positions): (&Block, &[usize]),
    (from, source): (BufferId, &Indices),
    (to, target): (BufferId, &Indices),
) -> (Stmt, BlockId) {
    let dtype = program.buffer(to).dtype;
    let (mut loops, mut iters, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for (axis, position) in positions.iter().enumerate() {
        let old = &block.iters[*position];
        let node = fresh_loop(program, &format!("a{axis}").into(), old.extent.clone());
        let var = program.add_variable(format!("v{axis}"), VariableKind::Iter);
        values.push((old.var, Index::var(var)));
        let extent = old.extent.clone();
        iters.push(Iter { var, extent, kind: IterKind::Spatial, binding: Index::var(node.var) });
        loops.push(node);
    }
    // Iterators with a single value need none of their own.
    let value_of = |var| match values.iter().find(|(old, _)| *old == var) {
        Some((_, value)) => Some(value.clone()),
        None => block.iters.iter().any(|iter| iter.var == var).then(|| Index::constant(0)),
    };
    let value = substitute_expr(&Expr::load(dtype, from, source.iter().cloned()), &value_of);
    let target: Indices = target.iter().map(|index| index.substitute(&value_of)).collect();
    let id = program.fresh_block();
    let made = Block {
        id,
        name,
        iters,
        guards: Vec::new(),
        init: None,
        body: Stmt::store(to, target, value),
        annotations: Annotations::new(),
        location: None,
    };
    (nest(loops, Stmt::Block(Arc::new(made))), id)
}
