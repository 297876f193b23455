//! Memory of elements.

use std::ops::{Deref, DerefMut};

/// The alignment that vector code likes, in bytes: a cache line.
pub(super) const ALIGNMENT: usize = 64;

/// Elements in a part of a vector: where they begin at a cache line, kernels take them where they are.
#[derive(Clone, Debug)]
pub struct Buffer<T> {
    memory: Vec<T>,
    start: usize,
}

impl<T: Clone + Default> Buffer<T> {
    /// Elements that begin at a cache line, if the allocator can give such a place.
    pub(crate) fn aligned(elements: impl ExactSizeIterator<Item = T>) -> Self {
        let spare = ALIGNMENT / size_of::<T>().max(1);
        let mut memory: Vec<T> = Vec::with_capacity(elements.len() + spare);
        let start =
            Some(memory.as_ptr().align_offset(ALIGNMENT)).filter(|start| *start <= spare).unwrap_or(0);
        memory.resize(start, T::default());
        memory.extend(elements);
        Buffer { memory, start }
    }
}

impl<T> From<Vec<T>> for Buffer<T> {
    fn from(memory: Vec<T>) -> Self {
        Buffer { memory, start: 0 }
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.memory[self.start..]
    }
}

impl<T> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.memory[self.start..]
    }
}

impl<T: PartialEq> PartialEq for Buffer<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_begin_at_a_cache_line() {
        for length in [1usize, 7, 1000, 100_000] {
            let floats = Buffer::aligned((0..length).map(|place| place as f32));
            assert!(floats.iter().enumerate().all(|(place, value)| *value == place as f32));
            assert_eq!((floats.len(), floats.as_ptr().addr() % ALIGNMENT), (length, 0));
            let bytes = Buffer::aligned((0..length).map(|place| place as u8));
            assert_eq!((bytes.len(), bytes.as_ptr().addr() % ALIGNMENT), (length, 0));
            assert_eq!(bytes, Buffer::from((0..length).map(|place| place as u8).collect::<Vec<u8>>()));
        }
    }
}
