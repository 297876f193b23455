//! A place in the tokens.

use crate::parse::error::ParseError;
use crate::parse::lexer::Token;

/// Reads tokens one after the other.
pub(crate) struct Cursor<'a> {
    tokens: Vec<(Token<'a>, u32)>,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Tokens end with [`Token::End`].
    pub(crate) fn new(tokens: Vec<(Token<'a>, u32)>) -> Cursor<'a> {
        Cursor { tokens, at: 0 }
    }

    pub(crate) fn peek(&self) -> Token<'a> {
        self.ahead(0)
    }

    pub(crate) fn ahead(&self, count: usize) -> Token<'a> {
        self.tokens.get(self.at + count).map_or(Token::End, |(token, _)| *token)
    }

    /// The line of the next token.
    pub(crate) fn line(&self) -> u32 {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |(_, line)| *line)
    }

    pub(crate) fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    pub(crate) fn error<T>(&self, message: impl Into<String>) -> Result<T, ParseError> {
        Err(ParseError::new(self.line(), message))
    }

    /// An error that says what was expected instead of the next token.
    pub(crate) fn expected<T>(&self, what: &str) -> Result<T, ParseError> {
        self.error(format!("expected {what}, but there is {}", describe(self.peek())))
    }

    /// Takes the mark if it is next.
    pub(crate) fn take(&mut self, mark: u8) -> bool {
        let there = self.peek() == Token::Mark(mark);
        if there {
            self.next();
        }
        there
    }

    /// Takes the dotted word if it is next.
    pub(crate) fn take_dotted(&mut self, word: &str) -> bool {
        let there = self.peek() == Token::Dotted(word);
        if there {
            self.next();
        }
        there
    }

    pub(crate) fn need(&mut self, mark: u8) -> Result<(), ParseError> {
        if self.take(mark) {
            return Ok(());
        }
        self.expected(&format!("`{}`", char::from(mark)))
    }

    pub(crate) fn word(&mut self, what: &str) -> Result<&'a str, ParseError> {
        match self.peek() {
            Token::Word(word) => {
                self.next();
                Ok(word)
            }
            _ => self.expected(what),
        }
    }

    pub(crate) fn unsigned(&mut self, what: &str) -> Result<u64, ParseError> {
        match self.peek() {
            Token::Integer(value) => {
                self.next();
                Ok(value)
            }
            _ => self.expected(what),
        }
    }
}

fn describe(token: Token<'_>) -> String {
    match token {
        Token::Word(word) => format!("`{word}`"),
        Token::Dotted(word) => format!("`.{word}`"),
        Token::Integer(value) => format!("`{value}`"),
        Token::Single(bits) => format!("`{}`", f32::from_bits(bits)),
        Token::Double(bits) => format!("`{}`", f64::from_bits(bits)),
        Token::Text(text) => format!("\"{text}\""),
        Token::Mark(mark) => format!("`{}`", char::from(mark).escape_default()),
        Token::End => "the end of the text".into(),
    }
}
