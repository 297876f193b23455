//! Statements.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, Expr, ExprKind};
use tilewright_core::index::{Facts, Index};
use tilewright_core::stmt::{Alloc, For, If, LoopKind, Stmt, Store};

use crate::flat::access::{for_each_access, for_each_load};
use crate::simd::build::stmt::registers::single;
use crate::simd::build::value::expr::compares_indices;
use crate::simd::build::value::group::{Form, Group, Rest};
use crate::simd::build::{Binding, Builder, MOST_INSTRUCTIONS, Outcome};
use crate::simd::ir::{Item, Reg};
use crate::simd::{Refusal, VectorExtension};

pub(super) type Groups = SmallVec<[Group; 8]>;

impl Builder<'_> {
    /// Builds a statement.
    pub(in crate::simd::build) fn stmt(&mut self, stmt: &Stmt) -> Outcome<()> {
        if self.instructions > MOST_INSTRUCTIONS {
            return Err(Refusal::Size);
        }
        match stmt {
            Stmt::Seq(stmts) => self.sequence(stmts),
            Stmt::For(node) => {
                if self.unroll(node)? || self.repeat_with_sums(node, &[])? || self.repeat_transposed(node)? {
                    return Ok(());
                }
                self.repeat(node)
            }
            Stmt::Store(node) => self.store_stmt(node),
            Stmt::If(node) => self.conditional(node),
            Stmt::Alloc(node) => self.alloc(node),
            Stmt::Block(_) | Stmt::Barrier | Stmt::Copies(_) | Stmt::Shuffle(_) => Err(Refusal::Statement),
            Stmt::Intrinsic(_) => self.intrinsic(stmt),
        }
    }

    fn sequence(&mut self, stmts: &[Stmt]) -> Outcome<()> {
        let mut rest = stmts;
        while let Some((first, others)) = rest.split_first() {
            let built = self.cleared_sums(rest)?;
            if built > 0 {
                rest = &rest[built..];
                continue;
            }
            let built = self.products_with_sums(rest)?;
            if built > 0 {
                rest = &rest[built..];
                continue;
            }
            let built = self.run_transposed(rest)?;
            if built > 0 {
                rest = &rest[built..];
                continue;
            }
            let rows = if self.limits.by_group { self.rows(rest) } else { Vec::new() };
            if rows.len() > 1 {
                rest = &rest[rows.len()..];
                self.rows_by_group(rows)?;
            } else {
                self.stmt(first)?;
                rest = others;
            }
        }
        Ok(())
    }

    /// Builds a loop.
    pub(in crate::simd::build) fn repeat(&mut self, node: &For) -> Outcome<()> {
        if !matches!(node.kind, LoopKind::Serial | LoopKind::Parallel) {
            return Err(Refusal::Statement);
        }
        let extent = self.resolve(&node.extent);
        match extent.as_constant() {
            Some(..=0) => return Ok(()),
            Some(1) => {
                self.variables.insert(node.var, Binding::Constant(0));
                let result = self.stmt(&node.body);
                self.variables.remove(&node.var);
                return result;
            }
            _ => {}
        }
        let end = self.index_value(&extent)?;
        let runs = extent.offset(-1).is_provably_nonnegative(&self.ranges);
        for_each_access(&node.body, &mut |access| {
            if access.is_store {
                self.forget_loads(access.buffer);
            }
        });
        self.open_loop(node, runs);
        self.variables.insert(node.var, Binding::Loop(self.scopes.len() - 1));
        self.ranges.insert(node.var, extent);
        self.prefetch_beside(node);
        let asks = self.open_prefetch(node);
        let result = self.stmt(&node.body);
        if asks {
            self.prefetched_loops.pop();
        }
        self.variables.remove(&node.var);
        self.ranges.remove(node.var);
        result?;
        self.close_loop(end);
        Ok(())
    }

    fn alloc(&mut self, node: &Alloc) -> Outcome<()> {
        if let Some(tile) = self.register_buffer_of(node) {
            self.register_buffers.insert(node.buffer, tile);
        }
        self.allocated.insert(node.buffer);
        let result = self.stmt(&node.body);
        self.allocated.remove(&node.buffer);
        self.register_buffers.remove(&node.buffer);
        self.forget_loads(node.buffer);
        result
    }

    /// The groups of a statement that stores.
    pub(in crate::simd::build) fn groups_of_store(&mut self, node: &Store) -> Groups {
        let lanes = node.indices.iter().map(Index::lanes).max().unwrap_or(1);
        if lanes == 1 {
            return Groups::from_iter([Group::SCALAR]);
        }
        if self.is_packed(node) {
            return Group::of(lanes, self.extension.bytes(), Rest::Pieces);
        }
        let dtype = self.program.buffer(node.buffer).dtype;
        let (mut bytes, mut has_narrow) = (Form::of(dtype).bytes(), dtype.bytes() < 4);
        let mut seen = FxHashSet::default();
        self.survey(&node.value, &mut seen, &mut |dtype| {
            bytes = bytes.max(Form::of(dtype).bytes());
            has_narrow |= dtype.bytes() < 4 && dtype != DType::Bool;
        });
        for_each_load(&node.value, &mut |access| {
            has_narrow |= self.program.buffer(access.buffer).dtype.bytes() < 4;
        });
        let rest = match self.extension {
            VectorExtension::Avx2 if has_narrow => Rest::Narrow,
            // Groups of statements on the same intermediate are alike, or it would be in no registers.
            VectorExtension::Avx2 if self.has_narrow_elements => Rest::Pieces,
            _ => Rest::Masked,
        };
        Group::of(lanes, self.extension.bytes() / bytes, rest)
    }

    /// Calls `visit` with the type of every part of an expression that has several lanes, except for comparisons of
    /// indices that need no lanes of their own.
    fn survey(&mut self, expr: &Expr, seen: &mut FxHashSet<usize>, visit: &mut impl FnMut(DType)) {
        if !seen.insert(expr.address()) || self.as_bounds(expr).is_some() {
            return;
        }
        // A value that is the same in all lanes is computed once and broadcast, except for comparisons.
        if self.lanes_of(expr) == 1 && (expr.dtype() != DType::Bool || compares_indices(expr)) {
            return;
        }
        visit(expr.dtype());
        if is_integer_division(expr) {
            // Through floats of 64 bits.
            visit(DType::F64);
        }
        for operand in expr.operands() {
            if expr.dtype() == DType::Bool {
                visit(operand.dtype());
            }
            self.survey(operand, seen, visit);
        }
    }

    fn store_stmt(&mut self, node: &Store) -> Outcome<()> {
        let index = single(&node.indices).ok_or(Refusal::Statement)?;
        let count = index.lanes();
        if self.lanes_of(&node.value) > count {
            return Err(Refusal::Lanes);
        }
        self.new_statement();
        if self.copy_stmt(node)? {
            return Ok(());
        }
        self.statement = Some(node.value.clone());
        let groups = self.groups_of_store(node);
        let dtype = self.program.buffer(node.buffer).dtype;
        if groups.len() > 1 && reads_elsewhere(&node.value, node) {
            let mut values: SmallVec<[Reg; 8]> = SmallVec::new();
            for group in &groups {
                let value = self.value(&node.value, *group)?;
                values.push(self.copy(value, Form::of(dtype), *group)?);
            }
            self.new_statement();
            for (group, value) in groups.into_iter().zip(values) {
                self.store(node.buffer, &index, group, value)?;
            }
            return Ok(());
        }
        let mut begins: SmallVec<[usize; 8]> = SmallVec::new();
        for group in groups {
            begins.push(self.scope().items.len());
            self.store_group(node, group)?;
        }
        self.interleave(&begins);
        Ok(())
    }

    /// Computes and stores a group of lanes.
    pub(super) fn store_group(&mut self, node: &Store, group: Group) -> Outcome<()> {
        let index = single(&node.indices).ok_or(Refusal::Statement)?;
        if self.is_packed(node) {
            let value = self.packed_value(&node.value, group)?;
            return self.packed_store(node.buffer, &index, group, value);
        }
        let value = self.value(&node.value, group)?;
        self.store(node.buffer, &index, group, value)
    }

    fn conditional(&mut self, node: &If) -> Outcome<()> {
        self.new_statement();
        let condition = self.condition(&node.condition)?;
        self.new_statement();
        let then = self.branch_of(&node.condition, true, Some(&node.then))?;
        let otherwise = self.branch_of(&node.condition, false, node.otherwise.as_ref())?;
        self.push_branches(condition, then, otherwise);
        Ok(())
    }

    /// The code of a branch, which is taken where a condition holds, or fails.
    fn branch_of(&mut self, condition: &Expr, holds: bool, stmt: Option<&Stmt>) -> Outcome<Vec<Item>> {
        self.open_branch();
        let known = self.knowing(&self.facts, condition, holds);
        let outer = std::mem::replace(&mut self.facts, known);
        stmt.map_or(Ok(()), |stmt| self.stmt(stmt))?;
        self.facts = outer;
        Ok(self.close_branch())
    }

    /// Facts and what a condition says where it holds, or where it fails.
    pub(in crate::simd::build) fn knowing(&self, facts: &Facts, condition: &Expr, holds: bool) -> Facts {
        facts.in_branch(condition, holds, &|var| self.known_constant(var), &self.ranges)
    }
}

/// Whether an expression is made of indices alone.
pub(in crate::simd::build) fn is_index(expr: &Expr) -> bool {
    expr.dtype() == DType::I64
        && match expr.kind() {
            ExprKind::Constant(_) | ExprKind::Index(_) => true,
            ExprKind::Binary(op, a, b) => {
                matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max)
                    && is_index(a)
                    && is_index(b)
            }
            _ => false,
        }
}

/// Whether this is a quotient or a remainder of integers.
fn is_integer_division(expr: &Expr) -> bool {
    matches!(expr.kind(), ExprKind::Binary(BinaryOp::Div | BinaryOp::Rem, ..)) && expr.dtype().is_int()
}

/// Whether a store's value reads the buffer at another place than the one that it is stored to.
pub(in crate::simd::build) fn reads_elsewhere(value: &Expr, store: &Store) -> bool {
    let mut elsewhere = false;
    for_each_load(value, &mut |access| {
        elsewhere |= access.buffer == store.buffer && access.indices != &store.indices[..];
    });
    elsewhere
}
