//! Tensors that are dequantised from integers.

use crate::ir::{Attribute, Call, ValueId};
use crate::pass::Rewriter;
use crate::pass::quantise::stop::{Stop, stays};
use crate::symbolic::SymInt;
use crate::tensor::{ElementType, HostTensor};

/// A tensor of integers that stand for numbers.
pub(super) struct Quantised {
    pub(super) integers: ValueId,
    pub(super) element: ElementType,
    pub(super) scale: ValueId,
    /// The scales, where they are known before the function runs.
    pub(super) scales: Option<Vec<f32>>,
    /// How many scales there are.
    count: usize,
    pub(super) zero: Option<ValueId>,
    /// One zero point, or one for each scale, where they are known.
    pub(super) zeros: Option<Vec<i64>>,
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
        let Some(scale) = call.inputs[1] else { stays!("{what} has no scale") };
        let scales = known_scales(graph, scale, what)?;
        let count = match &scales {
            Some(scales) => scales.len(),
            None => computed_scales(graph, scale, what)?,
        };
        let zero = call.inputs.get(2).copied().flatten();
        let zeros = match zero {
            None => Some(vec![0]),
            Some(zero) => graph.constant(zero).and_then(integers_of),
        };
        if let Some(zeros) = &zeros
            && zeros.len() != 1
            && zeros.len() != count
        {
            stays!("{what} has {} zero points for {count} scales", zeros.len());
        }
        Ok(Quantised { integers, element, scale, scales, count, zero, zeros, axis: int("axis", 1) })
    }

    fn is_byte(&self) -> bool {
        matches!(self.element, ElementType::U8 | ElementType::I8)
    }

    /// The greatest distance of a byte from a zero point.
    fn reach(&self) -> i64 {
        let (low, high) = if self.element == ElementType::U8 { (0, 255) } else { (-128, 127) };
        match &self.zeros {
            None => high - low,
            Some(zeros) => {
                zeros.iter().map(|zero| (zero - low).abs().max((high - zero).abs())).max().unwrap_or(0)
            }
        }
    }

    /// Whether all of the tensor has one scale and one zero point.
    pub(super) fn is_uniform(&self) -> bool {
        self.count == 1
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

/// The bias of a product.
pub(super) enum Bias {
    /// Nothing.
    None,
    /// Integers in units of both scales, before the sums become numbers.
    Integers(Vec<i32>),
    /// Numbers, after that.
    Numbers(ValueId),
}

impl Bias {
    /// The bias of a product. Integers have to have the scales of the products.
    pub(super) fn of(
        graph: &Rewriter<'_>,
        bias: Option<ValueId>,
        [x, weights]: [&Quantised; 2],
    ) -> Result<Self, Stop> {
        let Some(bias) = bias else { return Ok(Bias::None) };
        if conversion(graph, Some(bias)).is_none() {
            return Ok(Bias::Numbers(bias));
        }
        let own = Quantised::of(graph, Some(bias), "the bias")?;
        let numbers = graph.constant(own.integers).and_then(|bias| bias.as_slice::<i32>());
        let (Some(numbers), Some(scales), Some(of_x), Some(of_weights)) =
            (numbers, &own.scales, &x.scales, &weights.scales)
        else {
            return Ok(Bias::Numbers(bias));
        };
        let at = |scales: &[f32], place: usize| {
            if scales.len() == 1 { Some(scales[0]) } else { scales.get(place).copied() }
        };
        let equal = |place: usize| {
            let (own, product) = (at(scales, place)?, of_x[0] * at(of_weights, place)?);
            Some((own - product).abs() <= 1e-5 * product)
        };
        let is_centred = own.zeros.as_ref().is_some_and(|zeros| zeros.iter().all(|&zero| zero == 0));
        if !(0..numbers.len()).all(|place| equal(place) == Some(true)) || !is_centred {
            stays!("the scale of the bias is not that of the products");
        }
        Ok(Bias::Integers(numbers.to_vec()))
    }

    /// The integers, if it is one of these.
    pub(super) fn integers(&self) -> &[i32] {
        match self {
            Bias::Integers(numbers) => numbers,
            _ => &[],
        }
    }
}

/// Scales that are constant, each of which has all of its digits.
fn known_scales(graph: &Rewriter<'_>, scale: ValueId, what: &str) -> Result<Option<Vec<f32>>, Stop> {
    let Some(tensor) = graph.constant(scale) else { return Ok(None) };
    let Some(scales) = (tensor.rank() <= 1).then(|| tensor.as_slice::<f32>()).flatten() else {
        stays!("the scales of {what} are no vector of 32-bit floats")
    };
    if !scales.iter().all(|scale| scale.is_normal() && *scale > 0.0) {
        stays!("a scale of {what} is too small");
    }
    Ok(Some(scales.to_vec()))
}

/// How many scales there are where the function computes them.
fn computed_scales(graph: &Rewriter<'_>, scale: ValueId, what: &str) -> Result<usize, Stop> {
    let ty = graph.builder.ty(scale);
    let count = match ty.extents() {
        Some([]) => Some(1),
        Some([count]) => count.as_constant().and_then(|count| usize::try_from(count).ok()),
        _ => None,
    };
    match count.filter(|_| ty.element() == Some(ElementType::F32)) {
        Some(count) => Ok(count),
        None => stays!("the number of scales of {what} is not known, or they are no 32-bit floats"),
    }
}

/// Extents of a value, if they are known.
pub(super) fn extents(graph: &Rewriter<'_>, value: ValueId) -> Result<Vec<SymInt>, Stop> {
    match graph.builder.ty(value).extents() {
        Some(extents) => Ok(extents.to_vec()),
        None => stays!("the number of dimensions is not known"),
    }
}

/// The elements of a tensor of integers.
pub(super) fn integers_of(tensor: &HostTensor) -> Option<Vec<i64>> {
    Some(tensor.cast(ElementType::I64).ok()?.as_slice::<i64>()?.to_vec())
}
