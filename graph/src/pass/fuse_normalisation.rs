//! Layer normalisation and normalisation by the root mean square, as exporters write them step by step, become one call.
//!
//! The quotient `(x - mean(x)) / √(mean((x - mean(x))²) + ε)` over the innermost dimensions is a layer normalisation, and `x / √(mean(x²) + ε)` one by the
//! root mean square. The quotient may be a product with the reciprocal. A constant that the result is multiplied by becomes the scale, and one that is
//! added to a layer normalisation its offset.

use crate::build::BuildError;
use crate::ir::{Attribute, Attributes, Call, ValueId};
use crate::operator;
use crate::pass::{CallRule, Rewriter};
use crate::tensor::{ElementType, HostTensor};

/// Longer rows stay as they are: their scale of ones would take more memory than the file.
const MOST_ELEMENTS: usize = 1 << 14;

/// Makes calls of normalisations.
pub(super) struct FuseNormalisation;

impl CallRule for FuseNormalisation {
    fn rewrite_call(
        &mut self,
        graph: &mut Rewriter<'_>,
        call: &Call,
    ) -> Result<Option<Vec<ValueId>>, BuildError> {
        if let Some(found) = Normalisation::of(graph, call) {
            return found.call(graph).map(Some);
        }
        let with_parameter = match call.operator.name {
            "mul" => with_scale(graph, call),
            "add" => with_offset(graph, call),
            _ => None,
        };
        with_parameter.map(|normalised| graph.add_call(normalised, 1)).transpose()
    }
}

/// The parts of a normalisation.
struct Normalisation {
    x: ValueId,
    /// The extents of the dimensions whose elements are normalised together.
    extents: Vec<usize>,
    epsilon: f64,
    /// Whether the mean is taken away.
    is_centred: bool,
}

impl Normalisation {
    /// The normalisation whose quotient this call is. Values between are used by nothing else, but for the distances from the mean.
    fn of(graph: &Rewriter<'_>, quotient: &Call) -> Option<Self> {
        let &[Some(left), Some(right)] = &quotient.inputs[..] else { return None };
        match quotient.operator.name {
            "div" => Self::by_root(graph, left, right),
            "mul" => {
                let by = |distances: ValueId, inverse: ValueId| {
                    Self::by_root(graph, distances, divisor(graph, inverse)?)
                };
                by(left, right).or_else(|| by(right, left))
            }
            _ => None,
        }
    }

    /// Distances over the root of the mean of their squares.
    fn by_root(graph: &Rewriter<'_>, distances: ValueId, root: ValueId) -> Option<Self> {
        let sum = graph.inner(root, &["sqrt"])?.inputs[0]?;
        let &[Some(left), Some(right)] = &graph.inner(sum, &["add"])?.inputs[..] else { return None };
        let (variance, epsilon) = match (number(graph, left), number(graph, right)) {
            (None, Some(epsilon)) => (left, epsilon),
            (Some(epsilon), None) => (right, epsilon),
            _ => return None,
        };
        let (squares, axis) = mean(graph, graph.inner(variance, &["reduce_mean"])?)?;
        // The attribute for the small number has 32 bits.
        let is_single = graph.builder.ty(distances).element() == Some(ElementType::F32);
        if !is_single || !is_square(graph, squares, distances) || epsilon < 0.0 {
            return None;
        }
        let extents = graph.builder.ty(distances).extents()?[axis..].iter();
        let extents: Vec<usize> =
            extents.map(|extent| usize::try_from(extent.as_constant()?).ok()).collect::<Option<_>>()?;
        let count = extents.iter().try_fold(1usize, |count, &extent| count.checked_mul(extent))?;
        if count > MOST_ELEMENTS {
            return None;
        }
        let plain = Normalisation { x: distances, extents, epsilon, is_centred: false };
        Some(match centred(graph, distances, axis) {
            Some(x) => Normalisation { x, is_centred: true, ..plain },
            None => plain,
        })
    }
}

impl Normalisation {
    /// The call, with a scale of ones.
    fn call(self, graph: &mut Rewriter<'_>) -> Result<Vec<ValueId>, BuildError> {
        let ones = HostTensor::full(&self.extents, 1.0f32).expect("the number of elements is bounded");
        let scale = graph.add_constant(ones);
        let name = if self.is_centred { "layer_normalization" } else { "rms_normalization" };
        let attributes = Attributes::none()
            .with("axis", Attribute::Int(-(self.extents.len() as i64)))
            .with("epsilon", Attribute::Float(self.epsilon as f32));
        let operator = operator::find(name).expect("the table has normalisations");
        graph.add_call(Call { operator, inputs: vec![Some(self.x), Some(scale)], attributes }, 1)
    }
}

/// The normalisation with the other factor of a product as its scale, which was one.
fn with_scale(graph: &Rewriter<'_>, product: &Call) -> Option<Call> {
    let (mut normalised, factor) = with_constant(graph, product)?;
    let scale = graph.constant(normalised.inputs[1]?)?.cast(ElementType::F64).ok()?;
    let is_one = scale.as_slice::<f64>()?.iter().all(|&number| number == 1.0);
    let has_offset = normalised.inputs.len() > 2;
    normalised.inputs[1] = Some(factor);
    (is_one && !has_offset).then_some(normalised)
}

/// The layer normalisation with the other operand of a sum as its offset.
fn with_offset(graph: &Rewriter<'_>, sum: &Call) -> Option<Call> {
    let (mut normalised, offset) = with_constant(graph, sum)?;
    let takes_one = normalised.operator.name == "layer_normalization" && normalised.inputs.len() == 2;
    normalised.inputs.push(Some(offset));
    takes_one.then_some(normalised)
}

/// A normalisation that a call reads alone, beside a constant of the same extents as its scale.
fn with_constant(graph: &Rewriter<'_>, call: &Call) -> Option<(Call, ValueId)> {
    let &[Some(left), Some(right)] = &call.inputs[..] else { return None };
    let fits = |normalised: ValueId, constant: ValueId| {
        let names = ["layer_normalization", "rms_normalization"];
        let call = graph.call(normalised).filter(|call| names.contains(&call.operator.name))?;
        let scale = graph.constant(call.inputs[1]?)?;
        let same = graph.constant(constant)?.shape() == scale.shape();
        (same && graph.used_once(normalised)).then(|| (call.clone(), constant))
    };
    fits(left, right).or_else(|| fits(right, left))
}

/// The value whose reciprocal another one is: `reciprocal(y)` or `1 / y`.
fn divisor(graph: &Rewriter<'_>, inverse: ValueId) -> Option<ValueId> {
    if let Some(call) = graph.inner(inverse, &["reciprocal"]) {
        return call.inputs[0];
    }
    let &[Some(one), Some(divisor)] = &graph.inner(inverse, &["div"])?.inputs[..] else { return None };
    (number(graph, one) == Some(1.0)).then_some(divisor)
}

/// The operand of a call that takes means over the innermost dimensions and keeps these, and the first of the dimensions.
fn mean(graph: &Rewriter<'_>, call: &Call) -> Option<(ValueId, usize)> {
    let x = call.inputs[0]?;
    let rank = graph.builder.ty(x).extents()?.len() as i64;
    let axes = graph.constant(call.inputs.get(1).copied().flatten()?)?.cast(ElementType::I64).ok()?;
    let mut axes: Vec<i64> =
        axes.as_slice::<i64>()?.iter().map(|&axis| if axis < 0 { axis + rank } else { axis }).collect();
    axes.sort_unstable();
    let first = *axes.first()?;
    let keeps = call.attributes.get("keepdims").is_none_or(|keeps| *keeps != Attribute::Int(0));
    let is_innermost = first >= 0 && axes.iter().copied().eq(first..rank);
    (keeps && is_innermost).then_some((x, first as usize))
}

/// Whether a value, which nothing else uses, has the squares of another one.
fn is_square(graph: &Rewriter<'_>, squares: ValueId, of: ValueId) -> bool {
    let Some(call) = graph.call(squares).filter(|_| graph.used_once(squares)) else { return false };
    match (call.operator.name, &call.inputs[..]) {
        ("mul", &[Some(left), Some(right)]) => left == of && right == of,
        ("pow", &[Some(base), Some(power)]) => base == of && number(graph, power) == Some(2.0),
        _ => false,
    }
}

/// The tensor whose distances from its mean a value has.
fn centred(graph: &Rewriter<'_>, distances: ValueId, axis: usize) -> Option<ValueId> {
    let call = graph.call(distances).filter(|call| call.operator.name == "sub")?;
    let &[Some(x), Some(means)] = &call.inputs[..] else { return None };
    let found = graph.call(means).filter(|call| call.operator.name == "reduce_mean")?;
    (mean(graph, found)? == (x, axis)).then_some(x)
}

/// The only element of a constant that adds no dimensions.
fn number(graph: &Rewriter<'_>, value: ValueId) -> Option<f64> {
    graph.constant(value).filter(|tensor| tensor.rank() <= 1)?;
    graph.number(value)
}
