//! Tensors whose element type and rank are known at run time only.

use std::fmt;

use crate::device::BufferArgument;
use crate::dtype::DType;
use crate::tensor::dense::fmt_summary;
use crate::tensor::{
    ALIGNMENT, Element, IdentifiedBytes, IdentityCell, ShapeError, Storage, Tensor, checked_len, narrow,
};

/// A dense, row-major tensor whose element type and rank are known at run time, aligned to [`ALIGNMENT`] bytes.
pub struct AnyTensor {
    dtype: DType,
    shape: Vec<usize>,
    bytes: Storage<u8>,
    identity: IdentityCell,
}

impl Clone for AnyTensor {
    fn clone(&self) -> Self {
        AnyTensor::of(self.dtype, &self.shape, self.bytes.clone())
    }
}

impl PartialEq for AnyTensor {
    fn eq(&self, other: &Self) -> bool {
        self.dtype == other.dtype && self.shape == other.shape && self.bytes == other.bytes
    }
}

/// Runs one expression with `$T` bound to the element type of a [`DType`], and `$otherwise` for storage types, which no element
/// type of Rust stands for.
macro_rules! with_element {
    ($dtype:expr, $T:ident => $body:expr, else $otherwise:expr) => {
        $crate::tensor::with_one_of!(
            $dtype,
            [
                Bool = bool, I8 = i8, U8 = u8, I16 = i16, U16 = u16, I32 = i32, U32 = u32, I64 = i64, U64 = u64,
                F16 = half::f16, BF16 = half::bf16, F32 = f32, F64 = f64
            ],
            $T => $body,
            else $otherwise
        )
    };
}

/// As [`with_element`], for the types in a list.
macro_rules! with_one_of {
    ($dtype:expr, [$($variant:ident = $type:ty),*], $T:ident => $body:expr, else $otherwise:expr) => {
        match $dtype {
            $(DType::$variant => {
                type $T = $type;
                $body
            })*
            _ => $otherwise,
        }
    };
}

pub(crate) use {with_element, with_one_of};

impl AnyTensor {
    fn of(dtype: DType, shape: &[usize], bytes: Storage<u8>) -> Self {
        AnyTensor { dtype, shape: shape.to_vec(), bytes, identity: IdentityCell::default() }
    }

    /// A tensor of zeros.
    ///
    /// # Errors
    /// [`ShapeError::TooLarge`] when the elements do not fit into memory.
    pub fn zeros(dtype: DType, shape: &[usize]) -> Result<Self, ShapeError> {
        Self::zeros_prepared(dtype, shape, |_, _| {})
    }

    /// As [`AnyTensor::zeros`]; before any of the memory is touched, `prepare` receives its address and its size in bytes,
    /// so that it can ask the system for pages of another kind.
    ///
    /// # Errors
    /// As [`AnyTensor::zeros`].
    pub fn zeros_prepared(
        dtype: DType,
        shape: &[usize],
        prepare: impl FnOnce(*const u8, usize),
    ) -> Result<Self, ShapeError> {
        let element_bytes = dtype.bytes();
        let elements = checked_len(shape, element_bytes)?;
        let len = dtype.storage_bytes(elements).expect("they fit into the address space");
        let mut bytes = Storage::new(ALIGNMENT);
        bytes
            .try_reserve_exact(len)
            .map_err(|_| ShapeError::TooLarge { shape: shape.to_vec(), element_bytes })?;
        prepare(bytes.as_ptr(), len);
        bytes.resize(len, 0);
        Ok(AnyTensor::of(dtype, shape, bytes))
    }

    /// A copy of elements in row-major order.
    ///
    /// # Errors
    /// [`ShapeError::Length`] when there are not as many as the shape has, or as [`AnyTensor::zeros`].
    pub fn from_slice<T: Element>(elements: &[T], shape: &[usize]) -> Result<Self, ShapeError> {
        let expected = checked_len(shape, size_of::<T>())?;
        if expected != elements.len() {
            return Err(ShapeError::Length { shape: shape.to_vec(), expected, found: elements.len() });
        }
        let bytes = Storage::from_slice(ALIGNMENT, T::as_bytes(elements));
        Ok(AnyTensor::of(T::DTYPE, shape, bytes))
    }

    /// A tensor of the elements nearest to numbers in row-major order; see [`Element::from_f64`]. Numbers become elements of
    /// [storage types](DType::is_storage_only) by way of `f32`.
    ///
    /// # Errors
    /// As [`AnyTensor::from_slice`].
    pub fn from_f64s(dtype: DType, values: &[f64], shape: &[usize]) -> Result<Self, ShapeError> {
        with_element!(dtype, T => {
            let elements: Vec<T> = values.iter().map(|&value| T::from_f64(value)).collect();
            AnyTensor::from_slice(&elements, shape)
        }, else {
            let expected = checked_len(shape, dtype.bytes())?;
            if expected != values.len() {
                return Err(ShapeError::Length { shape: shape.to_vec(), expected, found: values.len() });
            }
            let mut tensor = AnyTensor::zeros(dtype, shape)?;
            for (position, value) in values.iter().enumerate() {
                narrow::write(dtype, &mut tensor.bytes, position, narrow::encode(dtype, *value as f32));
            }
            Ok(tensor)
        })
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extents, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The elements as bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The elements as bytes, with the identity of the contents.
    pub fn identified_bytes(&self) -> IdentifiedBytes<'_> {
        IdentifiedBytes::new(&self.bytes, self.identity.get())
    }

    /// The elements as bytes, for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.identity.forget();
        &mut self.bytes
    }

    /// The elements, when they are of type `T`. For `bool` each byte must be 0 or 1, which is checked
    /// in a time proportional to the length.
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        (self.dtype == T::DTYPE).then(|| T::from_bytes(&self.bytes).ok())?
    }

    /// The elements for writing; as [`AnyTensor::as_slice`].
    pub fn as_mut_slice<T: Element>(&mut self) -> Option<&mut [T]> {
        if self.dtype == T::DTYPE { T::from_bytes_mut(self.bytes_mut()).ok() } else { None }
    }

    /// A copy with element type and rank known at compile time.
    ///
    /// # Errors
    /// [`ShapeError::Type`] when the element type or the rank is another.
    pub fn to_tensor<T: Element, const RANK: usize>(&self) -> Result<Tensor<T, RANK>, ShapeError> {
        let elements = self.as_slice::<T>();
        match (elements, <[usize; RANK]>::try_from(&self.shape[..])) {
            (Some(elements), Ok(shape)) => Tensor::from_slice(elements, shape),
            _ => Err(ShapeError::Type {
                expected: format!("{} with rank {RANK}", T::DTYPE),
                found: format!("{} with shape {:?}", self.dtype, self.shape),
            }),
        }
    }

    /// The elements as `f64`, in row-major order. Exact but for 64-bit integers beyond 2⁵³; a byte of a `bool`
    /// counts as true unless it is 0.
    pub fn to_f64_vec(&self) -> Vec<f64> {
        let mut values = vec![0.0; self.len()];
        self.read_f64(0, &mut values);
        values
    }

    /// Some of [`to_f64_vec`](Self::to_f64_vec): as many elements as `values` has, from a position on.
    ///
    /// # Panics
    /// When there are fewer.
    pub(super) fn read_f64(&self, first: usize, values: &mut [f64]) {
        let range = first..first + values.len();
        if self.dtype == DType::Bool {
            let read = |(value, &byte): (&mut f64, &u8)| *value = f64::from(u8::from(byte != 0));
            values.iter_mut().zip(&self.bytes[range]).for_each(read);
            return;
        }
        with_element!(self.dtype, T => {
            let elements = self.as_slice::<T>().expect("aligned storage of the tensor's own type");
            values.iter_mut().zip(&elements[range]).for_each(|(value, element)| *value = element.to_f64());
        }, else for (value, position) in values.iter_mut().zip(range) {
            *value = f64::from(narrow::decode(self.dtype, narrow::read(self.dtype, &self.bytes, position)));
        });
    }
}

impl<T: Element, const RANK: usize> From<&Tensor<T, RANK>> for AnyTensor {
    fn from(tensor: &Tensor<T, RANK>) -> Self {
        let bytes = Storage::from_slice(ALIGNMENT, T::as_bytes(tensor.as_slice()));
        AnyTensor::of(T::DTYPE, &tensor.shape(), bytes)
    }
}

impl<T: Element, const RANK: usize> From<Tensor<T, RANK>> for AnyTensor {
    fn from(tensor: Tensor<T, RANK>) -> Self {
        AnyTensor::from(&tensor)
    }
}

impl<'a> From<&'a AnyTensor> for BufferArgument<'a> {
    fn from(tensor: &'a AnyTensor) -> Self {
        BufferArgument::Read(tensor.bytes())
    }
}

impl<'a> From<&'a mut AnyTensor> for BufferArgument<'a> {
    fn from(tensor: &'a mut AnyTensor) -> Self {
        BufferArgument::Write(tensor.bytes_mut())
    }
}

impl fmt::Display for AnyTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dtype {
            DType::Bool => fmt_summary(f, self.dtype, &self.shape, &self.bytes),
            dtype => with_element!(dtype, T => {
                let elements = self.as_slice::<T>().expect("aligned storage of the tensor's own type");
                fmt_summary(f, dtype, &self.shape, elements)
            }, else fmt_summary(f, dtype, &self.shape, &self.to_f64_vec())),
        }
    }
}

impl fmt::Debug for AnyTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_round_trips_through_f64() {
        for dtype in DType::ALL {
            let tensor = AnyTensor::from_f64s(dtype, &[0.0, 1.0, 1.0, 0.0, 1.0, 0.0], &[3, 2]).unwrap();
            assert_eq!(tensor.to_f64_vec(), [0.0, 1.0, 1.0, 0.0, 1.0, 0.0], "{dtype}");
            assert_eq!(Some(tensor.bytes().len()), dtype.storage_bytes(6), "{dtype}");
            assert_eq!(tensor.bytes().as_ptr() as usize % ALIGNMENT, 0, "{dtype}");
        }
    }

    #[test]
    fn another_type_or_rank_is_refused() {
        let tensor = AnyTensor::from(Tensor::from_slice(&[1i32, 2], [2]).unwrap());
        assert_eq!(tensor.as_slice::<f32>(), None);
        assert_eq!(tensor.to_tensor::<i32, 1>().unwrap().as_slice(), [1, 2]);
        let error = tensor.to_tensor::<i32, 2>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "expected a tensor of i32 with rank 2, found one of i32 with shape [2]"
        );
    }

    #[test]
    fn bytes_that_are_no_bools_are_never_seen_as_such() {
        let mut tensor = AnyTensor::zeros(DType::Bool, &[2]).unwrap();
        tensor.bytes_mut()[1] = 7;
        assert_eq!(tensor.as_slice::<bool>(), None);
        assert_eq!(tensor.to_f64_vec(), [0.0, 1.0]);
    }

    #[test]
    fn impossible_shapes_are_errors() {
        assert!(AnyTensor::zeros(DType::F64, &[usize::MAX, 3]).is_err());
        assert!(AnyTensor::from_slice(&[1.0f32], &[2]).is_err());
        assert_eq!(AnyTensor::zeros(DType::F64, &[]).unwrap().len(), 1);
    }
}
