//! The steps of a graph for given shapes.
//!
//! A plan exists for graphs of calls whose sizes, and the branches that are taken, follow from the shapes of the inputs and
//! from the elements of small integer inputs. Everything that is the same in
//! each run of these shapes (constants, the shape arithmetic of models) is computed when the plan is made. Results of steps
//! lie in one arena; values that only look at others' elements, in another shape or at some of them, have no memory of their own, and parts of a
//! concatenation are written where it has them.

mod build;
mod device;
pub(crate) mod memory;
mod order;
mod run;
mod sizes;

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;
use tilewright_core::tensor::AnyTensor;
use tilewright_graph::ir::{Call, ValueId};
use tilewright_graph::tensor::{ElementType, HostTensor};
use tilewright_runtime::kernel::Kernel;

pub(crate) use build::{build, build_part, name};
pub(crate) use device::OnDevice;
pub(crate) use run::Memory;

/// The steps of a graph for given shapes.
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    /// The size of the arena, in bytes.
    pub(crate) arena: usize,
    /// The largest sum of results that are needed at one time.
    pub(crate) lower_bound: usize,
    pub(crate) outputs: Vec<Slice>,
    /// Tensors that the shapes decide.
    pub(crate) known: Vec<AnyTensor>,
}

/// One step.
pub(crate) struct Step {
    pub(crate) action: Action,
    pub(crate) inputs: SmallVec<[Slice; 4]>,
    pub(crate) outputs: SmallVec<[Slice; 1]>,
    /// The node that it computes, for messages and profiles.
    pub(crate) name: Arc<str>,
}

/// How a step computes.
pub(crate) enum Action {
    /// By a kernel, with values for its dimensions.
    Kernel(Arc<Kernel>, SmallVec<[i64; 4]>),
    /// By evaluating a call. Inputs are as the call has them; those that are left out are absent here.
    Evaluate {
        /// The call.
        call: Box<Call>,
        /// Which inputs are given.
        given: SmallVec<[bool; 4]>,
        /// Why it has no kernel.
        reason: Arc<str>,
    },
}

/// A tensor in memory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slice {
    pub(crate) place: Place,
    pub(crate) element: ElementType,
    pub(crate) shape: Vec<usize>,
    /// The bytes from the first element to the last one, where the tensor is a part of the memory there.
    pub(crate) part: Option<Range<usize>>,
}

/// Where the elements of a tensor are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// They are those of an input.
    Input(usize),
    /// They are those of a constant of the graph.
    Constant(ValueId),
    /// They are those of a tensor that the shapes decide.
    Known(usize),
    /// They lie in the arena from here on, in bytes.
    Arena(usize, usize),
}

impl Slice {
    /// The memory from the first element to the last one.
    pub(crate) fn of<'m>(&self, memory: &'m [u8]) -> &'m [u8] {
        self.part.clone().map_or(memory, |part| &memory[part])
    }

    /// As [`Slice::of`], for writing.
    pub(crate) fn of_mut<'m>(&self, memory: &'m mut [u8]) -> &'m mut [u8] {
        match self.part.clone() {
            Some(part) => &mut memory[part],
            None => memory,
        }
    }

    /// How many bytes the elements take.
    pub(crate) fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.element.dtype().map_or(0, |dtype| dtype.bytes())
    }
}

/// The elements of a dense tensor, of which these are the bytes.
pub(crate) fn host(slice: &Slice, bytes: &[u8]) -> Result<HostTensor, tilewright_graph::tensor::TensorError> {
    HostTensor::from_bytes(slice.element, &slice.shape, bytes)
}
