//! The text form of traces.
//!
//! ```text
//! trace v1
//! %0 = get_block "c"
//! %1, %2, %3 = get_loops %0
//! %4, %5 = sample_perfect_tile %1, 2, 16 !decision [32, 4]
//! %6, %7 = split %1, [%4, %5]
//! parallel %6
//! ```
//! The text is the only persistent form, so it starts with its version. Parsing checks the grammar and
//! the numbering of variables; whether the steps make sense is decided by replaying them.

use std::fmt::{self, Write};
use std::str::FromStr;

use crate::index::map::IndexMap;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::prim::Instruction;
use crate::schedule::retired::{self, Retired};
use crate::schedule::rv::{
    AnnotationArgument, BlockOrLoopRv, BlockRv, IntArgument, IntRv, LoopRv, PrefetchMode,
};
use crate::schedule::trace::{Decision, Step, Trace};
use crate::text::ParseError;

/// The first line of every trace.
const HEADER: &str = "trace v1";

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER}")?;
        self.steps().iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for output in self.output_range() {
            let separator = if output == self.first_output { "" } else { ", " };
            write!(f, "{separator}%{output}")?;
        }
        if self.outputs > 0 {
            f.write_str(" = ")?;
        }
        f.write_str(self.instruction.name())?;
        let mut printer = Printer { text: String::new() };
        self.instruction.clone().arguments(&mut printer)?;
        f.write_str(&printer.text)?;
        match &self.decision {
            Some(decision) => write!(f, " !decision {decision}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Decision::Tile(factors) => write!(f, "{factors:?}"),
            Decision::Choice(number) => write!(f, "#{number}"),
            Decision::Location(location) => write!(f, "@{location}"),
        }
    }
}

struct Printer {
    text: String,
}

fn list<T>(items: &[T], mut print: impl FnMut(&T) -> String) -> String {
    format!("[{}]", items.iter().map(&mut print).collect::<Vec<_>>().join(", "))
}

fn print_int(argument: &IntArgument) -> String {
    match argument {
        IntArgument::Number(number) => number.to_string(),
        IntArgument::Variable(IntRv(variable)) => format!("%{variable}"),
    }
}

impl ArgumentVisitor for Printer {
    type Error = fmt::Error;

    fn visit(&mut self, argument: Argument<'_>) -> fmt::Result {
        self.text.push_str(if self.text.is_empty() { " " } else { ", " });
        match argument {
            Argument::Block(BlockRv(variable)) | Argument::Loop(LoopRv(variable)) => {
                write!(self.text, "%{variable}")
            }
            Argument::Place(BlockOrLoopRv::Block(BlockRv(variable))) => {
                write!(self.text, "block %{variable}")
            }
            Argument::Place(BlockOrLoopRv::Loop(LoopRv(variable))) => write!(self.text, "loop %{variable}"),
            Argument::Loops(loops) => self.text.write_str(&list(loops, |item| format!("%{}", item.0))),
            Argument::Blocks(blocks) => self.text.write_str(&list(blocks, |item| format!("%{}", item.0))),
            Argument::Int(argument) => self.text.write_str(&print_int(argument)),
            Argument::Factors(factors) => {
                let print = |factor: &Option<IntArgument>| factor.as_ref().map_or("none".into(), print_int);
                self.text.write_str(&list(factors, print))
            }
            Argument::Number(number) => write!(self.text, "{number}"),
            Argument::Numbers(numbers) => write!(self.text, "{numbers:?}"),
            Argument::Weights(weights) => self.text.write_str(&list(weights, f64::to_string)),
            Argument::Map(map) => write!(self.text, "{map}"),
            Argument::Text(text) => self.text.write_str(&quote(text)),
            Argument::Annotation(AnnotationArgument::Int(value)) => self.text.write_str(&print_int(value)),
            Argument::Annotation(AnnotationArgument::Text(text)) => self.text.write_str(&quote(text)),
            Argument::Annotation(AnnotationArgument::Numbers(numbers)) => write!(self.text, "{numbers:?}"),
            Argument::Prefetch(PrefetchMode::Ahead(distance)) => self.text.write_str(&print_int(distance)),
            Argument::Prefetch(PrefetchMode::Siblings) => self.text.write_str(&quote(PrefetchMode::SIBLINGS)),
        }
    }
}

fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// A text that is no trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column} of the trace: {message}")]
pub struct TraceParseError {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// The expected and the found text.
    pub message: String,
}

impl FromStr for Trace {
    type Err = TraceParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut lines = text.lines().enumerate();
        match lines.next() {
            Some((_, HEADER)) => {}
            Some((_, other)) => {
                let message = format!("expected `{HEADER}`, found `{}`", shorten(other));
                return Err(TraceParseError { line: 1, column: 1, message });
            }
            None => {
                let message = format!("expected `{HEADER}`, found nothing");
                return Err(TraceParseError { line: 1, column: 1, message });
            }
        }
        let mut steps = Vec::new();
        let mut variables = 0;
        for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let parsed = parse_step(line, variables).map_err(|(column, message)| TraceParseError {
                line: number + 1,
                column: column + 1,
                message,
            })?;
            variables = parsed.last().map_or(variables, |step| step.output_range().end);
            steps.extend(parsed);
        }
        Ok(Trace::from_steps(steps))
    }
}

type Failure = (usize, String);

/// The steps of a line: one, unless the name is [retired](retired).
fn parse_step(line: &str, next: u32) -> Result<Vec<Step>, Failure> {
    let mut parser = Parser { line, position: 0, variables: next, arguments: 0 };
    let mut outputs = 0;
    if parser.peek() == Some('%') {
        loop {
            let variable = parser.variable_name()?;
            if variable != next + outputs {
                return Err(parser.failure(&format!("variable %{}", next + outputs)));
            }
            outputs += 1;
            if !parser.accept(",") {
                break;
            }
        }
        parser.expect("=")?;
    }
    let start = parser.position;
    let name = parser.word()?;
    if let Some(mut instruction) = Instruction::named(name) {
        instruction.arguments(&mut parser)?;
        let decision = if parser.accept("!decision") { Some(parser.decision()?) } else { None };
        parser.end()?;
        return Ok(vec![Step { instruction, first_output: next, outputs, decision }]);
    }
    if let Some(mut retired) = Retired::named(name) {
        retired.arguments(&mut parser)?;
        parser.end()?;
        return retired.steps(next, outputs).map_err(|message| (start, message));
    }
    let what = if retired::is_removed(name) { "the removed primitive" } else { "unknown primitive" };
    Err((start, format!("{what} `{}`", shorten(name))))
}

struct Parser<'a> {
    line: &'a str,
    position: usize,
    /// Variables below this number may be used.
    variables: u32,
    arguments: u32,
}

fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.line[self.position..]
    }

    fn skip_space(&mut self) {
        self.position += self.rest().len() - self.rest().trim_start().len();
    }

    fn peek(&mut self) -> Option<char> {
        self.skip_space();
        self.rest().chars().next()
    }

    fn failure(&self, expected: &str) -> Failure {
        let found = shorten(self.rest().trim());
        let found = if found.is_empty() { "the end of the line".to_owned() } else { format!("`{found}`") };
        (self.position, format!("expected {expected}, found {found}"))
    }

    fn end(&mut self) -> Result<(), Failure> {
        if self.peek().is_some() { Err(self.failure("the end of the line")) } else { Ok(()) }
    }

    fn accept(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(token);
        if found {
            self.position += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<(), Failure> {
        if self.accept(token) { Ok(()) } else { Err(self.failure(&format!("`{token}`"))) }
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        self.skip_space();
        let rest = self.rest();
        let end = rest.find(|character| !accept(character)).unwrap_or(rest.len());
        self.position += end;
        &rest[..end]
    }

    fn word(&mut self) -> Result<&'a str, Failure> {
        let word = self.take_while(|character| character.is_ascii_alphanumeric() || character == '_');
        if word.is_empty() { Err(self.failure("a primitive")) } else { Ok(word) }
    }

    fn number<T: FromStr>(&mut self, expected: &str) -> Result<T, Failure> {
        self.skip_space();
        let failure = self.failure(expected);
        self.take_while(|character| character.is_ascii_alphanumeric() || matches!(character, '-' | '+' | '.'))
            .parse()
            .map_err(|_| failure)
    }

    fn variable_name(&mut self) -> Result<u32, Failure> {
        self.expect("%")?;
        self.number("a variable's number")
    }

    fn variable(&mut self) -> Result<u32, Failure> {
        self.skip_space();
        let failure = self.failure("a variable made by an earlier step");
        let variable = self.variable_name()?;
        if variable < self.variables { Ok(variable) } else { Err(failure) }
    }

    fn int(&mut self) -> Result<IntArgument, Failure> {
        if self.peek() == Some('%') {
            return Ok(IntArgument::Variable(IntRv(self.variable()?)));
        }
        self.number("an integer or a variable").map(IntArgument::Number)
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T, Failure>) -> Result<Vec<T>, Failure> {
        self.expect("[")?;
        let mut items = Vec::new();
        if self.accept("]") {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.accept("]") {
                return Ok(items);
            }
            self.expect(",")?;
        }
    }

    fn siblings(&mut self) -> Result<PrefetchMode, Failure> {
        let failure = self.failure(&format!("a distance or \"{}\"", PrefetchMode::SIBLINGS));
        if self.quoted()? == PrefetchMode::SIBLINGS { Ok(PrefetchMode::Siblings) } else { Err(failure) }
    }

    fn quoted(&mut self) -> Result<String, Failure> {
        self.expect("\"")?;
        let mut text = String::new();
        let mut characters = self.rest().char_indices();
        while let Some((offset, character)) = characters.next() {
            match character {
                '"' => {
                    self.position += offset + 1;
                    return Ok(text);
                }
                '\\' => match characters.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, escaped)) => text.push(escaped),
                    None => break,
                },
                _ => text.push(character),
            }
        }
        Err(self.failure("a closing `\"`"))
    }

    fn decision(&mut self) -> Result<Decision, Failure> {
        match self.peek() {
            Some('[') => self.list(|parser| parser.number("an integer")).map(Decision::Tile),
            Some('#') => {
                self.expect("#")?;
                self.number("the number of a candidate").map(Decision::Choice)
            }
            Some('@') => {
                self.expect("@")?;
                self.number("a location").map(Decision::Location)
            }
            _ => Err(self.failure("a decision: `[1, 2]`, `#1` or `@1`")),
        }
    }

    /// `(i, j) -> (j, i/4, i%4)`
    fn map(&mut self) -> Result<IndexMap, Failure> {
        self.skip_space();
        let rest = self.rest();
        let mut open = 0usize;
        let mut lists = 0;
        let end = rest.find(|character| {
            match character {
                '(' => open += 1,
                ')' => {
                    open = open.saturating_sub(1);
                    lists += usize::from(open == 0);
                }
                _ => {}
            }
            lists == 2
        });
        let Some(end) = end else { return Err(self.failure("a map such as `(i, j) -> (j, i)`")) };
        let map = rest[..=end].parse().map_err(|error: ParseError| {
            let column = rest.char_indices().nth(error.column - 1).map_or(0, |(offset, _)| offset);
            (self.position + column, error.problem.to_string())
        })?;
        self.position += end + 1;
        Ok(map)
    }

    fn place(&mut self) -> Result<BlockOrLoopRv, Failure> {
        if self.accept("block") {
            return self.variable().map(|variable| BlockOrLoopRv::Block(BlockRv(variable)));
        }
        self.expect("loop")?;
        self.variable().map(|variable| BlockOrLoopRv::Loop(LoopRv(variable)))
    }
}

impl ArgumentVisitor for Parser<'_> {
    type Error = Failure;

    fn visit(&mut self, argument: Argument<'_>) -> Result<(), Failure> {
        if self.arguments > 0 {
            self.expect(",")?;
        }
        self.arguments += 1;
        match argument {
            Argument::Block(BlockRv(slot)) | Argument::Loop(LoopRv(slot)) => *slot = self.variable()?,
            Argument::Place(slot) => *slot = self.place()?,
            Argument::Loops(slot) => *slot = self.list(|parser| parser.variable().map(LoopRv))?,
            Argument::Blocks(slot) => *slot = self.list(|parser| parser.variable().map(BlockRv))?,
            Argument::Int(slot) => *slot = self.int()?,
            Argument::Factors(slot) => {
                *slot = self.list(
                    |parser| {
                        if parser.accept("none") { Ok(None) } else { parser.int().map(Some) }
                    },
                )?;
            }
            Argument::Number(slot) => *slot = self.number("an integer")?,
            Argument::Numbers(slot) => *slot = self.list(|parser| parser.number("an integer"))?,
            Argument::Weights(slot) => *slot = self.list(|parser| parser.number("a number"))?,
            Argument::Map(slot) => *slot = self.map()?,
            Argument::Text(slot) => *slot = self.quoted()?.into(),
            Argument::Prefetch(slot) => {
                *slot = match self.peek() {
                    Some('"') => self.siblings()?,
                    _ => PrefetchMode::Ahead(self.int()?),
                };
            }
            Argument::Annotation(slot) => {
                *slot = match self.peek() {
                    Some('"') => AnnotationArgument::Text(self.quoted()?.into()),
                    Some('[') => {
                        AnnotationArgument::Numbers(self.list(|parser| parser.number("an integer"))?)
                    }
                    _ => AnnotationArgument::Int(self.int()?),
                };
            }
        }
        Ok(())
    }
}
