//! Statements that depend on constant parameters alone. Their results can be computed before calls and kept.

use rustc_hash::FxHashSet;

use crate::analysis::block::{loads, stores};
use crate::analysis::scope::blocks;
use crate::ids::{BlockId, BufferId};
use crate::program::{Access, Program, VariableKind};
use crate::stmt::Stmt;
use crate::visit::{for_each_root_expr, for_each_stmt, for_each_var};

/// One statement at the root of a program.
struct Stage {
    reads: FxHashSet<BufferId>,
    writes: FxHashSet<BufferId>,
    /// Whether it may run before calls, as far as is known.
    is_candidate: bool,
}

/// The statements at the root of a program: a single one stands for itself.
pub(crate) fn root_statements(program: &Program) -> &[Stmt] {
    match &program.body {
        Stmt::Seq(stmts) => stmts,
        single => std::slice::from_ref(single),
    }
}

/// The positions of those statements at the root of a program that can run before all others whenever the contents of its
/// constant parameters are known: they depend on nothing else, and nothing else writes what they write.
pub fn constant_stages(program: &Program) -> Vec<usize> {
    let has_constants = program.buffer_params().any(|(_, access)| access == Access::Constant);
    if !has_constants {
        return Vec::new();
    }
    let mut stages: Vec<Stage> = root_statements(program).iter().map(|stmt| stage(program, stmt)).collect();
    while let Some(position) = (0..stages.len()).find(|position| !can_run_ahead(program, &stages, *position))
    {
        stages[position].is_candidate = false;
    }
    needed(program, &stages)
}

/// The blocks of [`constant_stages`].
pub fn constant_blocks(program: &Program) -> FxHashSet<BlockId> {
    let statements = root_statements(program);
    let stages = constant_stages(program);
    stages.into_iter().flat_map(|position| blocks(&statements[position])).map(|block| block.id).collect()
}

fn stage(program: &Program, stmt: &Stmt) -> Stage {
    let reads: FxHashSet<BufferId> = loads(stmt).iter().map(|access| access.buffer).collect();
    let writes: FxHashSet<BufferId> = stores(stmt).iter().map(|store| store.buffer).collect();
    let is_constant = |buffer: &BufferId| matches!(program.access(*buffer), None | Some(Access::Constant));
    let is_candidate = reads.iter().all(is_constant)
        && writes.iter().all(|buffer| program.access(*buffer).is_none())
        && !depends_on_call(program, stmt, reads.iter().chain(&writes));
    Stage { reads, writes, is_candidate }
}

/// Whether a statement, or the size of a buffer that it touches, depends on a scalar or a dimension of the call.
fn depends_on_call<'b>(program: &Program, stmt: &Stmt, touched: impl Iterator<Item = &'b BufferId>) -> bool {
    let mut found = false;
    let mut visit =
        |var| found |= matches!(program.variable(var).kind, VariableKind::Scalar | VariableKind::Dim);
    let shapes = touched.flat_map(|buffer| &program.buffer(*buffer).shape);
    shapes.for_each(|extent| extent.for_each_var(&mut visit));
    for_each_root_expr(stmt, &mut |expr| for_each_var(expr, &mut visit));
    for_each_stmt(stmt, &mut |stmt| match stmt {
        Stmt::For(node) => node.extent.for_each_var(&mut visit),
        Stmt::Block(node) => {
            let bounds = node.iters.iter().flat_map(|iter| [&iter.extent, &iter.binding]);
            let bounds = bounds.chain(node.guards.iter().flat_map(|guard| [&guard.index, &guard.bound]));
            bounds.for_each(|index| index.for_each_var(&mut visit));
        }
        Stmt::Store(node) => node.indices.iter().for_each(|index| index.for_each_var(&mut visit)),
        _ => {}
    });
    found
}

/// Whether a stage that is a candidate may stay one; true for all others.
fn can_run_ahead(program: &Program, stages: &[Stage], position: usize) -> bool {
    let own = &stages[position];
    let others = |buffer: BufferId| {
        stages
            .iter()
            .enumerate()
            .filter(move |(_, other)| !other.is_candidate && other.writes.contains(&buffer))
    };
    let is_intermediate = |buffer: &&BufferId| program.access(**buffer).is_none();
    !own.is_candidate
        || own.reads.iter().filter(is_intermediate).chain(&own.writes).all(|buffer| {
            let reads_before =
                stages[..position].iter().any(|other| !other.is_candidate && other.reads.contains(buffer));
            others(*buffer).next().is_none() && !(own.writes.contains(buffer) && reads_before)
        })
}

/// The candidates that read a constant, and those that have to do with what such ones touch.
fn needed(program: &Program, stages: &[Stage]) -> Vec<usize> {
    let reads_constant =
        |stage: &Stage| stage.reads.iter().any(|buffer| program.access(*buffer) == Some(Access::Constant));
    let mut kept: Vec<bool> =
        stages.iter().map(|stage| stage.is_candidate && reads_constant(stage)).collect();
    let touches = |a: &Stage, b: &Stage| {
        a.writes.iter().any(|buffer| b.reads.contains(buffer) || b.writes.contains(buffer))
    };
    let is_missing = |kept: &[bool], position: &usize| {
        let own = &stages[*position];
        !kept[*position]
            && own.is_candidate
            && stages
                .iter()
                .zip(kept)
                .any(|(other, kept)| *kept && (touches(own, other) || touches(other, own)))
    };
    while let Some(position) = (0..stages.len()).find(|position| is_missing(&kept, position)) {
        kept[position] = true;
    }
    (0..stages.len()).filter(|position| kept[*position]).collect()
}
