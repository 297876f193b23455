//! The memory of devices.
//!
//! A [`DeviceBuffer`] owns memory as a `Vec` does, and slices of it borrow as those of a `Vec` do: nothing that is written
//! can be reached in two ways. Where the elements are is the device's affair alone.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::tensor::{Identity, IdentityCell};

/// A piece of a device's memory, freed when it is dropped.
///
/// A device knows its own type, and refuses memory of any other.
pub trait DeviceMemory: Any + Send + Sync {
    /// The size in bytes.
    fn len(&self) -> usize;

    /// Whether it has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether more than the owner's runs write it, such as recorded ones: its contents then have no identity.
    fn is_shared(&self) -> bool {
        false
    }

    /// Where it is, for people: `host memory`, `GPU 0`.
    fn place(&self) -> String;
}

/// Memory of a device, owned.
pub struct DeviceBuffer {
    memory: Box<dyn DeviceMemory>,
    len: usize,
    identity: IdentityCell,
}

/// A part of a device's memory that is only read.
#[derive(Clone, Copy)]
pub struct DeviceSlice<'data> {
    buffer: &'data DeviceBuffer,
    start: usize,
    len: usize,
    /// Whether it was made from a shared borrow of the buffer, so that the contents stay the same as long as their identity.
    is_shared: bool,
}

/// A part of a device's memory that nothing else refers to.
pub struct DeviceSliceMut<'data> {
    // Made from an exclusive borrow of the buffer and never copied, so that this is the only way to the part.
    buffer: &'data DeviceBuffer,
    start: usize,
    len: usize,
}

impl DeviceBuffer {
    /// Takes charge of memory. Devices make buffers, see [`Device::allocate`](super::Device::allocate).
    pub fn new(memory: impl DeviceMemory) -> Self {
        DeviceBuffer { len: memory.len(), memory: Box::new(memory), identity: IdentityCell::default() }
    }

    /// The size in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of it, to be read.
    pub fn as_slice(&self) -> DeviceSlice<'_> {
        DeviceSlice { buffer: self, start: 0, len: self.len, is_shared: true }
    }

    /// All of it, to be written.
    pub fn as_mut_slice(&mut self) -> DeviceSliceMut<'_> {
        self.identity.forget();
        DeviceSliceMut { start: 0, len: self.len, buffer: self }
    }

    /// Where it is, for people.
    pub fn place(&self) -> String {
        self.memory.place()
    }
}

impl<'data> DeviceSlice<'data> {
    /// The size in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A part of it, by bytes; `None` when it reaches beyond the end.
    pub fn part(self, range: Range<usize>) -> Option<Self> {
        let len = range.end.checked_sub(range.start).filter(|_| range.end <= self.len)?;
        Some(DeviceSlice { start: self.start + range.start, len, ..self })
    }

    /// The memory that it is a part of, and where it begins there, in bytes.
    pub fn memory(&self) -> (&'data dyn DeviceMemory, usize) {
        (&*self.buffer.memory, self.start)
    }

    /// The identity of the contents, for a whole buffer that nobody can write.
    pub fn identity(&self) -> Option<&'data Arc<Identity>> {
        let is_whole = self.start == 0 && self.len == self.buffer.len;
        (is_whole && self.is_shared && !self.buffer.memory.is_shared()).then(|| self.buffer.identity.get())
    }
}

impl<'data> DeviceSliceMut<'data> {
    /// The size in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes before `middle` and those from there on; `None` when that is beyond the end.
    pub fn split_at(self, middle: usize) -> Option<(Self, Self)> {
        let rest = self.len.checked_sub(middle)?;
        let (buffer, start) = (self.buffer, self.start);
        let second = DeviceSliceMut { buffer, start: start + middle, len: rest };
        Some((DeviceSliceMut { buffer, start, len: middle }, second))
    }

    /// The same part for a shorter time.
    pub fn reborrow(&mut self) -> DeviceSliceMut<'_> {
        DeviceSliceMut { buffer: self.buffer, start: self.start, len: self.len }
    }

    /// The same part, to be read.
    pub fn as_slice(&self) -> DeviceSlice<'_> {
        DeviceSlice { buffer: self.buffer, start: self.start, len: self.len, is_shared: false }
    }

    /// The memory that it is a part of, and where it begins there, in bytes.
    pub fn memory(&self) -> (&'data dyn DeviceMemory, usize) {
        (&*self.buffer.memory, self.start)
    }
}

impl fmt::Debug for DeviceBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceBuffer({} bytes of {})", self.len, self.place())
    }
}

impl fmt::Debug for DeviceSlice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceSlice({} bytes at {} of {})", self.len, self.start, self.buffer.place())
    }
}

impl fmt::Debug for DeviceSliceMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceSliceMut({} bytes at {} of {})", self.len, self.start, self.buffer.place())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nowhere(usize);

    impl DeviceMemory for Nowhere {
        fn len(&self) -> usize {
            self.0
        }

        fn place(&self) -> String {
            "nowhere".to_owned()
        }
    }

    #[test]
    fn parts_stay_inside() {
        let buffer = DeviceBuffer::new(Nowhere(8));
        let slice = buffer.as_slice();
        let part = slice.part(2..6).expect("it is inside");
        assert_eq!((part.len(), part.memory().1), (4, 2));
        assert_eq!(part.part(1..3).map(|part| part.memory().1), Some(3));
        let reversed = Range { start: 3, end: 2 };
        assert!(slice.part(4..9).is_none() && part.part(0..5).is_none() && slice.part(reversed).is_none());
    }

    #[test]
    fn a_split_leaves_nothing_out_and_shares_nothing() {
        let mut buffer = DeviceBuffer::new(Nowhere(8));
        let (mut first, second) = buffer.as_mut_slice().split_at(3).expect("it is inside");
        assert_eq!((first.len(), first.memory().1), (3, 0));
        assert_eq!((second.len(), second.memory().1), (5, 3));
        assert!(first.reborrow().split_at(4).is_none());
    }

    #[test]
    fn a_whole_buffer_keeps_its_identity_until_it_can_change() {
        let mut buffer = DeviceBuffer::new(Nowhere(8));
        let identity = Arc::clone(buffer.as_slice().identity().expect("it is whole"));
        assert!(Arc::ptr_eq(&identity, buffer.as_slice().identity().expect("it is whole")));
        assert!(buffer.as_slice().part(0..4).expect("it is inside").identity().is_none());
        let slice = buffer.as_mut_slice();
        assert!(slice.as_slice().identity().is_none(), "it can still be written");
        assert!(!Arc::ptr_eq(&identity, buffer.as_slice().identity().expect("it is whole")));
    }
}
