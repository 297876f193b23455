//! A product of rows that are stacked for it alone is one of the rows as they lie.
//!
//! Exporters flatten all dimensions but the last for `Gemm`, and restore them behind it. Without these two steps, calls that follow join
//! the product: its activation, and the sum with what bypasses it.

use crate::build::BuildError;
use crate::ir::{Attribute, Call, ValueId};
use crate::pass::{CallRule, Rewriter};
use crate::symbolic::SymInt;
use crate::tensor::ElementType;

/// Removes reshapes around products.
pub(super) struct KeepRows;

impl CallRule for KeepRows {
    fn rewrite_call(
        &mut self,
        graph: &mut Rewriter<'_>,
        call: &Call,
    ) -> Result<Option<Vec<ValueId>>, BuildError> {
        let Some(Product { rows, matrix, is_transposed, bias }) = Product::of(graph, call) else {
            return Ok(None);
        };
        let matrix = match is_transposed {
            true => graph.add_plain_call("transpose", &[matrix])?,
            false => matrix,
        };
        let product = graph.add_plain_call("matmul", &[rows, matrix])?;
        let sum = match bias {
            Some(bias) => graph.add_plain_call("add", &[product, bias])?,
            None => product,
        };
        Ok(Some(vec![sum]))
    }
}

/// A product of floats between two reshapes that change all dimensions but the last.
struct Product {
    /// The rows before they are stacked.
    rows: ValueId,
    matrix: ValueId,
    is_transposed: bool,
    /// Added to each row.
    bias: Option<ValueId>,
}

impl Product {
    fn of(graph: &Rewriter<'_>, last: &Call) -> Option<Self> {
        if last.operator.name != "reshape" {
            return None;
        }
        let stacked = last.inputs[0]?;
        let product = graph.call(stacked).filter(|call| matches!(call.operator.name, "gemm" | "matmul"))?;
        let flattened = graph.call(product.inputs[0]?).filter(|call| call.operator.name == "reshape")?;
        let (rows, matrix) = (flattened.inputs[0]?, product.inputs[1]?);
        let bias = product.inputs.get(2).copied().flatten();
        let number = |name: &str, expected: f32| match product.attributes.get(name) {
            None => true,
            Some(&Attribute::Float(number)) => number == expected,
            Some(_) => false,
        };
        let flag = |name: &str| product.attributes.get(name).is_some_and(|flag| *flag != Attribute::Int(0));
        let is_plain = number("alpha", 1.0) && number("beta", 1.0) && !flag("transA");
        let extents = |value: ValueId| graph.builder.ty(value).extents();
        let is_bias = |bias: ValueId| {
            let extents = extents(bias)?;
            Some(extents.split_last().is_some_and(|(_, others)| others.iter().all(|extent| extent.is(1))))
        };
        let fits = is_plain
            && graph.used_once(stacked)
            && extents(product.inputs[0]?)?.len() == 2
            && bias.is_none_or(|bias| is_bias(bias) == Some(true))
            && graph.builder.ty(rows).element().is_some_and(ElementType::is_float);
        // The rows keep their length, and the result has those of the product in the place of these.
        let (before, width) = (extents(rows)?, extents(stacked)?.last()?);
        let (length, stack) = before.split_last().filter(|(_, stack)| !stack.is_empty())?;
        let has_rows = extents(product.inputs[0]?)?.last() == Some(length);
        let expected: Vec<&SymInt> = stack.iter().chain([width]).collect();
        let after = graph.builder.deduce(last, 1)?;
        let is_restored = after.first()?.extents()?.iter().eq(expected);
        (fits && has_rows && is_restored).then_some(Product {
            rows,
            matrix,
            is_transposed: flag("transB"),
            bias,
        })
    }
}
