//! Tensors in page-locked memory of the host.

use std::fmt;
use std::marker::PhantomData;

use tilewright_core::tensor::{Element, Number, ShapeError, Tensor, TensorView, checked_len};
use tilewright_gpu::PinnedBuffer;
use tilewright_runtime::devices::{DeviceHandle, DeviceRead, DeviceWrite};

use super::of;
use crate::Error;

/// A dense, row-major tensor in page-locked memory of the host. Copies between it and a GPU are made in the order of their stream, while
/// the host goes on; whoever looks at the elements waits for them.
pub struct PinnedTensor<T, const RANK: usize> {
    device: DeviceHandle,
    buffer: PinnedBuffer,
    shape: [usize; RANK],
    element: PhantomData<T>,
}

impl<T: Element, const RANK: usize> PinnedTensor<T, RANK> {
    /// A tensor of zeros, for copies to and from a GPU.
    ///
    /// # Errors
    /// [`Error::Shape`] when no memory can hold it, [`Error::Device`] when there is no such memory left, or the device is no GPU.
    pub fn zeros(device: &DeviceHandle, shape: [usize; RANK]) -> Result<Self, Error> {
        let bytes = checked_len(&shape, size_of::<T>())? * size_of::<T>();
        let buffer = of(device)?.pinned(bytes)?;
        Ok(PinnedTensor { device: device.clone(), buffer, shape, element: PhantomData })
    }

    /// The extents, outermost first.
    pub fn shape(&self) -> [usize; RANK] {
        self.shape
    }

    /// Replaces the elements by those of another tensor of the host, once copies are done.
    ///
    /// # Errors
    /// [`Error::Shape`] when the shapes differ, [`Error::NotContiguous`] when the elements of a view do not lie next to each other,
    /// [`Error::Device`] when a copy has failed.
    pub fn write<'t>(&mut self, tensor: impl Into<TensorView<'t, T, RANK>>) -> Result<(), Error> {
        let view = tensor.into();
        self.check(view.shape())?;
        let elements = view.as_slice().ok_or_else(|| Error::NotContiguous {
            argument: "tensor".to_owned(),
            problem: view.not_contiguous(),
        })?;
        self.buffer.as_mut_slice()?.copy_from_slice(T::as_bytes(elements));
        Ok(())
    }

    /// A copy in ordinary memory, once copies from the GPU are done.
    ///
    /// # Errors
    /// [`Error::Device`] when a copy, or the work before it, has failed.
    pub fn to_tensor(&self) -> Result<Tensor<T, RANK>, Error> {
        let bytes = self.buffer.as_slice()?;
        let mut copy = Tensor::zeros(self.shape)?;
        T::as_bytes_mut(copy.as_mut_slice()).copy_from_slice(bytes);
        Ok(copy)
    }

    /// Submits a copy to a tensor of the GPU, and does not wait for it.
    ///
    /// # Errors
    /// [`Error::Shape`] when the shapes differ, [`Error::Device`] when the tensor is elsewhere, or the GPU fails.
    pub fn upload<'t>(&self, to: impl DeviceWrite<'t, T, RANK>) -> Result<(), Error> {
        let mut view = to.into_view_mut();
        self.check(view.shape())?;
        Ok(of(&self.device)?.upload_pinned(&self.buffer, view.slice_mut())?)
    }

    /// Submits a copy of a tensor of the GPU, and does not wait for it.
    ///
    /// # Errors
    /// As [`PinnedTensor::upload`].
    pub fn download<'t>(&mut self, from: impl DeviceRead<'t, T, RANK>) -> Result<(), Error> {
        let view = from.into_view();
        self.check(view.shape())?;
        Ok(of(&self.device)?.download_pinned(view.slice(), &mut self.buffer)?)
    }

    fn check(&self, found: [usize; RANK]) -> Result<(), Error> {
        if found == self.shape {
            return Ok(());
        }
        let len = |shape: &[usize; RANK]| shape.iter().product();
        let (expected, found) = (len(&self.shape), len(&found));
        Err(ShapeError::Length { shape: self.shape.to_vec(), expected, found }.into())
    }
}

impl<T: Number, const RANK: usize> PinnedTensor<T, RANK> {
    /// The elements in row-major order, once copies from the GPU are done.
    ///
    /// # Errors
    /// As [`PinnedTensor::to_tensor`].
    pub fn as_slice(&self) -> Result<&[T], Error> {
        Ok(T::from_bytes(self.buffer.as_slice()?).expect("page-locked memory is aligned"))
    }

    /// The elements to be written, once copies are done.
    ///
    /// # Errors
    /// As [`PinnedTensor::to_tensor`].
    pub fn as_mut_slice(&mut self) -> Result<&mut [T], Error> {
        Ok(T::from_bytes_mut(self.buffer.as_mut_slice()?).expect("page-locked memory is aligned"))
    }
}

impl<T: Element, const RANK: usize> fmt::Debug for PinnedTensor<T, RANK> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedTensor({}{:?} for {})", T::DTYPE, self.shape, self.device.name())
    }
}
