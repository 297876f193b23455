//! Operands of instructions.

use crate::parse::body::Body;
use crate::parse::error::ParseError;
use crate::parse::expression;
use crate::parse::lexer::Token;
use crate::parse::scope::{Named, Reference};
use crate::program::{Base, Operand};
use crate::special::Special;

/// How deeply vectors and lists may nest: a call has lists, a fragment is a vector.
const DEEPEST: u32 = 3;

impl<'a> Body<'_, 'a> {
    /// Reads one operand; labels become references that are resolved when the function is complete.
    pub(crate) fn operand(&mut self) -> Result<Operand, ParseError> {
        self.nested_operand(DEEPEST)
    }

    fn nested_operand(&mut self, depth: u32) -> Result<Operand, ParseError> {
        if depth == 0 {
            return self.cursor.error("operands nest too deeply");
        }
        match self.cursor.peek() {
            Token::Mark(b'[') => self.address(),
            Token::Mark(b'{') => {
                self.cursor.next();
                Ok(Operand::Vector(self.sequence(b'}', depth)?))
            }
            Token::Mark(b'(') if self.list_ahead() => {
                self.cursor.next();
                Ok(Operand::List(self.sequence(b')', depth)?))
            }
            Token::Mark(b'!') if matches!(self.cursor.ahead(1), Token::Word(_)) => {
                self.cursor.next();
                let name = self.cursor.word("a predicate")?;
                match self.scopes.find(name) {
                    Some(Named::Register(id)) => Ok(Operand::Negated(id)),
                    _ => self.cursor.error(format!("`{name}` is no predicate that was declared")),
                }
            }
            Token::Word("WARP_SZ") => self.literal(),
            Token::Word(_) => self.named(),
            _ => self.literal(),
        }
    }

    fn literal(&mut self) -> Result<Operand, ParseError> {
        Ok(Operand::Literal(expression::constant(self.cursor)?))
    }

    /// Whether a parenthesis opens a list of operands and not a constant expression.
    fn list_ahead(&self) -> bool {
        matches!(self.cursor.ahead(1), Token::Word(_) | Token::Mark(b')'))
            || (self.in_call && !matches!(self.cursor.ahead(1), Token::Dotted(_)))
    }

    fn sequence(&mut self, end: u8, depth: u32) -> Result<Vec<Operand>, ParseError> {
        let mut parts = Vec::new();
        if self.cursor.take(end) {
            return Ok(parts);
        }
        loop {
            parts.push(self.nested_operand(depth - 1)?);
            if self.cursor.take(end) {
                return Ok(parts);
            }
            self.cursor.need(b',')?;
        }
    }

    fn named(&mut self) -> Result<Operand, ParseError> {
        let line = self.cursor.line();
        let name = self.cursor.word("an operand")?;
        if name == "_" {
            return self.pair(Operand::Sink);
        }
        if let Some(special) = self.special(name)? {
            return Ok(Operand::Special(special));
        }
        match self.scopes.find(name) {
            Some(Named::Register(id)) => return self.pair(Operand::Register(id)),
            Some(Named::Variable(variable)) => {
                return Ok(Operand::Variable { variable, offset: self.offset()? });
            }
            None => {}
        }
        if let Some(variable) = self.module_variable(name) {
            return Ok(Operand::Variable { variable, offset: self.offset()? });
        }
        if let Some(function) = self.program.function_names.get(name) {
            return Ok(Operand::Function(*function));
        }
        if name.starts_with('%') {
            return Err(ParseError::new(line, format!("the register `{name}` is not declared")));
        }
        self.references.push(Reference { name: name.to_owned(), scope: self.scopes.current(), line });
        Ok(Operand::Label(self.references.len() as u32 - 1))
    }

    /// `p|q`, if there is a bar behind the first.
    fn pair(&mut self, first: Operand) -> Result<Operand, ParseError> {
        if !self.cursor.take(b'|') {
            return Ok(first);
        }
        let name = self.cursor.word("a predicate")?;
        let second = match self.scopes.find(name) {
            Some(Named::Register(id)) => Operand::Register(id),
            _ if name == "_" => Operand::Sink,
            _ => return self.cursor.error(format!("the register `{name}` is not declared")),
        };
        Ok(Operand::Pair(Box::new(first), Box::new(second)))
    }

    fn special(&mut self, name: &str) -> Result<Option<Special>, ParseError> {
        if !name.starts_with('%') || self.scopes.find(name).is_some() {
            return Ok(None);
        }
        if let Token::Dotted(component) = self.cursor.peek() {
            let Some(special) = Special::named(name, Some(component)) else {
                return self.cursor.error(format!("the special register `{name}.{component}` is unknown"));
            };
            self.cursor.next();
            return Ok(Some(special));
        }
        Ok(Special::named(name, None))
    }

    /// The offset behind a name: `+16`, `-4`, `[2]`.
    fn offset(&mut self) -> Result<i64, ParseError> {
        match self.cursor.peek() {
            Token::Mark(b'+') => {
                self.cursor.next();
                Ok(expression::integer(self.cursor)? as i64)
            }
            Token::Mark(b'-') => Ok(expression::integer(self.cursor)? as i64),
            _ => Ok(0),
        }
    }

    fn address(&mut self) -> Result<Operand, ParseError> {
        self.cursor.need(b'[')?;
        let operand = match self.cursor.peek() {
            Token::Word(name) if name != "WARP_SZ" => self.address_of_name(name)?,
            _ => {
                let offset = expression::integer(self.cursor)? as i64;
                Operand::Address { base: Base::Nothing, offset }
            }
        };
        self.cursor.need(b']')?;
        Ok(operand)
    }

    fn address_of_name(&mut self, name: &str) -> Result<Operand, ParseError> {
        let base = match self.scopes.find(name) {
            Some(Named::Register(id)) => Base::Register(id),
            Some(Named::Variable(id)) => Base::Variable(id),
            None => match self.module_variable(name) {
                Some(id) => Base::Variable(id),
                None => return self.cursor.error(format!("`{name}` is not declared")),
            },
        };
        self.cursor.next();
        Ok(Operand::Address { base, offset: self.offset()? })
    }
}
