#![forbid(unsafe_code)]
//! `tilewright`: inspects, replays, compares and keeps tuning records.
//!
//! The libraries know the records; this program has only arguments, choices and texts. A command
//! returns its text, which is written at its end, so that a command that fails half way prints nothing.

mod address;
mod arguments;
mod diff;
mod keep;
mod list;
mod model;
mod records;
mod replay;
mod report;
mod show;
mod words;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};

/// Why a command failed, for people.
#[derive(Debug, PartialEq, Eq)]
struct Failure(String);

/// The result of a command: a text for the standard output.
type Outcome = Result<String, Failure>;

impl Failure {
    fn new(reason: impl std::fmt::Display) -> Self {
        Failure(reason.to_string())
    }
}

fn main() -> ExitCode {
    // In the process that replays a record, this does not return.
    tilewright::init();
    let arguments = Arguments::parse();
    let outcome = match &arguments.command {
        Command::List(options) => list::run(options),
        Command::Show(options) => show::run(options),
        Command::Replay(options) => replay::run(options),
        Command::Diff(options) => diff::run(options),
        Command::Merge(options) => keep::merge(options),
        Command::Prune(options) => keep::prune(options),
        Command::Report(options) => report::run(options),
        Command::Model(command) => model::run(command),
    };
    match outcome {
        Ok(text) => print(&text),
        Err(Failure(reason)) => {
            // Nothing is left to do if nobody reads.
            drop(writeln!(io::stderr(), "error: {reason}"));
            ExitCode::FAILURE
        }
    }
}

/// Writes a text to the standard output. A reader that has read enough, such as `head`, is no failure.
fn print(text: &str) -> ExitCode {
    let mut output = io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            drop(writeln!(io::stderr(), "error: cannot write: {error}"));
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}
