//! `GroupQueryAttention` of ONNX Runtime: causal attention whose keys and values are shared by groups of heads, with those of earlier calls.
//!
//! Sequences of a batch may have different lengths. The keys of earlier calls stand at the front of `past`, as many as the length says,
//! and the new ones follow them, then zeros. A buffer that is longer than all tokens keeps its length.

use super::own::in_steps;
use super::rotary::Rotation;
use super::{Parts, Translated};
use crate::ir::{Attribute, ValueId};
use crate::onnx::import::expansion::{Expansion, Extent};
use crate::onnx::import::upgrade::Refusal;
use crate::tensor::ElementType;

/// The inputs of a node by their places.
mod place {
    pub(super) const PAST: [usize; 2] = [3, 4];
    /// For each sequence, the number of its tokens less one.
    pub(super) const LENGTHS: usize = 5;
    /// The number of tokens of the longest sequence.
    pub(super) const TOTAL: usize = 6;
    pub(super) const COSINES: usize = 7;
    pub(super) const SINES: usize = 8;
    pub(super) const POSITIONS: usize = 9;
    pub(super) const BIAS: usize = 10;
}

/// Inputs: queries `[batch, R, heads · D]`, keys and values `[batch, R, shared heads · D]` (or all three beside each other in the first
/// input), earlier keys and values `[batch, shared heads, P, D]`, the lengths of sequences, the greatest of them, cosines and sines of
/// positions, positions, and what is added to the scores. Outputs: the joined means, all keys, all values.
pub(super) fn grouped_query(node: &mut Expansion<'_, '_>) -> Translated {
    node.refuse_inputs(&[(11, "head_sink"), (12, "k_scale"), (13, "v_scale")])?;
    if node.is_used(3) {
        return Err(Refusal("output 3 (the scores) is not supported".to_owned()));
    }
    if node.int("smooth_softmax")?.is_some_and(|smooth| smooth > 0) {
        return Err(Refusal("attribute smooth_softmax must be 0".to_owned()));
    }
    let heads = |node: &mut Expansion<'_, '_>, name: &str| {
        let heads = node.count(name)?.filter(|&heads| heads > 0);
        heads.ok_or_else(|| Refusal(format!("attribute {name} must be above 0")))
    };
    let heads = [heads(node, "num_heads")?, heads(node, "kv_num_heads")?];
    // Zero stands for the usual scale.
    let scale = node.float("scale")?.filter(|&scale| scale != 0.0);
    let cap = node.float("softcap")?.unwrap_or(0.0);
    let window = node.count("local_window_size")?.filter(|&window| window > 0);
    let [mut queries, mut keys, values] = heads_of(node, heads)?;
    let sequences = Sequences::of(node, queries)?;
    if node.int("do_rotary")?.unwrap_or(0) != 0 {
        let rotation = rotation(node, &sequences)?;
        queries = rotation.apply(node, queries)?;
        keys = rotation.apply(node, keys)?;
    }
    let keys = sequences.append(node, place::PAST[0], keys)?;
    let values = sequences.append(node, place::PAST[1], values)?;
    let mask = sequences.mask(node, [queries, keys], window)?;
    let mask = node.add_masks(node.optional(place::BIAS), Some(mask))?;
    let parts = Parts { queries, keys, values, mask, scale, zero_if_masked: false };
    let means = if cap > 0.0 { in_steps(node, parts, f64::from(cap), 0)?.0 } else { node.attend(parts)? };
    let mut results = vec![node.join_heads(means)?, keys, values];
    results.truncate(node.node.used.len().max(1));
    Ok(results)
}

/// Queries, keys and values by heads: `[batch, heads, R, D]`.
fn heads_of(node: &mut Expansion<'_, '_>, [own, shared]: [i64; 2]) -> Result<[ValueId; 3], Refusal> {
    let first = node.input(0)?;
    if let (Some(keys), Some(values)) = (node.optional(1), node.optional(2)) {
        return Ok([
            node.split_heads(first, own)?,
            node.split_heads(keys, shared)?,
            node.split_heads(values, shared)?,
        ]);
    }
    let width = node.known(first, 2).filter(|width| width % (own + 2 * shared) == 0);
    let width = width.ok_or_else(|| {
        Refusal("the width of the first input must be known, and a multiple of all heads".to_owned())
    })?;
    let length = width / (own + 2 * shared);
    let mut start = 0;
    let mut part = |heads: i64| {
        let end = start + heads * length;
        let part = node.slice(first, 2, Extent::Fixed(start), Extent::Fixed(end))?;
        start = end;
        node.split_heads(part, heads)
    };
    Ok([part(own)?, part(shared)?, part(shared)?])
}

/// How many tokens sequences have.
struct Sequences {
    /// The new tokens of a sequence.
    new: Extent,
    /// For each sequence, the number of its earlier tokens: `[batch]`.
    earlier: ValueId,
    /// The number of tokens of the longest sequence: `[1]`.
    total: ValueId,
}

impl Sequences {
    fn of(node: &mut Expansion<'_, '_>, queries: ValueId) -> Result<Self, Refusal> {
        let integers = |node: &mut Expansion<'_, '_>, place: usize| {
            let value = node.input(place)?;
            let value = node.call("cast", &[value], &[("to", Attribute::Element(ElementType::I64))])?;
            let flat = node.integers(&[-1]);
            node.call("reshape", &[value, flat], &[])
        };
        let new = Extent::Of(queries, 2);
        let (last, total) = (integers(node, place::LENGTHS)?, integers(node, place::TOTAL)?);
        let (one, zero, own) = (node.integers(&[1]), node.integers(&[0]), node.extent(new)?);
        let lengths = node.call("add", &[last, one], &[])?;
        // A first call may have tokens behind the end of a sequence, so that there are more new ones than its length says.
        let earlier = node.call("sub", &[lengths, own], &[])?;
        let earlier = node.call("max", &[earlier, zero], &[])?;
        Ok(Sequences { new, earlier, total })
    }

    /// The numbers of the new tokens in their sequences: `[batch, R]`.
    fn positions(&self, node: &mut Expansion<'_, '_>) -> Result<ValueId, Refusal> {
        let places = node.places(self.new, 0)?;
        let earlier = node.unsqueeze(self.earlier, &[1])?;
        node.call("add", &[places, earlier], &[])
    }

    /// Earlier tokens `[batch, heads, P, D]` with the new ones behind them, in a buffer that has room for all tokens.
    fn append(&self, node: &mut Expansion<'_, '_>, place: usize, new: ValueId) -> Result<ValueId, Refusal> {
        let Some(past) = node.optional(place) else { return Ok(new) };
        let joined = node.concat([past, new], 2)?;
        let buffer = node.extent(Extent::Of(past, 2))?;
        let length = node.call("max", &[buffer, self.total], &[])?;
        let scalar = node.integers(&[]);
        let length = node.call("reshape", &[length, scalar], &[])?;
        let (zero, one) = (node.number(0.0, ElementType::I64)?, node.number(1.0, ElementType::I64)?);
        let places = node.call("range", &[zero, length, one], &[])?;
        let earlier = node.unsqueeze(self.earlier, &[1])?;
        let is_earlier = node.call("less", &[places, earlier], &[])?;
        // New tokens stand behind the buffer.
        let gap = node.call("sub", &[buffer, earlier], &[])?;
        let moved = node.call("add", &[places, gap], &[])?;
        let all = node.extent(Extent::Of(joined, 2))?;
        let last = node.integers(&[-1]);
        let last = node.call("add", &[all, last], &[])?;
        let moved = node.call("min", &[moved, last], &[])?;
        let source = node.call("where", &[is_earlier, places, moved], &[])?;
        let source = node.unsqueeze(source, &[2])?;
        let tokens_first = node.transpose(joined, &[0, 2, 1, 3])?;
        let gathered =
            node.call("gather_nd", &[tokens_first, source], &[("batch_dims", Attribute::Int(1))])?;
        // Behind the end of a sequence, there are zeros.
        let new = node.extent(self.new)?;
        let end = node.call("add", &[earlier, new], &[])?;
        let is_token = node.call("less", &[places, end], &[])?;
        let is_token = node.unsqueeze(is_token, &[2, 3])?;
        let element = node.element(past, "the earlier tokens")?;
        let nothing = node.number(0.0, element)?;
        let tokens = node.call("where", &[is_token, gathered, nothing], &[])?;
        node.transpose(tokens, &[0, 2, 1, 3])
    }

    /// What is added to the scores of `[queries, keys]`: -∞ for keys behind a query, or further before it than `window` tokens.
    fn mask(
        &self,
        node: &mut Expansion<'_, '_>,
        [queries, keys]: [ValueId; 2],
        window: Option<i64>,
    ) -> Result<ValueId, Refusal> {
        let element = node.element(queries, "the queries")?;
        let rows = self.positions(node)?;
        let rows = node.unsqueeze(rows, &[1, 3])?;
        let columns = node.places(Extent::Of(keys, 2), 0)?;
        let mut allowed = node.call("less_or_equal", &[columns, rows], &[])?;
        if let Some(window) = window {
            let window = node.integers(&[-window]);
            let before = node.call("add", &[rows, window], &[])?;
            let is_near = node.call("greater", &[columns, before], &[])?;
            allowed = node.call("and", &[allowed, is_near], &[])?;
        }
        node.masked_unless(allowed, f64::NEG_INFINITY, element)
    }
}

/// The rotation of the new tokens.
fn rotation(node: &mut Expansion<'_, '_>, sequences: &Sequences) -> Result<Rotation, Refusal> {
    let positions = match node.optional(place::POSITIONS) {
        Some(positions) => positions,
        None => sequences.positions(node)?,
    };
    let mut angles = |place: usize| {
        let table = node.input(place)?;
        let own = node.call("gather", &[table, positions], &[("axis", Attribute::Int(0))])?;
        node.unsqueeze(own, &[1])
    };
    let (cosines, sines) = (angles(place::COSINES)?, angles(place::SINES)?);
    Ok(Rotation { cosines, sines, is_interleaved: node.int("rotary_interleaved")?.unwrap_or(0) != 0 })
}
