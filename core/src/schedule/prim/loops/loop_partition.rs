//! `loop_partition`

use std::sync::Arc;

use crate::analysis::scope::{blocks, loops_around_loop, ranges_of};
use crate::ids::{LoopId, VarId};
use crate::index::{Index, Ranges};
use crate::program::{Program, VariableKind};
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::{edit_loop, flatten_sequences, fresh_block_name};
use crate::schedule::find::require_loop;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{IntArgument, LoopRv, Schedule, ScheduleError, Value};
use crate::stmt::{Block, For, Guard, IterKind, LoopKind, Stmt};
use crate::visit::{listed, substitute_stmt};

/// Cuts the range of a loop into consecutive parts, each a loop with blocks of its own. One part may be
/// left open, as `none` or -1: it becomes the rest of the range. Guards that always hold in a part disappear from it.
///
/// ```text
/// before
/// kernel sums(in a: f32[10, 6], out s: f32[10]) {
///   for i in 0..10 {
///     for k in 0..6 {
///       block s(vi: spatial 10 = i, vk: reduce 6 = k) {
///         init {
///           s[vi] = 0.0
///         }
///         s[vi] = s[vi] + a[vi, vk]
///       }
///     }
///   }
/// }
/// apply
/// %0 = get_block "s"
/// %1, %2 = get_loops %0
/// %3, %4 = split %1, [none, 4]
/// %5, %6 = loop_partition %3, [2, none]
/// after
/// kernel sums(in a: f32[10, 6], out s: f32[10]) {
///   for i_0 in 0..2 {
///     for i_1 in 0..4 {
///       for k in 0..6 {
///         block s(vi: spatial 8 = i_0*4 + i_1, vk: reduce 6 = k) {
///           init {
///             s[vi] = 0.0
///           }
///           s[vi] = s[vi] + a[vi, vk]
///         }
///       }
///     }
///   }
///   for i_2 in 0..1 {
///     for i_3 in 0..4 {
///       for k_1 in 0..6 {
///         block s_part1(vi_1: spatial 2 = i_3, vk_1: reduce 6 = k_1) where i_3 < 2 {
///           init {
///             s[vi_1 + 8] = 0.0
///           }
///           s[vi_1 + 8] = s[vi_1 + 8] + a[vi_1 + 8, vk_1]
///         }
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoopPartition {
    /// The loop, of constant extent, which must run through consecutive parts of each block's domain.
    pub target: LoopRv,
    /// The numbers of iterations of the parts.
    pub parts: Vec<Option<IntArgument>>,
}

/// More parts than are of any use; a bound for hostile traces, since each copies the loop's body.
const MAX_PARTS: usize = 16;

/// More blocks than a program has, for the same reason: parts of parts grow with every step.
const MAX_BLOCKS: usize = 1024;

impl Primitive for LoopPartition {
    const NAME: &'static str = "loop_partition";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Loop(&mut self.target))?;
        visitor.visit(Argument::Factors(&mut self.parts))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.target_loop(self.target)?;
        let target = require_loop(context.program, id)?.clone();
        if target.kind != LoopKind::Serial {
            return Err(ScheduleError::NotSerial(id));
        }
        let extent = target.extent.as_constant().ok_or(ScheduleError::SymbolicExtent(id))?;
        let parts = self.parts.iter().map(|part| match part {
            None => Ok(None),
            Some(argument) => context.values.int(*argument).map(|value| (value != -1).then_some(value)),
        });
        let parts: Vec<Option<i64>> = parts.collect::<Result<_, _>>()?;
        let lengths = lengths(extent, &parts).ok_or(ScheduleError::BadFactors(id))?;
        let copies = blocks(&target.body).len() * (lengths.len() - 1);
        if blocks(&context.program.body).len() + copies > MAX_BLOCKS {
            return Err(ScheduleError::BadFactors(id));
        }
        let around = loops_around_loop(&context.program.body, id).ok_or(ScheduleError::MissingLoop(id))?;
        let outer = ranges_of(around);
        for block in blocks(&target.body) {
            check_consecutive(block, &target, &outer)?;
        }

        let mut made = Vec::new();
        let mut outputs = Outputs::new();
        let mut first = 0;
        for length in lengths {
            let part = Part { first, length };
            let node = part.copy(context.program, &target, &outer, &made);
            outputs.push(Value::Loop(node.id));
            made.push(Stmt::For(Arc::new(node)));
            first += length;
        }
        let made = Stmt::seq(made);
        edit_loop(&mut context.program.body, id, &mut |stmt| *stmt = made.clone());
        flatten_sequences(&mut context.program.body);
        Ok(outputs)
    }
}

/// The lengths of the parts, with the open one. `None` when they are not positive or do not sum to the extent.
fn lengths(extent: i64, parts: &[Option<i64>]) -> Option<Vec<i64>> {
    let open = parts.iter().filter(|part| part.is_none()).count();
    let fits = |part: &i64| (1..=extent).contains(part);
    if parts.is_empty() || parts.len() > MAX_PARTS || open > 1 || !parts.iter().flatten().all(fits) {
        return None;
    }
    let rest = extent - parts.iter().flatten().sum::<i64>();
    let is_whole = if open == 1 { rest >= 1 } else { rest == 0 };
    is_whole.then(|| parts.iter().map(|part| part.unwrap_or(rest)).collect())
}

/// Each iterator that follows the loop has `step` values for each of its iterations, in order.
fn check_consecutive(block: &Block, target: &For, outer: &Ranges) -> Result<(), ScheduleError> {
    let refusal = ScheduleError::NotConsecutive { target: target.id, block: block.id };
    let mut all = outer.clone();
    let inner = crate::analysis::scope::loops_around(&target.body, block.id).ok_or(refusal)?;
    for node in inner {
        all.insert_loop(node);
    }
    let followers = block.iters.iter().filter(|iter| iter.binding.mentions(target.var));
    for iter in followers {
        let step = iter.binding.linear_coefficient(target.var).filter(|step| *step > 0).ok_or(refusal)?;
        let rest = &iter.binding - &Index::var(target.var).scale(step);
        let mut is_inner = !rest.mentions(target.var);
        rest.for_each_var(&mut |var| is_inner &= !outer.contains(var));
        let is_within = rest.is_provably_nonnegative(&all) && rest.is_provably_less(&step.into(), &all);
        if !is_inner || !is_within || iter.extent.as_constant().is_none() {
            return Err(refusal);
        }
    }
    Ok(())
}

/// Iterations `first .. first + length`.
struct Part {
    first: i64,
    length: i64,
}

impl Part {
    /// The loop over the part. The first part keeps the identities of blocks.
    fn copy(&self, program: &mut Program, target: &For, outer: &Ranges, made: &[Stmt]) -> For {
        let name = program.variable(target.var).name.clone();
        let mut copy =
            PartCopy { program, part: self, target, made, ranges: outer.clone(), replaced: Vec::new() };
        let var = copy.program.add_variable(name, VariableKind::Loop);
        let length = Index::constant(self.length);
        copy.ranges.insert(var, length.clone());
        copy.replaced.push((target.var, Index::var(var).offset(self.first)));
        let mut body = target.body.clone();
        copy.stmt(&mut body);
        let id: LoopId = copy.program.fresh_loop();
        For { id, var, extent: length, kind: target.kind, annotations: target.annotations.clone(), body }
    }
}

/// Gives what a part holds identities of its own.
struct PartCopy<'a> {
    program: &'a mut Program,
    part: &'a Part,
    target: &'a For,
    /// The parts before, whose names are taken.
    made: &'a [Stmt],
    ranges: Ranges,
    replaced: Vec<(VarId, Index)>,
}

impl PartCopy<'_> {
    fn renamed(&mut self, var: VarId, kind: VariableKind) -> VarId {
        let name = self.program.variable(var).name.clone();
        let fresh = self.program.add_variable(name, kind);
        self.replaced.push((var, Index::var(fresh)));
        fresh
    }

    fn value(&self, index: &Index) -> Index {
        index.substitute(&listed(&self.replaced)).simplify(&self.ranges)
    }

    fn stmt(&mut self, stmt: &mut Stmt) {
        match stmt {
            Stmt::For(node) => {
                let node = Arc::make_mut(node);
                node.id = self.program.fresh_loop();
                node.var = self.renamed(node.var, VariableKind::Loop);
                self.ranges.insert_loop(node);
                self.stmt(&mut node.body);
            }
            Stmt::Block(node) => self.block(Arc::make_mut(node)),
            _ => stmt.children_mut().into_iter().for_each(|child| self.stmt(child)),
        }
    }

    fn block(&mut self, block: &mut Block) {
        let mut inside: Vec<(VarId, Index)> = Vec::new();
        let mut is_later_part = false;
        for iter in &mut block.iters {
            let step = iter
                .binding
                .linear_coefficient(self.target.var)
                .filter(|_| iter.binding.mentions(self.target.var));
            let mut first = 0;
            if let Some(step) = step {
                first = self.part.first * step;
                let end = (self.part.first + self.part.length) * step;
                let whole = iter.extent.as_constant().unwrap_or(end);
                iter.extent = (end.min(whole) - first.min(whole)).into();
                is_later_part |= iter.kind == IterKind::Reduce && first > 0;
            }
            iter.binding = self.value(&iter.binding).offset(-first);
            let name = self.program.variable(iter.var).name.clone();
            let var = self.program.add_variable(name, VariableKind::Iter);
            inside.push((iter.var, Index::var(var).offset(first)));
            iter.var = var;
        }
        let guards = std::mem::take(&mut block.guards);
        for guard in guards {
            let shift = guard.index.linear_coefficient(self.target.var).unwrap_or(0) * self.part.first;
            let index = self.value(&guard.index).offset(-shift);
            let guard = Guard { index, bound: self.value(&guard.bound).offset(-shift) };
            if !guard.index.is_provably_less(&guard.bound, &self.ranges) {
                block.guards.push(guard);
            }
        }
        // The first part has set the initial value.
        if is_later_part {
            block.init = None;
        }
        for part in block.init.iter_mut().chain([&mut block.body]) {
            self.inner_loops(part, &mut inside);
            substitute_stmt(part, &listed(&inside));
        }
        if self.part.first > 0 {
            block.id = self.program.fresh_block();
            block.name = self.free_name(&block.name);
        }
    }

    /// Loops inside a block are renamed with what it mentions.
    fn inner_loops(&mut self, stmt: &mut Stmt, inside: &mut Vec<(VarId, Index)>) {
        if let Stmt::For(node) = stmt {
            let node = Arc::make_mut(node);
            let name = self.program.variable(node.var).name.clone();
            let fresh = self.program.add_variable(name, VariableKind::Loop);
            inside.push((node.var, Index::var(fresh)));
            (node.id, node.var) = (self.program.fresh_loop(), fresh);
        }
        stmt.children_mut().into_iter().for_each(|child| self.inner_loops(child, inside));
    }

    fn free_name(&self, name: &str) -> crate::stmt::Symbol {
        let taken: Vec<_> = self.made.iter().flat_map(blocks).map(|block| block.name.clone()).collect();
        (1..)
            .map(|number| fresh_block_name(self.program, &format!("{name}_part{number}")))
            .find(|name| !taken.contains(name))
            .expect("some number is free")
    }
}

impl Schedule {
    /// Cuts the range of a loop into consecutive parts, and gives their loops. See [`LoopPartition`].
    ///
    /// # Errors
    /// When the extent is symbolic, the parts do not sum to it, or a block's domain cannot be cut there.
    pub fn loop_partition<F: Into<IntArgument> + Copy>(
        &mut self,
        target: LoopRv,
        parts: &[Option<F>],
    ) -> Result<Vec<LoopRv>, ScheduleError> {
        let parts = parts.iter().map(|part| part.map(Into::into)).collect();
        Ok(self.push_many(LoopPartition { target, parts })?.map(LoopRv).collect())
    }
}
