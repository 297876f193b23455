//! `fuse`

use std::sync::Arc;

use crate::analysis::scope::{blocks, loops_around_loop, ranges_of};
use crate::ids::{LoopId, VarId};
use crate::index::Index;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::{edit_loop, fresh_loop, nest, replace_loop_var};
use crate::schedule::find::require_loop;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{LoopRv, Schedule, ScheduleError, Value};
use crate::stmt::{For, IterKind, LoopKind, Stmt, Symbol};
use crate::visit::find_loop;

/// Makes one loop of perfectly nested loops, given outermost first. All but the outermost need a constant,
/// positive extent; so does the outermost if it reduces and an inner one does not: without iterations it would leave the
/// elements of the inner one without their initial values.
///
/// ```text
/// before
/// kernel grid(in a: f32[4, 6], out b: f32[4, 6]) {
///   for i in 0..4 {
///     for j in 0..6 {
///       block b(vi: spatial 4 = i, vj: spatial 6 = j) {
///         b[vi, vj] = a[vi, vj]
///       }
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// %1, %2 = get_loops %0
/// %3 = fuse [%1, %2]
/// after
/// kernel grid(in a: f32[4, 6], out b: f32[4, 6]) {
///   for i_j_f in 0..24 {
///     block b(vi: spatial 4 = i_j_f/6, vj: spatial 6 = i_j_f%6) {
///       b[vi, vj] = a[vi, vj]
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fuse {
    /// The loops, outermost first.
    pub loops: Vec<LoopRv>,
}

impl Primitive for Fuse {
    const NAME: &'static str = "fuse";
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Loops(&mut self.loops))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let ids = context.values.loops(&self.loops)?;
        let parts = perfect_nest(context, &ids)?;
        let outermost = ids[0];
        let around = loops_around_loop(&context.program.body, outermost)
            .ok_or(ScheduleError::MissingLoop(outermost))?;
        let mut ranges = ranges_of(around);

        let mut extent = parts[0].1.clone();
        let vars: Vec<VarId> = parts.iter().map(|(var, _)| *var).collect();
        let may_be_empty = extent.as_constant().is_none_or(|extent| extent < 1);
        if may_be_empty && separates_initial_values(&context.program.body, outermost, &vars) {
            return Err(match extent.as_constant() {
                Some(_) => ScheduleError::BadFactors(outermost),
                None => ScheduleError::SymbolicExtent(outermost),
            });
        }
        for ((_, inner), id) in parts.iter().zip(&ids).skip(1) {
            let inner = inner.as_constant().ok_or(ScheduleError::SymbolicExtent(*id))?;
            if inner < 1 {
                return Err(ScheduleError::BadFactors(*id));
            }
            extent = extent.scale(inner);
        }
        let names: Vec<&str> = parts.iter().map(|(var, _)| &*context.program.variable(*var).name).collect();
        let name: Symbol = format!("{}_f", names.join("_")).into();
        let fused = fresh_loop(context.program, &name, extent);
        ranges.insert(fused.var, fused.extent.clone());

        let output = Value::Loop(fused.id);
        let innermost = ids[ids.len() - 1];
        let mut fused = Some(fused);
        edit_loop(&mut context.program.body, outermost, &mut |stmt| {
            let Some(fused) = fused.take() else { return };
            let mut body = Stmt::nothing();
            edit_loop(stmt, innermost, &mut |inner| {
                if let Stmt::For(node) = inner {
                    body = std::mem::replace(&mut Arc::make_mut(node).body, Stmt::nothing());
                }
            });
            let mut rest = Index::var(fused.var);
            for (number, (var, extent)) in parts.iter().enumerate().rev() {
                let digit = match extent.as_constant() {
                    Some(extent) if number > 0 => rest.modulo(extent),
                    _ => rest.clone(),
                };
                if let (Some(extent), true) = (extent.as_constant(), number > 0) {
                    rest = rest.floor_div(extent);
                }
                replace_loop_var(&mut body, &mut ranges.clone(), *var, &digit);
            }
            ranges.insert(fused.var, fused.extent.clone());
            *stmt = nest(vec![fused], body);
        });
        Ok(Outputs::from_slice(&[output]))
    }
}

/// Whether a block below reduces over the first of some loops, and has elements along another.
fn separates_initial_values(body: &Stmt, outermost: LoopId, vars: &[VarId]) -> bool {
    let Some(node) = find_loop(body, outermost) else { return false };
    blocks(&node.body).iter().any(|block| {
        let goes_along = |kind: IterKind, vars: &[VarId]| {
            let mut own = block.iters.iter().filter(|iter| iter.kind == kind);
            own.any(|iter| vars.iter().any(|var| iter.binding.mentions(*var)))
        };
        block.init.is_some()
            && goes_along(IterKind::Reduce, &vars[..1])
            && goes_along(IterKind::Spatial, &vars[1..])
    })
}

/// The variables and extents of perfectly nested serial loops.
fn perfect_nest(context: &Context<'_>, ids: &[LoopId]) -> Result<Vec<(VarId, Index)>, ScheduleError> {
    if ids.is_empty() {
        return Err(ScheduleError::BadLoopList);
    }
    let mut parts = Vec::new();
    let mut outer: Option<&Arc<For>> = None;
    for id in ids {
        let node = match outer {
            None => require_loop(context.program, *id)?,
            Some(outer) => match &outer.body {
                Stmt::For(inner) if inner.id == *id => inner,
                _ => return Err(ScheduleError::NotAChain { outer: outer.id, inner: *id }),
            },
        };
        if node.kind != LoopKind::Serial {
            return Err(ScheduleError::NotSerial(*id));
        }
        parts.push((node.var, node.extent.clone()));
        outer = Some(node);
    }
    Ok(parts)
}

impl Schedule {
    /// Makes one loop of perfectly nested loops, given outermost first. See [`Fuse`].
    ///
    /// # Errors
    /// When the loops are not perfectly nested, not serial, or an inner extent is symbolic.
    pub fn fuse(&mut self, loops: &[LoopRv]) -> Result<LoopRv, ScheduleError> {
        self.push_one(Fuse { loops: loops.to_vec() }).map(LoopRv)
    }
}
