//! Results that were computed ahead of calls, kept with the tensors that they depend on.
//!
//! A packed set belongs to the versions of kernels that compute it in the same way, such as those of one kernel for several sizes, and to
//! the contents of the constant tensors it was computed from. It lives in the [`Identity`] of the first of these tensors, so that it is freed when that tensor is dropped or
//! borrowed mutably. Together the sets take at most [`packed_limit`](settings::packed_limit) bytes: a new set evicts the
//! least recently used ones, and those whose version or whose other tensors are gone.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use rustc_hash::FxHashMap;
use tilewright_core::device::{Device, DeviceBuffer};
use tilewright_core::tensor::{Derived, Identity};

use crate::settings;

/// Tensors that were computed ahead, in the memory of the device that computed them.
pub(super) type Packed = Vec<DeviceBuffer>;

/// Identifies the compiled versions that pack alike for as long as one of them exists.
#[derive(Debug, Default)]
pub(super) struct Owner(Arc<()>);

/// By the address of a device, which lives as long as its versions, and the text of a prologue.
type Owners = FxHashMap<(usize, Box<str>), Weak<()>>;

/// The owners of the versions that exist, and of some that are gone.
static OWNERS: LazyLock<Mutex<Owners>> = LazyLock::new(Mutex::default);

/// The place of a packed set.
#[derive(Debug)]
struct Slot {
    owner: Weak<()>,
    /// The identities of the tensors besides the first.
    others: Vec<Weak<Identity>>,
    content: RwLock<Option<Arc<Packed>>>,
    /// The bytes that the content takes, or will take.
    bytes: AtomicUsize,
    /// The value of [`CLOCK`] at the last use of the content.
    used: AtomicU64,
}

/// Every slot, including some whose set is gone.
static SLOTS: Mutex<Vec<Weak<Slot>>> = Mutex::new(Vec::new());

/// How many sets have been packed so far.
static CLOCK: AtomicU64 = AtomicU64::new(0);

impl Owner {
    /// The owner of the results of a prologue on a device, by the prologue's text.
    pub(super) fn of(device: &Arc<dyn Device>, text: &str) -> Owner {
        let address = Arc::as_ptr(device).cast::<()>() as usize;
        // No code that could panic runs while the map is changed.
        let mut owners = OWNERS.lock().unwrap_or_else(PoisonError::into_inner);
        owners.retain(|_, owner| owner.strong_count() > 0);
        let key = (address, Box::from(text));
        if let Some(owner) = owners.get(&key).and_then(Weak::upgrade) {
            return Owner(owner);
        }
        let owner = Arc::new(());
        owners.insert(key, Arc::downgrade(&owner));
        Owner(owner)
    }

    /// The packed set for the contents with these identities, if it is there.
    pub(super) fn find(&self, identities: &[&Arc<Identity>]) -> Option<Arc<Packed>> {
        let (first, others) = identities.split_first()?;
        first.find(|derived| self.own(derived, others)?.content())
    }

    /// As [`Owner::find`]; computes and keeps a set of `bytes` bytes if there is none. Calls that need the same set
    /// meanwhile wait. `None` when there is no room for it.
    ///
    /// # Errors
    /// The errors of `pack`; nothing is kept then.
    pub(super) fn find_or_pack<E>(
        &self,
        identities: &[&Arc<Identity>],
        bytes: usize,
        pack: impl FnOnce() -> Result<Packed, E>,
    ) -> Result<Option<Arc<Packed>>, E> {
        let Some((first, others)) = identities.split_first() else { return Ok(None) };
        if bytes > settings::packed_limit() {
            return Ok(None);
        }
        let slot = first.find_or_keep(
            |derived| self.own(derived, others).map(|_| Arc::clone(derived)),
            |derived| derived.downcast_ref::<Slot>().is_none_or(|slot| !slot.is_orphaned()),
            || {
                let slot = Arc::new(self.slot(others));
                slots().push(Arc::downgrade(&slot));
                (Arc::clone(&slot) as Derived, slot as Derived)
            },
        );
        let Ok(slot) = slot.downcast::<Slot>() else { return Ok(None) };
        slot.fill(bytes, pack).map(Some)
    }

    fn slot(&self, others: &[&Arc<Identity>]) -> Slot {
        Slot {
            owner: Arc::downgrade(&self.0),
            others: others.iter().map(|identity| Arc::downgrade(identity)).collect(),
            content: RwLock::new(None),
            bytes: AtomicUsize::new(0),
            used: AtomicU64::new(0),
        }
    }

    /// The slot of this version and these contents.
    fn own<'d>(&self, derived: &'d Derived, others: &[&Arc<Identity>]) -> Option<&'d Slot> {
        let same = |(known, other): (&Weak<Identity>, &&Arc<Identity>)| known.as_ptr() == Arc::as_ptr(other);
        derived.downcast_ref::<Slot>().filter(|slot| {
            slot.owner.as_ptr() == Arc::as_ptr(&self.0)
                && slot.others.len() == others.len()
                && slot.others.iter().zip(others).all(same)
        })
    }
}

impl Slot {
    /// The content, if there is any; this counts as a use.
    fn content(&self) -> Option<Arc<Packed>> {
        let content = self.content.read().unwrap_or_else(PoisonError::into_inner).clone()?;
        self.touch();
        Some(content)
    }

    /// Most calls find the clock unchanged, and write nothing.
    fn touch(&self) {
        let now = CLOCK.load(Ordering::Relaxed);
        if self.used.load(Ordering::Relaxed) != now {
            self.used.store(now, Ordering::Relaxed);
        }
    }

    fn fill<E>(&self, bytes: usize, pack: impl FnOnce() -> Result<Packed, E>) -> Result<Arc<Packed>, E> {
        let mut content = self.content.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(packed) = &*content {
            return Ok(Arc::clone(packed));
        }
        CLOCK.fetch_add(1, Ordering::Relaxed);
        self.touch();
        make_room(self, bytes);
        let packed = pack().inspect_err(|_| self.bytes.store(0, Ordering::Relaxed))?;
        Ok(Arc::clone(content.insert(Arc::new(packed))))
    }

    /// Frees the content, unless a call uses or makes it right now.
    fn try_empty(&self) {
        if let Ok(mut content) = self.content.try_write() {
            *content = None;
            self.bytes.store(0, Ordering::Relaxed);
        }
    }

    /// Whether no call can need the content any longer.
    fn is_orphaned(&self) -> bool {
        self.owner.strong_count() == 0 || self.others.iter().any(|other| other.strong_count() == 0)
    }
}

fn slots() -> MutexGuard<'static, Vec<Weak<Slot>>> {
    // No code that could panic runs while the list is changed.
    SLOTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reserves `bytes` bytes for a slot, and frees the contents of others as far as needed.
fn make_room(slot: &Slot, bytes: usize) {
    let mut list = slots();
    list.retain(|slot| slot.strong_count() > 0);
    slot.bytes.store(bytes, Ordering::Relaxed);
    let mut filled: Vec<Arc<Slot>> = list.iter().filter_map(Weak::upgrade).collect();
    filled.iter().filter(|slot| slot.is_orphaned()).for_each(|slot| slot.try_empty());
    filled.sort_by_key(|slot| slot.used.load(Ordering::Relaxed));
    let mut taken: usize = filled.iter().map(|slot| slot.bytes.load(Ordering::Relaxed)).sum();
    for other in filled.iter().filter(|other| !std::ptr::eq(&raw const ***other, slot)) {
        if taken <= settings::packed_limit() {
            break;
        }
        let before = other.bytes.load(Ordering::Relaxed);
        other.try_empty();
        taken -= before - other.bytes.load(Ordering::Relaxed).min(before);
    }
}

/// The bytes that all packed sets take.
#[cfg(test)]
fn packed_bytes() -> usize {
    slots().iter().filter_map(Weak::upgrade).map(|slot| slot.bytes.load(Ordering::Relaxed)).sum()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tilewright_core::device::DeviceMemory;
    use tilewright_core::dtype::DType;
    use tilewright_core::tensor::AnyTensor;

    use super::*;

    const BYTES: usize = 1 << 20;

    /// Memory that takes nothing.
    struct Nothing;

    impl DeviceMemory for Nothing {
        fn len(&self) -> usize {
            BYTES
        }

        fn place(&self) -> String {
            "nowhere".to_owned()
        }
    }

    fn tensor() -> AnyTensor {
        AnyTensor::zeros(DType::U8, &[1]).expect("it is small")
    }

    fn identity(tensor: &AnyTensor) -> &Arc<Identity> {
        tensor.identified_bytes().identity()
    }

    fn pack(owner: &Owner, identities: &[&Arc<Identity>]) -> Option<Weak<Packed>> {
        let packed =
            owner.find_or_pack::<Infallible>(identities, BYTES, || Ok(vec![DeviceBuffer::new(Nothing)]));
        packed.unwrap_or_else(|never| match never {}).as_ref().map(Arc::downgrade)
    }

    fn is_there(packed: &Option<Weak<Packed>>) -> bool {
        packed.as_ref().is_some_and(|packed| packed.strong_count() > 0)
    }

    /// One test, because the limit is that of the process.
    #[test]
    fn what_is_kept_is_found_freed_with_its_tensors_and_bounded() {
        let [first, second] = [Owner::default(), Owner::default()];
        let (mut weight, other) = (tensor(), tensor());
        let kept = pack(&first, &[identity(&weight)]);
        assert!(is_there(&kept) && first.find(&[identity(&weight)]).is_some());
        assert!(second.find(&[identity(&weight)]).is_none(), "another version");
        assert!(first.find(&[identity(&other)]).is_none(), "another tensor");
        assert!(first.find(&[identity(&weight), identity(&other)]).is_none(), "more tensors");
        let again = pack(&first, &[identity(&weight)]);
        assert!(again.unwrap().ptr_eq(kept.as_ref().unwrap()), "it is packed once");
        weight.bytes_mut()[0] = 1;
        assert!(!is_there(&kept), "the contents may have changed");

        let kept = pack(&first, &[identity(&weight)]);
        drop(weight);
        assert!(!is_there(&kept), "the tensor is gone");

        let (weight, scale) = (tensor(), tensor());
        let kept = pack(&first, &[identity(&weight), identity(&scale)]);
        drop(scale);
        let of_another_version = pack(&second, &[identity(&weight)]);
        assert!(!is_there(&kept) && is_there(&of_another_version), "one of its tensors is gone");
        drop(second);
        let tensors: Vec<AnyTensor> = (0..4).map(|_| tensor()).collect();
        let kept: Vec<_> = tensors.iter().map(|tensor| pack(&first, &[identity(tensor)])).collect();
        assert!(!is_there(&of_another_version), "its version is gone");

        assert!(kept.iter().all(is_there) && packed_bytes() == 4 * BYTES);
        settings::set_packed_limit(3 * BYTES);
        assert!(first.find(&[identity(&tensors[0])]).is_some(), "used after the second");
        let another = pack(&first, &[identity(&other)]);
        assert!(is_there(&another) && packed_bytes() == 3 * BYTES);
        assert!(is_there(&kept[3]) && !is_there(&kept[1]) && !is_there(&kept[2]), "the oldest went");
        settings::set_packed_limit(BYTES - 1);
        assert!(pack(&first, &[identity(&tensors[1])]).is_none(), "larger than all that may be kept");

        settings::set_packed_limit(3 * BYTES);
        let failure: Result<_, &str> = first.find_or_pack(&[identity(&tensors[2])], BYTES, || Err("no"));
        assert_eq!(failure.err(), Some("no"));
        assert!(is_there(&pack(&first, &[identity(&tensors[2])])), "a failure is not kept");
    }
}
