//! Memory of elements.

use std::ops::{Deref, DerefMut};

use aligned_vec::{AVec, ConstAlign};
use tilewright_core::tensor::ALIGNMENT;

/// Elements in memory, which kernels read where they are if they are aligned.
#[derive(Clone, Debug)]
pub enum Buffer<T> {
    /// Aligned to an element.
    Plain(Vec<T>),
    /// Aligned as kernels like it.
    Aligned(AVec<T, ConstAlign<ALIGNMENT>>),
}

impl<T> Buffer<T> {
    /// Elements that are aligned as kernels like it.
    pub(crate) fn aligned(elements: impl Iterator<Item = T>) -> Self {
        Buffer::Aligned(AVec::from_iter(ALIGNMENT, elements))
    }
}

impl<T> From<Vec<T>> for Buffer<T> {
    fn from(elements: Vec<T>) -> Self {
        Buffer::Plain(elements)
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Buffer::Plain(elements) => elements,
            Buffer::Aligned(elements) => elements,
        }
    }
}

impl<T> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Buffer::Plain(elements) => elements,
            Buffer::Aligned(elements) => elements,
        }
    }
}

impl<T: PartialEq> PartialEq for Buffer<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}
