//! Functions of dataflow.
//!
//! A [`Function`] owns its values in one arena. A [`Body`] binds them in order, each once, and each before it is used. The
//! bodies of control flow lie inside the operation that runs them; they see all values that are bound before it outside.

use std::collections::BTreeMap;
use std::sync::Arc;

use tilewright_core::program::Program;

use crate::ir::{Attributes, Type};
use crate::operator::{Fault, Operator};
use crate::symbolic::SymInt;
use crate::tensor::HostTensor;

/// A value of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub(crate) u32);

impl ValueId {
    /// Its place in the function's arena.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The properties of a value of a function, wherever it is bound.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueInfo {
    /// A name for people; need not be unique.
    pub name: Option<Arc<str>>,
    /// The deduced type.
    pub ty: Type,
    /// The elements of a small integer tensor, in row-major order, if they are known before it is computed.
    pub contents: Option<Arc<Vec<SymInt>>>,
}

/// A function of dataflow: no call has an effect but its results.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// The name.
    pub name: Arc<str>,
    /// All values, in bodies of control flow too.
    pub values: Vec<ValueInfo>,
    /// Parameters, bindings and results.
    pub body: Body,
}

/// Bindings in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Body {
    /// Values that come from outside.
    pub parameters: Vec<ValueId>,
    /// The computation, in order.
    pub bindings: Vec<Binding>,
    /// Values that go outside.
    pub results: Vec<ValueId>,
}

/// Values bound to what an operation gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// The values, as many as the operation gives.
    pub outputs: Vec<ValueId>,
    /// The operation that computes them.
    pub operation: Operation,
    /// Where this comes from, for instance a node of a model file.
    pub origin: Option<Arc<str>>,
}

/// An operation that computes values.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// A tensor that is known when the graph is built.
    Constant(HostTensor),
    /// A call to an operator of the table.
    Call(Call),
    /// Checks at run time that a tensor has a shape. A symbol that has no value yet gets the extent that is found.
    MatchShape {
        /// The tensor, which is the result too.
        value: ValueId,
        /// The shape.
        extents: Vec<SymInt>,
    },
    /// Several values as one.
    Tuple(Vec<ValueId>),
    /// One value of a tuple.
    Project {
        /// The tuple.
        tuple: ValueId,
        /// Which of its values.
        place: usize,
    },
    /// One of two bodies, which give as many results as there are outputs.
    If {
        /// One truth value.
        condition: ValueId,
        /// Runs when it is true.
        then_body: Body,
        /// Runs when it is false.
        else_body: Body,
    },
    /// A body that runs again and again.
    Loop(Loop),
    /// A body that runs for each slice of tensors.
    Scan(Scan),
    /// A call to another function of the module.
    CallFunction {
        /// Its name.
        function: Arc<str>,
        /// Arguments.
        inputs: Vec<ValueId>,
    },
    /// A call to a tensor program, which writes into results that are made before.
    CallProgram {
        /// The program. Its parameters are the inputs, then the results.
        program: Arc<Program>,
        /// Arguments.
        inputs: Vec<ValueId>,
        /// The types of the results.
        results: Vec<Type>,
    },
    /// A call to a function outside, with the same way of passing results.
    CallExternal {
        /// Its name.
        function: Arc<str>,
        /// Arguments.
        inputs: Vec<ValueId>,
        /// The types of the results.
        results: Vec<Type>,
    },
}

/// A call to an operator of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The operator.
    pub operator: &'static Operator,
    /// Arguments; `None` for optional ones that are left out.
    pub inputs: Vec<Option<ValueId>>,
    /// Attributes.
    pub attributes: Attributes,
}

/// A body that runs until a count is reached or a condition becomes false. The body takes the number of the iteration,
/// the condition and the carried values; it gives the next condition, the next carried values, and slices to be stacked.
/// The outputs are the last carried values, then the stacked slices.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// The largest number of iterations.
    pub trip_count: Option<ValueId>,
    /// Whether there is a first iteration.
    pub condition: Option<ValueId>,
    /// The first values of what is carried from one iteration to the next.
    pub carried: Vec<ValueId>,
    /// The body of one iteration.
    pub body: Body,
}

/// A body that runs once for each slice of the inputs. It takes states and slices; it gives the next states, and slices.
/// The outputs are the last states, then the stacked slices.
#[derive(Clone, Debug, PartialEq)]
pub struct Scan {
    /// The first states.
    pub states: Vec<ValueId>,
    /// Tensors that are cut into slices.
    pub inputs: Vec<ScanTensor>,
    /// How slices that the body gives are stacked, one entry each.
    pub outputs: Vec<ScanOrder>,
    /// The body of one iteration.
    pub body: Body,
}

/// A tensor that is cut into slices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScanTensor {
    /// The tensor.
    pub value: ValueId,
    /// How it is cut.
    pub order: ScanOrder,
}

/// Along which dimension slices lie, and from which end they are counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScanOrder {
    /// The dimension; negative ones count from the last.
    pub axis: i64,
    /// Whether the last slice comes first.
    pub reverse: bool,
}

/// Functions by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module {
    /// The functions.
    pub functions: BTreeMap<Arc<str>, Function>,
}

impl Function {
    /// The properties of a value.
    pub fn value(&self, value: ValueId) -> &ValueInfo {
        &self.values[value.index()]
    }

    /// A name of a value for messages: its own, or its number.
    pub fn describe(&self, value: ValueId) -> String {
        match self.values.get(value.index()).and_then(|info| info.name.as_ref()) {
            Some(name) => name.to_string(),
            None => format!("%{}", value.0),
        }
    }
}

impl Call {
    /// Checks numbers of inputs and outputs and the attributes against the table.
    ///
    /// # Errors
    /// When one does not fit.
    pub fn check(&self, outputs: usize) -> Result<(), Fault> {
        let operator = self.operator;
        if !operator.inputs.accepts(self.inputs.len()) {
            return Err(Fault(format!("it takes {} inputs, found {}", operator.inputs, self.inputs.len())));
        }
        if outputs > operator.outputs.most {
            return Err(Fault(format!("it gives {} outputs, {outputs} are wanted", operator.outputs)));
        }
        for (name, value) in self.attributes.iter() {
            match operator.attribute(name) {
                None => return Err(Fault(format!("there is no attribute `{name}`"))),
                Some(kind) if !kind.accepts(value) => {
                    return Err(Fault(format!("attribute `{name}` must be {kind}, not {value:?}")));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

impl Operation {
    /// Calls `visit` with every value that the operation itself reads, not those that only its bodies read.
    pub fn for_each_input(&self, visit: &mut impl FnMut(ValueId)) {
        match self {
            Operation::Constant(_) => {}
            Operation::Call(call) => call.inputs.iter().flatten().for_each(|&input| visit(input)),
            Operation::MatchShape { value, .. } => visit(*value),
            Operation::Project { tuple, .. } => visit(*tuple),
            Operation::If { condition, .. } => visit(*condition),
            Operation::Loop(Loop { trip_count, condition, carried, .. }) => {
                trip_count.iter().chain(condition).chain(carried).for_each(|&input| visit(input));
            }
            Operation::Scan(Scan { states, inputs, .. }) => {
                states.iter().for_each(|&state| visit(state));
                inputs.iter().for_each(|input| visit(input.value));
            }
            Operation::Tuple(inputs)
            | Operation::CallFunction { inputs, .. }
            | Operation::CallProgram { inputs, .. }
            | Operation::CallExternal { inputs, .. } => inputs.iter().for_each(|&input| visit(input)),
        }
    }

    /// As [`Operation::for_each_input`], with places that can be changed.
    pub fn for_each_input_mut(&mut self, visit: &mut impl FnMut(&mut ValueId)) {
        match self {
            Operation::Constant(_) => {}
            Operation::Call(call) => call.inputs.iter_mut().flatten().for_each(visit),
            Operation::MatchShape { value, .. } => visit(value),
            Operation::Project { tuple, .. } => visit(tuple),
            Operation::If { condition, .. } => visit(condition),
            Operation::Loop(Loop { trip_count, condition, carried, .. }) => {
                trip_count.iter_mut().chain(condition).chain(carried).for_each(visit);
            }
            Operation::Scan(Scan { states, inputs, .. }) => {
                states.iter_mut().for_each(&mut *visit);
                inputs.iter_mut().for_each(|input| visit(&mut input.value));
            }
            Operation::Tuple(inputs)
            | Operation::CallFunction { inputs, .. }
            | Operation::CallProgram { inputs, .. }
            | Operation::CallExternal { inputs, .. } => inputs.iter_mut().for_each(visit),
        }
    }

    /// The bodies inside.
    pub fn bodies(&self) -> Vec<&Body> {
        match self {
            Operation::If { then_body, else_body, .. } => vec![then_body, else_body],
            Operation::Loop(Loop { body, .. }) | Operation::Scan(Scan { body, .. }) => vec![body],
            _ => Vec::new(),
        }
    }

    /// The bodies inside, to be changed.
    pub fn bodies_mut(&mut self) -> Vec<&mut Body> {
        match self {
            Operation::If { then_body, else_body, .. } => vec![then_body, else_body],
            Operation::Loop(Loop { body, .. }) | Operation::Scan(Scan { body, .. }) => vec![body],
            _ => Vec::new(),
        }
    }

    /// A word for messages: the operator's name, or the kind of operation.
    pub fn name(&self) -> &'static str {
        match self {
            Operation::Constant(_) => "constant",
            Operation::Call(call) => call.operator.name,
            Operation::MatchShape { .. } => "match_shape",
            Operation::Tuple(_) => "tuple",
            Operation::Project { .. } => "project",
            Operation::If { .. } => "if",
            Operation::Loop(_) => "loop",
            Operation::Scan(_) => "scan",
            Operation::CallFunction { .. } => "call_function",
            Operation::CallProgram { .. } => "call_program",
            Operation::CallExternal { .. } => "call_external",
        }
    }
}

impl Body {
    /// Calls `visit` with every value that bindings or results read, in inner bodies too.
    pub fn for_each_use(&self, visit: &mut dyn FnMut(ValueId)) {
        for binding in &self.bindings {
            binding.operation.for_each_input(&mut |value| visit(value));
            binding.operation.bodies().into_iter().for_each(|body| body.for_each_use(visit));
        }
        self.results.iter().for_each(|&result| visit(result));
    }

    /// Replaces values that bindings or results read, in inner bodies too.
    pub fn replace_uses(&mut self, replace: &dyn Fn(ValueId) -> ValueId) {
        for binding in &mut self.bindings {
            binding.operation.for_each_input_mut(&mut |value| *value = replace(*value));
            binding.operation.bodies_mut().into_iter().for_each(|body| body.replace_uses(replace));
        }
        self.results.iter_mut().for_each(|result| *result = replace(*result));
    }
}
