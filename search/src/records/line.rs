//! The fields that all lines have: a version, a kind, and the name of a kernel.
//!
//! A line without a kind is a record. Kinds that this version does not know, and lines of later versions, are skipped with a
//! problem, but neither pruning nor merging loses them.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::file::Line;
use super::record::is_kernel_name;
use super::{Record, Run, StoredProgram, program, record_line, run};

/// The version of the format, which each line states. Raised whenever the meaning of a field changes.
pub const FORMAT_VERSION: u32 = 1;

/// The content of a line.
pub(super) enum Item {
    /// A trial.
    Record(Record),
    /// The program that records are of.
    Program(StoredProgram),
    /// The result of a tuning run.
    Run(Run),
}

/// The reason why a line is skipped.
pub(super) struct Skipped {
    pub(super) message: String,
    /// The kernel of a line that a later version of Tilewright has written, and may understand again.
    pub(super) later: Option<String>,
}

/// The fault of a line of a known kind.
pub(super) enum Malformed {
    /// It is no JSON, or has other fields.
    Json(serde_json::Error),
    /// A field has an impossible value.
    Content(String),
}

impl From<serde_json::Error> for Malformed {
    fn from(error: serde_json::Error) -> Self {
        Malformed::Json(error)
    }
}

impl From<String> for Malformed {
    fn from(message: String) -> Self {
        Malformed::Content(message)
    }
}

/// The fields that identify a line.
#[derive(Deserialize)]
struct Envelope {
    version: Option<u64>,
    kind: Option<String>,
    kernel: Option<String>,
}

/// The content of a line, `None` for an empty line, or the reason why it is skipped.
pub(super) fn parse_line(line: &Line<'_>) -> Result<Option<Item>, Skipped> {
    let skipped = |message: String| Skipped { message, later: None };
    let (bytes, finished) = match *line {
        Line::Whole(bytes) => (bytes, true),
        Line::Unfinished(bytes) => (bytes, false),
        Line::TooLong { limit } => return Err(skipped(format!("the line is longer than {limit} bytes"))),
    };
    if bytes.trim_ascii().is_empty() {
        return Ok(None);
    }
    let explain = |what: &str, malformed: Malformed| match malformed {
        Malformed::Content(message) => skipped(message),
        Malformed::Json(error) if finished => skipped(format!("not a {what}: {error}")),
        Malformed::Json(_) => skipped("the line was cut off while it was written".to_owned()),
    };
    let envelope: Envelope =
        serde_json::from_slice(bytes).map_err(|error| explain("record", Malformed::Json(error)))?;
    let later = envelope.kernel.filter(|kernel| is_kernel_name(kernel));
    match envelope.version {
        None => return Err(skipped("not a record: it states no `version`".to_owned())),
        Some(version) if version == u64::from(FORMAT_VERSION) => {}
        Some(other) => {
            let message =
                format!("a record of format version {other}, expected {FORMAT_VERSION}; tune again");
            let later = later.filter(|_| other > u64::from(FORMAT_VERSION));
            return Err(Skipped { message, later });
        }
    }
    let item = match envelope.kind.as_deref() {
        None => record_line::parse(bytes).map(Item::Record),
        Some(program::KIND) => program::parse(bytes).map(Item::Program),
        Some(run::KIND) => run::parse(bytes).map(Item::Run),
        Some(other) => {
            let message =
                format!("a line of the kind `{other}`, which this version of Tilewright does not know");
            return Err(Skipped { message, later });
        }
    };
    let what = envelope.kind.as_deref().unwrap_or("record");
    item.map(Some).map_err(|malformed| explain(what, malformed))
}

/// Checks the name of a kernel.
pub(super) fn check_kernel(name: &str) -> Result<(), String> {
    if is_kernel_name(name) { Ok(()) } else { Err(format!("`kernel`: `{name}` is no kernel name")) }
}

/// The text of a program's hash.
pub(super) fn print_hash(hash: u64) -> String {
    format!("{hash:016x}")
}

/// The program's hash of a text.
pub(super) fn parse_hash(field: &str, text: &str) -> Result<u64, String> {
    let is_hash = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let hash = u64::from_str_radix(text, 16).ok().filter(|_| is_hash);
    hash.ok_or_else(|| format!("`{field}`: `{text}` is no hash of 16 hexadecimal digits"))
}

/// Checks the values of dimensions and compile-time parameters.
pub(super) fn check_shape(
    dims: &BTreeMap<String, i64>,
    params: &BTreeMap<String, i64>,
) -> Result<(), String> {
    match dims.iter().chain(params).find(|(_, value)| **value < 0) {
        Some((name, value)) => Err(format!("`shape`: `{name}` is {value}, but dimensions are not negative")),
        None => Ok(()),
    }
}
