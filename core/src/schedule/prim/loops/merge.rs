//! `merge`

use std::sync::Arc;

use crate::analysis::block::{reads, writes};
use crate::analysis::region::{AccessKind, Span, region_inside};
use crate::analysis::scope::{blocks, loops_around_loop, ranges_of};
use crate::ids::{BufferId, LoopId, VarId};
use crate::index::{Index, Ranges};
use crate::program::Program;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::independence::check_axes_agree;
use crate::schedule::edit::{edit_loop, flatten_sequences, fresh_loop, nest, replace_loop_var};
use crate::schedule::find::{require_loop, statements};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{LoopRv, Schedule, ScheduleError, Value};
use crate::stmt::{For, LoopKind, Stmt};

/// Fuses adjacent nests into one: each of its iterations executes the bodies of all given loops. Loops around them, up to
/// the first common one, are fused as well.
///
/// An iteration must not access elements that another iteration of another nest writes.
///
/// ```text
/// before
/// kernel pair(in a: f32[4, 6], out b: f32[4, 6], out c: f32[4]) {
///   for i in 0..4 {
///     for j in 0..6 {
///       block b(vi: spatial 4 = i, vj: spatial 6 = j) {
///         b[vi, vj] = a[vi, vj] + 1.0
///       }
///     }
///   }
///   for i in 0..4 {
///     block c(vi: spatial 4 = i) {
///       c[vi] = b[vi, 5]
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// %1 = get_block "c"
/// %2, %3 = get_loops %0
/// %4 = get_loops %1
/// %5 = merge [%2, %4]
/// after
/// kernel pair(in a: f32[4, 6], out b: f32[4, 6], out c: f32[4]) {
///   for i in 0..4 {
///     for j in 0..6 {
///       block b(vi: spatial 4 = i, vj: spatial 6 = j) {
///         b[vi, vj] = a[vi, vj] + 1.0
///       }
///     }
///     block c(vi_1: spatial 4 = i) {
///       c[vi_1] = b[vi_1, 5]
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Merge {
    /// The loops, in the order in which their nests stand.
    pub loops: Vec<LoopRv>,
}

impl Primitive for Merge {
    const NAME: &'static str = "merge";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Loops(&mut self.loops))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let ids = context.values.loops(&self.loops)?;
        let nests = nests_of(context.program, &ids)?;
        check_axes_agree(&nests.iter().map(|nest| nest[0].clone()).collect::<Vec<_>>())?;
        let outer = loops_around_loop(&context.program.body, nests[0][0].id)
            .ok_or(ScheduleError::MissingLoop(nests[0][0].id))?;
        let mut ranges = ranges_of(outer);
        check_independent(context.program, &nests, &ranges)?;

        let program = &mut *context.program;
        let mut loops = Vec::new();
        for node in &nests[0] {
            let name = program.variable(node.var).name.clone();
            let merged = fresh_loop(program, &name, node.extent.clone());
            ranges.insert(merged.var, merged.extent.clone());
            loops.push(For { annotations: node.annotations.clone(), ..merged });
        }
        let output = Value::Loop(loops[loops.len() - 1].id);
        let bodies = nests.iter().map(|nest| {
            let mut body = nest[nest.len() - 1].body.clone();
            for (old, new) in nest.iter().zip(&loops) {
                replace_loop_var(&mut body, &mut ranges.clone(), old.var, &Index::var(new.var));
            }
            body
        });
        let merged = nest(loops.clone(), Stmt::seq(bodies.collect::<Vec<_>>()));
        let heads: Vec<LoopId> = nests.iter().map(|nest| nest[0].id).collect();
        edit_loop(&mut program.body, heads[0], &mut |stmt| *stmt = merged.clone());
        for head in &heads[1..] {
            edit_loop(&mut program.body, *head, &mut |stmt| *stmt = Stmt::nothing());
        }
        flatten_sequences(&mut program.body);
        Ok(Outputs::from_slice(&[output]))
    }
}

/// The nests from where they part down to the loops given, each a list of loops, outermost first.
fn nests_of(program: &Program, ids: &[LoopId]) -> Result<Vec<Vec<Arc<For>>>, ScheduleError> {
    let [first, others @ ..] = ids else { return Err(ScheduleError::BadLoopList) };
    let mut distinct = ids.to_vec();
    distinct.sort();
    distinct.dedup();
    if others.is_empty() || distinct.len() != ids.len() {
        return Err(ScheduleError::BadLoopList);
    }
    let path_to = |id: LoopId| -> Result<Vec<Arc<For>>, ScheduleError> {
        let own = require_loop(program, id)?.clone();
        let around = loops_around_loop(&program.body, id).ok_or(ScheduleError::MissingLoop(id))?;
        Ok(around.into_iter().cloned().chain([own]).collect())
    };
    let paths: Vec<Vec<Arc<For>>> = ids.iter().map(|id| path_to(*id)).collect::<Result<_, _>>()?;
    let shared = (0..paths[0].len())
        .take_while(|depth| {
            paths.iter().all(|path| path.get(*depth).is_some_and(|node| node.id == paths[0][*depth].id))
        })
        .count();
    let nests: Vec<Vec<Arc<For>>> = paths.iter().map(|path| path[shared..].to_vec()).collect();
    let not_siblings = |position: usize| ScheduleError::NotSiblings { first: *first, second: ids[position] };
    for (position, own) in nests.iter().enumerate() {
        let same_shape = own.len() == nests[0].len()
            && own.iter().zip(&nests[0]).all(|(node, other)| node.extent == other.extent);
        let is_chain =
            own.windows(2).all(|pair| matches!(&pair[0].body, Stmt::For(node) if node.id == pair[1].id));
        if own.is_empty() || !same_shape || !is_chain {
            return Err(not_siblings(position));
        }
        if let Some(node) = own.iter().find(|node| node.kind != LoopKind::Serial) {
            return Err(ScheduleError::NotSerial(node.id));
        }
    }
    let parent = match shared {
        0 => &program.body,
        _ => &paths[0][shared - 1].body,
    };
    let position_of = |node: &For| {
        statements(parent).iter().position(|stmt| matches!(stmt, Stmt::For(other) if other.id == node.id))
    };
    let start = position_of(&nests[0][0]).ok_or(not_siblings(0))?;
    for (number, own) in nests.iter().enumerate() {
        if position_of(&own[0]) != Some(start + number) {
            return Err(not_siblings(number));
        }
    }
    Ok(nests)
}

/// Checks, for each two nests, that equal elements of a buffer that one of them writes are touched in equal
/// iterations.
fn check_independent(
    program: &Program,
    nests: &[Vec<Arc<For>>],
    outer: &Ranges,
) -> Result<(), ScheduleError> {
    for (position, first) in nests.iter().enumerate() {
        for second in &nests[position + 1..] {
            for buffer in shared_buffers(first, second) {
                if !meets_in_equal_iterations(program, first, second, outer, buffer) {
                    let (first, second) = (first[0].id, second[0].id);
                    return Err(ScheduleError::CrossingDependence { first, second, buffer });
                }
            }
        }
    }
    Ok(())
}

/// The buffers that both nests touch and one of them writes.
fn shared_buffers(first: &[Arc<For>], second: &[Arc<For>]) -> Vec<BufferId> {
    let touched = |nest: &[Arc<For>]| {
        let (mut written, mut all) = (Vec::new(), Vec::new());
        for block in blocks(&nest[0].body) {
            written.extend(writes(block));
            all.extend(writes(block));
            all.extend(reads(block));
        }
        (written, all)
    };
    let ((written_first, first), (written_second, second)) = (touched(first), touched(second));
    let mut shared: Vec<BufferId> =
        written_first.into_iter().filter(|buffer| second.contains(buffer)).collect();
    shared.extend(written_second.into_iter().filter(|buffer| first.contains(buffer)));
    shared.sort();
    shared.dedup();
    shared
}

/// Whether, for each loop of more than one iteration, some dimension of the buffer is cut into parts of which
/// each iteration touches but its own, in both nests the same.
fn meets_in_equal_iterations(
    program: &Program,
    first: &[Arc<For>],
    second: &[Arc<For>],
    outer: &Ranges,
    buffer: BufferId,
) -> bool {
    let regions = [first, second].map(|nest| {
        let mut ranges = outer.clone();
        nest.iter().for_each(|node| {
            ranges.insert_loop(node);
        });
        let body = &nest[nest.len() - 1].body;
        let found = [AccessKind::Read, AccessKind::Write]
            .map(|kind| region_inside(program, body, &ranges, buffer, kind));
        found
            .into_iter()
            .flatten()
            .map(|region| {
                // In terms of the first nest's loops.
                let rename = |var: VarId| {
                    let level = nest.iter().position(|node| node.var == var)?;
                    Some(Index::var(first[level].var))
                };
                let moved =
                    |span: &Span| Span { min: span.min.substitute(&rename), extent: span.extent.clone() };
                region.iter().map(moved).collect::<Vec<Span>>()
            })
            .collect::<Vec<_>>()
    });
    let regions: Vec<Vec<Span>> = regions.into_iter().flatten().collect();
    let rank = program.buffer(buffer).shape.len();
    (0..first.len()).all(|level| {
        first[level].extent.is(1)
            || (0..rank).any(|dimension| {
                let spans: Vec<&Span> = regions.iter().map(|region| &region[dimension]).collect();
                cuts(&spans, first[level].var, &first[level + 1..])
            })
    })
}

/// Whether all spans begin at one multiple of `var`, plus the same, and are no longer than that multiple.
fn cuts(spans: &[&Span], var: VarId, deeper: &[Arc<For>]) -> bool {
    let Some(first) = spans.first() else { return false };
    let Some(step) = first.min.linear_coefficient(var).filter(|step| *step > 0) else { return false };
    let rest = &first.min - &Index::var(var).scale(step);
    let depends = rest.mentions(var) || deeper.iter().any(|node| rest.mentions(node.var));
    !depends
        && spans.iter().all(|span| {
            span.min == first.min && span.extent.as_constant().is_some_and(|extent| extent <= step)
        })
}

impl Schedule {
    /// Makes one nest of nests that follow each other, and gives the innermost merged loop. See [`Merge`].
    ///
    /// # Errors
    /// When the nests do not follow each other directly, differ in shape, or depend on each other across iterations.
    pub fn merge(&mut self, loops: &[LoopRv]) -> Result<LoopRv, ScheduleError> {
        self.push_one(Merge { loops: loops.to_vec() }).map(LoopRv)
    }
}
