//! Statements that compute bytes from bytes alone, such as maxima of pools: a full vector of bytes at a time.
//!
//! Elsewhere a byte is widened to 32 bits, because arithmetic needs them. Minima, maxima and moves do not, and four times as many lanes
//! fit into a vector. An intermediate holds packed bytes in its registers when every statement that accesses it is of this form.

use rustc_hash::FxHashSet;
use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, Constant, Expr, ExprKind};
use tilewright_core::ids::BufferId;
use tilewright_core::index::Index;
use tilewright_core::stmt::{Stmt, Store};

use crate::flat::access::{Access, can_report, for_each_access, for_each_load};
use crate::simd::Refusal;
use crate::simd::build::memory::bytes::load_of_bytes;
use crate::simd::build::memory::selected::is_decided_by_indices;
use crate::simd::build::stmt::nest::reads_elsewhere;
use crate::simd::build::stmt::registers::single;
use crate::simd::build::value::expr::bits_of;
use crate::simd::build::value::group::Group;
use crate::simd::build::{Builder, Outcome};
use crate::simd::ir::{Class, Inst, Mem, Op, Operand, Reg, Width};
use crate::simd::x86::VectorOp;

/// The lanes of the smallest group: 32 bits are the least that a vector instruction moves.
const FEWEST_LANES: u32 = 4;

impl Builder<'_> {
    /// The intermediates of bytes in a leaf of which some statement needs the elements as 32 bits.
    pub(super) fn widened_intermediates(&mut self, leaf: &Stmt) -> FxHashSet<BufferId> {
        let mut intermediates = FxHashSet::default();
        note_allocations(leaf, &mut intermediates);
        intermediates.retain(|buffer| is_byte(self.program.buffer(*buffer).dtype));
        if intermediates.is_empty() {
            return intermediates;
        }
        loop {
            let known = self.widened.len();
            self.note_widened(leaf, &intermediates);
            if self.widened.len() == known {
                return std::mem::take(&mut self.widened);
            }
        }
    }

    fn note_widened(&mut self, stmt: &Stmt, intermediates: &FxHashSet<BufferId>) {
        let mut accessed = Vec::new();
        let mut note = |access: Access<'_>| accessed.push(access.buffer);
        match stmt {
            Stmt::If(node) => for_each_load(&node.condition, &mut note),
            Stmt::For(node) => for_each_load(&Expr::index(node.extent.clone()), &mut note),
            Stmt::Seq(_) | Stmt::Alloc(_) => {}
            Stmt::Store(store) if self.is_packed(store) => {}
            _ => for_each_access(stmt, &mut note),
        }
        self.widened.extend(accessed.into_iter().filter(|buffer| intermediates.contains(buffer)));
        stmt.children().into_iter().for_each(|child| self.note_widened(child, intermediates));
    }

    /// Whether the registers of a buffer that is kept there hold packed bytes.
    pub(super) fn holds_packed_bytes(&self, buffer: BufferId) -> bool {
        is_byte(self.program.buffer(buffer).dtype) && !self.widened.contains(&buffer)
    }

    /// Whether a statement is computed on packed bytes.
    pub(super) fn is_packed(&mut self, node: &Store) -> bool {
        if !self.holds_packed_bytes(node.buffer) {
            return false;
        }
        let dtype = self.program.buffer(node.buffer).dtype;
        let lanes = node.indices.iter().map(Index::lanes).max().unwrap_or(1);
        lanes >= FEWEST_LANES
            && lanes.is_multiple_of(FEWEST_LANES)
            && first_of(&node.indices, lanes).is_some()
            && !reads_elsewhere(&node.value, node)
            && !can_report(&node.value)
            && self.is_packed_value(&node.value, dtype, lanes)
    }

    fn is_packed_value(&mut self, value: &Expr, dtype: DType, lanes: u32) -> bool {
        match value.kind() {
            ExprKind::Constant(_) => true,
            ExprKind::Load(buffer, indices) => {
                self.program.buffer(*buffer).dtype == dtype
                    && !self.widened.contains(buffer)
                    && first_of(indices, lanes).is_some()
            }
            ExprKind::Binary(op, a, b) => {
                packed_operation(*op, dtype).is_some()
                    && self.is_packed_value(a, dtype, lanes)
                    && self.is_packed_value(b, dtype, lanes)
            }
            ExprKind::Select(condition, then, otherwise) => {
                is_decided_by_indices(condition)
                    && self.lanes_of(condition) == 1
                    && matches!(then.kind(), ExprKind::Load(..))
                    && otherwise.as_constant().is_some()
                    && self.is_packed_value(then, dtype, lanes)
            }
            _ => false,
        }
    }

    /// The bytes of an expression in a group of lanes.
    pub(super) fn packed_value(&mut self, value: &Expr, group: Group) -> Outcome<Reg> {
        let dtype = value.dtype();
        match value.kind() {
            ExprKind::Constant(constant) => Ok(self.repeated_byte(dtype, *constant)),
            ExprKind::Load(buffer, indices) => self.packed_load(*buffer, indices, group),
            ExprKind::Binary(op, a, b) => {
                let op = packed_operation(*op, dtype).ok_or(Refusal::Operation(op.text()))?;
                let (a, b) = (self.packed_value(a, group)?, self.packed_value(b, group)?);
                self.vector(op, Width::of_bytes(group.lanes), [a, b])
            }
            ExprKind::Select(condition, then, otherwise) => {
                let otherwise = otherwise.as_constant().ok_or(Refusal::Access)?;
                match self.selected_place(value, group)? {
                    Some(mem) => Ok(self.packed_load_at(mem, group)),
                    None => self.packed_branch(condition, then, otherwise, group),
                }
            }
            _ => Err(Refusal::Access),
        }
    }

    /// Elements where a condition holds, loaded there alone, and otherwise a constant.
    fn packed_branch(
        &mut self,
        condition: &Expr,
        elements: &Expr,
        otherwise: Constant,
        group: Group,
    ) -> Outcome<Reg> {
        let holds = self.condition(condition)?;
        let width = Width::of_bytes(group.lanes);
        let load = Op::Vector(VectorOp::Load);
        let otherwise = self.repeated_byte(elements.dtype(), otherwise);
        let chosen = self.emit(Class::Vector, load, width, [Operand::Reg(otherwise)]);
        self.open_branch();
        let known = self.knowing(&self.facts, condition, true);
        let outer = std::mem::replace(&mut self.facts, known);
        let loaded = self.packed_value(elements, group)?;
        self.facts = outer;
        self.push(Inst::new(load, width, Some(chosen), [Operand::Reg(loaded)]));
        let then = self.close_branch();
        self.push_branch(holds, then);
        Ok(chosen)
    }

    fn packed_load(&mut self, buffer: BufferId, indices: &[Index], group: Group) -> Outcome<Reg> {
        let index = single(indices).ok_or(Refusal::Access)?;
        if self.is_in_registers(buffer) {
            let first = self.element_of(&index, group)?;
            return self.read_registers(buffer, first, group);
        }
        self.require_address(buffer)?;
        self.require_inside(buffer, &index)?;
        let first = first_of(indices, index.lanes()).ok_or(Refusal::Access)?.offset(group.start.into());
        self.prefetch_ahead(buffer, &first);
        let mem = self.address(buffer, &first)?;
        Ok(self.packed_load_at(mem, group))
    }

    fn packed_load_at(&mut self, mem: Mem, group: Group) -> Reg {
        self.shared_load(load_of_bytes(group.lanes), Width::of_bytes(group.lanes), mem, group.lanes, None)
    }

    /// Writes packed bytes to a group of the elements at an index.
    pub(super) fn packed_store(
        &mut self,
        buffer: BufferId,
        index: &Index,
        group: Group,
        value: Reg,
    ) -> Outcome<()> {
        if self.stored_in_registers(buffer, index, group, value)? {
            return Ok(());
        }
        let indices = [index.clone()];
        let first = first_of(&indices, index.lanes()).ok_or(Refusal::Access)?.offset(group.start.into());
        let mem = self.address(buffer, &first)?;
        self.store_bytes(mem, group.lanes, value);
        Ok(())
    }

    /// A constant in every byte.
    fn repeated_byte(&mut self, dtype: DType, constant: Constant) -> Reg {
        let (bits, _) = bits_of(dtype, constant);
        self.same((bits & 0xFF) * 0x0101_0101, 4)
    }
}

/// Whether elements are integers of one byte.
fn is_byte(dtype: DType) -> bool {
    matches!(dtype, DType::U8 | DType::I8)
}

/// The instruction for an operation on packed bytes.
fn packed_operation(op: BinaryOp, dtype: DType) -> Option<VectorOp> {
    match (op, dtype) {
        (BinaryOp::Max, DType::U8) => Some(VectorOp::MaxU8),
        (BinaryOp::Min, DType::U8) => Some(VectorOp::MinU8),
        (BinaryOp::Max, DType::I8) => Some(VectorOp::MaxI8),
        (BinaryOp::Min, DType::I8) => Some(VectorOp::MinI8),
        _ => None,
    }
}

/// The place of lane 0 of an access to consecutive elements, one a lane.
fn first_of(indices: &[Index], lanes: u32) -> Option<Index> {
    let index = single(indices)?;
    if index.lanes() != lanes {
        return None;
    }
    let first = &index - &Index::lane(lanes);
    (first.lanes() == 1).then_some(first)
}

fn note_allocations(stmt: &Stmt, found: &mut FxHashSet<BufferId>) {
    if let Stmt::Alloc(node) = stmt {
        found.insert(node.buffer);
    }
    stmt.children().into_iter().for_each(|child| note_allocations(child, found));
}
