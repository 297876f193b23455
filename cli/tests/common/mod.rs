//! Running the program on files of a test.

use std::path::Path;
use std::process::{Command, Output};

/// Runs the program in a directory, with some environment variables.
fn run(directory: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .args(arguments)
        .envs(variables.iter().copied())
        .current_dir(directory)
        .output()
        .expect("the program starts")
}

/// Runs the program in a directory.
pub(crate) fn tilewright(directory: &Path, arguments: &[&str]) -> Output {
    run(directory, arguments, &[])
}

/// The standard output of a command that succeeds.
pub(crate) fn text(directory: &Path, arguments: &[&str]) -> String {
    let output = tilewright(directory, arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.is_empty(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).expect("a text")
}

/// The standard error of a command that fails with a code.
pub(crate) fn failure(directory: &Path, arguments: &[&str], code: i32) -> String {
    failure_with(directory, arguments, &[], code)
}

/// As [`failure`], with some environment variables.
pub(crate) fn failure_with(
    directory: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
    code: i32,
) -> String {
    let output = run(directory, arguments, variables);
    let error = String::from_utf8(output.stderr).expect("a text");
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    error
}
