//! Where instructions go.

use crate::ptx::instruction::{Guard, Instruction, Line};
use crate::ptx::operand::{Label, Operand, Register};
use crate::ptx::table::{Op, Row};
use crate::ptx::types::{Class, Type};

/// The code of a kernel while it is written.
#[derive(Default)]
pub(super) struct Builder {
    /// Executed first: arguments and positions, which all of the rest may use.
    entry: Vec<Line>,
    lines: Vec<Line>,
    registers: [u32; Class::ALL.len()],
    labels: u32,
}

impl Builder {
    /// A new register.
    pub(super) fn register(&mut self, class: Class) -> Register {
        let count = &mut self.registers[class as usize];
        *count += 1;
        Register { class, number: *count - 1 }
    }

    /// A new label, which is nowhere yet.
    pub(super) fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Puts a label here.
    pub(super) fn place(&mut self, label: Label) {
        self.lines.push(Line::Label(label));
    }

    /// This place in the code.
    pub(super) fn here(&self) -> usize {
        self.lines.len()
    }

    /// Whether the code from a place on has no labels, and so neither loops nor conditions.
    pub(super) fn is_straight_from(&self, begin: usize) -> bool {
        !self.lines[begin..].iter().any(|line| matches!(line, Line::Label(_)))
    }

    /// Keeps the assembler from unrolling the loop whose first label was placed just before a place.
    pub(super) fn keep_loop(&mut self, begin: usize) {
        self.lines.insert(begin, Line::KeepLoop);
    }

    /// Writes a comment of one line.
    pub(super) fn comment(&mut self, words: String) {
        self.lines.push(Line::Comment(words));
    }

    /// Writes an instruction.
    pub(super) fn push(&mut self, op: Op, ty: Option<Type>, operands: impl IntoIterator<Item = Operand>) {
        self.push_of_two(op, ty, None, operands);
    }

    /// Writes an instruction that is executed under a condition.
    pub(super) fn push_where(
        &mut self,
        guard: Option<Guard>,
        op: Op,
        ty: Type,
        operands: impl IntoIterator<Item = Operand>,
    ) {
        let instruction = Instruction { guard, ..Instruction::new(op, Some(ty), None, operands) };
        self.lines.push(Line::Instruction(instruction));
    }

    /// Writes an instruction that names the type of a source, too.
    pub(super) fn push_of_two(
        &mut self,
        op: Op,
        ty: Option<Type>,
        source: Option<Type>,
        operands: impl IntoIterator<Item = Operand>,
    ) {
        self.lines.push(Line::Instruction(Instruction::new(op, ty, source, operands)));
    }

    /// Writes an instruction with a new register as its result.
    pub(super) fn compute(&mut self, op: Op, ty: Type, sources: &[Operand]) -> Operand {
        let (instruction, to) = self.with_result(op, ty, None, sources);
        self.lines.push(Line::Instruction(instruction));
        to
    }

    /// Writes a conversion from values of `source` to those of `ty`.
    pub(super) fn convert(&mut self, op: Op, ty: Type, source: Type, value: Operand) -> Operand {
        let (instruction, to) = self.with_result(op, ty, Some(source), &[value]);
        self.lines.push(Line::Instruction(instruction));
        to
    }

    /// As [`Builder::compute`], at the entry of the kernel.
    pub(super) fn compute_at_entry(&mut self, op: Op, ty: Type, sources: &[Operand]) -> Operand {
        let (instruction, to) = self.with_result(op, ty, None, sources);
        self.entry.push(Line::Instruction(instruction));
        to
    }

    /// Overwrites a register.
    pub(super) fn assign(&mut self, to: Register, value: Operand) {
        let ty = bits_of(to.class);
        self.push(Op::Move, Some(ty), [to.into(), value]);
    }

    /// Leads to a label, under a condition if there is one.
    pub(super) fn branch(&mut self, guard: Option<Guard>, to: Label) {
        let instruction = Instruction { guard, ..Instruction::new(Op::Branch, None, None, [to.into()]) };
        self.lines.push(Line::Instruction(instruction));
    }

    fn with_result(
        &mut self,
        op: Op,
        ty: Type,
        source: Option<Type>,
        sources: &[Operand],
    ) -> (Instruction, Operand) {
        let to = Operand::Register(self.register(class_of_result(op, ty, source)));
        let operands = std::iter::once(to).chain(sources.iter().copied());
        (Instruction::new(op, Some(ty), source, operands), to)
    }

    /// The finished code, and how many registers of each class it has.
    pub(super) fn finish(mut self) -> (Vec<Line>, [u32; Class::ALL.len()]) {
        self.push(Op::Return, None, []);
        self.entry.append(&mut self.lines);
        (self.entry, self.registers)
    }
}

/// The class of the register that an instruction writes.
pub(super) fn class_of_result(op: Op, ty: Type, source: Option<Type>) -> Class {
    let row = Row::find(op, Some(ty), source);
    match row.and_then(|row| row.operands.bytes().next()) {
        Some(b'p') => Class::Predicate,
        Some(b'h') => Class::Half,
        Some(b'r') => Class::Word,
        Some(b'l') => Class::Double,
        _ => ty.class(),
    }
}

/// The type with which the contents of registers are copied.
pub(crate) fn bits_of(class: Class) -> Type {
    match class {
        Class::Predicate => Type::Pred,
        Class::Half => Type::B16,
        Class::Word => Type::B32,
        Class::Double => Type::B64,
        Class::Float => Type::F32,
        Class::DoubleFloat => Type::F64,
    }
}

/// The condition that a predicate holds.
pub(super) fn when(predicate: Register) -> Option<Guard> {
    Some(Guard { predicate, is_negated: false })
}

/// The condition that a predicate does not hold.
pub(super) fn unless(predicate: Register) -> Option<Guard> {
    Some(Guard { predicate, is_negated: true })
}
