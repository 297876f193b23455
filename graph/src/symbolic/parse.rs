//! Reading symbolic integers from text.

use std::str::FromStr;

use crate::symbolic::{Operation, SymInt};

/// Why a text is no symbolic integer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no symbolic integer: {reason} at byte {position}")]
pub struct ParseError {
    /// The whole text.
    pub text: String,
    /// The problem.
    pub reason: String,
    /// Where.
    pub position: usize,
}

/// How deep calls may be nested, so that no text exhausts the stack.
const DEPTH: usize = 64;

impl FromStr for SymInt {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut reader = Reader { text, position: 0, depth: 0 };
        let value = reader.sum()?;
        reader.skip_blanks();
        if reader.position == text.len() { Ok(value) } else { reader.refuse("unexpected text") }
    }
}

struct Reader<'a> {
    text: &'a str,
    position: usize,
    depth: usize,
}

impl Reader<'_> {
    fn refuse<T>(&self, reason: &str) -> Result<T, ParseError> {
        Err(ParseError { text: self.text.to_owned(), reason: reason.to_owned(), position: self.position })
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text[self.position..];
        self.position += rest.len() - rest.trim_start().len();
    }

    fn take(&mut self, token: char) -> bool {
        self.skip_blanks();
        let found = self.text[self.position..].starts_with(token);
        if found {
            self.position += token.len_utf8();
        }
        found
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &str {
        self.skip_blanks();
        let start = self.position;
        let rest = &self.text[start..];
        self.position += rest.find(|c: char| !accept(c)).unwrap_or(rest.len());
        &self.text[start..self.position]
    }

    fn sum(&mut self) -> Result<SymInt, ParseError> {
        self.depth += 1;
        if self.depth > DEPTH {
            return self.refuse("calls are nested too deeply");
        }
        let mut sum = if self.take('-') { self.product()?.scale(-1) } else { self.product()? };
        loop {
            if self.take('+') {
                sum = &sum + &self.product()?;
            } else if self.take('-') {
                sum = &sum - &self.product()?;
            } else {
                self.depth -= 1;
                return Ok(sum);
            }
        }
    }

    fn product(&mut self) -> Result<SymInt, ParseError> {
        let mut product = self.factor()?;
        while self.take('*') {
            product = &product * &self.factor()?;
        }
        Ok(product)
    }

    fn factor(&mut self) -> Result<SymInt, ParseError> {
        let digits = self.take_while(|c| c.is_ascii_digit());
        if !digits.is_empty() {
            // The magnitude of the smallest number is one more than the largest.
            return match digits.parse::<u64>() {
                Ok(value) if value <= 1 << 63 => Ok(SymInt::from(value as i64)),
                _ => self.refuse("the number is too large"),
            };
        }
        let name = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_').to_owned();
        if name.is_empty() {
            return self.refuse("expected a number or a name");
        }
        if !self.take('(') {
            return Ok(SymInt::symbol(&name));
        }
        let Some(operation) = Operation::ALL.into_iter().find(|operation| operation.name() == name) else {
            return self.refuse("expected one of div, rem, min, max before the parenthesis");
        };
        let left = self.sum()?;
        if !self.take(',') {
            return self.refuse("expected `,`");
        }
        let right = self.sum()?;
        if !self.take(')') {
            return self.refuse("expected `)`");
        }
        Ok(operation.apply(&left, &right))
    }
}
