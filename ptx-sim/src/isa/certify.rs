//! Certification of the instruction table by NVIDIA's assembler: it has to accept an instruction of every form, with
//! every choice of modifiers at least once.
//!
//! `scripts/fetch-ptxas.sh` fetches the assembler. Without it the test does nothing, unless `REQUIRE_PTXAS=1`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use crate::isa::pattern::{Role, TypeOf};
use crate::isa::table::{self, Form};
use crate::isa::types::Type;

/// The assembler, if there is one.
fn assembler() -> Option<PathBuf> {
    let fetched = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/ptxas/13.0.88/ptxas");
    let path = std::env::var_os("PTXAS").map_or_else(|| fetched.into(), PathBuf::from);
    let there = path.exists();
    assert!(
        there || std::env::var_os("REQUIRE_PTXAS").is_none(),
        "there is no ptxas at {}: run scripts/fetch-ptxas.sh",
        path.display()
    );
    there.then_some(path)
}

/// A name for registers of a type, by their size and class.
fn register(ty: Type, number: usize) -> String {
    let class = match ty {
        Type::Pred => "p",
        Type::F32 => "f",
        Type::F64 => "d",
        _ => match ty.bits() {
            8 | 16 => "h",
            64 => "l",
            _ => "r",
        },
    };
    format!("%{class}{number}")
}

/// Choices of all slots: each alternative of each slot once, with the first ones of the others; optional slots are left out
/// except where it is their turn.
fn choices(form: &Form) -> Vec<Vec<Option<&'static str>>> {
    let plain: Vec<Option<&'static str>> =
        form.slots.iter().map(|slot| (!slot.optional).then(|| slot.alternatives[0])).collect();
    let mut all = vec![plain.clone()];
    for (at, slot) in form.slots.iter().enumerate() {
        for alternative in &slot.alternatives {
            let mut choice = plain.clone();
            choice[at] = Some(*alternative);
            all.push(choice);
        }
    }
    all
}

/// An instruction with these choices, or nothing if its operands need more than the table says.
fn instruction(form: &Form, choices: &[Option<&'static str>]) -> Option<String> {
    let named = |slot: &str| {
        let at = form.slots.iter().position(|s| s.name == slot)?;
        choices[at]
    };
    let ty = |of: TypeOf| match of {
        TypeOf::Fixed(ty) => Some(ty),
        TypeOf::Slot(slot) | TypeOf::AtLeast(slot) => Type::named(named(slot)?),
        TypeOf::Wide(slot) => Type::named(named(slot)?)?.widened(),
    };
    let count = match named("vec") {
        Some("v2") => 2,
        Some("v4") => 4,
        Some("v8") => 8,
        _ => 1,
    };
    let shared = named("space").is_some_and(|space| space.starts_with("shared"));
    let mut operands = Vec::new();
    for (position, spec) in form.operands.iter().enumerate().filter(|(_, spec)| !spec.optional) {
        operands.push(match spec.role {
            Role::Destination(of) | Role::Source(of) => register(ty(of)?, position),
            Role::DestinationVector(of) | Role::SourceVector(of) => {
                let ty = ty(of)?;
                let list: Vec<String> = (0..count).map(|n| register(ty, n)).collect();
                if count == 1 { list[0].clone() } else { format!("{{{}}}", list.join(", ")) }
            }
            Role::Predicate => "!%p3".into(),
            Role::PredicatePair => "%p0|%p1".into(),
            Role::Address if shared => "[%r9+16]".into(),
            Role::Address => "[%l9+16]".into(),
            Role::Constant => "16".into(),
            Role::Braces | Role::Label | Role::List | Role::Any => return None,
        });
    }
    let mut text = form.opcode.to_owned();
    for choice in choices.iter().flatten() {
        write!(text, ".{choice}").ok()?;
    }
    Some(format!("{text} {};", operands.join(", ")))
}

#[test]
fn the_assembler_knows_every_form() {
    let Some(assembler) = assembler() else { return };
    let mut lines = Vec::new();
    for form in table::all_forms() {
        for choice in choices(form) {
            lines.extend(instruction(form, &choice));
        }
    }
    lines.sort();
    lines.dedup();
    assert!(lines.len() > 500, "only {} instructions", lines.len());
    let mut text = String::from(".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry k() {\n");
    text += ".reg .pred %p<10>; .reg .b16 %h<10>; .reg .b32 %r<10>; .reg .b64 %l<10>; .reg .f32 %f<10>; .reg .f64 %d<10>;\n";
    let first = text.lines().count() + 1;
    for line in &lines {
        text += line;
        text.push('\n');
    }
    text += "}\n";
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("table.ptx");
    std::fs::write(&file, &text).expect("the directory can be written to");
    let output = Command::new(assembler)
        .args(["-arch=sm_90a", "-o"])
        .arg(directory.path().join("table.cubin"))
        .arg(&file)
        .output()
        .expect("the assembler can be run");
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut refused = Vec::new();
    for message in messages.lines() {
        let line = message.split("line ").nth(1).and_then(|rest| rest.split(';').next());
        let line = line.and_then(|line| line.trim().parse::<usize>().ok());
        let text = line.and_then(|line| lines.get(line.checked_sub(first)?));
        refused.push(format!("{message}\n    {}", text.map_or("", String::as_str)));
    }
    assert!(output.status.success(), "{}", refused.join("\n"));
}
