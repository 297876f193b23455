//! Loads of several statements as one.
//!
//! Copies of an unrolled statement load single elements that lie beside each other, such as the steps of a product along a row of its
//! first factor. Where statements follow each other, the first of these loads brings the elements of the others along.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_core::dtype::DType;
use tilewright_core::expr::{Expr, ExprKind};
use tilewright_core::flat::value_number::Number;
use tilewright_core::ids::BufferId;
use tilewright_core::index::Index;
use tilewright_core::stmt::{Stmt, Store, StoreKind};

use super::access::{MAX_BYTES, chosen_by_data};
use crate::emit::{Generator, Outcome, Place, Storage};
use crate::ptx::operand::Operand;

/// The single elements that statements load in any case: for each buffer and variable part of an index, the constant parts and the
/// numbers of the expressions.
pub(in crate::emit) type Ahead = FxHashMap<(BufferId, Index), BTreeMap<i64, Number>>;

impl Generator<'_> {
    /// Writes statements that follow each other.
    pub(in crate::emit) fn sequence(&mut self, stmts: &[Stmt]) -> Outcome<()> {
        let mut rest = stmts;
        while !rest.is_empty() {
            let stores = rest.iter().map_while(as_plain_store).count();
            let (now, later) = rest.split_at(stores.max(1));
            let ahead = if stores > 1 { self.loaded_by(now) } else { Ahead::default() };
            let around = self.scopes.last_mut().map(|known| std::mem::replace(&mut known.ahead, ahead));
            let outcome = now.iter().try_for_each(|stmt| self.stmt(stmt));
            if let (Some(known), Some(around)) = (self.scopes.last_mut(), around) {
                known.ahead = around;
            }
            outcome?;
            rest = later;
        }
        Ok(())
    }

    /// The single elements in memory that stores load, of buffers that none of them changes.
    fn loaded_by(&mut self, stmts: &[Stmt]) -> Ahead {
        let stores = || stmts.iter().filter_map(as_plain_store);
        let is_constant = |buffer: BufferId| stores().all(|store| store.buffer != buffer);
        let mut constant: FxHashMap<BufferId, bool> = FxHashMap::default();
        let mut ahead = Ahead::default();
        for store in stores() {
            for_each_certain_load(&store.value, &mut |expr, buffer, indices| {
                let [index] = indices else { return };
                let is_single = index.lanes() == 1 && !chosen_by_data(index);
                if !is_single || !*constant.entry(buffer).or_insert_with(|| is_constant(buffer)) {
                    return;
                }
                let index = self.resolve(index);
                let place = index.constant_part();
                let number = self.numbers.of(expr);
                ahead.entry((buffer, index.offset(-place))).or_default().insert(place, number);
            });
        }
        ahead.retain(|(buffer, _), places| {
            places.len() > 1 && !matches!(self.storage.get(buffer), Some(Storage::Registers(_)))
        });
        ahead
    }

    /// Loads the element at an index together with others beside it that statements load later, which are remembered. `None` where there
    /// are none of these, or the elements do not begin at a multiple of their size.
    pub(super) fn load_with_others(
        &mut self,
        buffer: BufferId,
        place: Place,
        index: &Index,
    ) -> Outcome<Option<Operand>> {
        if self.scopes.last().is_none_or(|known| known.ahead.is_empty()) {
            return Ok(None);
        }
        let own = index.constant_part();
        let variable = index.offset(-own);
        let Some(places) = self.scopes.last().and_then(|known| known.ahead.get(&(buffer, variable.clone())))
        else {
            return Ok(None);
        };
        let bytes = self.program.buffer(buffer).dtype.bytes();
        let least = 2.max(4 / bytes);
        let mut found: Option<(i64, SmallVec<[Number; 8]>)> = None;
        let mut count = MAX_BYTES / bytes;
        while count >= least && found.is_none() {
            let multiple = count as i64;
            let first = own.div_euclid(multiple) * multiple;
            if variable.terms().iter().all(|term| term.coefficient % multiple == 0) {
                let numbers = (first..first + multiple).map(|place| places.get(&place).copied());
                found = numbers.collect::<Option<_>>().map(|numbers| (first, numbers));
            }
            count /= 2;
        }
        let Some((first, numbers)) = found else { return Ok(None) };
        let elements = self.load_group(buffer, place, &variable.offset(first), numbers.len())?;
        for (number, element) in numbers.iter().zip(&elements) {
            self.remember_elements(buffer, &variable, *number, 0, &[*element]);
        }
        Ok(Some(elements[(own - first) as usize]))
    }
}

/// A statement that stores, and does nothing else.
fn as_plain_store(stmt: &Stmt) -> Option<&Store> {
    match stmt {
        Stmt::Store(store) if store.kind == StoreKind::Plain => Some(store),
        _ => None,
    }
}

/// Calls `visit` with the loads that the value of an expression takes in any case, not those of one branch alone.
fn for_each_certain_load<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Expr, BufferId, &'e [Index])) {
    match expr.kind() {
        ExprKind::Load(buffer, indices) => visit(expr, *buffer, indices),
        ExprKind::Unary(..) | ExprKind::MulAdd(..) | ExprKind::Cast(_) | ExprKind::Bitcast(_) => {
            expr.operands().into_iter().for_each(|operand| for_each_certain_load(operand, visit));
        }
        // Conditions may not compute all of their parts.
        ExprKind::Binary(_, left, right) if expr.dtype() != DType::Bool => {
            for_each_certain_load(left, visit);
            for_each_certain_load(right, visit);
        }
        _ => {}
    }
}
