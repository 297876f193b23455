//! `split`

use std::sync::Arc;

use crate::analysis::scope::{loops_around_loop, ranges_of};
use crate::index::Index;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::{edit_blocks, edit_loop, fresh_loop, nest, replace_loop_var};
use crate::schedule::find::require_loop;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{IntArgument, LoopRv, Schedule, ScheduleError, Value};
use crate::stmt::{For, Guard, LoopKind, Stmt, Symbol};

/// Splits a loop into nested loops, the first factor outermost. One factor may be left open, as `none` or
/// -1: it becomes the least one that covers the loop. When the factors do not divide the
/// extent, the blocks inside are guarded.
///
/// ```text
/// before
/// kernel copy(in a: f32[12], out b: f32[12]) {
///   for i in 0..12 {
///     block b(v: spatial 12 = i) {
///       b[v] = a[v]
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// %1 = get_loops %0
/// %2, %3 = split %1, [none, 5]
/// after
/// kernel copy(in a: f32[12], out b: f32[12]) {
///   for i_0 in 0..3 {
///     for i_1 in 0..5 {
///       block b(v: spatial 12 = i_0*5 + i_1) where i_0*5 + i_1 < 12 {
///         b[v] = a[v]
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Split {
    /// The loop.
    pub target: LoopRv,
    /// The extents of the new loops.
    pub factors: Vec<Option<IntArgument>>,
}

impl Primitive for Split {
    const NAME: &'static str = "split";
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Loop(&mut self.target))?;
        visitor.visit(Argument::Factors(&mut self.factors))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.target_loop(self.target)?;
        let target = require_loop(context.program, id)?;
        if target.kind != LoopKind::Serial {
            return Err(ScheduleError::NotSerial(id));
        }
        let factors = self.factors.iter().map(|factor| match factor {
            None => Ok(None),
            Some(argument) => context.values.int(*argument).map(|value| (value != -1).then_some(value)),
        });
        let factors = factors.collect::<Result<Vec<_>, _>>()?;
        let (var, extent) = (target.var, target.extent.clone());
        let extents = cover(&extent, &factors).ok_or(ScheduleError::BadFactors(id))?;
        let around = loops_around_loop(&context.program.body, id).ok_or(ScheduleError::MissingLoop(id))?;
        let mut ranges = ranges_of(around);

        let base = context.program.variable(var).name.clone();
        let loops = extents.into_iter().enumerate().map(|(part, extent)| {
            let name: Symbol = format!("{base}_{part}").into();
            fresh_loop(context.program, &name, extent)
        });
        let loops: Vec<For> = loops.collect();
        for node in &loops {
            ranges.insert_loop(node);
        }
        let combined = combine(&loops).simplify(&ranges);
        let is_exact = combined.is_provably_less(&extent, &ranges);
        let guard = (!is_exact).then(|| Guard { index: combined.clone(), bound: extent });

        let outputs = loops.iter().map(|node| Value::Loop(node.id)).collect();
        let mut loops = Some(loops);
        edit_loop(&mut context.program.body, id, &mut |stmt| {
            let (Stmt::For(node), Some(loops)) = (&mut *stmt, loops.take()) else { return };
            let mut body = std::mem::replace(&mut Arc::make_mut(node).body, Stmt::nothing());
            replace_loop_var(&mut body, &mut ranges, var, &combined);
            if let Some(guard) = &guard {
                edit_blocks(&mut body, &mut |block| block.guards.push(guard.clone()));
            }
            *stmt = nest(loops, body);
        });
        Ok(outputs)
    }
}

/// The extents of the new loops: the factors, with the open one as large as it takes to cover `extent`.
/// `None` when the factors are not positive, more than one is open, or they do not cover it.
fn cover(extent: &Index, factors: &[Option<i64>]) -> Option<Vec<Index>> {
    let open = factors.iter().filter(|factor| factor.is_none()).count();
    if factors.is_empty() || open > 1 || factors.iter().flatten().any(|factor| *factor < 1) {
        return None;
    }
    let product = factors.iter().flatten().try_fold(1i64, |product, factor| product.checked_mul(*factor))?;
    if open == 0 && extent.as_constant()? > product {
        return None;
    }
    let rest = extent.ceil_div(product);
    Some(factors.iter().map(|factor| factor.map_or_else(|| rest.clone(), Index::constant)).collect())
}

/// The value of the split variable: the new variables in mixed radix.
fn combine(loops: &[For]) -> Index {
    loops
        .iter()
        .fold(Index::constant(0), |combined, node| &combined.multiply(&node.extent) + &Index::var(node.var))
}

impl Schedule {
    /// Splits a loop into nested loops, the first factor outermost. See [`Split`].
    ///
    /// # Errors
    /// When the loop is gone or not serial, or the factors do not cover it.
    pub fn split<F: Into<IntArgument> + Copy>(
        &mut self,
        target: LoopRv,
        factors: &[Option<F>],
    ) -> Result<Vec<LoopRv>, ScheduleError> {
        let factors = factors.iter().map(|factor| factor.map(Into::into)).collect();
        Ok(self.push_many(Split { target, factors })?.map(LoopRv).collect())
    }
}
