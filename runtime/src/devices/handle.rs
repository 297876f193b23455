//! A device to work with.

use std::fmt;
use std::sync::Arc;

use tilewright_core::device::{CallError, Device};
use tilewright_core::tensor::{Element, Tensor, TensorView, checked_len};

use super::tensor::{DeviceRead, DeviceTensor};
use super::{DeviceId, device, find, name};
use crate::error::Error;

/// A device of this process: it keeps tensors in its memory, and calls of kernels name it. Cheap to clone; clones stand for the same
/// device, and threads may share it.
///
/// Calls on a device read and write tensors of its memory alone: nothing is copied unless [`upload`](DeviceHandle::upload) or
/// [`download`](DeviceHandle::download) say so. A call may return before the device has done its work; a download waits for it.
#[derive(Clone)]
pub struct DeviceHandle {
    id: DeviceId,
    name: Arc<str>,
    device: Arc<dyn Device>,
}

/// The device with a name, such as `cpu` or `gpu:0`; it is opened now if it was not before.
///
/// # Errors
/// As [`find`].
pub fn open(name: &str) -> Result<DeviceHandle, Error> {
    DeviceHandle::of(find(name)?)
}

impl DeviceHandle {
    /// The device with an identifier.
    ///
    /// # Errors
    /// As [`device`].
    pub fn of(id: DeviceId) -> Result<Self, Error> {
        Ok(DeviceHandle { id, name: name(id)?.into(), device: device(id)? })
    }

    /// Its identifier.
    pub fn id(&self) -> DeviceId {
        self.id
    }

    /// The name that it is opened by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name that its maker gave it; empty when it is unknown.
    pub fn label(&self) -> &str {
        self.device.label()
    }

    /// The device itself.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// A copy of a tensor in the memory of the device.
    ///
    /// # Errors
    /// [`Error::NotContiguous`] when the elements of a view do not lie next to each other, [`Error::Device`] when the memory of the
    /// device is used up, or it fails.
    pub fn upload<'t, T: Element, const RANK: usize>(
        &self,
        tensor: impl Into<TensorView<'t, T, RANK>>,
    ) -> Result<DeviceTensor<T, RANK>, Error> {
        let view = tensor.into();
        let mut uploaded = self.unwritten(view.shape())?;
        uploaded.write(view)?;
        Ok(uploaded)
    }

    /// A tensor of zeros in the memory of the device.
    ///
    /// # Errors
    /// [`Error::Shape`] when no memory can hold it, and as [`DeviceHandle::upload`].
    pub fn zeros<T: Element, const RANK: usize>(
        &self,
        shape: [usize; RANK],
    ) -> Result<DeviceTensor<T, RANK>, Error> {
        self.upload(&Tensor::zeros(shape)?)
    }

    /// A copy of a tensor in the memory of the host, when all work that writes it is done.
    ///
    /// # Errors
    /// [`Error::Device`] when the tensor is in the memory of another device, or that work has failed.
    pub fn download<'t, T: Element, const RANK: usize>(
        &self,
        tensor: impl DeviceRead<'t, T, RANK>,
    ) -> Result<Tensor<T, RANK>, Error> {
        let view = tensor.into_view();
        let mut copy = Tensor::zeros(view.shape())?;
        self.device.download(view.slice(), &mut T::as_bytes_mut(copy.as_mut_slice()))?;
        Ok(copy)
    }

    /// Waits until all work that was submitted before is done.
    ///
    /// # Errors
    /// [`Error::Device`] when some of it has failed.
    pub fn synchronize(&self) -> Result<(), Error> {
        Ok(self.device.synchronize()?)
    }

    /// A tensor whose elements are unspecified until a kernel or a copy writes them.
    pub(crate) fn unwritten<T: Element, const RANK: usize>(
        &self,
        shape: [usize; RANK],
    ) -> Result<DeviceTensor<T, RANK>, Error> {
        let elements = checked_len(&shape, size_of::<T>())?;
        let buffer = self.device.allocate(elements * size_of::<T>())?;
        Ok(DeviceTensor::new(self.clone(), buffer, shape))
    }

    /// A tensor for a result of a kernel, which writes every element.
    ///
    /// # Errors
    /// [`CallError::Device`] when the memory of the device is used up.
    #[doc(hidden)]
    pub fn for_result<T: Element, const RANK: usize>(
        &self,
        shape: [usize; RANK],
    ) -> Result<DeviceTensor<T, RANK>, Error> {
        self.unwritten(shape).map_err(|error| match error {
            Error::Device(error) => CallError::Device(error).into(),
            error => error,
        })
    }
}

impl PartialEq for DeviceHandle {
    /// Whether both stand for the same device.
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for DeviceHandle {}

impl fmt::Debug for DeviceHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceHandle({}, {})", self.name, self.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads may share and pass on handles and tensors of devices.
    #[test]
    fn handles_and_tensors_are_shared_by_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<DeviceHandle>();
        shared::<DeviceTensor<f32, 2>>();
        shared::<super::super::DeviceView<'static, f32, 2>>();
        shared::<super::super::DeviceViewMut<'static, f32, 2>>();
    }
}
