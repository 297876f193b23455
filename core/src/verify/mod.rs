//! The invariants of a well-formed program, checked.
//!
//! [`verify`] checks a program against a [`Level`] and reports every violation. A
//! program that fails is a bug of the code that made it, never of a user, except where the program comes from
//! a text. The verifier does not judge whether a schedule preserves the program's meaning, and does not look for races.
//!
//! # Invariants
//! Of every program:
//! - Parameters come in the order dimensions, scalars, tensors; none occurs twice; tensors are of scope `global`.
//! - Every variable has one declaration (a parameter, a loop or an iterator) and the kind that belongs to it.
//! - Ids of loops and blocks and names of blocks are unique; ids are below the program's next fresh id.
//! - Every use of a variable lies in its scope: dimensions everywhere, a loop variable in its loop, an
//!   iterator in its block. Scalars occur in values only.
//! - The body of a block mentions dimensions, its iterators and its own loops, never the loops around it; its
//!   `init` mentions no reduction iterator.
//! - Bindings and guards mention dimensions and the loops around the block. Shapes of buffers and extents of
//!   iterators mention dimensions only. These, and extents of loops, contain no load and no lane and are not negative.
//! - Only intermediates are aligned, in dimensions before the last one, to an offset below the factor.
//! - Only parameters that are written are streamed.
//! - A load or store has one index per dimension of its buffer and the buffer's element type.
//! - Elements of storage types are loaded, converted, selected and stored, and nothing else.
//! - Operands have the types that their operator needs; conditions are `bool`s; values in indices are
//!   `i64`; constants are values of their type.
//! - Digits of indices have a positive divisor and no modulus or one above 1.
//! - An index whose range is known and that is evaluated without a condition stays inside its buffer.
//! - A loop bound to an axis of threads is not inside another one bound to the same, and gives it the extent that it has in the whole
//!   nest.
//! - Values of [known annotations](crate::annotation) are of the types that these declare.
//! - No `in` parameter is stored to, every `out` parameter is, and so is every intermediate that is loaded.
//!
//! Of the levels:
//!
//! | | `Blocks` | `Loops` | `Flat` |
//! |---|---|---|---|
//! | blocks | every store is in one; none in another | none | none |
//! | `if` and loops inside blocks | yes, not parallel or bound | | |
//! | `if` outside blocks | no | yes | yes |
//! | extents of loops mention | dimensions | also loops around | also loops around |
//! | intermediates | not allocated | allocated once, around every use | as `Loops` |
//! | reduction iterators in a store's indices | no | | |
//! | loops | any kind | any kind but bound | serial, parallel |
//! | buffers | any rank | any rank | one dimension |
//! | [storage types](crate::dtype::DType::is_storage_only) | yes | yes | no: bytes |
//! | lanes | none | none | one number of lanes in a statement; not in an `if`'s condition |

mod declarations;
mod range;
mod statements;
#[cfg(test)]
mod tests;
mod threads;
mod types;
mod values;

use std::cell::OnceCell;
use std::fmt;

use crate::ids::{BufferId, VarId};
use crate::program::Program;
use crate::render::{Entity, render};
use crate::text::canonical::{Renumbered, renumber};

/// The stages that a program goes through; see the table in the [module documentation](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// Schedulable: loops around blocks.
    Blocks,
    /// Without blocks: guards are conditionals, and intermediates have their allocations.
    Loops,
    /// One-dimensional buffers and explicit vectors: what backends compile.
    Flat,
}

impl Level {
    /// Every level, from the first to the last.
    pub const ALL: [Level; 3] = [Level::Blocks, Level::Loops, Level::Flat];

    /// The level's name.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Blocks => "blocks",
            Level::Loops => "loops",
            Level::Flat => "flat",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One violated invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyError {
    /// The part of the program.
    pub entity: Entity,
    /// The problem, with the name of the statement, buffer or variable.
    pub message: String,
}

/// Everything that is wrong with a program, in the order of its text; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyErrors {
    /// The level that the program was checked against.
    pub level: Level,
    /// The violated invariants.
    pub errors: Vec<VerifyError>,
}

impl VerifyErrors {
    /// The program's text with each message beneath the line that it is about.
    pub fn render(&self, program: &Program) -> String {
        let messages: Vec<(Entity, String)> =
            self.errors.iter().map(|error| (error.entity, error.message.clone())).collect();
        render(program, &messages)
    }
}

impl fmt::Display for VerifyErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the program is not well-formed at level `{}`", self.level)?;
        for error in &self.errors {
            write!(f, "\n- {}", error.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for VerifyErrors {}

/// Checks a program against the invariants of a level.
///
/// # Errors
/// Every violated invariant.
pub fn verify(program: &Program, level: Level) -> Result<(), VerifyErrors> {
    let mut report = Report { program, names: OnceCell::new(), errors: Vec::new() };
    declarations::check(&mut report);
    statements::check(&mut report, level);
    threads::check(&mut report);
    if report.errors.is_empty() { Ok(()) } else { Err(VerifyErrors { level, errors: report.errors }) }
}

/// The errors found so far, and the names that messages use.
struct Report<'a> {
    program: &'a Program,
    /// Made for the first message only: most programs have none.
    names: OnceCell<Renumbered>,
    errors: Vec<VerifyError>,
}

impl Report<'_> {
    fn error(&mut self, entity: Entity, message: String) {
        self.errors.push(VerifyError { entity, message });
    }

    fn names(&self) -> &Renumbered {
        self.names.get_or_init(|| renumber(self.program))
    }

    /// Whether the program has a variable of this id.
    fn knows_variable(&self, id: VarId) -> bool {
        (id.0 as usize) < self.program.variables().len()
    }

    /// Whether the program has a buffer of this id.
    fn knows_buffer(&self, id: BufferId) -> bool {
        (id.0 as usize) < self.program.buffers().len()
    }

    /// A variable's name as in the printed program.
    fn variable(&self, id: VarId) -> String {
        match self.names().variable(id) {
            Some(new) => self.names().program.variable(new).name.to_string(),
            None => format!("{id:?}"),
        }
    }

    /// A buffer's name as in the printed program.
    fn buffer(&self, id: BufferId) -> String {
        match self.names().buffer(id) {
            Some(new) => self.names().program.buffer(new).name.to_string(),
            None => format!("{id:?}"),
        }
    }
}
