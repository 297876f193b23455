//! The meanings of the words under which refused candidates are counted.

use tilewright_core::schedule::ScheduleError;
use tilewright_measure::reason;

/// Words of postprocessors, which are open to users: those of the built-in ones.
const POSTPROCESSORS: &[(&str, &str)] = &[
    ("unroll_too_large", "unrolling would make more code than the instruction cache holds"),
    ("register_spill", "the innermost tile needs more registers than there are"),
    (
        "operand_of_tiles",
        "an operand of the instruction has a condition, so that the instruction cannot read it",
    ),
    ("postprocessor_panic", "a postprocessor panicked"),
];

/// The meaning of a word, as the end of a sentence; empty for a word of a user's own postprocessor.
pub(super) fn meaning(word: &str) -> &'static str {
    let all = ScheduleError::REASONS.iter().chain(reason::ALL).chain(POSTPROCESSORS);
    all.clone().find(|(known, _)| *known == word).map_or("", |(_, meaning)| meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_word_has_a_meaning_of_its_own() {
        let all: Vec<_> = ScheduleError::REASONS.iter().chain(reason::ALL).chain(POSTPROCESSORS).collect();
        for (position, (word, meaning)) in all.iter().enumerate() {
            assert!(!meaning.is_empty() && !all[..position].iter().any(|(other, _)| other == word), "{word}");
        }
        assert_eq!(
            meaning("reduction_loop"),
            "iterations of a reduction depend on each other and cannot run at the same time"
        );
        assert_eq!(meaning("my_own"), "");
    }
}
