//! Tensors in the memory of a device, and views of them.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use tilewright_core::device::{BufferArgument, DeviceBuffer, DeviceSlice, DeviceSliceMut};
use tilewright_core::tensor::{Element, ShapeError, Tensor, TensorView};

use super::DeviceHandle;
use crate::error::Error;

/// A dense, row-major tensor in the memory of a device. Kernels read and write it there; nothing but [`DeviceTensor::write`] and
/// [`DeviceTensor::to_host`] copies it. Its memory is given back when it is dropped, behind the work that uses it.
pub struct DeviceTensor<T, const RANK: usize> {
    device: DeviceHandle,
    buffer: DeviceBuffer,
    shape: [usize; RANK],
    element: PhantomData<T>,
}

/// A tensor of a device, or some of its rows, to be read.
#[derive(Clone, Copy)]
pub struct DeviceView<'t, T, const RANK: usize> {
    slice: DeviceSlice<'t>,
    shape: [usize; RANK],
    element: PhantomData<T>,
}

/// A tensor of a device, to be written.
pub struct DeviceViewMut<'t, T, const RANK: usize> {
    slice: DeviceSliceMut<'t>,
    shape: [usize; RANK],
    element: PhantomData<T>,
}

/// An argument that a kernel reads on a device: a reference to a [`DeviceTensor`], or a [`DeviceView`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no tensor in the memory of a device with elements `{T}` and {RANK} dimensions",
    label = "a call on a device takes tensors in its memory",
    note = "copy a tensor of the host there with `device.upload(&tensor)?`, once for all calls that read it"
)]
pub trait DeviceRead<'t, T, const RANK: usize> {
    /// The tensor, to be read.
    fn into_view(self) -> DeviceView<'t, T, RANK>;
}

/// An argument that a kernel writes on a device: an exclusive reference to a [`DeviceTensor`], or a [`DeviceViewMut`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no writable tensor in the memory of a device with elements `{T}` and {RANK} dimensions",
    label = "a call on a device takes tensors in its memory",
    note = "copy a tensor of the host there with `device.upload(&tensor)?`, and pass `&mut` of the copy"
)]
pub trait DeviceWrite<'t, T, const RANK: usize> {
    /// The tensor, to be written.
    fn into_view_mut(self) -> DeviceViewMut<'t, T, RANK>;
}

impl<T: Element, const RANK: usize> DeviceTensor<T, RANK> {
    /// Memory of a device with as many bytes as the elements of the shape take.
    pub(super) fn new(device: DeviceHandle, buffer: DeviceBuffer, shape: [usize; RANK]) -> Self {
        debug_assert_eq!(buffer.len(), shape.iter().product::<usize>() * size_of::<T>());
        DeviceTensor { device, buffer, shape, element: PhantomData }
    }

    /// The extents, outermost first.
    pub fn shape(&self) -> [usize; RANK] {
        self.shape
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The device in whose memory it is.
    pub fn device(&self) -> &DeviceHandle {
        &self.device
    }

    /// All of it, to be read.
    pub fn view(&self) -> DeviceView<'_, T, RANK> {
        DeviceView { slice: self.buffer.as_slice(), shape: self.shape, element: PhantomData }
    }

    /// All of it, to be written.
    pub fn view_mut(&mut self) -> DeviceViewMut<'_, T, RANK> {
        DeviceViewMut { slice: self.buffer.as_mut_slice(), shape: self.shape, element: PhantomData }
    }

    /// Replaces the elements by those of a tensor of the host, behind all work that was submitted before.
    ///
    /// # Errors
    /// [`Error::Shape`] when the shapes differ, [`Error::NotContiguous`] when the elements of a view do not lie next to each other,
    /// [`Error::Device`] when the device fails.
    pub fn write<'t>(&mut self, tensor: impl Into<TensorView<'t, T, RANK>>) -> Result<(), Error> {
        let view = tensor.into();
        if view.shape() != self.shape {
            let (expected, found) = (self.len(), view.len());
            return Err(ShapeError::Length { shape: self.shape.to_vec(), expected, found }.into());
        }
        let elements = view.as_slice().ok_or_else(|| Error::NotContiguous {
            argument: "tensor".to_owned(),
            problem: view.not_contiguous(),
        })?;
        Ok(self.device.device().upload(T::as_bytes(elements), self.buffer.as_mut_slice())?)
    }

    /// A copy in the memory of the host, when all work that writes the tensor is done.
    ///
    /// # Errors
    /// [`Error::Device`] when that work or the device has failed.
    pub fn to_host(&self) -> Result<Tensor<T, RANK>, Error> {
        self.device.download(self)
    }
}

impl<'t, T: Element, const RANK: usize> DeviceView<'t, T, RANK> {
    /// The extents, outermost first.
    pub fn shape(&self) -> [usize; RANK] {
        self.shape
    }

    /// Some of the outermost dimension: rows of a matrix, images of a batch.
    ///
    /// # Errors
    /// [`Error::Shape`] when the range leaves the dimension, or there is none.
    pub fn part(self, range: Range<usize>) -> Result<Self, Error> {
        let Range { start, end } = range;
        let Some((&outermost, inner)) = self.shape.split_first() else {
            return Err(ShapeError::Axis { axis: 0, rank: RANK }.into());
        };
        if start > end || end > outermost {
            return Err(ShapeError::Range { shape: self.shape.to_vec(), axis: 0, start, end }.into());
        }
        let row = inner.iter().product::<usize>() * size_of::<T>();
        let slice = self.slice.part(start * row..end * row).expect("the range is inside of the tensor");
        let mut shape = self.shape;
        shape[0] = end - start;
        Ok(DeviceView { slice, shape, element: PhantomData })
    }

    /// The bytes.
    pub fn slice(&self) -> DeviceSlice<'t> {
        self.slice
    }

    /// The tensor as an argument of a call.
    pub fn argument(&self) -> BufferArgument<'t> {
        BufferArgument::DeviceRead(self.slice)
    }
}

impl<T: Element, const RANK: usize> DeviceViewMut<'_, T, RANK> {
    /// The extents, outermost first.
    pub fn shape(&self) -> [usize; RANK] {
        self.shape
    }

    /// The bytes, to be written.
    pub fn slice_mut(&mut self) -> DeviceSliceMut<'_> {
        self.slice.reborrow()
    }

    /// The tensor as an argument of a call.
    pub fn argument(&mut self) -> BufferArgument<'_> {
        BufferArgument::DeviceWrite(self.slice.reborrow())
    }
}

impl<'t, T: Element, const RANK: usize> DeviceRead<'t, T, RANK> for &'t DeviceTensor<T, RANK> {
    fn into_view(self) -> DeviceView<'t, T, RANK> {
        self.view()
    }
}

impl<'t, T: Element, const RANK: usize> DeviceRead<'t, T, RANK> for DeviceView<'t, T, RANK> {
    fn into_view(self) -> DeviceView<'t, T, RANK> {
        self
    }
}

impl<'t, T: Element, const RANK: usize> DeviceWrite<'t, T, RANK> for &'t mut DeviceTensor<T, RANK> {
    fn into_view_mut(self) -> DeviceViewMut<'t, T, RANK> {
        self.view_mut()
    }
}

impl<'t, T: Element, const RANK: usize> DeviceWrite<'t, T, RANK> for DeviceViewMut<'t, T, RANK> {
    fn into_view_mut(self) -> DeviceViewMut<'t, T, RANK> {
        self
    }
}

impl<T: Element, const RANK: usize> fmt::Debug for DeviceTensor<T, RANK> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceTensor({}{:?} on {})", T::DTYPE, self.shape, self.device.name())
    }
}

impl<T: Element, const RANK: usize> fmt::Debug for DeviceView<'_, T, RANK> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceView({}{:?} in {:?})", T::DTYPE, self.shape, self.slice)
    }
}

impl<T: Element, const RANK: usize> fmt::Debug for DeviceViewMut<'_, T, RANK> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceViewMut({}{:?} in {:?})", T::DTYPE, self.shape, self.slice)
    }
}
