//! Barriers, where threads need elements that others have stored, or store elements that others have still to load.
//!
//! ```text
//! for k { bound thread_x for t { s[t] = x[k, t] }  bound thread_x for t { y[t] = y[t] + s[31 - t] } }
//! for k { bound thread_x for t { s[t] = x[k, t] }  barrier()  bound thread_x for t { y[t] = y[t] + s[31 - t] }  barrier() }
//! ```
//!
//! Two accesses of different threads that conflict need a barrier somewhere between them. In a sequence, a barrier as late as
//! possible, before the first statement that conflicts with one since the last barrier, is on the way of as many pairs as any
//! other: this is how intervals are stabbed with the fewest points. The body of a loop is a ring, as the last statements
//! precede the first ones of the next iteration. All places for one barrier are tried there, from which the others follow. Where a loop is
//! written out, its first copy has no barrier that only earlier iterations need.
//!
//! An asynchronous store conflicts where it is started, and its elements are there where the thread waits for them: other threads
//! need a barrier between the wait and their loads.
//!
//! The iterations of one loop over threads are independent, so that nothing inside of it needs a barrier;
//! [`check_loops`] refuses the others.

use std::cell::RefCell;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::ids::{BufferId, VarId};
use crate::index::Index;
use crate::lower::pass::threads::bind_threads::thread_axes;
use crate::lower::pass::threads::check_loops::check_loops;
use crate::lower::pass::threads::conflict::{
    Axes, SharedAccess, conflict, conflict_in_later, conflict_in_next, push_new, shared_accesses,
};
use crate::lower::util::condition::is_negative;
use crate::lower::{LowerError, LowerOptions};
use crate::program::{Program, Scope};
use crate::stmt::{Alloc, Copies, For, If, LoopKind, Stmt};
use crate::visit::for_each_stmt;

/// Puts barriers between the loops over threads of each nest.
pub(in crate::lower) fn insert_barriers(program: &mut Program, _: &LowerOptions) -> Result<(), LowerError> {
    let body = std::mem::replace(&mut program.body, Stmt::nothing());
    program.body = nests(program, &body)?;
    Ok(())
}

/// The statement with barriers inside each of its nests, which threads execute one after the other.
fn nests(program: &mut Program, stmt: &Stmt) -> Result<Stmt, LowerError> {
    match stmt {
        Stmt::Seq(stmts) => {
            Ok(Stmt::seq(stmts.iter().map(|stmt| nests(program, stmt)).collect::<Result<Vec<_>, _>>()?))
        }
        Stmt::Alloc(node) if program.buffer(node.buffer).scope == Scope::Global => {
            Ok(allocated(node, nests(program, &node.body)?))
        }
        _ => {
            let axes = thread_axes(program, stmt)?;
            check_loops(program, &axes, stmt)?;
            let copied = async_targets(stmt);
            Ok(Insertion { program, axes, copied }.inside_blocks(stmt))
        }
    }
}

fn allocated(node: &Alloc, body: Stmt) -> Stmt {
    Stmt::Alloc(Arc::new(Alloc { buffer: node.buffer, body }))
}

/// Whether pairs of accesses conflict, in one iteration of a loop and from one to the next: the ways through a ring, one from each element, ask
/// for the same pairs. Accesses are known by their address.
#[derive(Default)]
struct Answers(RefCell<FxHashMap<([*const SharedAccess; 2], bool), bool>>);

impl Answers {
    fn of(&self, pair: [&SharedAccess; 2], is_next: bool, find: impl FnOnce() -> bool) -> bool {
        let key = (pair.map(std::ptr::from_ref), is_next);
        if let Some(known) = self.0.borrow().get(&key) {
            return *known;
        }
        let answer = find();
        self.0.borrow_mut().insert(key, answer);
        answer
    }
}

struct Insertion<'p> {
    program: &'p Program,
    axes: Axes,
    /// The buffers that are stored to asynchronously.
    copied: Vec<BufferId>,
}

/// The buffers that are stored to asynchronously in a statement.
fn async_targets(stmt: &Stmt) -> Vec<BufferId> {
    let mut found = Vec::new();
    for_each_stmt(stmt, &mut |stmt| {
        if let Stmt::Store(store) = stmt
            && store.is_async()
            && !found.contains(&store.buffer)
        {
            found.push(store.buffer);
        }
    });
    found
}

/// A statement of a sequence, and the accesses that may conflict with those of others.
struct Element {
    stmt: Stmt,
    reach: Reach,
}

/// The accesses of a statement that no barrier inside of it separates from what stands before and behind it.
#[derive(Clone, Default)]
struct Reach {
    /// The accesses before its first barrier.
    head: Vec<SharedAccess>,
    /// The accesses after its last barrier.
    tail: Vec<SharedAccess>,
    /// Whether it certainly executes a barrier.
    separates: bool,
}

impl Reach {
    fn without_barrier(accesses: Vec<SharedAccess>) -> Self {
        Reach { head: accesses.clone(), tail: accesses, separates: false }
    }

    /// The reach of what is executed one after the other.
    fn then(mut self, next: &Reach) -> Self {
        if !self.separates {
            next.head.iter().for_each(|access| push_new(&mut self.head, access.clone()));
        }
        if next.separates {
            self.tail.clear();
        }
        next.tail.iter().for_each(|access| push_new(&mut self.tail, access.clone()));
        self.separates |= next.separates;
        self
    }

    fn barrier() -> Self {
        Reach { head: Vec::new(), tail: Vec::new(), separates: true }
    }
}

impl Insertion<'_> {
    /// Goes through the loops over blocks, and what else stands around everything in them.
    fn inside_blocks(&self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::For(node) if matches!(node.kind, LoopKind::Bound(axis) if axis.is_of_blocks()) => {
                Stmt::For(Arc::new(For { body: self.inside_blocks(&node.body), ..For::clone(node) }))
            }
            Stmt::Alloc(node) => allocated(node, self.inside_blocks(&node.body)),
            _ => self.sequence(self.elements(stmt)).stmt,
        }
    }

    fn elements(&self, stmt: &Stmt) -> Vec<Element> {
        match stmt {
            Stmt::Seq(stmts) => stmts.iter().map(|stmt| self.element(stmt)).collect(),
            _ => vec![self.element(stmt)],
        }
    }

    fn element(&self, stmt: &Stmt) -> Element {
        match stmt {
            Stmt::For(node) if !is_over_threads(node) && self.needs_barriers(stmt, &node.body) => {
                self.for_loop(node)
            }
            Stmt::Alloc(node) => {
                let inside = self.sequence(self.elements(&node.body));
                Element { stmt: allocated(node, inside.stmt), reach: inside.reach }
            }
            Stmt::If(node) if self.needs_barriers(stmt, stmt) => self.conditional(node),
            Stmt::Seq(_) => self.sequence(self.elements(stmt)),
            Stmt::Copies(Copies::Wait(_)) => {
                let arrivals = self.copied.iter().map(|buffer| SharedAccess::arrival(&self.axes, *buffer));
                Element { stmt: stmt.clone(), reach: Reach::without_barrier(arrivals.collect()) }
            }
            _ => Element { stmt: stmt.clone(), reach: Reach::without_barrier(self.accesses(stmt)) },
        }
    }

    /// All threads take the same branch. Which one is not known, so that the barriers of either may not be executed.
    fn conditional(&self, node: &If) -> Element {
        let condition = Stmt::If(Arc::new(If { then: Stmt::nothing(), otherwise: None, ..If::clone(node) }));
        let mut reach = Reach::without_barrier(self.accesses(&condition));
        let mut branch = |stmt: &Stmt| {
            let inside = self.sequence(self.elements(stmt));
            reach.head.extend(inside.reach.head);
            reach.tail.extend(inside.reach.tail);
            inside.stmt
        };
        let then = branch(&node.then);
        let otherwise = node.otherwise.as_ref().map(branch);
        Element { stmt: Stmt::If(Arc::new(If { then, otherwise, ..If::clone(node) })), reach }
    }

    /// Whether barriers may be needed inside of a statement with a body: where the body holds loops over threads, or where the first
    /// thread stores what all load.
    fn needs_barriers(&self, stmt: &Stmt, body: &Stmt) -> bool {
        let conflicts = |accesses: Vec<SharedAccess>| {
            accesses.iter().any(|a| a.is_store && accesses.iter().any(|b| conflict(&self.axes, a, b)))
        };
        holds_threads(body) || conflicts(self.accesses(stmt))
    }

    fn accesses(&self, stmt: &Stmt) -> Vec<SharedAccess> {
        shared_accesses(self.program, &self.axes, stmt)
    }

    /// The elements one after the other, with barriers where they are needed.
    fn sequence(&self, elements: Vec<Element>) -> Element {
        let places = self.places_from(&elements, 0, None, None, &Answers::default());
        assemble(elements, &places, None)
    }

    /// The first barrier of an iteration, where only earlier iterations need it: nothing before it conflicts with what stands between it
    /// and the next one.
    fn needless_at_first(&self, elements: &[Element], places: &[usize]) -> Option<usize> {
        let first = *places.first()?;
        let reach = |elements: &[Element]| {
            elements.iter().fold(Reach::default(), |reach, element| reach.then(&element.reach))
        };
        let next = places.get(1).copied().unwrap_or(elements.len());
        let (before, behind) = (reach(&elements[..first]), reach(&elements[first..next]));
        let conflicts = |a: &SharedAccess| behind.head.iter().any(|b| conflict(&self.axes, a, b));
        (!before.tail.iter().any(conflicts)).then_some(first)
    }

    fn for_loop(&self, node: &Arc<For>) -> Element {
        // Buffers that live for one iteration stand around all statements of the body.
        let (mut buffers, mut body) = (Vec::new(), &node.body);
        while let Stmt::Alloc(inner) = body {
            buffers.push(inner.clone());
            body = &inner.body;
        }
        let elements = self.elements(body);
        let places = self.places_in_ring(&elements, node);
        let late = if is_written_out(node) { self.needless_at_first(&elements, &places) } else { None };
        let inside = assemble(elements, &places, late.map(|place| (place, node.var)));
        let body = buffers.iter().rev().fold(inside.stmt, |body, node| allocated(node, body));
        let in_any = |accesses: Vec<SharedAccess>| -> Vec<SharedAccess> {
            accesses.into_iter().map(|access| access.in_any_iteration(node)).collect()
        };
        let Reach { head, tail, separates } = inside.reach;
        let is_certain = node.extent.as_constant().is_some_and(|extent| extent > 0);
        let (head, tail) = (in_any(head), in_any(tail));
        let reach =
            if is_certain { Reach { head, tail, separates } } else { Reach { head, tail, separates: false } };
        Element { stmt: Stmt::For(Arc::new(For { body, ..For::clone(node) })), reach }
    }

    /// The fewest places, by the number of the element behind, where a loop's body needs a barrier.
    fn places_in_ring(&self, elements: &[Element], node: &For) -> Vec<usize> {
        let answers = Answers::default();
        let in_sequence = self.places_from(elements, 0, None, None, &answers);
        let is_repeated = node.extent.as_constant().is_none_or(|extent| extent > 1);
        if !is_repeated || in_sequence.is_empty() && !self.conflicts_in_ring(elements, node) {
            return in_sequence;
        }
        let forced = (0..elements.len()).map(|start| (start, None));
        // A statement that executes a barrier itself can be where the ring is cut.
        let separating = (0..elements.len()).filter(|start| elements[*start].reach.separates);
        let separated = separating.map(|start| (start + 1, Some(start)));
        let choices = separated.chain(forced).map(|(start, behind)| {
            let mut places = self.places_from(elements, start, behind, Some(node.var), &answers);
            if behind.is_none() {
                places.push(start);
            }
            places.sort_unstable();
            places.dedup();
            places
        });
        choices.min_by_key(Vec::len).unwrap_or_default()
    }

    /// Whether elements of a loop's body conflict in an iteration and any later one, although no barrier of an element separates
    /// them.
    fn conflicts_in_ring(&self, elements: &[Element], node: &For) -> bool {
        let round = elements.iter().fold(Reach::default(), |round, element| round.then(&element.reach));
        let conflicts = |a: &SharedAccess, b: &SharedAccess| match round.separates {
            true => conflict_in_next(&self.axes, node.var, a, b),
            false => conflict_in_later(&self.axes, node, a, b),
        };
        round.tail.iter().any(|a| round.head.iter().any(|b| conflicts(a, b)))
    }

    /// The places where barriers are needed from an element on, as late as possible. In a ring, whose loop's variable is given, the
    /// elements before it follow in the next iteration. `behind` is the element after which the way begins, when that is no barrier.
    fn places_from(
        &self,
        elements: &[Element],
        start: usize,
        behind: Option<usize>,
        ring: Option<VarId>,
        answers: &Answers,
    ) -> Vec<usize> {
        let count = elements.len();
        let mut places = Vec::new();
        // Accesses since the last barrier, and whether they are of the next iteration.
        let mut open: Vec<(&SharedAccess, bool)> = Vec::new();
        if let Some(behind) = behind {
            open.extend(elements[behind].reach.tail.iter().map(|access| (access, false)));
        }
        // The element at which the way ends is looked at, too: the one that holds a barrier.
        let length = if ring.is_some() { count } else { count - start.min(count) };
        for step in 0..length {
            let position = (start + step) % count;
            let is_next = start + step >= count;
            let reach = &elements[position].reach;
            let conflicts = |(access, was_next): &(&SharedAccess, bool)| {
                let next = ring.filter(|_| *was_next != is_next);
                reach.head.iter().any(|own| {
                    answers.of([*access, own], next.is_some(), || match next {
                        Some(var) => conflict_in_next(&self.axes, var, access, own),
                        None => conflict(&self.axes, access, own),
                    })
                })
            };
            if open.iter().any(conflicts) {
                places.push(position);
                open.clear();
            }
            if reach.separates {
                open.clear();
            }
            open.extend(reach.tail.iter().map(|access| (access, is_next)));
        }
        places
    }
}

/// The elements with barriers before those at some places. At one of them, the first iteration of a loop needs none, and the reach is that
/// of an iteration without it.
fn assemble(elements: Vec<Element>, places: &[usize], late: Option<(usize, VarId)>) -> Element {
    let (mut stmts, mut reach) = (Vec::new(), Reach::default());
    let mut last = Reach::default();
    for (position, element) in elements.into_iter().enumerate() {
        let is_late = late.filter(|(place, _)| *place == position);
        if let Some((_, var)) = is_late {
            // Threads agree on the number of the iteration.
            stmts.push(Stmt::when(is_negative(&(&Index::constant(0) - &Index::var(var))), Stmt::Barrier));
            last = last.then(&Reach::barrier());
        } else if places.contains(&position) {
            stmts.push(Stmt::Barrier);
            reach = reach.then(&Reach::barrier());
            last = last.then(&Reach::barrier());
        }
        reach = reach.then(&element.reach);
        last = last.then(&element.reach);
        stmts.push(element.stmt);
    }
    // The accesses before the first barrier are those of the first iteration, the accesses after the last one those of the last.
    let reach = Reach { head: reach.head, tail: last.tail, separates: last.separates };
    Element { stmt: Stmt::seq(stmts), reach }
}

/// Whether the iterations of a loop with several of them become copies of its body.
fn is_written_out(node: &For) -> bool {
    let is_kind = match node.kind {
        LoopKind::Unrolled => true,
        LoopKind::Bound(axis) => !axis.is_of_grid(),
        _ => false,
    };
    is_kind && node.extent.as_constant().is_some_and(|extent| extent > 1)
}

pub(super) fn is_over_threads(node: &For) -> bool {
    matches!(node.kind, LoopKind::Bound(axis) if axis.is_of_block())
}

fn holds_threads(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::For(node) if is_over_threads(node)) || stmt.each_child().any(holds_threads)
}
