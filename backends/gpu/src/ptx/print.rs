//! Modules as text.

use std::fmt;

use super::instruction::{Instruction, Line};
use super::kernel::{Kernel, Module, SharedMemory};
use super::operand::{Operand, Symbol};
use super::types::Class;

/// The version of the language: the first one that has all instructions of compute capability 9.0.
const VERSION: &str = "8.0";

/// The alignment of memory that the module reserves, in bytes: the widest access.
const ALIGNMENT: u32 = 16;

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, ".version {VERSION}\n.target {}\n.address_size 64", self.architecture)?;
        if self.kernels.iter().any(|kernel| matches!(kernel.shared, SharedMemory::Dynamic(_))) {
            writeln!(f, ".extern .shared .align {ALIGNMENT} .b8 {}[];", Symbol::Shared)?;
        }
        self.kernels.iter().try_for_each(|kernel| write!(f, "\n{kernel}"))
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, ".visible .entry {}(", self.name)?;
        for (number, ty) in self.params.iter().enumerate() {
            let separator = if number + 1 == self.params.len() { "" } else { "," };
            writeln!(f, "    .param .{ty} p{number}{separator}")?;
        }
        let [x, y, z] = self.threads;
        // With a number of resident blocks to be reached, the assembler spills no registers to reach a higher one.
        writeln!(f, ")\n.reqntid {x}, {y}, {z} .minnctapersm 1\n{{")?;
        for (class, count) in Class::ALL.into_iter().zip(self.registers).filter(|(_, count)| *count > 0) {
            writeln!(f, "    .reg .{} {}<{count}>;", class.declaration(), class.prefix())?;
        }
        if let SharedMemory::Static(bytes @ 1..) = self.shared {
            writeln!(f, "    .shared .align {ALIGNMENT} .b8 {}[{bytes}];", Symbol::Shared)?;
        }
        if self.local_bytes > 0 {
            writeln!(f, "    .local .align {ALIGNMENT} .b8 {}[{}];", Symbol::Local, self.local_bytes)?;
        }
        for line in &self.lines {
            match line {
                Line::Label(label) => writeln!(f, "{label}:")?,
                Line::Comment(words) => writeln!(f, "    // {words}")?,
                Line::KeepLoop => writeln!(f, "    .pragma \"nounroll\";")?,
                Line::Instruction(instruction) => writeln!(f, "    {instruction}")?,
            }
        }
        f.write_str("}\n")
    }
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(guard) = self.guard {
            write!(f, "@{}{} ", if guard.is_negated { "!" } else { "" }, guard.predicate)?;
        }
        self.opcode(f)?;
        let mut operands = self.operands.iter();
        let mut separator = " ";
        let mut pattern = self.row.operands.bytes().filter(|letter| *letter != b'=');
        while let Some(letter) = pattern.next() {
            f.write_str(separator)?;
            separator = ", ";
            let count = match letter {
                b'1' => 1,
                b'2' => 2,
                b'4' => 4,
                _ => {
                    write_operand(f, operands.next())?;
                    continue;
                }
            };
            pattern.next();
            f.write_str("{")?;
            for number in 0..count {
                f.write_str(if number == 0 { "" } else { ", " })?;
                write_operand(f, operands.next())?;
            }
            f.write_str("}")?;
        }
        f.write_str(";")
    }
}

fn write_operand(f: &mut fmt::Formatter<'_>, operand: Option<&Operand>) -> fmt::Result {
    operand.map_or(Err(fmt::Error), |operand| fmt::Display::fmt(operand, f))
}

impl Instruction {
    /// The row's text with the types in their places.
    fn opcode(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = self.row.text.split('{');
        f.write_str(parts.next().unwrap_or_default())?;
        for part in parts {
            let ty = if part.starts_with('t') { self.ty } else { self.source };
            f.write_str(ty.ok_or(fmt::Error)?.name())?;
            f.write_str(part.split_once('}').map_or("", |(_, rest)| rest))?;
        }
        Ok(())
    }
}
