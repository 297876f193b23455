//! The keys and values of the tokens so far.

use tilewright::Tensor;

use crate::decoder::config::Config;
use crate::error::Error;
use crate::tensors;

/// The cache of one layer, with room for some number of tokens.
pub(super) struct Cache {
    /// By group, number of the head, and token: the products of a query with all tokens run along memory.
    pub(super) keys: Tensor<f32, 3>,
    /// By group, token, and number of the head.
    pub(super) values: Tensor<f32, 3>,
}

impl Cache {
    pub(super) fn new(config: &Config, room: usize) -> Result<Self, Error> {
        Ok(Cache {
            keys: tensors::zeros([config.groups, config.head, room])?,
            values: tensors::zeros([config.groups, room, config.head])?,
        })
    }

    /// How many tokens there is room for.
    pub(super) fn room(&self) -> usize {
        self.values.dim(1)
    }

    /// Makes room for more tokens, of which `length` are there.
    pub(super) fn grow(&mut self, config: &Config, room: usize, length: usize) -> Result<(), Error> {
        let mut larger = Cache::new(config, room)?;
        let old = self.room();
        let rows = self.keys.as_slice().chunks_exact(old);
        for (target, source) in larger.keys.as_mut_slice().chunks_exact_mut(room).zip(rows) {
            target[..length].copy_from_slice(&source[..length]);
        }
        let (wide, used) = (room * config.head, length * config.head);
        let groups = self.values.as_slice().chunks_exact(old * config.head);
        for (target, source) in larger.values.as_mut_slice().chunks_exact_mut(wide).zip(groups) {
            target[..used].copy_from_slice(&source[..used]);
        }
        *self = larger;
        Ok(())
    }

    /// Stores the keys and values of a token, one group after the other.
    pub(super) fn store(&mut self, position: usize, keys: &[f32], values: &[f32]) {
        let (room, head) = (self.room(), self.values.dim(2));
        for (place, &key) in keys.iter().enumerate() {
            self.keys.as_mut_slice()[place * room + position] = key;
        }
        for (group, values) in values.chunks_exact(head).enumerate() {
            let start = (group * room + position) * head;
            self.values.as_mut_slice()[start..start + head].copy_from_slice(values);
        }
    }
}
