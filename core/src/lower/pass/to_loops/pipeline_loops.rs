//! Software pipelines: stages of different iterations of a loop are executed together.
//!
//! ```text
//! @software_pipeline_stage [0, 1]
//! for i in 0..8 { alloc b[4] { b[…] = a[4·i …]; c[4·i …] = b[…] } }
//!
//! alloc b[2, 4] {
//!   b[0, …] = a[0 …]
//!   for i in 0..7 { b[(i + 1)%2, …] = a[4·i + 4 …]; c[4·i …] = b[i%2, …] }
//!   c[28 …] = b[1, …]
//! }
//! ```
//!
//! A statement of stage `s` is executed `s` iterations later, so that values which one stage loads have arrived when the next
//! stage uses them. The prologue, before the loop, executes the first stages of the first iterations; the epilogue, after it,
//! the last stages of the last iterations. Where the number of iterations is not known, or both would become too long, each
//! statement is guarded by the condition that its iteration exists. A buffer that belongs to one iteration is kept in as many
//! versions as iterations are in flight between its first and its last stage.
//!
//! Stages that the annotations name as asynchronous copy in the background ([`async_copies`](super::async_copies)).
//!
//! Blocks identify the statements of a loop ([`mark`]); the places of buffers show which of them belong to one iteration.

use std::sync::Arc;

use super::async_copies::AsyncCopies;
use crate::access::rewrite_accesses;
use crate::analysis::access::accesses;
use crate::analysis::initial::under_guards as under;
use crate::analysis::pipeline::{Parts, PipelineFault, Plan, Statement, check_dependences, without_plan};
use crate::annotation::PIPELINE_STATEMENT;
use crate::expr::Expr;
use crate::ids::BufferId;
use crate::index::{Index, Ranges};
use crate::lower::util::comparison::written_out_size;
use crate::lower::util::condition::under_guards;
use crate::lower::util::copy::copy_with;
use crate::lower::{LowerError, LowerOptions};
use crate::program::{Program, VariableKind};
use crate::stmt::{Alloc, Annotations, For, Guard, LoopKind, Stmt};

/// Marks a statement of a pipelined loop, so that it is found again whatever passes put around it.
pub(in crate::lower) fn mark(program: &mut Program, number: usize, body: Stmt) -> Stmt {
    let mut annotations = Annotations::new();
    PIPELINE_STATEMENT.set(&mut annotations, number as i64);
    let (id, var) = (program.fresh_loop(), program.add_variable("statement", VariableKind::Loop));
    let extent = Index::constant(1);
    Stmt::For(Arc::new(For { id, var, extent, kind: LoopKind::Serial, annotations, body }))
}

/// The error for a loop that cannot be pipelined.
pub(in crate::lower) fn refuse(program: &Program, node: &For, fault: PipelineFault) -> LowerError {
    LowerError::Pipeline {
        target: node.id,
        fault,
        variable: program.variable(node.var).name.to_string(),
        problem: fault.describe(|buffer| program.buffer(buffer).name.to_string()),
    }
}

/// Carries out the pipelines that loops are annotated with.
pub(in crate::lower) fn pipeline_loops(
    program: &mut Program,
    options: &LowerOptions,
) -> Result<(), LowerError> {
    let mut body = std::mem::replace(&mut program.body, Stmt::nothing());
    let budget = options.max_partition_statements;
    Pipelines { program, around: Ranges::new(), budget }.stmt(&mut body)?;
    program.body = body;
    Ok(())
}

struct Pipelines<'p> {
    program: &'p mut Program,
    around: Ranges,
    /// How many more statements may be made.
    budget: usize,
}

impl Pipelines<'_> {
    fn stmt(&mut self, stmt: &mut Stmt) -> Result<(), LowerError> {
        let Stmt::For(node) = stmt else {
            return stmt.children_mut().into_iter().try_for_each(|child| self.stmt(child));
        };
        let before = self.around.insert(node.var, node.extent.clone());
        self.stmt(&mut Arc::make_mut(node).body)?;
        let plan = Plan::of(node).map_err(|fault| refuse(self.program, node, fault))?;
        let pipelined = plan.map(|plan| self.pipelined(node, &plan)).transpose()?;
        self.around.remove(node.var);
        if let Some(extent) = before {
            self.around.insert(node.var, extent);
        }
        if let Some(pipelined) = pipelined {
            *stmt = pipelined;
        }
        Ok(())
    }

    fn pipelined(&mut self, node: &For, plan: &Plan) -> Result<Stmt, LowerError> {
        let mut parts = Parts::default();
        let refusal = |program: &Program, fault| refuse(program, node, fault);
        collect(&node.body, &mut Vec::new(), &mut parts).map_err(|fault| refusal(self.program, fault))?;
        check_dependences(self.program, node, plan, &parts, &self.around)
            .map_err(|fault| refusal(self.program, fault))?;
        let shared = self.keep_versions(node, plan, &mut parts);
        let copies = AsyncCopies::find(self.program, plan, &mut parts.statements);
        parts.statements.sort_by_key(|statement| plan.order[statement.number]);
        let body = self.executed(node, plan, &parts.statements, &copies);
        Ok(shared.into_iter().rev().fold(body, |body, buffer| Stmt::Alloc(Arc::new(Alloc { buffer, body }))))
    }

    /// Gives every iteration in flight its own version of each buffer that belongs to one iteration, and returns the buffers to
    /// allocate around the loop.
    fn keep_versions(&mut self, node: &For, plan: &Plan, parts: &mut Parts) -> Vec<BufferId> {
        let mut shared = Vec::new();
        for buffer in std::mem::take(&mut parts.own) {
            let is_user = |statement: &&mut Statement| accesses(&statement.body, buffer);
            let mut users: Vec<&mut Statement> = parts.statements.iter_mut().filter(is_user).collect();
            if let [only] = &mut users[..] {
                let body = std::mem::replace(&mut only.body, Stmt::nothing());
                only.body = Stmt::Alloc(Arc::new(Alloc { buffer, body }));
                continue;
            }
            let versions = versions(plan, users.iter().map(|user| user.number));
            shared.push(buffer);
            if versions == 1 {
                continue;
            }
            add_versions(self.program, buffer, versions);
            let own = Index::var(node.var).modulo(versions);
            for user in users {
                rewrite_accesses(&mut user.body, &|accessed, indices| {
                    let of_version = || [own.clone()].into_iter().chain(indices.iter().cloned()).collect();
                    (accessed == buffer).then(|| (buffer, of_version()))
                });
            }
        }
        shared
    }

    /// The statements, in their order, of all iterations.
    fn executed(&mut self, node: &For, plan: &Plan, statements: &[Statement], copies: &AsyncCopies) -> Stmt {
        let stages = || statements.iter().map(|statement| plan.stages[statement.number]);
        let first = stages().min().unwrap_or(0);
        let depth = stages().max().unwrap_or(0) - first;
        let later = |statement: &Statement| plan.stages[statement.number] - first;
        let size: usize = statements.iter().map(|statement| written_out_size(&statement.body)).sum();
        let iterations = node.extent.as_constant().filter(|iterations| {
            let added = usize::try_from(depth.min(*iterations)).unwrap_or(0).saturating_mul(size);
            let affordable = added <= self.budget;
            self.budget -= if affordable { added } else { 0 };
            affordable
        });
        let Some(iterations) = iterations else {
            return self.guarded(node, depth, statements, later, copies);
        };
        let mut all = Vec::new();
        let stages_at = |program: &mut Program, time: i64, all: &mut Vec<Stmt>| {
            all.extend(copies.wait_in_step(time + first, iterations));
            for statement in statements {
                let iteration = time - later(statement);
                if (0..iterations).contains(&iteration) {
                    all.push(copy_with(program, &statement.body, node.var, Index::constant(iteration)));
                }
                let is_last = copies.commit_behind(statement.number).is_some();
                all.extend(is_last.then(|| copies.commit_in_step(time + first, iterations)).flatten());
            }
        };
        if iterations <= depth {
            (0..iterations + depth).for_each(|time| stages_at(self.program, time, &mut all));
            return Stmt::seq(all);
        }
        (0..depth).for_each(|time| stages_at(self.program, time, &mut all));
        let mut steady = For { extent: Index::constant(iterations - depth), ..node.clone() };
        without_plan(&mut steady);
        let executed = statements.iter().flat_map(|statement| {
            let iteration = Index::var(node.var).offset(depth - later(statement));
            let body = copy_with(self.program, &statement.body, node.var, iteration);
            [Some(body), copies.commit_behind(statement.number)].into_iter().flatten()
        });
        let executed: Vec<Stmt> = executed.collect();
        steady.body = Stmt::seq(copies.wait_in_steady_step().into_iter().chain(executed));
        all.push(Stmt::For(Arc::new(steady)));
        (iterations..iterations.saturating_add(depth))
            .for_each(|time| stages_at(self.program, time, &mut all));
        Stmt::seq(all)
    }

    /// As `executed`, in one loop in which each statement is guarded by the condition that its iteration exists.
    fn guarded(
        &mut self,
        node: &For,
        depth: i64,
        statements: &[Statement],
        later: impl Fn(&Statement) -> i64,
        copies: &AsyncCopies,
    ) -> Stmt {
        let mut whole = For { extent: node.extent.offset(depth), ..node.clone() };
        without_plan(&mut whole);
        let executed = statements.iter().flat_map(|statement| {
            let iteration = Index::var(node.var).offset(-later(statement));
            let mut guards = Vec::new();
            if later(statement) > 0 {
                guards.push(Guard { index: iteration.scale(-1), bound: Index::constant(1) });
            }
            if later(statement) < depth {
                guards.push(Guard { index: iteration.clone(), bound: node.extent.clone() });
            }
            let body = under(&guards, copy_with(self.program, &statement.body, node.var, iteration));
            [Some(body), copies.commit_behind(statement.number)].into_iter().flatten()
        });
        let executed: Vec<Stmt> = executed.collect();
        whole.body = Stmt::seq(copies.wait_in_steady_step().into_iter().chain(executed));
        Stmt::For(Arc::new(whole))
    }
}

/// Finds the statements of a pipeline, under the conditions that have been moved out of them, and the buffers around them.
fn collect(stmt: &Stmt, conditions: &mut Vec<Expr>, parts: &mut Parts) -> Result<(), PipelineFault> {
    match stmt {
        Stmt::Seq(stmts) => stmts.iter().try_for_each(|stmt| collect(stmt, conditions, parts)),
        Stmt::Alloc(node) => {
            parts.own.push(node.buffer);
            collect(&node.body, conditions, parts)
        }
        Stmt::If(node) if node.otherwise.is_none() => {
            conditions.push(node.condition.clone());
            collect(&node.then, conditions, parts)?;
            conditions.pop();
            Ok(())
        }
        Stmt::For(node) => {
            let Some(number) = PIPELINE_STATEMENT.get(&node.annotations) else {
                return Err(PipelineFault::InsideBlock);
            };
            let body = under_guards(conditions.iter().cloned(), node.body.clone());
            parts.statements.push(Statement { number: number as usize, body });
            Ok(())
        }
        Stmt::If(_)
        | Stmt::Store(_)
        | Stmt::Block(_)
        | Stmt::Intrinsic(_)
        | Stmt::Barrier
        | Stmt::Copies(_)
        | Stmt::Shuffle(_) => Err(PipelineFault::InsideBlock),
    }
}

/// How many versions some statements need of a buffer that they share: one for each iteration in flight.
fn versions(plan: &Plan, users: impl Iterator<Item = usize> + Clone) -> i64 {
    let stages = users.clone().map(|number| plan.stages[number]);
    let (first, last) = (stages.clone().min().unwrap_or(0), stages.max().unwrap_or(0));
    let places = |stage: i64| {
        users.clone().filter(move |number| plan.stages[*number] == stage).map(|number| plan.order[number])
    };
    // Where the last stage ends before the first one begins again, both can use one version.
    let is_over = last > first && places(last).max() < places(first).min();
    last - first + i64::from(!is_over)
}

/// Adds a dimension for versions in front of the dimensions of a buffer.
fn add_versions(program: &mut Program, buffer: BufferId, versions: i64) {
    program.buffer_mut(buffer).shape.insert(0, Index::constant(versions));
    let alignments: Vec<_> = program.alignments(buffer).collect();
    program.forget_alignments(buffer);
    for (axis, alignment) in alignments {
        program.align(buffer, axis + 1, alignment);
    }
}
