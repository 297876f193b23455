//! What a schedule says about caches: loads that are asked for ahead, and stores that go around the caches.
//!
//! Neither changes a result. A prefetch never faults, whatever its address; a streamed store does unless the place is
//! aligned to its size, so that one is made only where the index proves it and the buffer begins at a cache line.
//! Whether it does is known when the leaf runs: a leaf with streamed stores holds its statement a second time,
//! with ordinary ones.

use std::ops::Range;

use rustc_hash::FxHashSet;
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::Index;
use tilewright_core::lower::{MAX_PREFETCH, PREFETCH};
use tilewright_core::program::{Program, Scope};
use tilewright_core::stmt::{Annotation, For, Stmt};

use super::group::{Form, Group};
use super::linear::{Product, Sum};
use super::{Binding, Builder, Outcome};
use crate::leaf::encode::VectorOp;
use crate::leaf::ir::{Base, GeneralOp, Inst, Item, Op, Operand, Order, Reg, Width};
use crate::translate::access::for_each_access;

/// A cache line, in bytes.
pub(super) const LINE: i64 = 64;

/// What is farther ahead than this, in bytes, is brought into the second-level cache only: the first one would lose it
/// before it is used.
const NEAR: i64 = 16 << 10;

/// A loop whose later iterations are asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    var: VarId,
    /// In iterations.
    distance: i64,
    /// The number of its iterations, where that is a constant.
    extent: Option<i64>,
}

/// A line that was asked for: the registers of its address, and its number from there.
pub(super) type Asked = (Base, Option<(Reg, u8)>, i32);

impl Builder<'_> {
    /// Builds the whole leaf.
    pub(super) fn leaf(&mut self, stmt: &Stmt) -> Outcome<()> {
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
            let start = self.input(super::Input::Buffer(*buffer));
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
    pub(super) fn streaming_store(&self, buffer: BufferId, first: &Index, group: Group) -> Option<VectorOp> {
        let dtype = self.program.buffer(buffer).dtype;
        let width = group.width(Form::of(dtype)).bytes();
        let fills_vector = group.lanes as usize * dtype.bytes() == width as usize;
        if !self.streamed.contains(&buffer) || !fills_vector || width != self.features.bytes() {
            return None;
        }
        let place = Sum::of(&self.resolve(first)).scaled(dtype.bytes() as i64);
        let is_multiple = |bytes: i64| bytes % i64::from(width) == 0;
        let is_aligned = is_multiple(place.constant)
            && place.products.iter().all(|product| is_multiple(product.coefficient));
        is_aligned.then_some(VectorOp::Stream)
    }

    /// Lets what a loop reads be asked for ahead while its body is built.
    pub(super) fn begin_prefetch(&mut self, node: &For) -> bool {
        let Some(Annotation::Int(distance)) = node.annotations.get(PREFETCH) else { return false };
        let extent = self.resolve(&node.extent).as_constant();
        self.ahead.push(Ahead { var: node.var, distance: (*distance).clamp(1, MAX_PREFETCH), extent });
        true
    }

    /// Asks for what an access will touch in later iterations of the loops around, where it goes on to another line.
    pub(super) fn ask_ahead(&mut self, buffer: BufferId, index: &Index) {
        for number in 0..self.ahead.len() {
            if let Some((later, bytes)) = self.later(buffer, index, self.ahead[number]) {
                self.ask_for(buffer, &later, bytes.is_none_or(|bytes| bytes.abs() <= NEAR));
            }
        }
    }

    /// Asks for the line of an element that lies inside or behind a buffer, to be brought into the first-level cache if it is near.
    pub(super) fn ask_for(&mut self, buffer: BufferId, index: &Index, near: bool) {
        // An address that cannot be formed is one that is not asked for.
        let Ok(mem) = self.address(buffer, index) else { return };
        let line = (mem.base, mem.index, mem.offset.div_euclid(LINE as i32));
        if self.scope().asked.insert(line) {
            // It changes nothing, so that loads may be moved past it.
            let mem = super::Mem { buffer: None, ..mem };
            self.push(Inst::new(Op::Prefetch { near }, Width::Xmm, None, [Operand::Mem(mem)]));
        }
    }

    /// What to ask for ahead of an access, and how many bytes from it that is (unknown with run-time strides); `None` when asking is
    /// not worth it: the access stays in its line, a loop inside goes through the line in small steps, or the next run of the
    /// loop touches the same lines again.
    fn later(&self, buffer: BufferId, index: &Index, ahead: Ahead) -> Option<(Index, Option<i64>)> {
        if self.allocated.contains_key(&buffer) {
            return None;
        }
        let size = self.program.buffer(buffer).dtype.bytes() as i64;
        let index = self.resolve(index);
        let products = Sum::of(&index).scaled(size).products;
        let Some(Binding::Loop(level)) = self.variables.get(&ahead.var) else { return None };
        let goes_on = |around: VarId| match step(&products, around) {
            Step::None | Step::Unknown => true,
            Step::Constant(bytes) => bytes.abs() >= LINE,
            Step::Uneven => false,
        };
        if !self.loops(level + 1..self.scopes.len()).all(goes_on) {
            return None;
        }
        let bytes = match step(&products, ahead.var) {
            Step::Constant(bytes) if bytes.abs() >= LINE => bytes.checked_mul(ahead.distance),
            Step::Unknown => None,
            _ => return None,
        };
        if ahead.extent.is_some_and(|extent| ahead.distance >= extent)
            && self.stays(&index, &products, *level)
        {
            return None;
        }
        let by = |other: VarId| (other == ahead.var).then(|| Index::var(ahead.var).offset(ahead.distance));
        Some((index.substitute(&by), bytes))
    }

    /// Whether no loop around that of a scope changes an address.
    fn stays(&self, index: &Index, products: &[Product], level: usize) -> bool {
        let mut is_known = true;
        index.for_each_var(&mut |var| is_known &= matches!(self.variables.get(&var), Some(Binding::Loop(_))));
        is_known && self.loops(0..level).all(|around| matches!(step(products, around), Step::None))
    }

    /// The variables of the loops whose bodies some scopes are, from the outermost.
    fn loops(&self, scopes: Range<usize>) -> impl Iterator<Item = VarId> {
        self.scopes[scopes].iter().filter_map(|scope| Some(scope.around.as_ref()?.var))
    }
}

/// What an iteration of a loop adds to an address or index.
pub(super) enum Step {
    /// Nothing.
    None,
    /// So much.
    Constant(i64),
    /// What is known only at run time, the same in each iteration.
    Unknown,
    /// Something else in each iteration.
    Uneven,
}

pub(super) fn step(products: &[Product], var: VarId) -> Step {
    let mut total = 0i64;
    let (mut moves, mut is_known) = (false, true);
    for product in products.iter().filter(|product| product.atoms.iter().any(|atom| atom.mentions(var))) {
        let Some(slope) = product.slope(var) else { return Step::Uneven };
        moves = true;
        is_known &= slope.atoms.is_empty();
        total = total.wrapping_add(slope.coefficient);
    }
    match (moves, is_known) {
        (false, _) => Step::None,
        (true, true) => Step::Constant(total),
        (true, false) => Step::Unknown,
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
