//! Parsing of statements.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ids::BufferId;
use crate::index::Index;
use crate::program::VariableKind;
use crate::stmt::{
    Alloc, Annotation, Annotations, Block, Copies, For, Guard, If, Intrinsic, Iter, IterKind, Location,
    LoopKind, Shuffle, Stmt, Store, StoreKind,
};
use crate::text::names::is_keyword;
use crate::text::parse::lexer::{Number, Token, shorten};
use crate::text::parse::{Named, ParseProblem, Parsed, Parser};
use crate::thread_axis::ThreadAxis;

impl<'t> Parser<'t> {
    /// Statements up to and past `}`.
    pub(super) fn stmts(&mut self) -> Parsed<Stmt> {
        let mut stmts = Vec::new();
        while !self.accept("}")? {
            stmts.push(self.stmt()?);
        }
        Ok(Stmt::seq(stmts))
    }

    fn braced(&mut self) -> Parsed<Stmt> {
        self.expect("{")?;
        self.nested(Self::stmts)
    }

    fn stmt(&mut self) -> Parsed<Stmt> {
        let annotations = self.annotations()?;
        let Token::Word(word) = self.token else { return self.expected("a statement or `}`") };
        match word {
            "for" | "parallel" | "vectorized" | "unrolled" | "bound" => self.for_loop(annotations),
            "block" => self.block(annotations),
            _ if !annotations.is_empty() => self.expected("a loop or a block after an annotation"),
            "if" => self.conditional(),
            "alloc" => {
                self.advance()?;
                let (buffer, _) = self.buffer_name("the buffer to allocate")?;
                Ok(Stmt::Alloc(Arc::new(Alloc { buffer, body: self.braced()? })))
            }
            "intrinsic" => {
                self.advance()?;
                let name = self.name("the intrinsic's name")?.into();
                Ok(Stmt::Intrinsic(Arc::new(Intrinsic { name, body: self.braced()? })))
            }
            "barrier" => self.called(word, |_| Ok(Stmt::Barrier)),
            "commit_copies" => self.called(word, |_| Ok(Stmt::Copies(Copies::Commit))),
            "wait_copies" => self.called(word, |parser| {
                let left = parser.signed_integer()?;
                u32::try_from(left)
                    .map(|left| Stmt::Copies(Copies::Wait(left)))
                    .or_else(|_| parser.expected("a number of groups"))
            }),
            "async" => self.store_of_kind(StoreKind::Async),
            "atomic" => self.store_of_kind(StoreKind::Atomic),
            "shuffle" => self.shuffle(),
            _ if is_keyword(word) => self.expected("a statement or `}`"),
            _ => self.store(),
        }
    }

    fn buffer_name(&mut self, expected: &str) -> Parsed<(BufferId, crate::dtype::DType)> {
        let Token::Word(word) = self.token else { return self.expected(expected) };
        match self.lookup(word)? {
            Named::Buffer(buffer, dtype) => {
                self.advance()?;
                Ok((buffer, dtype))
            }
            _ => self.expected(expected),
        }
    }

    /// A word with an argument in parentheses, or a store to a buffer of that name.
    fn called(&mut self, word: &'t str, argument: impl FnOnce(&mut Self) -> Parsed<Stmt>) -> Parsed<Stmt> {
        let named = self.lookup(word);
        self.advance()?;
        if self.accept("(")? {
            let stmt = argument(self)?;
            self.expect(")")?;
            return Ok(stmt);
        }
        match named? {
            Named::Buffer(buffer, _) => self.store_to(buffer, StoreKind::Plain),
            _ => self.expected("`(` behind the statement's name"),
        }
    }

    /// The keyword of a kind and a store, or a store to a buffer of that name.
    fn store_of_kind(&mut self, kind: StoreKind) -> Parsed<Stmt> {
        let named = self.lookup(kind.text());
        self.advance()?;
        match (&self.token, named) {
            (Token::Symbol("["), Ok(Named::Buffer(buffer, _))) => self.store_to(buffer, StoreKind::Plain),
            _ => {
                let (buffer, _) = self.buffer_name("a buffer to store to")?;
                self.store_to(buffer, kind)
            }
        }
    }

    /// `shuffle 16 { … }`, or a store to a buffer of that name.
    fn shuffle(&mut self) -> Parsed<Stmt> {
        let named = self.lookup("shuffle");
        self.advance()?;
        if let Token::Number(_) = self.token {
            let mask = self.bounded_integer(u64::from(u32::MAX))? as u32;
            return Ok(Stmt::Shuffle(Arc::new(Shuffle { mask, body: self.braced()? })));
        }
        match named? {
            Named::Buffer(buffer, _) => self.store_to(buffer, StoreKind::Plain),
            _ => self.expected("a number behind `shuffle`"),
        }
    }

    fn store(&mut self) -> Parsed<Stmt> {
        let (buffer, _) = self.buffer_name("a buffer to store to")?;
        self.store_to(buffer, StoreKind::Plain)
    }

    fn store_to(&mut self, buffer: BufferId, kind: StoreKind) -> Parsed<Stmt> {
        self.expect("[")?;
        let indices = self.list("]", Self::index)?;
        self.expect("=")?;
        let value = self.value()?.expr;
        Ok(Stmt::Store(Arc::new(Store { buffer, indices, value, kind })))
    }

    fn conditional(&mut self) -> Parsed<Stmt> {
        self.expect_word("if")?;
        let condition = self.value()?.expr;
        let then = self.braced()?;
        let otherwise = if self.accept_word("else")? { Some(self.braced()?) } else { None };
        Ok(Stmt::If(Arc::new(If { condition, then, otherwise })))
    }

    fn annotations(&mut self) -> Parsed<Annotations> {
        let mut annotations = BTreeMap::new();
        while self.accept("@")? {
            let key = self.name("the annotation's name")?;
            if annotations.contains_key(key.as_str()) {
                return Err(ParseProblem::Redeclared(shorten(&key)));
            }
            let value = match &self.token {
                Token::Text(text) => {
                    let value = Annotation::Text(text.as_str().into());
                    self.advance()?;
                    value
                }
                Token::Symbol("[") => {
                    self.advance()?;
                    Annotation::Numbers(self.list("]", Self::signed_integer)?)
                }
                _ => Annotation::Int(self.signed_integer()?),
            };
            annotations.insert(key.into(), value);
        }
        Ok(annotations)
    }

    fn signed_integer(&mut self) -> Parsed<i64> {
        let negative = self.accept("-")?;
        let Token::Number(Number { digits, is_float: false, suffix: None }) = self.token else {
            return self.expected("an integer or a text");
        };
        let magnitude: i128 = digits.parse().unwrap_or(i128::MAX);
        let value = if negative { -magnitude } else { magnitude };
        let value = i64::try_from(value).map_err(|_| ParseProblem::Literal {
            literal: shorten(digits),
            dtype: crate::dtype::DType::I64,
        })?;
        self.advance()?;
        Ok(value)
    }

    fn for_loop(&mut self, annotations: Annotations) -> Parsed<Stmt> {
        let mut kind = LoopKind::Serial;
        for other in [LoopKind::Parallel, LoopKind::Vectorized, LoopKind::Unrolled] {
            if self.accept_word(other.text())? {
                kind = other;
                break;
            }
        }
        if self.accept_word("bound")? {
            let named = match self.token {
                Token::Word(word) => ThreadAxis::named(word),
                _ => None,
            };
            let Some(axis) = named else {
                return self.expected("an axis of threads, such as `block_x` or `thread_x`");
            };
            self.advance()?;
            kind = LoopKind::Bound(axis);
        }
        self.expect_word("for")?;
        let name = self.new_name("the loop's variable")?;
        self.expect_word("in")?;
        self.zero_to()?;
        let extent = self.index()?;
        let var = self.declare_variable(name, VariableKind::Loop);
        let id = self.program.fresh_loop();
        let body = self.braced()?;
        self.names.remove(name);
        Ok(Stmt::For(Arc::new(For { id, var, extent, kind, annotations, body })))
    }

    /// `0 ..`
    pub(super) fn zero_to(&mut self) -> Parsed<()> {
        match self.token {
            Token::Number(Number { digits: "0", is_float: false, suffix: None }) => self.advance()?,
            _ => return self.expected("`0..`"),
        }
        self.expect("..")
    }

    fn block(&mut self, annotations: Annotations) -> Parsed<Stmt> {
        self.expect_word("block")?;
        let name = self.name("the block's name")?.into();
        let id = self.program.fresh_block();
        self.expect("(")?;
        let headers = self.list(")", Self::iter)?;
        let guards = if self.accept_word("where")? { self.guards()? } else { Vec::new() };
        let location = if self.accept_word("at")? { Some(self.location()?) } else { None };
        // The iterators come into scope now: bindings and guards see the loops around only.
        let mut iters = Vec::with_capacity(headers.len());
        let mut names = Vec::with_capacity(headers.len());
        for IterHeader { name, start, kind, extent, binding } in headers {
            if self.names.contains_key(name) {
                self.start = start;
                return Err(ParseProblem::Redeclared(shorten(name)));
            }
            let var = self.declare_variable(name, VariableKind::Iter);
            iters.push(Iter { var, extent, kind, binding });
            names.push(name);
        }
        self.expect("{")?;
        let init = if self.accept_word("init")? { Some(self.braced()?) } else { None };
        let body = self.nested(Self::stmts)?;
        names.into_iter().for_each(|name| {
            self.names.remove(name);
        });
        Ok(Stmt::Block(Arc::new(Block { id, name, iters, guards, init, body, annotations, location })))
    }

    fn iter(&mut self) -> Parsed<IterHeader<'t>> {
        let start = self.start;
        let name = self.new_name("an iterator")?;
        self.expect(":")?;
        let Some(kind) = self.iter_kind()? else {
            return self.expected("`spatial`, `reduce` or `ordered`");
        };
        let extent = self.index()?;
        self.expect("=")?;
        let binding = self.index()?;
        Ok(IterHeader { name, start, kind, extent, binding })
    }

    fn iter_kind(&mut self) -> Parsed<Option<IterKind>> {
        for kind in IterKind::ALL {
            if self.accept_word(kind.text())? {
                return Ok(Some(kind));
            }
        }
        Ok(None)
    }

    fn guards(&mut self) -> Parsed<Vec<Guard>> {
        let mut guards = Vec::new();
        loop {
            let index = self.index()?;
            self.expect("<")?;
            guards.push(Guard { index, bound: self.index()? });
            if !self.accept(",")? {
                return Ok(guards);
            }
        }
    }

    fn location(&mut self) -> Parsed<Location> {
        let Token::Text(text) = &self.token else { return self.expected("a location in quotes") };
        let mut parts = text.rsplitn(3, ':');
        let column = parts.next().and_then(|column| column.parse().ok());
        let line = parts.next().and_then(|line| line.parse().ok());
        let location = match (parts.next(), line, column) {
            (Some(file), Some(line), Some(column)) => Location { file: file.into(), line, column },
            _ => return Err(ParseProblem::Location(shorten(text))),
        };
        self.advance()?;
        Ok(location)
    }
}

/// An iterator before it is in scope.
struct IterHeader<'t> {
    name: &'t str,
    /// Where its name stands, for errors.
    start: usize,
    kind: IterKind,
    extent: Index,
    binding: Index,
}
