//! Whether a loop carries values of a buffer from one iteration to the next.
//!
//! It does not when each iteration begins with stores, in loops of their own, to all elements that it
//! loads. Elements are compared as boxes: for each dimension, from the first to the last element stored and loaded while the
//! loops inside run. Guards on the store narrow its box, unless they only keep it inside the buffer. Where a guard
//! bounds loops that were fused across dimensions, as when rows are copied in vectors, the box is that of the
//! [iterator map](crate::index::iter_map). A guard that decides whether anything is stored at all must be around
//! the loads, too.

use crate::analysis::access::{accesses, loads_from};
use crate::analysis::block::loads_in;
use crate::analysis::condition::difference;
use crate::expr::{BinaryOp, Expr, ExprKind, Indices};
use crate::ids::{BufferId, VarId};
use crate::index::iter_map::{IterSum, MapLevel, detect};
use crate::index::{Index, Ranges, Term};
use crate::program::Program;
use crate::stmt::{For, Guard, Stmt};
use crate::visit::for_each_var;

/// Whether no iteration of a loop loads an element that it has not stored before. `around` are the loops
/// around it.
pub(crate) fn carries_nothing(program: &Program, node: &For, around: &Ranges, buffer: BufferId) -> bool {
    let mut all = around.clone();
    all.insert_loop(node);
    let mut check = Check {
        shape: &program.buffer(buffer).shape,
        buffer,
        inner: Ranges::new(),
        iterators: Vec::new(),
        all,
        conditions: Vec::new(),
        stored: None,
        required: Vec::new(),
    };
    check.stmt(&node.body).is_some()
}

/// The stored elements, in one dimension.
struct StoredSpan {
    /// Every element of the dimension is.
    is_whole: bool,
    first: Index,
    last: Index,
    /// A guard leaves out the elements from here on.
    limit: Option<Index>,
}

struct Check<'a> {
    shape: &'a [Index],
    buffer: BufferId,
    /// The loops inside the loop, around the current place.
    inner: Ranges,
    /// The same loops with their extents, outermost first.
    iterators: Vec<(VarId, Index)>,
    /// All loops around the current place.
    all: Ranges,
    /// The conditions inside the loop, around the current place.
    conditions: Vec<&'a Expr>,
    /// The elements that the first store covers.
    stored: Option<Vec<StoredSpan>>,
    /// The conditions on which it stores anything.
    required: Vec<&'a Expr>,
}

/// `None` when something may be loaded that was not stored.
type Answer = Option<()>;

impl<'a> Check<'a> {
    fn stmt(&mut self, stmt: &'a Stmt) -> Answer {
        match stmt {
            Stmt::Store(store) => {
                for index in &store.indices {
                    self.loads(&Expr::index(index.clone()))?;
                }
                self.loads(&store.value)?;
                if store.buffer == self.buffer && self.stored.is_none() {
                    self.stored = Some(self.covered(&store.indices)?);
                }
                Some(())
            }
            Stmt::If(node) => {
                self.loads(&node.condition)?;
                self.conditions.push(&node.condition);
                self.stmt(&node.then)?;
                self.conditions.pop();
                match &node.otherwise {
                    Some(_) if self.stored.is_none() && touches(node.otherwise.as_ref(), self.buffer) => None,
                    Some(otherwise) => self.stmt(otherwise),
                    None => Some(()),
                }
            }
            Stmt::For(node) => {
                self.inner.insert_loop(node);
                self.iterators.push((node.var, node.extent.clone()));
                self.all.insert_loop(node);
                self.stmt(&node.body)?;
                self.inner.remove(node.var);
                self.iterators.pop();
                self.all.remove(node.var);
                Some(())
            }
            Stmt::Seq(_)
            | Stmt::Alloc(_)
            | Stmt::Block(_)
            | Stmt::Intrinsic(_)
            | Stmt::Barrier
            | Stmt::Copies(_)
            | Stmt::Shuffle(_) => stmt.children().into_iter().try_for_each(|child| self.stmt(child)),
        }
    }

    /// The elements that the first store covers, when its conditions can be judged.
    fn covered(&mut self, indices: &Indices) -> Option<Vec<StoredSpan>> {
        self.bounded(indices).or_else(|| self.enumerated(indices))
    }

    /// The bounds of the indices, when each condition bounds one of them.
    fn bounded(&self, indices: &Indices) -> Option<Vec<StoredSpan>> {
        let mut spans = Vec::with_capacity(indices.len());
        for (index, extent) in indices.iter().zip(self.shape) {
            let (first, last) = (index.lower_bound(&self.inner)?, index.upper_bound(&self.inner)?);
            let is_whole = first.is(0) && extent.offset(-1).is_provably_at_most(&last, &self.all);
            spans.push(StoredSpan { is_whole, first, last, limit: None });
        }
        self.conditions.iter().try_for_each(|condition| self.narrow(condition, indices, &mut spans))?;
        Some(spans)
    }

    /// Narrows the spans by a condition on the store.
    fn narrow(&self, condition: &Expr, indices: &Indices, spans: &mut [StoredSpan]) -> Answer {
        // An initial value is stored at the first point of a reduction. Where a loop around takes part in the reduction, later
        // iterations find what earlier ones have left.
        if let ExprKind::Binary(BinaryOp::Eq, ..) = condition.kind() {
            return self.depends_on_inner_alone(condition).then_some(());
        }
        let difference = difference(condition)?;
        if self.is_bounds_guard(&difference, indices) {
            return Some(());
        }
        for (index, span) in indices.iter().zip(spans) {
            let limit = index - &difference;
            if !self.mentions_inner(&limit) {
                span.limit = Some(limit);
                span.is_whole = false;
                return Some(());
            }
        }
        None
    }

    /// The box that the store's loops enumerate under its conditions.
    fn enumerated(&mut self, indices: &Indices) -> Option<Vec<StoredSpan>> {
        let mut guards = Vec::new();
        let mut required = Vec::new();
        for condition in &self.conditions {
            let difference = difference(condition)?;
            if self.is_bounds_guard(&difference, indices) {
                continue;
            }
            let guard = self.bound(&difference);
            let mut bounds_indices = false;
            guard
                .index
                .for_each_var(&mut |var| bounds_indices |= indices.iter().any(|index| index.mentions(var)));
            match bounds_indices || self.holds_at_first(&guard) {
                true => guards.push(guard),
                false => required.push(*condition),
            }
        }
        self.required = required;
        let is_used = |var: VarId| {
            indices.iter().chain(guards.iter().map(|guard| &guard.index)).any(|index| index.mentions(var))
        };
        let iterators: Vec<_> = self.iterators.iter().filter(|(var, _)| is_used(*var)).cloned().collect();
        let map = detect(indices, &iterators, &guards, MapLevel::Surjective).ok()?;
        let span = |(sum, extent): (&IterSum, &Index)| {
            let last = (&sum.min + &sum.extent).offset(-1);
            let is_whole = sum.min.is(0) && extent.is_provably_at_most(&sum.extent, &self.all);
            let is_dense = sum.scale.is(1) || sum.splits.is_empty();
            is_dense.then(|| StoredSpan { is_whole, first: sum.min.clone(), last, limit: None })
        };
        map.outputs.iter().zip(self.shape).map(span).collect()
    }

    /// Whether a condition, given as the difference that is negative where it holds, only keeps an index inside the
    /// buffer.
    fn is_bounds_guard(&self, difference: &Index, indices: &Indices) -> bool {
        let mut dimensions = indices.iter().zip(self.shape);
        dimensions.any(|(index, extent)| (difference + index).is(-1) || &(index - difference) == extent)
    }

    /// The condition that a difference is negative, as a bound on what the inner loops change.
    fn bound(&self, difference: &Index) -> Guard {
        let changes = |term: &&Term| self.mentions_inner(&Index::digit(term.digit.clone()));
        let index = Index::from_terms(difference.terms().iter().filter(changes).cloned(), 0);
        let bound = &index - difference;
        Guard { index, bound }
    }

    /// Whether a guard holds in the first iteration of the inner loops, whatever those around it are at.
    fn holds_at_first(&self, guard: &Guard) -> bool {
        let grows = |term: &Term| term.coefficient > 0;
        let first = guard.index.lower_bound(&self.inner).filter(|_| guard.index.terms().iter().all(grows));
        first.is_some_and(|first| first.is_provably_less(&guard.bound, &self.all))
    }

    /// Whether an expression mentions no loop but those inside.
    fn depends_on_inner_alone(&self, expr: &Expr) -> bool {
        let mut alone = true;
        for_each_var(expr, &mut |var| alone &= self.inner.contains(var) || !self.all.contains(var));
        alone
    }

    fn mentions_inner(&self, index: &Index) -> bool {
        let mut found = false;
        index.for_each_var(&mut |var| found |= self.inner.contains(var));
        found
    }

    /// Checks the loads in an expression.
    fn loads(&self, expr: &Expr) -> Answer {
        if !loads_from(expr, self.buffer) {
            return Some(());
        }
        let stored = self.stored.as_ref()?;
        if !self.required.iter().all(|condition| self.conditions.contains(condition)) {
            return None;
        }
        let mut found = Vec::new();
        loads_in(expr, &mut found);
        let contains = |(index, span): (&Index, &StoredSpan)| span.is_whole || self.contains(span, index);
        let holds = |indices: &Indices| indices.iter().zip(stored).all(contains);
        found.iter().filter(|load| load.buffer == self.buffer).all(|load| holds(load.indices)).then_some(())
    }

    /// Whether a span contains an index throughout.
    fn contains(&self, span: &StoredSpan, index: &Index) -> bool {
        let (Some(first), Some(last)) = (index.lower_bound(&self.inner), index.upper_bound(&self.inner))
        else {
            return false;
        };
        let below_limit = |limit: &Index| last.is_provably_less(limit, &self.all);
        span.first.is_provably_at_most(&first, &self.all)
            && last.is_provably_at_most(&span.last, &self.all)
            && span.limit.as_ref().is_none_or(below_limit)
    }
}

fn touches(stmt: Option<&Stmt>, buffer: BufferId) -> bool {
    stmt.is_some_and(|stmt| accesses(stmt, buffer))
}
