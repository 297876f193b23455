//! Counts the files that an addition touches, by an example of each kind that is in the tree.
//!
//! `ARCHITECTURE.md` promises how few files one more operator, rule or pass touches. The promise holds when the files that name
//! an existing one are no more than that: every other file reads a table.

use std::fs;

use crate::run::{Failure, output};

/// A kind of thing that people add, and an example that was added.
struct Addition {
    kind: &'static str,
    /// Words that name the example, in any file that had to be changed for it.
    words: &'static [&'static str],
    /// The files that may name it.
    files: &'static [&'static str],
}

const ADDITIONS: &[Addition] = &[
    Addition {
        kind: "function",
        words: &["atan2", "Atan2"],
        files: &["vocabulary/src/function.rs", "core/src/math/inverse_trigonometric.rs"],
    },
    Addition {
        kind: "schedule primitive",
        words: &["decompose_padding", "DecomposePadding"],
        files: &["core/src/schedule/prim/block/decompose_padding.rs", "core/src/schedule/prim/mod.rs"],
    },
    Addition {
        kind: "lowering pass",
        words: &["choose_min_max"],
        files: &[
            "core/src/lower/pass/to_flat/choose_min_max.rs",
            "core/src/lower/pass/to_flat/mod.rs",
            "core/src/lower/pipelines.rs",
        ],
    },
    Addition {
        kind: "annotation that a rule writes and a postprocessor reads",
        words: &["UNROLL_REDUCTION", "unroll_reduction"],
        files: &[
            "core/src/annotation.rs",
            "search/src/cpu/rules/parallelize_vectorize_unroll.rs",
            "search/src/cpu/postproc/unroll.rs",
        ],
    },
    Addition {
        kind: "schedule rule",
        words: &["tile_transposed"],
        files: &["search/src/cpu/rules/tile_transposed.rs", "search/src/cpu/rules/mod.rs"],
    },
    Addition {
        kind: "postprocessor",
        words: &["lay_out_panels"],
        files: &["search/src/cpu/postproc/panels.rs", "search/src/cpu/postproc/mod.rs"],
    },
    Addition {
        kind: "mutator",
        words: &["resample"],
        files: &["search/src/space/mutate/resample.rs", "search/src/space/mutate/mod.rs"],
    },
    Addition {
        kind: "description of a tensor intrinsic",
        words: &["vpdpbusd"],
        files: &["backends/cpu/src/intrinsics/x86.rs"],
    },
    Addition {
        kind: "emission rule of a tensor intrinsic, beside its own file",
        words: &["offset_product"],
        files: &["backends/cpu/src/simd/build/intrinsic/mod.rs"],
    },
];

/// Folders that may name anything: tests, benchmarks and examples. `accuracy` holds the tests of functions, and `graph` the operators
/// of models, which have names of their own.
const ELSEWHERE: [&str; 8] = ["tests", "benches", "examples", "peers", "fuzz", "xtask", "accuracy", "graph"];

/// Compares the files that name each example with those that may.
pub(crate) fn check() -> Result<(), Failure> {
    let tracked = output("git", &["ls-files", "*.rs"])?;
    let sources: Vec<(&str, String)> = tracked
        .lines()
        .filter(|path| !is_elsewhere(path))
        .filter_map(|path| Some((path, fs::read_to_string(path).ok()?)))
        .collect();
    let mut problems = Vec::new();
    for addition in ADDITIONS {
        let named: Vec<&str> = sources
            .iter()
            .filter(|(_, text)| addition.words.iter().any(|word| names(text, word)))
            .map(|(path, _)| *path)
            .collect();
        println!("{}: {} ({})", addition.kind, named.len(), named.join(", "));
        let unexpected = named.iter().filter(|path| !addition.files.contains(path));
        problems
            .extend(unexpected.map(|path| format!("{path} names {:?}, a {}", addition.words, addition.kind)));
        let missing = addition.files.iter().filter(|path| !named.contains(path));
        problems.extend(missing.map(|path| format!("{path} does not name {:?}", addition.words)));
    }
    if problems.is_empty() { Ok(()) } else { Err(Failure(problems.join("\n"))) }
}

fn is_elsewhere(path: &str) -> bool {
    path.split('/').any(|part| ELSEWHERE.contains(&part) || part == "tests.rs" || part.ends_with("_tests.rs"))
}

/// Whether a text has a word, as a whole word, outside line comments.
fn names(text: &str, word: &str) -> bool {
    text.lines().filter(|line| !line.trim_start().starts_with("//")).any(|line| {
        line.match_indices(word).any(|(start, _)| {
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            !line[..start].ends_with(is_part) && !line[start + word.len()..].starts_with(is_part)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn a_word_is_named_as_a_whole_and_outside_comments() {
        assert!(names("    Log1p = \"log1p\",", "log1p"));
        assert!(!names("    catalog1p", "log1p"));
        assert!(!names("    // log1p", "log1p"));
    }
}
