//! `// test: roundtrip`: the body is a program in its canonical text.

use tilewright_core::program::Program;

use crate::Case;

/// The canonical text of the program, after checking that reading it back changes nothing.
pub(crate) fn run(case: &Case<'_>) -> Result<String, String> {
    let program: Program = case.file.parse().map_err(|error| format!("{error}"))?;
    let text = program.to_string();
    let again: Program = text.parse().map_err(|error| format!("the printed text does not parse: {error}"))?;
    if again != program.canonical() {
        return Err(format!("the printed text is another program\n{text}"));
    }
    if again.to_string() != text {
        return Err(format!("the text changes when it is printed again\n{text}{again}"));
    }
    if again.stable_hash() != program.stable_hash() {
        return Err("the stable hash changes when the text is read back".to_owned());
    }
    Ok(text)
}
