//! Elements that lie elsewhere, such as in a file, and are read when they are needed.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::tensor::{IdentifiedBytes, Identity, IdentityCell};

/// Where elements lie that are not in memory. They are the same each time.
pub trait Source: Send + Sync {
    /// How many bytes they have.
    fn len(&self) -> usize;

    /// Whether they have none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads all of them, into memory that is aligned like tensors.
    ///
    /// # Errors
    /// When they cannot be read, or are not what they were.
    fn load(&self) -> Result<Loaded, SourceError>;
}

/// Why elements cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SourceError(pub String);

/// A copy in memory of the elements of a [`Source`].
pub struct Loaded(Box<dyn AsRef<[u8]> + Send + Sync>);

impl Loaded {
    /// Memory that holds the elements. Its owner gives the same bytes each time.
    pub fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Loaded(Box::new(owner))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

/// The elements of a constant tensor that lie elsewhere, with an identity. Kernels that have laid them out for themselves do not need
/// them in memory any longer.
pub struct StoredBytes {
    source: Arc<dyn Source>,
    identity: IdentityCell,
    resident: OnceLock<Loaded>,
}

impl StoredBytes {
    /// The elements of a source.
    pub fn new(source: Arc<dyn Source>) -> Self {
        StoredBytes { source, identity: IdentityCell::default(), resident: OnceLock::new() }
    }

    /// How many bytes they have.
    pub fn len(&self) -> usize {
        self.source.len()
    }

    /// Whether they have none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The identity of the contents.
    pub fn identity(&self) -> &Arc<Identity> {
        self.identity.get()
    }

    /// The elements in memory, if they stay there.
    pub fn resident(&self) -> Option<IdentifiedBytes<'_>> {
        self.resident.get().map(|loaded| IdentifiedBytes::new(loaded.bytes(), self.identity()))
    }

    /// Reads the elements into memory, where they stay.
    ///
    /// # Errors
    /// As [`Source::load`].
    pub fn make_resident(&self) -> Result<IdentifiedBytes<'_>, SourceError> {
        if let Some(resident) = self.resident() {
            return Ok(resident);
        }
        let loaded = self.load()?;
        // Of several threads, the first one counts.
        Ok(IdentifiedBytes::new(self.resident.get_or_init(|| loaded).bytes(), self.identity()))
    }

    /// Reads the elements into memory, for as long as they are needed.
    ///
    /// # Errors
    /// As [`Source::load`].
    pub fn load(&self) -> Result<Loaded, SourceError> {
        self.source.load()
    }
}

impl fmt::Debug for StoredBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.resident.get().is_some() { "in memory" } else { "elsewhere" };
        write!(f, "StoredBytes({} bytes {place})", self.len())
    }
}
