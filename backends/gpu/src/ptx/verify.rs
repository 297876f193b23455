//! Checks of kernels against the instruction table, before anything else sees them.
//!
//! An error here is a bug of the emitter.

use rustc_hash::FxHashSet;

use super::instruction::{Instruction, Line};
use super::kernel::Kernel;
use super::operand::{Label, Operand, Register};
use super::types::Class;

/// Checks a kernel: operands fit the rows of their instructions, labels are defined once, and every register that is read has
/// been written before, in the order of the text.
pub(crate) fn verify(kernel: &Kernel) -> Result<(), String> {
    let mut labels: FxHashSet<Label> = FxHashSet::default();
    for line in &kernel.lines {
        if let Line::Label(label) = line
            && !labels.insert(*label)
        {
            return Err(format!("`{}`: label {label} is defined twice", kernel.name));
        }
    }
    let mut check = Check { kernel, labels, written: FxHashSet::default() };
    for line in &kernel.lines {
        if let Line::Instruction(instruction) = line {
            check
                .instruction(instruction)
                .map_err(|problem| format!("`{}`: `{}`: {problem}", kernel.name, instruction.row.text))?;
        }
    }
    Ok(())
}

struct Check<'k> {
    kernel: &'k Kernel,
    labels: FxHashSet<Label>,
    written: FxHashSet<Register>,
}

/// The letters of a pattern, one for each operand, and how many of them are destinations.
fn letters(pattern: &str) -> (Vec<u8>, usize) {
    let (mut letters, mut destinations, mut count) = (Vec::new(), 0, 1);
    for letter in pattern.bytes() {
        match letter {
            b'=' => destinations = letters.len(),
            b'1' | b'2' | b'4' => count = usize::from(letter - b'0'),
            _ => letters.extend(std::iter::repeat_n(letter, std::mem::replace(&mut count, 1))),
        }
    }
    (letters, destinations)
}

impl Check<'_> {
    fn instruction(&mut self, instruction: &Instruction) -> Result<(), String> {
        let (letters, destinations) = letters(instruction.row.operands);
        if letters.len() != instruction.operands.len() {
            return Err(format!("{} operands expected", letters.len()));
        }
        if let Some(guard) = instruction.guard {
            self.read(guard.predicate, Class::Predicate)?;
        }
        for (letter, operand) in letters[destinations..].iter().zip(&instruction.operands[destinations..]) {
            self.source(*letter, *operand, instruction)?;
        }
        for (letter, operand) in letters[..destinations].iter().zip(&instruction.operands) {
            let register = operand.register().ok_or("a destination is no register")?;
            self.fits(register, class_of(*letter, instruction)?)?;
            self.written.insert(register);
        }
        Ok(())
    }

    fn source(&self, letter: u8, operand: Operand, instruction: &Instruction) -> Result<(), String> {
        match (letter, operand) {
            (b'm', Operand::Address(base, _)) => {
                let class = if base.class == Class::Word { Class::Word } else { Class::Double };
                self.read(base, class)
            }
            (b'q', Operand::Parameter(number)) if (number as usize) < self.kernel.params.len() => Ok(()),
            (b'x', Operand::Special(_) | Operand::Symbol(_)) => Ok(()),
            (b'@', Operand::Label(label)) if self.labels.contains(&label) => Ok(()),
            (b'i', Operand::Integer(0..)) => Ok(()),
            (b'm' | b'q' | b'x' | b'@' | b'i', _) => Err(format!("operand `{operand}` does not fit")),
            (_, Operand::Register(register)) => self.read(register, class_of(letter, instruction)?),
            (_, Operand::Integer(_)) => match class_of(letter, instruction)? {
                Class::Half | Class::Word | Class::Double | Class::Predicate => Ok(()),
                class => Err(format!("an integer stands for {class:?}")),
            },
            (_, Operand::Float(_)) if class_of(letter, instruction)? == Class::Float => Ok(()),
            (_, Operand::DoubleFloat(_)) if class_of(letter, instruction)? == Class::DoubleFloat => Ok(()),
            _ => Err(format!("operand `{operand}` does not fit")),
        }
    }

    fn read(&self, register: Register, class: Class) -> Result<(), String> {
        if !self.written.contains(&register) {
            return Err(format!("`{register}` is read before it is written"));
        }
        self.fits(register, class)
    }

    fn fits(&self, register: Register, class: Class) -> Result<(), String> {
        if register.number >= self.kernel.registers[register.class as usize] {
            return Err(format!("`{register}` is not declared"));
        }
        if register.class != class {
            return Err(format!("`{register}` stands for {class:?}"));
        }
        Ok(())
    }
}

fn class_of(letter: u8, instruction: &Instruction) -> Result<Class, String> {
    Ok(match letter {
        b'p' => Class::Predicate,
        b'h' => Class::Half,
        b'f' => Class::Float,
        b'r' => Class::Word,
        b'l' => Class::Double,
        b't' => instruction.ty.ok_or("there is no type")?.class(),
        b's' => instruction.source.ok_or("there is no type of a source")?.class(),
        _ => return Err(format!("the table has no letter `{}`", letter as char)),
    })
}
