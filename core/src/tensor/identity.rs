//! The identity of a tensor's contents, with which results computed from them are kept.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// A result that was computed from the contents of a tensor.
pub type Derived = Arc<dyn Any + Send + Sync>;

/// Identifies the contents of one tensor at one time.
///
/// A tensor gets an identity when it is first asked for it, and loses it when its elements are borrowed mutably: as long as it has the
/// same one, its contents are the same. No two tensors share one, not even a tensor and its clone. Results computed from
/// the contents can be kept here, and are dropped together with the identity.
#[derive(Default)]
pub struct Identity {
    derived: RwLock<Vec<Derived>>,
}

impl Identity {
    /// The first result kept here for which `select` gives a value.
    pub fn find<T>(&self, select: impl FnMut(&Derived) -> Option<T>) -> Option<T> {
        self.derived.read().unwrap_or_else(PoisonError::into_inner).iter().find_map(select)
    }

    /// As [`Identity::find`]; when there is no such result, keeps the one that `make` makes, and returns the value that it gives
    /// besides. Drops results that are not `wanted` any longer.
    pub fn find_or_keep<T>(
        &self,
        select: impl FnMut(&Derived) -> Option<T>,
        wanted: impl Fn(&Derived) -> bool,
        make: impl FnOnce() -> (Derived, T),
    ) -> T {
        let mut derived = self.derived.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = derived.iter().find_map(select) {
            return found;
        }
        derived.retain(wanted);
        let (kept, answer) = make();
        derived.push(kept);
        answer
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({:p})", &raw const *self)
    }
}

/// The cell for a tensor's identity.
#[derive(Default)]
pub(crate) struct IdentityCell(OnceLock<Arc<Identity>>);

impl IdentityCell {
    /// The identity, made now if there is none.
    pub(crate) fn get(&self) -> &Arc<Identity> {
        self.0.get_or_init(Arc::default)
    }

    /// Must be called before the contents can change.
    #[inline]
    pub(crate) fn forget(&mut self) {
        if self.0.get_mut().is_some() {
            self.0 = OnceLock::new();
        }
    }
}

/// Elements that others own as well and nobody changes, with an identity of their own.
pub struct SharedBytes {
    owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
    identity: IdentityCell,
}

impl SharedBytes {
    /// The bytes of an owner, which gives the same ones each time.
    pub fn new(owner: Arc<dyn AsRef<[u8]> + Send + Sync>) -> Self {
        SharedBytes { owner, identity: IdentityCell::default() }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        (*self.owner).as_ref()
    }

    /// The bytes with their identity.
    pub fn identified_bytes(&self) -> IdentifiedBytes<'_> {
        IdentifiedBytes::new(self.bytes(), self.identity.get())
    }
}

/// The bytes of a tensor that is only read, with the identity of its contents. Made from tensors and shared bytes alone, so that the
/// two belong together.
#[derive(Clone, Copy, Debug)]
pub struct IdentifiedBytes<'data> {
    bytes: &'data [u8],
    identity: &'data Arc<Identity>,
}

impl<'data> IdentifiedBytes<'data> {
    pub(crate) fn new(bytes: &'data [u8], identity: &'data Arc<Identity>) -> Self {
        IdentifiedBytes { bytes, identity }
    }

    /// The bytes.
    pub fn bytes(&self) -> &'data [u8] {
        self.bytes
    }

    /// The identity of the contents. A weak reference to it stands for the contents too.
    pub fn identity(&self) -> &'data Arc<Identity> {
        self.identity
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::{AnyTensor, Tensor, TensorView, TensorViewMut};

    fn of<const RANK: usize>(tensor: &Tensor<f32, RANK>) -> Arc<Identity> {
        let bytes = TensorView::from(tensor).identified_bytes().expect("a view of a tensor has an identity");
        Arc::clone(bytes.identity())
    }

    #[test]
    fn an_identity_lasts_until_the_elements_can_change() {
        let mut tensor = Tensor::from_slice(&[1.0f32, 2.0], [2]).unwrap();
        let changes: [fn(&mut Tensor<f32, 1>); 4] = [
            |tensor| tensor.as_mut_slice()[0] = 3.0,
            |tensor| tensor[[1]] = 4.0,
            |tensor| TensorViewMut::from(tensor)[[0]] = 5.0,
            |tensor| *tensor = tensor.clone(),
        ];
        for change in changes {
            let before = of(&tensor);
            assert!(tensor.iter().sum::<f32>() > 0.0 && Arc::ptr_eq(&before, &of(&tensor)));
            change(&mut tensor);
            assert!(!Arc::ptr_eq(&before, &of(&tensor)));
        }
        let mut other = AnyTensor::from(&tensor);
        let before = Arc::clone(other.identified_bytes().identity());
        assert!(!Arc::ptr_eq(&before, &of(&tensor)), "a copy");
        other.as_mut_slice::<f32>().unwrap()[0] = 0.0;
        assert!(!Arc::ptr_eq(&before, other.identified_bytes().identity()));
    }

    #[test]
    fn an_identity_goes_with_the_contents() {
        let mut first = Tensor::from_slice(&[1.0f32], [1]).unwrap();
        let mut second = Tensor::from_slice(&[2.0f32], [1]).unwrap();
        let identities = [of(&first), of(&second)];
        std::mem::swap(&mut first, &mut second);
        assert!(Arc::ptr_eq(&identities[0], &of(&second)) && Arc::ptr_eq(&identities[1], &of(&first)));
    }

    #[test]
    fn other_memory_has_no_identity() {
        let mut elements = [1.0f32, 2.0];
        assert!(TensorView::new(&elements, [2]).unwrap().identified_bytes().is_none());
        let mut tensor = Tensor::from_slice(&elements, [2]).unwrap();
        assert!(TensorViewMut::from(&mut tensor).as_view().identified_bytes().is_none());
        assert!(TensorViewMut::new(&mut elements, [2]).unwrap().as_view().identified_bytes().is_none());
    }

    #[test]
    fn what_is_kept_is_found_and_dropped_with_the_contents() {
        let mut tensor = Tensor::from_slice(&[1.0f32], [1]).unwrap();
        let number = |derived: &Derived| derived.downcast_ref::<u32>().copied();
        let keep = |value: u32| move || (Arc::new(value) as Derived, value);
        let identity = of(&tensor);
        assert_eq!(identity.find(number), None);
        assert_eq!(identity.find_or_keep(number, |_| true, keep(7)), 7);
        assert_eq!(identity.find_or_keep(number, |_| true, keep(8)), 7, "there is one already");
        let nothing = |_: &Derived| None;
        assert_eq!(identity.find_or_keep(nothing, |_| false, keep(9)), 9);
        assert_eq!(identity.find(number), Some(9), "the other was not wanted any more");
        let gone = Arc::downgrade(&identity);
        drop(identity);
        tensor[[0]] = 2.0;
        assert_eq!(gone.strong_count(), 0);
    }
}
