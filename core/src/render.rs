//! Messages shown inside the printed program.
//!
//! Errors of the verifier and of schedule primitives name [entities](Entity) by their ids. [`render`]
//! prints the program and writes each message beneath the line that shows its entity:
//!
//! ```text
//! kernel copy(N, in a: f32[N], out b: f32[N]) {
//!   for i in 0..N {
//! //^^^^^^^^^^^^^^^ loop `i` encloses no block
//!   }
//! }
//! ```
//!
//! The messages are comments, so that the result is still the program's text.

use crate::ids::{BlockId, BufferId, LoopId, VarId};
use crate::program::Program;
use crate::stmt::Stmt;
use crate::text::canonical::{Renumbered, renumber};
use crate::text::print::{Line, print_head, print_lines};

/// A part of a program that a message can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Entity {
    /// The kernel as a whole.
    Program,
    /// A parameter, a loop variable or a block iterator.
    Variable(VarId),
    /// A buffer.
    Buffer(BufferId),
    /// A loop.
    Loop(LoopId),
    /// A block.
    Block(BlockId),
    /// The store or `if` with this position, from 0, among all of them in the order of the text.
    Statement(u32),
}

/// The first line of a statement in its program's text: all of a store, the head of a loop or a condition.
pub fn statement_text(program: &Program, stmt: &Stmt) -> String {
    print_head(program, stmt)
}

/// The program's text with each message beneath the line that shows its entity, in the given order.
/// Messages about entities that are not in the text come last.
pub fn render(program: &Program, messages: &[(Entity, String)]) -> String {
    let renumbered = renumber(program);
    let mut pending: Vec<(Option<Entity>, &str)> = messages
        .iter()
        .map(|(entity, message)| (renumber_entity(&renumbered, *entity), message.as_str()))
        .collect();
    let mut text = String::new();
    for line in print_lines(&renumbered.program) {
        text.push_str(&line.text);
        text.push('\n');
        pending.retain(|(entity, message)| {
            let columns = entity.and_then(|entity| find_anchor(&line, entity));
            if let Some((start, end)) = columns {
                push_message(&mut text, start, end, message);
            }
            columns.is_none()
        });
    }
    for (_, message) in pending {
        push_message(&mut text, 0, 0, message);
    }
    text
}

fn renumber_entity(renumbered: &Renumbered, entity: Entity) -> Option<Entity> {
    Some(match entity {
        Entity::Program | Entity::Statement(_) => entity,
        Entity::Variable(id) => Entity::Variable(renumbered.variable(id)?),
        Entity::Buffer(id) => Entity::Buffer(renumbered.buffer(id)?),
        Entity::Loop(id) => Entity::Loop(renumbered.loop_id(id)?),
        Entity::Block(id) => Entity::Block(renumbered.block(id)?),
    })
}

/// The columns, in characters, where a line shows an entity.
fn find_anchor(line: &Line, entity: Entity) -> Option<(usize, usize)> {
    let (_, bytes) = line.anchors.iter().find(|(shown, _)| *shown == entity)?;
    let column = |byte: usize| line.text[..byte].chars().count();
    Some((column(bytes.start), column(bytes.end)))
}

/// Writes a comment whose carets lie under the columns `start..end`; the comment sign takes the first two.
fn push_message(text: &mut String, start: usize, end: usize, message: &str) {
    let start = start.max(2);
    let carets = "^".repeat(end.saturating_sub(start));
    let padding = " ".repeat(start - 2);
    for (position, part) in message.lines().enumerate() {
        let mark = if position == 0 { carets.clone() } else { " ".repeat(carets.len()) };
        text.push_str(&format!("//{padding}{mark} {part}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_lie_beneath_their_entity_and_strangers_come_last() {
        let program: Program = "kernel f(größe, out y: f32[größe]) { for i in 0..größe { y[i] = 1.0 } }"
            .parse()
            .expect("the program is well-formed");
        let messages = [
            (Entity::Loop(LoopId(9)), "no such loop".to_owned()),
            (Entity::Statement(0), "first\nsecond".to_owned()),
            (Entity::Buffer(BufferId(0)), "after ö".to_owned()),
            (Entity::Program, "all of it".to_owned()),
        ];
        let expected = "\
kernel f(größe, out y: f32[größe]) {
//              ^^^^^^^^^^^^^^^^^ after ö
//^^^^^^ all of it
  for i in 0..größe {
    y[i] = 1.0
//  ^^^^^^^^^^ first
//             second
  }
}
// no such loop
";
        let rendered = render(&program, &messages);
        assert_eq!(rendered, expected, "{rendered}");
        assert_eq!(rendered.parse::<Program>().as_ref(), Ok(&program), "messages are comments");
    }
}
