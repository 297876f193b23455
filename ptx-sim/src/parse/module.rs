//! Modules: what stands outside of functions.

use crate::parse::body::Body;
use crate::parse::cursor::Cursor;
use crate::parse::directives::{self, ModuleNames};
use crate::parse::error::ParseError;
use crate::parse::lexer::{self, Token};
use crate::parse::scope::Scopes;
use crate::program::{Formal, Function, FunctionId, Program, Space};

/// The newest major version of the PTX ISA whose meaning is known here.
const NEWEST: u64 = 9;

/// Reads a module.
pub(crate) fn parse(text: &str) -> Result<Program, ParseError> {
    let mut module = Module {
        cursor: Cursor::new(lexer::tokens(text)?),
        program: Program::default(),
        names: ModuleNames::default(),
    };
    module.read()?;
    Ok(module.program)
}

struct Module<'a> {
    cursor: Cursor<'a>,
    program: Program,
    names: ModuleNames,
}

/// How a function is linked, and of which sort it is.
#[derive(Default)]
struct Linkage {
    is_extern: bool,
}

impl Module<'_> {
    fn read(&mut self) -> Result<(), ParseError> {
        self.version()?;
        let mut linkage = Linkage::default();
        loop {
            match self.cursor.peek() {
                Token::End => return Ok(()),
                Token::Mark(b';') => {
                    self.cursor.next();
                }
                Token::Dotted("visible" | "weak" | "common") => {
                    self.cursor.next();
                }
                Token::Dotted("extern") => {
                    self.cursor.next();
                    linkage.is_extern = true;
                }
                Token::Dotted(word) => {
                    self.item(word, &linkage)?;
                    linkage = Linkage::default();
                }
                _ => return self.cursor.expected("a directive"),
            }
        }
    }

    fn version(&mut self) -> Result<(), ParseError> {
        if !self.cursor.take_dotted("version") {
            return self.cursor.expected("`.version`, with which every module begins");
        }
        // Versions have one digit after the dot.
        let tenths = match self.cursor.next() {
            Token::Double(bits) => (10.0 * f64::from_bits(bits)).round() as u64,
            Token::Integer(major) => major.saturating_mul(10),
            _ => return self.cursor.error("the version is a number such as 8.0"),
        };
        let (major, minor) = (tenths / 10, tenths % 10);
        if major > NEWEST {
            return self.cursor.error(format!("version {major} is newer than {NEWEST}.x"));
        }
        self.program.version = (major as u32, minor as u32);
        Ok(())
    }

    fn item(&mut self, word: &str, linkage: &Linkage) -> Result<(), ParseError> {
        match word {
            "target" => self.target(),
            "address_size" => {
                self.cursor.next();
                match self.cursor.unsigned("32 or 64")? {
                    64 => Ok(()),
                    size => self.cursor.error(format!("addresses have 64 bits here, not {size}")),
                }
            }
            "file" | "loc" | "pragma" => directives::skip_note(&mut self.cursor, &mut self.program),
            "section" => self.section(),
            "global" | "const" | "shared" => self.variables(linkage),
            "entry" | "func" => self.function(word == "entry"),
            "alias" => self.cursor.error("`.alias` is not supported"),
            _ => self.cursor.error(format!("unknown directive `.{word}`")),
        }
    }

    fn target(&mut self) -> Result<(), ParseError> {
        self.cursor.next();
        loop {
            let name = self.cursor.word("a target such as sm_80")?;
            if name.starts_with("sm_") {
                self.program.target = name.to_owned();
            }
            if !self.cursor.take(b',') {
                return Ok(());
            }
        }
    }

    /// Skips a section of debugging information.
    fn section(&mut self) -> Result<(), ParseError> {
        while self.cursor.peek() != Token::Mark(b'{') {
            if self.cursor.next() == Token::End {
                return self.cursor.expected("`{`");
            }
        }
        let mut depth = 0;
        loop {
            match self.cursor.next() {
                Token::Mark(b'{') => depth += 1,
                Token::Mark(b'}') => depth -= 1,
                Token::End => return self.cursor.expected("`}`"),
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn variables(&mut self, linkage: &Linkage) -> Result<(), ParseError> {
        let line = self.cursor.line();
        for variable in directives::variables(&mut self.cursor, None)? {
            if linkage.is_extern && variable.space != Space::Shared {
                let message = format!("`{}` is defined in another module", variable.name);
                return Err(ParseError::new(line, message));
            }
            let name = variable.name.clone();
            let id = directives::add(&mut self.program, variable, line)?;
            if self.names.variables.insert(name.clone(), id).is_some() {
                return Err(ParseError::new(line, format!("`{name}` is declared twice")));
            }
        }
        Ok(())
    }

    fn function(&mut self, is_entry: bool) -> Result<(), ParseError> {
        self.cursor.next();
        let line = self.cursor.line();
        let mut function = Function { is_entry, line, ..Function::default() };
        let mut scopes = Scopes::new();
        // The number is needed by its parameters, before its name is known.
        let id = FunctionId(self.program.functions.len() as u32);
        if !is_entry && self.cursor.peek() == Token::Mark(b'(') {
            function.returns = self.formals(id, &mut function, &mut scopes)?;
        }
        let name = self.cursor.word("the name of a function")?.to_owned();
        function.name.clone_from(&name);
        if self.cursor.peek() == Token::Mark(b'(') {
            function.params = self.formals(id, &mut function, &mut scopes)?;
        }
        self.attributes(&mut function)?;
        let has_body = self.cursor.peek() == Token::Mark(b'{');
        let declared = self.program.function_names.get(&name).copied();
        if let Some(earlier) = declared
            && has_body
            && self.program.function(earlier).has_body
        {
            return Err(ParseError::new(line, format!("`{name}` is defined twice")));
        }
        if !has_body {
            self.cursor.take(b';');
            if declared.is_none() {
                self.program.function_names.insert(name, id);
            }
            self.program.functions.push(function);
            return Ok(());
        }
        self.program.functions.push(function.clone());
        // Calls of it inside of itself find it by its name.
        let place = *self.program.function_names.entry(name).or_insert(id);
        let body = Body::new(&mut self.cursor, &mut self.program, &self.names, id, function, scopes);
        let function = body.read()?;
        if place != id {
            self.program.functions[id.0 as usize].has_body = false;
        }
        self.adopt(place, id);
        self.program.functions[place.0 as usize] = function;
        Ok(())
    }

    /// Variables of the definition belong to the number that the declaration already has.
    fn adopt(&mut self, place: FunctionId, id: FunctionId) {
        if place == id {
            return;
        }
        for variable in &mut self.program.variables {
            if variable.owner == Some(place) {
                variable.owner = None;
                variable.space = Space::Param;
            }
            if variable.owner == Some(id) {
                variable.owner = Some(place);
            }
        }
    }

    /// Formal parameters in parentheses.
    fn formals(
        &mut self,
        id: FunctionId,
        function: &mut Function,
        scopes: &mut Scopes,
    ) -> Result<Vec<Formal>, ParseError> {
        self.cursor.need(b'(')?;
        let mut formals = Vec::new();
        if self.cursor.take(b')') {
            return Ok(formals);
        }
        loop {
            let line = self.cursor.line();
            if self.cursor.take_dotted("reg") {
                let ty = directives::scalar_type(&mut self.cursor)?;
                let name = self.cursor.word("the name of a parameter")?;
                let register = scopes.declare_registers(function, name, None, ty, line)?;
                formals.push(Formal::Register(register));
            } else {
                let variable = directives::parameter(&mut self.cursor, id)?;
                let name = variable.name.clone();
                let number = directives::add(&mut self.program, variable, line)?;
                // Declarations may leave names out by an underscore.
                if name != "_" {
                    scopes.declare_variable(&name, number, line)?;
                }
                formals.push(Formal::Variable(number));
            }
            if self.cursor.take(b')') {
                return Ok(formals);
            }
            self.cursor.need(b',')?;
        }
    }

    /// Directives between the parameters and the body.
    fn attributes(&mut self, function: &mut Function) -> Result<(), ParseError> {
        loop {
            match self.cursor.peek() {
                Token::Dotted("reqntid") => {
                    self.cursor.next();
                    function.required_threads = Some(self.extents()?);
                }
                Token::Dotted("maxntid") => {
                    self.cursor.next();
                    function.most_threads = Some(self.extents()?);
                }
                Token::Dotted("minnctapersm" | "maxnctapersm" | "maxnreg") => {
                    self.cursor.next();
                    self.cursor.unsigned("a number")?;
                }
                Token::Dotted("pragma") => {
                    directives::skip_note(&mut self.cursor, &mut self.program)?;
                }
                Token::Dotted("noreturn" | "unified") => {
                    self.cursor.next();
                }
                Token::Dotted(word @ ("reqnctapercluster" | "maxclusterrank" | "explicitcluster")) => {
                    return self.cursor.error(format!("clusters (`.{word}`) are not supported"));
                }
                Token::Dotted(word) if function.name.is_empty() => {
                    return self.cursor.error(format!("unknown attribute `.{word}`"));
                }
                _ => return Ok(()),
            }
        }
    }

    /// One to three numbers; the others are 1.
    fn extents(&mut self) -> Result<[u32; 3], ParseError> {
        let mut extents = [1; 3];
        for extent in &mut extents {
            let value = self.cursor.unsigned("a number of threads")?;
            match u32::try_from(value) {
                Ok(value) => *extent = value,
                Err(_) => return self.cursor.error(format!("{value} threads are too many")),
            }
            if !self.cursor.take(b',') {
                break;
            }
        }
        Ok(extents)
    }
}
