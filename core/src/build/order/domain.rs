//! The iteration domain of each assignment: which loops are spatial, which combine values, and which assignments overwrite
//! each other.

use std::cmp::Reverse;

use super::dependence::accesses;
use crate::build::error::DefinitionError;
use crate::build::render;
use crate::build::statement::{Effect, Kernel, Statement};
use crate::ids::VarId;
use crate::index::{Index, Ranges};

/// Removes loops without effect.
pub(in crate::build) fn drop_idle_loops(kernel: &mut Kernel) {
    for at in 0..kernel.statements.len() {
        drop_idle_loops_of(kernel, at);
    }
}

/// Reports assignments of which only that of the last iteration counts.
pub(in crate::build) fn check_races(kernel: &mut Kernel) {
    let errors: Vec<DefinitionError> =
        kernel.statements.iter().filter_map(|statement| check_race(kernel, statement).err()).collect();
    kernel.errors.extend(errors);
}

impl Statement {
    /// Whether a loop's iterations write different elements.
    pub(in crate::build) fn is_spatial(&self, var: VarId) -> bool {
        self.indices.iter().any(|index| index.mentions(var))
    }

    /// Whether a loop executes the statement in order.
    pub(in crate::build) fn is_ordered(&self, var: VarId) -> bool {
        let mut own = self.loops.iter().zip(&self.recurrences);
        own.any(|(other, recurrence)| *other == var && recurrence.is_some())
    }

    /// The loops whose iterations contribute to the same element in any order, outermost first.
    pub(in crate::build) fn reduction(&self) -> impl Iterator<Item = VarId> + '_ {
        self.loops.iter().copied().filter(|&var| !self.is_spatial(var) && !self.is_ordered(var))
    }

    /// Whether the value or the conditions depend on a variable.
    fn depends_on(&self, var: VarId) -> bool {
        let mut found = false;
        for expr in self.effect.exprs().into_iter().chain(&self.conditions) {
            crate::visit::for_each_var(expr, &mut |other| found |= other == var);
        }
        found
    }
}

/// A loop that neither indexes the target nor changes the value of a plain assignment does nothing
/// when it runs at least once.
fn drop_idle_loops_of(kernel: &mut Kernel, at: usize) {
    let statement = &kernel.statements[at];
    let idle: Vec<(VarId, bool)> = statement
        .reduction()
        .filter_map(|var| {
            let extent = kernel.extent(var);
            let once = extent.is(1);
            let idle = matches!(statement.effect, Effect::Set(_))
                && !statement.depends_on(var)
                && extent.offset(-1).is_provably_nonnegative(&Ranges::new())
                && is_alone_in(kernel, at, var);
            (once || idle).then_some((var, once))
        })
        .collect();
    for (var, once) in idle {
        let statement = &mut kernel.statements[at];
        statement.loops.retain(|&other| other != var);
        statement.recurrences.pop();
        if once {
            let zero = |other: VarId| (other == var).then(|| Index::constant(0));
            statement.effect = statement.effect.map(|expr| crate::visit::substitute_expr(expr, &zero));
            for condition in &mut statement.conditions {
                *condition = crate::visit::substitute_expr(condition, &zero);
            }
        }
    }
}

/// Whether no other statement in a loop writes what a statement writes or reads, and none before it reads what it writes: every
/// iteration finds and leaves the same.
fn is_alone_in(kernel: &Kernel, at: usize, var: VarId) -> bool {
    let statement = &kernel.statements[at];
    let own = accesses(kernel, statement);
    let in_loop = kernel.statements.iter().enumerate().filter(|(_, other)| other.loops.contains(&var));
    in_loop.filter(|(other, _)| *other != at).all(|(position, other)| {
        let written = own.iter().any(|access| access.target == other.target);
        let read =
            position < at && accesses(kernel, other).iter().any(|access| access.target == statement.target);
        !written && !read
    })
}

fn written(kernel: &Kernel, statement: &Statement) -> String {
    render::element(kernel, &kernel.targets[statement.target], &statement.indices)
}

/// The variables that the value of the indices does not determine.
pub(in crate::build) fn undetermined(kernel: &Kernel, indices: &[Index], mut open: Vec<VarId>) -> Vec<VarId> {
    loop {
        let before = open.len();
        for index in indices {
            let mut terms: Vec<(VarId, i64)> = open
                .iter()
                .filter_map(|&var| index.linear_coefficient(var).map(|coefficient| (var, coefficient)))
                .filter(|(_, coefficient)| *coefficient != 0)
                .collect();
            if is_mixed_radix(kernel, &mut terms) {
                open.retain(|var| terms.iter().all(|(known, _)| known != var));
            }
        }
        if open.is_empty() || open.len() == before {
            return open;
        }
    }
}

/// Whether the value of a sum determines each of its variables: every coefficient is greater than all that
/// the smaller ones can add up to.
pub(in crate::build) fn is_mixed_radix(kernel: &Kernel, terms: &mut [(VarId, i64)]) -> bool {
    terms.sort_by_key(|(var, coefficient)| (Reverse(coefficient.unsigned_abs()), *var));
    let mut reach: i128 = 0;
    for (position, (var, coefficient)) in terms.iter().enumerate().rev() {
        let size = i128::from(coefficient.unsigned_abs());
        if size <= reach {
            return false;
        }
        match kernel.extent(*var).as_constant() {
            Some(extent) => reach += size * i128::from((extent - 1).max(0)),
            None if position == 0 => {}
            None => return false,
        }
    }
    true
}

fn check_race(kernel: &Kernel, statement: &Statement) -> Result<(), DefinitionError> {
    let Effect::Set(_) = &statement.effect else { return Ok(()) };
    let ordered = |var: &VarId| statement.is_ordered(*var);
    let Some(var) = statement.reduction().find(|var| !ordered(var)) else { return Ok(()) };
    let (element, name) = (written(kernel, statement), render::variable(kernel, var));
    let target = &kernel.targets[statement.target];
    let error = if target.shape.len() == target.prefix.len() {
        DefinitionError::new(
            format!("every iteration of `{name}` assigns `{element}`, so that only the last one counts"),
            statement.location,
            format!(
                "use `+=`, `.max(..)` or `.min(..)`, or declare `{element}` inside the loop over `{name}`"
            ),
        )
    } else {
        DefinitionError::new(
            format!("every iteration of `{name}` writes `{element}`"),
            statement.location,
            format!("use `+=`, or index by `{name}`"),
        )
    };
    Err(error)
}
