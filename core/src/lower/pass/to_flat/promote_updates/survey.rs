//! The accesses of a statement to buffers, element by element.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::analysis::access::reads_memory;
use crate::analysis::block::loads_in;
use crate::expr::{Expr, ExprKind, Indices};
use crate::ids::{BufferId, VarId};
use crate::index::{Base, Index, Ranges};
use crate::lower::util::condition::always_runs;
use crate::lower::util::marked::in_lanes;
use crate::program::{Buffer, Program, Scope};
use crate::stmt::{LoopKind, Stmt};

/// The most bytes that are kept in registers at once: no machine has more.
const MAX_BYTES: i64 = 2048;

/// The local buffers whose elements are all named by constants and lanes, so that backends keep them in
/// registers throughout.
pub(super) fn buffers_in_registers(program: &Program) -> Vec<BufferId> {
    let is_local = |(id, buffer): (BufferId, &Buffer)| (buffer.scope == Scope::Local).then_some(id);
    let locals = program.buffers().filter_map(is_local).collect();
    let mut survey = Survey::of(locals, Vec::new(), Ranges::new());
    survey.stmt(&program.body, true);
    let is_fixed = |index: &Index| {
        index.terms().iter().all(|term| matches!(term.digit.base, Base::Lane(_)) && term.digit.is_whole())
    };
    let is_in_registers = |id: &BufferId| {
        survey.of_buffer(*id).all(|element| element.indices.iter().all(is_fixed)) && survey.are_separate(*id)
    };
    survey.wanted.iter().copied().filter(is_in_registers).collect()
}

/// One element, or vector of elements, of a buffer, and how it is accessed.
pub(super) struct Element {
    pub(super) buffer: BufferId,
    pub(super) indices: Indices,
    /// The stores to it.
    pub(super) stores: usize,
    /// The kind of its first access.
    pub(super) first: First,
}

/// The first access to an element.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    /// A load that is certain to happen, so that the element has a value already before the statement.
    Load,
    /// A load under a condition.
    ConditionalLoad,
    /// A store.
    Store,
}

impl Element {
    pub(super) fn lanes(&self) -> u32 {
        self.indices.iter().map(Index::lanes).max().unwrap_or(1)
    }
}

/// The elements accessed in a statement.
#[derive(Default)]
pub(super) struct Survey {
    /// The buffers whose elements are wanted.
    wanted: Vec<BufferId>,
    elements: Vec<Element>,
    positions: FxHashMap<(BufferId, Indices), usize>,
    loop_vars: Vec<VarId>,
    /// The loops around the current statement.
    ranges: Ranges,
    allocated: Vec<BufferId>,
    /// Whether there is a parallel loop.
    pub(super) has_parallel: bool,
}

impl Survey {
    /// An empty survey of the elements of some buffers. `loop_vars` are the variables of the loops in which an element has to
    /// stay the same, `ranges` the loops around the surveyed statements.
    pub(super) fn of(wanted: Vec<BufferId>, loop_vars: Vec<VarId>, ranges: Ranges) -> Self {
        Survey { wanted, loop_vars, ranges, ..Survey::default() }
    }

    /// Adds the elements of a statement. `certain` states that it runs whenever the surveyed statements do.
    pub(super) fn stmt(&mut self, stmt: &Stmt, certain: bool) {
        match stmt {
            Stmt::Store(store) => {
                for index in &store.indices {
                    self.expr(&Expr::index(index.clone()), certain);
                }
                self.expr(&store.value, certain);
                if store.is_atomic() {
                    // Other threads update the element at the same time.
                    self.wanted.retain(|buffer| *buffer != store.buffer);
                }
                if let Some(element) = self.element(store.buffer, &store.indices, First::Store) {
                    element.stores += 1;
                }
            }
            Stmt::If(node) => {
                self.expr(&node.condition, certain);
                self.stmt(&node.then, false);
                node.otherwise.iter().for_each(|stmt| self.stmt(stmt, false));
            }
            Stmt::For(node) => {
                self.loop_vars.push(node.var);
                self.has_parallel |= node.kind == LoopKind::Parallel;
                let certain = certain && always_runs(node, &self.ranges);
                self.ranges.insert_loop(node);
                self.stmt(&node.body, certain);
                self.ranges.remove(node.var);
            }
            Stmt::Alloc(node) => {
                self.allocated.push(node.buffer);
                self.stmt(&node.body, certain);
            }
            Stmt::Seq(_) | Stmt::Block(_) => {
                stmt.children().into_iter().for_each(|child| self.stmt(child, certain));
            }
            Stmt::Intrinsic(node) => self.stmt(&in_lanes(node), certain),
            Stmt::Shuffle(node) => self.stmt(&node.body, certain),
            Stmt::Barrier | Stmt::Copies(_) => {}
        }
    }

    fn expr(&mut self, expr: &Expr, certain: bool) {
        match expr.kind() {
            // Only the chosen branch is evaluated.
            ExprKind::Select(condition, then, otherwise) => {
                self.expr(condition, certain);
                self.expr(then, false);
                self.expr(otherwise, false);
            }
            ExprKind::Load(..) | ExprKind::Index(_) => {
                let mut found = Vec::new();
                loads_in(expr, &mut found);
                let first = if certain { First::Load } else { First::ConditionalLoad };
                for load in found {
                    self.element(load.buffer, load.indices, first);
                }
            }
            _ => expr.operands().into_iter().for_each(|operand| self.expr(operand, certain)),
        }
    }

    /// The element of an access, when it is wanted.
    fn element(&mut self, buffer: BufferId, indices: &Indices, first: First) -> Option<&mut Element> {
        if !self.wanted.contains(&buffer) {
            return None;
        }
        let next = self.elements.len();
        let position = *self.positions.entry((buffer, indices.clone())).or_insert(next);
        if position == next {
            self.elements.push(Element { buffer, indices: indices.clone(), stores: 0, first });
        }
        Some(&mut self.elements[position])
    }

    /// The elements of a buffer.
    fn of_buffer(&self, buffer: BufferId) -> impl Iterator<Item = &Element> {
        self.elements.iter().filter(move |element| element.buffer == buffer)
    }

    /// Whether no two different elements of a buffer can be the same one.
    fn are_separate(&self, buffer: BufferId) -> bool {
        let boxes: Option<Vec<_>> =
            self.of_buffer(buffer).map(|element| ElementBox::new(&element.indices)).collect();
        let Some(boxes) = boxes else { return false };
        boxes
            .iter()
            .enumerate()
            .all(|(position, element)| boxes[..position].iter().all(|other| element.is_disjoint(other)))
    }

    /// Whether the element stays the same while the surveyed loops run.
    fn is_fixed(&self, element: &Element) -> bool {
        element
            .indices
            .iter()
            .all(|index| !reads_memory(index) && !self.loop_vars.iter().any(|var| index.mentions(*var)))
    }

    /// The elements that may be kept elsewhere while the surveyed statements run, of those that are `worth` it; none when they are too many.
    /// `bytes_of` gives the bytes that an element of a buffer takes in a register.
    pub(super) fn kept(
        &self,
        worth: impl Fn(&Element) -> bool,
        bytes_of: impl Fn(BufferId) -> i64,
    ) -> Vec<&Element> {
        let mut buffers = self.wanted.clone();
        buffers.retain(|buffer| {
            !self.allocated.contains(buffer)
                && self.of_buffer(*buffer).all(|element| self.is_fixed(element))
                && self.are_separate(*buffer)
        });
        let is_kept = |element: &&Element| worth(element) && buffers.contains(&element.buffer);
        let kept: Vec<&Element> = self.elements.iter().filter(is_kept).collect();
        let bytes: i64 =
            kept.iter().map(|element| i64::from(element.lanes()) * bytes_of(element.buffer)).sum();
        if bytes > MAX_BYTES { Vec::new() } else { kept }
    }
}

/// The elements of one access: in each dimension the index at lane 0, and the most that any lane adds.
struct ElementBox(SmallVec<[(Index, i64); 4]>);

impl ElementBox {
    /// `None` when the lanes are not in a row.
    fn new(indices: &Indices) -> Option<Self> {
        indices.iter().map(without_lane).collect::<Option<_>>().map(ElementBox)
    }

    /// Whether both never overlap: in some dimension their distance is constant and exceeds their lanes.
    fn is_disjoint(&self, other: &ElementBox) -> bool {
        self.0.iter().zip(&other.0).any(|((a, a_span), (b, b_span))| {
            // a + 0..=a_span against b + 0..=b_span
            let distance = a.constant_part() - b.constant_part();
            a.terms() == b.terms() && (distance > *b_span || -distance > *a_span)
        })
    }
}

/// The index at lane 0, and the most that any lane adds; `None` when that is not known.
fn without_lane(index: &Index) -> Option<(Index, i64)> {
    if index.lanes() == 1 {
        return Some((index.clone(), 0));
    }
    let mut span = 0;
    for term in index.terms() {
        match term.digit.base {
            Base::Lane(_) if term.coefficient > 0 => {
                // Lanes are numbered from 0, so that no digit of theirs is less.
                let last = Index::digit(term.digit.clone()).interval(&Ranges::new());
                span += term.coefficient * last.max;
            }
            _ if Index::digit(term.digit.clone()).lanes() > 1 => return None,
            _ => {}
        }
    }
    let scalar = index.terms().iter().filter(|term| !matches!(term.digit.base, Base::Lane(_))).cloned();
    Some((Index::from_terms(scalar, index.constant_part()), span))
}

/// Whether two accesses never touch the same element.
pub(super) fn are_disjoint(a: &Indices, b: &Indices) -> bool {
    match (ElementBox::new(a), ElementBox::new(b)) {
        (Some(a), Some(b)) => a.is_disjoint(&b),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_disjoint_when_their_distance_exceeds_their_lanes() {
        let row =
            |row: i64, column: &Index| Indices::from_iter([Index::var(VarId(0)).offset(row), column.clone()]);
        let vector = |start: i64| &Index::var(VarId(1)) + &Index::lane(8).offset(start);
        let scalar = |at: i64| Index::var(VarId(1)).offset(at);
        let cases = [
            (row(0, &vector(0)), row(1, &vector(0)), true),
            (row(0, &vector(0)), row(0, &vector(8)), true),
            (row(0, &vector(0)), row(0, &vector(7)), false),
            (row(0, &vector(0)), row(0, &scalar(7)), false),
            (row(0, &vector(0)), row(0, &scalar(8)), true),
            (row(0, &scalar(-1)), row(0, &vector(0)), true),
            (row(0, &vector(0)), row(0, &Index::constant(3)), false),
        ];
        for (a, b, expected) in cases {
            assert_eq!(are_disjoint(&a, &b), expected, "{a:?} and {b:?}");
            assert_eq!(are_disjoint(&b, &a), expected, "{b:?} and {a:?}");
        }
    }
}
