//! Certification of the instruction table by NVIDIA's assembler: it has to accept every alternative of every form in at
//! least one instruction.
//!
//! `scripts/fetch-ptxas.sh` fetches the assembler. Without it the test does nothing, unless `REQUIRE_PTXAS=1`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustc_hash::FxHashSet;

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

/// The most instructions that are tried for one alternative.
const MOST_TRIES: usize = 400;

/// Choices with one alternative of one slot: required slots take all their alternatives, optional ones are left out, except
/// for vectors, which some hints need.
fn choices(form: &Form, fixed: usize, alternative: &'static str) -> Vec<Vec<Option<&'static str>>> {
    let mut all: Vec<Vec<Option<&'static str>>> = vec![Vec::new()];
    for (at, slot) in form.slots.iter().enumerate() {
        let mut possible: Vec<Option<&'static str>> = Vec::new();
        if at == fixed {
            possible.push(Some(alternative));
        } else {
            if slot.optional {
                possible.push(None);
            }
            let needed =
                !slot.optional || matches!(slot.name, "vec" | "rnd" | "ftz" | "sem" | "scope" | "abs");
            if needed {
                possible.extend(slot.alternatives.iter().map(|word| Some(*word)));
            }
        }
        let longer = all
            .iter()
            .flat_map(|start| possible.iter().map(|choice| start.iter().copied().chain([*choice]).collect()));
        all = longer.collect();
        // Evenly spread ones stand for all.
        let step = all.len().div_ceil(MOST_TRIES);
        all = all.into_iter().step_by(step).collect();
    }
    all
}

/// An instruction with these choices, or nothing if its operands need more than the table says.
fn instruction(form: &Form, choices: &[Option<&'static str>], optional: bool) -> Option<String> {
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
    for (position, spec) in form.operands.iter().enumerate().filter(|(_, spec)| optional || !spec.optional) {
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
            Role::Constant if matches!(form.opcode, "discard" | "applypriority" | "setmaxnreg") => {
                "128".into()
            }
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

/// One instruction, and of which form and alternative it is an example.
struct Example {
    text: String,
    form: &'static Form,
    alternative: &'static str,
}

fn examples() -> Vec<Example> {
    let mut all = Vec::new();
    for form in table::all_forms() {
        for (at, slot) in form.slots.iter().enumerate() {
            for alternative in &slot.alternatives {
                for choice in choices(form, at, alternative) {
                    for optional in [false, true] {
                        if let Some(text) = instruction(form, &choice, optional) {
                            all.push(Example { text, form, alternative });
                        }
                    }
                }
            }
        }
    }
    all
}

/// Lines of a text that the assembler refuses, from its messages.
fn refused(assembler: &Path, text: &str) -> FxHashSet<usize> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("table.ptx");
    std::fs::write(&file, text).expect("the directory can be written to");
    let output = Command::new(assembler)
        .args(["-arch=sm_100a", "-o"])
        .arg(directory.path().join("table.cubin"))
        .arg(&file)
        .output()
        .expect("the assembler can be run");
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = |message: &str| message.split("line ").nth(1)?.split(';').next()?.trim().parse().ok();
    let found: FxHashSet<usize> = messages.lines().filter_map(line).collect();
    assert!(output.status.success() || !found.is_empty(), "{messages}");
    found
}

#[test]
fn the_assembler_knows_every_form() {
    let Some(assembler) = assembler() else { return };
    let examples = examples();
    assert!(examples.len() > 1000, "only {} instructions", examples.len());
    let mut text = String::from(".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k() {\n");
    text += ".reg .pred %p<10>; .reg .b16 %h<10>; .reg .b32 %r<10>; .reg .b64 %l<10>;\n";
    text += ".reg .f32 %f<10>; .reg .f64 %d<10>;\n";
    let first = text.lines().count() + 1;
    for example in &examples {
        text += &example.text;
        text.push('\n');
    }
    text += "}\n";
    let refused = refused(&assembler, &text);
    let mut accepted = FxHashSet::default();
    for (number, example) in examples.iter().enumerate() {
        if !refused.contains(&(number + first)) {
            accepted.insert((example.form as *const Form, example.alternative));
        }
    }
    let mut unknown: Vec<&str> = examples
        .iter()
        .filter(|example| !accepted.contains(&(example.form as *const Form, example.alternative)))
        .map(|example| example.text.as_str())
        .collect();
    unknown.sort_unstable();
    unknown.dedup();
    assert!(unknown.is_empty(), "refused in every form:\n{}", unknown.join("\n"));
}
