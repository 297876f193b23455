//! Printing functions.

use std::fmt::{self, Display, Formatter, Write};

use crate::ir::{Attribute, Binding, Body, Function, Operation, ScanOrder, ValueId};
use crate::tensor::{HostTensor, with_elements};

impl Display for Function {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "function {:?}", &*self.name)?;
        Printer { function: self, depth: 0 }.body(f, &self.body)?;
        f.write_str("\n")
    }
}

struct Printer<'f> {
    function: &'f Function,
    depth: usize,
}

impl Printer<'_> {
    /// Number, name and type of a value that is bound.
    fn bound(&self, f: &mut Formatter<'_>, value: ValueId) -> fmt::Result {
        let info = self.function.value(value);
        write!(f, "%{}", value.index())?;
        if let Some(name) = &info.name {
            write!(f, " {:?}", &**name)?;
        }
        write!(f, ": {}", info.ty)
    }

    /// Parameters, bindings and results.
    fn body(&self, f: &mut Formatter<'_>, body: &Body) -> fmt::Result {
        f.write_str("(")?;
        separated(f, &body.parameters, |f, &parameter| self.bound(f, parameter))?;
        f.write_str(") {\n")?;
        let inner = Printer { function: self.function, depth: self.depth + 1 };
        for binding in &body.bindings {
            inner.indent(f)?;
            inner.binding(f, binding)?;
        }
        inner.indent(f)?;
        f.write_str("return")?;
        if !body.results.is_empty() {
            f.write_str(" ")?;
        }
        values(f, &body.results)?;
        f.write_str("\n")?;
        self.indent(f)?;
        f.write_str("}")
    }

    fn indent(&self, f: &mut Formatter<'_>) -> fmt::Result {
        (0..self.depth).try_for_each(|_| f.write_str("  "))
    }

    fn binding(&self, f: &mut Formatter<'_>, binding: &Binding) -> fmt::Result {
        separated(f, &binding.outputs, |f, &output| self.bound(f, output))?;
        f.write_str(" = ")?;
        self.operation(f, &binding.operation)?;
        if let Some(origin) = &binding.origin {
            write!(f, " from {:?}", &**origin)?;
        }
        f.write_str("\n")
    }

    fn operation(&self, f: &mut Formatter<'_>, operation: &Operation) -> fmt::Result {
        match operation {
            Operation::Constant(tensor) => {
                f.write_str("constant ")?;
                tensor_text(f, tensor)
            }
            Operation::Call(call) => {
                write!(f, "{}(", call.operator.name)?;
                separated(f, &call.inputs, |f, input| optional(f, *input))?;
                f.write_str(")")?;
                let mut attributes = call.attributes.iter().peekable();
                if attributes.peek().is_some() {
                    f.write_str(" {")?;
                    separated(f, attributes, |f, (name, value)| {
                        write!(f, "{name} = ")?;
                        attribute(f, value)
                    })?;
                    f.write_str("}")?;
                }
                Ok(())
            }
            Operation::MatchShape { value, extents } => {
                write!(f, "match_shape %{} [", value.index())?;
                separated(f, extents, |f, extent| write!(f, "{extent}"))?;
                f.write_str("]")
            }
            Operation::Tuple(parts) => {
                f.write_str("tuple(")?;
                values(f, parts)?;
                f.write_str(")")
            }
            Operation::Project { tuple, place } => write!(f, "project %{} {place}", tuple.index()),
            Operation::If { condition, then_body, else_body } => {
                write!(f, "if %{} ", condition.index())?;
                self.body(f, then_body)?;
                f.write_str(" else ")?;
                self.body(f, else_body)
            }
            Operation::Loop(operation) => {
                f.write_str("loop ")?;
                optional(f, operation.trip_count)?;
                f.write_str(" ")?;
                optional(f, operation.condition)?;
                f.write_str(" (")?;
                values(f, &operation.carried)?;
                f.write_str(") ")?;
                self.body(f, &operation.body)
            }
            Operation::Scan(operation) => {
                f.write_str("scan (")?;
                values(f, &operation.states)?;
                f.write_str(") (")?;
                separated(f, &operation.inputs, |f, input| {
                    write!(f, "%{} ", input.value.index())?;
                    order(f, input.order)
                })?;
                f.write_str(") (")?;
                separated(f, &operation.outputs, |f, output| order(f, *output))?;
                f.write_str(") ")?;
                self.body(f, &operation.body)
            }
            Operation::CallFunction { function, inputs } => {
                write!(f, "call_function {:?}(", &**function)?;
                values(f, inputs)?;
                f.write_str(")")
            }
            // The types of results stand with the values that are bound.
            Operation::CallProgram { program, inputs, .. } => {
                write!(f, "call_program {:?}(", program.to_string())?;
                values(f, inputs)?;
                f.write_str(")")
            }
            Operation::CallExternal { function, inputs, .. } => {
                write!(f, "call_external {:?}(", &**function)?;
                values(f, inputs)?;
                f.write_str(")")
            }
        }
    }
}

/// Items with commas between them.
fn separated<T>(
    f: &mut Formatter<'_>,
    items: impl IntoIterator<Item = T>,
    mut item: impl FnMut(&mut Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    for (place, part) in items.into_iter().enumerate() {
        if place > 0 {
            f.write_str(", ")?;
        }
        item(f, part)?;
    }
    Ok(())
}

fn values(f: &mut Formatter<'_>, values: &[ValueId]) -> fmt::Result {
    separated(f, values, |f, value| write!(f, "%{}", value.index()))
}

fn optional(f: &mut Formatter<'_>, value: Option<ValueId>) -> fmt::Result {
    match value {
        Some(value) => write!(f, "%{}", value.index()),
        None => f.write_str("_"),
    }
}

fn order(f: &mut Formatter<'_>, order: ScanOrder) -> fmt::Result {
    write!(f, "{} {}", if order.reverse { "backward" } else { "forward" }, order.axis)
}

fn attribute(f: &mut Formatter<'_>, value: &Attribute) -> fmt::Result {
    match value {
        Attribute::Int(value) => write!(f, "int {value}"),
        Attribute::Float(value) => write!(f, "float {value:?}"),
        Attribute::Text(value) => write!(f, "{:?}", &**value),
        Attribute::Ints(values) => write!(f, "ints {values:?}"),
        Attribute::Floats(values) => write!(f, "floats {values:?}"),
        Attribute::Texts(values) => write!(f, "texts {values:?}"),
        Attribute::Tensor(tensor) => {
            f.write_str("tensor ")?;
            tensor_text(f, tensor)
        }
        Attribute::Element(element) => write!(f, "element {element}"),
    }
}

/// Element type, shape and all elements, in the shortest form that reads back exactly.
fn tensor_text(f: &mut Formatter<'_>, tensor: &HostTensor) -> fmt::Result {
    write!(f, "{}{:?} {{", tensor.element(), tensor.shape())?;
    with_elements!(tensor.elements(), elements => separated(f, elements.iter(), |f, element| write!(f, "{element:?}")))?;
    f.write_char('}')
}
