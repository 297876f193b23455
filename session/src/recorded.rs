//! Graphs of kernels, as functions with `#[tensor_graph]` record them.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_core::dtype::DType;
use tilewright_core::program::Program;
use tilewright_graph::build::{BuildError, GraphBuilder};
use tilewright_graph::ir::{Attribute, Attributes, Function, Shape, Type, ValueId};
use tilewright_graph::symbolic::SymInt;
use tilewright_graph::tensor::{ElementType, HostTensor};
use tilewright_runtime::graph::{
    EqualExtents, Extent, ExtentOp, GraphOutput, GraphStep, GraphValue, KernelCall, KernelGraph,
};

use crate::error::Error;
use crate::model::Model;

impl Model {
    /// Makes a graph of kernels ready to run: what a function with `#[tensor_graph]` gives by `NAME::graph`. Inputs have the names of its
    /// arguments, outputs are `output_0` and so on. A tensor `x` that the function updates is an input `x` and an output `x_out`; a list `x` of such
    /// tensors is the inputs `x_0` and so on, and the outputs `x_0_out` and so on.
    ///
    /// # Errors
    /// [`Error::Recorded`] when extents cannot be shown to be equal, or the program of a kernel cannot be built.
    pub fn from_kernels(graph: &KernelGraph) -> Result<Self, Error> {
        Model::from_function(&function(graph)?)
    }
}

/// The graph as a function of dataflow.
fn function(graph: &KernelGraph) -> Result<Function, Error> {
    check(&graph.checks)?;
    let mut translation = Translation {
        graph,
        builder: GraphBuilder::new("main"),
        values: vec![None; graph.values.len()],
        symbols: FxHashMap::default(),
        extents: FxHashMap::default(),
        named: FxHashSet::default(),
    };
    translation.inputs()?;
    for step in &graph.steps {
        translation.step(step)?;
    }
    let results = graph.outputs.iter().map(|output| translation.output(output));
    let results = results.collect::<Result<_, _>>()?;
    Ok(translation.builder.finish(results)?)
}

/// Refuses extents that are not equal for all sizes.
fn check(checks: &[EqualExtents]) -> Result<(), Error> {
    for EqualExtents { found, expected, place } in checks {
        if symbolic(found) != symbolic(expected) {
            return Err(Error::Recorded(format!(
                "{place} is {found}, expected {expected}; name dimensions alike that have to be equal"
            )));
        }
    }
    Ok(())
}

/// An extent in canonical form.
fn symbolic(extent: &Extent) -> SymInt {
    match extent {
        Extent::Symbol(name) => SymInt::symbol(name),
        Extent::Constant(value) => SymInt::from(*value),
        Extent::Operation(op, operands) => {
            let (a, b) = (&symbolic(&operands[0]), &symbolic(&operands[1]));
            match op {
                ExtentOp::Add => a + b,
                ExtentOp::Sub => a - b,
                ExtentOp::Mul => a * b,
                ExtentOp::Div => a.floor_div(b),
                ExtentOp::Rem => a.remainder(b),
                ExtentOp::Min => a.minimum(b),
                ExtentOp::Max => a.maximum(b),
            }
        }
    }
}

struct Translation<'g> {
    graph: &'g KernelGraph,
    builder: GraphBuilder,
    values: Vec<Option<ValueId>>,
    /// The argument and the dimension that have the extent of a name.
    symbols: FxHashMap<Arc<str>, (ValueId, usize)>,
    /// Extents that have been made tensors of one element.
    extents: FxHashMap<Extent, ValueId>,
    /// The inputs and the outputs so far, which have names.
    named: FxHashSet<ValueId>,
}

impl Translation<'_> {
    fn value(&self, position: usize) -> ValueId {
        self.values[position].expect("a graph computes each tensor before it is used")
    }

    fn inputs(&mut self) -> Result<(), Error> {
        for input in &self.graph.inputs {
            let GraphValue { shape, .. } = &self.graph.values[input.value];
            let value = self.builder.parameter(&input.name, ty(&self.graph.values[input.value])?);
            self.values[input.value] = Some(value);
            self.named.insert(value);
            for (axis, extent) in shape.iter().enumerate() {
                if let Extent::Symbol(name) = extent {
                    self.symbols.entry(Arc::clone(name)).or_insert((value, axis));
                }
            }
        }
        Ok(())
    }

    /// An output under its name. It is a value of its own where another name stands for the same tensor: that of an input, or of an output before.
    fn output(&mut self, output: &GraphOutput) -> Result<ValueId, Error> {
        let mut value = self.value(output.value);
        if !self.named.insert(value) {
            value = self.builder.call("identity", &[value], Attributes::none())?;
        }
        self.builder.set_name(value, &output.name);
        Ok(value)
    }

    fn step(&mut self, step: &GraphStep) -> Result<(), Error> {
        match step {
            GraphStep::Constant { tensor, value } => {
                let host = HostTensor::from_kernel(tensor).ok_or_else(|| unsupported(tensor.dtype()))?;
                self.values[*value] = Some(self.builder.constant(host));
            }
            GraphStep::Call(call) => self.call(call)?,
            GraphStep::Reshape { input, output } => {
                let shape = self.shape(&self.graph.values[*output].shape)?;
                let inputs = [self.value(*input), shape];
                self.values[*output] = Some(self.builder.call("reshape", &inputs, Attributes::none())?);
            }
        }
        Ok(())
    }

    fn call(&mut self, call: &KernelCall) -> Result<(), Error> {
        let program = program(call)?;
        let inputs: Vec<ValueId> = call.inputs.iter().map(|input| self.value(*input)).collect();
        let types = call.outputs.iter().map(|output| ty(&self.graph.values[*output]));
        let types = types.collect::<Result<Vec<Type>, Error>>()?;
        self.builder.set_origin(Some(call.kernel.name().into()));
        let results = self.builder.call_program(Arc::new(program), &inputs, types)?;
        self.builder.set_origin(None);
        for (output, result) in call.outputs.iter().zip(results) {
            self.values[*output] = Some(result);
        }
        Ok(())
    }

    /// A shape as a tensor of integers.
    fn shape(&mut self, extents: &[Extent]) -> Result<ValueId, Error> {
        let numbers: Option<Vec<i64>> = extents.iter().map(Extent::as_constant).collect();
        if let Some(numbers) = numbers {
            return Ok(self.builder.constant(HostTensor::vector(numbers)));
        }
        let parts: Vec<ValueId> =
            extents.iter().map(|extent| self.extent(extent)).collect::<Result<_, _>>()?;
        Ok(self.builder.call("concat", &parts, axis(0))?)
    }

    /// An extent as a tensor of one integer.
    fn extent(&mut self, extent: &Extent) -> Result<ValueId, BuildError> {
        if let Some(known) = self.extents.get(extent) {
            return Ok(*known);
        }
        let value = match extent {
            Extent::Constant(number) => self.builder.constant(HostTensor::vector(vec![*number])),
            Extent::Symbol(name) => {
                let (tensor, dimension) = self.symbols[name];
                let shape = self.builder.call("shape", &[tensor], Attributes::none())?;
                let place = self.builder.constant(HostTensor::vector(vec![dimension as i64]));
                self.builder.call("gather", &[shape, place], axis(0))?
            }
            Extent::Operation(op, operands) => {
                let operator = match op {
                    ExtentOp::Add => "add",
                    ExtentOp::Sub => "sub",
                    ExtentOp::Mul => "mul",
                    ExtentOp::Div => "div",
                    ExtentOp::Rem => "mod",
                    ExtentOp::Min => "min",
                    ExtentOp::Max => "max",
                };
                let operands = [self.extent(&operands[0])?, self.extent(&operands[1])?];
                self.builder.call(operator, &operands, Attributes::none())?
            }
        };
        self.extents.insert(extent.clone(), value);
        Ok(value)
    }
}

fn axis(axis: i64) -> Attributes {
    Attributes::none().with("axis", Attribute::Int(axis))
}

/// The kernel's program with the numbers of the call in it.
fn program(call: &KernelCall) -> Result<Program, Error> {
    let own = call.kernel.program().map_err(|error| Error::Recorded(error.to_string()))?.out_of_place();
    let symbols = own.dims().count() - call.sizes.len();
    let mut sizes = Vec::new();
    for ((var, name), size) in own.dims().skip(symbols).zip(&call.sizes) {
        let Some(number) = symbolic(size).as_constant() else {
            let kernel = call.kernel.name();
            return Err(Error::Recorded(format!(
                "kernel `{kernel}`, argument `{name}` is {size}: a `usize` argument of a kernel in a graph is a number"
            )));
        };
        sizes.push((var, number));
    }
    let scalars: Vec<_> = own.scalar_params().map(|(var, _)| var).zip(call.scalars.iter().copied()).collect();
    Ok(own.bind_dims(&sizes).bind_scalars(&scalars))
}

fn ty(value: &GraphValue) -> Result<Type, Error> {
    let element = ElementType::of_dtype(value.dtype).ok_or_else(|| unsupported(value.dtype))?;
    Ok(Type::tensor(element, Shape::Known(value.shape.iter().map(symbolic).collect())))
}

fn unsupported(dtype: DType) -> Error {
    Error::Recorded(format!("models have no tensors of {dtype}"))
}
