//! Versions of tensors: single assignment where the definition overwrites.
//!
//! An assignment that defines every element of a tensor opens a new version, which has a buffer of its own; only
//! the last version of a parameter is the parameter. An assignment to a part writes into the current version.

use std::collections::BTreeMap;

use super::loads::replace_loads;
use crate::build::elaborate::expressions::reads_memory;
use crate::build::error::{DefinitionError, SourceLocation};
use crate::build::order::recurrence::{Recurrence, is_cut_by_recurrences};
use crate::build::record::recording::Role;
use crate::build::record::value::Clock;
use crate::build::statement::{Effect, Kernel, Statement};
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, ExprKind, Indices};
use crate::ids::{BufferId, VarId};
use crate::index::Index;
use crate::visit::{for_each_load, for_each_load_in_index};

/// One block to be: `if condition { version[indices] = … }` over loops. A buffer in an expression is the
/// number of a version.
#[derive(Clone, Debug)]
pub(in crate::build) struct Assignment {
    pub(in crate::build) loops: Vec<VarId>,
    /// For each loop, the recurrence that executes the assignment in order, if there is one.
    pub(in crate::build) recurrences: Vec<Option<Recurrence>>,
    pub(in crate::build) condition: Option<Expr>,
    pub(in crate::build) version: usize,
    pub(in crate::build) indices: Indices,
    /// The element's value before the first contribution of a reduction.
    pub(in crate::build) init: Option<Expr>,
    pub(in crate::build) effect: Effect,
    /// Whether this only gives a tensor its initial value.
    pub(in crate::build) initial: bool,
    pub(in crate::build) location: Option<SourceLocation>,
}

/// The contents of a tensor between two assignments that define all of it.
#[derive(Clone, Debug)]
pub(in crate::build) struct Version {
    pub(in crate::build) target: usize,
    /// Whether the caller defines the contents.
    pub(in crate::build) external: bool,
    /// The version whose buffer this one uses: itself, or the first for the last version of a parameter.
    pub(in crate::build) storage: usize,
}

/// A definition in single-assignment form where possible.
pub(in crate::build) struct Versioned {
    pub(in crate::build) versions: Vec<Version>,
    /// In order of execution; `None` where one has been removed.
    pub(in crate::build) assignments: Vec<Option<Assignment>>,
    /// The last version of each tensor that has one.
    pub(in crate::build) last: BTreeMap<usize, usize>,
}

impl Assignment {
    /// Whether the loop's iterations contribute to the same element, in any order.
    pub(in crate::build) fn reduces(&self, var: VarId) -> bool {
        !self.indices.iter().any(|index| index.mentions(var)) && !self.is_ordered(var)
    }

    /// Whether a loop executes the assignment in order.
    pub(in crate::build) fn is_ordered(&self, var: VarId) -> bool {
        let mut own = self.loops.iter().zip(&self.recurrences);
        own.any(|(other, recurrence)| *other == var && recurrence.is_some())
    }

    /// Whether both stand in the same iterations of the same recurrences.
    pub(in crate::build) fn stands_with(&self, other: &Assignment) -> bool {
        self.recurrences.iter().flatten().eq(other.recurrences.iter().flatten())
    }

    /// Whether some loop neither indexes the element nor combines values: each of its iterations assigns it.
    pub(in crate::build) fn overwrites(&self) -> bool {
        self.loops.iter().any(|&var| !self.indices.iter().any(|index| index.mentions(var)))
    }

    /// Every expression.
    pub(in crate::build) fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.effect.exprs().into_iter().chain(&self.init).chain(&self.condition)
    }

    /// Rewrites every expression, also those inside indices.
    pub(in crate::build) fn map(&mut self, map: &dyn Fn(&Expr) -> Expr) {
        for index in &mut self.indices {
            *index = map_index(index, map);
        }
        self.effect = self.effect.map(map);
        self.init = self.init.as_ref().map(map);
        self.condition = self.condition.as_ref().map(map);
    }

    /// Calls `visit` with the version and the indices of each element that is read.
    pub(in crate::build) fn for_each_read<'a>(&'a self, visit: &mut dyn FnMut(usize, &'a Indices)) {
        let mut visit = |version: BufferId, indices| visit(version.0 as usize, indices);
        self.exprs().for_each(|expr| for_each_load(expr, &mut visit));
        self.indices.iter().for_each(|index| for_each_load_in_index(index, &mut visit));
    }

    /// The loop variables that index the dimensions, when each is indexed by one of its own and nothing else.
    pub(in crate::build) fn plain_indices(&self) -> Option<Vec<VarId>> {
        plain_indices(&self.indices)
    }
}

/// An index rewritten as a value, where it reads elements.
pub(in crate::build) fn map_index(index: &Index, map: &dyn Fn(&Expr) -> Expr) -> Index {
    let mut reads = false;
    for_each_load_in_index(index, &mut |_, _| reads = true);
    if !reads {
        return index.clone();
    }
    let mapped = map(&Expr::index(index.clone()));
    match mapped.kind() {
        ExprKind::Index(index) => index.clone(),
        _ => Index::value(mapped),
    }
}

/// The variables of indices that are distinct variables and nothing else.
pub(in crate::build) fn plain_indices(indices: &[Index]) -> Option<Vec<VarId>> {
    let vars: Vec<VarId> = indices.iter().map(Index::as_var).collect::<Option<_>>()?;
    let distinct = vars.iter().enumerate().all(|(at, var)| !vars[..at].contains(var));
    distinct.then_some(vars)
}

/// Splits tensors into versions.
pub(in crate::build) fn assign_versions(kernel: &mut Kernel) -> Versioned {
    let mut versioning = Versioning {
        result: Versioned { versions: Vec::new(), assignments: Vec::new(), last: BTreeMap::new() },
        history: BTreeMap::new(),
        errors: Vec::new(),
    };
    for (number, target) in kernel.targets.iter().enumerate() {
        if matches!(target.role, Role::Input | Role::Constant | Role::InOut) {
            versioning.open(number, None);
        }
    }
    for statement in &kernel.statements {
        versioning.add(kernel, statement);
    }
    let Versioning { mut result, errors, .. } = versioning;
    for (&target, &last) in &result.last {
        if kernel.targets[target].role == Role::InOut {
            let first = result.versions.iter().position(|version| version.target == target);
            result.versions[last].storage = first.unwrap_or(last);
        }
    }
    kernel.errors.extend(errors);
    result
}

struct Versioning {
    result: Versioned,
    /// For each tensor, when its versions were opened; parameters start with `None`.
    history: BTreeMap<usize, Vec<(Option<Clock>, usize)>>,
    errors: Vec<DefinitionError>,
}

impl Versioning {
    fn open(&mut self, target: usize, clock: Option<Clock>) -> usize {
        let version = self.result.versions.len();
        let external = clock.is_none();
        self.result.versions.push(Version { target, external, storage: version });
        self.history.entry(target).or_default().push((clock, version));
        self.result.last.insert(target, version);
        version
    }

    /// The version that a read at `clock` sees.
    fn version_at(&self, target: usize, clock: Clock) -> Option<usize> {
        let history = self.history.get(&target)?;
        history
            .iter()
            .rev()
            .find(|(opened, _)| opened.is_none_or(|opened| opened < clock))
            .map(|entry| entry.1)
    }

    fn add(&mut self, kernel: &Kernel, statement: &Statement) {
        let target = &kernel.targets[statement.target];
        let effect = statement.effect.map(|expr| self.resolve(kernel, statement, expr));
        let condition = all_of(&statement.conditions).map(|all| self.resolve(kernel, statement, &all));
        let indices: Indices = statement
            .indices
            .iter()
            .map(|index| {
                let cell = std::cell::RefCell::new(&mut *self);
                map_index(index, &|expr| cell.borrow_mut().resolve(kernel, statement, expr))
            })
            .collect();
        let current = self.result.last.get(&statement.target).copied();
        let read = |version: usize| Expr::load(target.dtype, BufferId(version as u32), indices.clone());
        if current.is_none() && !matches!(effect, Effect::Set(_)) {
            self.report_undefined(kernel, statement, statement.target);
            return;
        }
        let reduces = statement.reduction().next().is_some();
        let mut assignment = Assignment {
            loops: statement.loops.clone(),
            recurrences: statement.recurrences.clone(),
            condition: None,
            version: 0,
            indices: indices.clone(),
            init: None,
            effect,
            initial: statement.initial,
            location: statement.location,
        };
        let old = || current.map_or_else(|| Expr::zero(target.dtype), read);
        if covers(kernel, statement) && is_cut_by_recurrences(kernel, statement) {
            if reduces {
                assignment.init = Some(old());
                if let Some(condition) = &condition {
                    assignment.effect = assignment.effect.contribute_if(condition);
                }
            } else {
                let value = assignment.effect.value(old());
                assignment.effect = Effect::Set(match condition {
                    Some(condition) => Expr::select(condition, value, old()),
                    None => value,
                });
            }
            assignment.version = self.open(statement.target, Some(statement.clock));
        } else {
            // The element itself may exist only under the condition.
            assignment.version = current.unwrap_or_else(|| self.clear(kernel, statement));
            assignment.condition = condition;
            if !reduces {
                assignment.effect = Effect::Set(assignment.effect.value(read(assignment.version)));
            }
        }
        self.result.assignments.push(Some(assignment));
    }

    /// Opens a version full of zeros for a tensor of which only a part is written at first.
    fn clear(&mut self, kernel: &Kernel, statement: &Statement) -> usize {
        let target = &kernel.targets[statement.target];
        let version = self.open(statement.target, Some(statement.clock));
        let whole = kernel.whole[statement.target].clone();
        let zeros = Assignment {
            condition: None,
            version,
            indices: whole.iter().map(|&var| Index::var(var)).collect(),
            recurrences: vec![None; whole.len()],
            loops: whole,
            init: None,
            effect: Effect::Set(Expr::zero(target.dtype)),
            initial: true,
            location: target.location,
        };
        // A recurrence stays in one piece.
        let outermost = statement.recurrences.iter().flatten().next();
        let in_recurrence = |assignment: &Option<Assignment>| {
            let assignment = assignment.as_ref();
            outermost.is_some()
                && assignment.is_some_and(|a| a.recurrences.iter().flatten().next() == outermost)
        };
        let behind = self.result.assignments.iter().rev().take_while(|a| in_recurrence(a)).count();
        self.result.assignments.insert(self.result.assignments.len() - behind, Some(zeros));
        version
    }

    /// Replaces reads of tensors at times by reads of versions.
    fn resolve(&mut self, kernel: &Kernel, statement: &Statement, expr: &Expr) -> Expr {
        let mut undefined = None;
        for_each_load(expr, &mut |read, _| {
            let (target, clock) = kernel.reads[read.0 as usize];
            if self.version_at(target, clock).is_none() {
                undefined = Some(target);
            }
        });
        if let Some(target) = undefined {
            self.report_undefined(kernel, statement, target);
            return Expr::zero(expr.dtype());
        }
        replace_loads(expr, &|dtype: DType, read: BufferId, indices: Indices| {
            let (target, clock) = kernel.reads[read.0 as usize];
            let version = self.version_at(target, clock).expect("every read is of a version");
            Expr::load(dtype, BufferId(version as u32), indices)
        })
    }

    fn report_undefined(&mut self, kernel: &Kernel, statement: &Statement, target: usize) {
        let target = &kernel.targets[target];
        self.errors.push(
            DefinitionError::new(
                format!("`{}` is used before anything has been written to it", target.name),
                statement.location,
                "start from zeros, or from another initial value",
            )
            .note("declared here", target.location),
        );
    }
}

/// Whether a statement defines every element of its target, one loop per dimension.
fn covers(kernel: &Kernel, statement: &Statement) -> bool {
    let shape = &kernel.targets[statement.target].shape;
    let mut vars: Vec<VarId> = Vec::new();
    statement.indices.iter().zip(shape).all(|(index, extent)| match index.as_var() {
        Some(var) => {
            let is_new = !vars.contains(&var);
            vars.push(var);
            is_new && kernel.extent(var) == extent
        }
        // The only element along its dimension.
        None => index.is(0) && extent.is(1),
    })
}

/// One condition for all, each evaluated only where those before it hold, if it reads memory.
fn all_of(conditions: &[Expr]) -> Option<Expr> {
    conditions.iter().cloned().reduce(|all, next| {
        if reads_memory(&next) {
            Expr::select(all, next, Expr::bool(false))
        } else {
            Expr::binary(BinaryOp::And, all, next)
        }
    })
}
