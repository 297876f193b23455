//! Unique names, and the reserved names of the text form.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::dtype::DType;
use crate::expr::{BinaryOp, UnaryOp};

/// Words of the text form besides the names of operators and element types.
const KEYWORDS: &[&str] = &[
    "aligned",
    "alloc",
    "as",
    "at",
    "bitcast",
    "block",
    "bound",
    "bounded",
    "buffer",
    "constant",
    "else",
    "false",
    "for",
    "global",
    "if",
    "in",
    "index",
    "init",
    "inout",
    "intrinsic",
    "kernel",
    "lane",
    "local",
    "mul_add",
    "out",
    "parallel",
    "reduce",
    "select",
    "spatial",
    "streamed",
    "true",
    "unrolled",
    "value",
    "vectorized",
    "where",
];

/// Whether a word is part of the grammar, so that no variable or buffer may have it as its name.
pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.binary_search(&word).is_ok()
}

/// Whether a word has a meaning of its own, so that no variable or buffer is printed with it as its name. The parser accepts names of
/// operators and types where they are declared, because a text may be older than an operator.
pub(crate) fn is_reserved(word: &str) -> bool {
    is_keyword(word)
        || UnaryOp::ALL.iter().any(|op| op.text() == word)
        || BinaryOp::ALL.iter().any(|op| op.text() == word)
        || DType::ALL.iter().any(|dtype| dtype.name() == word)
}

/// Whether a character may begin a name.
pub(crate) fn begins_name(character: char) -> bool {
    character == '_' || character.is_alphabetic()
}

/// Whether a character may stand inside a name.
pub(crate) fn continues_name(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

/// Whether a text is one name, reserved or not.
pub(crate) fn is_name(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(begins_name) && characters.all(continues_name)
}

/// Hands out names, no name twice and none that is reserved.
///
/// A preferred name that is free stays as it is; otherwise it gets the first free number as a suffix.
#[derive(Debug, Default)]
pub(crate) struct UniqueNames {
    taken: FxHashSet<String>,
    last_suffix: FxHashMap<String, u32>,
}

impl UniqueNames {
    /// A name like `preferred` that was not handed out before.
    pub(crate) fn claim(&mut self, preferred: &str) -> String {
        let name = sanitize(preferred);
        if !is_reserved(&name) && self.taken.insert(name.clone()) {
            return name;
        }
        let stem = strip_suffix_number(&name).to_owned();
        let suffix = self.last_suffix.entry(stem.clone()).or_insert(0);
        loop {
            *suffix += 1;
            let candidate = format!("{stem}_{suffix}");
            if self.taken.insert(candidate.clone()) {
                return candidate;
            }
        }
    }
}

/// The text with everything replaced that may not stand in a name.
fn sanitize(text: &str) -> String {
    let mut name: String = text.chars().map(|c| if continues_name(c) { c } else { '_' }).collect();
    if !name.chars().next().is_some_and(begins_name) {
        name.insert(0, '_');
    }
    name
}

/// `i_12` without `_12`.
fn strip_suffix_number(name: &str) -> &str {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match stem.strip_suffix('_') {
        Some(stem) if !stem.is_empty() && stem.len() + 1 < name.len() => stem,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_sorted_for_the_binary_search() {
        assert!(KEYWORDS.is_sorted());
    }

    #[test]
    fn names_stay_when_free_and_get_a_number_when_not() {
        let mut names = UniqueNames::default();
        let claimed: Vec<String> = ["i", "i", "i_1", "for", "a b", "", "1x", "_", "i"]
            .iter()
            .map(|name| names.claim(name))
            .collect();
        assert_eq!(claimed, ["i", "i_1", "i_2", "for_1", "a_b", "_", "_1x", "__1", "i_3"]);
    }

    #[test]
    fn claiming_claimed_names_again_changes_nothing() {
        let preferred = ["x", "x", "x_1", "x_1", "exp", "exp_1", "x"];
        let mut names = UniqueNames::default();
        let first: Vec<String> = preferred.iter().map(|name| names.claim(name)).collect();
        let mut names = UniqueNames::default();
        let second: Vec<String> = first.iter().map(|name| names.claim(name)).collect();
        assert_eq!(first, second);
    }
}
