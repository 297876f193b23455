//! Declarations of variables and parameters, and notes that mean nothing to an execution.

use rustc_hash::FxHashMap;

use crate::isa::types::Type;
use crate::parse::cursor::Cursor;
use crate::parse::error::ParseError;
use crate::parse::expression;
use crate::parse::lexer::Token;
use crate::program::{FunctionId, Initial, InitialValue, Literal, Program, Space, Variable, VariableId};

/// No variable is larger than this: memory of 1 TiB.
const MOST_BYTES: u64 = 1 << 40;

/// No module has more variables than this.
const MOST_VARIABLES: usize = 1 << 16;

/// Adds a variable to a module.
pub(crate) fn add(program: &mut Program, variable: Variable, line: u32) -> Result<VariableId, ParseError> {
    if program.variables.len() >= MOST_VARIABLES {
        return Err(ParseError::new(line, format!("a module with more than {MOST_VARIABLES} variables")));
    }
    program.variables.push(variable);
    Ok(VariableId(program.variables.len() as u32 - 1))
}

/// Names of the module's variables.
#[derive(Default)]
pub(crate) struct ModuleNames {
    pub(crate) variables: FxHashMap<String, VariableId>,
}

/// Reads the dotted name of a type.
pub(crate) fn scalar_type(cursor: &mut Cursor<'_>) -> Result<Type, ParseError> {
    if let Token::Dotted(word) = cursor.peek()
        && let Some(ty) = Type::named(word)
        && ty.bits() != 4
        && ty != Type::B1
    {
        cursor.next();
        return Ok(ty);
    }
    cursor.expected("a type such as `.b32`")
}

/// The attributes before the name of a variable or a parameter.
struct Header {
    space: Space,
    ty: Type,
    align: u64,
    lanes: u64,
}

/// Reads a declaration such as `.shared .align 16 .b8 tile[4096], other;` from its space on.
pub(crate) fn variables(
    cursor: &mut Cursor<'_>,
    owner: Option<FunctionId>,
) -> Result<Vec<Variable>, ParseError> {
    let header = header(cursor)?;
    let mut found = Vec::new();
    loop {
        found.extend(declarator(cursor, &header, owner)?);
        if !cursor.take(b',') {
            break;
        }
    }
    cursor.need(b';')?;
    Ok(found)
}

/// Reads one formal parameter in `.param` space.
pub(crate) fn parameter(cursor: &mut Cursor<'_>, owner: FunctionId) -> Result<Variable, ParseError> {
    let header = header(cursor)?;
    let mut declared = declarator(cursor, &header, Some(owner))?;
    match (declared.pop(), declared.is_empty()) {
        (Some(variable), true) => Ok(variable),
        _ => cursor.error("a parameter has one name"),
    }
}

fn header(cursor: &mut Cursor<'_>) -> Result<Header, ParseError> {
    let space = match cursor.next() {
        Token::Dotted("global") => Space::Global,
        Token::Dotted("shared") => Space::Shared,
        Token::Dotted("const") => Space::Constant,
        Token::Dotted("local") => Space::Local,
        Token::Dotted("param") => Space::Param,
        _ => return cursor.expected("a state space"),
    };
    let mut align = None;
    let mut lanes = 1;
    loop {
        match cursor.peek() {
            Token::Dotted("align") => {
                cursor.next();
                align = Some(alignment(cursor)?);
            }
            Token::Dotted(word @ ("v2" | "v4")) => {
                cursor.next();
                lanes = if word == "v2" { 2 } else { 4 };
            }
            // Attributes say how a variable is managed, which makes no difference here.
            Token::Dotted("attribute") => {
                cursor.next();
                cursor.need(b'(')?;
                while !cursor.take(b')') {
                    if cursor.next() == Token::End {
                        return cursor.expected("`)`");
                    }
                }
            }
            _ => break,
        }
    }
    let ty = scalar_type(cursor)?;
    if ty == Type::Pred {
        return cursor.error("predicates are registers: no memory holds them");
    }
    // Attributes of pointers stand behind the type of a parameter.
    if cursor.take_dotted("ptr") {
        while let Token::Dotted(word) = cursor.peek() {
            match word {
                "global" | "shared" | "const" | "local" => {
                    cursor.next();
                }
                "align" => {
                    cursor.next();
                    alignment(cursor)?;
                }
                _ => return cursor.error(format!("unknown attribute `.{word}` of a pointer")),
            }
        }
    }
    let natural = u64::from(ty.bytes()) * lanes;
    Ok(Header { space, ty, align: align.unwrap_or(natural), lanes })
}

fn alignment(cursor: &mut Cursor<'_>) -> Result<u64, ParseError> {
    let value = cursor.unsigned("an alignment")?;
    if value.is_power_of_two() && value <= 1 << 16 {
        return Ok(value);
    }
    cursor.error(format!("{value} is no alignment: it has to be a power of two up to 65536"))
}

/// A name with its dimensions and initial value; `name<count>` declares several.
fn declarator(
    cursor: &mut Cursor<'_>,
    header: &Header,
    owner: Option<FunctionId>,
) -> Result<Vec<Variable>, ParseError> {
    let name = cursor.word("the name of a variable")?.to_owned();
    let element = u64::from(header.ty.bytes()) * header.lanes;
    let mut bytes = Some(element);
    let mut open = false;
    let mut dimensions = 0;
    if cursor.take(b'<') {
        let count = cursor.unsigned("a number of variables")?;
        cursor.need(b'>')?;
        if count > 4096 {
            return cursor.error("more than 4096 variables in one declaration");
        }
        let one = |number| Variable {
            name: format!("{name}{number}"),
            space: header.space,
            bytes: element,
            align: header.align,
            dynamic: false,
            owner,
            initial: Vec::new(),
        };
        return Ok((0..count).map(one).collect());
    }
    while cursor.take(b'[') {
        dimensions += 1;
        if cursor.take(b']') {
            open = true;
            continue;
        }
        let count = expression::integer(cursor)?;
        cursor.need(b']')?;
        bytes = bytes.and_then(|bytes| bytes.checked_mul(count));
    }
    let Some(mut bytes) = bytes.filter(|bytes| *bytes <= MOST_BYTES) else {
        return cursor.error(format!("`{name}` has more than {MOST_BYTES} bytes"));
    };
    let mut initial = Vec::new();
    if cursor.take(b'=') {
        initial = initializer(cursor, header, dimensions > 0)?;
        if open {
            let end = initial.iter().map(|piece| piece.offset + u64::from(piece.bytes)).max();
            bytes = end.unwrap_or(0);
            open = false;
        }
    }
    if open && header.space != Space::Shared && header.space != Space::Param {
        return cursor.error(format!("`{name}` has no size"));
    }
    if let Some(piece) = initial.iter().find(|piece| piece.offset + u64::from(piece.bytes) > bytes) {
        return cursor.error(format!("`{name}` has {bytes} bytes, but a value at {}", piece.offset));
    }
    let dynamic = open && header.space == Space::Shared;
    let bytes = if open { 0 } else { bytes };
    let (space, align) = (header.space, header.align);
    Ok(vec![Variable { name, space, bytes, align, dynamic, owner, initial }])
}

/// `= value` or `= { value, { value, … }, … }`: nested braces are read as one list.
fn initializer(cursor: &mut Cursor<'_>, header: &Header, is_array: bool) -> Result<Vec<Initial>, ParseError> {
    let mut pieces = Vec::new();
    let mut offset = 0;
    let braces = is_array || cursor.peek() == Token::Mark(b'{');
    if !braces {
        piece(cursor, header.ty, &mut offset, &mut pieces)?;
        return Ok(pieces);
    }
    cursor.need(b'{')?;
    let mut depth = 1;
    while depth > 0 {
        match cursor.peek() {
            Token::Mark(b'{') => {
                cursor.next();
                depth += 1;
            }
            Token::Mark(b'}') => {
                cursor.next();
                depth -= 1;
            }
            Token::Mark(b',') => {
                cursor.next();
            }
            _ => piece(cursor, header.ty, &mut offset, &mut pieces)?,
        }
    }
    Ok(pieces)
}

fn piece(
    cursor: &mut Cursor<'_>,
    ty: Type,
    offset: &mut u64,
    pieces: &mut Vec<Initial>,
) -> Result<(), ParseError> {
    let value = match cursor.peek() {
        Token::Word(name) if name != "WARP_SZ" => address_value(cursor, 0)?,
        // A byte of an address: `0xFF(name)`, `0xFF00(name)`, …
        Token::Integer(mask) if cursor.ahead(1) == Token::Mark(b'(') => {
            cursor.next();
            cursor.need(b'(')?;
            let value = address_value(cursor, mask.trailing_zeros() / 8)?;
            cursor.need(b')')?;
            value
        }
        _ => InitialValue::Number(number(ty, expression::constant(cursor)?)),
    };
    pieces.push(Initial { offset: *offset, bytes: ty.bytes(), value });
    *offset += u64::from(ty.bytes());
    Ok(())
}

/// `name`, `name+offset` or `generic(name)`; bytes from `shift` of it on.
fn address_value(cursor: &mut Cursor<'_>, shift: u32) -> Result<InitialValue, ParseError> {
    let mut name = cursor.word("a name")?;
    let generic = name == "generic" && cursor.take(b'(');
    if generic {
        name = cursor.word("a name")?;
        cursor.need(b')')?;
    }
    let offset = if cursor.take(b'+') { expression::integer(cursor)? as i64 } else { 0 };
    Ok(InitialValue::Address { name: name.to_owned(), offset, shift })
}

/// The bits of a constant as a value of a type.
pub(crate) fn number(ty: Type, literal: Literal) -> u64 {
    let mask = if ty.bits() >= 64 { u64::MAX } else { (1 << ty.bits()) - 1 };
    let bits = match (ty, literal) {
        (Type::F32, Literal::Double(bits)) => u64::from((f64::from_bits(bits) as f32).to_bits()),
        (Type::F64, Literal::Single(bits)) => f64::from(f32::from_bits(bits)).to_bits(),
        (Type::F32, Literal::Integer(value)) => u64::from((value as i64 as f32).to_bits()),
        (Type::F64, Literal::Integer(value)) => (value as i64 as f64).to_bits(),
        (_, Literal::Integer(bits) | Literal::Double(bits)) => bits,
        (_, Literal::Single(bits)) => u64::from(bits),
    };
    bits & mask
}

/// Skips `.loc`, `.pragma` and `.file`; remembers files.
pub(crate) fn skip_note(cursor: &mut Cursor<'_>, program: &mut Program) -> Result<(), ParseError> {
    match cursor.next() {
        Token::Dotted("pragma") => {
            while !cursor.take(b';') {
                if cursor.next() == Token::End {
                    return cursor.expected("`;`");
                }
            }
        }
        Token::Dotted("file") => {
            let number = cursor.unsigned("the number of a file")?;
            if let Token::Text(name) = cursor.next() {
                program.files.insert(number, name.to_owned());
            }
            // A time stamp and a size may follow.
            while cursor.take(b',') {
                cursor.unsigned("a number")?;
            }
        }
        _ => {
            for _ in 0..3 {
                cursor.unsigned("a number")?;
            }
            skip_inlining(cursor)?;
        }
    }
    Ok(())
}

/// `, function_name label, inlined_at file line column` behind `.loc`.
fn skip_inlining(cursor: &mut Cursor<'_>) -> Result<(), ParseError> {
    while cursor.take(b',') {
        match cursor.word("`function_name` or `inlined_at`")? {
            "function_name" => {
                cursor.word("a label")?;
                if cursor.take(b'+') {
                    cursor.unsigned("a number")?;
                }
            }
            "inlined_at" => {
                for _ in 0..3 {
                    cursor.unsigned("a number")?;
                }
            }
            word => return cursor.error(format!("`{word}` has no meaning behind `.loc`")),
        }
    }
    Ok(())
}
