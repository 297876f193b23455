//! `// test: lower PASS … [emits=INTRINSIC …] [cache=BYTES]`: the body is a scheduled program, followed by what it is after each of the passes, for a
//! backend that emits some intrinsics, and a machine with a second-level cache of some bytes.

use tilewright_core::lower::{LowerOptions, lower_with};
use tilewright_core::program::Program;

use crate::Case;

/// Begins the line before the program after a pass.
const AFTER: &str = "// after ";

/// Begins an argument that names an intrinsic.
const EMITS: &str = "emits=";

/// Begins an argument that gives the size of a cache.
const CACHE: &str = "cache=";

/// The scheduled program and what becomes of it.
pub(crate) fn run(case: &Case<'_>) -> Result<String, String> {
    let (emitted, passes): (Vec<&str>, Vec<&str>) =
        case.arguments.iter().partition(|argument| argument.starts_with(EMITS));
    let (caches, passes): (Vec<&str>, Vec<&str>) =
        passes.into_iter().partition(|argument| argument.starts_with(CACHE));
    let intrinsics = emitted.iter().map(|argument| argument[EMITS.len()..].into()).collect();
    let cache = caches.first().map(|argument| argument[CACHE.len()..].parse()).transpose();
    let second_cache_bytes = cache.map_err(|error| format!("{error}"))?;
    let options = LowerOptions { verify: true, intrinsics, second_cache_bytes, ..LowerOptions::default() };
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
