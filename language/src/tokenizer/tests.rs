//! Splitting, merging and back.

use super::split::{Splitter, split};
use super::*;
use crate::gguf::testing::Builder;

#[test]
fn words_keep_one_blank_before_them() {
    let words = |text| split(Splitter::Gpt2, text);
    assert_eq!(
        words("It's  a  \n test, 42 times"),
        ["It", "'s", " ", " a", "  \n", " test", ",", " 42", " times"]
    );
    assert_eq!(words("end  "), ["end", "  "]);
    assert_eq!(words(" we'll"), [" we", "'ll"]);
    assert_eq!(words("x\ty"), ["x", "\t", "y"], "a tab is no blank");
    assert_eq!(words(""), [""; 0]);
}

#[test]
fn digits_stand_alone_where_the_rule_says_so() {
    assert_eq!(split(Splitter::SmolLm, "in 2026!"), ["in", " ", "2", "0", "2", "6", "!"]);
}

#[test]
fn letters_of_bytes_are_distinct_and_lead_back() {
    let letters: std::collections::BTreeSet<char> = (0..=255).map(letters::of_byte).collect();
    assert_eq!(letters.len(), 256);
    for byte in 0..=255u8 {
        assert_eq!(letters::to_byte(letters::of_byte(byte)), Some(byte));
    }
    assert_eq!((letters::of_byte(b' '), letters::of_byte(b'\n')), ('Ġ', 'Ċ'));
}

fn tokenizer() -> Tokenizer {
    let mut tokens: Vec<String> = (0..=255).map(|byte| letters::of_byte(byte).to_string()).collect();
    let merges = ["h e", "l l", "he ll", "Ġ w", "hell o"];
    tokens.extend(merges.iter().map(|pair| pair.replace(' ', "")));
    tokens.push("<|end|>".to_owned());
    let types: Vec<i32> =
        (0..tokens.len()).map(|token| if token + 1 == tokens.len() { 3 } else { 1 }).collect();
    let file = Builder::new()
        .text("tokenizer.ggml.model", "gpt2")
        .text("tokenizer.ggml.pre", "gpt-2")
        .texts("tokenizer.ggml.tokens", &tokens.iter().map(String::as_str).collect::<Vec<_>>())
        .texts("tokenizer.ggml.merges", &merges)
        .integers("tokenizer.ggml.token_type", &types)
        .u32("tokenizer.ggml.eos_token_id", tokens.len() as u32 - 1)
        .file();
    Tokenizer::of(&file).unwrap()
}

#[test]
fn merges_of_lower_rank_come_first_and_bytes_come_back() {
    let tokenizer = tokenizer();
    assert_eq!(tokenizer.encode("hello world", false).unwrap()[..2], [260, 259]);
    for text in ["hello world", "größe\u{0}", "<|end|>", "  \n"] {
        let tokens = tokenizer.encode(text, false).unwrap();
        let bytes: Vec<u8> = tokens.iter().flat_map(|&token| tokenizer.decode(token).unwrap()).collect();
        assert_eq!(bytes, text.as_bytes());
    }
}

#[test]
fn control_tokens_are_read_only_where_they_are_wanted() {
    let tokenizer = tokenizer();
    let tokens = tokenizer.encode("hello<|end|>hello", true).unwrap();
    assert_eq!(tokens, [260, 261, 260]);
    assert!(tokenizer.is_end(261) && !tokenizer.is_end(260));
    assert!(!tokenizer.encode("<|end|>", false).unwrap().contains(&261));
    assert!(tokenizer.decode(262).is_err());
}
