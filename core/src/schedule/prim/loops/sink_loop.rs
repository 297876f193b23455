//! `sink_loop`

use std::sync::Arc;

use crate::analysis::scope::{blocks, loops_around_loop, ranges_of};
use crate::index::Index;
use crate::program::Program;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::order::check_apart;
use crate::schedule::edit::{edit_loop, flatten_sequences, fresh_loop, replace_loop_var};
use crate::schedule::find::{require_loop, statements};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{LoopRv, Schedule, ScheduleError, Value};
use crate::stmt::{For, LoopKind, Stmt};

/// Moves a loop into the loop that it holds: around each of the statements there. Its iterations must not meet in an element.
///
/// Each step of a recurrence then computes the points of all iterations together, which have operands in common.
///
/// ```text
/// before
/// kernel walk(in a: f32[4, 9], inout s: f32[4], out b: f32[4, 9]) {
///   for i in 0..4 {
///     for t in 0..9 {
///       block s(vi: spatial 4 = i, vt: ordered 9 = t) {
///         s[vi] = s[vi] * 0.5 + a[vi, vt]
///       }
///       block b(vi: spatial 4 = i, vt: ordered 9 = t) {
///         b[vi, vt] = s[vi]
///       }
///     }
///   }
/// }
/// apply
/// %0 = get_block "s"
/// %1, %2 = get_loops %0
/// %3, %4 = sink_loop %1
/// after
/// kernel walk(in a: f32[4, 9], inout s: f32[4], out b: f32[4, 9]) {
///   for t in 0..9 {
///     for i in 0..4 {
///       block s(vi: spatial 4 = i, vt: ordered 9 = t) {
///         s[vi] = s[vi] * 0.5 + a[vi, vt]
///       }
///     }
///     for i_1 in 0..4 {
///       block b(vi_1: spatial 4 = i_1, vt_1: ordered 9 = t) {
///         b[vi_1, vt_1] = s[vi_1]
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SinkLoop {
    /// The loop, whose body is another one.
    pub target: LoopRv,
}

impl Primitive for SinkLoop {
    const NAME: &'static str = "sink_loop";
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Loop(&mut self.target))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let program = &mut *context.program;
        let id = context.values.target_loop(self.target)?;
        let target = require_loop(program, id)?.clone();
        let Stmt::For(held) = &target.body else { return Err(ScheduleError::BadLoopList) };
        for node in [&target, held] {
            if node.kind != LoopKind::Serial {
                return Err(ScheduleError::NotSerial(node.id));
            }
        }
        if held.extent.mentions(target.var) {
            return Err(ScheduleError::SymbolicExtent(held.id));
        }
        check_apart(&blocks(&held.body), &target)?;
        let mut ranges =
            ranges_of(loops_around_loop(&program.body, id).ok_or(ScheduleError::MissingLoop(id))?);
        ranges.insert_loop(held);
        let mut outputs = Outputs::new();
        let sunk = statements(&held.body).iter().enumerate().map(|(number, stmt)| {
            let node = copy_around(program, &target, number, stmt, &mut ranges.clone());
            outputs.push(Value::Loop(node.id));
            Stmt::For(Arc::new(node))
        });
        let body = Stmt::seq(sunk.collect::<Vec<_>>());
        let outer = Stmt::For(Arc::new(For { body, ..For::clone(held) }));
        edit_loop(&mut program.body, id, &mut |stmt| *stmt = outer.clone());
        flatten_sequences(&mut program.body);
        Ok(outputs)
    }
}

/// The loop around one of the statements. The first one keeps the loop's identity.
fn copy_around(
    program: &mut Program,
    target: &For,
    number: usize,
    stmt: &Stmt,
    ranges: &mut crate::index::Ranges,
) -> For {
    let mut body = stmt.clone();
    if number == 0 {
        return For { body, ..target.clone() };
    }
    let name = program.variable(target.var).name.clone();
    let fresh = fresh_loop(program, &name, target.extent.clone());
    ranges.insert_loop(&fresh);
    replace_loop_var(&mut body, ranges, target.var, &Index::var(fresh.var));
    For { annotations: target.annotations.clone(), body, ..fresh }
}

impl Schedule {
    /// Moves a loop into the loop that it holds, and gives the loops around the statements there. See [`SinkLoop`].
    ///
    /// # Errors
    /// When the loop does not hold another one alone, or its iterations may meet in an element.
    pub fn sink_loop(&mut self, target: LoopRv) -> Result<Vec<LoopRv>, ScheduleError> {
        Ok(self.push_many(SinkLoop { target })?.map(LoopRv).collect())
    }
}
