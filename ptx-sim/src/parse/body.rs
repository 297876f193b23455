//! Bodies of functions: declarations, labels, instructions.

use crate::isa::check;
use crate::isa::types::Type;
use crate::parse::cursor::Cursor;
use crate::parse::directives;
use crate::parse::error::ParseError;
use crate::parse::lexer::Token;
use crate::parse::scope::{Labelled, Named, Reference, Scopes};
use crate::program::{Function, FunctionId, Instruction, Operand, Program, RegisterId, VariableId};

/// How deeply scopes may nest.
const DEEPEST: u32 = 256;

/// Reads the body of a function.
pub(crate) struct Body<'p, 'a> {
    pub(crate) cursor: &'p mut Cursor<'a>,
    pub(crate) program: &'p mut Program,
    pub(crate) module_names: &'p directives::ModuleNames,
    pub(crate) id: FunctionId,
    pub(crate) function: Function,
    pub(crate) scopes: Scopes,
    pub(crate) references: Vec<Reference>,
    pub(crate) in_call: bool,
    /// Lists of branch targets, by references.
    targets: Vec<Vec<Reference>>,
}

impl<'p, 'a> Body<'p, 'a> {
    pub(crate) fn new(
        cursor: &'p mut Cursor<'a>,
        program: &'p mut Program,
        module_names: &'p directives::ModuleNames,
        id: FunctionId,
        function: Function,
        scopes: Scopes,
    ) -> Body<'p, 'a> {
        Body {
            cursor,
            program,
            module_names,
            id,
            function,
            scopes,
            references: Vec::new(),
            in_call: false,
            targets: Vec::new(),
        }
    }

    pub(crate) fn module_variable(&self, name: &str) -> Option<VariableId> {
        self.module_names.variables.get(name).copied()
    }

    /// Reads from the opening brace to the closing one.
    pub(crate) fn read(mut self) -> Result<Function, ParseError> {
        self.cursor.need(b'{')?;
        let mut depth = 0;
        loop {
            match self.cursor.peek() {
                Token::Mark(b'{') => {
                    self.cursor.next();
                    self.scopes.open();
                    depth += 1;
                    if depth > DEEPEST {
                        return self.cursor.error(format!("more than {DEEPEST} scopes in each other"));
                    }
                }
                Token::Mark(b'}') => {
                    self.cursor.next();
                    depth = depth.saturating_sub(1);
                    if !self.scopes.close() {
                        break;
                    }
                }
                Token::Mark(b';') => {
                    self.cursor.next();
                }
                Token::Dotted(word) => self.directive(word)?,
                Token::Mark(b'@') => self.instruction()?,
                Token::Word(_) if self.cursor.ahead(1) == Token::Mark(b':') => self.label()?,
                Token::Word(_) => self.instruction()?,
                _ => return self.cursor.expected("an instruction, a directive or `}`"),
            }
        }
        self.finish()
    }

    fn directive(&mut self, word: &str) -> Result<(), ParseError> {
        match word {
            "reg" => {
                self.cursor.next();
                self.registers()
            }
            "shared" | "local" | "param" | "global" | "const" => {
                let owner = Some(self.id);
                let line = self.cursor.line();
                for variable in directives::variables(self.cursor, owner)? {
                    let name = variable.name.clone();
                    let id = directives::add(self.program, variable, line)?;
                    self.scopes.declare_variable(&name, id, line)?;
                }
                Ok(())
            }
            "loc" | "pragma" | "file" => directives::skip_note(self.cursor, self.program),
            _ => self.cursor.error(format!("the directive `.{word}` has no meaning inside functions")),
        }
    }

    /// `.reg .type name, name<count>, …;`
    fn registers(&mut self) -> Result<(), ParseError> {
        let line = self.cursor.line();
        let ty = directives::scalar_type(self.cursor)?;
        loop {
            let name = self.cursor.word("the name of a register")?;
            let mut count = None;
            if self.cursor.take(b'<') {
                count = Some(self.cursor.unsigned("a number of registers")?);
                self.cursor.need(b'>')?;
            }
            self.scopes.declare_registers(&mut self.function, name, count, ty, line)?;
            if !self.cursor.take(b',') {
                return self.cursor.need(b';');
            }
        }
    }

    /// `name:`, or a list of targets or a prototype with a name.
    fn label(&mut self) -> Result<(), ParseError> {
        let line = self.cursor.line();
        let name = self.cursor.word("a label")?;
        self.cursor.need(b':')?;
        let meaning = match self.cursor.peek() {
            Token::Dotted("branchtargets") => {
                self.cursor.next();
                self.branch_targets()?
            }
            Token::Dotted("callprototype") => {
                while !matches!(self.cursor.peek(), Token::Mark(b';') | Token::End) {
                    self.cursor.next();
                }
                self.cursor.need(b';')?;
                Labelled::Prototype
            }
            _ => Labelled::Instruction(self.function.instructions.len() as u32),
        };
        self.scopes.declare_label(name, meaning, line)
    }

    fn branch_targets(&mut self) -> Result<Labelled, ParseError> {
        let mut list = Vec::new();
        loop {
            let line = self.cursor.line();
            let name = self.cursor.word("a label")?.to_owned();
            list.push(Reference { name, scope: self.scopes.current(), line });
            if !self.cursor.take(b',') {
                break;
            }
        }
        self.cursor.need(b';')?;
        self.targets.push(list);
        Ok(Labelled::Targets(self.targets.len() as u32 - 1))
    }

    fn guard(&mut self) -> Result<Option<(RegisterId, bool)>, ParseError> {
        if !self.cursor.take(b'@') {
            return Ok(None);
        }
        let negated = self.cursor.take(b'!');
        let name = self.cursor.word("a predicate")?;
        match self.scopes.find(name) {
            Some(Named::Register(id)) if self.function.register_type(id) == Type::Pred => {
                Ok(Some((id, negated)))
            }
            _ => self.cursor.error(format!("`{name}` is no predicate that was declared")),
        }
    }

    fn instruction(&mut self) -> Result<(), ParseError> {
        let guard = self.guard()?;
        let line = self.cursor.line();
        let opcode = self.cursor.word("an instruction")?;
        let mut modifiers = Vec::new();
        while let Token::Dotted(word) = self.cursor.peek() {
            self.cursor.next();
            modifiers.push(word);
        }
        self.in_call = opcode == "call";
        let mut operands = Vec::new();
        while !self.cursor.take(b';') {
            operands.push(self.operand()?);
            if !self.cursor.take(b',') {
                self.cursor.need(b';')?;
                break;
            }
        }
        let (form, choices) = check::choose(opcode, &modifiers, &operands, &self.function)
            .map_err(|message| ParseError::new(line, message))?;
        self.function.instructions.push(Instruction { line, guard, form, choices, operands });
        Ok(())
    }

    /// Gives labels their meaning.
    fn finish(mut self) -> Result<Function, ParseError> {
        let resolved: Result<Vec<_>, _> =
            self.references.iter().map(|reference| self.scopes.resolve(reference)).collect();
        let resolved = resolved?;
        for instruction in &mut self.function.instructions {
            for operand in &mut instruction.operands {
                resolve(operand, &resolved);
            }
        }
        for list in &self.targets {
            let mut places = Vec::new();
            for reference in list {
                match self.scopes.resolve(reference)? {
                    Labelled::Instruction(place) => places.push(place),
                    _ => {
                        let message = format!("`{}` is no place to branch to", reference.name);
                        return Err(ParseError::new(reference.line, message));
                    }
                }
            }
            self.function.branch_targets.push(places);
        }
        self.function.has_body = true;
        Ok(self.function)
    }
}

fn resolve(operand: &mut Operand, resolved: &[Labelled]) {
    match operand {
        Operand::Label(reference) => {
            *operand = match resolved[*reference as usize] {
                Labelled::Instruction(place) => Operand::Label(place),
                Labelled::Targets(list) => Operand::Targets(list),
                Labelled::Prototype => Operand::Prototype,
            };
        }
        Operand::Vector(parts) | Operand::List(parts) => {
            for part in parts {
                resolve(part, resolved);
            }
        }
        _ => {}
    }
}
