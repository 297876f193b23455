//! The size of each intermediate: no larger than the elements that are accessed while it exists.
//!
//! ```text
//! for i { alloc t { for j in 0..8 { t[i, j] = … } } }         t: [M, N]
//! for i { alloc t { for j in 0..8 { t[0, j] = … } } }         t: [1, 8]
//! ```
//!
//! The loops inside the allocation are relaxed to the box of elements that they access; its first
//! element, which may depend on the loops around, becomes the origin.
//!
//! An intermediate keeps its scope if that is [fixed](Program::has_fixed_scope). All others become `local` if they are then small,
//! of constant size and private to a thread, and `global` if not.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::access::rewrite_accesses;
use crate::analysis::block::loads_in;
use crate::analysis::region::{Region, Span, relax, unite};
use crate::expr::{Expr, Indices};
use crate::ids::BufferId;
use crate::index::{Index, Ranges};
use crate::lower::{LowerError, LowerOptions};
use crate::program::{Program, Scope};
use crate::stmt::{Alloc, LoopKind, Stmt};
use crate::target::TargetKind;

/// Shrinks every intermediate to the box of its accesses.
pub(in crate::lower) fn compact_buffers(
    program: &mut Program,
    options: &LowerOptions,
) -> Result<(), LowerError> {
    let mut body = std::mem::replace(&mut program.body, Stmt::nothing());
    let mut compaction = Compaction { program, options, outer: Ranges::new() };
    let result = compaction.stmt(&mut body);
    program.body = body;
    result
}

struct Compaction<'p> {
    program: &'p mut Program,
    options: &'p LowerOptions,
    /// The loops around.
    outer: Ranges,
}

impl Compaction<'_> {
    fn stmt(&mut self, stmt: &mut Stmt) -> Result<(), LowerError> {
        match stmt {
            Stmt::For(node) => {
                let node = Arc::make_mut(node);
                self.outer.insert_loop(node);
                self.stmt(&mut node.body)?;
                self.outer.remove(node.var);
                Ok(())
            }
            Stmt::Alloc(node) => {
                let node = Arc::make_mut(node);
                self.shrink(node)?;
                self.stmt(&mut node.body)
            }
            _ => stmt.children_mut().into_iter().try_for_each(|child| self.stmt(child)),
        }
    }

    fn shrink(&mut self, node: &mut Alloc) -> Result<(), LowerError> {
        let mut hull = Hull {
            program: self.program,
            buffer: node.buffer,
            outer: &self.outer,
            inner: Ranges::new(),
            all: self.outer.clone(),
            region: None,
            under_parallel: false,
            is_shared: false,
            seen: FxHashSet::default(),
        };
        hull.stmt(&node.body);
        let is_shared = hull.is_shared;
        if let Some(region) = hull.region {
            self.rebase(node, region);
        }
        self.choose_scope(node.buffer, is_shared)
    }

    /// Decides where a buffer of its final size is placed, unless that is fixed.
    fn choose_scope(&mut self, id: BufferId, is_shared: bool) -> Result<(), LowerError> {
        let buffer = self.program.buffer(id);
        if self.options.kind == TargetKind::Gpu {
            // The schedule decides whether memory belongs to a thread, a block or all of them.
            return Ok(());
        }
        if self.program.has_fixed_scope(id) {
            return match buffer.scope {
                Scope::Local if is_shared => Err(LowerError::Scope {
                    buffer: buffer.name.to_string(),
                    scope: buffer.scope.text(),
                    problem: "the threads of a parallel loop share it; compute it inside that loop, or make it `global`",
                }),
                _ => Ok(()),
            };
        }
        let bytes = buffer.constant_len().and_then(|len| len.checked_mul(buffer.dtype.bytes() as i64));
        let is_small = bytes.is_some_and(|bytes| bytes <= self.options.max_local_bytes as i64);
        let scope = if is_small && !is_shared { Scope::Local } else { Scope::Global };
        if buffer.scope != scope {
            self.program.buffer_mut(id).scope = scope;
        }
        Ok(())
    }

    /// Makes the region the whole buffer.
    fn rebase(&mut self, node: &mut Alloc, region: Region) {
        let shape = self.program.buffer(node.buffer).shape.clone();
        let spans: Region = region
            .into_iter()
            .zip(&shape)
            .map(|(span, dimension)| {
                if dimension.is_provably_at_most(&span.extent, &self.outer) {
                    Span { min: Index::constant(0), extent: dimension.clone() }
                } else {
                    span
                }
            })
            .collect();
        let buffer = node.buffer;
        let outer = &self.outer;
        let is_all = |(span, dimension): (&Span, &Index)| span.min.is(0) && span.extent == *dimension;
        if spans.iter().zip(&shape).all(is_all) {
            return;
        }
        rewrite_accesses(&mut node.body, &|accessed, indices| {
            (accessed == buffer).then(|| {
                let rebased = |(index, span): (&Index, &Span)| (index - &span.min).simplify(outer);
                (buffer, indices.iter().zip(&spans).map(rebased).collect())
            })
        });
        let shape: Vec<Index> = spans.into_iter().map(|span| size_of(span.extent)).collect();
        self.program.buffer_mut(buffer).shape = shape;
    }
}

/// The extent as a size: the distance from the first to the last element, were there any, may be negative
/// where loops have no iteration.
fn size_of(extent: Index) -> Index {
    if extent.is_provably_nonnegative(&Ranges::new()) { extent } else { extent.maximum(&Index::constant(0)) }
}

/// The box around the accesses to one buffer.
struct Hull<'a> {
    program: &'a Program,
    buffer: BufferId,
    outer: &'a Ranges,
    /// The loops inside the allocation.
    inner: Ranges,
    /// All loops.
    all: Ranges,
    region: Option<Region>,
    under_parallel: bool,
    /// Whether several threads access the buffer.
    is_shared: bool,
    /// Variables are declared once, so that equal indices run through equal elements.
    seen: FxHashSet<Indices>,
}

impl Hull<'_> {
    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::For(node) => {
                self.inner.insert_loop(node);
                self.all.insert_loop(node);
                let outside = self.under_parallel;
                self.under_parallel |= node.kind == LoopKind::Parallel;
                self.stmt(&node.body);
                self.under_parallel = outside;
                self.inner.remove(node.var);
                self.all.remove(node.var);
            }
            Stmt::Store(store) => {
                store.indices.iter().for_each(|index| self.expr(&Expr::index(index.clone())));
                if store.buffer == self.buffer {
                    self.access(&store.indices);
                }
                self.expr(&store.value);
            }
            Stmt::If(node) => {
                self.expr(&node.condition);
                self.stmt(&node.then);
                node.otherwise.iter().for_each(|stmt| self.stmt(stmt));
            }
            Stmt::Seq(_)
            | Stmt::Alloc(_)
            | Stmt::Block(_)
            | Stmt::Intrinsic(_)
            | Stmt::Barrier
            | Stmt::Copies(_)
            | Stmt::Shuffle(_) => {
                stmt.children().into_iter().for_each(|child| self.stmt(child));
            }
        }
    }

    fn expr(&mut self, expr: &Expr) {
        let mut found = Vec::new();
        loads_in(expr, &mut found);
        for load in found {
            if load.buffer == self.buffer {
                self.access(load.indices);
            }
        }
    }

    fn access(&mut self, indices: &Indices) {
        self.is_shared |= self.under_parallel;
        if !self.seen.insert(indices.clone()) {
            return;
        }
        let region = relax(self.program, self.buffer, indices, &self.inner, &self.all);
        self.region = Some(match self.region.take() {
            None => region,
            Some(union) => unite(self.program, self.buffer, union, &region, self.outer),
        });
    }
}
