//! Sequences of statements.
//!
//! The statements of a register tile, `acc[i, j] += a[i] * b[j]` for each row i with several groups of lanes j,
//! are compiled group by group instead of row by row: then one group of `b` is needed at a time, and
//! the registers that the others would take are left to accumulators.

use rustc_hash::FxHashSet;
use tilewright_core::ids::BufferId;
use tilewright_core::index::Index;
use tilewright_core::stmt::{Stmt, Store};

use super::value::lanes::Group;
use super::{Generator, Outcome};
use crate::flat::access::for_each_load;

impl Generator<'_> {
    /// Translates statements in order.
    pub(super) fn sequence(&mut self, stmts: &[Stmt]) -> Outcome<()> {
        let outer = std::mem::replace(&mut self.shared_loads, shared_loads(stmts));
        let result = self.statements(stmts);
        self.shared_loads = outer;
        result
    }

    fn statements(&mut self, stmts: &[Stmt]) -> Outcome<()> {
        let mut rest = stmts;
        while let Some((first, others)) = rest.split_first() {
            let tile = self.tile(rest);
            if tile.len() > 1 {
                self.tile_stores(&tile)?;
                rest = &rest[tile.len()..];
            } else {
                self.stmt(first)?;
                rest = others;
            }
        }
        Ok(())
    }

    /// The stores at the beginning of a sequence that can be executed group by group: all are to intermediates
    /// in registers, with equally many lanes, and read of those only the very place that they write.
    fn tile<'s>(&self, stmts: &'s [Stmt]) -> Vec<&'s Store> {
        let mut lanes = 0;
        let stores = stmts.iter().map_while(|stmt| match stmt {
            Stmt::Store(store) if self.active.is_none() => Some(&**store),
            _ => None,
        });
        stores
            .take_while(|store| {
                let [index] = &store.indices[..] else { return false };
                lanes = if lanes == 0 { index.lanes() } else { lanes };
                lanes > 4 && index.lanes() == lanes && self.registers_of(store.buffer).is_some() && {
                    let mut independent = true;
                    for_each_load(&store.value, &mut |access| {
                        let is_own = access.buffer == store.buffer && access.indices == &store.indices[..];
                        independent &= is_own || self.registers_of(access.buffer).is_none();
                    });
                    independent
                }
            })
            .collect()
    }

    fn tile_stores(&mut self, stores: &[&Store]) -> Outcome<()> {
        let mut memos = vec![Default::default(); stores.len()];
        for group in Group::of(stores[0].indices[0].lanes()) {
            for (store, memo) in stores.iter().zip(&mut memos) {
                self.memos.push(std::mem::take(memo));
                let value = self.value(&store.value, group)?;
                let dtype = self.unit.program.buffer(store.buffer).dtype;
                self.store(store.buffer, dtype, &store.indices[0], group, value)?;
                *memo = self.memos.pop().unwrap_or_default();
            }
        }
        Ok(())
    }
}

/// The vectors that more than one of the stores in a sequence load.
fn shared_loads(stmts: &[Stmt]) -> FxHashSet<(BufferId, Index)> {
    let mut once = FxHashSet::default();
    let mut again = FxHashSet::default();
    for stmt in stmts {
        let Stmt::Store(store) = stmt else { continue };
        for_each_load(&store.value, &mut |access| {
            if let [index] = access.indices
                && index.lanes() > 1
                && !once.insert((access.buffer, index.clone()))
            {
                again.insert((access.buffer, index.clone()));
            }
        });
    }
    again
}
