//! Buffers that keep a [`Window`] of their elements while a loop runs.
//!
//! ```text
//! for i in 0..N {
//!   for r in 0..3 { block b(v: spatial N + 2 = i + r) where 2*min(1, i) - r < 1 { b[v] = … } }
//!   block c(v: spatial N = i) { c[v] = b[v] + b[v + 1] + b[v + 2] }
//! }
//! ```
//!
//! The regions of `b` that the iterations of `i` read overlap. The producer leaves out what the iteration before has made
//! already, which a guard says: `from + overlap·min(1, number) - element < 1`, where `from` is the first element of an
//! iteration's region and `number` counts the iterations. Without this guard the program means the same, as long as whole
//! buffers are kept; that program is called the *complete* one here, and it is what all other analyses judge: they take a
//! region for the box that its indices run through, whatever the guards are.
//!
//! [`rolled_loop`] proves that a program does what its complete program does:
//! - The loops that `number` counts run one after the other, in their order, and are directly inside each other.
//! - In each iteration producers come first, and would, in the complete program, make all that is read.
//! - What is left out is part of the region of the iteration before, with everything else the same.
//! - All that is touched under one number fits into the window, whose beginning never moves backwards.
//!
//! It looks at the program alone, not at how it came about, so that no primitive needs to know of windows to keep them
//! right: a schedule asks again after each step.

use std::sync::Arc;

use crate::analysis::block::{covers_buffer, loads, reads, single_store, writes};
use crate::analysis::coverage::{fills_region, is_border};
use crate::analysis::region::{AccessKind, Region, Span, bound_accesses, region_inside, unite};
use crate::analysis::scope::{blocks, loops_around, ranges_of};
use crate::expr::{BinaryOp, ExprKind, Indices};
use crate::ids::{BlockId, BufferId, LoopId, VarId};
use crate::index::{Base, Index, NO_MODULUS, Ranges};
use crate::program::{Program, Window};
use crate::stmt::{Block, For, Guard, IterKind, LoopKind, Stmt};

/// Why it is not known that all that is read from a buffer is in its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RollingFault {
    /// The loop's iterations must run one after the other, in their order.
    OutOfOrder(LoopId),
    /// The block accesses the buffer outside of the loops that it rolls over, or before what it reads is made.
    Apart(BlockId),
    /// The producer does not make, in each iteration, just what earlier ones have not made.
    Producer(BlockId),
    /// The block reads what was not made, or is kept no longer.
    NotKept(BlockId),
    /// What was made for the buffer would go elsewhere: to where nothing is known of what is left out.
    Replaced,
}

/// Checks every buffer with a window.
///
/// # Errors
/// The first buffer of which it is not known that it may have its window, and why.
pub fn check(program: &Program) -> Result<(), (BufferId, RollingFault)> {
    program.windows().try_for_each(|(buffer, window)| {
        rolled_loop(program, buffer, window).map(drop).map_err(|fault| (buffer, fault))
    })
}

/// Checks every buffer with a window after a step; `before` is the program as it was.
///
/// # Errors
/// As [`check`], and when nothing accesses a buffer any more that was accessed before.
pub fn check_step(before: &Program, after: &Program) -> Result<(), (BufferId, RollingFault)> {
    check(after)?;
    let is_gone = |(buffer, _): &(BufferId, Window)| {
        Users::of(before, *buffer).is_some() && Users::of(after, *buffer).is_none()
    };
    match before.windows().find(is_gone) {
        Some((buffer, _)) => Err((buffer, RollingFault::Replaced)),
        None => Ok(()),
    }
}

/// The outermost loop whose iterations hand elements of a buffer on to later ones, so that the buffer must live outside of
/// it; `None` when nothing accesses the buffer.
///
/// # Errors
/// Why it is not known that the buffer may have the window.
pub fn rolled_loop(
    program: &Program,
    buffer: BufferId,
    window: Window,
) -> Result<Option<LoopId>, RollingFault> {
    let Some(users) = Users::of(program, buffer) else { return Ok(None) };
    let written = users.written(program)?;
    let mut producers = Vec::new();
    for writer in &users.writers {
        let producer = users.producer(program, writer, &written);
        producers.push(producer.ok_or(RollingFault::Producer(writer.id))?);
    }
    let skips = &producers[0].skips;
    let leaves_out_the_same = |producer: &&Producer<'_>| {
        let pairs = producer.skips.iter().zip(skips);
        producer.skips.len() == skips.len()
            && pairs.into_iter().all(|(a, b)| a.axis == b.axis && a.number == b.number)
    };
    if let Some(other) = producers.iter().find(|producer| !leaves_out_the_same(producer)) {
        return Err(RollingFault::Producer(other.block.id));
    }
    let (outermost, numbered) = users.outermost(skips)?;
    users.check_order()?;
    users.check_iteration(program, &producers, &written)?;
    users.check_window(program, window, outermost, numbered)?;
    Ok(Some(users.common[numbered.first].id))
}

/// Whether a block leaves out what earlier iterations of a loop have made of a buffer.
pub(crate) fn rolls_over(program: &Program, block: &Block, buffer: BufferId, var: VarId) -> bool {
    let producer = Users::of(program, buffer).and_then(|users| {
        let written = users.written(program).ok()?;
        Some(users.producer(program, block, &written)?.skips)
    });
    producer.is_some_and(|skips| skips.iter().any(|skip| skip.number.mentions(var)))
}

/// The blocks that access a buffer.
pub(crate) struct Users<'p> {
    buffer: BufferId,
    /// Those that write it, in program order.
    writers: Vec<&'p Arc<Block>>,
    /// Those that only read it, in program order.
    readers: Vec<&'p Arc<Block>>,
    /// The loops around all of them, outermost first.
    pub(crate) common: Vec<&'p Arc<For>>,
}

/// A block that writes.
struct Producer<'p> {
    block: &'p Block,
    /// What it leaves out, at least one.
    skips: Vec<Skip>,
    /// The region that it makes in an iteration of the complete program.
    makes: Region,
    /// The guards that the complete program has, besides those at the end of the region.
    guards: Vec<Guard>,
}

/// Positions among the common loops: the first and the last that are numbered.
#[derive(Clone, Copy)]
struct Numbered {
    first: usize,
    last: usize,
}

impl<'p> Users<'p> {
    /// `None` when there are none.
    pub(crate) fn of(program: &'p Program, buffer: BufferId) -> Option<Self> {
        let (mut writers, mut readers) = (Vec::new(), Vec::new());
        let mut common: Option<Vec<&Arc<For>>> = None;
        for block in blocks(&program.body) {
            let is_writer = writes(block).contains(&buffer);
            if !is_writer && !reads(block).contains(&buffer) {
                continue;
            }
            if is_writer {
                writers.push(block)
            } else {
                readers.push(block)
            }
            let around = loops_around(&program.body, block.id).unwrap_or_default();
            common = Some(match common {
                None => around,
                Some(common) => {
                    let both = common.into_iter().zip(around).take_while(|(a, b)| a.id == b.id);
                    both.map(|(node, _)| node).collect()
                }
            });
        }
        common.map(|common| Users { buffer, writers, readers, common })
    }

    /// What blocks read or write in an iteration of the common loop at `depth`.
    pub(crate) fn region(&self, program: &Program, depth: usize, kind: AccessKind) -> Option<Region> {
        let ranges = ranges_of(self.common[..=depth].iter().copied());
        region_inside(program, &self.common[depth].body, &ranges, self.buffer, kind)
    }

    /// What blocks read and write in an iteration of the common loop at `depth`.
    pub(crate) fn touched(&self, program: &Program, depth: usize) -> Option<Region> {
        let ranges = ranges_of(self.common[..=depth].iter().copied());
        let read = self.region(program, depth, AccessKind::Read)?;
        let written = self.region(program, depth, AccessKind::Write)?;
        Some(unite(program, self.buffer, read, &written, &ranges))
    }

    /// What is written in an iteration of the innermost common loop.
    fn written(&self, program: &Program) -> Result<Region, RollingFault> {
        let apart = RollingFault::Apart(self.some_block());
        let home = self.common.len().checked_sub(1).ok_or(apart)?;
        self.region(program, home, AccessKind::Write).ok_or(apart)
    }

    fn some_block(&self) -> BlockId {
        let mut all = self.readers.iter().chain(&self.writers);
        all.next().expect("some block accesses the buffer").id
    }

    /// A block that writes, if it leaves out only what the iteration before has made. `written` is all that the loops
    /// around it run through.
    fn producer(&self, program: &Program, block: &'p Block, written: &Region) -> Option<Producer<'p>> {
        self.check_writer(program, block)?;
        let ranges = ranges_of(self.common.iter().copied());
        let [element] = &bound_accesses(block, self.buffer, AccessKind::Write)[..] else { return None };
        let (mut makes, mut skips, mut guards) = (written.clone(), Vec::new(), Vec::new());
        for guard in &block.guards {
            if is_border(block, guard) {
                guards.push(guard.clone());
            } else if let Some(skip) = Skip::of(guard, element, written, &ranges) {
                skips.push(skip);
            } else if !self.narrow(&mut makes, guard, element, &ranges) {
                guards.push(guard.clone());
            }
        }
        guards.retain(|guard| is_border(block, guard) || !self.is_of_iterations(guard, &skips));
        let is_sound = skips.iter().all(|skip| self.is_made_before(skip, &makes));
        (is_sound && !skips.is_empty()).then_some(Producer { block, skips, makes, guards })
    }

    /// Whether what is left out is made in the iteration before, where the region differs along one dimension only.
    fn is_made_before(&self, skip: &Skip, makes: &Region) -> bool {
        let mentions = |index: &Index| self.mentions_numbered(index, &skip.number);
        makes.iter().enumerate().all(|(axis, span)| match axis == skip.axis {
            true => {
                let reach = span.extent.as_constant().zip(self.step_of(&span.min, &skip.number));
                reach.is_some_and(|(extent, step)| (1..=extent - step).contains(&skip.overlap))
            }
            false => !mentions(&span.min) && !mentions(&span.extent),
        })
    }

    /// A producer covers the buffer, reads no other element of it, and its reduction is inside the common loops.
    fn check_writer(&self, program: &Program, writer: &Block) -> Option<()> {
        let store = single_store(writer)?;
        let is_other = |indices: &Indices| *indices != store.indices;
        let mut own = loads(&writer.body).into_iter().filter(|load| load.buffer == self.buffer);
        let reads_others = own.any(|load| is_other(load.indices));
        let mut reductions = writer.iters.iter().filter(|iter| iter.kind == IterKind::Reduce);
        let is_shared = reductions.any(|iter| self.common.iter().any(|node| iter.binding.mentions(node.var)));
        let covers = covers_buffer(writer, store, &program.buffer(self.buffer).shape);
        (!reads_others && !is_shared && covers).then_some(())
    }

    /// Narrows a region by a guard that leaves out its end along a dimension; false when it is no such guard.
    fn narrow(&self, region: &mut Region, guard: &Guard, element: &Indices, ranges: &Ranges) -> bool {
        for (index, span) in element.iter().zip(region) {
            let from = (index - &guard.index).simplify(ranges);
            if !self.is_fixed(&from) {
                continue;
            }
            let extent = (&(&from + &guard.bound) - &span.min).simplify(ranges);
            if extent.is_provably_at_most(&span.extent, ranges) {
                span.extent = extent;
                return true;
            }
        }
        false
    }

    /// Whether an index is the same throughout an iteration of the common loops.
    fn is_fixed(&self, index: &Index) -> bool {
        let inner = self.inner_vars();
        let mut is_fixed = true;
        index.for_each_var(&mut |var| is_fixed &= !inner.contains(&var));
        is_fixed
    }

    /// The variables of the loops inside the common ones.
    fn inner_vars(&self) -> Vec<VarId> {
        let mut vars = Vec::new();
        if let Some(home) = self.common.last() {
            crate::visit::for_each_stmt(&home.body, &mut |stmt| {
                if let Stmt::For(node) = stmt {
                    vars.push(node.var);
                }
            });
        }
        vars
    }

    /// Whether a guard lets a number of iterations pass, from the first on, for producers and consumers alike.
    fn is_of_iterations(&self, guard: &Guard, skips: &[Skip]) -> bool {
        self.is_fixed(&guard.index)
            && skips.iter().all(|skip| self.step_of(&guard.index, &skip.number).is_some())
            && self.readers.iter().all(|reader| reader.guards.contains(guard))
    }

    /// By how much an index grows at most from one number to the next, where it depends on numbered loops in no other way and
    /// does not shrink.
    pub(crate) fn step_of(&self, index: &Index, number: &Index) -> Option<i64> {
        if let Some(var) = number.as_var() {
            return step_along(index, var);
        }
        let var = self.common.iter().find(|node| number.mentions(node.var))?.var;
        let step = index.linear_coefficient(var)?.checked_div(number.linear_coefficient(var)?)?;
        let rest = index.add_scaled(number, -step);
        (step >= 0 && !self.mentions_numbered(&rest, number)).then_some(step)
    }

    fn mentions_numbered(&self, index: &Index, number: &Index) -> bool {
        self.common.iter().any(|node| number.mentions(node.var) && index.mentions(node.var))
    }

    /// The loops whose iterations a number counts: it grows by one from each to the next, and starts from 0.
    fn numbered_loops(&self, number: &Index) -> Result<Numbered, RollingFault> {
        let unknown = RollingFault::Producer(self.writers[0].id);
        let first = self.common.iter().position(|node| number.mentions(node.var)).ok_or(unknown)?;
        let last = self.common.iter().rposition(|node| number.mentions(node.var)).ok_or(unknown)?;
        let (mut rest, mut unit) = (number.clone(), Some(1i64));
        for node in self.common[first..=last].iter().rev().filter(|node| !node.extent.is(1)) {
            let own = unit.filter(|unit| number.linear_coefficient(node.var) == Some(*unit));
            let own = own.ok_or(RollingFault::OutOfOrder(node.id))?;
            rest = rest.add_scaled(&Index::var(node.var), -own);
            unit = node.extent.as_constant().and_then(|extent| own.checked_mul(extent));
        }
        if rest.is(0) { Ok(Numbered { first, last }) } else { Err(unknown) }
    }

    /// Of what is left out, the one whose number counts the outermost loops, and these.
    fn outermost<'s>(&self, skips: &'s [Skip]) -> Result<(&'s Skip, Numbered), RollingFault> {
        let mut all = Vec::with_capacity(skips.len());
        for skip in skips {
            all.push((skip, self.numbered_loops(&skip.number)?));
        }
        all.sort_by_key(|(_, numbered)| numbered.first);
        if let Some(both) = all.windows(2).find(|both| both[0].1.last >= both[1].1.first) {
            return Err(RollingFault::OutOfOrder(self.common[both[1].1.first].id));
        }
        let (outermost, numbered) = all[0];
        let breaks_order = |(depth, node): (usize, &&'p Arc<For>)| match node.kind {
            _ if node.extent.is(1) => false,
            LoopKind::Serial | LoopKind::Unrolled => false,
            LoopKind::Vectorized => true,
            LoopKind::Parallel | LoopKind::Bound(_) => depth >= numbered.first,
        };
        match self.common.iter().enumerate().find(|at| breaks_order(*at)) {
            Some((_, node)) => Err(RollingFault::OutOfOrder(node.id)),
            None => Ok((outermost, numbered)),
        }
    }

    /// Producers come before consumers.
    fn check_order(&self) -> Result<(), RollingFault> {
        let Some(home) = self.common.last() else { return Err(RollingFault::Apart(self.some_block())) };
        let stmts = match &home.body {
            Stmt::Seq(stmts) => &stmts[..],
            single => std::slice::from_ref(single),
        };
        let holds = |stmt: &Stmt, id: BlockId| blocks(stmt).iter().any(|block| block.id == id);
        let position = |block: &&Arc<Block>| stmts.iter().position(|stmt| holds(stmt, block.id));
        let last = self.writers.iter().filter_map(position).max();
        match self.readers.iter().find(|reader| position(reader) <= last) {
            Some(reader) => Err(RollingFault::Apart(reader.id)),
            None => Ok(()),
        }
    }

    /// Checks that an iteration of the complete program makes what it reads.
    fn check_iteration(
        &self,
        program: &Program,
        producers: &[Producer<'_>],
        written: &Region,
    ) -> Result<(), RollingFault> {
        let home = self.common.len() - 1;
        let ranges = ranges_of(self.common.iter().copied());
        let mut complete = self.common[home].body.clone();
        for producer in producers {
            set_guards(&mut complete, producer.block.id, &producer.guards);
        }
        if !fills_region(program, &complete, &ranges, self.buffer, written) {
            return Err(RollingFault::Producer(self.writers[0].id));
        }
        let not_kept = RollingFault::NotKept(self.some_block());
        let read = self.region(program, home, AccessKind::Read).ok_or(not_kept)?;
        let shape = &program.buffer(self.buffer).shape;
        let makes_all = |producer: &Producer<'_>| {
            read.iter().zip(&producer.makes).zip(shape).all(|((read, made), extent)| {
                let whole = Span { min: Index::constant(0), extent: extent.clone() };
                contains(made, read, &ranges) || contains(made, &whole, &ranges)
            })
        };
        if producers.iter().all(makes_all) { Ok(()) } else { Err(not_kept) }
    }

    /// Checks that all that is touched under one number of the outermost loops fits into the window.
    fn check_window(
        &self,
        program: &Program,
        window: Window,
        outermost: &Skip,
        numbered: Numbered,
    ) -> Result<(), RollingFault> {
        let not_kept = RollingFault::NotKept(self.some_block());
        let touched = self.touched(program, numbered.last).ok_or(not_kept)?;
        let span = touched.get(window.axis).ok_or(not_kept)?;
        let fits = span.extent.as_constant().is_some_and(|extent| extent <= window.length);
        let moves_on = self.step_of(&span.min, &outermost.number).is_some();
        if fits && moves_on && window.axis == outermost.axis { Ok(()) } else { Err(not_kept) }
    }
}

/// That elements along a dimension are left out, in all iterations but the one numbered 0, unless they are `overlap` or more
/// behind the beginning of the region.
struct Skip {
    axis: usize,
    number: Index,
    overlap: i64,
}

impl Skip {
    /// What a guard on an element leaves out of a region.
    fn of(guard: &Guard, element: &Indices, region: &Region, ranges: &Ranges) -> Option<Self> {
        let mut along = element.iter().zip(region).enumerate();
        along.find_map(|(axis, (element, span))| Skip::along(axis, guard, (element, span), ranges))
    }

    fn along(axis: usize, guard: &Guard, (element, span): (&Index, &Span), ranges: &Ranges) -> Option<Self> {
        let limit = &(&(&guard.index - &guard.bound) + element).offset(1) - &span.min;
        let limit = limit.simplify(ranges);
        let [term] = limit.terms() else { return None };
        if limit.constant_part() != 0 {
            return None;
        }
        let number = match &term.digit.base {
            Base::Value(value) => match value.kind() {
                ExprKind::Binary(BinaryOp::Min, a, b) => {
                    let (a, b) = (Index::value(a.clone()), Index::value(b.clone()));
                    if a.is(1) { b } else { a }
                }
                _ => return None,
            },
            // Of two iterations, the number is 0 or 1 itself.
            _ => Index::digit(term.digit.clone()),
        };
        let skip = Skip { axis, number, overlap: term.coefficient };
        (&limit_of(&skip.number, skip.overlap) - &limit).simplify(ranges).is(0).then_some(skip)
    }
}

/// By how much an index grows at most when a variable grows by one, if it never shrinks: a quotient grows by the quotient of
/// what its dividend grows by, rounded up.
fn step_along(index: &Index, var: VarId) -> Option<i64> {
    index.terms().iter().try_fold(0i64, |step, term| {
        let dividend = term.digit.base.to_index();
        if !dividend.mentions(var) {
            return Some(step);
        }
        let grows = dividend.linear_coefficient(var).filter(|by| *by >= 0 && term.coefficient > 0)?;
        let is_quotient = term.digit.modulus == NO_MODULUS;
        let quotient = is_quotient
            .then(|| grows.div_euclid(term.digit.divisor) + i64::from(grows % term.digit.divisor > 0))?;
        step.checked_add(quotient.checked_mul(term.coefficient)?)
    })
}

/// The distance from the beginning of a region of the first element that is not left out.
fn limit_of(number: &Index, overlap: i64) -> Index {
    Index::constant(1).minimum(number).scale(overlap)
}

/// The guard that leaves out the first `overlap` elements of a span, along which `element` runs, in all iterations of a loop
/// but the first.
pub(crate) fn skip_guard(
    var: VarId,
    overlap: i64,
    (element, span): (&Index, &Span),
    ranges: &Ranges,
) -> Guard {
    let limit = limit_of(&Index::var(var), overlap);
    let index = &(&span.min + &limit) - element;
    Guard { index: index.simplify(ranges), bound: Index::constant(1) }
}

fn contains(outer: &Span, inner: &Span, ranges: &Ranges) -> bool {
    let (outer_end, inner_end) = (&outer.min + &outer.extent, &inner.min + &inner.extent);
    outer.min.is_provably_at_most(&inner.min, ranges) && inner_end.is_provably_at_most(&outer_end, ranges)
}

fn set_guards(stmt: &mut Stmt, id: BlockId, guards: &[Guard]) {
    match stmt {
        Stmt::Block(node) if node.id == id => Arc::make_mut(node).guards = guards.to_vec(),
        _ => stmt.children_mut().into_iter().for_each(|child| set_guards(child, id, guards)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether `b`, whose rows from `element` on an iteration of the innermost of some loops makes and reads, lives around the
    /// outermost of them.
    fn judge(
        loops: &str,
        element: &str,
        guards: &str,
        read: &str,
        length: i64,
    ) -> Result<bool, RollingFault> {
        let opened: String = loops.split(", ").map(|range| format!("for {range} {{\n")).collect();
        let closed = "}".repeat(loops.split(", ").count());
        let text = format!(
            "kernel k(N, in a: f32[99, 7], out c: f32[99, 7]) {{
  buffer b: f32[99, 7] global rolls 0 {length}
  {opened}
    for r in 0..3 {{ for w in 0..7 {{
      block b(x: spatial 99 = {element}, y: spatial 7 = w) where {guards} {{ b[x, y] = a[x, y] }}
    }} }}
    for w in 0..7 {{ block c(x: spatial 99 = 0, y: spatial 7 = w) {{ c[x, y] = {read} }} }}
  {closed}
}}"
        )
        .replace("= 0, y", &format!("= {}, y", element.replace("+ r", "")));
        let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
        let (buffer, window) = program.windows().next().expect("b rolls");
        rolled_loop(&program, buffer, window).map(|target| {
            let Stmt::For(outermost) = &program.body else { panic!("a loop") };
            target == Some(outermost.id)
        })
    }

    fn is_fault(found: Result<bool, RollingFault>, expected: fn(&RollingFault) -> bool) -> bool {
        found.as_ref().is_err_and(expected)
    }

    const ROWS: &str = "b[x, y] + b[x + 2, y]";

    #[test]
    fn what_the_iteration_before_has_made_may_be_left_out() {
        assert_eq!(judge("i in 0..N", "i + r", "i + r < 99, min(1, i)*2 - r < 1", ROWS, 3), Ok(true));
        assert_eq!(judge("i in 0..9", "2*i + r", "min(1, i) - r < 1", ROWS, 3), Ok(true));
        let split = "min(1, 4*i + k)*2 - r < 1";
        assert_eq!(judge("i in 0..9, k in 0..4", "4*i + k + r", split, ROWS, 3), Ok(true));
        let strips = "min(1, k)*2 - r < 1";
        assert_eq!(judge("i in 0..9, k in 0..4", "4*i + k + r", strips, ROWS, 5), Ok(false));
        assert_eq!(judge("i in 0..2", "i + r", "i*2 - r < 1", ROWS, 3), Ok(true));
        assert_eq!(judge("i in 0..9", "3*i/2 + r", "min(1, i) - r < 1", ROWS, 3), Ok(true));
    }

    #[test]
    fn nothing_else_may_be_left_out() {
        let producer = |fault: &RollingFault| matches!(fault, RollingFault::Producer(_));
        for guards in [
            "i + r < 99",
            "min(1, i)*3 - r < 1",
            "min(2, i) - r < 1",
            "min(1, i + 1)*2 - r < 1",
            "min(1, i)*2 - r < 0",
            "min(1, i)*2 - r < 1, i + r < 50",
        ] {
            assert!(is_fault(judge("i in 0..90", "i + r", guards, ROWS, 3), producer), "{guards}");
        }
        assert!(is_fault(judge("i in 0..9", "2*i + r", "min(1, i)*2 - r < 1", ROWS, 3), producer));
        assert!(is_fault(judge("i in 0..9", "3*i/2 + r", "min(1, i)*2 - r < 1", ROWS, 3), producer));
        assert!(is_fault(
            judge("i in 0..9, k in 0..4", "4*i + k + r", "min(1, i)*2 - r < 1", ROWS, 6),
            producer
        ));
    }

    #[test]
    fn what_is_read_was_made_and_is_kept() {
        let not_kept = |fault: &RollingFault| matches!(fault, RollingFault::NotKept(_));
        let guard = "min(1, i)*2 - r < 1";
        assert!(is_fault(judge("i in 0..90", "i + r", guard, ROWS, 2), not_kept));
        assert!(is_fault(judge("i in 0..90", "i + r", guard, "b[x + 3, y]", 4), not_kept));
        let reversed = judge("i in 0..9, k in 0..4", "k*9 + i + r", "min(1, k*9 + i)*2 - r < 1", ROWS, 3);
        assert!(is_fault(reversed, |fault| matches!(fault, RollingFault::OutOfOrder(_))));
    }
}
