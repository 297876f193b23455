//! Fragments: which register of which lane holds an element of a buffer.

use rustc_hash::FxHashMap;
use tilewright_core::ids::BufferId;
use tilewright_core::intrinsic::FragmentLayout;
use tilewright_core::program::Program;
use tilewright_core::stmt::{Alloc, Stmt};
use tilewright_core::visit::for_each_stmt;

use super::elements::WarpNest;
use crate::emit::value::{bits_type, class_of, zero};
use crate::emit::{Generator, Outcome, Storage, unsupported};
use crate::intrinsics;
use crate::ptx::operand::Register;
use crate::ptx::types::Class;

/// How the elements of a buffer form tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::emit) struct Shape {
    /// The layout of each tile.
    pub(in crate::emit) layout: FragmentLayout,
    /// The distance of rows, in elements: a multiple of the columns of a tile.
    pub(in crate::emit) pitch: i64,
}

impl Shape {
    /// The lane that holds the element at a position of the buffer, and its number among those of that lane.
    pub(super) fn place_of(&self, position: i64) -> (i64, i64) {
        let (row, column) = (position.div_euclid(self.pitch), position.rem_euclid(self.pitch));
        let (rows, columns) = (self.layout.rows(), self.layout.columns());
        let tile = row / rows * (self.pitch / columns) + column / columns;
        let (lane, slot) = self.layout.place_of(row % rows, column % columns);
        (lane, tile * self.layout.slots() + slot)
    }
}

/// A fragment in registers.
#[derive(Debug)]
pub(in crate::emit) struct Fragment {
    pub(super) shape: Shape,
    /// The elements in a register.
    pub(in crate::emit) per_register: i64,
    pub(in crate::emit) registers: Vec<Register>,
}

/// The shapes of the fragments that a statement accesses: intrinsics say them, and statements that move elements from one
/// fragment to another pass them on.
pub(in crate::emit) fn find_shapes(program: &Program, body: &Stmt) -> FxHashMap<BufferId, Shape> {
    let mut shapes = FxHashMap::default();
    let mut nests = Vec::new();
    for_each_stmt(body, &mut |stmt| {
        let Stmt::Intrinsic(node) = stmt else { return };
        let known = intrinsics::known().get(&node.name);
        let Some((known, found)) = known.and_then(|known| Some((known, known.matches(program, &node.body)?)))
        else {
            nests.extend(WarpNest::of(&node.body));
            return;
        };
        for (operand, layout) in found.operands.iter().zip(known.fragments()) {
            if let Some(pitch) = operand.strides[0].as_constant() {
                shapes.entry(operand.buffer).or_insert_with(|| Shape { layout: layout.clone(), pitch });
            }
        }
    });
    while nests.iter().any(|nest| nest.pass_on(program, &mut shapes)) {}
    shapes
}

impl Generator<'_> {
    /// The registers of a fragment.
    pub(in crate::emit) fn fragment(&mut self, node: &Alloc) -> Outcome<Storage> {
        let buffer = self.program.buffer(node.buffer);
        let refused = |problem: &str| unsupported(format!("fragment `{}`: {problem}", buffer.name));
        let Some(shape) = self.shapes.get(&node.buffer).cloned() else {
            return Err(refused(
                "no tensor intrinsic accesses it, so that it has no layout; make it `local` or `shared`",
            ));
        };
        let elements = shape.layout.rows() * shape.layout.columns();
        let len = buffer
            .constant_len()
            .filter(|len| len % elements == 0 && shape.pitch % shape.layout.columns() == 0);
        let Some(len) = len else {
            return Err(refused("its rows and columns are not those of whole tiles; round them up"));
        };
        let bits = buffer.dtype.bits() as i64;
        let (class, per_register) = match bits {
            32 => (bits_type(class_of(buffer.dtype)).class(), 1),
            8 | 16 => (Class::Word, 32 / bits),
            _ => return Err(refused("its elements have neither 8, nor 16, nor 32 bits")),
        };
        let count = len / shape.layout.lanes() / per_register;
        let registers: Vec<Register> = (0..count).map(|_| self.builder.register(class)).collect();
        // A statement under a condition may leave an element as it was.
        registers.iter().for_each(|register| self.builder.assign(*register, zero(class)));
        Ok(Storage::Fragment(std::rc::Rc::new(Fragment { shape, per_register, registers })))
    }
}
