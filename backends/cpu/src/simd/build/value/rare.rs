//! Selections of long computations: a branch leaves out a side that no lane wants.
//!
//! The reduction of large angles takes several times as long as everything else about a sine, and few programs have large angles.
//! A computation that is long enough is therefore made only where some lane chooses it. All selections by the same condition share
//! the branch, because they share most of their computations.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_core::expr::{Expr, ExprKind};

use crate::simd::build::value::group::{Form, Group};
use crate::simd::build::{Builder, Outcome};
use crate::simd::ir::{Inst, Op, Operand, Reg};
use crate::simd::x86::VectorOp;

/// The operations of a side that is worth a branch. A branch that is mispredicted costs about as much as this many operations.
const LONG: usize = 40;

/// A selection with a side that is long.
struct Rare<'e> {
    whole: &'e Expr,
    condition: &'e Expr,
    then: &'e Expr,
    otherwise: &'e Expr,
}

impl<'e> Rare<'e> {
    /// `None` for other expressions, and where `then` is not long.
    fn of(whole: &'e Expr) -> Option<Self> {
        let ExprKind::Select(condition, then, otherwise) = whole.kind() else { return None };
        let mut known = FxHashSet::default();
        count_operations(condition, &mut known);
        count_operations(otherwise, &mut known);
        let is_long = count_operations(then, &mut known) >= LONG && Form::of(then.dtype()) != Form::Bool;
        is_long.then_some(Rare { whole, condition, then, otherwise })
    }
}

impl Builder<'_> {
    /// The value of a selection whose first side is long, with a branch around that side; `None` for any other selection, and where
    /// no branch can be.
    pub(super) fn select_rarely(&mut self, whole: &Expr, group: Group) -> Outcome<Option<Reg>> {
        let Some(rare) = Rare::of(whole).filter(|rare| self.hoisted_to.is_none() && self.is_rare(rare))
        else {
            return Ok(None);
        };
        let statement = self.statement.clone();
        let mut together = vec![rare];
        if let Some(statement) = &statement {
            self.add_others(statement, &mut together);
        }
        let test = self.value(together[0].condition, group)?;
        let wanted = self.bits_of_mask(test, group)?;
        let mut results = Vec::with_capacity(together.len());
        for rare in &together {
            let form = Form::of(rare.then.dtype());
            let otherwise = self.value(rare.otherwise, group)?;
            results.push((otherwise, self.copy(otherwise, form, group)?));
        }
        self.open_branch();
        self.memos.push(FxHashMap::default());
        for (rare, (otherwise, result)) in together.iter().zip(&results) {
            let form = Form::of(rare.then.dtype());
            let then = self.value(rare.then, group)?;
            let chosen = self.blend(test, then, *otherwise, form, group)?;
            let load = Op::Vector(VectorOp::Load);
            self.push(Inst::new(load, group.width(form), Some(*result), [Operand::Reg(chosen)]));
        }
        self.memos.pop();
        let then = self.close_branch();
        self.push_branch(wanted, then);
        for (rare, (_, result)) in together.iter().zip(&results) {
            let key = (self.numbers.of(rare.whole), group);
            if let Some(memo) = self.memos.last_mut() {
                memo.insert(key, *result);
            }
        }
        Ok(results.first().map(|(_, result)| *result))
    }

    fn is_rare(&self, rare: &Rare<'_>) -> bool {
        self.is_total(rare.then) && self.is_total(rare.otherwise)
    }

    /// Adds the other selections in the statement by the condition of the first one. None of them depends on another.
    fn add_others<'e>(&mut self, statement: &'e Expr, together: &mut Vec<Rare<'e>>) {
        let condition = self.numbers.of(together[0].condition);
        let mut known = vec![self.numbers.of(together[0].whole)];
        let lanes = self.numbers.lanes(known[0]);
        let mut candidates = Vec::new();
        selections(statement, &mut FxHashSet::default(), &mut candidates);
        for candidate in candidates {
            let ExprKind::Select(own, then, otherwise) = candidate.kind() else { continue };
            let number = self.numbers.of(candidate);
            if self.numbers.of(own) != condition
                || known.contains(&number)
                || self.numbers.lanes(number) != lanes
            {
                continue;
            }
            let mut inside = Vec::new();
            let mut seen = FxHashSet::default();
            [then, otherwise].into_iter().for_each(|side| selections(side, &mut seen, &mut inside));
            let is_apart = !inside.iter().any(|inner| match inner.kind() {
                ExprKind::Select(own, ..) => self.numbers.of(own) == condition,
                _ => false,
            });
            if let Some(rare) = Rare::of(candidate).filter(|rare| is_apart && self.is_rare(rare)) {
                known.push(number);
                together.push(rare);
            }
        }
    }
}

/// The operations in an expression that are not yet known, each once.
fn count_operations(expr: &Expr, known: &mut FxHashSet<usize>) -> usize {
    if matches!(expr.kind(), ExprKind::Constant(_)) || !known.insert(expr.address()) {
        return 0;
    }
    1 + expr.operands().into_iter().map(|operand| count_operations(operand, known)).sum::<usize>()
}

/// The selections in an expression, each once.
fn selections<'e>(expr: &'e Expr, seen: &mut FxHashSet<usize>, found: &mut Vec<&'e Expr>) {
    if !seen.insert(expr.address()) {
        return;
    }
    if let ExprKind::Select(..) = expr.kind() {
        found.push(expr);
    }
    expr.operands().into_iter().for_each(|operand| selections(operand, seen, found));
}
