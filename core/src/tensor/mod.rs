//! Tensors: what kernels take and give.
//!
//! | type | owns its elements | element type and rank |
//! |---|---|---|
//! | [`Tensor`] | yes, dense, row-major, 64-byte aligned | known at compile time |
//! | [`TensorView`], [`TensorViewMut`] | no; with strides | known at compile time |
//! | [`AnyTensor`] | yes, as `Tensor` | known at run time |
//!
//! Nothing here computes: these are storage with checked shapes. [`Element`] names the types that
//! an element can have.

mod any;
mod arrange;
mod bytes;
mod class;
mod compare;
mod dense;
mod element;
#[cfg(feature = "ndarray")]
mod foreign;
mod identity;
pub(crate) mod narrow;
mod random;
mod shape;
mod slice;
pub mod spare;
mod stored;
mod view;

pub use any::AnyTensor;
pub(crate) use any::{with_element, with_one_of};
pub use bytes::{BytesMut, MisfitBytes};
pub use class::{Bits, Float, Integer, Number};
pub use compare::ErrorSummary;
pub use dense::Tensor;
pub use element::Element;
#[cfg(feature = "ndarray")]
pub use foreign::ForeignArrayError;
pub(crate) use identity::IdentityCell;
pub use identity::{Derived, IdentifiedBytes, Identity, SharedBytes};
pub use random::Random;
pub use shape::{ShapeError, checked_len};
pub use stored::{Loaded, Source, SourceError, StoredBytes};
pub use view::{NotContiguous, TensorView, TensorViewMut};

/// The alignment of every owned tensor, in bytes: a cache line and the widest vector register.
pub const ALIGNMENT: usize = 64;

/// Owned, aligned storage.
pub(crate) type Storage<T> = aligned_vec::AVec<T, aligned_vec::ConstAlign<ALIGNMENT>>;
