//! The commands that developers run every day: `cargo xtask`, without arguments, lists them.

mod additions;
mod run;

use std::process::ExitCode;

use run::{Failure, cargo, step};

const USAGE: &str = "cargo xtask COMMAND
  check                format, and clippy with warnings as errors
  test                 all tests of the workspace
  bless                rewrite golden files, documentation examples and macro messages
  cases N              the randomised tests with N cases each
  fuzz TARGET SECONDS [FOLDER ...]
                       a fuzz target of fuzz/, beginning with the files in folders, which are only read
  additions            count the files that one more operator, rule, pass … touches";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["check"] => check(),
        ["test"] => cargo(&["test", "--workspace"], &[]),
        ["bless"] => bless(),
        ["cases", count] => cases(count),
        ["fuzz", target, seconds, ref seeds @ ..] => fuzz(target, seconds, seeds),
        ["additions"] => additions::check(),
        _ => Err(Failure(USAGE.to_owned())),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(message)) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn check() -> Result<(), Failure> {
    cargo(&["fmt", "--all", "--check"], &[])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[])
}

/// Each crate that has golden files; `git diff` shows what changed.
fn bless() -> Result<(), Failure> {
    let bless = [("BLESS", "1")];
    cargo(&["test", "--package", "tilewright-core"], &bless)?;
    cargo(&["test", "--package", "tilewright-cli"], &bless)?;
    cargo(&["test", "--package", "tilewright", "--test", "ui"], &[("TRYBUILD", "overwrite")])
}

fn cases(count: &str) -> Result<(), Failure> {
    let cases = [("TILEWRIGHT_CASES", count)];
    cargo(&["test", "--workspace", "--test", "meaning", "--test", "lowering", "--test", "compiled"], &cases)
}

/// Builds a fuzz target with coverage instrumentation by the installed toolchain, and runs it. The crates that it reaches
/// have no unsafe code, so that a sanitizer would find nothing that debug assertions miss. Its own corpus stays below `fuzz/`; it
/// begins with the files of the folders in `seeds`, too.
fn fuzz(target: &str, seconds: &str, seeds: &[&str]) -> Result<(), Failure> {
    seconds.parse::<u32>().map_err(|_| Failure(format!("`{seconds}` is no number of seconds")))?;
    let flags = [
        "--cfg=fuzzing",
        "-Cpasses=sancov-module",
        "-Cllvm-args=-sanitizer-coverage-level=4",
        "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
        "-Cllvm-args=-sanitizer-coverage-pc-table",
        "-Cllvm-args=-sanitizer-coverage-trace-compares",
        "-Cdebug-assertions=on",
        "-Ccodegen-units=1",
    ];
    let host = run::host_triple()?;
    // An explicit target keeps the flags away from build scripts and macros.
    let build =
        ["build", "--manifest-path", "fuzz/Cargo.toml", "--release", "--bin", target, "--target", &host];
    cargo(&build, &[("RUSTFLAGS", &flags.join(" "))])?;
    let directory = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "fuzz/target".to_owned());
    let corpus = format!("fuzz/corpus/{target}");
    std::fs::create_dir_all(&corpus).map_err(|error| Failure(format!("cannot make {corpus}: {error}")))?;
    let limit = format!("-max_total_time={seconds}");
    let arguments = [&[&*corpus, &*limit], seeds].concat();
    step(&format!("{directory}/{host}/release/{target}"), &arguments, &[])
}
