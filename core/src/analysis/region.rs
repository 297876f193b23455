//! Which part of a buffer is touched below a loop.
//!
//! A region is a box: per dimension a first element and an extent, in terms of the loops that stay
//! fixed. It covers every element touched, and may cover more.

use smallvec::SmallVec;

use crate::analysis::block::for_each_load_in_stmt;
use crate::analysis::scope::{blocks, loops_around};
use crate::expr::Indices;
use crate::ids::BufferId;
use crate::index::{Index, Ranges};
use crate::program::Program;
use crate::stmt::{Block, Stmt};
use crate::visit::for_each_stmt;

/// One dimension of a region: `min .. min + extent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first element.
    pub min: Index,
    /// The number of elements.
    pub extent: Index,
}

/// A box in a buffer, one span per dimension.
pub type Region = SmallVec<[Span; 4]>;

/// Which accesses a region is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// Loads.
    Read,
    /// Stores, those of initial values too.
    Write,
}

/// The whole of a buffer.
pub fn whole(program: &Program, buffer: BufferId) -> Region {
    let shape = &program.buffer(buffer).shape;
    shape.iter().map(|extent| Span { min: Index::constant(0), extent: extent.clone() }).collect()
}

/// The indices with which a block accesses a buffer, in terms of the loops around it.
pub fn bound_accesses(block: &Block, buffer: BufferId, kind: AccessKind) -> Vec<Indices> {
    let bind = |indices: &Indices| -> Indices {
        indices
            .iter()
            .map(|index| {
                index.substitute(&|var| {
                    block.iters.iter().find(|iter| iter.var == var).map(|iter| iter.binding.clone())
                })
            })
            .collect()
    };
    let mut found: Vec<Indices> = Vec::new();
    for part in std::iter::once(&block.body).chain(&block.init) {
        match kind {
            AccessKind::Read => for_each_load_in_stmt(part, &mut |access| {
                if access.buffer == buffer {
                    found.push(bind(access.indices));
                }
            }),
            AccessKind::Write => for_each_stmt(part, &mut |stmt| match stmt {
                Stmt::Store(store) if store.buffer == buffer => found.push(bind(&store.indices)),
                _ => {}
            }),
        }
    }
    found.sort();
    found.dedup();
    found
}

/// The region of `buffer` that blocks inside `stmt` access, with the loops inside `stmt` running and those
/// around it fixed. `outer` are the ranges of the loops around. `None` when nothing inside accesses it.
pub fn region_inside(
    program: &Program,
    stmt: &Stmt,
    outer: &Ranges,
    buffer: BufferId,
    kind: AccessKind,
) -> Option<Region> {
    let mut union: Option<Region> = None;
    for block in blocks(stmt) {
        let accesses = bound_accesses(block, buffer, kind);
        if accesses.is_empty() {
            continue;
        }
        let inner_loops = loops_around(stmt, block.id).expect("the block was found inside");
        let mut inner = Ranges::new();
        let mut all = outer.clone();
        for node in inner_loops {
            inner.insert_loop(node);
            all.insert_loop(node);
        }
        // A block's own loops run as well.
        for part in block.init.iter().chain([&block.body]) {
            for_each_stmt(part, &mut |stmt| {
                if let Stmt::For(node) = stmt {
                    inner.insert_loop(node);
                    all.insert_loop(node);
                }
            });
        }
        for indices in accesses {
            let region = relax(program, buffer, &indices, &inner, &all);
            union = Some(match union {
                None => region,
                Some(union) => unite(program, buffer, union, &region, outer),
            });
        }
    }
    union
}

/// The box that indices run through while the variables of `inner` run.
pub(crate) fn relax(
    program: &Program,
    buffer: BufferId,
    indices: &Indices,
    inner: &Ranges,
    all: &Ranges,
) -> Region {
    let shape = &program.buffer(buffer).shape;
    indices
        .iter()
        .zip(shape)
        .map(|(index, dimension)| {
            let index = index.simplify(all);
            let whole = || Span { min: Index::constant(0), extent: dimension.clone() };
            let (Some(min), Some(max)) = (index.lower_bound(inner), index.upper_bound(inner)) else {
                return whole();
            };
            let extent = (&max - &min).offset(1).simplify(all);
            // An extent that still depends on a loop would make the shape of a buffer depend on it.
            if depends_on_any(&extent, all) { whole() } else { Span { min: min.simplify(all), extent } }
        })
        .collect()
}

fn depends_on_any(index: &Index, ranges: &Ranges) -> bool {
    let mut depends = false;
    index.for_each_var(&mut |var| depends |= ranges.contains(var));
    depends
}

/// A box around two boxes.
pub(crate) fn unite(program: &Program, buffer: BufferId, a: Region, b: &Region, outer: &Ranges) -> Region {
    let shape = &program.buffer(buffer).shape;
    a.into_iter()
        .zip(b)
        .zip(shape)
        .map(|((a, b), dimension)| {
            unite_spans(&a, b, outer).unwrap_or(Span { min: Index::constant(0), extent: dimension.clone() })
        })
        .collect()
}

/// A span around two spans; `None` when their distance is not a constant.
fn unite_spans(a: &Span, b: &Span, outer: &Ranges) -> Option<Span> {
    let shift = (&b.min - &a.min).simplify(outer).as_constant()?;
    let (low, high, shift) = if shift >= 0 { (a, b, shift) } else { (b, a, -shift) };
    let reach = high.extent.offset(shift);
    let extent = match (&reach - &low.extent).simplify(outer).as_constant()? {
        difference if difference > 0 => reach,
        _ => low.extent.clone(),
    };
    Some(Span { min: low.min.clone(), extent })
}
