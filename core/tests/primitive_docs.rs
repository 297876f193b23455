//! The example in each primitive's documentation is its test.
//!
//! An example is a `text` block with three parts: `before`, a program; `apply`, the steps of a trace; `after`, the program
//! that results. `BLESS=1` writes the last part, and the table of all primitives.

#[path = "support/dot_products.rs"]
mod dot_products;

use std::fmt::Write;
use std::path::PathBuf;

use tilewright_core::program::Program;
use tilewright_core::schedule::prim::Source;
use tilewright_core::schedule::{Instruction, Trace};

struct Example {
    before: String,
    apply: String,
    after: String,
}

/// The example in the documentation of a primitive's source.
fn example(name: &str, source: &str) -> Example {
    let documented: Vec<&str> = source
        .lines()
        .filter_map(|line| line.strip_prefix("/// ").or((line == "///").then_some("")))
        .skip_while(|line| *line != "```text")
        .skip(1)
        .take_while(|line| *line != "```")
        .collect();
    let part = |title: &str, next: Option<&str>| -> String {
        let lines = documented.iter().skip_while(|line| **line != title).skip(1);
        let lines: Vec<&str> = lines.take_while(|line| next != Some(**line)).copied().collect();
        lines.join("\n")
    };
    assert!(documented.contains(&"before"), "the documentation of `{name}` has no example");
    Example {
        before: part("before", Some("apply")),
        apply: part("apply", Some("after")),
        after: part("after", None),
    }
}

fn run(name: &str, example: &Example) -> String {
    let program: Program = example
        .before
        .parse()
        .unwrap_or_else(|error| panic!("`{name}`, before: {error}\n{}", example.before));
    let trace: Trace = format!("trace v1\n{}", example.apply)
        .parse()
        .unwrap_or_else(|error| panic!("`{name}`, apply: {error}\n{}", example.apply));
    assert!(
        trace.steps().iter().any(|step| step.instruction.name() == name),
        "the example of `{name}` does not use it"
    );
    let schedule =
        trace.replay(&program, dot_products::target(), 0).unwrap_or_else(|error| panic!("`{name}`: {error}"));
    schedule.program().to_string().trim_end().to_owned()
}

fn bless(path: &str, source: &str, after: &str) {
    let mut blessed = String::new();
    let mut is_after = false;
    for line in source.lines() {
        if is_after && line == "/// ```" {
            for new in after.lines() {
                writeln!(blessed, "/// {new}").unwrap();
            }
            is_after = false;
        }
        if !is_after {
            writeln!(blessed, "{line}").unwrap();
        }
        is_after |= line == "/// after";
    }
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/schedule/prim").join(path);
    std::fs::write(path, blessed).unwrap();
}

#[test]
fn every_primitive_does_what_its_documentation_shows() {
    let mut wrong = Vec::new();
    for Source { name, path, text } in Instruction::ALL {
        let example = example(name, text);
        let after = run(name, &example);
        if after != example.after {
            if std::env::var_os("BLESS").is_some() {
                bless(path, text, &after);
            } else {
                wrong.push(format!("`{name}` gives\n{after}\nbut its documentation says\n{}", example.after));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n(BLESS=1 accepts what the primitives do)", wrong.join("\n\n"));
}

#[test]
fn names_of_primitives_are_unique() {
    let mut names: Vec<&str> = Instruction::ALL.iter().map(|source| source.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Instruction::ALL.len());
}

/// TensorIR's primitives that are not here, and why.
const ABSENT: &[(&str, &str)] = &[
    (
        "unsafe_set_dtype, annotate_buffer_access, unsafe_hide_buffer_access",
        "would let a schedule change the meaning",
    ),
    ("rolling_buffer, cache_index", "no rule would offer them"),
    ("read_at, write_at", "methods of a schedule, composed of two primitives each"),
    ("work_on, copy, seed, get_output_blocks", "queries of a program or a schedule, which are values here"),
];

/// The first sentence of a primitive's documentation.
fn summary(source: &str) -> String {
    let lines = source.lines().skip_while(|line| !line.starts_with("/// "));
    let documented: Vec<&str> = lines
        .map_while(|line| line.strip_prefix("///"))
        .map(str::trim)
        .take_while(|line| !line.is_empty())
        .collect();
    let text = documented.join(" ");
    let end = text.find(". ").map_or(text.len(), |end| end + 1);
    text[..end].replace("[tensor intrinsic](crate::intrinsic)", "tensor intrinsic")
}

fn table() -> String {
    let mut text = String::from("| primitive | what it does | kind |\n|---|---|---|\n");
    for Source { name, text: source, .. } in Instruction::ALL {
        let instruction = Instruction::named(name).expect("a primitive of the list");
        let kind = match (instruction.is_pure(), name.starts_with("sample")) {
            (_, true) => "samples",
            (true, false) => "looks",
            (false, false) => "edits",
        };
        writeln!(text, "| `{name}` | {} | {kind} |", summary(source)).unwrap();
    }
    writeln!(text, "\nOf TensorIR's primitives, these are not here:\n\n| primitive | why |\n|---|---|")
        .unwrap();
    for (names, why) in ABSENT {
        let names: Vec<String> = names.split(", ").map(|name| format!("`{name}`")).collect();
        writeln!(text, "| {} | {why} |", names.join(", ")).unwrap();
    }
    text
}

#[test]
fn the_table_of_primitives_is_up_to_date() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/schedule/prim/primitives.md");
    let (table, written) = (table(), std::fs::read_to_string(&path).unwrap_or_default());
    if table != written && std::env::var_os("BLESS").is_some() {
        std::fs::write(path, table).unwrap();
        return;
    }
    assert_eq!(written, table, "BLESS=1 writes the table anew");
    for (names, _) in ABSENT {
        assert!(names.split(", ").all(|name| Instruction::named(name).is_none()), "{names} are here by now");
    }
}
