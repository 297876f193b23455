//! The stand-ins for tensors in a function that is recorded.

use std::fmt;
use std::marker::PhantomData;

use tilewright_core::tensor::{AnyTensor, Element, Tensor, TensorView};

use super::extent::{Dim, Extent, ExtentOp};
use super::recorder::with_recorder;
use super::{GraphError, GraphStep};
use crate::error::Error;

/// A tensor of a graph under construction.
pub struct Traced<T, const RANK: usize> {
    value: usize,
    shape: [Dim; RANK],
    element: PhantomData<T>,
}

impl<T, const RANK: usize> Clone for Traced<T, RANK> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const RANK: usize> Copy for Traced<T, RANK> {}

impl<T: Element, const RANK: usize> fmt::Debug for Traced<T, RANK> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", T::DTYPE, self.shape)
    }
}

impl<T: Element, const RANK: usize> Traced<T, RANK> {
    pub(super) fn new(value: usize, shape: [Dim; RANK]) -> Self {
        Traced { value, shape, element: PhantomData }
    }

    /// The position of the tensor in the graph.
    pub fn value(&self) -> usize {
        self.value
    }

    /// The extents, outermost first.
    pub fn shape(&self) -> [Dim; RANK] {
        self.shape
    }

    /// The extent of one dimension.
    ///
    /// # Panics
    /// When `dimension` is not below the rank.
    pub fn dim(&self, dimension: usize) -> Dim {
        self.shape[dimension]
    }

    /// The same elements under another shape.
    ///
    /// # Errors
    /// [`GraphError::Extent`] when the shapes certainly have different numbers of elements.
    pub fn reshape<const OTHER: usize>(self, shape: [Dim; OTHER]) -> Result<Traced<T, OTHER>, Error> {
        let count = |shape: &[Dim]| {
            let factors = shape.iter().map(|extent| extent.extent().clone());
            factors.fold(Extent::Constant(1), |product, extent| {
                Extent::operation(ExtentOp::Mul, product, extent)
            })
        };
        with_recorder(|recorder| {
            let place =
                || format!("the number of elements of {shape:?} as another shape of {:?}", self.shape);
            recorder.check(Dim::of(count(&shape)), Dim::of(count(&self.shape)), &place)?;
            let output = recorder.value(T::DTYPE, &shape);
            recorder.graph.steps.push(GraphStep::Reshape { input: self.value, output });
            Ok(Traced::new(output, shape))
        })
    }
}

/// Another shape of a tensor in a function that is recorded: of one of the graph, or of one from elsewhere, which becomes a constant.
pub trait Reshape<T: Element>: Sized {
    /// The same elements under another shape.
    ///
    /// # Errors
    /// As [`Traced::reshape`] and [`Operand::trace`].
    fn record_reshape<const OTHER: usize>(self, shape: [Dim; OTHER]) -> Result<Traced<T, OTHER>, Error>;
}

impl<T: Element, const RANK: usize> Reshape<T> for Traced<T, RANK> {
    fn record_reshape<const OTHER: usize>(self, shape: [Dim; OTHER]) -> Result<Traced<T, OTHER>, Error> {
        self.reshape(shape)
    }
}

impl<T: Element, const RANK: usize> Reshape<T> for Tensor<T, RANK> {
    fn record_reshape<const OTHER: usize>(self, shape: [Dim; OTHER]) -> Result<Traced<T, OTHER>, Error> {
        Operand::View(TensorView::from(&self)).trace()?.reshape(shape)
    }
}

impl<T: Element, const RANK: usize> Reshape<T> for TensorView<'_, T, RANK> {
    fn record_reshape<const OTHER: usize>(self, shape: [Dim; OTHER]) -> Result<Traced<T, OTHER>, Error> {
        Operand::View(self).trace()?.reshape(shape)
    }
}

/// An argument of a call that is recorded: a tensor of the graph, or one from elsewhere, which becomes a constant.
pub enum Operand<'t, T: Element, const RANK: usize> {
    /// A tensor of the graph.
    Value(Traced<T, RANK>),
    /// A tensor from elsewhere, such as a weight.
    Tensor(&'t Tensor<T, RANK>),
    /// A view of other memory.
    View(TensorView<'t, T, RANK>),
}

impl<T: Element, const RANK: usize> fmt::Debug for Operand<'_, T, RANK> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Value(value) => fmt::Debug::fmt(value, f),
            Operand::Tensor(tensor) => fmt::Debug::fmt(tensor, f),
            Operand::View(view) => fmt::Debug::fmt(view, f),
        }
    }
}

impl<T: Element, const RANK: usize> Operand<'_, T, RANK> {
    /// The tensor of the graph under construction, to which one from elsewhere is added.
    ///
    /// # Errors
    /// [`GraphError::NotRecording`], or when the copy does not fit into memory.
    pub fn trace(self) -> Result<Traced<T, RANK>, Error> {
        let (key, shape) = match &self {
            Operand::Value(value) => return Ok(*value),
            Operand::Tensor(tensor) => {
                let elements = tensor.as_slice();
                (Some((elements.as_ptr() as usize, size_of_val(elements))), tensor.shape())
            }
            Operand::View(view) => (None, view.shape()),
        };
        let copy = || match &self {
            Operand::Tensor(tensor) => Ok(AnyTensor::from(*tensor)),
            Operand::View(view) => Ok(AnyTensor::from(&view.to_tensor()?)),
            Operand::Value(_) => Err(GraphError::NotRecording.into()),
        };
        let value = with_recorder(|recorder| recorder.constant(key.filter(|(_, bytes)| *bytes > 0), copy))?;
        Ok(Traced::new(value, shape.map(Dim::from)))
    }
}

impl<T: Element, const RANK: usize> From<Traced<T, RANK>> for Operand<'_, T, RANK> {
    fn from(value: Traced<T, RANK>) -> Self {
        Operand::Value(value)
    }
}

impl<T: Element, const RANK: usize> From<&Traced<T, RANK>> for Operand<'_, T, RANK> {
    fn from(value: &Traced<T, RANK>) -> Self {
        Operand::Value(*value)
    }
}

impl<T: Element, const RANK: usize> From<&mut Traced<T, RANK>> for Operand<'_, T, RANK> {
    fn from(value: &mut Traced<T, RANK>) -> Self {
        Operand::Value(*value)
    }
}

impl<'t, T: Element, const RANK: usize> From<&'t Tensor<T, RANK>> for Operand<'t, T, RANK> {
    fn from(tensor: &'t Tensor<T, RANK>) -> Self {
        Operand::Tensor(tensor)
    }
}

impl<'t, T: Element, const RANK: usize> From<TensorView<'t, T, RANK>> for Operand<'t, T, RANK> {
    fn from(view: TensorView<'t, T, RANK>) -> Self {
        Operand::View(view)
    }
}

impl<'t, T: Element, const RANK: usize> From<&'t TensorView<'t, T, RANK>> for Operand<'t, T, RANK> {
    fn from(view: &'t TensorView<'t, T, RANK>) -> Self {
        Operand::View(*view)
    }
}
