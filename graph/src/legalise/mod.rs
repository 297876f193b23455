//! From operators to kernels: the definition of a call, or of several calls fused, as a tensor program.
//!
//! A row of the table of operators that has a `Legalise` function can become a kernel. The function emits loops of any
//! rank through an `Emitter`; what it emits is a definition like one that a person writes with `#[tensor_kernel]`, so that
//! schedule rules find blocks and reductions in it. A call that has no such function, or whose function refuses these
//! shapes or element types, is computed by the operator's own evaluation.
//!
//! Extents are symbolic integers over the dimensions of the program. A decision that depends on an extent (a broadcast, a
//! window) is made where it holds for every value of these dimensions, or is noted in `decisions`; otherwise the call is refused, and
//! the caller legalises it again with fixed extents.
//!
//! | module | holds |
//! |---|---|
//! | `emitter` | the program under construction, its tensors and loop nests |
//! | `operands` | the inputs and attributes of one call |
//! | `decisions` | the sizes that a definition was made for |
//! | `order` | orders of dimensions in memory |
//! | `scalar` | functions of single elements |
//! | `pointwise` | operators that compute each element from one element of each input |
//! | `reduction`, `running` | sums, extremes, softmax; sums up to each element |
//! | `normalisation`, `grouped`, `local` | normalisation by layers, batches, groups of channels, and neighbouring channels |
//! | `matmul`, `einsum` | products of matrices, and of any tensors |
//! | `attention` | means of values, weighted by softmax of products |
//! | `convolution`, `transposed`, `pool`, `unpool`, `window` | windows over spatial dimensions |
//! | `quantise` | integers that stand for numbers |
//! | `recurrent` | recurrent layers |
//! | `rearrange`, `select` | elements in another order, and parts of tensors |
//! | `place` | elements at places that other tensors name, and elements that their places decide |
//! | `resample` | tensors of other extents |
//! | `signal` | Fourier transforms |
//! | `integer` | arithmetic and conversions of integers |

pub(crate) mod attention;
pub(crate) mod convolution;
mod decisions;
pub(crate) mod einsum;
mod emitter;
pub(crate) mod grouped;
pub(crate) mod integer;
pub(crate) mod local;
pub(crate) mod matmul;
pub(crate) mod normalisation;
mod operands;
mod order;
pub(crate) mod place;
pub(crate) mod pointwise;
pub(crate) mod pool;
pub(crate) mod quantise;
pub(crate) mod rearrange;
pub(crate) mod recurrent;
pub(crate) mod reduction;
pub(crate) mod resample;
pub(crate) mod running;
pub(crate) mod scalar;
pub(crate) mod select;
pub(crate) mod signal;
pub(crate) mod transposed;
pub(crate) mod unpool;
mod window;

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tilewright_core::accuracy::Accuracy;
use tilewright_core::build::DefinitionErrors;
use tilewright_core::program::Program;

use crate::ir::{Call, ValueId};
use crate::operator::Fault;
use crate::symbolic::{SymInt, Symbol};
use crate::tensor::{ElementType, HostTensor};
use decisions::Decisions;
pub(crate) use emitter::{Emitter, Tensor};
pub(crate) use operands::Operands;
pub use order::Order;

/// Emits a call, and gives its outputs.
pub(crate) type Legalise = fn(&mut Emitter, &Operands<'_>) -> Result<Vec<Tensor>, Unsupported>;

/// Why a call does not become a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// The operator has no kernel form, or none for these attributes, element types or shapes.
    #[error("{0}")]
    Form(String),
    /// The call is wrong: its evaluation reports the same.
    #[error("{0}")]
    Fault(String),
    /// The emitted definition has no schedulable form.
    #[error("{0}")]
    Definition(DefinitionErrors),
}

impl From<Fault> for Unsupported {
    fn from(fault: Fault) -> Self {
        Unsupported::Fault(fault.0)
    }
}

/// Leaves the function with [`Unsupported::Form`].
macro_rules! unsupported {
    ($($message:tt)*) => {
        return Err($crate::legalise::Unsupported::Form(format!($($message)*)))
    };
}
pub(crate) use unsupported;

/// The properties of an input of fused calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    /// The type of its elements.
    pub element: ElementType,
    /// Its extents, over the dimensions of the program.
    pub extents: Vec<SymInt>,
    /// The order of its dimensions in memory.
    pub order: Order,
    /// The distance of neighbours along each dimension, in elements, where the elements are not dense: a part of another tensor.
    pub strides: Option<Vec<SymInt>>,
    /// Its elements, where they are known: attributes that are inputs are read from them, and single elements become
    /// literals of the program.
    pub contents: Option<HostTensor>,
    /// The same elements as integers over the dimensions of the program, where the graph follows them.
    pub integers: Option<Vec<SymInt>>,
    /// Whether each run passes the same elements.
    pub constant: bool,
}

impl Signature {
    /// Notes that a definition was made for these very elements.
    fn note_contents(&self, decisions: &Decisions) {
        let Some(integers) = &self.integers else { return };
        let present = self.contents.as_ref().and_then(|contents| contents.cast(ElementType::I64).ok());
        let present = present.as_ref().and_then(|present| present.as_slice::<i64>()).unwrap_or_default();
        integers.iter().zip(present).for_each(|(integer, &value)| decisions.note(integer, value));
    }
}

/// Calls that become one program, in order.
#[derive(Clone, Debug)]
pub struct Fusion<'a> {
    /// The calls with the values that they give.
    pub calls: Vec<(&'a Call, &'a [ValueId])>,
    /// The values that come from outside.
    pub inputs: FxHashMap<ValueId, Signature>,
    /// The values that go outside, in order.
    pub outputs: Vec<ValueId>,
    /// The dimensions of the program, each with the value that it has now.
    pub dims: Vec<(Symbol, i64)>,
    /// The order in memory of results, and of what is computed on the way, with as many dimensions. Others have the graph's.
    pub order: Option<Order>,
    /// The distance of neighbours along each dimension of the first output, in elements, where its elements are not dense: it is a part of another
    /// tensor.
    pub placed: Option<Vec<SymInt>>,
    /// How exactly products of `f32` are formed; without it, they are those of `f32`.
    pub accuracy: Option<Accuracy>,
}

/// A tensor that a program reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A value from outside.
    Value(ValueId),
    /// A table that the definition brings along: the same elements in every call.
    Table(HostTensor),
}

/// A program, and which values its parameters are.
#[derive(Clone, Debug)]
pub struct Legalised {
    /// The program: its dimensions are those of the fusion, its buffers the inputs, then the outputs.
    pub program: Arc<Program>,
    /// The inputs that it reads, in order.
    pub inputs: Vec<Argument>,
    /// Its results, in order.
    pub outputs: Vec<Output>,
    /// The sizes that a choice depended on, with the values that they had: where they have the same values, the program is the same.
    pub decided_by: Vec<(SymInt, i64)>,
}

/// A result of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Its place among the program's buffers follows the inputs, in order of these.
    pub element: ElementType,
    /// Its extents, over the dimensions of the program.
    pub extents: Vec<SymInt>,
    /// The order of its dimensions in memory.
    pub order: Order,
}

/// Whether an operator has a kernel form for some of its calls.
pub fn has_form(call: &Call) -> bool {
    call.operator.legalise.is_some()
}

/// Inputs whose elements may depend on the dimensions of a program: operator and place.
const FOLLOWED: [(&str, usize); 3] = [("expand", 1), ("slice", 1), ("slice", 2)];

/// Whether the kernel form of a call takes the elements of a value as integers over the dimensions of the program, see
/// [`Signature::integers`]. Others would have dimensions that change nothing.
pub fn follows(call: &Call, value: ValueId) -> bool {
    FOLLOWED.iter().any(|&(operator, place)| {
        call.operator.name == operator && call.inputs.get(place) == Some(&Some(value))
    })
}

/// Makes a program of fused calls. Without calls, it copies inputs in another order of their dimensions.
///
/// # Errors
/// When one of the calls has no kernel form for these inputs.
pub fn legalise(fusion: &Fusion<'_>) -> Result<Legalised, Unsupported> {
    let name = match &fusion.calls[..] {
        [] => "copy".to_owned(),
        calls => calls.iter().map(|(call, _)| call.operator.name).collect::<Vec<_>>().join("_"),
    };
    let decisions = Decisions::default();
    let mut emitter = Emitter::new(&name, fusion, decisions.clone());
    for (call, outputs) in &fusion.calls {
        let Some(emit) = call.operator.legalise else {
            unsupported!("operator {} has no kernel form", call.operator.name)
        };
        let operands = Operands::of(call, outputs.len(), fusion, decisions.clone());
        let results = emit(&mut emitter, &operands)?;
        if results.len() < outputs.len() {
            unsupported!("operator {} has no kernel form for all of its outputs", call.operator.name);
        }
        for (&output, result) in outputs.iter().zip(results) {
            emitter.set(output, result);
        }
    }
    emitter.finish(&fusion.outputs)
}

#[cfg(test)]
mod tests;
