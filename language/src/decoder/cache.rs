//! The keys and values of the tokens so far.

use tilewright::Tensor;

use crate::decoder::config::Config;
use crate::error::Error;
use crate::tensors;

/// The cache of all layers, with room for some number of tokens.
pub(super) struct Cache {
    /// Of each layer, by group, number of the head, and token: the products of a query with all tokens run along memory.
    pub(super) keys: Vec<Tensor<f32, 3>>,
    /// Of each layer, by group, token, and number of the head.
    pub(super) values: Vec<Tensor<f32, 3>>,
    room: usize,
}

impl Cache {
    pub(super) fn new(config: &Config, room: usize) -> Result<Self, Error> {
        let list = |shape: [usize; 3]| -> Result<Vec<_>, Error> {
            (0..config.layers).map(|_| tensors::zeros(shape)).collect()
        };
        Ok(Cache {
            keys: list([config.groups, config.head, room])?,
            values: list([config.groups, room, config.head])?,
            room,
        })
    }

    /// How many tokens there is room for.
    pub(super) fn room(&self) -> usize {
        self.room
    }

    /// Makes room for more tokens, of which `length` are there.
    pub(super) fn grow(&mut self, config: &Config, room: usize, length: usize) -> Result<(), Error> {
        let mut larger = Cache::new(config, room)?;
        for (larger, own) in larger.keys.iter_mut().zip(&self.keys) {
            copy_first(larger, room, own, self.room, length);
        }
        let (from, to, used) = (self.room * config.head, room * config.head, length * config.head);
        for (larger, own) in larger.values.iter_mut().zip(&self.values) {
            copy_first(larger, to, own, from, used);
        }
        *self = larger;
        Ok(())
    }
}

/// Copies the first `count` numbers of each row to the rows of another tensor, whose rows have another length.
fn copy_first(to: &mut Tensor<f32, 3>, to_length: usize, from: &Tensor<f32, 3>, length: usize, count: usize) {
    let rows = from.as_slice().chunks_exact(length);
    for (target, source) in to.as_mut_slice().chunks_exact_mut(to_length).zip(rows) {
        target[..count].copy_from_slice(&source[..count]);
    }
}
