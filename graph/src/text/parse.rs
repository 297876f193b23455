//! Reading functions.

use std::str::FromStr;
use std::sync::Arc;

use half::{bf16, f16};
use tilewright_core::program::Program;

use crate::ir::{
    Attribute, Attributes, Binding, Body, Call, Function, Loop, Operation, Scan, ScanOrder, ScanTensor,
    Shape, TensorType, Type, ValueId, ValueInfo,
};
use crate::operator;
use crate::symbolic::SymInt;
use crate::tensor::small::{F4E2M1, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0, I2, I4, Small, U2, U4};
use crate::tensor::{Element, ElementType, HostTensor, with_element};
use crate::text::cursor::{Cursor, ParseError, Parsed};

impl FromStr for Function {
    type Err = ParseError;

    /// Reads the text form. The result is well-formed.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut parser = Parser { cursor: Cursor::new(text), values: Vec::new(), depth: 0 };
        parser.cursor.expect("function")?;
        let name = parser.cursor.string()?;
        let body = parser.body()?;
        if !parser.cursor.at_end() {
            return parser.cursor.refuse("unexpected text after the function");
        }
        let unbound = || ValueInfo { name: None, ty: Type::Unknown, contents: None };
        let values = parser.values.into_iter().map(|value| value.unwrap_or_else(unbound)).collect();
        let function = Function { name: name.into(), values, body };
        let end = Cursor::new(text);
        function.verify().or_else(|malformed| end.refuse(malformed.to_string()))?;
        Ok(function)
    }
}

/// How deep bodies and types may be nested, so that no text exhausts the stack.
const DEPTH: usize = 64;

struct Parser<'t> {
    cursor: Cursor<'t>,
    values: Vec<Option<ValueInfo>>,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn body(&mut self) -> Parsed<Body> {
        self.enter()?;
        self.cursor.expect("(")?;
        let mut parameters = Vec::new();
        while !self.cursor.take(")") {
            if !parameters.is_empty() {
                self.cursor.expect(",")?;
            }
            parameters.push(self.bound()?);
        }
        self.cursor.expect("{")?;
        let mut bindings = Vec::new();
        while !self.cursor.take("return") {
            bindings.push(self.binding()?);
        }
        let mut results = Vec::new();
        while !self.cursor.take("}") {
            if !results.is_empty() {
                self.cursor.expect(",")?;
            }
            results.push(self.value()?);
        }
        self.depth -= 1;
        Ok(Body { parameters, bindings, results })
    }

    fn enter(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth > DEPTH { self.cursor.refuse(format!("nested more than {DEPTH} deep")) } else { Ok(()) }
    }

    fn value(&mut self) -> Parsed<ValueId> {
        value(&mut self.cursor)
    }

    /// A value that is bound here: number, name, type.
    fn bound(&mut self) -> Parsed<ValueId> {
        let value = self.value()?;
        let name = if self.cursor.sees("\"") { Some(Arc::from(self.cursor.string()?)) } else { None };
        self.cursor.expect(":")?;
        let ty = self.ty()?;
        // Numbers need not be dense, but a large one must not take much memory.
        if value.index() > 2 * self.values.len() + 4096 {
            return self.cursor.refuse(format!("value %{} has too large a number", value.index()));
        }
        if self.values.len() <= value.index() {
            self.values.resize(value.index() + 1, None);
        }
        self.values[value.index()] = Some(ValueInfo { name, ty, contents: None });
        Ok(value)
    }

    fn binding(&mut self) -> Parsed<Binding> {
        let mut outputs = Vec::new();
        while !self.cursor.take("=") {
            if !outputs.is_empty() {
                self.cursor.expect(",")?;
            }
            outputs.push(self.bound()?);
        }
        let operation = self.operation(&outputs)?;
        let origin = if self.cursor.take("from") { Some(Arc::from(self.cursor.string()?)) } else { None };
        Ok(Binding { outputs, operation, origin })
    }

    fn ty(&mut self) -> Parsed<Type> {
        self.enter()?;
        let ty = if self.cursor.take("(") {
            let mut parts = Vec::new();
            while !self.cursor.take(")") {
                if !parts.is_empty() {
                    self.cursor.expect(",")?;
                }
                parts.push(self.ty()?);
            }
            Type::Tuple(parts)
        } else {
            match self.cursor.word()? {
                "unknown" => Type::Unknown,
                kind @ ("sequence" | "optional") => {
                    self.cursor.expect("<")?;
                    let inner = Box::new(self.ty()?);
                    self.cursor.expect(">")?;
                    if kind == "sequence" { Type::Sequence(inner) } else { Type::Optional(inner) }
                }
                word => {
                    let element = if word == "any" { None } else { Some(self.element(word)?) };
                    self.cursor.expect("[")?;
                    let unknown = self.cursor.take("..");
                    let extents = extents(&mut self.cursor)?;
                    Type::Tensor(TensorType {
                        element,
                        shape: if unknown { Shape::Unknown } else { Shape::Known(extents) },
                    })
                }
            }
        };
        self.depth -= 1;
        Ok(ty)
    }

    fn element(&self, word: &str) -> Parsed<ElementType> {
        word.parse().or_else(|error: crate::tensor::UnknownElementType| self.cursor.refuse(error.to_string()))
    }

    fn values_in_parentheses(&mut self) -> Parsed<Vec<ValueId>> {
        self.cursor.expect("(")?;
        self.cursor.list(")", value)
    }

    fn operation(&mut self, outputs: &[ValueId]) -> Parsed<Operation> {
        let types = |parser: &Self| -> Vec<Type> {
            let ty = |output: &ValueId| {
                parser.values[output.index()].as_ref().map_or(Type::Unknown, |info| info.ty.clone())
            };
            outputs.iter().map(ty).collect()
        };
        Ok(match self.cursor.word()? {
            "constant" => Operation::Constant(self.tensor()?),
            "match_shape" => {
                let value = self.value()?;
                self.cursor.expect("[")?;
                Operation::MatchShape { value, extents: extents(&mut self.cursor)? }
            }
            "tuple" => Operation::Tuple(self.values_in_parentheses()?),
            "project" => Operation::Project { tuple: self.value()?, place: self.cursor.number()? },
            "if" => {
                let condition = self.value()?;
                let then_body = self.body()?;
                self.cursor.expect("else")?;
                Operation::If { condition, then_body, else_body: self.body()? }
            }
            "loop" => Operation::Loop(Loop {
                trip_count: optional(&mut self.cursor)?,
                condition: optional(&mut self.cursor)?,
                carried: self.values_in_parentheses()?,
                body: self.body()?,
            }),
            "scan" => self.scan()?,
            "call_function" => Operation::CallFunction {
                function: self.cursor.string()?.into(),
                inputs: self.values_in_parentheses()?,
            },
            "call_external" => Operation::CallExternal {
                function: self.cursor.string()?.into(),
                inputs: self.values_in_parentheses()?,
                results: types(self),
            },
            "call_program" => {
                let text = self.cursor.string()?;
                let program =
                    text.parse::<Program>().or_else(|error| self.cursor.refuse(error.to_string()))?;
                let inputs = self.values_in_parentheses()?;
                Operation::CallProgram { program: Arc::new(program), inputs, results: types(self) }
            }
            name => Operation::Call(self.call(name)?),
        })
    }

    fn call(&mut self, name: &str) -> Parsed<Call> {
        let Some(operator) = operator::find(name) else {
            return self.cursor.refuse(format!("there is no operator `{name}`"));
        };
        self.cursor.expect("(")?;
        let inputs = self.cursor.list(")", optional)?;
        let mut attributes = Attributes::none();
        if self.cursor.take("{") {
            loop {
                let name = self.cursor.word()?;
                self.cursor.expect("=")?;
                attributes.set(name, self.attribute()?);
                if self.cursor.take("}") {
                    break;
                }
                self.cursor.expect(",")?;
            }
        }
        Ok(Call { operator, inputs, attributes })
    }

    fn scan(&mut self) -> Parsed<Operation> {
        let states = self.values_in_parentheses()?;
        self.cursor.expect("(")?;
        let inputs = self
            .cursor
            .list(")", |cursor| Ok(ScanTensor { value: value(cursor)?, order: order(cursor)? }))?;
        self.cursor.expect("(")?;
        let outputs = self.cursor.list(")", order)?;
        Ok(Operation::Scan(Scan { states, inputs, outputs, body: self.body()? }))
    }

    fn attribute(&mut self) -> Parsed<Attribute> {
        if self.cursor.sees("\"") {
            return Ok(Attribute::Text(self.cursor.string()?.into()));
        }
        let kind = self.cursor.word()?;
        if matches!(kind, "ints" | "floats" | "texts") {
            self.cursor.expect("[")?;
        }
        Ok(match kind {
            "int" => Attribute::Int(self.cursor.number()?),
            "float" => Attribute::Float(self.cursor.number()?),
            "ints" => Attribute::Ints(self.cursor.list("]", Cursor::number)?),
            "floats" => Attribute::Floats(self.cursor.list("]", Cursor::number)?),
            "texts" => Attribute::Texts(self.cursor.list("]", |cursor| Ok(cursor.string()?.into()))?),
            "tensor" => Attribute::Tensor(self.tensor()?),
            "element" => {
                let word = self.cursor.word()?;
                Attribute::Element(self.element(word)?)
            }
            other => return self.cursor.refuse(format!("`{other}` is no kind of attribute")),
        })
    }

    fn tensor(&mut self) -> Parsed<HostTensor> {
        let word = self.cursor.word()?;
        let element = self.element(word)?;
        self.cursor.expect("[")?;
        let shape: Vec<usize> = self.cursor.list("]", Cursor::number)?;
        self.cursor.expect("{")?;
        with_element!(element, T => {
            let elements = self.cursor.list("}", <T as ReadElement>::read)?;
            HostTensor::new(&shape, elements).or_else(|error| self.cursor.refuse(error.to_string()))
        })
    }
}

fn value(cursor: &mut Cursor<'_>) -> Parsed<ValueId> {
    cursor.expect("%")?;
    Ok(ValueId(cursor.number()?))
}

fn optional(cursor: &mut Cursor<'_>) -> Parsed<Option<ValueId>> {
    if cursor.take("_") { Ok(None) } else { value(cursor).map(Some) }
}

fn order(cursor: &mut Cursor<'_>) -> Parsed<ScanOrder> {
    let reverse = match cursor.word()? {
        "forward" => false,
        "backward" => true,
        other => return cursor.refuse(format!("expected forward or backward, found `{other}`")),
    };
    Ok(ScanOrder { axis: cursor.number()?, reverse })
}

/// Extents up to the closing bracket.
fn extents(cursor: &mut Cursor<'_>) -> Parsed<Vec<SymInt>> {
    cursor.list("]", |cursor| {
        let text = cursor.until(&[',', ']']);
        text.trim().parse().or_else(|error: crate::symbolic::ParseError| cursor.refuse(error.to_string()))
    })
}

/// Elements that can be read from text.
trait ReadElement: Element {
    fn read(cursor: &mut Cursor<'_>) -> Parsed<Self>;
}

macro_rules! read_numbers {
    ($($type:ty),*) => {$(
        impl ReadElement for $type {
            fn read(cursor: &mut Cursor<'_>) -> Parsed<Self> {
                cursor.number()
            }
        }
    )*};
}

read_numbers!(bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);

macro_rules! read_small {
    ($($type:ty),*) => {$(
        impl ReadElement for $type {
            fn read(cursor: &mut Cursor<'_>) -> Parsed<Self> {
                Ok(<$type as Small>::from_f64(cursor.number()?, false))
            }
        }
    )*};
}

read_small!(I2, U2, I4, U4, F4E2M1, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0);

impl ReadElement for f16 {
    fn read(cursor: &mut Cursor<'_>) -> Parsed<Self> {
        Ok(f16::from_f64(cursor.number()?))
    }
}

impl ReadElement for bf16 {
    fn read(cursor: &mut Cursor<'_>) -> Parsed<Self> {
        Ok(bf16::from_f64(cursor.number()?))
    }
}

impl ReadElement for Arc<str> {
    fn read(cursor: &mut Cursor<'_>) -> Parsed<Self> {
        Ok(cursor.string()?.into())
    }
}
