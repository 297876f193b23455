//! Printing of programs, line by line.
//!
//! Each printed line remembers which entities it shows and in which columns, so that messages can
//! point at them; see [`crate::render`].

use std::fmt;
use std::ops::Range;

use crate::ids::BufferId;
use crate::index::Index;
use crate::program::{Alignment, Buffer, Param, Program, Scope};
use crate::render::Entity;
use crate::stmt::{Annotation, Annotations, Block, Copies, For, Guard, If, Iter, LoopKind, Stmt, Store};
use crate::swizzle::Swizzle;
use crate::text::canonical::renumber;
use crate::text::names::is_name;
use crate::text::print_value::ValuePrinter;

/// Parameter lists and block headers that would be wider are written one item a line.
const LINE_WIDTH: usize = 100;

const INDENTATION: &str = "  ";

impl fmt::Display for Program {
    /// Writes the program's text, described in [`crate::text`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in print_lines(&renumber(self).program) {
            writeln!(f, "{}", line.text)?;
        }
        Ok(())
    }
}

/// A piece of text on one line, with the entities that it shows.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// The text, without a line break.
    pub(crate) text: String,
    /// The position of each entity, in bytes of `text`.
    pub(crate) anchors: Vec<(Entity, Range<usize>)>,
}

impl Line {
    fn plain(text: impl Into<String>) -> Self {
        Line { text: text.into(), anchors: Vec::new() }
    }

    fn showing(entity: Entity, text: impl Into<String>) -> Self {
        let text = text.into();
        let anchors = vec![(entity, 0..text.len())];
        Line { text, anchors }
    }

    fn then(mut self, text: &str) -> Self {
        self.text.push_str(text);
        self
    }

    fn then_line(mut self, other: Line) -> Self {
        let shift = self.text.len();
        let shifted =
            |(entity, columns): (Entity, Range<usize>)| (entity, columns.start + shift..columns.end + shift);
        self.anchors.extend(other.anchors.into_iter().map(shifted));
        self.text.push_str(&other.text);
        self
    }

    /// Makes the text so far show `entity`.
    fn marked(mut self, entity: Entity) -> Self {
        self.anchors.push((entity, 0..self.text.len()));
        self
    }
}

/// The lines of a canonical program.
pub(crate) fn print_lines(program: &Program) -> Vec<Line> {
    let mut printer = Printer { program, lines: Vec::new(), depth: 0, statements: 0 };
    printer.kernel();
    printer.lines
}

/// The first line of a statement.
pub(crate) fn print_head(program: &Program, stmt: &Stmt) -> String {
    let mut printer = Printer { program, lines: Vec::new(), depth: 0, statements: 0 };
    printer.stmt(stmt);
    printer.lines.into_iter().next().map(|line| line.text).unwrap_or_default()
}

struct Printer<'a> {
    program: &'a Program,
    lines: Vec<Line>,
    depth: usize,
    statements: u32,
}

impl Printer<'_> {
    fn line(&mut self, line: Line) {
        self.lines.push(Line::plain(INDENTATION.repeat(self.depth)).then_line(line));
    }

    fn braced(&mut self, header: Line, body: impl FnOnce(&mut Self)) {
        self.line(header.then(" {"));
        self.depth += 1;
        body(self);
        self.depth -= 1;
        self.line(Line::plain("}"));
    }

    fn kernel(&mut self) {
        let params = self.program.params.iter().map(|param| self.param(param)).collect();
        let head = Line::showing(Entity::Program, format!("kernel {}", name_text(&self.program.name)));
        let accuracy = self.program.accuracy;
        let mut tail = accuracy
            .map_or_else(|| ")".to_owned(), |accuracy| format!(") accuracy {:?}", accuracy.relative()));
        if self.program.multiplies_padding {
            tail += " multiply_padding";
        }
        let header = self.list(head, params, &tail);
        self.braced(header, |printer| {
            printer.intermediates();
            printer.stmt(&printer.program.body);
        });
    }

    /// `head(item, item` + `tail`, the items on lines of their own when one line would be too wide. Gives the
    /// last line, which is not written yet.
    fn list(&mut self, head: Line, items: Vec<Line>, tail: &str) -> Line {
        let head = head.then("(");
        let width = INDENTATION.len() * self.depth
            + head.text.len()
            + items.iter().map(|item| item.text.len() + 2).sum::<usize>()
            + tail.len();
        if width <= LINE_WIDTH {
            let joined = items.into_iter().enumerate().fold(head, |line, (position, item)| {
                line.then(if position > 0 { ", " } else { "" }).then_line(item)
            });
            return joined.then(tail);
        }
        self.line(head);
        self.depth += 1;
        items.into_iter().for_each(|item| self.line(item.then(",")));
        self.depth -= 1;
        Line::plain(tail)
    }

    fn param(&self, param: &Param) -> Line {
        match *param {
            Param::Dim(var) => Line::showing(Entity::Variable(var), &*self.program.variable(var).name),
            Param::Scalar(var, dtype) => {
                let text = format!("{}: {dtype}", self.program.variable(var).name);
                Line::showing(Entity::Variable(var), text)
            }
            Param::Buffer(id, access) => {
                let buffer = self.program.buffer(id);
                let text = format!("{} {}", access.text(), self.buffer_text(buffer));
                // Parameters live in ordinary memory; the scope is written only when it differs.
                let scope = match buffer.scope {
                    Scope::Global => String::new(),
                    other => format!(" {}", other.text()),
                };
                Line::showing(Entity::Buffer(id), text + &self.strides_text(id) + &scope)
            }
        }
    }

    /// ` strides [S, 1]`
    fn strides_text(&self, id: BufferId) -> String {
        match self.program.strides(id) {
            Some(strides) => format!(" strides [{}]", ValuePrinter::indices_text(self.program, strides)),
            None => String::new(),
        }
    }

    fn buffer_text(&self, buffer: &Buffer) -> String {
        let shape = ValuePrinter::indices_text(self.program, &buffer.shape);
        format!("{}: {}[{shape}]", buffer.name, buffer.dtype)
    }

    fn intermediates(&mut self) {
        for (id, buffer) in self.program.buffers() {
            if self.program.access(id).is_none() {
                let mut text = format!("buffer {} {}", self.buffer_text(buffer), buffer.scope.text());
                if self.program.has_fixed_scope(id) {
                    text += " fixed";
                }
                for (axis, Alignment { factor, offset }) in self.program.alignments(id) {
                    text += &format!(" aligned {axis} {factor} {offset}");
                }
                match self.program.swizzle(id) {
                    Some(Swizzle { row: 0 }) => text += " swizzled",
                    Some(Swizzle { row }) => text += &format!(" swizzled {row}"),
                    None => {}
                }
                self.line(Line::showing(Entity::Buffer(id), text));
            }
        }
    }

    fn index(&self, index: &Index) -> String {
        ValuePrinter::index_text(self.program, index)
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Seq(stmts) => stmts.iter().for_each(|stmt| self.stmt(stmt)),
            Stmt::For(node) => self.for_loop(node),
            Stmt::Block(node) => self.block(node),
            Stmt::Store(node) => self.store(node),
            Stmt::If(node) => self.conditional(node),
            Stmt::Alloc(node) => {
                let name = &self.program.buffer(node.buffer).name;
                let header = Line::plain(format!("alloc {name}"));
                self.braced(header, |printer| printer.stmt(&node.body));
            }
            Stmt::Intrinsic(node) => {
                let header = Line::plain(format!("intrinsic {}", name_text(&node.name)));
                self.braced(header, |printer| printer.stmt(&node.body));
            }
            Stmt::Barrier => self.line(Line::plain("barrier()")),
            Stmt::Copies(Copies::Commit) => self.line(Line::plain("commit_copies()")),
            Stmt::Copies(Copies::Wait(left)) => self.line(Line::plain(format!("wait_copies({left})"))),
            Stmt::Shuffle(node) => {
                let header = Line::plain(format!("shuffle {}", node.mask));
                self.braced(header, |printer| printer.stmt(&node.body));
            }
        }
    }

    fn annotations(&mut self, annotations: &Annotations) {
        for (key, value) in annotations {
            let value = match value {
                Annotation::Int(value) => value.to_string(),
                Annotation::Text(text) => quote(text),
                Annotation::Numbers(numbers) => format!("{numbers:?}"),
            };
            self.line(Line::plain(format!("@{} {value}", name_text(key))));
        }
    }

    fn for_loop(&mut self, node: &For) {
        self.annotations(&node.annotations);
        let keyword = match node.kind {
            LoopKind::Serial => "for ".to_owned(),
            LoopKind::Bound(axis) => format!("bound {} for ", axis.text()),
            other => format!("{} for ", other.text()),
        };
        let name = Line::showing(Entity::Variable(node.var), &*self.program.variable(node.var).name);
        let header = Line::plain(keyword)
            .then_line(name)
            .then(&format!(" in 0..{}", self.index(&node.extent)))
            .marked(Entity::Loop(node.id));
        self.braced(header, |printer| printer.stmt(&node.body));
    }

    fn block(&mut self, node: &Block) {
        self.annotations(&node.annotations);
        let head = Line::showing(Entity::Block(node.id), format!("block {}", name_text(&node.name)));
        let iters = node.iters.iter().map(|iter| self.iter(iter)).collect();
        let mut tail = ")".to_owned();
        let guards: Vec<String> = node.guards.iter().map(|guard| self.guard(guard)).collect();
        if !guards.is_empty() {
            tail += &format!(" where {}", guards.join(", "));
        }
        if let Some(location) = &node.location {
            tail += &format!(" at {}", quote(&location.to_string()));
        }
        let header = self.list(head, iters, &tail);
        self.braced(header, |printer| {
            if let Some(init) = &node.init {
                printer.braced(Line::plain("init"), |printer| printer.stmt(init));
            }
            printer.stmt(&node.body);
        });
    }

    fn iter(&self, iter: &Iter) -> Line {
        let kind = iter.kind.text();
        let (extent, binding) = (self.index(&iter.extent), self.index(&iter.binding));
        let text = format!("{}: {kind} {extent} = {binding}", self.program.variable(iter.var).name);
        Line::showing(Entity::Variable(iter.var), text)
    }

    fn guard(&self, guard: &Guard) -> String {
        format!("{} < {}", self.index(&guard.index), self.index(&guard.bound))
    }

    fn next_statement(&mut self) -> Entity {
        self.statements += 1;
        Entity::Statement(self.statements - 1)
    }

    fn store(&mut self, node: &Store) {
        let entity = self.next_statement();
        let target = &self.program.buffer(node.buffer).name;
        let indices = ValuePrinter::indices_text(self.program, &node.indices);
        let value = ValuePrinter::expr_text(self.program, &node.value);
        let keyword = node.kind.text();
        let space = if keyword.is_empty() { "" } else { " " };
        self.line(Line::showing(entity, format!("{keyword}{space}{target}[{indices}] = {value}")));
    }

    fn conditional(&mut self, node: &If) {
        let entity = self.next_statement();
        let condition = ValuePrinter::expr_text(self.program, &node.condition);
        self.line(Line::showing(entity, format!("if {condition}")).then(" {"));
        self.depth += 1;
        self.stmt(&node.then);
        self.depth -= 1;
        if let Some(otherwise) = &node.otherwise {
            self.line(Line::plain("} else {"));
            self.depth += 1;
            self.stmt(otherwise);
            self.depth -= 1;
        }
        self.line(Line::plain("}"));
    }
}

/// A name as it is, anything else in quotes.
fn name_text(name: &str) -> String {
    if is_name(name) { name.to_owned() } else { quote(name) }
}

/// The text in quotes, with `\"`, `\\`, `\n` and `\u{…}` for characters that cannot stand there.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            other if other.is_control() => quoted.push_str(&format!("\\u{{{:x}}}", u32::from(other))),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
