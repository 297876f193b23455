//! Prefetches of data that neighbouring loops will read.
//!
//! While one loop runs, it prefetches the data that the loops beside it read in the next iteration of the loop around them: the next
//! row of a matrix, while results of this row are written. Contiguous reads of tensors are found in the body of the loop around, and
//! the iterations of the inner loop share their lines. Other accesses are left to the machine's prefetchers.

use tilewright_core::annotation::PREFETCH_SIBLINGS;
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::Index;
use tilewright_core::stmt::{For, Stmt};

use crate::flat::access::{Access, for_each_load};
use crate::flat::lanes::at_lane;
use crate::simd::build::Builder;
use crate::simd::build::memory::linear::Sum;
use crate::simd::build::memory::prefetch::{LINE, Step, step};
use crate::simd::build::stmt::registers::single;

/// The most bytes that are prefetched into the first-level cache: it would lose the first bytes of a longer run before they are
/// read. With 32 KiB, rows of a softmax came 1.1 times as fast as from the second level.
const NEAR: i64 = 32 << 10;

/// The most lines that one iteration prefetches.
const MOST_LINES: i64 = 16;

/// Contiguous elements of a buffer.
struct Run {
    buffer: BufferId,
    /// The place of the first, without its constant part.
    start: Index,
    /// The constant parts of the first place and of that behind the last.
    from: i64,
    to: i64,
    /// How many elements are read, counted as often as they are.
    reads: i64,
}

impl Builder<'_> {
    /// Prefetches, in each iteration of a loop whose scope has just been opened, a share of the data that the loops beside it will
    /// read.
    pub(in crate::simd::build) fn prefetch_beside(&mut self, node: &For) {
        if PREFETCH_SIBLINGS.get(&node.annotations) != Some(true) {
            return;
        }
        let Some(iterations) = self.resolve(&node.extent).as_constant() else { return };
        let Some((var, body)) = self.loop_around() else { return };
        let mut survey = Survey { builder: self, around: var, loops: Vec::new(), runs: Vec::new() };
        survey.stmt(&body);
        for run in survey.runs {
            self.prefetch_share(&run, node.var, iterations);
        }
    }

    /// The variable and the body of the loop around the innermost one. Around the leaf, that is the part of the body
    /// which the leaf is.
    fn loop_around(&self) -> Option<(VarId, Stmt)> {
        let (_, outer) = self.scopes.split_last()?;
        match outer.iter().rev().find_map(|scope| scope.around.as_ref()) {
            Some(around) => Some((around.var, around.body.clone())),
            None => Some((self.around.innermost?, self.whole.clone())),
        }
    }

    fn prefetch_share(&mut self, run: &Run, var: VarId, iterations: i64) {
        let size = self.program.buffer(run.buffer).dtype.bytes() as i64;
        let elements = run.to.saturating_sub(run.from);
        let bytes = elements.saturating_mul(size);
        if bytes == 0 || run.reads < elements {
            return;
        }
        let (lines, per_line) = (((bytes - 1) / iterations) / LINE + 1, LINE / size);
        if lines > MOST_LINES {
            return;
        }
        let first = &run.start.offset(run.from) + &Index::var(var).scale(lines * per_line);
        for line in 0..lines {
            self.prefetch_line(run.buffer, &first.offset(line * per_line), bytes <= NEAR);
        }
    }
}

/// Looks for runs in the body of a loop.
struct Survey<'s, 'a> {
    builder: &'s Builder<'a>,
    /// The variable of the loop.
    around: VarId,
    /// The loops inside around a statement, and their numbers of iterations.
    loops: Vec<(VarId, Option<i64>)>,
    runs: Vec<Run>,
}

impl Survey<'_, '_> {
    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Seq(stmts) => stmts.iter().for_each(|stmt| self.stmt(stmt)),
            Stmt::For(node) => {
                self.loops.push((node.var, self.builder.resolve(&node.extent).as_constant()));
                self.stmt(&node.body);
                self.loops.pop();
            }
            Stmt::If(node) => {
                self.stmt(&node.then);
                node.otherwise.iter().for_each(|otherwise| self.stmt(otherwise));
            }
            Stmt::Alloc(node) => self.stmt(&node.body),
            Stmt::Intrinsic(node) => self.stmt(&node.body),
            Stmt::Store(store) => for_each_load(&store.value, &mut |access| {
                if let Some(run) = self.run(&access) {
                    self.add(run);
                }
            }),
            Stmt::Block(_) | Stmt::Barrier | Stmt::Copies(_) | Stmt::Shuffle(_) => {}
        }
    }

    /// The elements that a load of a tensor touches in the next iteration, if they are contiguous.
    fn run(&self, access: &Access<'_>) -> Option<Run> {
        let (builder, buffer) = (self.builder, access.buffer);
        builder.program.access(buffer)?;
        let index = builder.resolve(&single(access.indices)?);
        let lanes = i64::from(index.lanes());
        let first = at_lane(&index, 0);
        let last = at_lane(&index, index.lanes() - 1);
        if (&last - &first).as_constant() != Some(lanes - 1) {
            return None;
        }
        let products = Sum::of(&first).products;
        if matches!(step(&products, self.around), Step::None | Step::Uneven) {
            return None;
        }
        let (mut elements, mut reads) = (lanes, lanes);
        for (var, extent) in &self.loops {
            match (step(&products, *var), extent) {
                (Step::None, _) => {}
                (Step::Constant(by), Some(extent)) if by > 0 => {
                    elements = by.checked_mul((extent - 1).max(0))?.checked_add(elements)?;
                    reads = reads.checked_mul(*extent)?;
                }
                _ => return None,
            }
        }
        let is_inside = |var: VarId| self.loops.iter().any(|(inside, _)| *inside == var);
        let start = first.substitute(&|var| match var {
            _ if var == self.around => Some(Index::var(var).offset(1)),
            _ => is_inside(var).then(|| Index::constant(0)),
        });
        let from = start.constant_part();
        Some(Run { buffer, start: start.offset(-from), from, to: from.checked_add(elements)?, reads })
    }

    fn add(&mut self, run: Run) {
        match self.runs.iter_mut().find(|own| own.buffer == run.buffer && own.start == run.start) {
            Some(own) => {
                (own.from, own.to) = (own.from.min(run.from), own.to.max(run.to));
                own.reads = own.reads.saturating_add(run.reads);
            }
            None => self.runs.push(run),
        }
    }
}
