//! Reading numbers and strings from bytes that nobody has checked.

use crate::error::Error;

/// A place in bytes.
pub(super) struct Cursor<'b> {
    bytes: &'b [u8],
    place: usize,
}

impl<'b> Cursor<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Cursor { bytes, place: 0 }
    }

    pub(super) fn place(&self) -> usize {
        self.place
    }

    /// How many bytes are left.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.place
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'b [u8], Error> {
        if count > self.left() {
            return Err(Error::Format(format!(
                "{count} bytes are expected at byte {}, and the file ends after {}",
                self.place,
                self.left()
            )));
        }
        let bytes = &self.bytes[self.place..self.place + count];
        self.place += count;
        Ok(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        Ok(self.take(N)?.try_into().expect("as many bytes were taken"))
    }

    pub(super) fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A number of items, of which each takes at least `least` bytes: no more than the file has room for.
    pub(super) fn count(&mut self, what: &str, least: usize) -> Result<usize, Error> {
        let count = self.u64()?;
        usize::try_from(count).ok().filter(|&count| count <= self.left() / least).ok_or_else(|| {
            Error::Format(format!("{count} {what} at byte {} do not fit into the file", self.place))
        })
    }

    pub(super) fn text(&mut self) -> Result<String, Error> {
        let start = self.place;
        let length = self.count("bytes of text", 1)?;
        let bytes = self.take(length)?;
        String::from_utf8(bytes.to_vec())
            .map_err(|_| Error::Format(format!("the text at byte {start} is not UTF-8")))
    }
}
