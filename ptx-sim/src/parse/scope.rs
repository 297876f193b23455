//! Names of registers, variables and labels inside functions.

use rustc_hash::FxHashMap;

use crate::isa::types::Type;
use crate::parse::error::ParseError;
use crate::program::{Function, RegisterId, Registers, VariableId};

/// More registers than any function has.
const MOST_REGISTERS: u64 = 1 << 18;

/// A name that was declared inside a function.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Named {
    Register(RegisterId),
    Variable(VariableId),
}

/// A label that an instruction names, to be found when its function is complete.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(crate) name: String,
    pub(crate) scope: usize,
    pub(crate) line: u32,
}

/// The meaning of a label.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Labelled {
    Instruction(u32),
    Targets(u32),
    Prototype,
}

#[derive(Default)]
struct Scope {
    parent: Option<usize>,
    names: FxHashMap<String, Named>,
    /// Declarations such as `%r<10>`: first register and count by prefix.
    ranges: FxHashMap<String, (u32, u32)>,
    labels: FxHashMap<String, Labelled>,
}

/// Nested scopes of a function.
pub(crate) struct Scopes {
    all: Vec<Scope>,
    current: usize,
}

impl Scopes {
    pub(crate) fn new() -> Scopes {
        Scopes { all: vec![Scope::default()], current: 0 }
    }

    pub(crate) fn current(&self) -> usize {
        self.current
    }

    pub(crate) fn open(&mut self) {
        self.all.push(Scope { parent: Some(self.current), ..Scope::default() });
        self.current = self.all.len() - 1;
    }

    /// Closes a scope; false if it is the function's own.
    pub(crate) fn close(&mut self) -> bool {
        match self.all[self.current].parent {
            Some(parent) => {
                self.current = parent;
                true
            }
            None => false,
        }
    }

    /// The meaning of a name here.
    pub(crate) fn find(&self, name: &str) -> Option<Named> {
        let mut at = Some(self.current);
        while let Some(index) = at {
            let scope = &self.all[index];
            if let Some(named) = scope.names.get(name) {
                return Some(*named);
            }
            if let Some(id) = scope.in_range(name) {
                return Some(Named::Register(id));
            }
            at = scope.parent;
        }
        None
    }

    /// Declares one register, or as many as `count` with numbers from 0 behind the name.
    pub(crate) fn declare_registers(
        &mut self,
        function: &mut Function,
        name: &str,
        count: Option<u64>,
        ty: Type,
        line: u32,
    ) -> Result<RegisterId, ParseError> {
        let first = function.register_count();
        let total = count.unwrap_or(1);
        if total > MOST_REGISTERS - u64::from(first) {
            let message = format!("a function with more than {MOST_REGISTERS} registers");
            return Err(ParseError::new(line, message));
        }
        let scope = &mut self.all[self.current];
        let new = match count {
            Some(_) => scope.ranges.insert(name.to_owned(), (first, total as u32)).is_none(),
            None => scope.names.insert(name.to_owned(), Named::Register(RegisterId(first))).is_none(),
        };
        if !new {
            return Err(ParseError::new(line, format!("`{name}` is declared twice in one scope")));
        }
        // An empty range declares nothing.
        if total > 0 {
            function.registers.push(Registers {
                first,
                count: total as u32,
                ty,
                name: name.to_owned(),
                numbered: count.is_some(),
            });
        }
        Ok(RegisterId(first))
    }

    pub(crate) fn declare_variable(
        &mut self,
        name: &str,
        id: VariableId,
        line: u32,
    ) -> Result<(), ParseError> {
        match self.all[self.current].names.insert(name.to_owned(), Named::Variable(id)) {
            None => Ok(()),
            Some(_) => Err(ParseError::new(line, format!("`{name}` is declared twice in one scope"))),
        }
    }

    pub(crate) fn declare_label(
        &mut self,
        name: &str,
        meaning: Labelled,
        line: u32,
    ) -> Result<(), ParseError> {
        match self.all[self.current].labels.insert(name.to_owned(), meaning) {
            None => Ok(()),
            Some(_) => Err(ParseError::new(line, format!("the label `{name}` is set twice"))),
        }
    }

    /// Finds a label from the scope that names it outwards.
    pub(crate) fn resolve(&self, reference: &Reference) -> Result<Labelled, ParseError> {
        let mut at = Some(reference.scope);
        while let Some(index) = at {
            if let Some(found) = self.all[index].labels.get(&reference.name) {
                return Ok(*found);
            }
            at = self.all[index].parent;
        }
        let message = format!("`{}` is declared nowhere", reference.name);
        Err(ParseError::new(reference.line, message))
    }
}

impl Scope {
    fn in_range(&self, name: &str) -> Option<RegisterId> {
        if self.ranges.is_empty() {
            return None;
        }
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        // A prefix may itself end with a digit, so that every split is tried.
        for split in (prefix.len()..name.len()).rev() {
            let digits = &name[split..];
            let canonical = digits.len() == 1 || !digits.starts_with('0');
            let Some((first, count)) = self.ranges.get(&name[..split]) else { continue };
            match digits.parse::<u32>() {
                Ok(number) if canonical && number < *count => {
                    return Some(RegisterId(first + number));
                }
                _ => {}
            }
        }
        None
    }
}
