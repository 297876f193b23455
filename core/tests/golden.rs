//! Golden tests: text files under `golden/` that say what to do with the program in them and what comes out.
//!
//! The first line of a file is `// test: KIND ARGUMENTS`; comments right beneath it belong to the header
//! and stay as they are. The rest is the program together with what the test gives. `BLESS=1` writes
//! what a test gives into its file.
//!
//! A new kind is a file in `golden_kinds/` with one function from a [`Case`] to the expected rest of the file, and
//! one arm in [`run_case`].

#[path = "golden_kinds/lower.rs"]
mod lower;
#[path = "golden_kinds/reject.rs"]
mod reject;
#[path = "golden_kinds/roundtrip.rs"]
mod roundtrip;
#[path = "golden_kinds/verify.rs"]
mod verify;

use std::fs;
use std::path::{Path, PathBuf};

/// One golden file, taken apart.
struct Case<'a> {
    /// The words behind the kind.
    arguments: Vec<&'a str>,
    /// The whole file.
    file: &'a str,
    /// The file without its header.
    body: &'a str,
}

/// The expected contents of a file below its header.
fn run_case(kind: &str, case: &Case<'_>) -> Result<String, String> {
    match kind {
        "roundtrip" => roundtrip::run(case),
        "verify" => verify::run(case),
        "reject" => reject::run(case),
        "lower" => lower::run(case),
        other => Err(format!("unknown kind of test `{other}`")),
    }
}

#[test]
fn golden_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut files = Vec::new();
    collect_files(&root, &mut files);
    files.sort();
    assert!(!files.is_empty(), "no golden file found");
    let bless = std::env::var_os("BLESS").is_some_and(|value| value == "1");
    let failures: Vec<String> = files
        .iter()
        .filter_map(|path| {
            let name = path.strip_prefix(&root).unwrap_or(path).display();
            check_file(path, bless).err().map(|problem| format!("{name}: {problem}"))
        })
        .collect();
    let count = failures.len();
    assert!(failures.is_empty(), "{count} golden files differ; BLESS=1 accepts:\n{}", failures.join("\n"));
}

fn collect_files(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("the directory of golden files is readable") {
        let path = entry.expect("an entry is readable").path();
        if path.is_dir() {
            collect_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "tw") {
            files.push(path);
        }
    }
}

fn check_file(path: &Path, bless: bool) -> Result<(), String> {
    let file = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let body_start = file.split_inclusive('\n').take_while(|line| line.starts_with("//")).map(str::len).sum();
    let (header, body) = file.split_at(body_start);
    let mut words = header
        .strip_prefix("// test: ")
        .and_then(|rest| rest.lines().next())
        .ok_or("the first line must be `// test: KIND`")?
        .split_whitespace();
    let kind = words.next().unwrap_or_default();
    let expected = run_case(kind, &Case { arguments: words.collect(), file: &file, body })?;
    if expected == body {
        return Ok(());
    }
    if bless {
        return fs::write(path, format!("{header}{expected}")).map_err(|error| error.to_string());
    }
    Err(describe_difference(body, &expected))
}

/// The first line that differs, with what was expected there, and all that came.
fn describe_difference(file: &str, computed: &str) -> String {
    let line = file.lines().zip(computed.lines()).take_while(|(a, b)| a == b).count();
    let at = |text: &str| text.lines().nth(line).unwrap_or("(end)").to_owned();
    format!(
        "line {} beneath the header\n  file:     {}\n  computed: {}\n--- computed ---\n{computed}",
        line + 1,
        at(file),
        at(computed)
    )
}
