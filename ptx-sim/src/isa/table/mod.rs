//! The instruction table: one row for each form of an instruction.
//!
//! A row has the opcode, its modifiers and operands in the notation of [`pattern`](super::pattern), and the function that
//! builds what is executed. The parser recognises, and checks, nothing but these rows.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use crate::exec::build::{Build, Use};
use crate::exec::op::Op;
use crate::isa::pattern::{self, OperandSpec, Slot};

mod control;
mod convert;
mod copies;
mod float;
mod integer;
mod matrix;
mod memory;
mod warp;
mod wmma;

/// Builds the operation of an instruction.
pub(crate) type BuildFn = fn(&mut Build<'_>, &Use<'_>) -> Result<Op, String>;

/// A row of the table as it is written.
pub(crate) struct Row {
    pub(crate) opcode: &'static str,
    pub(crate) modifiers: &'static str,
    pub(crate) operands: &'static str,
    pub(crate) build: BuildFn,
}

/// Shortens rows.
const fn row(opcode: &'static str, modifiers: &'static str, operands: &'static str, build: BuildFn) -> Row {
    Row { opcode, modifiers, operands, build }
}

/// A row with its notation read.
pub(crate) struct Form {
    pub(crate) opcode: &'static str,
    pub(crate) slots: Vec<Slot>,
    pub(crate) operands: Vec<OperandSpec>,
    pub(crate) build: BuildFn,
}

impl std::fmt::Debug for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Form").field("opcode", &self.opcode).finish_non_exhaustive()
    }
}

static FORMS: LazyLock<FxHashMap<&'static str, Vec<Form>>> = LazyLock::new(|| {
    let all = [
        integer::ROWS,
        float::ROWS,
        convert::ROWS,
        control::ROWS,
        memory::ROWS,
        copies::ROWS,
        wmma::ROWS,
        warp::ROWS,
        matrix::ROWS,
    ];
    let mut forms: FxHashMap<&'static str, Vec<Form>> = FxHashMap::default();
    for row in all.into_iter().flatten() {
        forms.entry(row.opcode).or_default().push(Form {
            opcode: row.opcode,
            slots: pattern::slots(row.modifiers),
            operands: pattern::operands(row.operands),
            build: row.build,
        });
    }
    forms
});

/// All forms of all opcodes.
#[cfg(test)]
pub(crate) fn all_forms() -> impl Iterator<Item = &'static Form> {
    FORMS.values().flatten()
}

/// All forms of an opcode, in the order of the table.
pub(crate) fn forms(opcode: &str) -> Option<&'static [Form]> {
    FORMS.get(opcode).map(Vec::as_slice)
}
