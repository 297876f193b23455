//! Building graphs call by call.
//!
//! A [`GraphBuilder`] checks each call when it is added and deduces the types of its results, so that a mistake is
//! reported where it is made. Importers use it as people do.
//!
//! ```
//! use tilewright_graph::build::GraphBuilder;
//! use tilewright_graph::ir::{Attributes, Shape, Type};
//! use tilewright_graph::symbolic::SymInt;
//! use tilewright_graph::tensor::{ElementType, HostTensor};
//!
//! let mut graph = GraphBuilder::new("scale");
//! let rows = Shape::Known(vec![SymInt::symbol("N"), 2.into()]);
//! let x = graph.parameter("x", Type::tensor(ElementType::F32, rows));
//! let factor = graph.constant(HostTensor::vector(vec![2f32, 3.0]));
//! let y = graph.call("mul", &[x, factor], Attributes::none())?;
//! assert_eq!(graph.ty(y).to_string(), "f32[N, 2]");
//! let function = graph.finish(vec![y])?;
//! # Ok::<(), tilewright_graph::build::BuildError>(())
//! ```

use std::sync::Arc;

use tilewright_core::program::Program;

use crate::deduce::{self, Fact};
use crate::ir::{
    Attributes, Binding, Body, Call, Function, Loop, Operation, Scan, Shape, Type, ValueId, ValueInfo,
};
use crate::operator::{self, Fault};
use crate::symbolic::SymInt;
use crate::tensor::HostTensor;

/// Why a call cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// There is no such operator.
    #[error("there is no operator `{0}`")]
    UnknownOperator(String),
    /// The call does not fit the operator.
    #[error("{operator}: {reason}")]
    Call {
        /// The operator.
        operator: &'static str,
        /// The mismatch.
        reason: String,
    },
    /// A scale of quantised numbers is not above zero.
    #[error(
        "tensor `{tensor}`: the scale {scale} of quantised numbers is not a finite number above zero; correct the model"
    )]
    Scale {
        /// The tensor of scales.
        tensor: String,
        /// The number, as text.
        scale: String,
    },
    /// A value is not bound where it is used.
    #[error("value %{0} is not bound here")]
    Unbound(u32),
}

/// A function under construction.
#[derive(Debug)]
pub struct GraphBuilder {
    name: Arc<str>,
    values: Vec<ValueInfo>,
    /// The function's body, then those of control flow that are open, the innermost last.
    bodies: Vec<Body>,
    /// For each value whether it can be used: those of closed bodies cannot.
    visible: Vec<bool>,
    origin: Option<Arc<str>>,
    fresh: u32,
}

impl GraphBuilder {
    /// A function without parameters.
    pub fn new(name: &str) -> Self {
        GraphBuilder {
            name: name.into(),
            values: Vec::new(),
            bodies: vec![Body::default()],
            visible: Vec::new(),
            origin: None,
            fresh: 0,
        }
    }

    /// Says where the calls that follow come from, for messages and profiles.
    pub fn set_origin(&mut self, origin: Option<Arc<str>>) {
        self.origin = origin;
    }

    /// The origin of the bindings that follow.
    pub(crate) fn origin(&self) -> Option<Arc<str>> {
        self.origin.clone()
    }

    /// The properties of a value.
    pub fn value(&self, value: ValueId) -> &ValueInfo {
        &self.values[value.index()]
    }

    /// The type of a value.
    pub fn ty(&self, value: ValueId) -> &Type {
        &self.value(value).ty
    }

    /// Gives a value a name for people.
    pub fn set_name(&mut self, value: ValueId, name: &str) {
        self.values[value.index()].name = Some(name.into());
    }

    /// A parameter of the function, or of the innermost open body.
    pub fn parameter(&mut self, name: &str, ty: Type) -> ValueId {
        let value = self.add_value(Fact::of_type(ty));
        self.set_name(value, name);
        self.body().parameters.push(value);
        value
    }

    /// A tensor that is known now.
    pub fn constant(&mut self, tensor: HostTensor) -> ValueId {
        let fact = Fact::of_constant(&tensor);
        self.bind(Operation::Constant(tensor), vec![fact])[0]
    }

    /// A call with one result and without optional inputs.
    ///
    /// # Errors
    /// When there is no such operator, or the inputs or attributes do not fit it.
    pub fn call(
        &mut self,
        operator: &str,
        inputs: &[ValueId],
        attributes: Attributes,
    ) -> Result<ValueId, BuildError> {
        let inputs = inputs.iter().map(|&input| Some(input)).collect();
        Ok(self.call_operator(operator, inputs, attributes, 1)?[0])
    }

    /// A call with any number of results. Optional inputs that are left out are `None`.
    ///
    /// # Errors
    /// As [`GraphBuilder::call`].
    pub fn call_operator(
        &mut self,
        operator: &str,
        inputs: Vec<Option<ValueId>>,
        attributes: Attributes,
        outputs: usize,
    ) -> Result<Vec<ValueId>, BuildError> {
        let operator =
            operator::find(operator).ok_or_else(|| BuildError::UnknownOperator(operator.to_owned()))?;
        self.require(inputs.iter().flatten())?;
        let call = Call { operator, inputs, attributes };
        let refuse = |fault: Fault| BuildError::Call { operator: operator.name, reason: fault.0 };
        call.check(outputs).map_err(refuse)?;
        let facts = deduce::call(&call, outputs, &self.values, &mut self.fresh).map_err(refuse)?;
        Ok(self.bind(Operation::Call(call), facts))
    }

    /// The types that a call would give; `None` when it does not fit its operator.
    pub(crate) fn deduce(&self, call: &Call, outputs: usize) -> Option<Vec<Type>> {
        let mut fresh = self.fresh;
        let facts = deduce::call(call, outputs, &self.values, &mut fresh).ok()?;
        Some(facts.into_iter().map(|fact| fact.ty).collect())
    }

    /// Opens a body of control flow: what is added until it is closed belongs to it.
    pub fn open_body(&mut self) {
        self.bodies.push(Body::default());
    }

    /// Closes the innermost body. Its values can no longer be used.
    ///
    /// # Errors
    /// When a result is not bound.
    ///
    /// # Panics
    /// When no body is open.
    pub fn close_body(&mut self, results: Vec<ValueId>) -> Result<Body, BuildError> {
        self.require(&results)?;
        assert!(self.bodies.len() > 1, "a body must be opened before it is closed");
        let mut body = self.bodies.pop().expect("there is an open body");
        let bound = body.bindings.iter().flat_map(|binding| &binding.outputs).chain(&body.parameters);
        bound.for_each(|value| self.visible[value.index()] = false);
        body.results = results;
        Ok(body)
    }

    /// One of two bodies, which give equally many results.
    ///
    /// # Errors
    /// When they do not, or the condition is not bound.
    pub fn conditional(
        &mut self,
        condition: ValueId,
        then_body: Body,
        else_body: Body,
    ) -> Result<Vec<ValueId>, BuildError> {
        self.require([&condition])?;
        let (first, second) = (then_body.results.len(), else_body.results.len());
        if first != second {
            let reason = format!("the branches give {first} and {second} results");
            return Err(BuildError::Call { operator: "if", reason });
        }
        let facts = deduce::branches(&then_body, &else_body, &self.values, &mut self.fresh);
        Ok(self.bind(Operation::If { condition, then_body, else_body }, facts))
    }

    /// A loop. The body takes the number of the iteration, the condition and the carried values.
    ///
    /// # Errors
    /// When the body's parameters or results do not fit, or a value is not bound.
    pub fn repeat(&mut self, operation: Loop) -> Result<Vec<ValueId>, BuildError> {
        self.require(operation.trip_count.iter().chain(&operation.condition).chain(&operation.carried))?;
        let (carried, body) = (operation.carried.len(), &operation.body);
        if body.parameters.len() != carried + 2 || body.results.len() < carried + 1 {
            let reason = format!(
                "a body with {} parameters and {} results does not carry {carried} values",
                body.parameters.len(),
                body.results.len()
            );
            return Err(BuildError::Call { operator: "loop", reason });
        }
        let facts = deduce::repeated(&operation, &self.values, &mut self.fresh);
        Ok(self.bind(Operation::Loop(operation), facts))
    }

    /// A body that runs for each slice of tensors.
    ///
    /// # Errors
    /// When the body's parameters or results do not fit, or a value is not bound.
    pub fn scan(&mut self, operation: Scan) -> Result<Vec<ValueId>, BuildError> {
        let inputs = operation.inputs.iter().map(|input| &input.value);
        self.require(operation.states.iter().chain(inputs))?;
        let body = &operation.body;
        let parameters = operation.states.len() + operation.inputs.len();
        let results = operation.states.len() + operation.outputs.len();
        if body.parameters.len() != parameters || body.results.len() != results {
            let reason = format!("the body must have {parameters} parameters and {results} results");
            return Err(BuildError::Call { operator: "scan", reason });
        }
        let facts = deduce::scanned(&operation, &self.values, &mut self.fresh);
        Ok(self.bind(Operation::Scan(operation), facts))
    }

    /// Checks at run time that a tensor has a shape, and gives the tensor with it. Symbols that have no value yet get the
    /// extents that are found.
    ///
    /// # Errors
    /// When the value is not bound or provably has another shape.
    pub fn match_shape(&mut self, value: ValueId, extents: Vec<SymInt>) -> Result<ValueId, BuildError> {
        self.require([&value])?;
        let differ = |(old, new): (&SymInt, &SymInt)| matches!((old.as_constant(), new.as_constant()), (Some(old), Some(new)) if old != new);
        if let Some(known) = self.ty(value).extents()
            && (known.len() != extents.len() || known.iter().zip(&extents).any(differ))
        {
            let reason = format!("the value has type {}, not {}", self.ty(value), Shape::Known(extents));
            return Err(BuildError::Call { operator: "match_shape", reason });
        }
        let element = self.ty(value).element();
        let fact = Fact {
            contents: self.value(value).contents.clone(),
            ..Fact::tensor(element, Shape::Known(extents.clone()))
        };
        Ok(self.bind(Operation::MatchShape { value, extents }, vec![fact])[0])
    }

    /// A call of a tensor program, whose tensors are the inputs and then the results.
    ///
    /// # Errors
    /// When an input is not bound, or the program has another number of tensors.
    pub fn call_program(
        &mut self,
        program: Arc<Program>,
        inputs: &[ValueId],
        results: Vec<Type>,
    ) -> Result<Vec<ValueId>, BuildError> {
        let (expected, found) = (program.buffer_params().count(), inputs.len() + results.len());
        if expected != found {
            let reason = format!("program `{}` has {expected} tensors, found {found}", program.name);
            return Err(BuildError::Call { operator: "call_program", reason });
        }
        let operation = Operation::CallProgram { program, inputs: inputs.to_vec(), results: results.clone() };
        self.bind_as(operation, results)
    }

    /// An operation whose results have types that cannot be deduced: tuples, and calls of what is no operator.
    pub(crate) fn bind_as(
        &mut self,
        operation: Operation,
        types: Vec<Type>,
    ) -> Result<Vec<ValueId>, BuildError> {
        let mut inputs = Vec::new();
        operation.for_each_input(&mut |input| inputs.push(input));
        self.require(&inputs)?;
        Ok(self.bind(operation, types.into_iter().map(Fact::of_type).collect()))
    }

    /// The function.
    ///
    /// # Errors
    /// When a result is not bound.
    ///
    /// # Panics
    /// When a body is open.
    pub fn finish(mut self, results: Vec<ValueId>) -> Result<Function, BuildError> {
        self.require(&results)?;
        let mut body = self.bodies.pop().expect("the function has a body");
        assert!(self.bodies.is_empty(), "all bodies of control flow must be closed");
        body.results = results;
        Ok(Function { name: self.name, values: self.values, body })
    }

    fn body(&mut self) -> &mut Body {
        self.bodies.last_mut().expect("the function has a body")
    }

    fn add_value(&mut self, fact: Fact) -> ValueId {
        self.values.push(ValueInfo { name: None, ty: fact.ty, contents: fact.contents });
        self.visible.push(true);
        ValueId(u32::try_from(self.values.len() - 1).expect("a graph has fewer than 2³² values"))
    }

    fn bind(&mut self, operation: Operation, facts: Vec<Fact>) -> Vec<ValueId> {
        let outputs: Vec<ValueId> = facts.into_iter().map(|fact| self.add_value(fact)).collect();
        let origin = self.origin.clone();
        self.body().bindings.push(Binding { outputs: outputs.clone(), operation, origin });
        outputs
    }

    fn require<'a>(&self, values: impl IntoIterator<Item = &'a ValueId>) -> Result<(), BuildError> {
        let hidden = |value: &&ValueId| !self.visible.get(value.index()).copied().unwrap_or(false);
        match values.into_iter().find(hidden) {
            Some(value) => Err(BuildError::Unbound(value.0)),
            None => Ok(()),
        }
    }
}
