//! Findings of the simulator, for people and for programs.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use serde_json::json;

use tilewright_ptx_sim::{FaultKind, Launch, Report};

use crate::code::Code;

/// Appends a line on a launch to a file.
pub(crate) fn append(file: &Path, device: usize, kernel: &str, launch: &Launch, report: &Report) {
    let line = json!({
        "device": device,
        "kernel": kernel,
        "grid": launch.grid,
        "block": launch.block,
        "report": report,
    });
    let opened = OpenOptions::new().create(true).append(true).open(file);
    if let Err(error) = opened.and_then(|mut file| writeln!(file, "{line}")) {
        eprintln!("mock driver: no report in {}: {error}", file.display());
    }
}

/// Prints the faults of a launch.
pub(crate) fn print_faults(kernel: &str, report: &Report) {
    for finding in &report.findings {
        let place = match (finding.block, finding.thread) {
            (Some(block), Some(thread)) => format!(", block {block:?}, thread {thread:?}"),
            (Some(block), None) => format!(", block {block:?}"),
            _ => String::new(),
        };
        eprintln!("mock driver: kernel `{kernel}`, line {}{place}: {}", finding.line, finding.message);
    }
}

/// The code that a launch with faults fails with: that of the first.
pub(crate) fn failure(report: &Report) -> Option<Code> {
    report.findings.first().map(|finding| match finding.kind {
        FaultKind::OutOfBounds | FaultKind::UseAfterFree | FaultKind::WriteToConstant => Code::IllegalAddress,
        FaultKind::Misaligned => Code::MisalignedAddress,
        FaultKind::Deadlock | FaultKind::Livelock => Code::LaunchTimeout,
        FaultKind::Trap => Code::Assert,
        _ => Code::LaunchFailed,
    })
}
