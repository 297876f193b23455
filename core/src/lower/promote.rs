//! Elements that a loop updates in every iteration are kept in registers while it runs.
//!
//! ```text
//! for k { c[i, j + lane] = c[i, j + lane] + … }
//! alloc t { t[lane] = c[i, j + lane] for k { t[lane] = t[lane] + … } c[i, j + lane] = t[lane] }
//! ```
//!
//! Done at the outermost loop that the elements do not depend on, when every access to the buffer
//! inside is to such an element or certainly to another one. A store directly before the loop gives the register its
//! first value without a detour through memory.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::analysis::block::loads_in;
use crate::expr::{Expr, ExprKind, Indices};
use crate::ids::{BufferId, VarId};
use crate::index::{Base, Index, Ranges};
use crate::lower::access::{accesses, reads_memory, rewrite_accesses};
use crate::lower::condition::{always_runs, when_runs};
use crate::lower::marked::{StoreLoops, for_each_marked, in_lanes};
use crate::lower::{LowerError, LowerOptions};
use crate::program::{Buffer, Program, Scope};
use crate::stmt::{Alloc, For, LoopKind, Stmt, Store};

/// The most elements that one loop keeps in registers: no machine's hold more.
const MAX_ELEMENTS: i64 = 512;

/// Keeps what loops update in registers.
pub(super) fn promote_updates(program: &mut Program, _: &LowerOptions) -> Result<(), LowerError> {
    let in_registers = buffers_in_registers(program);
    let mut body = std::mem::replace(&mut program.body, Stmt::nothing());
    Promotion { program, in_registers, ranges: Ranges::new() }.stmt(&mut body);
    program.body = body;
    Ok(())
}

/// The local buffers whose elements are all named by constants and lanes, so that backends keep them in
/// registers throughout.
fn buffers_in_registers(program: &Program) -> Vec<BufferId> {
    let is_local = |(id, buffer): (BufferId, &Buffer)| (buffer.scope == Scope::Local).then_some(id);
    let mut survey = Survey { wanted: program.buffers().filter_map(is_local).collect(), ..Survey::default() };
    survey.stmt(&program.body, true);
    let is_fixed = |index: &Index| {
        index.terms().iter().all(|term| matches!(term.digit.base, Base::Lane(_)) && term.digit.is_whole())
    };
    let is_in_registers = |id: &BufferId| {
        survey.of(*id).all(|element| element.indices.iter().all(is_fixed)) && survey.are_separate(*id)
    };
    survey.wanted.iter().copied().filter(is_in_registers).collect()
}

/// One element, or vector of elements, of a buffer, and how it is accessed.
struct Element {
    buffer: BufferId,
    indices: Indices,
    stored: bool,
    /// Whether the first access is a load that happens in every iteration, so that the element has a
    /// value already before the loop.
    starts_with_load: bool,
}

impl Element {
    fn lanes(&self) -> u32 {
        self.indices.iter().map(Index::lanes).max().unwrap_or(1)
    }
}

/// The elements accessed in a statement.
#[derive(Default)]
struct Survey {
    /// The buffers whose elements are wanted.
    wanted: Vec<BufferId>,
    elements: Vec<Element>,
    positions: FxHashMap<(BufferId, Indices), usize>,
    loop_vars: Vec<VarId>,
    /// The loops around the current place.
    ranges: Ranges,
    allocated: Vec<BufferId>,
    has_parallel: bool,
}

impl Survey {
    fn stmt(&mut self, stmt: &Stmt, certain: bool) {
        match stmt {
            Stmt::Store(store) => {
                for index in &store.indices {
                    self.expr(&Expr::index(index.clone()), certain);
                }
                self.expr(&store.value, certain);
                if let Some(element) = self.element(store.buffer, &store.indices, false) {
                    element.stored = true;
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
                for load in found {
                    self.element(load.buffer, load.indices, certain);
                }
            }
            _ => expr.operands().into_iter().for_each(|operand| self.expr(operand, certain)),
        }
    }

    /// The element of an access, when it is wanted.
    fn element(&mut self, buffer: BufferId, indices: &Indices, certain_load: bool) -> Option<&mut Element> {
        if !self.wanted.contains(&buffer) {
            return None;
        }
        let next = self.elements.len();
        let position = *self.positions.entry((buffer, indices.clone())).or_insert(next);
        if position == next {
            let indices = indices.clone();
            let starts_with_load = certain_load;
            self.elements.push(Element { buffer, indices, stored: false, starts_with_load });
        }
        Some(&mut self.elements[position])
    }

    fn of(&self, buffer: BufferId) -> impl Iterator<Item = &Element> {
        self.elements.iter().filter(move |element| element.buffer == buffer)
    }

    /// Whether no two different elements of a buffer can be the same one.
    fn are_separate(&self, buffer: BufferId) -> bool {
        let boxes: Option<Vec<_>> =
            self.of(buffer).map(|element| ElementBox::new(&element.indices)).collect();
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

    /// The elements that are updated throughout and may be kept elsewhere.
    fn updated(&self) -> Vec<&Element> {
        let mut buffers = self.wanted.clone();
        buffers.retain(|buffer| {
            !self.allocated.contains(buffer)
                && self.of(*buffer).all(|element| self.is_fixed(element))
                && self.are_separate(*buffer)
        });
        let is_updated = |element: &&Element| {
            element.starts_with_load && element.stored && buffers.contains(&element.buffer)
        };
        let updated: Vec<&Element> = self.elements.iter().filter(is_updated).collect();
        let elements: i64 = updated.iter().map(|element| i64::from(element.lanes())).sum();
        if elements > MAX_ELEMENTS { Vec::new() } else { updated }
    }
}

/// What one access covers: in each dimension the index at lane 0, and the most that any lane adds.
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

fn are_disjoint(a: &Indices, b: &Indices) -> bool {
    match (ElementBox::new(a), ElementBox::new(b)) {
        (Some(a), Some(b)) => a.is_disjoint(&b),
        _ => false,
    }
}

/// An element, or vector of elements, and its place in a local buffer while the loop runs.
struct Register {
    buffer: BufferId,
    indices: Indices,
    file: BufferId,
    /// The place of lane 0.
    start: i64,
    lanes: u32,
}

impl Register {
    fn place(&self) -> Indices {
        Indices::from_iter([Index::lane(self.lanes).offset(self.start)])
    }
}

struct Promotion<'p> {
    program: &'p mut Program,
    in_registers: Vec<BufferId>,
    /// The loops around the current place.
    ranges: Ranges,
}

impl Promotion<'_> {
    fn stmt(&mut self, stmt: &mut Stmt) {
        match stmt {
            Stmt::Seq(stmts) => {
                let stmts = Arc::make_mut(stmts);
                let mut position = 0;
                while position < stmts.len() {
                    position = self.member(stmts, position) + 1;
                }
                *stmt = Stmt::seq(std::mem::take(stmts));
            }
            Stmt::For(_) => {
                let mut single = vec![std::mem::replace(stmt, Stmt::nothing())];
                self.member(&mut single, 0);
                *stmt = Stmt::seq(single);
            }
            Stmt::Intrinsic(_) => {}
            _ => stmt.children_mut().into_iter().for_each(|child| self.stmt(child)),
        }
    }

    /// Handles one statement of a sequence; gives the position at which it then stands.
    fn member(&mut self, stmts: &mut Vec<Stmt>, position: usize) -> usize {
        let Stmt::For(node) = &mut stmts[position] else {
            self.stmt(&mut stmts[position]);
            return position;
        };
        let registers = self.registers(node);
        let node = Arc::make_mut(node);
        if !registers.is_empty() {
            let places: FxHashMap<(BufferId, &Indices), &Register> =
                registers.iter().map(|register| ((register.buffer, &register.indices), register)).collect();
            rewrite_accesses(&mut node.body, &|buffer, indices| {
                places.get(&(buffer, indices)).map(|register| (register.file, register.place()))
            });
            for_each_marked(&mut node.body, &mut |marked| {
                let loops = StoreLoops::of(marked);
                rewrite_accesses(&mut marked.body, &|buffer, indices| {
                    let lanes = loops.in_lanes(indices);
                    let register = places.get(&(buffer, &lanes))?;
                    Some((register.file, loops.place(register.start)))
                });
            });
        }
        self.ranges.insert_loop(node);
        self.stmt(&mut node.body);
        self.ranges.remove(node.var);
        if registers.is_empty() { position } else { self.surround(stmts, position, registers) }
    }

    /// The registers for what a loop updates.
    fn registers(&mut self, node: &For) -> Vec<Register> {
        if node.kind != LoopKind::Serial {
            return Vec::new();
        }
        let mut wanted = stored_in_place(node);
        wanted.retain(|buffer| !self.in_registers.contains(buffer));
        if wanted.is_empty() {
            return Vec::new();
        }
        let mut ranges = self.ranges.clone();
        ranges.insert_loop(node);
        let mut survey = Survey { wanted, loop_vars: vec![node.var], ranges, ..Survey::default() };
        survey.stmt(&node.body, true);
        if survey.has_parallel {
            return Vec::new();
        }
        let mut registers: Vec<Register> = Vec::new();
        for element in survey.updated() {
            let lanes = element.lanes();
            let last =
                registers.iter().rev().find(|last| last.buffer == element.buffer && last.lanes == lanes);
            let (file, start) = match last {
                Some(last) => (last.file, last.start + i64::from(lanes)),
                None => (self.new_file(element.buffer), 0),
            };
            let (buffer, indices) = (element.buffer, element.indices.clone());
            self.program.buffer_mut(file).shape = vec![Index::constant(start + i64::from(lanes))];
            registers.push(Register { buffer, indices, file, start, lanes });
        }
        registers
    }

    /// A local buffer for elements of another.
    fn new_file(&mut self, of: BufferId) -> BufferId {
        let of = self.program.buffer(of);
        let (name, dtype) = (format!("{}_register", of.name).into(), of.dtype);
        let file = self.program.add_buffer(Buffer { name, dtype, shape: Vec::new(), scope: Scope::Local });
        self.in_registers.push(file);
        file
    }

    /// Fills the registers before the loop at `position` and empties them after it.
    fn surround(&self, stmts: &mut Vec<Stmt>, position: usize, registers: Vec<Register>) -> usize {
        let mut files: Vec<BufferId> = registers.iter().map(|register| register.file).collect();
        files.sort();
        files.dedup();
        let load_store = |from: (BufferId, &Indices), to: (BufferId, &Indices)| {
            let value = Expr::load(self.program.buffer(from.0).dtype, from.0, from.1.iter().cloned());
            Stmt::store(to.0, to.1.iter().cloned(), value)
        };
        let empty = registers.iter().map(|register| {
            load_store((register.file, &register.place()), (register.buffer, &register.indices))
        });
        let node = stmts[position].clone();
        let before: Option<Vec<usize>> =
            registers.iter().map(|register| stored_before(&stmts[..position], register)).collect();
        let (first, body) = match before {
            Some(filled) => {
                for (found, register) in filled.iter().zip(&registers) {
                    if let Stmt::Store(store) = &mut stmts[*found] {
                        let store = Arc::make_mut(store);
                        (store.buffer, store.indices) = (register.file, register.place());
                    }
                }
                let first = filled.into_iter().min().unwrap_or(position);
                let members: Vec<Stmt> = stmts.drain(first..=position).collect();
                (first, Stmt::seq(members.into_iter().chain(empty)))
            }
            None => {
                let fill = registers.iter().map(|register| {
                    load_store((register.buffer, &register.indices), (register.file, &register.place()))
                });
                stmts.remove(position);
                let body = Stmt::seq(fill.chain([node.clone()]).chain(empty));
                (
                    position,
                    if let Stmt::For(node) = &node { when_runs(node, &self.ranges, body) } else { body },
                )
            }
        };
        let allocated =
            files.into_iter().rev().fold(body, |body, buffer| Stmt::Alloc(Arc::new(Alloc { buffer, body })));
        stmts.insert(first, allocated);
        first
    }
}

/// The buffers that are only stored to at places that stay the same while a loop runs.
fn stored_in_place(node: &For) -> Vec<BufferId> {
    let mut buffers: Vec<(BufferId, bool)> = Vec::new();
    note_stores(&node.body, &mut vec![node.var], &mut buffers);
    buffers.into_iter().filter(|(_, is_fixed)| *is_fixed).map(|(buffer, _)| buffer).collect()
}

fn note_stores(stmt: &Stmt, vars: &mut Vec<VarId>, buffers: &mut Vec<(BufferId, bool)>) {
    match stmt {
        Stmt::For(inner) => vars.push(inner.var),
        Stmt::Store(store) => {
            let position =
                buffers.iter().position(|(buffer, _)| *buffer == store.buffer).unwrap_or_else(|| {
                    buffers.push((store.buffer, true));
                    buffers.len() - 1
                });
            let is_fixed = &mut buffers[position].1;
            *is_fixed &= !store.indices.iter().any(|index| vars.iter().any(|var| index.mentions(*var)));
        }
        Stmt::Intrinsic(node) => return note_stores(&in_lanes(node), vars, buffers),
        _ => {}
    }
    stmt.each_child().for_each(|child| note_stores(child, vars, buffers));
}

/// The last store to the register's element before the loop, when nothing accesses the element in between.
fn stored_before(stmts: &[Stmt], register: &Register) -> Option<usize> {
    for (position, stmt) in stmts.iter().enumerate().rev() {
        if let Stmt::Store(store) = stmt
            && store.buffer == register.buffer
        {
            let same = store.indices == register.indices;
            if same && !reads(store, register.buffer) {
                return Some(position);
            }
            if same || reads(store, register.buffer) || !are_disjoint(&store.indices, &register.indices) {
                return None;
            }
        } else if accesses(stmt, register.buffer) {
            return None;
        }
    }
    None
}

fn reads(store: &Store, buffer: BufferId) -> bool {
    let mut found = Vec::new();
    loads_in(&store.value, &mut found);
    found.iter().any(|load| load.buffer == buffer)
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
