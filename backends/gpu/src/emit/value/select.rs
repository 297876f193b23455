//! Choices between two values, of which only one may be evaluated.

use smallvec::SmallVec;
use tilewright_core::expr::{Expr, ExprKind};
use tilewright_core::flat::value_number::Number;
use tilewright_core::visit;

use super::{bits_type, class_of};
use crate::emit::builder::{unless, when};
use crate::emit::{Generator, Outcome, Storage};
use crate::ptx::operand::{Operand, Register};
use crate::ptx::table::Op;
use crate::ptx::types::{Class, Type};

/// The lanes of a choice with the registers of their values.
type Results = SmallVec<[(u32, Register); 4]>;

impl Generator<'_> {
    /// `if condition { then } else { otherwise }`. Both are computed where neither can fault, otherwise the code branches: once for all
    /// lanes where they have one condition, so that elements beside each other are one load.
    pub(super) fn select(
        &mut self,
        expr: &Expr,
        [condition, then, otherwise]: [&Expr; 3],
        lane: u32,
    ) -> Outcome<Operand> {
        let class = class_of(then.dtype());
        let decided = self.value(condition, lane)?;
        if let Some(constant) = decided.integer() {
            return self.value(if constant != 0 { then } else { otherwise }, lane);
        }
        let (can_then, can_otherwise) = (self.is_at_hand(then, lane), self.is_at_hand(otherwise, lane));
        if can_then && can_otherwise {
            let [then, otherwise] = [self.value(then, lane)?, self.value(otherwise, lane)?];
            return self.pick(class, decided, then, otherwise);
        }
        let predicate = self.register_of(decided)?;
        let [whole, single] = [expr, condition].map(|expr| self.numbers.of(expr));
        let is_uniform = self.numbers.lanes(single) == 1;
        let together = is_uniform && !self.is_single_lane;
        let lanes = if together { lane..self.numbers.lanes(whole).max(lane + 1) } else { lane..lane + 1 };
        if can_otherwise || can_then {
            let (at_hand, loaded, guard) = match can_otherwise {
                true => (otherwise, then, when(predicate)),
                false => (then, otherwise, unless(predicate)),
            };
            let others: Outcome<SmallVec<[Operand; 4]>> =
                lanes.clone().map(|lane| self.value(at_hand, lane)).collect();
            if let Some(values) = self.load_where(guard, loaded, lane, &others?)? {
                self.remember(whole, lane, &values);
                return Ok(values[0]);
            }
        }
        let class = bits_type(class).class();
        let results: Results = lanes.map(|lane| (lane, self.builder.register(class))).collect();
        let end = self.builder.label();
        if can_otherwise || can_then {
            let (first, second, guard) = match can_otherwise {
                true => (otherwise, then, unless(predicate)),
                false => (then, otherwise, when(predicate)),
            };
            for (lane, result) in &results {
                let value = self.value(first, *lane)?;
                self.builder.assign(*result, value);
            }
            self.builder.branch(guard, end);
            self.branch_values(second, &results, is_uniform)?;
        } else {
            let other = self.builder.label();
            self.builder.branch(unless(predicate), other);
            self.branch_values(then, &results, is_uniform)?;
            self.builder.branch(None, end);
            self.builder.place(other);
            self.branch_values(otherwise, &results, is_uniform)?;
        }
        self.builder.place(end);
        let values: SmallVec<[Operand; 4]> = results.iter().map(|(_, result)| (*result).into()).collect();
        self.remember(whole, lane, &values);
        Ok(values[0])
    }

    /// Remembers the values of an expression in lanes from one on, for this statement.
    fn remember(&mut self, number: Number, first: u32, values: &[Operand]) {
        if let Some(memo) = self.memos.last_mut() {
            memo.extend((first..).zip(values).map(|(lane, value)| ((number, lane), *value)));
        }
    }

    /// Evaluates values that are not evaluated always. Nothing that they compute is known behind them.
    fn branch_values(&mut self, expr: &Expr, results: &Results, is_uniform: bool) -> Outcome<()> {
        let was_single = self.is_single_lane;
        self.is_single_lane |= !is_uniform;
        self.open_scope();
        let values: Outcome<SmallVec<[Operand; 4]>> =
            results.iter().map(|(lane, _)| self.value(expr, *lane)).collect();
        self.close_scope();
        self.is_single_lane = was_single;
        for ((_, result), value) in results.iter().zip(values?) {
            self.builder.assign(*result, value);
        }
        Ok(())
    }

    fn pick(
        &mut self,
        class: Class,
        condition: Operand,
        then: Operand,
        otherwise: Operand,
    ) -> Outcome<Operand> {
        if then == otherwise {
            return Ok(then);
        }
        if class != Class::Predicate {
            return Ok(self.builder.compute(Op::Select, bits_type(class), &[then, otherwise, condition]));
        }
        let [then, otherwise] = [then, otherwise].map(|operand| self.in_register(class, operand));
        let mut of = |op: Op, operands: &[Operand]| self.builder.compute(op, Type::Pred, operands);
        let first = of(Op::And, &[condition, then]);
        let not = of(Op::Not, &[condition]);
        let second = of(Op::And, &[not, otherwise]);
        Ok(of(Op::Or, &[first, second]))
    }

    /// Whether a value is there already, as one that the condition compares, or can be computed where it is not asked for.
    fn is_at_hand(&mut self, expr: &Expr, lane: u32) -> bool {
        self.known_value(expr, lane).is_some() || self.is_safe(expr)
    }

    /// Whether a value can be computed where it is not asked for: it loads from registers only, and checks nothing.
    fn is_safe(&mut self, expr: &Expr) -> bool {
        let number = self.numbers.of(expr);
        if let Some(known) = self.safe.get(&number) {
            return *known;
        }
        let in_index = |this: &Self, index| {
            let mut is_safe = true;
            visit::for_each_load_in_index(index, &mut |buffer, _| {
                is_safe &= matches!(this.storage.get(&buffer), Some(Storage::Registers(_)));
            });
            is_safe
        };
        let own = match expr.kind() {
            ExprKind::Load(buffer, _) => matches!(self.storage.get(buffer), Some(Storage::Registers(_))),
            ExprKind::Bounded(..) => false,
            ExprKind::Index(index) => in_index(self, index),
            _ => true,
        };
        let is_safe = own && expr.operands().into_iter().all(|operand| self.is_safe(operand));
        self.safe.insert(number, is_safe);
        is_safe
    }
}
