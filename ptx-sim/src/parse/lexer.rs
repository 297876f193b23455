//! From text to tokens.

use crate::parse::error::ParseError;

/// A token, with the text that it stands for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Token<'a> {
    /// A name: of an opcode, a register, a variable or a label.
    Word(&'a str),
    /// A directive, modifier or component, without its dot.
    Dotted(&'a str),
    /// An integer constant.
    Integer(u64),
    /// A floating-point constant of single precision, as bits.
    Single(u32),
    /// A floating-point constant of double precision, as bits.
    Double(u64),
    /// Text between quotation marks.
    Text(&'a str),
    /// Anything else, one character at a time.
    Mark(u8),
    /// The end of the text.
    End,
}

/// Tokens of a text, each with its line; the last one is [`Token::End`].
pub(crate) fn tokens(text: &str) -> Result<Vec<(Token<'_>, u32)>, ParseError> {
    let mut lexer = Lexer { text, bytes: text.as_bytes(), at: 0, line: 1 };
    let mut found = Vec::new();
    loop {
        lexer.skip_blanks()?;
        let line = lexer.line;
        let token = lexer.token()?;
        found.push((token, line));
        if token == Token::End {
            return Ok(found);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    line: u32,
}

fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

impl<'a> Lexer<'a> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn error(&self, message: impl Into<String>) -> ParseError {
        ParseError::new(self.line, message)
    }

    fn skip_line(&mut self) {
        while self.at < self.bytes.len() && self.bytes[self.at] != b'\n' {
            self.at += 1;
        }
    }

    fn skip_blanks(&mut self) -> Result<(), ParseError> {
        loop {
            match self.peek(0) {
                b'\n' => {
                    self.line += 1;
                    self.at += 1;
                }
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'/' if self.peek(1) == b'/' => self.skip_line(),
                b'/' if self.peek(1) == b'*' => self.skip_comment()?,
                // Old compilers write debug sections as lines with this mark.
                b'@' if self.text[self.at..].starts_with("@@DWARF") => self.skip_line(),
                _ => return Ok(()),
            }
        }
    }

    fn skip_comment(&mut self) -> Result<(), ParseError> {
        let first = self.line;
        self.at += 2;
        loop {
            match (self.peek(0), self.peek(1)) {
                (b'*', b'/') => {
                    self.at += 2;
                    return Ok(());
                }
                _ if self.at >= self.bytes.len() => {
                    return Err(ParseError::new(first, "this comment has no end"));
                }
                (b'\n', _) => {
                    self.line += 1;
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
    }

    fn word_end(&self, mut end: usize) -> usize {
        while end < self.bytes.len() && in_word(self.bytes[end]) {
            end += 1;
        }
        end
    }

    fn token(&mut self) -> Result<Token<'a>, ParseError> {
        let start = self.at;
        if start >= self.bytes.len() {
            // A NUL that some tools leave at the end of a text is skipped as a blank would be.
            return Ok(Token::End);
        }
        let byte = self.bytes[start];
        match byte {
            b'%' | b'$' | b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
                self.at = self.word_end(start + 1);
                if self.at == start + 1 && byte == b'%' {
                    return Ok(Token::Mark(byte));
                }
                Ok(Token::Word(&self.text[start..self.at]))
            }
            b'.' if in_word(self.peek(1)) => {
                self.at = self.word_end(start + 1);
                while self.peek(0) == b':' && self.peek(1) == b':' && in_word(self.peek(2)) {
                    self.at = self.word_end(self.at + 2);
                }
                Ok(Token::Dotted(&self.text[start + 1..self.at]))
            }
            b'0'..=b'9' => self.number(),
            b'"' => {
                let length = self.text[start + 1..].find(['"', '\n']);
                match length.map(|length| start + 1 + length) {
                    Some(end) if self.bytes[end] == b'"' => {
                        self.at = end + 1;
                        Ok(Token::Text(&self.text[start + 1..end]))
                    }
                    _ => Err(self.error("this text has no closing quotation mark")),
                }
            }
            0 => {
                self.at = self.bytes.len();
                Ok(Token::End)
            }
            _ if byte.is_ascii() => {
                self.at += 1;
                Ok(Token::Mark(byte))
            }
            _ => {
                let odd = self.text[start..].chars().next().unwrap_or('?');
                Err(self.error(format!("the character `{}` has no place in PTX", odd.escape_default())))
            }
        }
    }

    fn number(&mut self) -> Result<Token<'a>, ParseError> {
        let start = self.at;
        let second = self.peek(1).to_ascii_lowercase();
        if self.bytes[start] == b'0' && matches!(second, b'f' | b'd') {
            return self.float_bits(second);
        }
        if self.bytes[start] == b'0' && matches!(second, b'x' | b'b') {
            let radix = if second == b'x' { 16 } else { 2 };
            return self.integer(start + 2, radix);
        }
        let digits = self.bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let next = self.peek(digits);
        let decimal = next == b'.' && !self.peek(digits + 1).is_ascii_alphabetic();
        if decimal || matches!(next, b'e' | b'E') {
            return self.decimal();
        }
        if self.bytes[start] == b'0' && digits > 1 {
            return self.integer(start + 1, 8);
        }
        self.integer(start, 10)
    }

    /// `0f` and eight, or `0d` and sixteen hexadecimal digits.
    fn float_bits(&mut self, kind: u8) -> Result<Token<'a>, ParseError> {
        let start = self.at;
        self.at = self.word_end(start);
        let digits = &self.text[start + 2..self.at];
        let wanted = if kind == b'f' { 8 } else { 16 };
        let bits = u64::from_str_radix(digits, 16).ok().filter(|_| digits.len() == wanted);
        match bits {
            Some(bits) if kind == b'f' => Ok(Token::Single(bits as u32)),
            Some(bits) => Ok(Token::Double(bits)),
            None => Err(self.error(format!(
                "`{}` is no constant: `0{}` takes {wanted} hexadecimal digits",
                &self.text[start..self.at],
                char::from(kind)
            ))),
        }
    }

    fn integer(&mut self, digits: usize, radix: u32) -> Result<Token<'a>, ParseError> {
        let start = self.at;
        self.at = self.word_end(digits);
        let text = self.text[digits..self.at].trim_end_matches(['U', 'u']);
        match u64::from_str_radix(text, radix) {
            Ok(value) if !text.starts_with('+') => Ok(Token::Integer(value)),
            _ => {
                Err(self.error(format!("`{}` is no integer of at most 64 bits", &self.text[start..self.at])))
            }
        }
    }

    fn decimal(&mut self) -> Result<Token<'a>, ParseError> {
        let start = self.at;
        let mut end = start;
        while end < self.bytes.len() {
            let byte = self.bytes[end];
            let sign = matches!(byte, b'+' | b'-') && matches!(self.bytes[end - 1], b'e' | b'E');
            if !(byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E') || sign) {
                break;
            }
            end += 1;
        }
        self.at = end;
        match self.text[start..end].parse::<f64>() {
            Ok(value) => Ok(Token::Double(value.to_bits())),
            Err(_) => Err(self.error(format!("`{}` is no number", &self.text[start..end]))),
        }
    }
}
