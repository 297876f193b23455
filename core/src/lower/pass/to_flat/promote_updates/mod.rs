//! Keeps elements that a loop updates in every iteration in registers while it runs, and likewise elements that
//! [a sequence of statements](lines) updates.
//!
//! ```text
//! for k { c[i, j + lane] = c[i, j + lane] + … }
//! alloc t { t[lane] = c[i, j + lane] for k { t[lane] = t[lane] + … } c[i, j + lane] = t[lane] }
//! ```
//!
//! Done at the outermost loop that the elements do not depend on, when every access to the buffer
//! inside is to such an element or certainly to another one. A store directly before the loop gives the register its
//! first value without a detour through memory.

mod lines;
mod pieces;
mod survey;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::access::rewrite_accesses;
use crate::analysis::access::{accesses, holds_barrier};
use crate::analysis::block::loads_in;
use crate::expr::{BinaryOp, Constant, Expr, ExprKind, Indices};
use crate::ids::{BufferId, VarId};
use crate::index::{Index, Ranges};
use crate::intrinsic::BY_WARP;
use crate::lower::pass::to_flat::promote_updates::survey::{
    Element, First, Survey, are_disjoint, buffers_in_registers,
};
use crate::lower::util::condition::when_runs;
use crate::lower::util::marked::{StoreLoops, for_each_marked, in_lanes};
use crate::lower::{LowerError, LowerOptions};
use crate::program::{Buffer, Program, Scope};
use crate::stmt::{Alloc, For, If, LoopKind, Stmt, Store};
use crate::target::TargetKind;
use crate::visit::listed;

/// Keeps the elements that loops and sequences of statements update in registers.
pub(in crate::lower) fn promote_updates(
    program: &mut Program,
    options: &LowerOptions,
) -> Result<(), LowerError> {
    // Registers of GPUs have 32 bits, and hold one element each.
    let least_bytes = if options.kind == TargetKind::Gpu { 4 } else { 1 };
    let in_registers = buffers_in_registers(program);
    let mut body = std::mem::replace(&mut program.body, Stmt::nothing());
    let (ranges, stored, known) = (Ranges::new(), Vec::new(), Vec::new());
    Promotion { program, least_bytes, in_registers, ranges, stored, known }.stmt(&mut body);
    program.body = body;
    Ok(())
}

/// An element, or vector of elements, and its position in a local buffer meanwhile.
struct Register {
    buffer: BufferId,
    indices: Indices,
    file: BufferId,
    /// The position of lane 0.
    start: i64,
    lanes: u32,
}

impl Register {
    fn place(&self) -> Indices {
        Indices::from_iter([Index::lane(self.lanes).offset(self.start)])
    }
}

/// The registers by the elements that they hold.
struct Places<'r>(FxHashMap<(BufferId, &'r Indices), &'r Register>);

impl<'r> Places<'r> {
    fn of(registers: &'r [Register]) -> Self {
        let entry = |register: &'r Register| ((register.buffer, &register.indices), register);
        Places(registers.iter().map(entry).collect())
    }

    fn register(&self, buffer: BufferId, indices: &Indices) -> Option<&Register> {
        self.0.get(&(buffer, indices)).copied()
    }

    /// The register element for an access.
    fn of_access(&self, buffer: BufferId, indices: &Indices) -> Option<(BufferId, Indices)> {
        self.register(buffer, indices).map(|register| (register.file, register.place()))
    }

    /// Replaces the accesses of a statement to elements by accesses to their registers.
    fn replace_in(&self, stmt: &mut Stmt) {
        rewrite_accesses(stmt, &|buffer, indices| self.of_access(buffer, indices));
        for_each_marked(stmt, &mut |marked| {
            let loops = StoreLoops::of(marked);
            rewrite_accesses(&mut marked.body, &|buffer, indices| {
                let register = self.register(buffer, &loops.in_lanes(indices))?;
                Some((register.file, loops.place(register.start)))
            });
        });
    }
}

struct Promotion<'p> {
    program: &'p mut Program,
    /// The fewest bytes that an element takes in a register.
    least_bytes: usize,
    in_registers: Vec<BufferId>,
    /// The loops around the current place.
    ranges: Ranges,
    /// The stores that have certainly run before the current place, of the sequences around it and on the same thread. Their elements
    /// exist, and no other thread accesses them here.
    stored: Vec<Arc<Store>>,
    /// The variables that have one value in the branches around the current place. Indices inside may have the value instead.
    known: Vec<(VarId, Index)>,
}

impl Promotion<'_> {
    fn stmt(&mut self, stmt: &mut Stmt) {
        match stmt {
            Stmt::Seq(stmts) => {
                let stmts = Arc::make_mut(stmts);
                let mut around = self.stored.len();
                let mut position = 0;
                while position < stmts.len() {
                    match &stmts[position] {
                        Stmt::Store(store) => self.stored.push(store.clone()),
                        // Behind a barrier, the element may be another thread's.
                        other if holds_barrier(other) => {
                            self.stored.clear();
                            around = 0;
                        }
                        _ => {}
                    }
                    position = self.member(stmts, position) + 1;
                }
                self.stored.truncate(around);
                self.lines(stmts);
                *stmt = Stmt::seq(std::mem::take(stmts));
            }
            Stmt::For(_) => {
                let mut single = vec![std::mem::replace(stmt, Stmt::nothing())];
                self.member(&mut single, 0);
                *stmt = Stmt::seq(single);
            }
            Stmt::If(node) => {
                let If { condition, then, otherwise } = Arc::make_mut(node);
                let outside = self.known.len();
                for (branch, holds) in [(Some(then), true), (otherwise.as_mut(), false)] {
                    let Some(branch) = branch else { continue };
                    self.known.extend(only_value(condition, holds, &self.ranges));
                    self.stmt(branch);
                    self.known.truncate(outside);
                }
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
            Places::of(&registers).replace_in(&mut node.body);
        }
        // A store ahead of iterations that run at once gives its element to none of them alone.
        let shared = (!matches!(node.kind, LoopKind::Serial | LoopKind::Unrolled | LoopKind::Vectorized))
            .then(|| std::mem::take(&mut self.stored));
        self.ranges.insert_loop(node);
        self.stmt(&mut node.body);
        self.ranges.remove(node.var);
        if let Some(shared) = shared {
            self.stored = shared;
        }
        if registers.is_empty() { position } else { self.surround(stmts, position, registers) }
    }

    /// The registers for the elements that a loop updates.
    fn registers(&mut self, node: &For) -> Vec<Register> {
        if node.kind != LoopKind::Serial {
            return Vec::new();
        }
        let mut wanted = stored_in_place(node);
        wanted.retain(|buffer| !self.in_registers.contains(buffer));
        wanted.retain(|buffer| self.program.buffer(*buffer).scope != Scope::Fragment);
        if holds_barrier(&node.body) {
            // Other threads see a loop's stores to memory that they share.
            wanted.retain(|buffer| self.program.buffer(*buffer).scope == Scope::Local);
        }
        // The lanes of a warp hold elements of fragments, and access others as they hold those.
        wanted.retain(|buffer| !is_accessed_by_warp(&node.body, *buffer));
        if wanted.is_empty() {
            return Vec::new();
        }
        let mut ranges = self.ranges.clone();
        ranges.insert_loop(node);
        let mut survey = Survey::of(wanted, vec![node.var], ranges);
        survey.stmt(&node.body, true);
        if survey.has_parallel {
            return Vec::new();
        }
        let is_updated = |element: &Element| {
            element.stores > 0
                && match element.first {
                    First::Load => true,
                    // A guard may keep the loop from an element that does not exist, but not from one that was stored.
                    First::ConditionalLoad => self.has_stored(element),
                    First::Store => false,
                }
        };
        let updated = survey.kept(is_updated, |buffer| self.register_bytes(buffer));
        self.places_of(&updated)
    }

    /// The bytes that an element of a buffer takes in a register.
    fn register_bytes(&self, buffer: BufferId) -> i64 {
        self.program.buffer(buffer).dtype.bytes().max(self.least_bytes) as i64
    }

    /// Whether an element was certainly stored to.
    fn has_stored(&self, element: &Element) -> bool {
        let known = listed(&self.known);
        let place =
            |indices: &Indices| -> Indices { indices.iter().map(|index| index.substitute(&known)).collect() };
        let wanted = place(&element.indices);
        self.stored
            .iter()
            .rev()
            .any(|store| store.buffer == element.buffer && place(&store.indices) == wanted)
    }

    /// Local buffers for elements.
    fn places_of(&mut self, elements: &[&Element]) -> Vec<Register> {
        let mut registers: Vec<Register> = Vec::new();
        for element in elements {
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

    /// Loads a register from memory.
    fn fill(&self, register: &Register) -> Stmt {
        self.move_value((register.buffer, &register.indices), (register.file, &register.place()))
    }

    /// Stores a register to memory.
    fn empty(&self, register: &Register) -> Stmt {
        self.move_value((register.file, &register.place()), (register.buffer, &register.indices))
    }

    fn move_value(&self, from: (BufferId, &Indices), to: (BufferId, &Indices)) -> Stmt {
        let value = Expr::load(self.program.buffer(from.0).dtype, from.0, from.1.iter().cloned());
        Stmt::store(to.0, to.1.iter().cloned(), value)
    }

    /// Fills the registers before the loop at `position` and empties them after it.
    fn surround(&self, stmts: &mut Vec<Stmt>, position: usize, registers: Vec<Register>) -> usize {
        let empty = registers.iter().map(|register| self.empty(register));
        let node = stmts[position].clone();
        let before: Option<Vec<usize>> = registers
            .iter()
            .map(|register| stored_before(&stmts[..position], register.buffer, &register.indices))
            .collect();
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
                let fill = registers.iter().map(|register| self.fill(register));
                stmts.remove(position);
                let body = Stmt::seq(fill.chain([node.clone()]).chain(empty));
                (
                    position,
                    if let Stmt::For(node) = &node { when_runs(node, &self.ranges, body) } else { body },
                )
            }
        };
        stmts.insert(first, allocated(&registers, body));
        first
    }
}

/// The variable that a comparison with a constant leaves one value, and that value, where the comparison holds or fails.
fn only_value(condition: &Expr, holds: bool, ranges: &Ranges) -> Option<(VarId, Index)> {
    let ExprKind::Binary(BinaryOp::Lt, left, right) = condition.kind() else { return None };
    let side = |expr: &Expr| match expr.kind() {
        ExprKind::Index(index) => Some(index.clone()),
        ExprKind::Constant(Constant::Int(value)) => Some(Index::constant(*value)),
        _ => None,
    };
    let (left, right) = (side(left)?, side(right)?);
    let (var, least, most) = match (left.as_var(), right.as_var()) {
        (Some(var), None) => {
            let (bound, all) = (right.as_constant()?, ranges.interval(var));
            if holds { (var, all.min, all.max.min(bound - 1)) } else { (var, all.min.max(bound), all.max) }
        }
        (None, Some(var)) => {
            let (bound, all) = (left.as_constant()?, ranges.interval(var));
            if holds { (var, all.min.max(bound + 1), all.max) } else { (var, all.min, all.max.min(bound)) }
        }
        _ => return None,
    };
    (least == most).then(|| (var, Index::constant(least)))
}

/// The statement with the registers' buffers around it.
fn allocated(registers: &[Register], body: Stmt) -> Stmt {
    let mut files: Vec<BufferId> = registers.iter().map(|register| register.file).collect();
    files.sort();
    files.dedup();
    files.into_iter().rev().fold(body, |body, buffer| Stmt::Alloc(Arc::new(Alloc { buffer, body })))
}

/// Whether a statement that the lanes of a warp execute together accesses a buffer.
fn is_accessed_by_warp(stmt: &Stmt, buffer: BufferId) -> bool {
    match stmt {
        Stmt::Intrinsic(node) if &*node.name == BY_WARP => accesses(stmt, buffer),
        _ => stmt.each_child().any(|child| is_accessed_by_warp(child, buffer)),
    }
}

/// The buffers that are only stored to at elements that stay the same while a loop runs.
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

/// The last store to an element before the loop, when nothing accesses the element in between.
fn stored_before(stmts: &[Stmt], buffer: BufferId, indices: &Indices) -> Option<usize> {
    for (position, stmt) in stmts.iter().enumerate().rev() {
        if let Stmt::Store(store) = stmt
            && store.buffer == buffer
        {
            let same = store.indices == *indices;
            if same && !reads(store, buffer) {
                return Some(position);
            }
            if same || reads(store, buffer) || !are_disjoint(&store.indices, indices) {
                return None;
            }
        } else if accesses(stmt, buffer) || holds_barrier(stmt) {
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
