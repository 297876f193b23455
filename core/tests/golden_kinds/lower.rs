//! `// test: lower PASS … [emits=INTRINSIC …]`: the body is a scheduled program, followed by what it is after each of the passes, for a
//! backend that emits some intrinsics.

use tilewright_core::lower::{LowerOptions, lower_with};
use tilewright_core::program::Program;

use crate::Case;

/// Begins the line before the program after a pass.
const AFTER: &str = "// after ";

/// Begins an argument that names an intrinsic.
const EMITS: &str = "emits=";

/// The scheduled program and what becomes of it.
pub(crate) fn run(case: &Case<'_>) -> Result<String, String> {
    let (emitted, passes): (Vec<&str>, Vec<&str>) =
        case.arguments.iter().partition(|argument| argument.starts_with(EMITS));
    let intrinsics = emitted.iter().map(|argument| argument[EMITS.len()..].into()).collect();
    let options = LowerOptions { verify: true, intrinsics, ..LowerOptions::default() };
    let before: String =
        case.body.split_inclusive('\n').take_while(|line| !line.starts_with(AFTER)).collect();
    let program: Program = before.parse().map_err(|error| format!("{error}"))?;
    let mut text = format!("{program}\n");
    let mut seen = Vec::new();
    lower_with(&program, &options, &mut |pass, program| {
        if passes.contains(&pass) {
            seen.push(pass.to_owned());
            text.push_str(&format!("{AFTER}{pass}\n{program}\n"));
        }
    })
    .map_err(|error| error.to_string())?;
    match passes.iter().find(|pass| !seen.iter().any(|seen| seen == *pass)) {
        Some(unknown) => Err(format!("there is no pass `{unknown}`")),
        None => Ok(text.trim_end().to_owned() + "\n"),
    }
}
