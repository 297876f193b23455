//! Rotary embeddings of positions (Su et al. 2021): pairs of numbers of a head, turned by an angle that grows with the position.
//!
//! The pairs are the two halves of what is turned, or neighbours. Numbers of a head behind them stay as they are.

use super::Translated;
use crate::ir::{Attribute, ValueId};
use crate::onnx::import::expansion::{Expansion, Extent};
use crate::onnx::import::upgrade::Refusal;

/// How numbers of heads are turned.
#[derive(Clone, Copy)]
pub(super) struct Rotation {
    /// `[batch, 1, tokens, pairs]` or `[batch, tokens, 1, pairs]`; a batch of 1 stands for any.
    pub(super) cosines: ValueId,
    /// As the cosines.
    pub(super) sines: ValueId,
    /// Whether neighbours are pairs.
    pub(super) is_interleaved: bool,
}

impl Rotation {
    /// Turns the last dimension of a tensor of four dimensions.
    pub(super) fn apply(&self, node: &mut Expansion<'_, '_>, x: ValueId) -> Result<ValueId, Refusal> {
        let known = |node: &Expansion<'_, '_>, value: ValueId, name: &str| {
            node.known(value, 3).ok_or_else(|| Refusal(format!("{name} must be known")))
        };
        let length = known(node, x, "the length of a head")?;
        let pairs = known(node, self.cosines, "the number of angles")?;
        if pairs < 1 || 2 * pairs > length {
            return Err(Refusal(format!("{pairs} pairs do not fit a head of {length} numbers")));
        }
        let (turned, rest) = if 2 * pairs == length {
            (x, None)
        } else {
            let rest = node.slice(x, 3, Extent::Fixed(2 * pairs), Extent::Fixed(length))?;
            (node.slice(x, 3, Extent::Fixed(0), Extent::Fixed(2 * pairs))?, Some(rest))
        };
        let [first, second] = self.pairs(node, turned, pairs)?;
        let mut product = |one: ValueId, other: ValueId| node.call("mul", &[one, other], &[]);
        let [a, b] = [product(first, self.cosines)?, product(second, self.sines)?];
        let [c, d] = [product(first, self.sines)?, product(second, self.cosines)?];
        let (first, second) = (node.call("sub", &[a, b], &[])?, node.call("add", &[c, d], &[])?);
        let turned = if self.is_interleaved {
            let [first, second] = [node.unsqueeze(first, &[4])?, node.unsqueeze(second, &[4])?];
            let joined = node.concat([first, second], 4)?;
            self.shaped_like(node, joined, x, &[2 * pairs])?
        } else {
            node.concat([first, second], 3)?
        };
        match rest {
            None => Ok(turned),
            Some(rest) => node.concat([turned, rest], 3),
        }
    }

    /// The first and the second numbers of all pairs.
    fn pairs(&self, node: &mut Expansion<'_, '_>, x: ValueId, pairs: i64) -> Result<[ValueId; 2], Refusal> {
        if !self.is_interleaved {
            let first = node.slice(x, 3, Extent::Fixed(0), Extent::Fixed(pairs))?;
            return Ok([first, node.slice(x, 3, Extent::Fixed(pairs), Extent::Fixed(2 * pairs))?]);
        }
        let split = self.shaped_like(node, x, x, &[pairs, 2])?;
        let last = node.integers(&[4]);
        let mut part = |place: i64| {
            let part = node.slice(split, 4, Extent::Fixed(place), Extent::Fixed(place + 1))?;
            node.call("squeeze", &[part, last], &[])
        };
        Ok([part(0)?, part(1)?])
    }

    /// A value with the first three extents of another one, and with `last` behind them.
    fn shaped_like(
        &self,
        node: &mut Expansion<'_, '_>,
        value: ValueId,
        like: ValueId,
        last: &[i64],
    ) -> Result<ValueId, Refusal> {
        let outer = (0..3).map(|dimension| Extent::Of(like, dimension));
        let shape: Vec<Extent> = outer.chain(last.iter().map(|&extent| Extent::Fixed(extent))).collect();
        node.reshape(value, &shape)
    }
}

/// `RotaryEmbedding` of ONNX's own operator set. Inputs: heads `[batch, heads, tokens, D]`, or `[batch, tokens, heads · D]`, then cosines and
/// sines of all positions `[positions, pairs]` with the positions of the tokens, or those of the tokens `[batch, tokens, pairs]`.
pub(super) fn own(node: &mut Expansion<'_, '_>) -> Translated {
    let (cosines, sines, positions) = (node.input(1)?, node.input(2)?, node.optional(3));
    embed(node, [cosines, sines], positions)
}

/// `RotaryEmbedding` of ONNX Runtime. Inputs: as for ONNX's own, but with the positions in the second place; a single position is that of
/// the first token.
pub(super) fn runtime(node: &mut Expansion<'_, '_>) -> Translated {
    if node.int("is_packed_batching")?.unwrap_or(0) != 0 {
        return Err(Refusal("attribute is_packed_batching must be 0".to_owned()));
    }
    if node.float("scale")?.is_some_and(|scale| scale != 1.0) {
        return Err(Refusal("attribute scale must be 1".to_owned()));
    }
    let (mut positions, cosines, sines) = (node.input(1)?, node.input(2)?, node.input(3)?);
    if node.rank(positions, "the positions")? == 1 {
        let tokens = if node.rank(node.input(0)?, "the heads")? == 4 { 2 } else { 1 };
        let places = node.places(Extent::Of(node.input(0)?, tokens), 0)?;
        let moved = node.call("add", &[places, positions], &[])?;
        positions = node.unsqueeze(moved, &[0])?;
    }
    embed(node, [cosines, sines], Some(positions))
}

/// Turns the heads of the first input.
fn embed(node: &mut Expansion<'_, '_>, tables: [ValueId; 2], positions: Option<ValueId>) -> Translated {
    let is_interleaved = node.int("interleaved")?.unwrap_or(0) != 0;
    let heads = node.count("num_heads")?.filter(|&heads| heads > 0);
    let turned = node.count("rotary_embedding_dim")?.filter(|&turned| turned > 0);
    let x = node.input(0)?;
    let is_joined = node.rank(x, "the heads")? == 3;
    let along = [("axis", Attribute::Int(0))];
    let mut angles = [tables[0]; 2];
    for (angle, table) in angles.iter_mut().zip(tables) {
        let own = match positions {
            None => table,
            Some(positions) => node.call("gather", &[table, positions], &along)?,
        };
        // Heads lie in front of tokens, or behind them where they are joined.
        *angle = node.unsqueeze(own, &[if is_joined { 2 } else { 1 }])?;
    }
    let [cosines, sines] = angles;
    let pairs = node.known(cosines, 3);
    if let (Some(turned), Some(pairs)) = (turned, pairs)
        && turned != 2 * pairs
    {
        return Err(Refusal(format!("{turned} numbers of a head cannot be turned by {pairs} angles")));
    }
    let rotation = Rotation { cosines, sines, is_interleaved };
    if !is_joined {
        return Ok(vec![rotation.apply(node, x)?]);
    }
    let width = node.known(x, 2).ok_or_else(|| Refusal("the width of the heads must be known".to_owned()))?;
    let heads = match (heads, pairs) {
        (Some(heads), _) => heads,
        (None, Some(pairs)) if pairs > 0 && width > 0 && width % (2 * pairs) == 0 => width / (2 * pairs),
        _ => return Err(Refusal("attribute num_heads is missing".to_owned())),
    };
    let split = [Extent::Of(x, 0), Extent::Of(x, 1), Extent::Fixed(heads), Extent::Fixed(width / heads)];
    let split = node.reshape(x, &split)?;
    let rotated = rotation.apply(node, split)?;
    let joined = [Extent::Of(x, 0), Extent::Of(x, 1), Extent::Fixed(width)];
    Ok(vec![node.reshape(rotated, &joined)?])
}
