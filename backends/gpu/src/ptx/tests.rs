//! Every form of the instruction table is accepted by NVIDIA's assembler, and by the simulator.

use std::path::PathBuf;
use std::process::Command;

use super::instruction::{Instruction, Line};
use super::kernel::{Kernel, Module, SharedMemory};
use super::operand::{Label, Operand, Register, Special, Symbol};
use super::table::{Op, Row, TABLE};
use super::types::{Class, Type};
use super::verify::verify;

/// An operand for a letter of a pattern.
fn operand(op: Op, letter: u8, ty: Option<Type>, source: Option<Type>) -> Operand {
    let class = match letter {
        b'm' => return Operand::Address(Register { class: Class::Double, number: 0 }, 16),
        b'q' => return Operand::Parameter(0),
        b'i' => {
            return Operand::Integer(match op {
                Op::CopyAsync(bytes) | Op::CopyAsyncPart(bytes) => i64::from(bytes),
                _ => 1,
            });
        }
        b'x' if ty == Some(Type::U64) => return Operand::Symbol(Symbol::Local),
        b'x' => return Operand::Special(Special::Thread(0)),
        b'@' => return Operand::Label(Label(0)),
        b'p' => Class::Predicate,
        b'h' => Class::Half,
        b'f' => Class::Float,
        b'r' => Class::Word,
        b'l' => Class::Double,
        b't' => ty.expect("the row has types").class(),
        b's' => source.expect("the row has types of sources").class(),
        _ => panic!("the table has no letter `{}`", letter as char),
    };
    Operand::Register(Register { class, number: 0 })
}

/// The instruction of a row with some types.
fn instruction(row: &'static Row, ty: Option<Type>, source: Option<Type>) -> Instruction {
    let mut operands = Vec::new();
    let mut count = 1;
    for letter in row.operands.bytes().filter(|letter| *letter != b'=') {
        match letter {
            b'1' | b'2' | b'4' => count = usize::from(letter - b'0'),
            _ => operands
                .extend((0..std::mem::replace(&mut count, 1)).map(|_| operand(row.op, letter, ty, source))),
        }
    }
    // Vectors are loaded into different registers.
    let mut numbers = [0; Class::ALL.len()];
    for operand in &mut operands {
        if let Operand::Register(register) = operand {
            register.number = numbers[register.class as usize];
            numbers[register.class as usize] += 1;
        }
    }
    Instruction::new(row.op, ty, source, operands)
}

/// A kernel with an instruction of each form.
fn all_forms() -> Kernel {
    let optional = |types: &'static [Type]| -> Vec<Option<Type>> {
        if types.is_empty() { vec![None] } else { types.iter().copied().map(Some).collect() }
    };
    let mut lines = Vec::new();
    for class in Class::ALL {
        let ty = super::super::emit::bits_of(class);
        for number in 0..16 {
            let zero = match class {
                Class::Half => continue,
                Class::Float => Operand::Float(0),
                Class::DoubleFloat => Operand::DoubleFloat(0),
                _ => Operand::Integer(0),
            };
            let register = Operand::Register(Register { class, number });
            let row = Instruction::new(Op::Move, Some(ty), None, [register, zero]);
            lines.push(Line::Instruction(row));
        }
    }
    for row in TABLE {
        for ty in optional(row.types) {
            for source in optional(row.sources) {
                let has_other_form =
                    Row::find(row.op, ty, source).is_some_and(|found| !std::ptr::eq(found, row));
                let is_move_within = row.op == Op::Move && ty.map(Type::class) == source.map(Type::class);
                if !has_other_form && !is_move_within {
                    lines.push(Line::Instruction(instruction(row, ty, source)));
                }
            }
        }
    }
    // The halves are written by conversions, which may come behind the instructions that read them.
    let first = |line: &Line| !matches!(line, Line::Instruction(found) if reads_half(found));
    lines.sort_by_key(|line| !first(line));
    lines.extend([Line::Label(Label(0)), Line::KeepLoop]);
    Kernel {
        name: "forms".into(),
        params: vec![Type::B64],
        threads: [32, 1, 1],
        shared: SharedMemory::Static(16),
        local_bytes: 16,
        lines,
        registers: [16; Class::ALL.len()],
    }
}

fn reads_half(instruction: &Instruction) -> bool {
    let sources = instruction.row.operands.split_once('=').map_or("", |(_, sources)| sources);
    sources.contains('h')
        || (sources.contains('t') && instruction.ty.is_some_and(|ty| ty.class() == Class::Half))
        || (sources.contains('s') && instruction.source.is_some_and(|ty| ty.class() == Class::Half))
}

#[test]
fn every_form_is_one_of_the_language() {
    let kernel = all_forms();
    verify(&kernel).unwrap_or_else(|problem| panic!("{problem}"));
    let module = Module { architecture: "sm_80".into(), kernels: vec![kernel] };
    let text = module.to_string();
    tilewright_ptx_sim::Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let fetched = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/ptxas/13.0.88/ptxas");
    let assembler = std::env::var_os("PTXAS").map_or_else(|| fetched.into(), PathBuf::from);
    if !assembler.exists() {
        assert!(std::env::var_os("REQUIRE_PTXAS").is_none(), "there is no ptxas: run scripts/fetch-ptxas.sh");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("forms.ptx");
    std::fs::write(&file, &text).expect("a file");
    let output = Command::new(assembler).args(["-arch", "sm_80", "-o", "/dev/null"]).arg(&file).output();
    let output = output.expect("the assembler runs");
    assert!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn wrong_operands_are_found() {
    let kernel =
        |instruction: Instruction| Kernel { lines: vec![Line::Instruction(instruction)], ..all_forms() };
    let of = |operands: Vec<Operand>| Instruction::new(Op::Add, Some(Type::S32), None, operands);
    let word = |number| Operand::Register(Register { class: Class::Word, number });
    let float = Operand::Register(Register { class: Class::Float, number: 0 });
    let one = Operand::Integer(1);
    assert_eq!(verify(&kernel(of(vec![word(0), one, one]))), Ok(()));
    for (operands, problem) in [
        (vec![word(0), one], "3 operands expected"),
        (vec![word(0), word(1), one], "read before it is written"),
        (vec![word(99), one, one], "not declared"),
        (vec![float, one, one], "stands for Word"),
        (vec![word(0), Operand::Float(0), one], "does not fit"),
    ] {
        let found = verify(&kernel(of(operands))).expect_err("it is wrong");
        assert!(found.contains(problem), "{found}");
    }
}
