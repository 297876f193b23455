//! The iteration domain of each assignment: which loops are spatial, which reduce, and which writes are races.

use std::cmp::Reverse;

use super::error::DefinitionError;
use super::render;
use super::statement::{Effect, Kernel, Statement};
use crate::ids::VarId;
use crate::index::{Index, Ranges};
use crate::visit::{for_each_load, for_each_load_in_index};

/// Removes loops without effect and reports writes that are no schedulable assignment: races, and
/// indices that are not affine or not injective.
pub(super) fn check_domains(kernel: &mut Kernel) {
    for at in 0..kernel.statements.len() {
        drop_idle_loops(kernel, at);
        let statement = &kernel.statements[at];
        let found = check_affine(kernel, statement)
            .and_then(|()| check_injective(kernel, statement))
            .and_then(|()| check_race(kernel, statement));
        kernel.errors.extend(found.err());
    }
}

impl Statement {
    /// Whether a loop's iterations write different elements.
    pub(super) fn is_spatial(&self, var: VarId) -> bool {
        self.indices.iter().any(|index| index.mentions(var))
    }

    /// The loops whose iterations contribute to the same element, outermost first.
    pub(super) fn reduction(&self) -> impl Iterator<Item = VarId> + '_ {
        self.loops.iter().copied().filter(|&var| !self.is_spatial(var))
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
fn drop_idle_loops(kernel: &mut Kernel, at: usize) {
    let statement = &kernel.statements[at];
    let idle: Vec<(VarId, bool)> = statement
        .reduction()
        .filter_map(|var| {
            let extent = kernel.extent(var);
            let once = extent.is(1);
            let idle = matches!(statement.effect, Effect::Set(_))
                && !statement.depends_on(var)
                && extent.offset(-1).is_provably_nonnegative(&Ranges::new());
            (once || idle).then_some((var, once))
        })
        .collect();
    for (var, once) in idle {
        let statement = &mut kernel.statements[at];
        statement.loops.retain(|&other| other != var);
        if once {
            let zero = |other: VarId| (other == var).then(|| Index::constant(0));
            statement.effect = statement.effect.map(|expr| crate::visit::substitute_expr(expr, &zero));
            for condition in &mut statement.conditions {
                *condition = crate::visit::substitute_expr(condition, &zero);
            }
        }
    }
}

fn written(kernel: &Kernel, statement: &Statement) -> String {
    render::element(kernel, &kernel.targets[statement.target], &statement.indices)
}

fn check_affine(kernel: &Kernel, statement: &Statement) -> Result<(), DefinitionError> {
    let element = written(kernel, statement);
    let name = &kernel.targets[statement.target].name;
    for index in &statement.indices {
        let mut reads = false;
        for_each_load_in_index(index, &mut |_, _| reads = true);
        if reads {
            return Err(DefinitionError::new(
                format!("the element `{element}` that is written is chosen by data"),
                statement.location,
                format!(
                    "write it in gather form: loop over every element of `{name}` and collect what belongs to it, \
                     under an `if` or with an index that is read"
                ),
            ));
        }
        if statement.loops.iter().any(|&var| index.linear_coefficient(var).is_none()) {
            return Err(DefinitionError::new(
                format!(
                    "the element `{element}` that is written is not an affine function of the loop variables"
                ),
                statement.location,
                format!(
                    "write it in gather form: loop over every element of `{name}`, one loop variable per dimension, and \
                     compute where its value comes from"
                ),
            ));
        }
    }
    Ok(())
}

fn check_injective(kernel: &Kernel, statement: &Statement) -> Result<(), DefinitionError> {
    let spatial: Vec<VarId> =
        statement.loops.iter().copied().filter(|&var| statement.is_spatial(var)).collect();
    let open = undetermined(kernel, &statement.indices, spatial);
    let Some(&var) = open.first() else { return Ok(()) };
    let element = written(kernel, statement);
    let names: Vec<String> = open.iter().map(|&var| format!("`{}`", render::variable(kernel, var))).collect();
    Err(DefinitionError::new(
        format!("different iterations of {} may write the same element `{element}`", names.join(" and ")),
        statement.location,
        format!(
            "write it in gather form: loop over every element of `{}`, one loop variable per dimension, and sum up what \
             belongs to it; `{}` then appears in the index that is read",
            kernel.targets[statement.target].name,
            render::variable(kernel, var)
        ),
    ))
}

/// The variables that the value of the indices does not determine.
fn undetermined(kernel: &Kernel, indices: &[Index], mut open: Vec<VarId>) -> Vec<VarId> {
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
pub(super) fn is_mixed_radix(kernel: &Kernel, terms: &mut [(VarId, i64)]) -> bool {
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
    let Effect::Set(value) = &statement.effect else { return Ok(()) };
    let Some(var) = statement.reduction().next() else { return Ok(()) };
    let (element, name) = (written(kernel, statement), render::variable(kernel, var));
    let mut reads_itself = false;
    for_each_load(value, &mut |read, _| reads_itself |= kernel.tensor_read(read) == statement.target);
    let target = &kernel.targets[statement.target];
    let error = if reads_itself {
        DefinitionError::new(
            format!("each iteration of `{name}` computes `{element}` from the previous iteration's"),
            statement.location,
            format!(
                "accumulate with `+=`, `*=`, `.max(..)` or `.min(..)`, whose order does not matter; a recurrence over `{name}` has \
                 no parallel form"
            ),
        )
    } else if target.shape.len() == target.prefix.len() {
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
