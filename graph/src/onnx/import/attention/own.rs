//! `Attention` of ONNX's own operator set, versions 23 to 25.
//!
//! Inputs: queries, keys, values, a mask, the keys and values of earlier calls, the numbers of keys that are no padding. Outputs: the means of
//! values, all keys, all values, and the scores at a stage that an attribute names.

use super::{Parts, Translated};
use crate::ir::{Attribute, ValueId};
use crate::onnx::import::expansion::{Expansion, Extent};
use crate::onnx::import::upgrade::Refusal;
use crate::tensor::ElementType;

/// The inputs of a node by their places.
mod place {
    pub(super) const MASK: usize = 3;
    pub(super) const PAST_KEYS: usize = 4;
    pub(super) const PAST_VALUES: usize = 5;
    pub(super) const VALID_KEYS: usize = 6;
}

/// The stage of scores that the fourth output has.
const AFTER_CAP: i64 = 1;
const AFTER_MASK: i64 = 2;
const AFTER_SOFTMAX: i64 = 3;

pub(super) fn attention(node: &mut Expansion<'_, '_>) -> Translated {
    let heads = [node.count("q_num_heads")?, node.count("kv_num_heads")?];
    let is_causal = node.int("is_causal")?.unwrap_or(0) != 0;
    let cap = node.float("softcap")?.unwrap_or(0.0);
    let stage = node.int("qk_matmul_output_mode")?.unwrap_or(0);
    let windows = [node.count("left_window_size")?, node.count("right_window_size")?];
    let scale = node.float("scale")?;
    // Softmax is computed in `f32` at least.
    node.int("softmax_precision")?;
    let is_joined = node.rank(node.input(0)?, "the queries")? == 3;
    let [queries, mut keys, mut values] = [0, 1, 2].map(|place| {
        let value = node.input(place)?;
        match (is_joined, heads[usize::from(place > 0)]) {
            (false, _) => Ok(value),
            (true, Some(heads)) => node.split_heads(value, heads),
            (true, None) => Err(Refusal("attributes q_num_heads and kv_num_heads are missing".to_owned())),
        }
    });
    let queries = queries?;
    for (value, past) in [(&mut keys, place::PAST_KEYS), (&mut values, place::PAST_VALUES)] {
        if let (Ok(own), Some(past)) = (&value, node.optional(past)) {
            *value = node.concat([past, *own], 2);
        }
    }
    let (keys, values) = (keys?, values?);
    let mask = Mask { queries, keys, is_causal, windows }.of(node)?;
    let parts = Parts { queries, keys, values, mask, scale, zero_if_masked: true };
    let (means, scores) = if cap == 0.0 && node.node.used.len() < 4 {
        (node.attend(parts)?, None)
    } else {
        let (means, scores) = in_steps(node, parts, f64::from(cap), stage)?;
        (means, Some(scores))
    };
    let means = if is_joined { node.join_heads(means)? } else { means };
    let mut results = vec![means, keys, values];
    results.extend(scores);
    results.truncate(node.node.used.len().max(1));
    Ok(results)
}

/// The attributes and tensors that decide which keys a query sees.
struct Mask {
    queries: ValueId,
    keys: ValueId,
    is_causal: bool,
    /// How far before and behind its own place a query sees; -1 is everything.
    windows: [Option<i64>; 2],
}

impl Mask {
    /// All masks of a node as one that is added to the scores.
    fn of(&self, node: &mut Expansion<'_, '_>) -> Result<Option<ValueId>, Refusal> {
        let element = node.element(self.queries, "the queries")?;
        let mut mask = match node.optional(place::MASK) {
            None => None,
            Some(mask) => Some(self.given(node, mask, element)?),
        };
        let is_limited = |window: &Option<i64>| window.is_some_and(|window| window >= 0);
        if self.is_causal || self.windows.iter().any(is_limited) {
            let allowed = self.by_place(node)?;
            let by_place = node.masked_unless(allowed, f64::NEG_INFINITY, element)?;
            mask = node.add_masks(mask, Some(by_place))?;
        }
        if let Some(valid) = node.optional(place::VALID_KEYS) {
            let columns = node.places(Extent::Of(self.keys, 2), 0)?;
            let valid = node.unsqueeze(valid, &[1, 2, 3])?;
            let allowed = node.call("less", &[columns, valid], &[])?;
            let valid = node.masked_unless(allowed, f64::NEG_INFINITY, element)?;
            mask = node.add_masks(mask, Some(valid))?;
        }
        Ok(mask)
    }

    /// The mask input as numbers, with -∞ for keys beyond it.
    fn given(
        &self,
        node: &mut Expansion<'_, '_>,
        mask: ValueId,
        element: ElementType,
    ) -> Result<ValueId, Refusal> {
        let last = node.rank(mask, "the mask")?.checked_sub(1);
        let last = last.ok_or_else(|| Refusal("the mask must have a dimension for keys".to_owned()))?;
        let numbers = match node.element(mask, "the mask")? {
            ElementType::Bool => node.masked_unless(mask, f64::NEG_INFINITY, element)?,
            _ => mask,
        };
        let extents = [(mask, last), (self.keys, 2)].map(|(value, dimension)| {
            node.builder.ty(value).extents().and_then(|extents| extents.get(dimension)).cloned()
        });
        if extents[0].is_some() && extents[0] == extents[1] {
            return Ok(numbers);
        }
        let (wanted, given) =
            (node.extent(Extent::Of(self.keys, 2))?, node.extent(Extent::Of(numbers, last))?);
        let missing = node.call("sub", &[wanted, given], &[])?;
        let (before, between) = (node.integers(&vec![0; last + 1]), node.integers(&vec![0; last]));
        let along = [("axis", Attribute::Int(0))];
        let pads = node.call("concat", &[before, between, missing], &along)?;
        let filler = node.number(f64::NEG_INFINITY, element)?;
        node.call("pad", &[numbers, pads, filler], &[])
    }

    /// Which keys queries see by their places.
    fn by_place(&self, node: &mut Expansion<'_, '_>) -> Result<ValueId, Refusal> {
        let mut row = node.places(Extent::Of(self.queries, 2), 1)?;
        let column = node.places(Extent::Of(self.keys, 2), 0)?;
        if let Some(past) = node.optional(place::PAST_KEYS) {
            let offset = node.extent(Extent::Of(past, 2))?;
            row = node.call("add", &[row, offset], &[])?;
        } else if let Some(valid) = node.optional(place::VALID_KEYS) {
            let rows = node.extent(Extent::Of(self.queries, 2))?;
            let offset = node.call("sub", &[valid, rows], &[])?;
            let offset = node.unsqueeze(offset, &[1, 2, 3])?;
            row = node.call("add", &[row, offset], &[])?;
        }
        let right = if self.is_causal { Some(0) } else { self.windows[1].filter(|&window| window >= 0) };
        let mut allowed = None;
        for (window, is_behind) in [(self.windows[0].filter(|&window| window >= 0), false), (right, true)] {
            let Some(window) = window else { continue };
            let window = node.integers(&[if is_behind { window } else { -window }]);
            let bound = node.call("add", &[row, window], &[])?;
            let name = if is_behind { "less_or_equal" } else { "greater_or_equal" };
            let own = node.call(name, &[column, bound], &[])?;
            allowed = Some(match allowed {
                None => own,
                Some(other) => node.call("and", &[other, own], &[])?,
            });
        }
        allowed.ok_or_else(|| Refusal("nothing limits the keys of a query".to_owned()))
    }
}

/// Attention step by step, with the scores at a stage.
pub(super) fn in_steps(
    node: &mut Expansion<'_, '_>,
    parts: Parts,
    cap: f64,
    stage: i64,
) -> Result<(ValueId, ValueId), Refusal> {
    let queries = parts.queries;
    let element = node.element(queries, "the queries")?;
    let parts = node.grouped(parts)?;
    let (scaled, scale) = node.scaled(&parts)?;
    let rank = node.rank(parts.keys, "the keys")? as i64;
    let mut order: Vec<i64> = (0..rank).collect();
    order.swap(rank as usize - 2, rank as usize - 1);
    let keys = node.transpose(parts.keys, &order)?;
    let product = node.call("matmul", &[scaled, keys], &[])?;
    let factor = node.number(f64::from(scale), element)?;
    let mut scores = node.call("mul", &[product, factor], &[])?;
    let mut shown = scores;
    if cap > 0.0 {
        let cap = node.number(cap, element)?;
        let relative = node.call("div", &[scores, cap], &[])?;
        let bent = node.call("tanh", &[relative], &[])?;
        scores = node.call("mul", &[bent, cap], &[])?;
    }
    shown = if stage == AFTER_CAP { scores } else { shown };
    if let Some(mask) = parts.mask {
        scores = node.call("add", &[scores, mask], &[])?;
    }
    shown = if stage == AFTER_MASK { scores } else { shown };
    let weights = node.call("softmax", &[scores], &[("axis", Attribute::Int(-1))])?;
    // A query without a key gives zeros.
    let last = node.integers(&[-1]);
    let largest = node.call("reduce_max", &[scores, last], &[])?;
    let (nothing, zero) = (node.number(f64::NEG_INFINITY, element)?, node.number(0.0, element)?);
    let is_masked = node.call("equal", &[largest, nothing], &[])?;
    let weights = node.call("where", &[is_masked, zero, weights], &[])?;
    shown = if stage == AFTER_SOFTMAX { weights } else { shown };
    let means = node.call("matmul", &[weights, parts.values], &[])?;
    if node.rank(parts.queries, "the queries")? == node.rank(queries, "the queries")? {
        return Ok((means, shown));
    }
    let joined = [means, shown].map(|value| {
        let shape =
            [Extent::Of(queries, 0), Extent::Of(queries, 1), Extent::Of(queries, 2), Extent::Fixed(-1)];
        node.reshape(value, &shape)
    });
    let [means, shown] = joined;
    Ok((means?, shown?))
}
