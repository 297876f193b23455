//! Errors of definitions, with the location in the user's source.

use std::fmt;

use crate::stmt::Location;

/// A place in the user's source that generated code can write as a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceLocation {
    file: &'static str,
    line: u32,
    column: u32,
}

impl SourceLocation {
    /// A place: what `file!()`, `line!()` and `column!()` give.
    pub const fn new(file: &'static str, line: u32, column: u32) -> Self {
        SourceLocation { file, line, column }
    }
}

impl From<SourceLocation> for Location {
    fn from(place: SourceLocation) -> Self {
        Location { file: place.file.into(), line: place.line, column: place.column }
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// One thing that is wrong with a definition.
///
/// Printed in the manner of the Rust compiler: the message, the location, other locations that belong to it,
/// and an alternative to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionError {
    /// The error, naming the tensor, the loop or the value.
    pub message: String,
    /// Where it was written; `None` for an item without a location, such as a parameter.
    pub location: Option<Location>,
    /// Other places that play a part, each with its role.
    pub notes: Vec<(String, Option<Location>)>,
    /// An alternative to write.
    pub help: String,
}

impl DefinitionError {
    pub(super) fn new(
        message: impl Into<String>,
        location: Option<SourceLocation>,
        help: impl Into<String>,
    ) -> Self {
        DefinitionError {
            message: message.into(),
            location: location.map(Into::into),
            notes: Vec::new(),
            help: help.into(),
        }
    }

    pub(super) fn note(mut self, text: impl Into<String>, location: Option<SourceLocation>) -> Self {
        self.notes.push((text.into(), location.map(Into::into)));
        self
    }
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        if let Some(location) = &self.location {
            write!(f, "\n  --> {location}")?;
        }
        for (text, location) in &self.notes {
            write!(f, "\n  = note: {text}")?;
            if let Some(location) = location {
                write!(f, " ({location})")?;
            }
        }
        write!(f, "\n  = help: {}", self.help)
    }
}

/// Everything that is wrong with one kernel's definition, in source order of discovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionErrors {
    /// The kernel's name.
    pub kernel: String,
    /// At least one error.
    pub errors: Vec<DefinitionError>,
}

impl fmt::Display for DefinitionErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}` cannot be built", self.kernel)?;
        for error in &self.errors {
            write!(f, "\n{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for DefinitionErrors {}
