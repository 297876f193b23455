//! Handles: numbers that stand for objects of the driver.

use std::ffi::c_void;

use rustc_hash::FxHashMap;

use crate::code::{Code, Outcome};

/// A handle, as programs hold it. It is never used as an address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Handle(pub(crate) u64);

impl Handle {
    /// The handle that a program passes.
    pub(crate) fn of(pointer: *mut c_void) -> Handle {
        Handle(pointer as usize as u64)
    }

    /// The pointer that a program gets for it.
    pub(crate) fn to_pointer(self) -> *mut c_void {
        self.0 as usize as *mut c_void
    }
}

/// All objects of one kind. A handle is given out once, and handles of different kinds differ, so that a handle of an object
/// that is gone or of another kind is found out.
pub(crate) struct Table<T> {
    kind: u64,
    count: u64,
    entries: FxHashMap<Handle, T>,
}

impl<T> Table<T> {
    /// An empty table; `kind` is a number that no other table has.
    pub(crate) fn new(kind: u64) -> Table<T> {
        Table { kind, count: 0, entries: FxHashMap::default() }
    }

    pub(crate) fn insert(&mut self, value: T) -> Handle {
        self.count += 1;
        let handle = Handle(self.kind << 48 | self.count << 4);
        self.entries.insert(handle, value);
        handle
    }

    pub(crate) fn get(&self, handle: Handle) -> Outcome<&T> {
        self.entries.get(&handle).ok_or(Code::InvalidHandle)
    }

    pub(crate) fn get_mut(&mut self, handle: Handle) -> Outcome<&mut T> {
        self.entries.get_mut(&handle).ok_or(Code::InvalidHandle)
    }

    pub(crate) fn remove(&mut self, handle: Handle) -> Outcome<T> {
        self.entries.remove(&handle).ok_or(Code::InvalidHandle)
    }

    /// The handles of the objects for which something holds, oldest first.
    pub(crate) fn find(&self, holds: impl Fn(&T) -> bool) -> Vec<Handle> {
        let found = self.entries.iter().filter(|(_, value)| holds(value));
        let mut handles: Vec<Handle> = found.map(|(handle, _)| *handle).collect();
        handles.sort_unstable();
        handles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_of_one_kind_and_never_given_out_again() {
        let (mut first, mut second) = (Table::new(1), Table::new(2));
        let (a, b) = (first.insert('a'), second.insert('b'));
        assert_ne!(a, b);
        assert_eq!(first.get(b), Err(Code::InvalidHandle));
        assert_eq!(first.remove(a), Ok('a'));
        assert_eq!(first.remove(a), Err(Code::InvalidHandle));
        assert_ne!(first.insert('c'), a);
    }
}
