//! Finding every access to memory in a part of a program.

use crate::expr::{Expr, ExprKind};
use crate::ids::BufferId;
use crate::index::{Base, Index};
use crate::stmt::{LoopKind, Stmt};
use rustc_hash::FxHashSet;

/// A load or a store.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// The buffer.
    pub buffer: BufferId,
    /// Which element.
    pub indices: &'a [Index],
    /// Whether it stores.
    pub is_store: bool,
    /// Whether it lies in a parallel loop inside the statement that was searched.
    pub in_parallel: bool,
}

/// Calls `visit` with every access in a statement, also those inside indices.
pub fn for_each_access<'a>(stmt: &'a Stmt, visit: &mut dyn FnMut(Access<'a>)) {
    Search::new(visit).stmt(stmt);
}

/// Calls `visit` with every load in an expression, also those inside indices.
pub fn for_each_load<'a>(expr: &'a Expr, visit: &mut dyn FnMut(Access<'a>)) {
    Search::new(visit).expr(expr);
}

/// The buffers that a statement loads from or stores to.
pub fn accessed_buffers(stmt: &Stmt) -> FxHashSet<BufferId> {
    let mut buffers = FxHashSet::default();
    for_each_access(stmt, &mut |access| {
        buffers.insert(access.buffer);
    });
    buffers
}

/// Whether an expression, or an index inside it, can report an index out of bounds.
pub fn can_report(expr: &Expr) -> bool {
    let mut ignore = |_: Access<'_>| {};
    let mut search = Search::new(&mut ignore);
    search.expr(expr);
    search.found_bounded
}

struct Search<'v, 'a> {
    visit: &'v mut dyn FnMut(Access<'a>),
    in_parallel: bool,
    /// Nodes of the current expression: an expanded function shares its argument many times.
    seen: FxHashSet<usize>,
    found_bounded: bool,
}

impl<'v, 'a> Search<'v, 'a> {
    fn new(visit: &'v mut dyn FnMut(Access<'a>)) -> Self {
        Search { visit, in_parallel: false, seen: FxHashSet::default(), found_bounded: false }
    }

    fn stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Store(store) => {
                self.root(&store.value);
                store.indices.iter().for_each(|index| self.index(index));
                (self.visit)(Access {
                    buffer: store.buffer,
                    indices: &store.indices,
                    is_store: true,
                    in_parallel: self.in_parallel,
                });
            }
            Stmt::If(node) => self.root(&node.condition),
            Stmt::For(node) => self.index(&node.extent),
            Stmt::Seq(_)
            | Stmt::Block(_)
            | Stmt::Alloc(_)
            | Stmt::Intrinsic(_)
            | Stmt::Barrier
            | Stmt::Copies(_)
            | Stmt::Shuffle(_) => {}
        }
        let outer = self.in_parallel;
        self.in_parallel |= matches!(stmt, Stmt::For(node) if node.kind == LoopKind::Parallel);
        stmt.children().into_iter().for_each(|child| self.stmt(child));
        self.in_parallel = outer;
    }

    fn root(&mut self, expr: &'a Expr) {
        self.seen.clear();
        self.expr(expr);
    }

    fn expr(&mut self, expr: &'a Expr) {
        if !self.seen.insert(expr.address()) {
            return;
        }
        match expr.kind() {
            ExprKind::Index(index) => self.index(index),
            ExprKind::Bounded(_, extent) => {
                self.found_bounded = true;
                self.index(extent);
            }
            ExprKind::Load(buffer, indices) => {
                indices.iter().for_each(|index| self.index(index));
                (self.visit)(Access {
                    buffer: *buffer,
                    indices,
                    is_store: false,
                    in_parallel: self.in_parallel,
                });
            }
            _ => {}
        }
        expr.operands().into_iter().for_each(|operand| self.expr(operand));
    }

    fn index(&mut self, index: &'a Index) {
        for term in index.terms() {
            match &term.digit.base {
                Base::Sum(sum) => self.index(sum),
                Base::Value(value) => self.expr(value),
                Base::Var(_) | Base::Lane(_) => {}
            }
        }
    }
}
