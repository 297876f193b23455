//! From characters to tokens, one at a time.

use crate::dtype::DType;
use crate::text::names::{begins_name, continues_name};
use crate::text::parse::error::ParseProblem;

/// The smallest piece of a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'t> {
    /// A name or keyword.
    Word(&'t str),
    /// A number without its sign.
    Number(Number<'t>),
    /// A text in quotes, with escapes resolved.
    Text(String),
    /// Punctuation or an operator.
    Symbol(&'static str),
    /// The end of the text.
    End,
}

/// A literal as written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Number<'t> {
    /// Digits, with point and exponent.
    pub(super) digits: &'t str,
    /// Whether there is a point or an exponent.
    pub(super) is_float: bool,
    /// The type written behind the digits.
    pub(super) suffix: Option<DType>,
}

/// Longer symbols come before their prefixes.
const SYMBOLS: &[&str] = &[
    "..", "::", "==", "!=", "<=", ">=", "<<", ">>", "(", ")", "[", "]", "{", "}", ",", ":", "=", "+", "-",
    "*", "/", "%", "&", "|", "^", "<", ">", "!", "@",
];

/// Reads tokens from a text.
pub(super) struct Lexer<'t> {
    text: &'t str,
    /// Where the next token begins, in bytes, after spaces and comments.
    position: usize,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Lexer { text, position: 0 }
    }

    /// The next token and where it begins; an error begins where the returned position says.
    pub(super) fn next(&mut self) -> (usize, Result<Token<'t>, ParseProblem>) {
        self.skip_blank();
        let start = self.position;
        let rest = &self.text[start..];
        let token = match rest.chars().next() {
            None => Ok(Token::End),
            Some('"') => self.quoted(),
            Some(first) if first.is_ascii_digit() => self.number(),
            Some(first) if begins_name(first) => Ok(Token::Word(self.take_while(continues_name))),
            Some(first) => match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
                Some(symbol) => {
                    self.position += symbol.len();
                    Ok(Token::Symbol(symbol))
                }
                None => Err(ParseProblem::Character(first)),
            },
        };
        (start, token)
    }

    fn skip_blank(&mut self) {
        loop {
            self.take_while(char::is_whitespace);
            if !self.text[self.position..].starts_with("//") {
                return;
            }
            self.take_while(|character| character != '\n');
        }
    }

    fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'t str {
        let rest = &self.text[self.position..];
        let length = rest.find(|character| !fits(character)).unwrap_or(rest.len());
        self.position += length;
        &rest[..length]
    }

    fn digits(&mut self) {
        self.take_while(|character| character.is_ascii_digit());
    }

    fn number(&mut self) -> Result<Token<'t>, ParseProblem> {
        let start = self.position;
        self.digits();
        let mut is_float = false;
        // `0..N` is a range: a point belongs to the number only when a digit follows.
        let rest = &self.text.as_bytes()[self.position..];
        if rest.first() == Some(&b'.') && rest.get(1).is_some_and(u8::is_ascii_digit) {
            is_float = true;
            self.position += 1;
            self.digits();
        }
        let rest = &self.text.as_bytes()[self.position..];
        if let [b'e' | b'E', after @ ..] = rest {
            let sign = usize::from(matches!(after.first(), Some(b'+' | b'-')));
            if after.get(sign).is_some_and(u8::is_ascii_digit) {
                is_float = true;
                self.position += 1 + sign;
                self.digits();
            }
        }
        let digits = &self.text[start..self.position];
        let suffix = match self.take_while(continues_name) {
            "" => None,
            suffix => Some(suffix.parse().map_err(|_| ParseProblem::Suffix(shorten(suffix)))?),
        };
        Ok(Token::Number(Number { digits, is_float, suffix }))
    }

    fn quoted(&mut self) -> Result<Token<'t>, ParseProblem> {
        let mut value = String::new();
        let mut characters = self.text[self.position..].char_indices().skip(1);
        while let Some((offset, character)) = characters.next() {
            let character = match character {
                '"' => {
                    self.position += offset + 1;
                    return Ok(Token::Text(value));
                }
                '\n' => break,
                '\\' => {
                    let mut plain = characters.by_ref().map(|(_, character)| character);
                    unescape(&mut plain).ok_or(ParseProblem::Escape)?
                }
                other => other,
            };
            value.push(character);
        }
        Err(ParseProblem::Unterminated)
    }
}

/// The character that an escape stands for, after its backslash.
fn unescape(characters: &mut impl Iterator<Item = char>) -> Option<char> {
    match characters.next()? {
        '"' => Some('"'),
        '\\' => Some('\\'),
        'n' => Some('\n'),
        'u' => {
            if characters.next()? != '{' {
                return None;
            }
            let mut code = 0u32;
            loop {
                match characters.next()? {
                    '}' => return char::from_u32(code),
                    digit => code = code.checked_mul(16)?.checked_add(digit.to_digit(16)?)?,
                }
            }
        }
        _ => None,
    }
}

/// The beginning of a text that may be long.
pub(super) fn shorten(text: &str) -> String {
    const LIMIT: usize = 40;
    match text.char_indices().nth(LIMIT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token<'_>> {
        let mut lexer = Lexer::new(text);
        let mut tokens = Vec::new();
        loop {
            match lexer.next().1.unwrap_or_else(|problem| panic!("{text:?}: {problem}")) {
                Token::End => return tokens,
                token => tokens.push(token),
            }
        }
    }

    fn number(digits: &str, is_float: bool, suffix: Option<DType>) -> Token<'_> {
        Token::Number(Number { digits, is_float, suffix })
    }

    #[test]
    fn numbers_ranges_and_suffixes() {
        assert_eq!(
            tokens("0..16"),
            [number("0", false, None), Token::Symbol(".."), number("16", false, None)]
        );
        assert_eq!(tokens("1.5e-3f64"), [number("1.5e-3", true, Some(DType::F64))]);
        assert_eq!(tokens("1e16"), [number("1e16", true, None)]);
        assert_eq!(tokens("3i32"), [number("3", false, Some(DType::I32))]);
    }

    #[test]
    fn words_symbols_texts_and_comments() {
        let expected = [
            Token::Word("größe_1"),
            Token::Symbol("<<"),
            Token::Symbol("<"),
            Token::Text("a\"\\\nπ\u{7}".to_owned()),
        ];
        assert_eq!(tokens("größe_1 // rest ]\n <<< \"a\\\"\\\\\\nπ\\u{7}\""), expected);
    }

    #[test]
    fn bad_pieces_are_refused() {
        for (text, expected) in [
            ("$", ParseProblem::Character('$')),
            ("\"abc", ParseProblem::Unterminated),
            ("\"a\nb\"", ParseProblem::Unterminated),
            ("\"\\q\"", ParseProblem::Escape),
            ("\"\\u{110000}\"", ParseProblem::Escape),
            ("\"\\u{ffffffffff}\"", ParseProblem::Escape),
            ("1.5f31", ParseProblem::Suffix("f31".to_owned())),
        ] {
            assert_eq!(Lexer::new(text).next().1, Err(expected), "{text:?}");
        }
    }
}
