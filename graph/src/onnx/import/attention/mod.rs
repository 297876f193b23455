//! Attention of ONNX's own operator set and of ONNX Runtime (`com.microsoft`), expressed by the table's attention and what lies around it.
//!
//! This file has the parts that all of them share: heads, masks, and the call of `attention`.

mod cache;
mod grouped;
mod own;
mod rotary;
mod runtime;

use crate::ir::{Attribute, ValueId};
use crate::onnx::import::expansion::{Expansion, Extent};
use crate::onnx::import::meaning::{Meaning, Translated};
use crate::onnx::import::upgrade::Refusal;
use crate::tensor::ElementType;

pub(super) const MEANINGS: &[Meaning] = &[
    ("", "Attention", own::attention),
    ("com.microsoft", "Attention", runtime::attention),
    ("com.microsoft", "MultiHeadAttention", runtime::multi_head),
    ("com.microsoft", "GroupQueryAttention", grouped::grouped_query),
    ("", "TensorScatter", cache::tensor_scatter),
    ("", "RotaryEmbedding", rotary::own),
    ("com.microsoft", "RotaryEmbedding", rotary::runtime),
];

/// The operands of attention.
struct Parts {
    /// `[batch, heads, R, D]`
    queries: ValueId,
    /// `[batch, heads, C, D]`, with as many heads as queries have, or a divisor of that.
    keys: ValueId,
    /// `[batch, heads, C, E]`
    values: ValueId,
    /// A tensor that is added to the scores. It broadcasts to `[batch, heads, R, C]`.
    mask: Option<ValueId>,
    /// The factor of the scores; `1 / √D` where none is given.
    scale: Option<f32>,
    /// Whether a query without a key gives zeros.
    zero_if_masked: bool,
}

impl Expansion<'_, '_> {
    /// `[batch, R, heads · D]` as `[batch, heads, R, D]`.
    fn split_heads(&mut self, value: ValueId, heads: i64) -> Result<ValueId, Refusal> {
        let shape = [Extent::Of(value, 0), Extent::Of(value, 1), Extent::Fixed(heads), Extent::Fixed(-1)];
        let split = self.reshape(value, &shape)?;
        self.transpose(split, &[0, 2, 1, 3])
    }

    /// `[batch, heads, R, E]` as `[batch, R, heads · E]`.
    fn join_heads(&mut self, value: ValueId) -> Result<ValueId, Refusal> {
        let turned = self.transpose(value, &[0, 2, 1, 3])?;
        let shape = [Extent::Of(turned, 0), Extent::Of(turned, 1), Extent::Fixed(-1)];
        self.reshape(turned, &shape)
    }

    /// Zero where a condition holds, and a number elsewhere.
    fn masked_unless(
        &mut self,
        condition: ValueId,
        number: f64,
        element: ElementType,
    ) -> Result<ValueId, Refusal> {
        let (zero, number) = (self.number(0.0, element)?, self.number(number, element)?);
        self.call("where", &[condition, zero, number], &[])
    }

    /// The sum of masks that are given.
    fn add_masks(
        &mut self,
        one: Option<ValueId>,
        other: Option<ValueId>,
    ) -> Result<Option<ValueId>, Refusal> {
        match (one, other) {
            (Some(one), Some(other)) => Ok(Some(self.call("add", &[one, other], &[])?)),
            (one, other) => Ok(one.or(other)),
        }
    }

    /// The factor of the scores as an attribute, or as divided queries where the length of a query is not known.
    fn scaled(&mut self, parts: &Parts) -> Result<(ValueId, f32), Refusal> {
        let queries = parts.queries;
        let dimension = self.rank(queries, "the queries")? - 1;
        if let Some(scale) = parts.scale {
            return Ok((queries, scale));
        }
        if let Some(depth) = self.known(queries, dimension) {
            return Ok((queries, (1.0 / (depth as f64).sqrt()) as f32));
        }
        let depth = self.extent(Extent::Of(queries, dimension))?;
        let to = self.element(queries, "the queries")?;
        let depth = self.call("cast", &[depth], &[("to", Attribute::Element(to))])?;
        let root = self.call("sqrt", &[depth], &[])?;
        Ok((self.call("div", &[queries, root], &[])?, 1.0))
    }

    /// Gives keys and values a dimension for the queries that share a head, and queries and mask the same in place of their heads.
    fn grouped(&mut self, parts: Parts) -> Result<Parts, Refusal> {
        let heads = |expansion: &Self, value: ValueId, name: &str| {
            expansion
                .known(value, 1)
                .ok_or_else(|| Refusal(format!("the number of heads of {name} must be known")))
        };
        let (own, shared) =
            (heads(self, parts.queries, "the queries")?, heads(self, parts.keys, "the keys")?);
        if own == shared || shared == 1 {
            return Ok(parts);
        }
        if shared < 1 || own % shared != 0 {
            return Err(Refusal(format!("{own} heads of queries cannot share {shared} heads of keys")));
        }
        let group = [Extent::Fixed(shared), Extent::Fixed(own / shared)];
        let split = |expansion: &mut Self, value: ValueId| {
            let [first, second] = group;
            let shape = [Extent::Of(value, 0), first, second, Extent::Of(value, 2), Extent::Of(value, 3)];
            expansion.reshape(value, &shape)
        };
        let mask = match parts.mask {
            None => None,
            Some(mask) => Some(match self.rank(mask, "the mask")? {
                ..=2 => mask,
                3 => {
                    let mask = self.unsqueeze(mask, &[0])?;
                    if self.known(mask, 1) == Some(1) {
                        self.unsqueeze(mask, &[2])?
                    } else {
                        split(self, mask)?
                    }
                }
                _ if self.known(mask, 1) == Some(1) => self.unsqueeze(mask, &[2])?,
                _ => split(self, mask)?,
            }),
        };
        Ok(Parts {
            queries: split(self, parts.queries)?,
            keys: self.unsqueeze(parts.keys, &[2])?,
            values: self.unsqueeze(parts.values, &[2])?,
            mask,
            ..parts
        })
    }

    /// The means of values, `[batch, heads, R, E]`.
    fn attend(&mut self, parts: Parts) -> Result<ValueId, Refusal> {
        let (queries, before) = (parts.queries, self.rank(parts.queries, "the queries")?);
        let parts = self.grouped(parts)?;
        let (scaled, scale) = self.scaled(&parts)?;
        let mut inputs = vec![scaled, parts.keys, parts.values];
        inputs.extend(parts.mask);
        let attributes = [
            ("scale", Attribute::Float(scale)),
            ("zero_if_masked", Attribute::Int(parts.zero_if_masked.into())),
        ];
        let means = self.call("attention", &inputs, &attributes)?;
        if self.rank(parts.queries, "the queries")? == before {
            return Ok(means);
        }
        let shape =
            [Extent::Of(queries, 0), Extent::Of(queries, 1), Extent::Of(queries, 2), Extent::Fixed(-1)];
        self.reshape(means, &shape)
    }
}
