//! Walking through text.

/// Why a text is no function.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {reason}")]
pub struct ParseError {
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
    /// The problem.
    pub reason: String,
}

/// A place in a text.
pub(super) struct Cursor<'t> {
    text: &'t str,
    position: usize,
}

pub(super) type Parsed<T> = Result<T, ParseError>;

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Cursor { text, position: 0 }
    }

    pub(super) fn refuse<T>(&self, reason: impl Into<String>) -> Parsed<T> {
        let before = &self.text[..self.position];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Err(ParseError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            reason: reason.into(),
        })
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text[self.position..];
        self.position += rest.len() - rest.trim_start().len();
    }

    /// Whether everything was read.
    pub(super) fn at_end(&mut self) -> bool {
        self.skip_blanks();
        self.position == self.text.len()
    }

    /// Whether a token comes next.
    pub(super) fn sees(&mut self, token: &str) -> bool {
        self.skip_blanks();
        self.text[self.position..].starts_with(token)
    }

    /// Reads a token if it comes next.
    pub(super) fn take(&mut self, token: &str) -> bool {
        let found = self.sees(token);
        if found {
            self.position += token.len();
        }
        found
    }

    pub(super) fn expect(&mut self, token: &str) -> Parsed<()> {
        if self.take(token) { Ok(()) } else { self.refuse(format!("expected `{token}`")) }
    }

    /// Reads characters as long as they are accepted.
    pub(super) fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'t str {
        self.skip_blanks();
        let rest = &self.text[self.position..];
        let length = rest.find(|c: char| !accept(c)).unwrap_or(rest.len());
        self.position += length;
        &rest[..length]
    }

    pub(super) fn word(&mut self) -> Parsed<&'t str> {
        match self.take_while(|c| c.is_ascii_alphanumeric() || c == '_') {
            "" => self.refuse("expected a word"),
            word => Ok(word),
        }
    }

    /// Reads a number, or another word that stands in its place.
    pub(super) fn number<T: std::str::FromStr>(&mut self) -> Parsed<T> {
        let text = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.'));
        match text.parse() {
            Ok(number) => Ok(number),
            Err(_) => self.refuse(format!("`{text}` is no number of the expected type")),
        }
    }

    /// Reads a string in quotation marks, with Rust's escapes.
    pub(super) fn string(&mut self) -> Parsed<String> {
        self.expect("\"")?;
        let mut string = String::new();
        let mut characters = self.text[self.position..].char_indices();
        while let Some((offset, character)) = characters.next() {
            match character {
                '"' => {
                    self.position += offset + 1;
                    return Ok(string);
                }
                '\\' => match unescape(&mut characters) {
                    Some(character) => string.push(character),
                    None => return self.refuse("the string holds an unknown escape"),
                },
                character => string.push(character),
            }
        }
        self.refuse("the string does not end")
    }

    /// The text up to one of the characters, none of which is inside parentheses that open in it.
    pub(super) fn until(&mut self, ends: &[char]) -> &'t str {
        self.skip_blanks();
        let rest = &self.text[self.position..];
        let mut depth = 0usize;
        let end = rest.find(|c: char| {
            let ends_here = depth == 0 && ends.contains(&c);
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            ends_here
        });
        let length = end.unwrap_or(rest.len());
        self.position += length;
        &rest[..length]
    }

    /// Reads items that commas separate, up to a closing token.
    pub(super) fn list<T>(
        &mut self,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        if self.take(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.take(close) {
                return Ok(items);
            }
            self.expect(",")?;
        }
    }
}

fn unescape(characters: &mut std::str::CharIndices<'_>) -> Option<char> {
    Some(match characters.next()?.1 {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        '0' => '\0',
        quoted @ ('"' | '\'' | '\\') => quoted,
        'u' => {
            let digits: String =
                characters.map(|(_, c)| c).skip_while(|&c| c == '{').take_while(|&c| c != '}').collect();
            char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?
        }
        _ => return None,
    })
}
