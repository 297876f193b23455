//! Parsing of programs: recursive descent over one token of look-ahead.
//!
//! The parser reads texts from files that anybody may have edited: it returns an error with a position for every text
//! that is no program, and its stack, memory and time are bounded, see [`cost`]. It builds the program of the text;
//! [`crate::verify`] decides whether that is well-formed.

mod cost;
mod error;
mod indices;
mod lexer;
mod map;
mod statements;
mod values;

use std::str::FromStr;

use rustc_hash::FxHashMap;

use crate::accuracy::Accuracy;
use crate::dtype::DType;
use crate::ids::{BufferId, VarId};
use crate::index::Index;
use crate::program::{Access, Alignment, Buffer, Param, Program, Scope, VariableKind};
use crate::swizzle::Swizzle;
use crate::text::names::is_keyword;
use crate::text::parse::cost::{Budget, MAX_NESTING, MAX_TEXT};
pub use crate::text::parse::error::{ParseError, ParseProblem};
use crate::text::parse::lexer::{Lexer, Token, shorten};

impl FromStr for Program {
    type Err = ParseError;

    /// Reads a program from its text, described in [`crate::text`].
    fn from_str(text: &str) -> Result<Self, ParseError> {
        if text.len() > MAX_TEXT {
            let problem = ParseProblem::Limit { what: "the length of the text", limit: MAX_TEXT as u64 };
            return Err(ParseError { line: 1, column: 1, problem });
        }
        let mut parser = Parser::new(text);
        let outcome = parser.advance().and_then(|()| parser.kernel());
        match outcome {
            Ok(()) => Ok(parser.program),
            Err(problem) => Err(locate(text, parser.start, problem)),
        }
    }
}

fn locate(text: &str, position: usize, problem: ParseProblem) -> ParseError {
    let before = &text[..position];
    let line = before.matches('\n').count() + 1;
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    ParseError { line, column: before[line_start..].chars().count() + 1, problem }
}

/// The largest number of a dimension in a text.
const MAX_AXIS: u64 = 64;

type Parsed<T> = Result<T, ParseProblem>;

/// The meaning of a name.
#[derive(Clone, Copy, Debug)]
enum Named {
    Variable(VarId),
    Scalar(VarId, DType),
    Buffer(BufferId, DType),
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    /// The current token.
    token: Token<'t>,
    /// Its position; an error is reported here.
    start: usize,
    names: FxHashMap<&'t str, Named>,
    program: Program,
    nesting: u32,
    budget: Budget,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Self {
        Parser {
            lexer: Lexer::new(text),
            token: Token::End,
            start: 0,
            names: FxHashMap::default(),
            program: Program::new(""),
            nesting: 0,
            budget: Budget::new(text),
        }
    }

    /// Looks at the next token.
    fn advance(&mut self) -> Parsed<()> {
        let (start, token) = self.lexer.next();
        self.start = start;
        self.token = token?;
        Ok(())
    }

    fn expected<T>(&self, expected: impl Into<String>) -> Parsed<T> {
        let found = match &self.token {
            Token::Word(word) => format!("`{}`", shorten(word)),
            Token::Number(number) => format!("`{}`", shorten(number.digits)),
            Token::Text(_) => "a text".to_owned(),
            Token::Symbol(symbol) => format!("`{symbol}`"),
            Token::End => "the end of the text".to_owned(),
        };
        Err(ParseProblem::Expected { expected: expected.into(), found })
    }

    fn at_symbol(&self, symbol: &str) -> bool {
        matches!(self.token, Token::Symbol(found) if found == symbol)
    }

    fn at_word(&self, word: &str) -> bool {
        matches!(self.token, Token::Word(found) if found == word)
    }

    /// Passes a symbol when it is there.
    fn accept(&mut self, symbol: &str) -> Parsed<bool> {
        let there = self.at_symbol(symbol);
        if there {
            self.advance()?;
        }
        Ok(there)
    }

    /// Passes a keyword when it is there.
    fn accept_word(&mut self, word: &str) -> Parsed<bool> {
        let there = self.at_word(word);
        if there {
            self.advance()?;
        }
        Ok(there)
    }

    fn expect(&mut self, symbol: &str) -> Parsed<()> {
        if self.accept(symbol)? { Ok(()) } else { self.expected(format!("`{symbol}`")) }
    }

    fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.accept_word(word)? { Ok(()) } else { self.expected(format!("`{word}`")) }
    }

    /// Any word, also a reserved one.
    fn word(&mut self, expected: &str) -> Parsed<&'t str> {
        match self.token {
            Token::Word(word) => {
                self.advance()?;
                Ok(word)
            }
            _ => self.expected(expected),
        }
    }

    /// The name of a kernel, a block or an annotation: a word or a text.
    fn name(&mut self, expected: &str) -> Parsed<String> {
        match &self.token {
            Token::Text(text) => {
                let text = text.clone();
                self.advance()?;
                Ok(text)
            }
            _ => Ok(self.word(expected)?.to_owned()),
        }
    }

    /// A name that is not declared yet.
    fn new_name(&mut self, expected: &str) -> Parsed<&'t str> {
        match self.token {
            Token::Word(word) if is_keyword(word) => Err(ParseProblem::Reserved(word.to_owned())),
            Token::Word(word) if self.names.contains_key(word) => {
                Err(ParseProblem::Redeclared(shorten(word)))
            }
            _ => self.word(expected),
        }
    }

    fn dtype(&mut self) -> Parsed<DType> {
        match self.token {
            Token::Word(word) => match word.parse() {
                Ok(dtype) => {
                    self.advance()?;
                    Ok(dtype)
                }
                Err(_) => self.expected("an element type such as `f32`"),
            },
            _ => self.expected("an element type such as `f32`"),
        }
    }

    /// Runs `inner` one level deeper.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting == MAX_NESTING {
            return Err(ParseProblem::Limit { what: "nesting", limit: MAX_NESTING.into() });
        }
        self.nesting += 1;
        let result = inner(self);
        self.nesting -= 1;
        result
    }

    /// `item , item , …` up to and past `close`, which is where a last comma may stand before.
    fn list<T>(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        while !self.accept(close)? {
            items.push(item(self)?);
            if !self.at_symbol(close) && !self.accept(",")? {
                return self.expected(format!("`,` or `{close}`"));
            }
        }
        Ok(items)
    }

    fn kernel(&mut self) -> Parsed<()> {
        self.expect_word("kernel")?;
        self.program.name = self.name("the kernel's name")?.into();
        self.expect("(")?;
        let params = self.list(")", Self::param)?;
        params.into_iter().for_each(|param| self.program.add_param(param));
        self.program.accuracy = if self.accept_word("accuracy")? { Some(self.accuracy()?) } else { None };
        self.program.multiplies_padding = self.accept_word("multiply_padding")?;
        self.expect("{")?;
        while self.accept_word("buffer")? {
            let (buffer, name) = self.shaped()?;
            let Some(scope) = self.scope()? else {
                return self.expected("a scope, such as `global` or `local`");
            };
            let id = self.declare_buffer(name, Buffer { scope, ..buffer });
            if self.accept_word("fixed")? {
                self.program.fix_scope(id, scope);
            }
            while self.accept_word("aligned")? {
                let axis = self.bounded_integer(MAX_AXIS)? as usize;
                let factor = self.bounded_integer(Alignment::MAX_FACTOR as u64)? as i64;
                let offset = self.bounded_integer(Alignment::MAX_FACTOR as u64)? as i64;
                self.program.align(id, axis, Alignment { factor, offset });
            }
            if self.accept_word("swizzled")? {
                let row = match self.token {
                    Token::Number(_) => self.bounded_integer(Swizzle::MAX_ROW as u64)? as i64,
                    _ => 0,
                };
                self.program.set_swizzle(id, Swizzle { row });
            }
        }
        self.program.body = self.stmts()?;
        match self.token {
            Token::End => Ok(()),
            _ => self.expected("the end of the text"),
        }
    }

    /// A number of at least 0 and less than 1.
    fn accuracy(&mut self) -> Parsed<Accuracy> {
        let number = match self.token {
            Token::Number(number) if number.suffix.is_none() => number.digits.parse().ok(),
            _ => None,
        };
        match number.and_then(Accuracy::new) {
            Some(accuracy) => {
                self.advance()?;
                Ok(accuracy)
            }
            None => self.expected("a number of at least 0 and less than 1"),
        }
    }

    fn param(&mut self) -> Parsed<Param> {
        for access in Access::ALL {
            if self.accept_word(access.text())? {
                let (buffer, name) = self.shaped()?;
                let strides = self.strides()?;
                let scope = self.scope()?.unwrap_or(Scope::Global);
                let id = self.declare_buffer(name, Buffer { scope, ..buffer });
                if let Some(strides) = strides {
                    self.program.set_strides(id, strides);
                }
                return Ok(Param::Buffer(id, access));
            }
        }
        let name = self.new_name("a parameter")?;
        if self.accept(":")? {
            let dtype = self.dtype()?;
            let id = self.program.add_variable(name, VariableKind::Scalar);
            self.names.insert(name, Named::Scalar(id, dtype));
            return Ok(Param::Scalar(id, dtype));
        }
        Ok(Param::Dim(self.declare_variable(name, VariableKind::Dim)))
    }

    /// `NAME: DTYPE[extents]`
    fn shaped(&mut self) -> Parsed<(Buffer, &'t str)> {
        let name = self.new_name("the buffer's name")?;
        self.expect(":")?;
        let dtype = self.dtype()?;
        self.expect("[")?;
        let shape = self.list("]", Self::index)?;
        Ok((Buffer { name: name.into(), dtype, shape, scope: Scope::Global }, name))
    }

    /// `strides [S, 1]`
    fn strides(&mut self) -> Parsed<Option<Vec<Index>>> {
        if !self.accept_word("strides")? {
            return Ok(None);
        }
        self.expect("[")?;
        Ok(Some(self.list("]", Self::index)?))
    }

    fn scope(&mut self) -> Parsed<Option<Scope>> {
        for scope in Scope::ALL {
            if self.accept_word(scope.text())? {
                return Ok(Some(scope));
            }
        }
        Ok(None)
    }

    fn declare_buffer(&mut self, name: &'t str, buffer: Buffer) -> BufferId {
        let dtype = buffer.dtype;
        let id = self.program.add_buffer(buffer);
        self.names.insert(name, Named::Buffer(id, dtype));
        id
    }

    fn declare_variable(&mut self, name: &'t str, kind: VariableKind) -> VarId {
        let id = self.program.add_variable(name, kind);
        self.names.insert(name, Named::Variable(id));
        id
    }

    /// The meaning of a name in scope.
    fn lookup(&self, name: &str) -> Parsed<Named> {
        self.names.get(name).copied().ok_or_else(|| ParseProblem::Unknown(shorten(name)))
    }
}
