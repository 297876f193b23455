//! Which accesses of different threads may be to the same element.
//!
//! The number of threads of a block is small and known, so that the elements of each thread are found by putting its numbers
//! into the indices. Variables that have the same value on both sides cancel out; of all others the bounds count. Where neither
//! is possible, the answer is that the accesses may meet.

use std::ops::RangeInclusive;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::boxes::{self, Region};
use super::mark_by_warp::accesses_fragment;
use super::residues::{moduli, without_multiples};
use super::values::Values;
use crate::analysis::access::reads_memory;
use crate::analysis::block::loads_in;
use crate::analysis::condition::difference;
use crate::expr::{Expr, Indices};
use crate::ids::{BufferId, VarId};
use crate::index::iter_map::{MapLevel, detect};
use crate::index::{Base, Index, NO_MODULUS, Ranges, Term};
use crate::program::{Program, Scope};
use crate::stmt::{For, LoopKind, Stmt};
use crate::thread_axis::ThreadAxis;

/// The most threads that are looked at one by one: as many as a block may have.
const MAX_THREADS: i64 = 1024;

/// The longest period of a loop's iterations that are looked at one by one.
const MAX_PERIOD: i64 = 16;

/// How many iterations lie between two; no program has this variable.
const DISTANCE: VarId = VarId(u32::MAX);

/// The numbers of a thread along all axes.
type Thread = SmallVec<[i64; 4]>;

/// The axes of the threads of a block in one nest.
#[derive(Clone, Debug, Default)]
pub(super) struct Axes(Vec<Axis>);

/// One axis: the variable that stands for a thread's number along it, and the number of threads.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) axis: ThreadAxis,
    pub(super) var: VarId,
    pub(super) extent: i64,
}

impl Axes {
    pub(super) fn new(axes: Vec<Axis>) -> Self {
        Axes(axes)
    }

    pub(super) fn find(&self, axis: ThreadAxis) -> Option<&Axis> {
        self.0.iter().find(|found| found.axis == axis)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Axis> {
        self.0.iter()
    }

    pub(super) fn holds(&self, var: VarId) -> bool {
        self.0.iter().any(|axis| axis.var == var)
    }

    /// The number of a thread along the axis of a variable.
    pub(super) fn number(&self, var: VarId, thread: &[i64]) -> Option<i64> {
        self.0.iter().position(|axis| axis.var == var).map(|position| thread[position])
    }

    /// The numbers of all threads that make an access; `None` when they are too many.
    fn threads_of(&self, access: &SharedAccess) -> Option<Vec<Thread>> {
        let extents: Vec<i64> = self
            .0
            .iter()
            .map(|axis| if access.axes.contains(&axis.axis) { axis.extent } else { 1 })
            .collect();
        let count = extents.iter().try_fold(1_i64, |count, extent| count.checked_mul(*extent))?;
        if count > MAX_THREADS {
            return None;
        }
        let mut thread = Thread::from_elem(0, extents.len());
        let mut threads = Vec::new();
        for _ in 0..count {
            if self.may_make(access, &thread) {
                threads.push(thread.clone());
            }
            for (number, extent) in thread.iter_mut().zip(&extents) {
                *number += 1;
                if *number < *extent {
                    break;
                }
                *number = 0;
            }
        }
        Some(threads)
    }
}

impl Axes {
    /// Whether the conditions around an access may hold for a thread.
    fn may_make(&self, access: &SharedAccess, thread: &[i64]) -> bool {
        let number = |var: VarId| self.number(var, thread);
        let mut differences = access.differences.iter().map(|difference| difference.evaluate(&number));
        differences.all(|difference| difference.is_none_or(|value| value < 0))
    }
}

/// An access to memory, and the threads that make it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SharedAccess {
    pub(super) buffer: BufferId,
    pub(super) is_store: bool,
    /// In terms of the variables of [`Axes`].
    indices: Indices,
    /// The place in the buffer, row by row, where several digits of one number choose the element: threads that copy a tile of any row
    /// length together differ in this number, and not always in the bounds of rows and columns.
    place: Option<Index>,
    /// As the place, in a part of the dimensions.
    number: Option<(RangeInclusive<usize>, Index)>,
    /// The loops whose variables may have other values on the other side.
    free: Ranges,
    /// The axes along which all threads make it. Along all others, the first thread does.
    axes: Vec<ThreadAxis>,
    /// Differences that are negative for all threads that make it.
    differences: Vec<Index>,
    /// Whether it stands outside of all loops over threads.
    pub(super) is_uniform: bool,
    /// The address of the statement that the lanes of a warp execute together, where the access is a part of one: any lane may
    /// make it.
    by_warp: Option<usize>,
    /// Whether it is a part of an update in one step, which no other one of its kind disturbs.
    is_atomic: bool,
    /// Whether it is the arrival of any element that the thread has stored asynchronously. The store itself is another access.
    is_arrival: bool,
}

impl SharedAccess {
    /// The arrival of elements of a buffer, for which all threads wait.
    pub(super) fn arrival(axes: &Axes, buffer: BufferId) -> Self {
        SharedAccess {
            buffer,
            is_store: true,
            indices: Indices::new(),
            place: None,
            number: None,
            free: Ranges::new(),
            axes: axes.iter().map(|axis| axis.axis).collect(),
            differences: Vec::new(),
            is_uniform: true,
            by_warp: None,
            is_atomic: false,
            is_arrival: true,
        }
    }

    /// The access, made by any lane of its warp.
    fn by_any_lane(&self) -> Self {
        let mut access = self.clone();
        if access.by_warp.is_some() && !access.axes.contains(&ThreadAxis::ThreadX) {
            access.axes.push(ThreadAxis::ThreadX);
        }
        access
    }

    /// Whether the lanes of a warp execute the statement that it is a part of together.
    pub(super) fn is_by_warp(&self) -> bool {
        self.by_warp.is_some()
    }

    /// The access in any iteration of a loop.
    pub(super) fn in_any_iteration(mut self, node: &For) -> Self {
        self.free.insert_loop(node);
        self
    }

    fn with(&self, var: VarId, value: &Index) -> Self {
        let replaced = |index: &Index| {
            index.substitute(&|other| (other == var).then(|| value.clone())).simplify(&self.free)
        };
        SharedAccess {
            indices: self.indices.iter().map(replaced).collect(),
            place: self.place.as_ref().map(replaced),
            number: self.number.as_ref().map(|(run, number)| (run.clone(), replaced(number))),
            ..self.clone()
        }
    }
}

/// Finds the accesses in a statement.
pub(super) struct Search<'a> {
    program: &'a Program,
    axes: &'a Axes,
    /// Whether to find those to the memory of one thread, instead of those to memory that threads share.
    finds_local: bool,
    values: FxHashMap<VarId, Index>,
    around: Vec<ThreadAxis>,
    free: Ranges,
    differences: Vec<Index>,
    by_warp: Option<usize>,
    /// The buffer one of whose elements the statement updates in one step.
    updated: Option<BufferId>,
    found: Vec<SharedAccess>,
}

/// The accesses in a statement to memory that threads share.
pub(super) fn shared_accesses(program: &Program, axes: &Axes, stmt: &Stmt) -> Vec<SharedAccess> {
    accesses(program, axes, stmt, false)
}

/// The accesses in a statement to the memory of one thread.
pub(super) fn local_accesses(program: &Program, axes: &Axes, stmt: &Stmt) -> Vec<SharedAccess> {
    accesses(program, axes, stmt, true)
}

fn accesses(program: &Program, axes: &Axes, stmt: &Stmt, finds_local: bool) -> Vec<SharedAccess> {
    let (values, around, free) = (FxHashMap::default(), Vec::new(), Ranges::new());
    let mut search = Search {
        program,
        axes,
        finds_local,
        values,
        around,
        free,
        differences: Vec::new(),
        by_warp: None,
        updated: None,
        found: Vec::new(),
    };
    search.stmt(stmt);
    search.found
}

impl Search<'_> {
    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::For(node) => self.for_loop(node),
            Stmt::Store(store) => {
                // Every thread stores to its own memory; other stores are made once.
                let is_local = self.program.buffer(store.buffer).scope == Scope::Local;
                let axes = if is_local { self.all_axes() } else { self.around.clone() };
                self.updated = store.is_atomic().then_some(store.buffer);
                store.indices.iter().for_each(|index| self.loads(&Expr::index(index.clone()), &axes));
                self.loads(&store.value, &axes);
                self.access(store.buffer, true, &store.indices, &axes);
                self.updated = None;
            }
            Stmt::If(node) => {
                self.loads(&node.condition, &self.all_axes());
                let known = self.differences.len();
                self.differences.extend(self.of_threads(&node.condition));
                self.stmt(&node.then);
                self.differences.truncate(known);
                node.otherwise.iter().for_each(|stmt| self.stmt(stmt));
            }
            Stmt::Intrinsic(node) => {
                if accesses_fragment(self.program, stmt) {
                    self.by_warp = Some(Arc::as_ptr(node) as usize);
                }
                self.stmt(&node.body);
                self.by_warp = None;
            }
            Stmt::Seq(_)
            | Stmt::Alloc(_)
            | Stmt::Block(_)
            | Stmt::Barrier
            | Stmt::Copies(_)
            | Stmt::Shuffle(_) => {
                stmt.each_child().for_each(|child| self.stmt(child));
            }
        }
    }

    fn for_loop(&mut self, node: &For) {
        self.loads(&Expr::index(node.extent.clone()), &self.all_axes());
        let axis = match node.kind {
            LoopKind::Bound(axis) => self.axes.find(axis),
            _ => None,
        };
        match axis {
            Some(axis) => {
                self.values.insert(node.var, Index::var(axis.var));
                self.around.push(axis.axis);
                self.stmt(&node.body);
                self.around.pop();
            }
            None => {
                self.free.insert_loop(node);
                self.stmt(&node.body);
                self.free.remove(node.var);
            }
        }
    }

    /// A condition on the number of a thread alone, as a difference that is negative where it holds.
    fn of_threads(&self, condition: &Expr) -> Option<Index> {
        let found = difference(condition)?.substitute(&|var| self.values.get(&var).cloned());
        let mut is_of_threads = true;
        found.for_each_var(&mut |var| is_of_threads &= self.axes.holds(var));
        (is_of_threads && !reads_memory(&found)).then_some(found)
    }

    fn all_axes(&self) -> Vec<ThreadAxis> {
        self.axes.iter().map(|axis| axis.axis).collect()
    }

    fn loads(&mut self, expr: &Expr, axes: &[ThreadAxis]) {
        let mut found = Vec::new();
        loads_in(expr, &mut found);
        found.into_iter().for_each(|load| self.access(load.buffer, false, load.indices, axes));
    }

    fn access(&mut self, buffer: BufferId, is_store: bool, indices: &Indices, axes: &[ThreadAxis]) {
        if self.program.buffer(buffer).scope.is_private() != self.finds_local {
            return;
        }
        let resolved = |index: &Index| index.substitute(&|var| self.values.get(&var).cloned());
        let indices: Indices = indices.iter().map(resolved).collect();
        let mut access = SharedAccess {
            buffer,
            is_store,
            indices,
            place: None,
            number: None,
            free: self.free.clone(),
            axes: axes.to_vec(),
            differences: self.differences.clone(),
            is_uniform: self.around.is_empty(),
            by_warp: self.by_warp,
            is_atomic: self.updated == Some(buffer),
            is_arrival: false,
        };
        access.place = self.place_of(buffer, &access.indices);
        access.number = self.number_of(buffer, &access.indices);
        push_new(&mut self.found, access);
    }

    /// The place of an element in its buffer; `None` where the indices themselves tell as much, and where extents are not known.
    fn place_of(&self, buffer: BufferId, indices: &Indices) -> Option<Index> {
        let has_digits = indices.len() > 1 && indices.iter().any(is_digit);
        if has_digits { self.place_in(buffer, indices, 0..=indices.len() - 1) } else { None }
    }

    /// The number whose digits are the indices of some dimensions that follow each other, and these dimensions, where they are not all: the
    /// others may reach beyond their extents under a condition, so that the place says less.
    fn number_of(&self, buffer: BufferId, indices: &Indices) -> Option<(RangeInclusive<usize>, Index)> {
        let first = indices.iter().position(is_digit)?;
        let last = indices.iter().rposition(is_digit)?;
        let is_a_part = first < last && last - first + 1 < indices.len();
        let run = is_a_part.then_some(first..=last)?;
        Some((run.clone(), self.place_in(buffer, indices, run)?))
    }

    /// The place of an element in some dimensions of its buffer, row by row.
    fn place_in(&self, buffer: BufferId, indices: &Indices, run: RangeInclusive<usize>) -> Option<Index> {
        let shape = &self.program.buffer(buffer).shape;
        let mut place = Index::constant(0);
        for (index, extent) in indices[run.clone()].iter().zip(&shape[run]) {
            place = &place.scale(extent.as_constant()?) + index;
        }
        let mut ranges = self.free.clone();
        for axis in self.axes.iter() {
            ranges.insert_constant(axis.var, axis.extent);
        }
        Some(place.simplify(&ranges))
    }
}

/// Adds an access, unless it is there: statements that are written out many times load the same elements.
pub(super) fn push_new(accesses: &mut Vec<SharedAccess>, access: SharedAccess) {
    if !accesses.contains(&access) {
        accesses.push(access);
    }
}

/// Whether an index is a sum with a digit of a number.
fn is_digit(index: &Index) -> bool {
    index.terms().iter().any(|term| !term.digit.is_whole())
}

/// Whether two different threads, of which one makes the first access and the other one the second, may access one element, and
/// one of them stores it.
pub(super) fn conflict(axes: &Axes, a: &SharedAccess, b: &SharedAccess) -> bool {
    if a.buffer != b.buffer || !(a.is_store || b.is_store) || (a.is_atomic && b.is_atomic) {
        return false;
    }
    if a.is_arrival || b.is_arrival {
        // What comes before an arrival is ordered by the store.
        let is_awaited = a.is_arrival && !b.is_store;
        return is_awaited && axes.iter().any(|axis| axis.extent > 1);
    }
    match rotation(axes, a, b) {
        Some((var, period)) => (0..period).any(|step| {
            let iteration = Index::var(var).scale(period).offset(step);
            conflict_of_places(axes, &a.with(var, &iteration), &b.with(var, &iteration))
        }),
        None => conflict_of_places(axes, a, b),
    }
}

/// A loop around both accesses whose iterations use versions of a buffer in turn, and after how many they do so again.
fn rotation(axes: &Axes, a: &SharedAccess, b: &SharedAccess) -> Option<(VarId, i64)> {
    let differing = a.indices.iter().zip(&b.indices).filter(|(a, b)| a != b);
    let mut digits = differing.flat_map(|(a, b)| [a, b]).flat_map(|index| index.terms());
    let var = digits.find_map(|term| match &term.digit.base {
        _ if term.digit.is_whole() => None,
        Base::Var(var) => Some(*var),
        Base::Sum(sum) => match sum.terms() {
            [Term { digit, .. }] => match digit.base {
                Base::Var(var) if digit.is_whole() => Some(var),
                _ => None,
            },
            _ => None,
        },
        Base::Lane(_) | Base::Value(_) => None,
    })?;
    let is_same = !axes.holds(var) && !a.free.contains(var) && !b.free.contains(var);
    let period = period(var, a.indices.iter().chain(&b.indices)).filter(|period| is_same && *period > 1)?;
    Some((var, period))
}

/// As [`conflict`], where one iteration of the loops around is known as far as versions of buffers depend on it.
fn conflict_of_places(axes: &Axes, a: &SharedAccess, b: &SharedAccess) -> bool {
    if (a.by_warp.is_some() || b.by_warp.is_some()) && a.by_warp != b.by_warp {
        // Lanes divide the elements of two statements in different ways.
        let [a, b] = [a, b].map(SharedAccess::by_any_lane);
        return meet_in_memory(axes, &a, &b);
    }
    meet_in_memory(axes, a, b) && !are_apart(axes, a, b)
}

/// Whether two sides of one access are to different elements, in whatever iteration: the map from threads and iterations to elements is
/// injective, as that of threads is that copy a tile of any row length together.
fn are_apart(axes: &Axes, a: &SharedAccess, b: &SharedAccess) -> bool {
    if a.indices != b.indices || a.axes != b.axes || a.by_warp.is_some() || b.by_warp.is_some() {
        return false;
    }
    let mut iterators: Vec<(VarId, Index)> = axes
        .iter()
        .filter(|axis| a.axes.contains(&axis.axis) && axis.extent > 1)
        .map(|axis| (axis.var, Index::constant(axis.extent)))
        .collect();
    for var in a.indices.iter().flat_map(variables_of) {
        if axes.holds(var) || iterators.iter().any(|(other, _)| *other == var) {
            continue;
        }
        // A variable of a loop around has the same value on both sides.
        match (a.free.constant_extent(var), b.free.constant_extent(var)) {
            (Some(extent), Some(other)) if extent == other => iterators.push((var, Index::constant(extent))),
            (None, None) if !a.free.contains(var) && !b.free.contains(var) => {}
            _ => return false,
        }
    }
    detect(&a.indices, &iterators, &[], MapLevel::Injective).is_ok()
}

fn variables_of(index: &Index) -> Vec<VarId> {
    let mut found = Vec::new();
    index.for_each_var(&mut |var| found.push(var));
    found
}

/// An index whose values count, or whose residues do.
type Part = (Index, Option<i64>);

/// Whether two different threads may access one element.
fn meet_in_memory(axes: &Axes, a: &SharedAccess, b: &SharedAccess) -> bool {
    let (Some(threads_a), Some(threads_b)) = (axes.threads_of(a), axes.threads_of(b)) else { return true };
    let places = [a, b].map(|access| access.place.as_ref());
    let linear = places[0].zip(places[1]);
    let numbers = a.number.as_ref().zip(b.number.as_ref()).filter(|(a, b)| a.0 == b.0);
    let numbers = numbers.map(|(a, b)| (&a.1, &b.1));
    let dimensions: Vec<(Index, Index)> = a
        .indices
        .iter()
        .zip(&b.indices)
        .chain(linear)
        .chain(numbers)
        .filter_map(|(index_a, index_b)| {
            let (same_a, own_a) = split(axes, a, index_a)?;
            let (same_b, own_b) = split(axes, b, index_b)?;
            let distance = (&same_a - &same_b).as_constant()?;
            Some((own_a.offset(distance), own_b))
        })
        .collect();
    // Each side of a dimension, and each of its residues.
    let mut parts_a: Vec<Part> = Vec::new();
    let mut parts_b: Vec<Part> = Vec::new();
    for (own_a, own_b) in dimensions {
        for modulus in moduli([(&own_a, &a.free), (&own_b, &b.free)]) {
            parts_a.push((without_multiples(&own_a, modulus), Some(modulus)));
            parts_b.push((without_multiples(&own_b, modulus), Some(modulus)));
        }
        parts_a.push((own_a, None));
        parts_b.push((own_b, None));
    }
    let boxes_of = |access: &SharedAccess, threads: &[Thread], parts: &[Part]| -> Vec<Region> {
        let parts: Vec<(Values<'_>, Option<i64>)> =
            parts.iter().map(|(index, modulus)| (Values::new(axes, index, &access.free), *modulus)).collect();
        let along = |(part, modulus): &(Values<'_>, Option<i64>), thread: &[i64]| {
            let values = part.at(thread);
            modulus.map_or(values, |modulus| values.modulo(modulus))
        };
        threads.iter().map(|thread| parts.iter().map(|part| along(part, thread)).collect()).collect()
    };
    let (boxes_a, boxes_b) = (boxes_of(a, &threads_a, &parts_a), boxes_of(b, &threads_b, &parts_b));
    boxes::meet(&boxes_a, &boxes_b, |a, b| threads_a[a] != threads_b[b])
}

/// As [`conflict`], where the second access is made in a loop's next iteration.
pub(super) fn conflict_in_next(axes: &Axes, var: VarId, a: &SharedAccess, b: &SharedAccess) -> bool {
    let period = period(var, a.indices.iter().chain(&b.indices));
    let Some(period) = period else {
        let (mut a, mut b) = (a.clone(), b.clone());
        // The iteration may be any one on both sides.
        a.free.insert(var, Index::constant(i64::MAX));
        b.free.insert(var, Index::constant(i64::MAX));
        return conflict(axes, &a, &b);
    };
    let [a, b] = by_other_lanes(var, a, b);
    (0..period).any(|step| {
        let iteration = Index::var(var).scale(period).offset(step);
        conflict(axes, &a.with(var, &iteration), &b.with(var, &iteration.offset(1)))
    })
}

/// As [`conflict`], where the second access is made in any later iteration of a loop, which has more than one.
pub(super) fn conflict_in_later(axes: &Axes, node: &For, a: &SharedAccess, b: &SharedAccess) -> bool {
    if period(node.var, a.indices.iter().chain(&b.indices)) != Some(1) {
        let [a, b] = [a, b].map(|access| access.clone().in_any_iteration(node));
        return conflict(axes, &a, &b);
    }
    let [a, mut b] = by_other_lanes(node.var, a, b);
    b.free.insert_constant(DISTANCE, node.extent.as_constant().map_or(i64::MAX, |extent| extent - 1));
    let later = &Index::var(node.var).offset(1) + &Index::var(DISTANCE);
    conflict(axes, &a, &b.with(node.var, &later))
}

/// Accesses in different iterations of a loop: where these move the elements of a warp's statement, other lanes may hold them.
fn by_other_lanes(var: VarId, a: &SharedAccess, b: &SharedAccess) -> [SharedAccess; 2] {
    let moves = |access: &SharedAccess| access.indices.iter().any(|index| index.mentions(var));
    if a.by_warp.is_some() && (moves(a) || moves(b)) {
        [a, b].map(|access| SharedAccess { by_warp: None, ..access.by_any_lane() })
    } else {
        [a.clone(), b.clone()]
    }
}

/// After how many iterations the digits of a loop's variable repeat; `None` when that is too many.
fn period<'i>(var: VarId, indices: impl Iterator<Item = &'i Index>) -> Option<i64> {
    let mut period = 1_i64;
    for index in indices {
        for term in index.terms() {
            let digit = &term.digit;
            let coefficient = match &digit.base {
                _ if digit.is_whole() => 0,
                Base::Var(own) => i64::from(*own == var),
                Base::Sum(sum) => sum.linear_coefficient(var)?,
                Base::Lane(_) | Base::Value(_) => 0,
            };
            if coefficient == 0 {
                continue;
            }
            let own = if digit.modulus == NO_MODULUS {
                digit.divisor
            } else {
                digit.divisor.checked_mul(digit.modulus)?
            };
            let own = own / crate::index::greatest_common_divisor(coefficient, own);
            let common = crate::index::greatest_common_divisor(period, own);
            period = (period / common).checked_mul(own)?;
            if period > MAX_PERIOD {
                return None;
            }
        }
    }
    Some(period)
}

/// The parts of an index that are the same on both sides, and that are not; `None` when a digit mixes them.
fn split(axes: &Axes, access: &SharedAccess, index: &Index) -> Option<(Index, Index)> {
    let (mut same, mut own): (Vec<Term>, Vec<Term>) = (Vec::new(), Vec::new());
    for term in index.terms() {
        let (mut is_same, mut is_own) = (false, false);
        Index::digit(term.digit.clone()).for_each_var(&mut |var| {
            if axes.holds(var) || access.free.contains(var) {
                is_own = true;
            } else {
                is_same = true;
            }
        });
        match (is_same, is_own, &term.digit.base) {
            // Elements that data chooses may be any.
            (_, _, Base::Value(_)) | (true, true, _) => return None,
            (true, false, _) => same.push(term.clone()),
            _ => own.push(term.clone()),
        }
    }
    Some((Index::from_terms(same, 0), Index::from_terms(own, index.constant_part())))
}
