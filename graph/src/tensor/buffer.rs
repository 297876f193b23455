//! Memory of elements.

use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;

use aligned_vec::{AVec, ConstAlign};
use tilewright_core::tensor::{ALIGNMENT, SourceError};

use crate::tensor::region::Region;

/// Elements that are aligned as kernels like it.
pub(crate) type Aligned<T> = AVec<T, ConstAlign<ALIGNMENT>>;

/// Elements in memory, which kernels read where they are if they are aligned, or in a file.
#[derive(Clone, Debug)]
pub enum Buffer<T> {
    /// Aligned to an element.
    Plain(Vec<T>),
    /// Aligned as kernels like it.
    Aligned(Aligned<T>),
    /// In a file, and in memory once they have been asked for.
    Stored(Stored<T>),
}

/// Elements in a file.
#[derive(Clone, Debug)]
pub struct Stored<T> {
    region: Region,
    length: usize,
    read: fn(&Region, usize) -> Result<Aligned<T>, SourceError>,
    resident: OnceLock<Aligned<T>>,
}

impl<T: tilewright_core::tensor::Element> Stored<T> {
    /// Elements that are in memory and also in a file, in the machine's order of bytes.
    pub(crate) fn of(region: Region, resident: Aligned<T>) -> Self {
        Stored { region, length: resident.len(), read: read::<T>, resident: OnceLock::from(resident) }
    }
}

fn read<T: tilewright_core::tensor::Element>(
    region: &Region,
    length: usize,
) -> Result<Aligned<T>, SourceError> {
    let mut elements = AVec::new(ALIGNMENT);
    elements.resize(length, T::default());
    region.read(&mut T::as_bytes_mut(&mut elements))?;
    Ok(elements)
}

impl<T> Stored<T> {
    /// The same elements, in the file alone.
    pub(crate) fn without_memory(&self) -> Self {
        Stored { region: self.region.clone(), resident: OnceLock::new(), ..*self }
    }

    /// Where they lie, if they are not in memory.
    pub(crate) fn absent(&self) -> Option<&Region> {
        self.resident.get().is_none().then_some(&self.region)
    }

    /// Reads them into memory if they are not there.
    fn load(&self) -> Result<&Aligned<T>, SourceError> {
        if let Some(resident) = self.resident.get() {
            return Ok(resident);
        }
        let elements = (self.read)(&self.region, self.length)?;
        // Of several threads, the first one counts.
        Ok(self.resident.get_or_init(|| elements))
    }
}

impl<T> Buffer<T> {
    /// Elements that are aligned as kernels like it.
    pub(crate) fn aligned(elements: impl Iterator<Item = T>) -> Self {
        Buffer::Aligned(AVec::from_iter(ALIGNMENT, elements))
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        match self {
            Buffer::Plain(elements) => elements.len(),
            Buffer::Aligned(elements) => elements.len(),
            Buffer::Stored(stored) => stored.length,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads elements that are in a file alone into memory, where they stay.
    ///
    /// # Errors
    /// When the file cannot be read, or has changed.
    pub fn load(&self) -> Result<(), SourceError> {
        match self {
            Buffer::Stored(stored) => stored.load().map(drop),
            Buffer::Plain(_) | Buffer::Aligned(_) => Ok(()),
        }
    }
}

impl<T> From<Vec<T>> for Buffer<T> {
    fn from(elements: Vec<T>) -> Self {
        Buffer::Plain(elements)
    }
}

/// How a failure is reported where elements are asked for that nobody has [loaded](Buffer::load).
const UNREADABLE: &str = "the elements of a constant tensor are asked for without loading them first";

impl<T> Deref for Buffer<T> {
    type Target = [T];

    /// # Panics
    /// When elements in a file have not been [loaded](Buffer::load) and cannot be read.
    fn deref(&self) -> &[T] {
        match self {
            Buffer::Plain(elements) => elements,
            Buffer::Aligned(elements) => elements,
            Buffer::Stored(stored) => stored.load().expect(UNREADABLE),
        }
    }
}

impl<T> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // Elements that are changed are no longer those of the file.
        if let Buffer::Stored(stored) = self {
            let resident =
                stored.resident.take().map_or_else(|| (stored.read)(&stored.region, stored.length), Ok);
            *self = Buffer::Aligned(resident.expect(UNREADABLE));
        }
        match self {
            Buffer::Plain(elements) => elements,
            Buffer::Aligned(elements) => elements,
            Buffer::Stored(_) => unreachable!("it has just been read into memory"),
        }
    }
}

impl<T: PartialEq> PartialEq for Buffer<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}
