//! Tensors that are dequantised from integers.

use crate::ir::{Attribute, Call, ValueId};
use crate::pass::Rewriter;
use crate::pass::quantise::stop::{Stop, stays};
use crate::symbolic::SymInt;
use crate::tensor::{ElementType, HostTensor};

/// A tensor of integers that stand for numbers, with scales that are known.
pub(super) struct Quantised {
    pub(super) integers: ValueId,
    pub(super) element: ElementType,
    pub(super) scales: Vec<f32>,
    pub(super) zero: Option<ValueId>,
    /// One zero point, or one for each scale.
    pub(super) zeros: Vec<i64>,
    /// The dimension to whose places the scales belong, where there are several.
    pub(super) axis: i64,
}

/// The call that dequantises a value.
pub(super) fn conversion<'r>(graph: &'r Rewriter<'_>, value: Option<ValueId>) -> Option<&'r Call> {
    graph.call(value?).filter(|call| call.operator.name == "dequantize_linear")
}

impl Quantised {
    /// The quantised tensor from which a value is dequantised. `what` names it.
    pub(super) fn of(graph: &Rewriter<'_>, value: Option<ValueId>, what: &str) -> Result<Self, Stop> {
        let Some(call) = conversion(graph, value) else { stays!("{what} is not dequantised") };
        let Some((integers, element)) =
            call.inputs[0].and_then(|integers| Some((integers, graph.builder.ty(integers).element()?)))
        else {
            stays!("the elements of {what} have no known type")
        };
        let int = |name: &str, default: i64| match call.attributes.get(name) {
            Some(Attribute::Int(value)) => *value,
            _ => default,
        };
        if int("block_size", 0) != 0 {
            stays!("{what} has a scale for each block");
        }
        if call.attributes.get("output_dtype").is_some() {
            stays!("{what} is dequantised to a type that an attribute names");
        }
        let Some(scale) = call.inputs[1].and_then(|scale| graph.constant(scale)) else {
            stays!("the scale of {what} is not constant")
        };
        let zero = call.inputs.get(2).copied().flatten();
        let zeros = match zero {
            None => vec![0],
            Some(zero) => match graph.constant(zero).and_then(integers_of) {
                Some(zeros) => zeros,
                None => stays!("the zero point of {what} is not constant"),
            },
        };
        let Some(scales) = (scale.rank() <= 1).then(|| scale.as_slice::<f32>()).flatten() else {
            stays!("the scales of {what} are no vector of 32-bit floats")
        };
        if !scales.iter().all(|scale| scale.is_normal() && *scale > 0.0) {
            stays!("a scale of {what} is too small");
        }
        if zeros.len() != 1 && zeros.len() != scales.len() {
            stays!("{what} has {} zero points for {} scales", zeros.len(), scales.len());
        }
        let scales = scales.to_vec();
        Ok(Quantised { integers, element, scales, zero, zeros, axis: int("axis", 1) })
    }

    fn is_byte(&self) -> bool {
        matches!(self.element, ElementType::U8 | ElementType::I8)
    }

    /// The greatest distance of a byte from the only zero point.
    fn reach(&self) -> i64 {
        let (low, high) = if self.element == ElementType::U8 { (0, 255) } else { (-128, 127) };
        self.zeros.iter().map(|zero| (zero - low).abs().max((high - zero).abs())).max().unwrap_or(0)
    }

    /// Whether all of the tensor has one scale and one zero point.
    pub(super) fn is_uniform(&self) -> bool {
        self.scales.len() == 1
    }

    /// Whether several scales belong to a dimension of a tensor of some rank.
    fn lies_along(&self, dimension: usize, rank: usize) -> bool {
        let axis = if self.axis < 0 { self.axis + rank as i64 } else { self.axis };
        self.is_uniform() || axis == dimension as i64
    }
}

/// Requires that products of two tensors are products of bytes whose sums, with a bias, fit 32 bits. `filters` is the dimension of the
/// `rank` of the right one to which several scales may belong, `depth` the number of products in a sum.
pub(super) fn require_bytes(
    [left, right]: [&Quantised; 2],
    (filters, rank): (usize, usize),
    depth: Option<i64>,
    bias: &[i32],
) -> Result<(), Stop> {
    if !left.is_byte() || !right.is_byte() {
        stays!("products of {} and {} have no kernel on integers", left.element, right.element);
    }
    if !left.is_uniform() || !right.lies_along(filters, rank) {
        stays!("scales lie along the dimension that is summed up over");
    }
    let Some(depth) = depth else { stays!("the number of products in a sum depends on the call") };
    // A constant operand bounds the sums more closely, but none of this length needs that.
    let most = left.reach().checked_mul(right.reach()).and_then(|most| most.checked_mul(depth));
    let added = bias.iter().map(|&number| i64::from(number).abs()).max().unwrap_or(0);
    if most.and_then(|most| most.checked_add(added)).is_none_or(|most| most > i64::from(i32::MAX)) {
        stays!("sums of {depth} products may exceed 32 bits");
    }
    Ok(())
}

/// A bias as integers that can be added to sums: its scales have to be those of the products.
pub(super) fn integer_bias(
    graph: &Rewriter<'_>,
    bias: Option<ValueId>,
    [x, weights]: [&Quantised; 2],
) -> Result<Option<Vec<i32>>, Stop> {
    if bias.is_none() {
        return Ok(None);
    }
    let bias = Quantised::of(graph, bias, "the bias")?;
    let Some(numbers) = graph.constant(bias.integers).and_then(|bias| bias.as_slice::<i32>()) else {
        stays!("the bias is no constant of 32-bit integers")
    };
    let at = |scales: &[f32], place: usize| {
        if scales.len() == 1 { Some(scales[0]) } else { scales.get(place).copied() }
    };
    let equal = |place: usize| {
        let (own, product) = (at(&bias.scales, place)?, x.scales[0] * at(&weights.scales, place)?);
        Some((own - product).abs() <= 1e-5 * product)
    };
    if !(0..numbers.len()).all(|place| equal(place) == Some(true)) || bias.zeros.iter().any(|&zero| zero != 0)
    {
        stays!("the scale of the bias is not that of the products");
    }
    Ok(Some(numbers.to_vec()))
}

/// Extents of a value, if they are known.
pub(super) fn extents(graph: &Rewriter<'_>, value: ValueId) -> Result<Vec<SymInt>, Stop> {
    match graph.builder.ty(value).extents() {
        Some(extents) => Ok(extents.to_vec()),
        None => stays!("the number of dimensions is not known"),
    }
}

fn integers_of(tensor: &HostTensor) -> Option<Vec<i64>> {
    Some(tensor.cast(ElementType::I64).ok()?.as_slice::<i64>()?.to_vec())
}
