//! Cropping intermediates to the elements that are read.

use std::sync::Arc;

use crate::access::rewrite_accesses;
use crate::analysis::block::{complete_store, covers_buffer, for_each_load_in_stmt, writes};
use crate::analysis::scope::{blocks, loops_around};
use crate::expr::Indices;
use crate::ids::{BufferId, VarId};
use crate::index::{Index, Ranges};
use crate::program::Program;
use crate::specialize::single_block;
use crate::stmt::{Block, Stmt};
use crate::visit::substitute_stmt;

/// The elements of a dimension that are read.
#[derive(Clone, Copy, PartialEq)]
struct Span {
    first: i64,
    end: i64,
}

/// Crops each of some intermediates to the box of the elements that are read, where one block stores each element once. Loops become
/// shorter, and all of them stay.
pub(super) fn crop_to_reads(program: &mut Program, buffers: &[BufferId]) {
    for &buffer in buffers {
        if let Some((iters, spans)) = crop_of(program, buffer) {
            crop(program, buffer, &iters, &spans);
        }
    }
}

/// The iterators that store a buffer, by its dimensions, and the elements that are read; `None` where it stays as it is.
fn crop_of(program: &Program, buffer: BufferId) -> Option<(Vec<VarId>, Vec<Span>)> {
    let extents: Vec<i64> =
        program.buffer(buffer).shape.iter().map(Index::as_constant).collect::<Option<_>>()?;
    // Indices that depend on data are integers.
    if program.access(buffer).is_some() || !program.buffer(buffer).dtype.is_float() {
        return None;
    }
    let all = blocks(&program.body);
    let mut writers = all.iter().filter(|block| writes(block).contains(&buffer));
    let (writer, None) = (writers.next()?, writers.next()) else { return None };
    let store = complete_store(writer).filter(|_| writer.guards.is_empty() && writes(writer).len() == 1)?;
    let is_whole = covers_buffer(writer, store, &program.buffer(buffer).shape);
    let iters: Vec<VarId> = store.indices.iter().map(Index::as_var).collect::<Option<_>>()?;
    if !is_whole || !has_own_loops(program, writer) {
        return None;
    }
    let mut read: Option<Vec<Span>> = None;
    for block in all.iter().filter(|block| block.id != writer.id) {
        unite(&mut read, block, buffer);
    }
    let spans = read?;
    // Elements that data choose may be any.
    let fits = spans.iter().zip(&extents).all(|(span, extent)| 0 <= span.first && span.end <= *extent);
    let is_all = |(span, extent): (&Span, &i64)| span.first == 0 && span.end == *extent;
    (fits && !spans.iter().zip(&extents).all(is_all)).then_some((iters, spans))
}

/// Whether each iterator of a block is a loop's variable, and the loops hold nothing else.
fn has_own_loops(program: &Program, block: &Block) -> bool {
    let around = loops_around(&program.body, block.id).unwrap_or_default();
    let is_loop = |binding: &Index| around.iter().any(|node| binding.as_var() == Some(node.var));
    let is_alone = around.first().is_none_or(|node| single_block(&node.body).is_some());
    is_alone && around.len() == block.iters.len() && block.iters.iter().all(|iter| is_loop(&iter.binding))
}

/// Adds the elements of a buffer that a block reads.
fn unite(read: &mut Option<Vec<Span>>, block: &Block, buffer: BufferId) {
    let ranges: Ranges = block.iters.iter().map(|iter| (iter.var, iter.extent.clone())).collect();
    for part in std::iter::once(&block.body).chain(&block.init) {
        for_each_load_in_stmt(part, &mut |access| {
            if access.buffer != buffer {
                return;
            }
            let spans = access.indices.iter().map(|index| {
                let values = index.interval(&ranges);
                Span { first: values.min, end: values.max.saturating_add(1) }
            });
            match read {
                None => *read = Some(spans.collect()),
                Some(known) => known.iter_mut().zip(spans).for_each(|(known, own)| {
                    *known = Span { first: known.first.min(own.first), end: known.end.max(own.end) };
                }),
            }
        });
    }
}

fn crop(program: &mut Program, buffer: BufferId, iters: &[VarId], spans: &[Span]) {
    let extent_of = |span: &Span| Index::constant(span.end - span.first);
    program.buffer_mut(buffer).shape = spans.iter().map(extent_of).collect();
    let mut body = std::mem::replace(&mut program.body, Stmt::nothing());
    let mut loops = Vec::new();
    for_each_block(&mut body, &mut |block| {
        if !writes(block).contains(&buffer) {
            return;
        }
        for own in &mut block.iters {
            let Some(place) = iters.iter().position(|iter| *iter == own.var) else { continue };
            own.extent = extent_of(&spans[place]);
            loops.extend(own.binding.as_var().map(|var| (var, own.extent.clone())));
        }
        let moved = |var: VarId| {
            let place = iters.iter().position(|iter| *iter == var)?;
            Some(Index::var(var).offset(spans[place].first))
        };
        substitute_stmt(&mut block.body, &moved);
    });
    set_extents(&mut body, &loops);
    rewrite_accesses(&mut body, &|accessed, indices: &Indices| {
        let moved = |(index, span): (&Index, &Span)| index.offset(-span.first);
        (accessed == buffer).then(|| (buffer, indices.iter().zip(spans).map(moved).collect()))
    });
    program.body = body;
}

fn for_each_block(stmt: &mut Stmt, change: &mut dyn FnMut(&mut Block)) {
    if let Stmt::Block(block) = stmt {
        change(Arc::make_mut(block));
    }
    stmt.children_mut().into_iter().for_each(|child| for_each_block(child, change));
}

fn set_extents(stmt: &mut Stmt, loops: &[(VarId, Index)]) {
    if let Stmt::For(node) = stmt
        && let Some((_, extent)) = loops.iter().find(|(var, _)| *var == node.var)
    {
        Arc::make_mut(node).extent = extent.clone();
    }
    stmt.children_mut().into_iter().for_each(|child| set_extents(child, loops));
}
