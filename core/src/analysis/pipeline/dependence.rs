//! Whether a pipeline executes statements in an order in which they find what they need.
//!
//! Two statements that access a buffer, which one of them writes, must be executed in their order for each iteration. If the
//! buffer lives longer than an iteration, the later one must be done, too, before the earlier one comes to the next iteration,
//! unless iterations have elements of their own: as far as the bounds of one index tell.

use crate::analysis::block::loads_in;
use crate::analysis::pipeline::{Parts, PipelineFault, Plan, Statement};
use crate::expr::{Expr, Indices};
use crate::ids::{BufferId, VarId};
use crate::index::{Index, Ranges};
use crate::program::Program;
use crate::stmt::{For, Stmt};

/// An access of a statement.
struct Touch {
    buffer: BufferId,
    is_store: bool,
    indices: Indices,
    /// The loops around it in the statement.
    inner: Ranges,
}

/// Checks that each statement is executed after those that it depends on. `around` has the ranges of the loops around.
///
/// # Errors
/// The first two statements that would be executed in the wrong order.
pub(crate) fn check_dependences(
    program: &Program,
    node: &For,
    plan: &Plan,
    parts: &Parts,
    around: &Ranges,
) -> Result<(), PipelineFault> {
    let touches: Vec<Vec<Touch>> = parts.statements.iter().map(touches).collect();
    // A later iteration is `distance + 1` after this one. The program has no variable of that number.
    let distance = VarId(program.variables().len() as u32);
    let mut ranges = around.clone();
    ranges.insert_loop(node);
    ranges.insert(distance, node.extent.clone());
    let later = Index::var(node.var).offset(1).add_scaled(&Index::var(distance), 1);
    let iterations = Iterations { var: node.var, later, ranges };
    for (after, second) in parts.statements.iter().enumerate() {
        for (before, first) in parts.statements[..after].iter().enumerate() {
            let of_both = pairs(&touches[before], &touches[after]);
            let is_kept = plan.time(first.number) < plan.time(second.number);
            let is_done = is_done_before_next(plan, first, second);
            for (a, b) in of_both {
                let is_own = parts.own.contains(&a.buffer);
                let is_async = plan.is_async(first.number) && is_own && a.is_store;
                if is_async && plan.stages[first.number] == plan.stages[second.number] {
                    let (copy, user) = (first.number, second.number);
                    return Err(PipelineFault::AsyncStage { copy, user, buffer: a.buffer });
                }
                if !is_kept || !(is_own || is_done || iterations.are_apart(a, b)) {
                    let (first, second) = (first.number, second.number);
                    return Err(PipelineFault::Dependence { first, second, buffer: a.buffer });
                }
            }
        }
    }
    Ok(())
}

/// Whether the second statement is executed in an iteration before the first one is in the next.
fn is_done_before_next(plan: &Plan, first: &Statement, second: &Statement) -> bool {
    let (stage, place) = plan.time(first.number);
    plan.time(second.number) < (stage + 1, place)
}

/// The accesses of two statements to one buffer of which one is a store.
fn pairs<'a>(first: &'a [Touch], second: &'a [Touch]) -> impl Iterator<Item = (&'a Touch, &'a Touch)> {
    first.iter().flat_map(move |a| {
        second.iter().filter(move |b| a.buffer == b.buffer && (a.is_store || b.is_store)).map(move |b| (a, b))
    })
}

struct Iterations {
    var: VarId,
    /// An iteration after that of `var`.
    later: Index,
    /// The ranges of all variables but those of loops in statements.
    ranges: Ranges,
}

impl Iterations {
    /// Whether what `a` touches in an iteration lies apart from what `b` touches in earlier ones.
    fn are_apart(&self, a: &Touch, b: &Touch) -> bool {
        let moved = |bound: Index| bound.substitute(&|var| (var == self.var).then(|| self.later.clone()));
        a.indices.iter().zip(&b.indices).any(|(a_index, b_index)| {
            let comes_after = || {
                let low = b_index.upper_bound(&b.inner)?;
                Some(low.is_provably_less(&moved(a_index.lower_bound(&a.inner)?), &self.ranges))
            };
            let comes_before = || {
                let high = b_index.lower_bound(&b.inner)?;
                Some(moved(a_index.upper_bound(&a.inner)?).is_provably_less(&high, &self.ranges))
            };
            comes_after().unwrap_or(false) || comes_before().unwrap_or(false)
        })
    }
}

fn touches(statement: &Statement) -> Vec<Touch> {
    let mut search = Search { inner: Ranges::new(), own: Vec::new(), found: Vec::new() };
    search.stmt(&statement.body);
    search.found
}

struct Search {
    inner: Ranges,
    /// The buffers that live inside the statement.
    own: Vec<BufferId>,
    found: Vec<Touch>,
}

impl Search {
    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Store(store) => {
                store.indices.iter().for_each(|index| self.loads(&Expr::index(index.clone())));
                self.loads(&store.value);
                self.touch(store.buffer, true, &store.indices);
            }
            Stmt::If(node) => self.loads(&node.condition),
            Stmt::For(node) => {
                self.loads(&Expr::index(node.extent.clone()));
                self.inner.insert_loop(node);
            }
            Stmt::Alloc(node) => self.own.push(node.buffer),
            Stmt::Seq(_)
            | Stmt::Block(_)
            | Stmt::Intrinsic(_)
            | Stmt::Barrier
            | Stmt::Copies(_)
            | Stmt::Shuffle(_) => {}
        }
        stmt.children().into_iter().for_each(|child| self.stmt(child));
        if let Stmt::For(node) = stmt {
            self.inner.remove(node.var);
        }
    }

    fn loads(&mut self, expr: &Expr) {
        let mut found = Vec::new();
        loads_in(expr, &mut found);
        found.into_iter().for_each(|access| self.touch(access.buffer, false, access.indices));
    }

    fn touch(&mut self, buffer: BufferId, is_store: bool, indices: &Indices) {
        if !self.own.contains(&buffer) {
            let (indices, inner) = (indices.clone(), self.inner.clone());
            self.found.push(Touch { buffer, is_store, indices, inner });
        }
    }
}
