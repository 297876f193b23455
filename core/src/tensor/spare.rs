//! Memory of results that were dropped, kept for the next ones.
//!
//! A model's layers make and drop results of the same few sizes again and again. New memory would be cleared by the
//! system, mapped page by page, and filled with zeros before a kernel writes it: on one thread, which took a tenth of the
//! time of a sentence encoder on two. Memory that a result had before needs none of this, because kernels write every
//! element of their results.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::dtype::DType;
use crate::tensor::{Element, Storage, with_element};

/// Less than this is not kept, in bytes: small memory comes from the allocator just as fast.
const LEAST: usize = 16 << 10;

/// The default limit of the memory that is kept, in bytes.
const DEFAULT_LIMIT: usize = 256 << 20;

static LIMIT: AtomicUsize = AtomicUsize::new(DEFAULT_LIMIT);

/// The memory that is kept now, of all types, in bytes.
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// The memory that is kept for elements of one type, the oldest first.
#[derive(Debug)]
pub struct Spares<T>(Mutex<Vec<Storage<T>>>);

impl<T: Element> Spares<T> {
    pub(crate) const fn new() -> Self {
        Spares(Mutex::new(Vec::new()))
    }

    /// Memory of `len` elements of any value, and of a quarter more at most.
    pub(super) fn take(&self, len: usize) -> Option<Storage<T>> {
        if bytes_of::<T>(len) < LEAST {
            return None;
        }
        let mut spares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |(_, spare): &(usize, &Storage<T>)| spare.len() >= len && spare.len() - len <= len / 4;
        let (position, _) = spares.iter().enumerate().filter(fits).min_by_key(|(_, spare)| spare.len())?;
        let mut found = spares.remove(position);
        KEPT.fetch_sub(bytes_of::<T>(found.len()), Ordering::Relaxed);
        found.truncate(len);
        Some(found)
    }

    /// Keeps memory, instead of what was kept longest if there is too much.
    pub(super) fn put(&self, storage: Storage<T>) {
        let (bytes, limit) = (bytes_of::<T>(storage.len()), limit());
        if bytes < LEAST || bytes > limit {
            return;
        }
        let mut spares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        spares.push(storage);
        let mut kept = KEPT.fetch_add(bytes, Ordering::Relaxed) + bytes;
        while kept > limit && !spares.is_empty() {
            let freed = bytes_of::<T>(spares.remove(0).len());
            kept = KEPT.fetch_sub(freed, Ordering::Relaxed) - freed;
        }
    }

    fn clear(&self) {
        for spare in self.0.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            KEPT.fetch_sub(bytes_of::<T>(spare.len()), Ordering::Relaxed);
        }
    }
}

fn bytes_of<T>(len: usize) -> usize {
    len * size_of::<T>()
}

/// How many bytes of dropped results are kept at most for the next ones.
pub fn limit() -> usize {
    LIMIT.load(Ordering::Relaxed)
}

/// Sets how many bytes of dropped results are kept at most for the next ones, 256 MiB at first, and frees those that are
/// kept now. 0 keeps none.
pub fn set_limit(bytes: usize) {
    LIMIT.store(bytes, Ordering::Relaxed);
    for &dtype in DType::COMPUTED {
        with_element!(dtype, T => T::spares().clear(), else unreachable!("storage types are no computed ones"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn storage(len: usize) -> Storage<f64> {
        let mut storage = Storage::new(crate::tensor::ALIGNMENT);
        storage.resize(len, 1.0);
        storage
    }

    #[test]
    fn memory_of_about_the_size_is_used_again() {
        let spares = Spares::new();
        for len in [6000, 4000, 4400] {
            spares.put(storage(len));
        }
        assert!(spares.take(3000).is_none(), "a third more would be wasted");
        assert!(spares.take(6001).is_none());
        let found = spares.take(3900).expect("4000 fit");
        assert_eq!(found.len(), 3900);
        assert!(spares.take(4000).expect("4400 fit").capacity() >= 4400);
        assert!(spares.take(4000).is_none(), "6000 are too many, the others are taken");
        spares.clear();
        assert!(spares.take(6000).is_none());
    }

    #[test]
    fn small_memory_is_not_kept() {
        let spares = Spares::new();
        spares.put(storage(LEAST / size_of::<f64>() - 1));
        assert!(spares.0.lock().expect("no other thread").is_empty());
    }
}
