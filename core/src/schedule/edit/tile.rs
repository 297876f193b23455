//! A block that computes a whole tile, made of a loop nest around one.

use std::sync::Arc;

use crate::analysis::block::{is_tiled_reduction, loads, stores};
use crate::analysis::scope::blocks;
use crate::ids::{LoopId, VarId};
use crate::index::Index;
use crate::index::iter_map::{MapLevel, detect};
use crate::program::{Program, VariableKind};
use crate::schedule::ScheduleError;
use crate::schedule::edit::{fresh_loop, nest};
use crate::schedule::find::require_loop;
use crate::stmt::{Block, For, Iter, IterKind, Stmt};
use crate::visit::{listed, substitute_stmt};

/// A loop nest around one block, taken apart.
pub(in crate::schedule) struct Tile {
    block: Block,
    /// The loops that move into the block, outermost first, without their bodies.
    loops: Vec<For>,
    tiles: Vec<IterTile>,
}

/// How one iterator is divided: it is `extent · outer + inner`.
struct IterTile {
    outer: Index,
    /// The number of tiles.
    count: Index,
    inner: Index,
    /// The size of a tile.
    extent: i64,
}

/// Checks that the loops from `target` on enumerate tiles of one block's domain.
pub(in crate::schedule) fn check_tile(program: &Program, target: LoopId) -> Result<Tile, ScheduleError> {
    let (loops, block) = perfect_nest(program, target)?;
    let id = block.id;
    let is_inner = |index: &Index| loops.iter().any(|node| index.mentions(node.var));
    if block.guards.iter().any(|guard| is_inner(&guard.index)) {
        return Err(ScheduleError::Guarded { target, block: id });
    }
    if block.init.is_some() && !(is_tiled_reduction(block) && updates_elements_alone(block)) {
        return Err(ScheduleError::NotReduction(id));
    }
    let refusal = ScheduleError::NotDivisible { target, block: id };
    let inner: Vec<Index> = block.iters.iter().map(|iter| terms_where(&iter.binding, &is_inner)).collect();
    let iterators: Vec<_> = loops.iter().map(|node| (node.var, node.extent.clone())).collect();
    let map = detect(&inner, &iterators, &[], MapLevel::Bijective).map_err(|_| refusal)?;
    let mut tiles = Vec::new();
    for ((iter, inner), sum) in block.iters.iter().zip(inner).zip(&map.outputs) {
        let extent = sum.extent.as_constant().filter(|extent| *extent >= 1).ok_or(refusal)?;
        let outer = &iter.binding - &inner;
        if !sum.covers(&sum.extent) || is_inner(&outer) {
            return Err(refusal);
        }
        if extent > 1 && iter.kind == IterKind::Ordered {
            return Err(ScheduleError::OrderedLoop { target, block: id });
        }
        let outer = divided(&outer, extent).ok_or(refusal)?;
        let count = divided(&iter.extent, extent).ok_or(refusal)?;
        tiles.push(IterTile { outer, count, inner, extent });
    }
    let loops = loops.into_iter().map(|node| For { body: Stmt::nothing(), ..For::clone(node) }).collect();
    Ok(Tile { block: Block::clone(block), loops, tiles })
}

/// The loops from `target` on, each the only statement of the one before, around one block.
fn perfect_nest(program: &Program, target: LoopId) -> Result<(Vec<&Arc<For>>, &Arc<Block>), ScheduleError> {
    let mut loops = vec![require_loop(program, target)?];
    loop {
        let last = loops[loops.len() - 1];
        if last.kind.is_unordered() {
            return Err(ScheduleError::NotSerial(last.id));
        }
        match &last.body {
            Stmt::For(node) => loops.push(node),
            Stmt::Block(block) => return Ok((loops, block)),
            _ => return Err(ScheduleError::NotOneBlock { target, blocks: blocks(&last.body).len() as u32 }),
        }
    }
}

/// Whether the body reads of what it writes nothing but the elements that it updates, so that initial values
/// may be set for a whole tile at once.
fn updates_elements_alone(block: &Block) -> bool {
    let stores = stores(&block.body);
    loads(&block.body).iter().all(|access| {
        let mut own = stores.iter().filter(|store| store.buffer == access.buffer);
        own.all(|store| store.indices == *access.indices)
    })
}

fn terms_where(index: &Index, is_wanted: &dyn Fn(&Index) -> bool) -> Index {
    let terms = index.terms().iter().filter(|term| is_wanted(&Index::from_terms([(*term).clone()], 0)));
    Index::from_terms(terms.cloned(), 0)
}

/// The quotient, when every coefficient is a multiple of the divisor.
fn divided(index: &Index, divisor: i64) -> Option<Index> {
    let divides = |number: i64| number % divisor == 0;
    if !divides(index.constant_part()) || !index.terms().iter().all(|term| divides(term.coefficient)) {
        return None;
    }
    let terms = index.terms().iter().map(|term| {
        let mut term = term.clone();
        term.coefficient /= divisor;
        term
    });
    Some(Index::from_terms(terms, index.constant_part() / divisor))
}

/// The block that computes a tile at each of its points. Its identity and name stay.
pub(in crate::schedule) fn build_tile(program: &mut Program, tile: &Tile) -> Block {
    let mut made = Block { iters: Vec::new(), ..tile.block.clone() };
    let body_loops: Vec<For> = tile.loops.iter().map(|node| renewed(program, node)).collect();
    let in_body = |index: &Index| {
        index.substitute(&|var| {
            let position = tile.loops.iter().position(|node| node.var == var)?;
            Some(Index::var(body_loops[position].var))
        })
    };
    let mut body_values = Vec::new();
    let mut init_values = Vec::new();
    let mut init_loops = Vec::new();
    for (iter, part) in tile.block.iters.iter().zip(&tile.tiles) {
        let outer = outer_iter(program, iter, part, tile.block.init.is_some());
        let first =
            outer.as_ref().map_or(Index::constant(0), |outer| Index::var(outer.var)).scale(part.extent);
        made.iters.extend(outer);
        body_values.push((iter.var, &first + &in_body(&part.inner)));
        if iter.kind != IterKind::Reduce {
            let mut value = first;
            if part.extent > 1 && tile.block.init.is_some() {
                let name = program.variable(iter.var).name.clone();
                let node = fresh_loop(program, &name, part.extent.into());
                value = &value + &Index::var(node.var);
                init_loops.push(node);
            }
            init_values.push((iter.var, value));
        }
    }
    made.body = with_values(&tile.block.body, body_loops, &body_values);
    made.init = tile.block.init.as_ref().map(|init| with_values(init, init_loops, &init_values));
    made
}

/// The loop inside the block. It is another one, since primitives work on loops around blocks.
fn renewed(program: &mut Program, node: &For) -> For {
    let name = program.variable(node.var).name.clone();
    let fresh = fresh_loop(program, &name, node.extent.clone());
    For { kind: node.kind, annotations: node.annotations.clone(), ..fresh }
}

/// The iterator that counts tiles; `None` when there is but one.
fn outer_iter(program: &mut Program, iter: &Iter, part: &IterTile, has_init: bool) -> Option<Iter> {
    if part.extent == 1 {
        return Some(Iter { binding: part.outer.clone(), ..iter.clone() });
    }
    let is_needed = !part.count.is(1) || (has_init && iter.kind == IterKind::Reduce);
    is_needed.then(|| {
        let name = format!("{}o", program.variable(iter.var).name);
        let var = program.add_variable(name, VariableKind::Iter);
        Iter { var, extent: part.count.clone(), kind: iter.kind, binding: part.outer.clone() }
    })
}

fn with_values(stmt: &Stmt, loops: Vec<For>, values: &[(VarId, Index)]) -> Stmt {
    let mut stmt = stmt.clone();
    substitute_stmt(&mut stmt, &listed(values));
    nest(loops, stmt)
}
