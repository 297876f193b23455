//! The rows of a tile of sums, in the order in which they share most of their loads.

use smallvec::SmallVec;
use tilewright_core::ids::BufferId;
use tilewright_core::index::Index;
use tilewright_core::stmt::{Stmt, Store};

use crate::flat::access::for_each_load;
use crate::simd::build::stmt::nest::Groups;
use crate::simd::build::{Builder, Outcome};

/// The places that a row reads besides its own, in the order of its expression.
type Operands<'s> = SmallVec<[(BufferId, &'s [Index]); 3]>;

impl Builder<'_> {
    /// The stores at the beginning of a sequence that can be executed in any order: all are to intermediates in
    /// registers, with equal groups, and read of those only the very place that they write. They end before a place that is written again: the next
    /// step of a sum has operands of its own, and those that all rows of a step share stay in registers until its end.
    pub(super) fn rows<'s>(&mut self, stmts: &'s [Stmt]) -> Vec<&'s Store> {
        let mut groups = Groups::new();
        let mut rows: Vec<&Store> = Vec::new();
        for stmt in stmts {
            let Stmt::Store(store) = stmt else { break };
            if rows.iter().any(|row| row.buffer == store.buffer && row.indices == store.indices) {
                break;
            }
            let own = self.groups_of_store(store);
            if rows.is_empty() {
                groups = own.clone();
            }
            let mut independent = own == groups && self.is_in_registers(store.buffer);
            for_each_load(&store.value, &mut |access| {
                independent &=
                    is_own(store, access.buffer, access.indices) || !self.is_in_registers(access.buffer);
            });
            if !independent {
                break;
            }
            rows.push(&**store);
        }
        rows
    }

    /// Executes rows group by group: the vectors of one group are in registers at a time.
    pub(super) fn rows_by_group(&mut self, mut rows: Vec<&Store>) -> Outcome<()> {
        let groups = self.groups_of_store(rows[0]);
        if groups.len() == 1 {
            gather_readers(&mut rows);
        }
        for group in groups {
            for row in &rows {
                self.new_statement();
                self.store_group(row, group)?;
            }
        }
        Ok(())
    }
}

/// Brings rows together that read the same element of the operand with the most elements, of those that several rows read. An element of it is then in a
/// register for these rows alone, beside all elements of the other operands: a tile of two pixels and six vectors of channels takes three registers for
/// its operands, where pixel after pixel would take seven.
fn gather_readers(rows: &mut [&Store]) {
    let operands: Vec<Operands<'_>> = rows.iter().map(|row| operands(row)).collect();
    let count = operands[0].len();
    if operands.iter().any(|own| own.len() != count) {
        return;
    }
    let first_readers = |position: usize| -> Vec<usize> {
        let first = |own: &Operands<'_>| operands.iter().position(|other| other[position] == own[position]);
        operands.iter().enumerate().map(|(row, own)| first(own).unwrap_or(row)).collect()
    };
    let elements = |readers: &Vec<usize>| (0..).zip(readers).filter(|(row, first)| row == *first).count();
    let shared = (0..count).map(first_readers).filter(|readers| elements(readers) < rows.len());
    let Some(readers) = shared.max_by_key(elements) else { return };
    let mut order: Vec<(usize, &Store)> = readers.into_iter().zip(rows.iter().copied()).collect();
    order.sort_by_key(|(first, _)| *first);
    for (row, (_, store)) in rows.iter_mut().zip(order) {
        *row = store;
    }
}

fn operands(row: &Store) -> Operands<'_> {
    let mut operands = Operands::new();
    for_each_load(&row.value, &mut |access| {
        if !is_own(row, access.buffer, access.indices) {
            operands.push((access.buffer, access.indices));
        }
    });
    operands
}

/// Whether a place is the one that a store writes.
fn is_own(store: &Store, buffer: BufferId, indices: &[Index]) -> bool {
    buffer == store.buffer && indices == &store.indices[..]
}
