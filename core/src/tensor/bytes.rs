//! Elements as bytes, without unsafe code.

use std::ops::{Deref, DerefMut};

use crate::device::BufferArgument;
use crate::dtype::DType;
use crate::tensor::{Element, Storage};

/// Bytes that are no elements of a type: their length is no multiple of the element's size, they
/// are not aligned to it, or a byte of a `bool` is neither 0 nor 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{length} bytes do not hold elements of type {dtype}: the length, the alignment or a byte of a bool is wrong"
)]
pub struct MisfitBytes {
    /// The type asked for.
    pub dtype: DType,
    /// How many bytes came.
    pub length: usize,
}

/// The bytes of elements, for writing; see [`Element::as_bytes_mut`].
#[derive(Debug)]
pub struct BytesMut<'a>(Kind<'a>);

#[derive(Debug)]
enum Kind<'a> {
    Direct(&'a mut [u8]),
    /// A `bool` goes through a copy: a byte that is neither 0 nor 1 must never become a `bool`.
    Copied(Storage<u8>, &'a mut [bool]),
}

impl<'a> BytesMut<'a> {
    pub(crate) fn direct(bytes: &'a mut [u8]) -> Self {
        BytesMut(Kind::Direct(bytes))
    }

    pub(crate) fn copied(elements: &'a mut [bool]) -> Self {
        let copy = Storage::from_slice(crate::tensor::ALIGNMENT, bool::as_bytes(elements));
        BytesMut(Kind::Copied(copy, elements))
    }
}

impl Deref for BytesMut<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Kind::Direct(bytes) => bytes,
            Kind::Copied(copy, _) => copy,
        }
    }
}

impl DerefMut for BytesMut<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Kind::Direct(bytes) => bytes,
            Kind::Copied(copy, _) => copy,
        }
    }
}

impl Drop for BytesMut<'_> {
    fn drop(&mut self) {
        if let Kind::Copied(copy, elements) = &mut self.0 {
            for (element, byte) in elements.iter_mut().zip(copy.iter()) {
                *element = *byte != 0;
            }
        }
    }
}

impl<'a, T: Element> From<&'a [T]> for BufferArgument<'a> {
    fn from(elements: &'a [T]) -> Self {
        BufferArgument::Read(T::as_bytes(elements))
    }
}

impl<'a> From<&'a mut BytesMut<'_>> for BufferArgument<'a> {
    fn from(bytes: &'a mut BytesMut<'_>) -> Self {
        BufferArgument::Write(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_reach_the_elements() {
        let mut floats = [1.0f32, 2.0];
        f32::as_bytes_mut(&mut floats)[..4].copy_from_slice(&7.5f32.to_ne_bytes());
        assert_eq!(floats, [7.5, 2.0]);

        let mut bools = [true, false, false];
        f64::as_bytes_mut(&mut []);
        bool::as_bytes_mut(&mut bools).copy_from_slice(&[0, 1, 255]);
        assert_eq!(bools, [false, true, true]);
    }

    #[test]
    fn bytes_that_are_no_elements_are_refused() {
        let bytes = Storage::<u8>::from_slice(64, &[0, 1, 2, 3, 4, 5, 6, 7]);
        assert!(f32::from_bytes(&bytes).is_ok());
        assert!(f32::from_bytes(&bytes[..3]).is_err());
        assert!(f32::from_bytes(&bytes[1..5]).is_err());
        assert_eq!(bool::from_bytes(&bytes), Err(MisfitBytes { dtype: DType::Bool, length: 8 }));
        assert_eq!(bool::from_bytes(&bytes[..2]), Ok(&[false, true][..]));
    }
}
