//! How a text is split into words, inside of which bytes are merged.
//!
//! GPT-2's rule takes, at each place, the first of these that fits: an English contraction (`'s 't 're 've 'm 'll 'd`); letters, digits, or
//! other characters that are no white space, each with at most one blank before; white space up to the last one before a word; white
//! space. `smollm` takes each digit apart first.

/// The rules that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Splitter {
    Gpt2,
    SmolLm,
}

impl Splitter {
    pub(super) fn of(name: &str) -> Option<Self> {
        match name {
            "default" | "gpt-2" | "gpt2" => Some(Splitter::Gpt2),
            "smollm" => Some(Splitter::SmolLm),
            _ => None,
        }
    }
}

const CONTRACTIONS: [&str; 7] = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"];

/// The classes of characters that stay together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    Space,
    Other,
}

fn class(character: char) -> Class {
    if character.is_whitespace() {
        Class::Space
    } else if character.is_numeric() {
        Class::Digit
    } else if character.is_alphabetic() {
        Class::Letter
    } else {
        Class::Other
    }
}

/// The words of a text, which together are the text.
pub(super) fn split(splitter: Splitter, text: &str) -> Vec<&str> {
    match splitter {
        Splitter::Gpt2 => words(text),
        Splitter::SmolLm => {
            let mut parts = Vec::new();
            let mut rest = text;
            while let Some(place) = rest.find(|character| class(character) == Class::Digit) {
                parts.extend(words(&rest[..place]));
                let digit = rest[place..].chars().next().map_or(0, char::len_utf8);
                parts.push(&rest[place..place + digit]);
                rest = &rest[place + digit..];
            }
            parts.extend(words(rest));
            parts
        }
    }
}

fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (word, after) = rest.split_at(length(rest));
        words.push(word);
        rest = after;
    }
    words
}

/// The length of the first word of a text that is not empty.
fn length(text: &str) -> usize {
    if let Some(contraction) = CONTRACTIONS.iter().find(|contraction| text.starts_with(**contraction)) {
        return contraction.len();
    }
    let run =
        |text: &str, wanted: Class| text.find(|character| class(character) != wanted).unwrap_or(text.len());
    let inner = text.strip_prefix(' ').unwrap_or(text);
    let blank = text.len() - inner.len();
    if let Some(first) = inner.chars().next().map(class).filter(|&first| first != Class::Space) {
        return blank + run(inner, first);
    }
    let spaces = run(text, Class::Space);
    let last = text[..spaces].chars().next_back().map_or(0, char::len_utf8);
    // The last white space belongs to the word that follows, unless the text ends or there is only one.
    if spaces < text.len() && spaces > last { spaces - last } else { spaces }
}
