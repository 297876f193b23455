//! `// test: verify LEVEL`: the body is a program with the verifier's messages beneath the lines that they are about.

use tilewright_core::program::Program;
use tilewright_core::verify::{Level, verify};

use crate::Case;

/// The program with the messages.
pub(crate) fn run(case: &Case<'_>) -> Result<String, String> {
    let [level] = case.arguments[..] else { return Err("one level is expected".to_owned()) };
    let level = Level::ALL
        .into_iter()
        .find(|known| known.name() == level)
        .ok_or_else(|| format!("unknown level `{level}`"))?;
    let program: Program = case.file.parse().map_err(|error| format!("{error}"))?;
    Ok(match verify(&program, level) {
        Ok(()) => program.to_string(),
        Err(errors) => errors.render(&program),
    })
}
