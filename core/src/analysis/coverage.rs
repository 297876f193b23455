//! Whether writes fill the region that covers them.
//!
//! [`region_inside`](crate::analysis::region::region_inside) gives a box that covers the accessed elements and
//! may cover more. A block that *reads* such a box needs all of it to have been written: by every writer, without holes, and
//! under no condition but the bounds of the buffer.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::analysis::block::{shifted_iters, stores};
use crate::analysis::initial::{Roles, may_be_empty};
use crate::analysis::region::{AccessKind, Region, bound_accesses, relax};
use crate::analysis::scope::{blocks, loops_around, writers};
use crate::ids::{BufferId, VarId};
use crate::index::iter_map::{MapLevel, detect};
use crate::index::{Base, Digit, Index, NO_MODULUS, Ranges};
use crate::program::Program;
use crate::stmt::{Block, Guard, IterKind, Stmt};
use crate::visit::for_each_stmt;

/// Whether each block inside `stmt` that writes `buffer` writes every element of `region`, the loops
/// inside `stmt` running and those around it fixed; `outer` are the ranges of the latter. The answer may be
/// `false` for want of knowledge.
///
/// Writers must write all of the buffer over their domains (see
/// [`covers_buffer`](crate::analysis::block::covers_buffer)), so that the bounds of their domains are those of
/// the buffer.
pub fn fills_region(
    program: &Program,
    stmt: &Stmt,
    outer: &Ranges,
    buffer: BufferId,
    region: &Region,
) -> bool {
    blocks(stmt).into_iter().all(|block| {
        let accesses = bound_accesses(block, buffer, AccessKind::Write);
        if accesses.is_empty() {
            return true;
        }
        let mut inner = Ranges::new();
        let mut all = outer.clone();
        for node in loops_around(stmt, block.id).expect("the block was found inside") {
            inner.insert_loop(node);
            all.insert_loop(node);
        }
        let is_same = |indices| relax(program, buffer, indices, &inner, &all) == *region;
        accesses.iter().all(is_same) && is_guarded_by_bounds(block) && fills_domain(block, &inner, &all)
    })
}

/// Whether every element of a buffer is written, as far as blocks tell: an element outside of every write, such as
/// one that only a change of layout made room for, must not be read.
///
/// Blocks that each write a part, at `iterator + constant`, are taken to write all of it together when they
/// reach from the beginning of each dimension to its end.
pub fn is_wholly_written(program: &Program, buffer: BufferId) -> bool {
    let writers = writers(program, buffer);
    program.access(buffer).is_some()
        || writers.iter().any(|block| visits_domain(program, block) && fills_alone(program, block, buffer))
        || fill_together(program, &writers, buffer)
            && writers.iter().all(|block| visits_domain(program, block))
}

/// Whether the loops around a block visit all of the elements that its spatial iterators stand for. They do
/// until the block is moved to where less is needed, or into a loop that may run over nothing. The answer may be
/// `false` for want of knowledge.
pub fn visits_domain(program: &Program, block: &Block) -> bool {
    // Without a point, a recurrence stores nothing.
    if block.iters.iter().any(|iter| iter.kind == IterKind::Ordered && may_be_empty(&iter.extent)) {
        return false;
    }
    let elements = || block.iters.iter().filter(|iter| iter.kind != IterKind::Reduce);
    if elements().any(|iter| iter.extent.is(0)) {
        return true;
    }
    let Some(around) = loops_around(&program.body, block.id) else { return false };
    // A reduction without a point leaves the initial values.
    let roles = Roles::of(block);
    let (chosen, others): (Vec<_>, Vec<_>) =
        around.into_iter().partition(|node| roles.chooses_elements(node.var));
    let idle: Vec<_> = others.into_iter().filter(|node| !roles.reduces(node.var)).collect();
    if idle.iter().any(|node| may_be_empty(&node.extent)) {
        return false;
    }
    // The first iterations of loops that choose nothing are enough.
    let at_first = |var: VarId| idle.iter().any(|node| node.var == var).then(|| Index::constant(0));
    let (open, guards): (Vec<Guard>, Vec<Guard>) = (block.guards.iter())
        .filter(|guard| !roles.guards_reduction_alone(guard))
        .map(|guard| Guard { index: guard.index.substitute(&at_first), bound: guard.bound.clone() })
        .partition(|guard| !chosen.iter().any(|node| guard.index.mentions(node.var)));
    let bindings: Vec<Index> = elements().map(|iter| iter.binding.clone()).collect();
    let loops: Vec<(VarId, Index)> = chosen.into_iter().map(|node| (node.var, node.extent.clone())).collect();
    open.iter().all(|guard| !may_be_empty(&(&guard.bound - &guard.index)))
        && detect(&bindings, &loops, &guards, MapLevel::Surjective)
            .is_ok_and(|map| map.outputs.iter().zip(elements()).all(|(sum, iter)| sum.covers(&iter.extent)))
}

/// The iterators of a block and the loops inside it, with their extents.
fn iterators_of(block: &Block) -> Vec<(VarId, Index)> {
    let mut iterators: Vec<(VarId, Index)> =
        block.iters.iter().map(|iter| (iter.var, iter.extent.clone())).collect();
    for_each_stmt(&block.body, &mut |stmt| {
        if let Stmt::For(node) = stmt {
            iterators.push((node.var, node.extent.clone()));
        }
    });
    iterators
}

/// Whether one store of a block writes all of a buffer.
fn fills_alone(program: &Program, block: &Block, buffer: BufferId) -> bool {
    let shape = &program.buffer(buffer).shape;
    let iterators = iterators_of(block);
    let mut own = stores(&block.body).into_iter().filter(|store| store.buffer == buffer);
    own.any(|store| {
        let used = |(var, _): &(VarId, Index)| store.indices.iter().any(|index| index.mentions(*var));
        let iterators: Vec<_> = iterators.iter().filter(|iterator| used(iterator)).cloned().collect();
        detect(&store.indices, &iterators, &[], MapLevel::Surjective)
            .is_ok_and(|map| map.outputs.iter().zip(shape).all(|(sum, extent)| sum.covers(extent)))
    })
}

/// Whether the stores of blocks, each to a box, reach from the beginning of each dimension to its end.
fn fill_together(program: &Program, writers: &[&Arc<Block>], buffer: BufferId) -> bool {
    let shape = &program.buffer(buffer).shape;
    let (mut begun, mut ended) = (vec![false; shape.len()], vec![false; shape.len()]);
    for block in writers {
        let iterators = iterators_of(block);
        for store in stores(&block.body).into_iter().filter(|store| store.buffer == buffer) {
            let Some(shifted) = shifted_iters(&store.indices) else { return false };
            for (dimension, (var, shift)) in shifted.into_iter().enumerate() {
                let extent = match var {
                    None => Some(Index::constant(1)),
                    Some(var) => {
                        iterators.iter().find(|(own, _)| *own == var).map(|(_, extent)| extent.clone())
                    }
                };
                begun[dimension] |= shift <= 0;
                ended[dimension] |=
                    extent.is_some_and(|extent| (&extent - &shape[dimension]).offset(shift).is(0));
            }
        }
    }
    begun.into_iter().chain(ended).all(|reached| reached)
}

/// Whether every guard only keeps an iterator inside its domain.
fn is_guarded_by_bounds(block: &Block) -> bool {
    block.guards.iter().all(|guard| is_bounds_guard(block, guard))
}

/// Whether a guard only keeps an iterator inside its domain.
pub(crate) fn is_bounds_guard(block: &Block, guard: &Guard) -> bool {
    block.iters.iter().any(|iter| {
        let is_end = iter.binding == guard.index && iter.extent == guard.bound;
        is_end || (guard.bound.is(1) && (&iter.binding + &guard.index).is(0))
    })
}

/// A digit of an inner variable inside a binding.
struct Use {
    digit: Digit,
    coefficient: i64,
    binding: usize,
}

/// Whether the iterators, while the variables of `inner` run, take every combination of values between
/// their least and greatest ones.
fn fills_domain(block: &Block, inner: &Ranges, all: &Ranges) -> bool {
    let mut uses: FxHashMap<VarId, Vec<Use>> = FxHashMap::default();
    for (binding, iter) in block.iters.iter().enumerate() {
        for term in iter.binding.simplify(all).terms() {
            let digit = &term.digit;
            match &digit.base {
                Base::Var(var) if inner.contains(*var) => {
                    let found = Use { digit: digit.clone(), coefficient: term.coefficient, binding };
                    uses.entry(*var).or_default().push(found);
                }
                _ if mentions_any(digit, inner) => return false,
                _ => {}
            }
        }
    }
    // For each binding, the coefficients of its digits and how many values each digit takes.
    let mut steps: Vec<Vec<(i64, Option<i64>)>> = vec![Vec::new(); block.iters.len()];
    for (var, mut of_var) in uses {
        let extent = inner.constant_extent(var);
        of_var.sort_by_key(|found| found.digit.divisor);
        let Some(counts) = independent_counts(&of_var, extent) else { return false };
        for (found, count) in of_var.iter().zip(counts) {
            steps[found.binding].push((found.coefficient, count));
        }
    }
    steps.iter_mut().all(is_dense)
}

fn mentions_any(digit: &Digit, ranges: &Ranges) -> bool {
    let mut found = false;
    Index::digit(digit.clone()).for_each_var(&mut |var| found |= ranges.contains(var));
    found
}

/// How many values each digit of one variable takes (`None`: a symbolic number), provided that they take
/// every combination: they must be digits of one mixed-radix number that starts anew as often as the last one says.
fn independent_counts(uses: &[Use], extent: Option<i64>) -> Option<Vec<Option<i64>>> {
    if let [only] = uses
        && only.digit.is_whole()
    {
        return Some(vec![extent]);
    }
    let extent = extent?;
    let mut counts = Vec::with_capacity(uses.len());
    for (position, Use { digit, .. }) in uses.iter().enumerate() {
        let reduced = digit.modulus != NO_MODULUS && extent > digit.divisor.checked_mul(digit.modulus)?;
        let period = if reduced { digit.divisor * digit.modulus } else { extent };
        let next = uses.get(position + 1).map_or(extent, |next| next.digit.divisor);
        if period % digit.divisor != 0 || next % period != 0 {
            return None;
        }
        counts.push(Some(period / digit.divisor));
    }
    Some(counts)
}

/// Whether a sum of digits takes every value between its least and its greatest one. Digits are
/// given by their coefficient and the number of their values, `None` for a symbolic number.
fn is_dense(steps: &mut Vec<(i64, Option<i64>)>) -> bool {
    steps.retain(|(_, count)| *count != Some(1));
    steps.sort_by_key(|(coefficient, _)| *coefficient);
    let mut reach = Some(0i64);
    for (coefficient, count) in steps {
        let Some(reached) = reach else { return false };
        if *coefficient < 1 || *coefficient > reached + 1 {
            return false;
        }
        reach = count.map(|count| reached.saturating_add(coefficient.saturating_mul(count - 1)));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::region::region_inside;

    /// A block that writes `c: f32[M, columns]` in the given loops with the given bindings.
    fn writer(loops: &str, bindings: &str, columns: &str) -> Program {
        let opened: String = loops.split(", ").map(|range| format!("for {range} {{\n")).collect();
        let closed = "}".repeat(loops.split(", ").count());
        let text = format!(
            "kernel k(M, N, in a: f32[1], out c: f32[M, {columns}]) {{
{opened}block c({bindings} {{ c[x, y] = a[0] }}
{closed}
}}"
        );
        text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// Whether the first loop's body fills the region of `c`, for a block with the given loops and bindings.
    fn fills(loops: &str, bindings: &str) -> bool {
        let program = writer(loops, bindings, "N");
        let Stmt::For(node) = &program.body else { panic!("a loop") };
        let mut outer = Ranges::new();
        outer.insert_loop(node);
        let buffer = program.buffers().last().expect("c is declared last").0;
        let region = region_inside(&program, &node.body, &outer, buffer, AccessKind::Write).unwrap();
        fills_region(&program, &node.body, &outer, buffer, &region)
    }

    #[test]
    fn tiles_are_filled_up_to_the_bounds() {
        assert!(fills("i in 0..M, j in 0..N", "x: spatial M = i, y: spatial N = j)"));
        let tile = "x: spatial M = 4*i0 + i1, y: spatial N = j) where 4*i0 + i1 < M";
        assert!(fills("i0 in 0..(M+3)/4, j in 0..N, i1 in 0..4", tile));
        let split = "x: spatial M = 8*i0 + 4*i1 + i2, y: spatial N = 0) where 8*i0 + 4*i1 + i2 < M";
        assert!(fills("i0 in 0..(M+7)/8, i2 in 0..4, i1 in 0..2", split));
    }

    #[test]
    fn strides_leave_holes() {
        let binding = "x: spatial M = 4*i0 + i1, y: spatial N = j) where 4*i0 + i1 < M";
        assert!(!fills("i1 in 0..4, j in 0..N, i0 in 0..2", binding));
        assert!(!fills("i1 in 0..4, j in 0..N, i0 in 0..(M+3)/4", binding));
    }

    #[test]
    fn guards_inside_a_tile_leave_holes() {
        let inside = "x: spatial M = 2*i0 + i1, y: spatial N = 0) where i1 < 2, 2*i0 + i1 < M";
        assert!(!fills("i0 in 0..(M+1)/2, i1 in 0..5", inside));
    }

    #[test]
    fn digits_of_a_fused_loop_fill_whole_rows_only() {
        let digits = |first: &str| format!("x: spatial M = ({first}f)/4, y: spatial N = ({first}f)%4)");
        assert!(fills("i in 0..1, f in 0..12", &digits("")));
        assert!(!fills("i in 0..1, f in 0..10", &digits("")));
        assert!(!fills("i in 0..3, f in 0..6", &digits("6*i + ")));
        let diagonal = "x: spatial M = f, y: spatial N = f)";
        assert!(!fills("i in 0..1, f in 0..4", diagonal));
    }

    /// Whether the given loops visit the whole domain of a block with the given bindings.
    fn visits(loops: &str, bindings: &str) -> bool {
        let program = writer(loops, bindings, "10");
        visits_domain(&program, blocks(&program.body)[0])
    }

    #[test]
    fn tiles_and_digits_visit_all_of_a_domain() {
        assert!(visits("i in 0..M, j in 0..10", "x: spatial M = i, y: spatial 10 = j)"));
        let tile = "x: spatial M = 4*i0 + i1, y: spatial 10 = j) where 4*i0 + i1 < M";
        assert!(visits("i0 in 0..(M+3)/4, j in 0..10, i1 in 0..4", tile));
        assert!(!visits("i0 in 0..(M+3)/4, j in 0..9, i1 in 0..4", tile), "a column is missing");
        let digits = "x: spatial M = f/10, y: spatial 10 = f%10)";
        assert!(visits("f in 0..10*M", digits));
        let window = "x: spatial M = i, y: spatial 10 = j + v)";
        assert!(visits("i in 0..M, j in 0..8, v in 0..3", window), "parts may overlap");
        assert!(!visits("i in 0..M, j in 0..7, v in 0..3", window));
        assert!(
            visits("i in 0..M, j in 0..0", "x: spatial M = i, y: spatial 0 = j)"),
            "there is nothing to visit"
        );
    }

    #[test]
    fn a_loop_that_chooses_nothing_may_not_run() {
        let all = "x: spatial M = i, y: spatial 10 = j)";
        assert!(visits("i in 0..M, j in 0..10, n in 0..N + 1", all));
        assert!(!visits("i in 0..M, j in 0..10, n in 0..N", all));
        assert!(visits("i in 0..M, j in 0..10, n in 0..3", &format!("{all} where n < 1")), "once is enough");
        assert!(!visits("i in 0..M, j in 0..10, n in 0..3", &format!("{all} where n < N")));
        let sum = "x: spatial M = i, y: spatial 10 = j, z: reduce N = n)";
        assert!(visits("i in 0..M, j in 0..10, n in 0..N", sum), "its initial value is there");
    }

    /// Whether `t` of three elements is wholly written by blocks that store at the given indices.
    fn is_whole(stores: &[(&str, &str)]) -> bool {
        let nests: String = stores
            .iter()
            .map(|(extent, index)| {
                format!(
                    "for i in 0..{extent} {{ block t(v: spatial {extent} = i) {{ t[{index}] = a[0] }} }}\n"
                )
            })
            .collect();
        let text = format!(
            "kernel k(in a: f32[1], out c: f32[3]) {{ buffer t: f32[3] global\n{nests}for i in 0..3 {{ block c(v: spatial 3 = i) {{ c[v] = t[v] }} }} }}"
        );
        let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
        let buffer = program.buffers().find(|(_, buffer)| &*buffer.name == "t").expect("t is declared").0;
        is_wholly_written(&program, buffer)
    }

    #[test]
    fn a_part_alone_is_not_the_whole() {
        assert!(is_whole(&[("3", "v")]));
        assert!(is_whole(&[("1", "v"), ("2", "v + 1")]));
        assert!(!is_whole(&[("2", "v")]), "the end is not written");
        assert!(!is_whole(&[("2", "v + 1")]), "the beginning is not written");
        assert!(!is_whole(&[("2", "v*2")]), "there is a hole");
    }
}
