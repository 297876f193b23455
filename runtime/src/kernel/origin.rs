//! Where a kernel comes from, and what its signature says: a definition in Rust, or a program that was made at run time.

use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;
use tilewright_core::build::{DefinitionErrors, KernelBuilder};
use tilewright_core::device::{BufferArgument, CallError};
use tilewright_core::expr::Constant;
use tilewright_core::interp;
use tilewright_core::program::{Access, Program};
use tilewright_core::tensor::{AnyTensor, Loaded, checked_len};
use tilewright_core::verify::{Level, verify};

use super::state::State;
use crate::definition::{DimSpec, KernelDefinition, ParameterKind};
use crate::error::Error;
use crate::settings::Dump;

/// Where a kernel comes from.
pub(super) enum Origin {
    /// A function with `#[tensor_kernel]`, whose program is made when it is first needed.
    Definition(&'static KernelDefinition, OnceLock<Result<Arc<State>, DefinitionErrors>>),
    /// A program.
    Program(Arc<State>),
}

/// Some extents of one tensor and the size of its elements in bytes.
type TensorShape = (SmallVec<[usize; 6]>, usize);

impl Origin {
    pub(super) const fn definition(definition: &'static KernelDefinition) -> Self {
        Origin::Definition(definition, OnceLock::new())
    }

    /// A program, which must be well-formed and schedulable, and whose dimensions must have different names.
    pub(super) fn program(program: Program) -> Result<Self, Error> {
        let malformed = |problem: String| Error::Malformed { kernel: program.name.to_string(), problem };
        verify(&program, Level::Blocks).map_err(|errors| malformed(errors.render(&program)))?;
        let names: Vec<&str> = program.dims().map(|(_, name)| &**name).collect();
        if let Some((position, name)) =
            names.iter().enumerate().find(|(position, name)| names[..*position].contains(name))
        {
            let problem = format!("dimension {position} is named `{name}`, as one before it");
            return Err(malformed(problem));
        }
        Ok(Origin::Program(Arc::new(State::new(program, 0))))
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Origin::Definition(definition, _) => definition.name,
            Origin::Program(state) => state.name(),
        }
    }

    /// The program, and what is made of it.
    #[inline]
    pub(super) fn state(&self) -> Result<&Arc<State>, Error> {
        match self {
            Origin::Program(state) => Ok(state),
            Origin::Definition(definition, state) => match state.get() {
                Some(Ok(state)) => Ok(state),
                _ => build(definition, state),
            },
        }
    }

    /// The names of the dimensions: symbolic ones, then `usize` arguments.
    pub(super) fn dims(&self) -> Vec<&str> {
        match self {
            Origin::Definition(definition, _) => definition.dims.to_vec(),
            Origin::Program(state) => state.dims.iter().map(|name| &**name).collect(),
        }
    }

    /// How many of the dimensions are symbolic.
    pub(super) fn symbols(&self) -> usize {
        match self {
            Origin::Definition(definition, _) => definition.dims.len() - sizes(definition),
            Origin::Program(state) => state.symbols,
        }
    }

    /// Refuses dimensions that no call through typed tensors can have.
    pub(super) fn check_dims(&self, dims: &[i64]) -> Result<(), Error> {
        let names = self.dims();
        let (expected, found) = (names.len(), dims.len());
        if expected != found {
            return Err(CallError::Count { sort: "dimensions", expected, found }.into());
        }
        if let Some((name, &value)) = names.iter().zip(dims).find(|(_, value)| **value < 0) {
            return Err(CallError::Dimension { name: (*name).to_owned(), value }.into());
        }
        match self {
            Origin::Definition(definition, _) => {
                for parameter in definition.tensors() {
                    checked_len(&definition.shape(parameter, dims)?, parameter.dtype.bytes())?;
                }
            }
            Origin::Program(state) => {
                state.tensor_shapes(dims)?;
            }
        }
        Ok(())
    }

    /// The extents that are known when one dimension is, of each tensor.
    pub(super) fn shapes_with(&self, position: usize, value: i64) -> Vec<TensorShape> {
        let usize_of = |extent: i64| usize::try_from(extent).ok();
        match self {
            Origin::Definition(definition, _) => {
                let extent = |dim: &DimSpec| match *dim {
                    DimSpec::Symbol(symbol) if symbol == position => usize_of(value),
                    DimSpec::Fixed(extent) => usize_of(extent),
                    DimSpec::Symbol(_) | DimSpec::Computed(..) => None,
                };
                let tensors = definition.tensors();
                tensors
                    .map(|tensor| (tensor.dims.iter().filter_map(extent).collect(), tensor.dtype.bytes()))
                    .collect()
            }
            Origin::Program(state) => {
                let program = &state.program;
                let dim = program.dims().nth(position).map(|(var, _)| var);
                let tensors = program.buffer_params().map(|(id, _)| program.buffer(id));
                let known = |var| (Some(var) == dim).then_some(value);
                tensors
                    .map(|buffer| {
                        let extents = buffer.shape.iter().filter_map(|extent| extent.evaluate(&known));
                        (extents.filter_map(usize_of).collect(), buffer.dtype.bytes())
                    })
                    .collect()
            }
        }
    }

    /// Computes what a call computes, without any schedule and compiled code.
    pub(super) fn reference(
        &self,
        dims: &[i64],
        scalars: &[Constant],
        buffers: &mut [BufferArgument<'_>],
    ) -> Result<(), Error> {
        match self {
            Origin::Definition(definition, _) => (definition.reference)(dims, scalars, buffers),
            Origin::Program(state) => {
                self.check_dims(dims)?;
                interpret(state, dims, scalars, buffers)
            }
        }
    }
}

/// How many `usize` arguments a definition has.
fn sizes(definition: &KernelDefinition) -> usize {
    definition.parameters.iter().filter(|parameter| parameter.kind == ParameterKind::Size).count()
}

/// Makes the program of a definition, unless that has been done.
#[cold]
fn build<'s>(
    definition: &KernelDefinition,
    state: &'s OnceLock<Result<Arc<State>, DefinitionErrors>>,
) -> Result<&'s Arc<State>, Error> {
    let state = state.get_or_init(|| {
        let mut builder = KernelBuilder::new(definition.name);
        (definition.build)(&mut builder);
        let program = builder.finish()?;
        if let Ok(dump) = Dump::requested() {
            dump.print(&format!("{} (symbolic)", definition.name), "definition", || program.to_string());
        }
        Ok(Arc::new(State::new(program, sizes(definition))))
    });
    state.as_ref().map_err(|errors| Error::Definition(errors.clone()))
}

/// Interprets a program on the memory of a call.
fn interpret(
    state: &State,
    dims: &[i64],
    scalars: &[Constant],
    buffers: &mut [BufferArgument<'_>],
) -> Result<(), Error> {
    let (program, shapes) = (&state.program, state.tensor_shapes(dims)?);
    if shapes.len() != buffers.len() {
        return Err(CallError::Count { sort: "tensors", expected: shapes.len(), found: buffers.len() }.into());
    }
    let parameters = program.buffer_params().map(|(id, access)| (id, program.buffer(id), access));
    let mut tensors = Vec::new();
    for (((id, parameter, access), shape), buffer) in parameters.zip(&shapes).zip(&*buffers) {
        let refuse = |problem: &str| CallError::Tensor {
            name: parameter.name.to_string(),
            problem: problem.to_owned(),
        };
        if access.is_written() && !buffer.is_writable() {
            return Err(refuse("is written but was passed for reading").into());
        }
        let loaded = match buffer {
            BufferArgument::Stored(stored) => Some(stored.load().map_err(CallError::from)?),
            _ => None,
        };
        let bytes = loaded.as_ref().map(Loaded::bytes).or_else(|| buffer.host_bytes());
        let bytes = bytes.ok_or_else(|| refuse("is in the memory of a device: download it first"))?;
        // One with strides is passed as the row of all elements from its first to its last one.
        let row = [bytes.len() / parameter.dtype.bytes()];
        let is_strided = program.strides(id).is_some();
        let shape = if is_strided { &row[..] } else { shape };
        let mut tensor = AnyTensor::zeros(parameter.dtype, shape)?;
        let (expected, found) = (tensor.bytes().len() as u64, bytes.len() as u64);
        if expected != found {
            let name = parameter.name.to_string();
            return Err(CallError::Size { name, expected, found }.into());
        }
        if access != Access::Output || is_strided {
            tensor.bytes_mut().copy_from_slice(bytes);
        }
        tensors.push(tensor);
    }
    interp::run(program, dims, scalars, &mut tensors)?;
    for (buffer, tensor) in buffers.iter_mut().zip(&tensors) {
        if let BufferArgument::Write(bytes) = buffer {
            bytes.copy_from_slice(tensor.bytes());
        }
    }
    Ok(())
}
