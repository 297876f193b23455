//! Parsing of maps of indices.

use std::str::FromStr;

use crate::index::map::IndexMap;
use crate::program::VariableKind;
use crate::text::parse::cost::MAX_TEXT;
use crate::text::parse::lexer::Token;
use crate::text::parse::{ParseError, ParseProblem, Parsed, Parser, locate};

impl FromStr for IndexMap {
    type Err = ParseError;

    /// Reads a map such as `(i, j) -> (j, i/4, i%4)`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        if text.len() > MAX_TEXT {
            let problem = ParseProblem::Limit { what: "the length of the text", limit: MAX_TEXT as u64 };
            return Err(ParseError { line: 1, column: 1, problem });
        }
        let mut parser = Parser::new(text);
        let outcome = parser.advance().and_then(|()| parser.index_map());
        outcome.map_err(|problem| locate(text, parser.start, problem))
    }
}

impl Parser<'_> {
    fn index_map(&mut self) -> Parsed<IndexMap> {
        self.expect("(")?;
        let inputs = self.list(")", |parser| {
            let name = parser.new_name("an index")?;
            Ok(parser.declare_variable(name, VariableKind::Iter))
        })?;
        self.expect("-")?;
        self.expect(">")?;
        self.expect("(")?;
        let outputs = self.list(")", Self::index)?;
        if !matches!(self.token, Token::End) {
            return self.expected("the end of the map");
        }
        IndexMap::new(inputs.len() as u32, outputs)
            .map_or_else(|| self.expected("at most 16 sums, quotients and remainders of the indices"), Ok)
    }
}
