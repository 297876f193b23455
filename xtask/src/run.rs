//! Running other programs.

use std::process::Command;

/// Why a command did not end well.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

/// Runs Cargo with additional environment variables.
pub(crate) fn cargo(arguments: &[&str], variables: &[(&str, &str)]) -> Result<(), Failure> {
    step(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()), arguments, variables)
}

/// Runs a program, which has to end with exit code 0.
pub(crate) fn step(program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Result<(), Failure> {
    let status = Command::new(program).args(arguments).envs(variables.iter().copied()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure(format!("{program} {}: {status}", arguments.join(" ")))),
        Err(error) => Err(Failure(format!("cannot start {program}: {error}"))),
    }
}

/// The text that a program prints to its standard output.
pub(crate) fn output(program: &str, arguments: &[&str]) -> Result<String, Failure> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| Failure(format!("cannot start {program}: {error}")))?;
    if !output.status.success() {
        return Err(Failure(format!("{program} {}: {}", arguments.join(" "), output.status)));
    }
    String::from_utf8(output.stdout).map_err(|error| Failure(format!("{program} printed no text: {error}")))
}

/// The machine that the compiler runs on, such as `x86_64-unknown-linux-gnu`.
pub(crate) fn host_triple() -> Result<String, Failure> {
    let version = output("rustc", &["-vV"])?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| Failure(format!("rustc names no host:\n{version}")))
}
