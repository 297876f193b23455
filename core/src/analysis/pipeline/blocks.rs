//! Pipelines of loops around blocks: the statements that the blocks stand for, and the buffers of one iteration.

use std::sync::Arc;

use crate::analysis::access::accesses;
use crate::analysis::initial::{Roles, at_zero, under_guards};
use crate::analysis::loop_carried::carries_nothing;
use crate::analysis::pipeline::{Parts, PipelineFault, Plan, Statement, check_dependences, statements};
use crate::analysis::scope::{blocks, loops_around_loop};
use crate::ids::{BufferId, LoopId, VarId};
use crate::index::{Index, Ranges};
use crate::program::Program;
use crate::stmt::{Block, For, Guard, LoopKind, Stmt};
use crate::visit::{find_loop, for_each_stmt, substitute_stmt};

/// Checks every loop of a program of blocks that its annotations make a pipeline.
///
/// # Errors
/// The first loop that cannot be pipelined, and why.
pub(crate) fn check_pipelines(program: &Program) -> Result<(), (LoopId, PipelineFault)> {
    let mut pipelined: Vec<&Arc<For>> = Vec::new();
    for_each_stmt(&program.body, &mut |stmt| {
        if let Stmt::For(node) = stmt
            && !node.annotations.is_empty()
        {
            pipelined.push(node);
        }
    });
    pipelined.into_iter().try_for_each(|node| check_loop(program, node).map_err(|fault| (node.id, fault)))
}

fn check_loop(program: &Program, node: &For) -> Result<(), PipelineFault> {
    let Some(plan) = Plan::of_statements(node)? else { return Ok(()) };
    let around = loops_around_loop(&program.body, node.id).unwrap_or_default();
    if blocks(&program.body).iter().any(|block| is_inside(block, node.id)) {
        return Err(PipelineFault::InsideBlock);
    }
    if node.extent.is(1) {
        // One iteration is executed as it stands.
        return Ok(());
    }
    let ranges = Ranges::from_loops(around.iter().map(|node| &***node));
    let bodies = Expansion { ranges: ranges.clone(), inner: Vec::new() }.statements_of(node);
    let plain = For { body: Stmt::seq(bodies.iter().cloned()), ..For::clone(node) };
    let own = match around.iter().any(|node| node.kind == LoopKind::Vectorized) {
        // The iterations of a vectorized loop would share the buffer.
        true => Vec::new(),
        false => iteration_buffers(program, node, &plain, &ranges),
    };
    let numbered = bodies.into_iter().enumerate();
    let statements = numbered.map(|(number, body)| Statement { number, body }).collect();
    check_dependences(program, node, &plan, &Parts { statements, own }, &ranges)
}

fn is_inside(block: &Block, target: LoopId) -> bool {
    block.init.iter().chain([&block.body]).any(|part| find_loop(part, target).is_some())
}

/// The intermediates that are accessed only in a loop, and whose values no iteration leaves to another one. `plain` is the
/// loop without blocks, `around` has the loops around.
fn iteration_buffers(program: &Program, node: &For, plain: &For, around: &Ranges) -> Vec<BufferId> {
    let accessing = |stmt: &Stmt, buffer: BufferId| {
        blocks(stmt).into_iter().filter(|block| block_accesses(block, buffer)).count()
    };
    let is_local = |buffer: BufferId| {
        program.access(buffer).is_none()
            && accesses(&plain.body, buffer)
            && accessing(&node.body, buffer) == accessing(&program.body, buffer)
    };
    let buffers = program.buffers().map(|(buffer, _)| buffer).filter(|buffer| is_local(*buffer));
    buffers.filter(|buffer| carries_nothing(program, plain, around, *buffer)).collect()
}

fn block_accesses(block: &Block, buffer: BufferId) -> bool {
    block.init.iter().chain([&block.body]).any(|part| accesses(part, buffer))
}

/// Replaces blocks by statements in the body of a loop.
struct Expansion {
    /// The loops around the current place.
    ranges: Ranges,
    /// The loops of that list that are inside the pipelined loop.
    inner: Vec<VarId>,
}

impl Expansion {
    /// The statements of a loop's body, one for each that is there.
    fn statements_of(mut self, node: &For) -> Vec<Stmt> {
        self.ranges.insert_loop(node);
        statements(&node.body).iter().map(|stmt| self.stmt(stmt)).collect()
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::Seq(stmts) => Stmt::seq(stmts.iter().map(|stmt| self.stmt(stmt))),
            Stmt::For(node) => {
                self.ranges.insert_loop(node);
                self.inner.push(node.var);
                let body = self.stmt(&node.body);
                self.inner.pop();
                self.ranges.remove(node.var);
                Stmt::For(Arc::new(For { body, ..For::clone(node) }))
            }
            Stmt::Block(block) => self.block(block),
            Stmt::Store(_)
            | Stmt::If(_)
            | Stmt::Alloc(_)
            | Stmt::Intrinsic(_)
            | Stmt::Barrier
            | Stmt::Copies(_)
            | Stmt::Shuffle(_) => stmt.clone(),
        }
    }

    /// The statements of a block at one point: its initial value, for the first point of a reduction, and its body.
    fn block(&self, block: &Block) -> Stmt {
        let value_of = |var: VarId| block.iters.iter().find(|iter| iter.var == var).map(|iter| &iter.binding);
        let bound = |stmt: &Stmt| {
            let mut stmt = stmt.clone();
            substitute_stmt(&mut stmt, &|var| value_of(var).map(|binding| binding.simplify(&self.ranges)));
            stmt
        };
        let is_open = |guard: &&Guard| !guard.index.is_provably_less(&guard.bound, &self.ranges);
        let guards: Vec<Guard> = block.guards.iter().filter(is_open).cloned().collect();
        let init = block.init.as_ref().map(|init| self.initial_value(block, &guards, bound(init)));
        Stmt::seq(init.into_iter().chain([under_guards(&guards, bound(&block.body))]))
    }

    /// The initial value of a reduction. Loops inside the pipelined one that only choose values to combine are at their first
    /// iteration; the conditions that others are at theirs remain.
    fn initial_value(&self, block: &Block, guards: &[Guard], init: Stmt) -> Stmt {
        let roles = Roles::of(block);
        let is_first =
            |var: VarId| self.inner.contains(&var) && roles.reduces(var) && !roles.chooses_elements(var);
        let at_first = |index: &Index| index.substitute(&|var| is_first(var).then(|| Index::constant(0)));
        let first_point: Vec<Index> = roles.reduction_values().iter().map(at_first).collect();
        let kept: Vec<Guard> = guards
            .iter()
            .filter(|guard| !roles.guards_reduction_alone(guard))
            .map(|guard| Guard { index: at_first(&guard.index), bound: guard.bound.clone() })
            .collect();
        under_guards(&kept, at_zero(&first_point, init))
    }
}
