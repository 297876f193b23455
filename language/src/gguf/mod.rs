//! GGUF files, version 2 and 3: metadata, and tensors as memory-mapped bytes.
//!
//! The format: a header with the number of tensors and of metadata entries, the entries, a description of each tensor, and their
//! bytes, each at a multiple of the alignment. All numbers are little-endian. Nothing in a file is trusted: every count is bounded
//! by the bytes that are left, and every tensor lies inside of the file.

mod cursor;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod value;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

pub use value::Value;

use crate::block::BlockType;
use crate::error::Error;
use cursor::Cursor;

/// A file.
pub struct File {
    bytes: Bytes,
    /// The metadata, by key.
    pub metadata: BTreeMap<String, Value>,
    tensors: BTreeMap<String, Info>,
}

/// The bytes of a file.
#[derive(Clone)]
enum Bytes {
    Mapped(Arc<memmap2::Mmap>),
    Owned(Arc<[u8]>),
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }
}

/// Where a tensor is, and its elements.
#[derive(Clone, Debug)]
struct Info {
    kind: BlockType,
    /// Extents, outermost first; rows of the last one are stored as blocks.
    shape: Vec<usize>,
    start: usize,
    length: usize,
}

/// A tensor of a file.
#[derive(Clone, Copy, Debug)]
pub struct StoredTensor<'f> {
    /// The type of its blocks.
    pub kind: BlockType,
    /// Its extents, outermost first.
    pub shape: &'f [usize],
    /// Its blocks.
    pub bytes: &'f [u8],
}

/// The alignment of tensors where the metadata names none.
const DEFAULT_ALIGNMENT: u64 = 32;

/// The most dimensions that a tensor of the format has.
const MOST_DIMENSIONS: u32 = 4;

impl File {
    /// Maps a file into memory and reads its description.
    ///
    /// The file must not be changed while it is mapped: its tensors would change with it.
    ///
    /// # Errors
    /// When it cannot be opened, or is no GGUF file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let open = |source| Error::Open { path: path.to_owned(), source };
        let file = fs::File::open(path).map_err(open)?;
        // SAFETY: the map is read-only and private to this process. Another process that shortens the file could end this one by a signal,
        // which every reader of mapped files accepts; the documentation above says so.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(open)?;
        Self::read(Bytes::Mapped(Arc::new(map)))
    }

    /// Reads a file that is in memory.
    ///
    /// # Errors
    /// When the bytes are no GGUF file.
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>) -> Result<Self, Error> {
        Self::read(Bytes::Owned(bytes.into()))
    }

    fn read(bytes: Bytes) -> Result<Self, Error> {
        let mut cursor = Cursor::new(&bytes);
        let magic: [u8; 4] = cursor.array()?;
        if &magic != b"GGUF" {
            return Err(Error::Format(format!("it begins with {magic:?}, not with `GGUF`")));
        }
        let version = cursor.u32()?;
        if !matches!(version, 2 | 3) {
            return Err(Error::Format(format!("version {version} is not read; versions 2 and 3 are")));
        }
        // A tensor has at least a name's length, a number of dimensions, a type and an offset; an entry a key's length, a type and a byte.
        let tensors = cursor.count("tensors", 24)?;
        let entries = cursor.count("entries", 13)?;
        let metadata = read_metadata(&mut cursor, entries)?;
        let alignment = match metadata.get("general.alignment") {
            None => DEFAULT_ALIGNMENT,
            Some(value) => value
                .as_u64()
                .filter(|value| value.is_power_of_two() && *value <= 1 << 20)
                .ok_or_else(|| Error::metadata("general.alignment", "is no power of two up to a mebibyte"))?,
        };
        let infos: Vec<_> = (0..tensors).map(|_| read_info(&mut cursor)).collect::<Result<_, Error>>()?;
        let data = cursor.place().next_multiple_of(alignment as usize);
        let mut named = BTreeMap::new();
        for (name, kind, shape, offset) in infos {
            let info = place(&name, kind, shape, offset, alignment, data, bytes.len())?;
            if named.insert(name.clone(), info).is_some() {
                return Err(Error::tensor(&name, "occurs twice"));
            }
        }
        Ok(File { bytes, metadata, tensors: named })
    }

    /// The names of all tensors, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// A tensor, if there is one of that name.
    pub fn find(&self, name: &str) -> Option<StoredTensor<'_>> {
        let info = self.tensors.get(name)?;
        let bytes = &self.bytes[info.start..info.start + info.length];
        Some(StoredTensor { kind: info.kind, shape: &info.shape, bytes })
    }

    /// A tensor that has to be there.
    ///
    /// # Errors
    /// When the file has none of that name.
    pub fn tensor(&self, name: &str) -> Result<StoredTensor<'_>, Error> {
        self.find(name).ok_or_else(|| Error::tensor(name, "is missing from the file"))
    }

    /// An entry of the metadata that has to be there, as `read` takes it.
    pub(crate) fn entry<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T, Error> {
        self.optional_entry(key, expected, read)?.ok_or_else(|| Error::metadata(key, "is missing"))
    }

    /// An entry of the metadata that may be missing.
    pub(crate) fn optional_entry<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let Some(value) = self.metadata.get(key) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| Error::metadata(key, format!("is not {expected}")))
    }
}

fn read_metadata(cursor: &mut Cursor<'_>, entries: usize) -> Result<BTreeMap<String, Value>, Error> {
    let mut metadata = BTreeMap::new();
    for _ in 0..entries {
        let key = cursor.text()?;
        let kind = cursor.u32()?;
        let value = Value::read(cursor, kind, 0)?;
        if metadata.insert(key.clone(), value).is_some() {
            return Err(Error::metadata(&key, "occurs twice"));
        }
    }
    Ok(metadata)
}

/// The name, type, extents and offset of a tensor.
fn read_info(cursor: &mut Cursor<'_>) -> Result<(String, BlockType, Vec<usize>, u64), Error> {
    let name = cursor.text()?;
    let rank = cursor.u32()?;
    if rank == 0 || rank > MOST_DIMENSIONS {
        return Err(Error::tensor(
            &name,
            format!("has {rank} dimensions; 1 to {MOST_DIMENSIONS} are possible"),
        ));
    }
    let mut shape = Vec::new();
    for _ in 0..rank {
        let extent = cursor.u64()?;
        shape.push(
            usize::try_from(extent)
                .map_err(|_| Error::tensor(&name, format!("an extent of {extent} is too large")))?,
        );
    }
    // The file names the innermost extent first.
    shape.reverse();
    let id = cursor.u32()?;
    let kind = BlockType::of_id(id).ok_or_else(|| {
        let known: Vec<_> = BlockType::ALL.iter().map(|kind| kind.name()).collect();
        Error::tensor(
            &name,
            format!("has elements of type {id}; those that are read are {}", known.join(", ")),
        )
    })?;
    Ok((name, kind, shape, cursor.u64()?))
}

/// Where a tensor lies in the file.
fn place(
    name: &str,
    kind: BlockType,
    shape: Vec<usize>,
    offset: u64,
    alignment: u64,
    data: usize,
    size: usize,
) -> Result<Info, Error> {
    let row = *shape.last().expect("a tensor has a dimension");
    if shape.contains(&0) || !row.is_multiple_of(kind.length()) {
        return Err(Error::tensor(
            name,
            format!("its shape {shape:?} is not made of blocks of {} elements", kind.length()),
        ));
    }
    let elements = shape.iter().try_fold(1usize, |count, &extent| count.checked_mul(extent));
    let length = elements.and_then(|count| (count / kind.length()).checked_mul(kind.bytes()));
    if !offset.is_multiple_of(alignment) {
        return Err(Error::tensor(name, format!("its offset {offset} is no multiple of {alignment}")));
    }
    let start = usize::try_from(offset).ok().and_then(|offset| data.checked_add(offset));
    let inside =
        start.zip(length).filter(|&(start, length)| start.checked_add(length).is_some_and(|end| end <= size));
    let (start, length) = inside.ok_or_else(|| {
        Error::tensor(name, format!("its {shape:?} {} elements do not lie inside of the file", kind.name()))
    })?;
    Ok(Info { kind, shape, start, length })
}
