//! Elements that stay in a file: they can leave memory and be read again.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use memmap2::MmapMut;
use tilewright_core::tensor::{Loaded, Source, SourceError};

/// A file that stays open, so that it can be read also after another one has taken its name.
pub(crate) struct TensorFile {
    path: PathBuf,
    file: Mutex<File>,
    stamp: Stamp,
}

/// The properties of a file that change with its contents.
#[derive(PartialEq)]
struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Stamp { length: metadata.len(), modified: metadata.modified().ok() }
    }
}

impl TensorFile {
    /// Opens a file.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let stamp = Stamp::of(&file.metadata()?);
        Ok(TensorFile { path: path.to_owned(), file: Mutex::new(file), stamp })
    }

    /// Reads bytes from an offset on.
    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if Stamp::of(&file.metadata()?) != self.stamp {
            return Err(io::Error::other("it has changed since the model was loaded"));
        }
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(bytes)
    }
}

impl fmt::Debug for TensorFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TensorFile({})", self.path.display())
    }
}

/// The bytes of a tensor in a file.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    file: Arc<TensorFile>,
    offset: u64,
    length: usize,
}

impl Region {
    /// Part of a file; from the offset to the end without a length.
    ///
    /// # Errors
    /// When the file is shorter.
    pub(crate) fn of(file: &Arc<TensorFile>, offset: u64, length: Option<u64>) -> io::Result<Self> {
        let total = file.stamp.length;
        let short = |length: u64| {
            let found =
                format!("the file has {total} bytes, the tensor needs {length} from byte {offset} on");
            io::Error::other(found)
        };
        let available = total.checked_sub(offset).ok_or_else(|| short(0))?;
        let length = length.unwrap_or(available);
        if length > available {
            return Err(short(length));
        }
        let length = usize::try_from(length).map_err(io::Error::other)?;
        Ok(Region { file: Arc::clone(file), offset, length })
    }

    /// Reads them into memory of [`Source::len`] bytes.
    pub(crate) fn read(&self, bytes: &mut [u8]) -> Result<(), SourceError> {
        self.file.read(self.offset, bytes).map_err(|error| self.refuse(&error))
    }

    fn refuse(&self, error: &io::Error) -> SourceError {
        SourceError(format!("weights cannot be read from `{}`: {error}", self.file.path.display()))
    }
}

impl Source for Region {
    fn len(&self) -> usize {
        self.length
    }

    fn load(&self) -> Result<Loaded, SourceError> {
        // Pages of the system go back to it at once. An allocator keeps memory of this size, also where it is too small for the next tensor.
        let mut pages = MmapMut::map_anon(self.length).map_err(|error| self.refuse(&error))?;
        self.read(&mut pages)?;
        Ok(Loaded::new(pages))
    }
}
