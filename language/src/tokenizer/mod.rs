//! Byte-pair encoding, as a file describes it: tokens, merges in the order of their rank, and how a text is split before.

mod letters;
mod merge;
mod split;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::gguf::{File, Value};
use merge::{Merges, merge};
use split::{Splitter, split};

/// From texts to tokens and back.
pub struct Tokenizer {
    tokens: Vec<String>,
    numbers: FxHashMap<String, u32>,
    /// The rank of each pair of tokens that is merged, and the token that they become.
    merges: Merges,
    /// The tokens that stand for themselves in a text, longest first.
    specials: Vec<u32>,
    /// Whether a token is one of `specials`.
    is_special: Vec<bool>,
    splitter: Splitter,
    first: Option<u32>,
    /// The tokens that end a text.
    ends: Vec<u32>,
}

/// The type of tokens that steer a model, such as the one that ends a text.
const CONTROL: u64 = 3;
/// The type of tokens that users have added.
const USER_DEFINED: u64 = 4;

impl Tokenizer {
    /// Reads the tokenizer of a file.
    ///
    /// # Errors
    /// When the file describes none, or one of another kind than byte-pair encoding.
    pub fn of(file: &File) -> Result<Self, Error> {
        let text = |value: &Value| value.as_text().map(str::to_owned);
        let model = file.entry("tokenizer.ggml.model", "a text", text)?;
        if model != "gpt2" {
            return Err(Error::metadata(
                "tokenizer.ggml.model",
                format!("is `{model}`; only `gpt2` is read"),
            ));
        }
        let pre = file.optional_entry("tokenizer.ggml.pre", "a text", text)?;
        let splitter = Splitter::of(pre.as_deref().unwrap_or("default")).ok_or_else(|| {
            let pre = pre.unwrap_or_default();
            Error::metadata("tokenizer.ggml.pre", format!("is `{pre}`; `gpt-2` and `smollm` are read"))
        })?;
        let tokens = texts(file, "tokenizer.ggml.tokens")?;
        let mut numbers = FxHashMap::default();
        for (number, token) in tokens.iter().enumerate() {
            numbers.entry(token.clone()).or_insert(number as u32);
        }
        let merges = merges(&texts(file, "tokenizer.ggml.merges")?, &numbers)?;
        let is_special = specials(file, tokens.len())?;
        let mut specials: Vec<u32> =
            (0..tokens.len() as u32).filter(|&token| is_special[token as usize]).collect();
        specials.retain(|&token| !tokens[token as usize].is_empty());
        specials.sort_by_key(|&token| std::cmp::Reverse(tokens[token as usize].len()));
        let id = |key: &str| -> Result<Option<u32>, Error> {
            let known = |value: &Value| {
                value.as_u64().filter(|&token| token < tokens.len() as u64).map(|token| token as u32)
            };
            file.optional_entry(key, "a token of the vocabulary", known)
        };
        let wanted = file.optional_entry("tokenizer.ggml.add_bos_token", "a truth value", Value::as_bool)?;
        let first = if wanted == Some(true) { id("tokenizer.ggml.bos_token_id")? } else { None };
        let mut ends: Vec<u32> = [id("tokenizer.ggml.eos_token_id")?, id("tokenizer.ggml.eot_token_id")?]
            .into_iter()
            .flatten()
            .collect();
        ends.extend(numbers.get("<|endoftext|>").filter(|&&token| is_special[token as usize]));
        Ok(Tokenizer { tokens, numbers, merges, specials, is_special, splitter, first, ends })
    }

    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Whether a token ends a text.
    pub fn is_end(&self, token: u32) -> bool {
        self.ends.contains(&token)
    }

    /// The tokens of a text. With `specials`, names of control tokens in it become these tokens; without, they are text like any other, as
    /// they have to be in what others wrote.
    ///
    /// # Errors
    /// When the vocabulary lacks a byte of the text.
    pub fn encode(&self, text: &str, specials: bool) -> Result<Vec<u32>, Error> {
        let mut tokens: Vec<u32> = self.first.into_iter().collect();
        let mut rest = text;
        while specials && !rest.is_empty() {
            let found = self
                .specials
                .iter()
                .filter_map(|&token| rest.find(&self.tokens[token as usize]).map(|place| (place, token)));
            // Of tokens at one place the longest counts, and these come first.
            let Some((place, token)) = found.min_by_key(|&(place, _)| place) else { break };
            self.encode_plain(&rest[..place], &mut tokens)?;
            tokens.push(token);
            rest = &rest[place + self.tokens[token as usize].len()..];
        }
        self.encode_plain(rest, &mut tokens)?;
        Ok(tokens)
    }

    fn encode_plain(&self, text: &str, tokens: &mut Vec<u32>) -> Result<(), Error> {
        for word in split(self.splitter, text) {
            let mut parts = Vec::with_capacity(word.len());
            for byte in word.bytes() {
                let letter = letters::of_byte(byte).to_string();
                parts.push(*self.numbers.get(&letter).ok_or_else(|| {
                    Error::metadata("tokenizer.ggml.tokens", format!("lack the byte {byte:#04x}"))
                })?);
            }
            merge(&mut parts, &self.merges);
            tokens.extend(parts);
        }
        Ok(())
    }

    /// The bytes of a token; none for a token that steers the model. A character may be spread over several tokens.
    ///
    /// # Errors
    /// When there is no such token.
    pub fn decode(&self, token: u32) -> Result<Vec<u8>, Error> {
        let text = self.tokens.get(token as usize).ok_or(Error::Token { token, count: self.tokens.len() })?;
        if self.is_special[token as usize] {
            return Ok(Vec::new());
        }
        let mut bytes = Vec::with_capacity(text.len());
        for letter in text.chars() {
            match letters::to_byte(letter) {
                Some(byte) => bytes.push(byte),
                None => bytes.extend(letter.to_string().into_bytes()),
            }
        }
        Ok(bytes)
    }
}

fn texts(file: &File, key: &str) -> Result<Vec<String>, Error> {
    let read =
        |value: &Value| value.as_array()?.iter().map(|value| value.as_text().map(str::to_owned)).collect();
    file.entry(key, "an array of texts", read)
}

/// The merges of pairs, each with its rank. A pair is two tokens with a blank between them.
fn merges(lines: &[String], numbers: &FxHashMap<String, u32>) -> Result<Merges, Error> {
    let mut merges = FxHashMap::default();
    for (rank, line) in lines.iter().enumerate() {
        let wrong = || {
            Error::metadata(
                "tokenizer.ggml.merges",
                format!("entry {rank}, `{line}`, does not name two tokens that make one"),
            )
        };
        let (left, right) = line.split_once(' ').ok_or_else(wrong)?;
        let number = |token: &str| numbers.get(token).copied().ok_or_else(wrong);
        let merged = number(&format!("{left}{right}"))?;
        merges.entry((number(left)?, number(right)?)).or_insert((rank as u32, merged));
    }
    Ok(merges)
}

/// Which tokens steer the model or were added by users.
fn specials(file: &File, count: usize) -> Result<Vec<bool>, Error> {
    let key = "tokenizer.ggml.token_type";
    let read = |value: &Value| -> Option<Vec<u64>> { value.as_array()?.iter().map(Value::as_u64).collect() };
    let Some(types) = file.optional_entry(key, "an array of integers", read)? else {
        return Ok(vec![false; count]);
    };
    if types.len() != count {
        return Err(Error::metadata(key, format!("has {} entries for {count} tokens", types.len())));
    }
    Ok(types.iter().map(|&kind| kind == CONTROL || kind == USER_DEFINED).collect())
}
