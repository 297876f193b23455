//! Lets every second step of a recurrence run through its weights backwards.
//!
//! ```text
//! for t in 0..8 { for i in 0..4 { next[i] = w[i] * state[i] } … }
//! for t in 0..4 {
//!   for i in 0..4 { next[i] = w[i] * state[i] } …
//!   for i in 0..4 { next[3 - i] = w[3 - i] * state[3 - i] } …
//! }
//! ```
//!
//! Weights that are larger than a cache leave it before the next step begins with the first of them again. The ones that a step used last
//! are still there, so that a step which begins with them loads the others alone. For 4 MB of weights and a cache of 2 MB, a loop in C that alternates
//! reads 1.5 times as many bytes a second.

use std::sync::Arc;

use crate::analysis::access::{is_indivisible, reads_memory};
use crate::analysis::block::{BufferAccess, loads_in};
use crate::expr::Expr;
use crate::ids::{BufferId, VarId};
use crate::index::{Index, Ranges, Term};
use crate::lower::util::copy::copy_with;
use crate::lower::{LowerError, LowerOptions};
use crate::program::{Program, VariableKind};
use crate::stmt::{For, LoopKind, Stmt};
use crate::visit::{for_each_stmt, substitute_stmt};

/// Weights of more than this many caches gain little: one cache of them stays.
const MOST_CACHES: u64 = 8;

/// Lets every second step of a recurrence run through its weights backwards.
pub(in crate::lower) fn alternate_directions(
    program: &mut Program,
    options: &LowerOptions,
) -> Result<(), LowerError> {
    let Some(cache) = options.second_cache_bytes else { return Ok(()) };
    let body = std::mem::replace(&mut program.body, Stmt::nothing());
    program.body = alternated(program, &body, cache);
    Ok(())
}

fn alternated(program: &mut Program, stmt: &Stmt, cache: u64) -> Stmt {
    let mut stmt = stmt.clone();
    for child in stmt.children_mut() {
        *child = alternated(program, child, cache);
    }
    match &stmt {
        Stmt::For(node) => alternated_loop(program, node, cache).unwrap_or(stmt),
        _ => stmt,
    }
}

/// The loop with its steps in pairs; `None` where it stays as it is.
fn alternated_loop(program: &mut Program, steps: &For, cache: u64) -> Option<Stmt> {
    let count = steps.extent.as_constant().filter(|count| *count > 2)?;
    if steps.kind != LoopKind::Serial || is_indivisible(&steps.body) || !has_state(steps) {
        return None;
    }
    let mut backwards = steps.body.clone();
    if !reverse_loops(program, steps, &mut backwards, cache) {
        return None;
    }
    let name = program.variable(steps.var).name.clone();
    let var = program.add_variable(name, VariableKind::Loop);
    let first = Index::var(var).scale(2);
    let pair = [
        copy_with(program, &steps.body, steps.var, first.clone()),
        copy_with(program, &backwards, steps.var, first.offset(1)),
    ];
    let pairs = For {
        id: program.fresh_loop(),
        var,
        extent: Index::constant(count / 2),
        kind: LoopKind::Serial,
        annotations: steps.annotations.clone(),
        body: Stmt::seq(pair),
    };
    let last =
        (count % 2 == 1).then(|| copy_with(program, &steps.body, steps.var, Index::constant(count - 1)));
    Some(Stmt::seq(std::iter::once(Stmt::For(Arc::new(pairs))).chain(last).collect::<Vec<_>>()))
}

/// Reverses the loops of a step that read enough weights and whose iterations are independent, with such loops inside of them. The answer is
/// whether there are any.
fn reverse_loops(program: &Program, steps: &For, stmt: &mut Stmt, cache: u64) -> bool {
    let gains = |bytes: u64| (cache / 2..=cache.saturating_mul(MOST_CACHES)).contains(&bytes);
    match stmt {
        Stmt::For(node) if !node.extent.is(1) => {
            node.kind == LoopKind::Serial
                && gains(common_bytes(program, steps, node))
                && reverse(program, steps, Arc::make_mut(node))
        }
        Stmt::For(_) | Stmt::Seq(_) | Stmt::Alloc(_) => {
            let mut reverses = false;
            for child in stmt.children_mut() {
                reverses |= reverse_loops(program, steps, child, cache);
            }
            reverses
        }
        _ => false,
    }
}

/// Reverses a loop whose iterations are independent, and the loops inside of it that read weights.
fn reverse(program: &Program, steps: &For, node: &mut For) -> bool {
    let Some(count) = node.extent.as_constant().filter(|_| is_reversible(node)) else { return false };
    let (var, mirrored) = (node.var, &Index::constant(count - 1) - &Index::var(node.var));
    let mut inner = &mut node.body;
    while let Stmt::Alloc(alloc) = inner {
        inner = &mut Arc::make_mut(alloc).body;
    }
    if let Stmt::For(inner) = inner
        && inner.kind == LoopKind::Serial
        && common_bytes(program, steps, inner) > 0
    {
        reverse(program, steps, Arc::make_mut(inner));
    }
    substitute_stmt(&mut node.body, &|other| (other == var).then(|| mirrored.clone()));
    true
}

/// The bytes that all iterations of a loop read of elements that all steps have in common.
fn common_bytes(program: &Program, steps: &For, node: &For) -> u64 {
    let written = Accesses::of(&steps.body).stores;
    let inside = Accesses::of(&node.body);
    let ranges = inner_ranges(node);
    let mut sizes: Vec<(BufferId, u64)> = Vec::new();
    for (buffer, indices) in &inside.loads {
        let is_common = !written.iter().any(|(other, _)| other == buffer)
            && !indices.iter().any(|index| index.mentions(steps.var))
            && indices.iter().any(|index| index.mentions(node.var));
        if !is_common {
            continue;
        }
        let spans = indices.iter().map(|index| {
            let interval = parts(index, &ranges).0.interval(&ranges);
            interval.max.saturating_sub(interval.min).saturating_add(1).max(1) as u64
        });
        let bytes = spans.fold(program.buffer(*buffer).dtype.bytes() as u64, u64::saturating_mul);
        match sizes.iter_mut().find(|(other, _)| other == buffer) {
            Some((_, known)) => *known = bytes.max(*known),
            None => sizes.push((*buffer, bytes)),
        }
    }
    sizes.iter().fold(0u64, |sum, (_, bytes)| sum.saturating_add(*bytes))
}

/// Whether steps leave something to later ones: they load and store elements at places that do not depend on the step.
fn has_state(steps: &For) -> bool {
    let Accesses { loads, stores, own } = Accesses::of(&steps.body);
    stores.iter().any(|(buffer, indices)| {
        !own.contains(buffer)
            && !indices.iter().any(|index| index.mentions(steps.var))
            && loads.iter().any(|(other, _)| other == buffer)
    })
}

/// Whether the iterations of a loop may run in any order: of each buffer that they store to, an iteration accesses elements of its own.
fn is_reversible(node: &For) -> bool {
    let Accesses { loads, stores, own } = Accesses::of(&node.body);
    let all: Vec<&(BufferId, Vec<Index>)> = loads.iter().chain(&stores).collect();
    if all.iter().any(|(_, indices)| indices.iter().any(reads_memory)) {
        return false;
    }
    let ranges = inner_ranges(node);
    let is_apart = |buffer: BufferId| {
        let accesses: Vec<&Vec<Index>> =
            all.iter().filter(|(other, _)| *other == buffer).map(|(_, indices)| indices).collect();
        (0..accesses[0].len()).any(|dimension| {
            is_divided(node.var, accesses.iter().map(|indices| &indices[dimension]), &ranges)
        })
    };
    stores.iter().all(|(buffer, _)| own.contains(buffer) || is_apart(*buffer))
}

/// Whether each iteration over `var` has indices of its own: `step · var + outer + inner`, where all have the same `outer`, and `inner` is from 0 to less
/// than `step`.
fn is_divided<'i>(var: VarId, mut indices: impl Iterator<Item = &'i Index>, ranges: &Ranges) -> bool {
    let mut common: Option<(i64, Index)> = None;
    indices.all(|index| {
        let Some(step) = index.linear_coefficient(var).filter(|step| *step > 0) else { return false };
        let (inner, outer) = parts(&(index - &Index::var(var).scale(step)), ranges);
        let is_same = common.get_or_insert_with(|| (step, outer.clone())) == &(step, outer);
        let interval = inner.interval(ranges);
        is_same && interval.min >= 0 && interval.max < step
    })
}

/// The terms of an index that depend on loops with these ranges, with the constant, and the others.
fn parts(index: &Index, ranges: &Ranges) -> (Index, Index) {
    let is_inner = |term: &Term| {
        let mut inner = false;
        Index::from_terms([term.clone()], 0).for_each_var(&mut |var| inner |= ranges.contains(var));
        inner
    };
    let (inner, outer): (Vec<Term>, Vec<Term>) = index.terms().iter().cloned().partition(is_inner);
    (Index::from_terms(inner, index.constant_part()), Index::from_terms(outer, 0))
}

/// The ranges of the loops inside a loop, and of itself.
fn inner_ranges(node: &For) -> Ranges {
    let mut ranges = Ranges::new();
    ranges.insert_loop(node);
    for_each_stmt(&node.body, &mut |stmt| {
        if let Stmt::For(inner) = stmt {
            ranges.insert_loop(inner);
        }
    });
    ranges
}

/// The elements that a statement accesses.
#[derive(Default)]
struct Accesses {
    loads: Vec<(BufferId, Vec<Index>)>,
    stores: Vec<(BufferId, Vec<Index>)>,
    /// The buffers that live inside of the statement.
    own: Vec<BufferId>,
}

impl Accesses {
    fn of(stmt: &Stmt) -> Self {
        let mut all = Accesses::default();
        for_each_stmt(stmt, &mut |stmt| match stmt {
            Stmt::Store(node) => {
                all.stores.push((node.buffer, node.indices.to_vec()));
                all.add_loads(&node.value);
                node.indices.iter().for_each(|index| all.add_loads(&Expr::index(index.clone())));
            }
            Stmt::If(node) => all.add_loads(&node.condition),
            Stmt::Alloc(node) => all.own.push(node.buffer),
            _ => {}
        });
        all
    }

    fn add_loads(&mut self, expr: &Expr) {
        let mut found: Vec<BufferAccess<'_>> = Vec::new();
        loads_in(expr, &mut found);
        self.loads.extend(found.into_iter().map(|access| (access.buffer, access.indices.to_vec())));
    }
}
