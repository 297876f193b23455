//! Stores around the caches.
//!
//! A streaming store faults unless its address is aligned to its size. One is emitted only where the index proves that, given a
//! buffer that begins at a cache line. Whether the buffer does is known when the leaf runs: a leaf with streaming stores holds
//! its statement a second time, with ordinary ones.

use rustc_hash::FxHashSet;
use tilewright_core::ids::BufferId;
use tilewright_core::index::Index;
use tilewright_core::program::{Program, Scope};
use tilewright_core::stmt::Stmt;

use super::linear::Sum;
use super::prefetch::LINE;
use crate::flat::access::for_each_access;
use crate::simd::build::value::group::{Form, Group};
use crate::simd::build::{Builder, Input, Outcome};
use crate::simd::ir::{GeneralOp, Item, Operand, Order, Reg};
use crate::simd::x86::VectorOp;

impl Builder<'_> {
    /// Builds the whole leaf.
    pub(in crate::simd::build) fn leaf(&mut self, stmt: &Stmt) -> Outcome<()> {
        let streamed = streamed(self.program, stmt);
        if streamed.is_empty() {
            return self.stmt(stmt);
        }
        let aligned = self.are_aligned(&streamed);
        self.streamed = streamed.into_iter().collect();
        let then = self.branch(stmt)?;
        self.streamed.clear();
        if !self.code.streams {
            self.scope().items.extend(then);
            return Ok(());
        }
        let otherwise = self.branch(stmt)?;
        self.push_branches(aligned, then, otherwise);
        Ok(())
    }

    fn branch(&mut self, stmt: &Stmt) -> Outcome<Vec<Item>> {
        self.new_statement();
        self.open_branch();
        self.stmt(stmt)?;
        Ok(self.close_branch())
    }

    /// All bits when every one of the buffers begins at a cache line, none otherwise.
    fn are_aligned(&mut self, buffers: &[BufferId]) -> Reg {
        let mut all = None;
        for buffer in buffers {
            let start = self.input(Input::Buffer(*buffer));
            all = Some(match all {
                None => start,
                Some(all) => self.general(GeneralOp::Or, [Operand::Reg(all), Operand::Reg(start)]),
            });
        }
        let all = all.map_or(Operand::Imm(0), Operand::Reg);
        let rest = self.general(GeneralOp::And, [all, Operand::Imm(LINE - 1)]);
        self.general(GeneralOp::Compare(Order::Equal), [Operand::Reg(rest), Operand::Imm(0)])
    }

    /// The operation for a contiguous store that fills whole vectors: around the caches, if the buffer is streamed and
    /// the place is aligned.
    pub(in crate::simd::build) fn streaming_store(
        &self,
        buffer: BufferId,
        first: &Index,
        group: Group,
    ) -> Option<VectorOp> {
        let dtype = self.program.buffer(buffer).dtype;
        let width = group.width(Form::of(dtype)).bytes();
        let fills_vector = group.lanes as usize * dtype.bytes() == width as usize;
        if !self.streamed.contains(&buffer) || !fills_vector || width != self.extension.bytes() {
            return None;
        }
        let place = Sum::of(&self.resolve(first)).scaled(dtype.bytes() as i64);
        let is_multiple = |bytes: i64| bytes % i64::from(width) == 0;
        let is_aligned = is_multiple(place.constant)
            && place.products.iter().all(|product| is_multiple(product.coefficient));
        is_aligned.then_some(VectorOp::Stream)
    }
}

/// The buffers to be written around the caches that a statement writes, and does not read.
fn streamed(program: &Program, stmt: &Stmt) -> Vec<BufferId> {
    let (mut written, mut read) = (Vec::new(), FxHashSet::default());
    for_each_access(stmt, &mut |access| {
        if !access.is_store {
            read.insert(access.buffer);
        } else if program.buffer(access.buffer).scope == Scope::Streamed && !written.contains(&access.buffer)
        {
            written.push(access.buffer);
        }
    });
    written.retain(|buffer| !read.contains(buffer));
    written
}
