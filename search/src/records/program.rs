//! The program of records, as one line of JSON beside them: with it, records can be shown and replayed without the kernel.
//!
//! Such a line is not trusted: the text must be that of a well-formed program at the level `Blocks`, and
//! its hash, which decides which records belong to it, is computed anew.

use serde::{Deserialize, Serialize};
use tilewright_core::program::Program;
use tilewright_core::verify::{Level, verify};

use super::line::{FORMAT_VERSION, Malformed, check_kernel, parse_hash, print_hash};

/// The kind of such lines.
pub(super) const KIND: &str = "program";

/// The unscheduled program of a kernel, with symbolic dimensions.
#[derive(Clone, Debug)]
pub struct StoredProgram {
    /// The kernel's name.
    pub kernel: String,
    /// [`stable_hash`](Program::stable_hash) of the program, which its records state.
    pub hash: u64,
    /// The program, at the `Blocks` level.
    pub program: Program,
}

/// The fields of a line, in their order.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    version: u32,
    kind: String,
    kernel: String,
    program: String,
    text: String,
}

impl StoredProgram {
    /// The program of a kernel.
    pub fn new(kernel: &str, program: &Program) -> Self {
        StoredProgram { kernel: kernel.to_owned(), hash: program.stable_hash(), program: program.clone() }
    }
}

/// The line, without its end.
pub(super) fn print(stored: &StoredProgram) -> String {
    let fields = Fields {
        version: FORMAT_VERSION,
        kind: KIND.to_owned(),
        kernel: stored.kernel.clone(),
        program: print_hash(stored.hash),
        text: stored.program.to_string(),
    };
    serde_json::to_string(&fields).expect("numbers and texts always have a JSON form")
}

/// The program of a line of this kind.
pub(super) fn parse(bytes: &[u8]) -> Result<StoredProgram, Malformed> {
    let fields: Fields = serde_json::from_slice(bytes)?;
    check_kernel(&fields.kernel)?;
    let stated = parse_hash("program", &fields.program)?;
    let program: Program = fields.text.parse().map_err(|error| format!("`text` is no program: {error}"))?;
    verify(&program, Level::Blocks)
        .map_err(|errors| format!("`text` is no well-formed program: {}", errors.render(&program)))?;
    let hash = program.stable_hash();
    if hash != stated {
        return Err(Malformed::Content(format!(
            "`program` is {}, but the hash of `text` is {}",
            print_hash(stated),
            print_hash(hash)
        )));
    }
    Ok(StoredProgram { kernel: fields.kernel, hash, program })
}
