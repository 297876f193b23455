//! Arg-reductions: the place of a maximum or minimum, or what stands there.
//!
//! `if x[[j]] > best { best = x[[j]]; at = j; }` carries `best` from one iteration to the next, but what it leaves behind does
//! not depend on the order: `best` is the maximum, and `at` is the first place where it stands. So it becomes two reductions
//! in any order, which have vector code: the maximum, and the least position at which the value equals it. With `>=` it is
//! the greatest position. The other assignments of the branch are then computed at that position.
//!
//! An iteration that never improves on the first `best` leaves all as it was, and a NaN never does. Neither does
//! anything improve on a `best` that is NaN to begin with.

use crate::build::record::recording::Role;
use crate::build::record::value::Clock;
use crate::build::statement::{Effect, Kernel, LoopForm, Statement, Target};
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::ids::{BufferId, VarId};
use crate::index::Index;
use crate::visit::{for_each_load, for_each_load_in_index, for_each_var, substitute_expr};

/// Replaces every arg-reduction.
pub(in crate::build) fn recognise_arg_reductions(kernel: &mut Kernel) {
    let mut at = 0;
    while at < kernel.statements.len() {
        match find(kernel, at) {
            Some(found) => at = replace(kernel, found),
            None => at += 1,
        }
    }
}

/// Statements that stand next to each other under one comparison with the best value so far.
struct ArgReduction {
    /// The first of them: the one that stores the outcome of the comparison, if there is one.
    first: usize,
    /// The first of the branch.
    start: usize,
    /// One past the last.
    end: usize,
    /// The statement that keeps the best value.
    keeps: usize,
    /// The value that is compared.
    value: Expr,
    order: Order,
    /// The loops over candidates: the innermost ones.
    loops: Vec<VarId>,
}

/// Which value is better, and which of equal ones is taken.
#[derive(Clone, Copy)]
struct Order {
    greatest: bool,
    first: bool,
}

fn find(kernel: &Kernel, first: usize) -> Option<ArgReduction> {
    let opening = &kernel.statements[first];
    let (comparison, start) = match (&opening.effect, opening.conditions.last()) {
        (Effect::Set(value), _) if comparison_buffer(kernel, first) => (value.clone(), first + 1),
        (_, Some(condition)) => (condition.clone(), first),
        _ => return None,
    };
    let condition = kernel.statements.get(start)?.conditions.last()?;
    if start > first && !reads_alone(kernel, condition, opening.target) {
        return None;
    }
    let loops = &kernel.statements[start].loops;
    let outer = &kernel.statements[start].conditions;
    let together = |other: &&Statement| other.loops == *loops && other.conditions == *outer;
    let end = start + kernel.statements[start..].iter().take_while(together).count();
    let keeps = (start..end).find(|&at| compares(kernel, &comparison, &kernel.statements[at]).is_some())?;
    let (value, order) = compares(kernel, &comparison, &kernel.statements[keeps])?;
    let best = &kernel.statements[keeps];
    let inner = best.loops.iter().position(|var| !best.is_spatial(*var))?;
    let found = ArgReduction { first, start, end, keeps, value, order, loops: best.loops[inner..].to_vec() };
    (end > start + 1 && is_sound(kernel, &found)).then_some(found)
}

/// Whether a statement stores a comparison for the branches that follow it.
fn comparison_buffer(kernel: &Kernel, at: usize) -> bool {
    let statement = &kernel.statements[at];
    let target = &kernel.targets[statement.target];
    let readers = kernel.statements.iter().filter(|other| loads_target(kernel, other, statement.target));
    target.role == Role::Accumulator
        && target.prefix == statement.loops
        && matches!(&statement.effect, Effect::Set(value) if is_comparison(value))
        && readers.into_iter().all(|reader| {
            reader.conditions.last().is_some_and(|condition| reads_alone(kernel, condition, statement.target))
        })
}

fn is_comparison(value: &Expr) -> bool {
    matches!(value.kind(), ExprKind::Binary(op, ..) if op.is_comparison())
}

/// Whether a condition is an element of a tensor and nothing else.
fn reads_alone(kernel: &Kernel, condition: &Expr, target: usize) -> bool {
    matches!(condition.kind(), ExprKind::Load(read, _) if kernel.tensor_read(*read) == target)
}

/// The value that a statement takes when it is better than what its element holds.
fn compares(kernel: &Kernel, comparison: &Expr, statement: &Statement) -> Option<(Expr, Order)> {
    let ExprKind::Binary(op, left, right) = comparison.kind() else { return None };
    let Effect::Set(assigned) = &statement.effect else { return None };
    let new_is_left = left == assigned && kernel.is_own_read(statement, right);
    let new_is_right = right == assigned && kernel.is_own_read(statement, left);
    if new_is_left == new_is_right {
        return None;
    }
    let (greatest, first) = match (op, new_is_left) {
        (BinaryOp::Gt, true) | (BinaryOp::Lt, false) => (true, true),
        (BinaryOp::Ge, true) | (BinaryOp::Le, false) => (true, false),
        (BinaryOp::Lt, true) | (BinaryOp::Gt, false) => (false, true),
        (BinaryOp::Le, true) | (BinaryOp::Ge, false) => (false, false),
        _ => return None,
    };
    Some((assigned.clone(), Order { greatest, first }))
}

/// Whether the order of the candidates makes no difference: nothing else in their loops meets what the statements
/// assign, and what they read is the same in all iterations or belongs to one of them.
fn is_sound(kernel: &Kernel, found: &ArgReduction) -> bool {
    let best = &kernel.statements[found.keeps];
    let (outer, inner) = best.loops.split_at(best.loops.len() - found.loops.len());
    let branch = &kernel.statements[found.start..found.end];
    let assigned: Vec<usize> =
        kernel.statements[found.first..found.end].iter().map(|member| member.target).collect();
    let are_split = outer.iter().all(|&var| best.is_spatial(var))
        && branch.iter().all(|member| {
            matches!(member.effect, Effect::Set(_)) && !inner.iter().any(|&var| member.is_spatial(var))
        });
    let are_distinct = assigned.iter().enumerate().all(|(at, target)| !assigned[..at].contains(target));
    let inside = || kernel.statements.iter().enumerate().filter(|(_, other)| other.loops.contains(&inner[0]));
    let others_keep_away =
        inside().filter(|(at, _)| !(found.first..found.end).contains(at)).all(|(_, other)| {
            !assigned.contains(&other.target)
                && !assigned.iter().any(|target| loads_target(kernel, other, *target))
        });
    let stays = |target: usize| {
        !assigned.contains(&target)
            && (inside().all(|(_, other)| other.target != target)
                || inner.iter().all(|var| kernel.targets[target].prefix.contains(var)))
    };
    let operands_stay = branch.iter().all(|member| {
        let mut stay = true;
        let mut check = |read: BufferId, _: &_| stay &= stays(kernel.tensor_read(read));
        let (_, outer) = member.conditions.split_last().expect("a branch has a condition");
        for expr in member.effect.exprs().into_iter().chain(outer) {
            for_each_load(expr, &mut check);
        }
        member.indices.iter().for_each(|index| for_each_load_in_index(index, &mut check));
        stay
    });
    are_split && are_distinct && others_keep_away && operands_stay
}

fn loads_target(kernel: &Kernel, statement: &Statement, target: usize) -> bool {
    let mut found = false;
    for_each_read(kernel, statement, &mut |read| found |= read == target);
    found
}

/// Calls `visit` with each tensor that a statement reads.
fn for_each_read(kernel: &Kernel, statement: &Statement, visit: &mut dyn FnMut(usize)) {
    let mut read = |buffer: BufferId, _: &_| visit(kernel.tensor_read(buffer));
    for expr in statement.effect.exprs().into_iter().chain(&statement.conditions) {
        for_each_load(expr, &mut read);
    }
    for index in &statement.indices {
        for_each_load_in_index(index, &mut read);
    }
}

/// Puts two reductions, and assignments after them, in the place of an arg-reduction; the position after them.
fn replace(kernel: &mut Kernel, found: ArgReduction) -> usize {
    let best = kernel.statements[found.keeps].clone();
    let outer: Vec<VarId> = best.loops[..best.loops.len() - found.loops.len()].to_vec();
    let conditions = best.conditions[..best.conditions.len() - 1].to_vec();
    let dtype = kernel.targets[best.target].dtype;
    let others: Vec<Statement> = kernel.statements[found.start..found.end]
        .iter()
        .filter(|member| member.target != best.target)
        .cloned()
        .collect();
    let mut made = Replacement { outer: &outer, location: best.location, statements: Vec::new() };

    let start = made.element(kernel, "start", dtype);
    let first = read(kernel, best.target, best.clock, best.indices.clone());
    made.assign(start, 0, first, true);
    let before = read(kernel, start, 1, made.indices());

    let op = if found.order.greatest { BinaryOp::Max } else { BinaryOp::Min };
    made.statements.push(Statement {
        conditions: conditions.clone(),
        effect: Effect::Combine(op, found.value.clone()),
        ..best.clone()
    });
    let after = read(kernel, best.target, best.clock + 1, best.indices.clone());

    // The search for the place begins when the best value is known: in loops of its own.
    let again: Vec<VarId> = found.loops.iter().map(|&var| copy_loop(kernel, var)).collect();
    let in_again = |var: VarId| {
        let at = found.loops.iter().position(|own| *own == var)?;
        Some(Index::var(again[at]))
    };
    let count = Position::of(kernel, &found.loops);
    let nowhere = Expr::int(count.dtype, if found.order.first { count.greatest } else { -1 });
    let place = made.element(kernel, "place", count.dtype);
    made.assign(place, 0, nowhere.clone(), true);
    let is_best = Expr::binary(BinaryOp::Eq, found.value.clone(), after.clone());
    let candidate =
        Expr::select(is_best, Expr::cast(count.dtype, Expr::index(count.index.clone())), nowhere.clone());
    let op = if found.order.first { BinaryOp::Min } else { BinaryOp::Max };
    let candidate = substitute_expr(&candidate, &in_again);
    let mut search = made.statement(place, 1, Effect::Combine(op, candidate), false);
    search.loops.extend(&again);
    search.recurrences = vec![None; search.loops.len()];
    search.conditions = conditions.iter().map(|condition| substitute_expr(condition, &in_again)).collect();
    made.statements.push(search);
    let place = read(kernel, place, 2, made.indices());

    let better = match (found.order.greatest, found.order.first) {
        (true, true) => BinaryOp::Gt,
        (true, false) => BinaryOp::Ge,
        (false, true) => BinaryOp::Lt,
        (false, false) => BinaryOp::Le,
    };
    let improved = Expr::binary(better, after.clone(), before.clone());
    let somewhere = Expr::binary(BinaryOp::Ne, place.clone(), nowhere);
    let improved = Expr::binary(BinaryOp::And, improved, somewhere);
    let values = count.decode(&Expr::cast(DType::I64, place));
    let at_place = |var: VarId| values.iter().find(|(own, _)| *own == var).map(|(_, value)| value.clone());
    for other in others {
        let mut kept: Vec<Expr> =
            conditions.iter().filter(|condition| !mentions(condition, &found.loops)).cloned().collect();
        kept.push(improved.clone());
        made.statements.push(Statement {
            loops: outer.clone(),
            recurrences: vec![None; outer.len()],
            conditions: kept,
            effect: other.effect.map(|expr| substitute_expr(expr, &at_place)),
            ..other
        });
    }
    if dtype.is_float() {
        // Nothing is better than a NaN.
        let is_number = Expr::binary(BinaryOp::Eq, before.clone(), before.clone());
        made.statements.push(Statement {
            loops: outer.clone(),
            recurrences: vec![None; outer.len()],
            conditions: Vec::new(),
            effect: Effect::Set(Expr::select(is_number, after, before)),
            clock: best.clock + 1,
            ..best.clone()
        });
    }
    let Replacement { statements, .. } = made;
    let end = found.first + statements.len();
    kernel.statements.splice(found.first..found.end, statements);
    end
}

/// Another loop over the same values.
fn copy_loop(kernel: &mut Kernel, var: VarId) -> VarId {
    let copy = VarId(kernel.first_loop + kernel.loops.len() as u32);
    let form = kernel.loop_of(var).expect("an assignment's loops are loops");
    let to_copy = |other: VarId| (other == var).then(|| Index::var(copy));
    let form = LoopForm {
        name: form.name.clone(),
        var: copy,
        extent: form.extent.clone(),
        value: form.value.substitute(&to_copy),
        conditions: form.conditions.iter().map(|condition| substitute_expr(condition, &to_copy)).collect(),
    };
    kernel.ranges.insert(copy, form.extent.clone());
    kernel.loops.push(form);
    copy
}

fn mentions(expr: &Expr, vars: &[VarId]) -> bool {
    let mut found = false;
    for_each_var(expr, &mut |var| found |= vars.contains(&var));
    found
}

/// A tensor's element at a time.
fn read(kernel: &mut Kernel, target: usize, clock: Clock, indices: Vec<Index>) -> Expr {
    kernel.reads.push((target, clock));
    let dtype = kernel.targets[target].dtype;
    Expr::load(dtype, BufferId(kernel.reads.len() as u32 - 1), indices)
}

/// The statements that replace an arg-reduction.
struct Replacement<'a> {
    /// The loops around the loops over candidates.
    outer: &'a [VarId],
    location: Option<crate::build::SourceLocation>,
    statements: Vec<Statement>,
}

impl Replacement<'_> {
    fn indices(&self) -> Vec<Index> {
        self.outer.iter().map(|&var| Index::var(var)).collect()
    }

    /// A new element for each iteration of the outer loops.
    fn element(&self, kernel: &mut Kernel, name: &str, dtype: DType) -> usize {
        kernel.targets.push(Target {
            name: name.to_owned(),
            dtype,
            prefix: self.outer.to_vec(),
            shape: self.outer.iter().map(|&var| kernel.extent(var).clone()).collect(),
            role: Role::Accumulator,
            location: self.location,
        });
        kernel.whole.push(self.outer.to_vec());
        kernel.targets.len() - 1
    }

    fn statement(&self, target: usize, clock: Clock, effect: Effect, initial: bool) -> Statement {
        Statement {
            loops: self.outer.to_vec(),
            recurrences: vec![None; self.outer.len()],
            conditions: Vec::new(),
            target,
            indices: self.indices(),
            effect,
            clock,
            initial,
            location: self.location,
        }
    }

    fn assign(&mut self, target: usize, clock: Clock, value: Expr, initial: bool) {
        let statement = self.statement(target, clock, Effect::Set(value), initial);
        self.statements.push(statement);
    }
}

/// The number of an iteration of some loops, in the order of their execution.
struct Position {
    index: Index,
    /// The loops with the extents of those inside of each.
    loops: Vec<(VarId, Index)>,
    dtype: DType,
    /// The greatest number of the type.
    greatest: i64,
}

impl Position {
    fn of(kernel: &Kernel, loops: &[VarId]) -> Self {
        let mut index = Index::constant(0);
        for &var in loops {
            index = &index.multiply(kernel.extent(var)) + &Index::var(var);
        }
        let extents: Vec<Index> = loops.iter().map(|&var| kernel.extent(var).clone()).collect();
        let inside = |level: usize| {
            extents[level + 1..].iter().fold(Index::constant(1), |product, extent| product.multiply(extent))
        };
        let loops: Vec<(VarId, Index)> =
            loops.iter().enumerate().map(|(level, &var)| (var, inside(level))).collect();
        let count = extents.iter().try_fold(1i64, |count, extent| count.checked_mul(extent.as_constant()?));
        // Narrow numbers fill vectors like those of the values.
        match count {
            Some(count) if count < i64::from(i32::MAX) => {
                Position { index, loops, dtype: DType::I32, greatest: i64::from(i32::MAX) }
            }
            _ => Position { index, loops, dtype: DType::I64, greatest: i64::MAX },
        }
    }

    /// The values of the loop variables at a position.
    fn decode(&self, position: &Expr) -> Vec<(VarId, Index)> {
        let mut rest = position.clone();
        let mut values = Vec::new();
        for (var, inside) in &self.loops {
            let size = Expr::index(inside.clone());
            let value = match inside.as_constant() {
                Some(1) => rest.clone(),
                _ => Expr::binary(BinaryOp::Div, rest.clone(), size.clone()),
            };
            rest = Expr::binary(BinaryOp::Rem, rest, size);
            values.push((*var, Index::value(value)));
        }
        values
    }
}
