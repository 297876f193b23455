//! Calls of kernels that are recorded, with the shapes of their results.

use tilewright_core::expr::Constant;
use tilewright_core::program::{Buffer, Program};
use tilewright_core::tensor::Element;

use super::extent::{Dim, Extent};
use super::recorder::{Recorder, with_recorder};
use super::traced::{Operand, Traced};
use super::{GraphError, GraphStep, KernelCall};
use crate::definition::{DimSpec, KernelDefinition};
use crate::error::Error;
use crate::kernel::Kernel;

/// A call under construction: its arguments, each in the order of the definition.
#[derive(Debug)]
pub struct CallRecorder {
    kernel: &'static Kernel,
    tensors: Vec<(usize, Vec<Dim>)>,
    /// The places, among the tensors, of those that are updated.
    updated: Vec<usize>,
    sizes: Vec<Dim>,
    scalars: Vec<Constant>,
}

/// The results of a call, as tensors of the graph.
#[derive(Debug)]
pub struct CallResults {
    results: Vec<(usize, Vec<Dim>)>,
    updated: Vec<(usize, Vec<Dim>)>,
}

impl CallRecorder {
    /// A call without arguments.
    pub fn new(kernel: &'static Kernel) -> Self {
        CallRecorder {
            kernel,
            tensors: Vec::new(),
            updated: Vec::new(),
            sizes: Vec::new(),
            scalars: Vec::new(),
        }
    }

    /// Adds a tensor.
    ///
    /// # Errors
    /// As [`Operand::trace`].
    pub fn tensor<'t, T: Element, const RANK: usize>(
        &mut self,
        operand: impl Into<Operand<'t, T, RANK>>,
    ) -> Result<(), Error> {
        let traced = operand.into().trace()?;
        self.tensors.push((traced.value(), traced.shape().to_vec()));
        Ok(())
    }

    /// Adds a tensor that the kernel updates.
    pub fn updated<T: Element, const RANK: usize>(&mut self, tensor: &Traced<T, RANK>) {
        self.updated.push(self.tensors.len());
        self.tensors.push((tensor.value(), tensor.shape().to_vec()));
    }

    /// Adds a `usize`.
    pub fn size(&mut self, size: impl Into<Dim>) {
        self.sizes.push(size.into());
    }

    /// Adds a run-time scalar.
    pub fn scalar<T: Element>(&mut self, value: T) {
        self.scalars.push(value.to_constant());
    }

    /// Checks the shapes and adds the call to the graph.
    ///
    /// # Errors
    /// When a shape does not fit or cannot be followed.
    pub fn finish(self) -> Result<CallResults, Error> {
        let definition = self.kernel.definition().expect("generated code names kernels that it defines");
        let program = self.kernel.program()?;
        with_recorder(|recorder| {
            let shapes = self.tensors.iter().map(|(_, shape)| shape.iter().copied());
            let dims = dims(definition, shapes, self.sizes.iter().copied());
            self.check(recorder, definition, program, &dims)?;
            let buffers = program.buffer_params().map(|(id, _)| program.buffer(id));
            let mut results = Vec::new();
            for buffer in buffers.skip(self.tensors.len()) {
                let shape = shape(definition, program, buffer, &dims)?;
                results.push((recorder.value(buffer.dtype, &shape), shape));
            }
            let updated: Vec<(usize, Vec<Dim>)> = self
                .updated
                .iter()
                .map(|&place| {
                    let (value, shape) = &self.tensors[place];
                    let dtype = recorder.graph.values[*value].dtype;
                    (recorder.value(dtype, shape), shape.clone())
                })
                .collect();
            recorder.graph.steps.push(GraphStep::Call(KernelCall {
                kernel: self.kernel,
                sizes: self.sizes.iter().map(|size| size.extent().clone()).collect(),
                scalars: self.scalars.clone(),
                inputs: self.tensors.iter().map(|(value, _)| *value).collect(),
                outputs: results.iter().chain(&updated).map(|(value, _)| *value).collect(),
            }));
            Ok(CallResults { results, updated })
        })
    }

    /// Compares the shapes of all arguments with the signature.
    fn check(
        &self,
        recorder: &mut Recorder,
        definition: &KernelDefinition,
        program: &Program,
        dims: &[Option<Dim>],
    ) -> Result<(), Error> {
        let buffers = program.buffer_params().map(|(id, _)| program.buffer(id));
        for ((parameter, (_, found)), buffer) in definition.tensors().zip(&self.tensors).zip(buffers) {
            let expected = shape(definition, program, buffer, dims)?;
            for (axis, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let place = || {
                    let (kernel, argument) = (definition.name, parameter.name);
                    let dimension = match parameter.dims[axis] {
                        DimSpec::Symbol(symbol) => definition.dims[symbol],
                        DimSpec::Fixed(_) => "fixed",
                        DimSpec::Computed(_, text) => text,
                    };
                    format!("kernel `{kernel}`, argument `{argument}`: dimension {axis} (`{dimension}`)")
                };
                recorder.check(*found, *expected, &place)?;
            }
        }
        Ok(())
    }
}

/// The values of a definition's dimensions, from the shapes of its arguments: the extents where they first occur, then the `usize` arguments.
pub(super) fn dims<D>(
    definition: &KernelDefinition,
    shapes: impl Iterator<Item: Iterator<Item = D>>,
    sizes: impl ExactSizeIterator<Item = D>,
) -> Vec<Option<D>> {
    let mut dims: Vec<Option<D>> = Vec::with_capacity(definition.dims.len());
    dims.resize_with(definition.dims.len() - sizes.len(), || None);
    for (parameter, shape) in definition.tensors().zip(shapes) {
        for (spec, extent) in parameter.dims.iter().zip(shape) {
            if let DimSpec::Symbol(symbol) = *spec
                && let Some(dim @ None) = dims.get_mut(symbol)
            {
                *dim = Some(extent);
            }
        }
    }
    dims.extend(sizes.map(Some));
    dims
}

/// The shape that the signature gives a tensor.
fn shape(
    definition: &KernelDefinition,
    program: &Program,
    buffer: &Buffer,
    dims: &[Option<Dim>],
) -> Result<Vec<Dim>, Error> {
    let extent_of = |var| {
        let position = program.dims().position(|(dim, _)| dim == var)?;
        dims.get(position).copied().flatten().map(|dim| dim.extent().clone())
    };
    let extents = buffer.shape.iter().enumerate().map(|(axis, index)| {
        Extent::of_index(index, &extent_of).map(Dim::of).map_err(|reason| {
            let (kernel, result) = (definition.name.to_owned(), buffer.name.to_string());
            GraphError::Computed { kernel, result, axis, reason }.into()
        })
    });
    extents.collect()
}

impl CallResults {
    /// One of the results.
    ///
    /// # Panics
    /// When the kernel has no such result, or another rank: generated code knows both.
    pub fn get<T: Element, const RANK: usize>(&self, position: usize) -> Traced<T, RANK> {
        traced(&self.results[position])
    }

    /// One of the tensors that the kernel updates, as it is afterwards.
    ///
    /// # Panics
    /// As [`get`](Self::get).
    pub fn updated<T: Element, const RANK: usize>(&self, position: usize) -> Traced<T, RANK> {
        traced(&self.updated[position])
    }
}

fn traced<T: Element, const RANK: usize>((value, shape): &(usize, Vec<Dim>)) -> Traced<T, RANK> {
    Traced::new(*value, shape[..].try_into().expect("generated code knows the rank"))
}
