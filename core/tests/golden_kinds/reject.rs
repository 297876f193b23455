//! `// test: reject`: the body is no program; its last line says why.

use tilewright_core::program::Program;

use crate::Case;

const MARK: &str = "// error: ";

/// The text with the parser's error in its last line; places count lines of the whole file.
pub(crate) fn run(case: &Case<'_>) -> Result<String, String> {
    let text: String = case.body.split_inclusive('\n').filter(|line| !line.starts_with(MARK)).collect();
    match case.file.parse::<Program>() {
        Ok(_) => Err("the text parses, but should not".to_owned()),
        Err(error) => Ok(format!("{text}{MARK}{error}\n")),
    }
}
