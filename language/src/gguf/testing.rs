//! Files for tests, written byte by byte.

use crate::block::BlockType;
use crate::gguf::File;

/// A file in the making.
#[derive(Default)]
pub(crate) struct Builder {
    entries: Vec<Vec<u8>>,
    tensors: Vec<(String, Vec<usize>, BlockType, Vec<u8>)>,
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn entry(mut self, key: &str, kind: u32, value: &[u8]) -> Self {
        self.entries.push([&text(key)[..], &kind.to_le_bytes(), value].concat());
        self
    }

    pub(crate) fn text(self, key: &str, value: &str) -> Self {
        self.entry(key, 8, &text(value))
    }

    pub(crate) fn u32(self, key: &str, value: u32) -> Self {
        self.entry(key, 4, &value.to_le_bytes())
    }

    pub(crate) fn f32(self, key: &str, value: f32) -> Self {
        self.entry(key, 6, &value.to_le_bytes())
    }

    fn array(self, key: &str, kind: u32, count: usize, values: &[u8]) -> Self {
        let value = [&kind.to_le_bytes()[..], &(count as u64).to_le_bytes(), values].concat();
        self.entry(key, 9, &value)
    }

    pub(crate) fn texts(self, key: &str, values: &[&str]) -> Self {
        self.array(key, 8, values.len(), &values.iter().flat_map(|value| text(value)).collect::<Vec<_>>())
    }

    pub(crate) fn integers(self, key: &str, values: &[i32]) -> Self {
        self.array(
            key,
            5,
            values.len(),
            &values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>(),
        )
    }

    /// A tensor; its extents with the outermost first.
    pub(crate) fn tensor(mut self, name: &str, shape: &[usize], kind: BlockType, bytes: Vec<u8>) -> Self {
        self.tensors.push((name.to_owned(), shape.to_vec(), kind, bytes));
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        file.extend(3u32.to_le_bytes());
        file.extend((self.tensors.len() as u64).to_le_bytes());
        file.extend((self.entries.len() as u64).to_le_bytes());
        file.extend(self.entries.concat());
        let mut data: Vec<u8> = Vec::new();
        for (name, shape, kind, bytes) in &self.tensors {
            file.extend(text(name));
            file.extend((shape.len() as u32).to_le_bytes());
            shape.iter().rev().for_each(|&extent| file.extend((extent as u64).to_le_bytes()));
            file.extend(kind.id().to_le_bytes());
            data.resize(data.len().next_multiple_of(32), 0);
            file.extend((data.len() as u64).to_le_bytes());
            data.extend(bytes);
        }
        file.resize(file.len().next_multiple_of(32), 0);
        file.extend(data);
        file
    }

    pub(crate) fn file(&self) -> File {
        File::from_bytes(self.bytes()).unwrap()
    }
}
