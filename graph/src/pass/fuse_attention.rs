//! Attention as exporters write it becomes one call: `softmax(q · kᵀ · scale + mask) · v`.
//!
//! The scale may be a factor or a divisor, of the products, of queries, of keys, or of both. A mask may be added, or chosen where a
//! condition holds. Zeros may stand in for weights that are NaN, as PyTorch exports `scaled_dot_product_attention`.

use crate::build::BuildError;
use crate::ir::{Attribute, Attributes, Call, ValueId};
use crate::operator;
use crate::pass::{CallRule, Rewriter};
use crate::symbolic::SymInt;
use crate::tensor::{ElementType, HostTensor};

/// Masking numbers below this leave nothing of a score that is added to them: adding them is the same as choosing them.
const SWALLOWS_SCORES: f64 = -1e30;

/// Makes calls of attention.
pub(super) struct FuseAttention;

impl CallRule for FuseAttention {
    fn rewrite_call(
        &mut self,
        graph: &mut Rewriter<'_>,
        call: &Call,
    ) -> Result<Option<Vec<ValueId>>, BuildError> {
        let Some(found) = Attention::of(graph, call) else { return Ok(None) };
        let mask = match found.mask {
            None => None,
            Some(Mask::Added(mask)) => Some(mask),
            Some(Mask::Chosen { condition, masks_where, number }) => {
                let (zero, number) = (graph.add_constant(zero_like(&number)), graph.add_constant(number));
                let (yes, no) = if masks_where { (number, zero) } else { (zero, number) };
                Some(graph.add_plain_call("where", &[condition, yes, no])?)
            }
        };
        let mut inputs = vec![Some(found.queries), Some(found.keys), Some(found.values)];
        inputs.extend(mask.map(Some));
        let attributes = Attributes::none()
            .with("scale", Attribute::Float(found.scale as f32))
            .with("keys_transposed", Attribute::Int(found.keys_transposed.into()))
            .with("zero_if_nan", Attribute::Int(found.zero_if_nan.into()));
        let operator = operator::find("attention").expect("the table has attention");
        graph.add_call(Call { operator, inputs, attributes }, 1).map(Some)
    }
}

/// The parts of an attention.
struct Attention {
    queries: ValueId,
    keys: ValueId,
    /// Whether keys are `[…, D, C]`.
    keys_transposed: bool,
    values: ValueId,
    scale: f64,
    mask: Option<Mask>,
    /// Whether weights that are NaN are replaced by zeros.
    zero_if_nan: bool,
}

enum Mask {
    /// Added to the scores.
    Added(ValueId),
    /// A number in place of scores where a condition holds, or where it does not.
    Chosen { condition: ValueId, masks_where: bool, number: HostTensor },
}

impl Attention {
    /// The attention whose last product is this call. Values on the way are used by nothing else.
    fn of(graph: &Rewriter<'_>, last: &Call) -> Option<Self> {
        if last.operator.name != "matmul" {
            return None;
        }
        let (weights, values) = (last.inputs[0]?, last.inputs[1]?);
        let chosen = unless_nan(graph, weights);
        let softmax = match chosen {
            Some(softmax) => graph.call(softmax)?,
            None => graph.inner(weights, &["softmax"])?,
        };
        let logits = softmax.inputs[0]?;
        let rank = graph.builder.ty(logits).extents()?.len();
        let axis = match softmax.attributes.get("axis") {
            Some(&Attribute::Int(axis)) => axis,
            _ => -1,
        };
        let has_matrices =
            |value: ValueId| graph.builder.ty(value).extents().is_some_and(|own| own.len() >= 2);
        if (axis != -1 && axis != rank as i64 - 1) || !has_matrices(values) {
            return None;
        }
        let (scores, mask) = masked(graph, logits)?;
        let (product, mut scale) = scaled(graph, scores, true);
        let product = graph.inner(product, &["matmul", "fused_matmul"])?;
        let flag = |name: &str| product.attributes.get(name).is_some_and(|flag| *flag != Attribute::Int(0));
        if ["transA", "transBatchA", "transBatchB"].into_iter().any(flag) {
            return None;
        }
        if let Some(&Attribute::Float(alpha)) = product.attributes.get("alpha") {
            scale *= f64::from(alpha);
        }
        let (queries, of_queries) = scaled(graph, product.inputs[0]?, false);
        let (keys, of_keys) = scaled(graph, product.inputs[1]?, false);
        let (keys, turned) = untransposed(graph, keys);
        let element = graph.builder.ty(values).element()?;
        let fits = |value: ValueId| graph.builder.ty(value).element() == Some(element) && has_matrices(value);
        let all_fit = element.is_float() && fits(queries) && fits(keys) && fits(logits);
        all_fit.then_some(Attention {
            queries,
            keys,
            keys_transposed: turned == flag("transB"),
            values,
            scale: scale * of_queries * of_keys,
            mask,
            zero_if_nan: chosen.is_some(),
        })
    }
}

/// The softmax that `where(is_nan(softmax), 0, softmax)` reads, if nothing else does.
fn unless_nan(graph: &Rewriter<'_>, weights: ValueId) -> Option<ValueId> {
    let choice = graph.inner(weights, &["where"])?;
    let &[Some(condition), Some(zero), Some(softmax)] = &choice.inputs[..] else { return None };
    let test = graph.inner(condition, &["is_nan"])?;
    let zero = graph.constant(zero).filter(|zero| zero.len() == 1 && number_of(zero) == Some(0.0))?;
    let rank = graph.builder.ty(softmax).extents()?.len();
    let is_softmax = graph.call(softmax).is_some_and(|call| call.operator.name == "softmax");
    let fits = test.inputs == [Some(softmax)] && graph.uses(softmax) == 2 && zero.rank() <= rank;
    (is_softmax && fits).then_some(softmax)
}

/// Scores and their mask. Where nothing masks them, the logits are the scores.
fn masked(graph: &Rewriter<'_>, logits: ValueId) -> Option<(ValueId, Option<Mask>)> {
    let Some(call) = graph.inner(logits, &["add", "where"]) else { return Some((logits, None)) };
    let is_score = |value: ValueId| {
        let (product, _) = scaled(graph, value, true);
        graph.inner(product, &["matmul", "fused_matmul"]).is_some() && graph.used_once(value)
    };
    let found = match (call.operator.name, &call.inputs[..]) {
        ("add", &[Some(left), Some(right)]) if is_score(left) => (left, Mask::Added(right)),
        ("add", &[Some(left), Some(right)]) if is_score(right) => (right, Mask::Added(left)),
        ("where", &[Some(condition), Some(yes), Some(no)]) => {
            let (score, other) = if is_score(no) { (no, yes) } else { (yes, no) };
            let number = graph.constant(other)?.clone();
            if number.len() != 1 || !is_score(score) || number_of(&number)? > SWALLOWS_SCORES {
                return None;
            }
            (score, Mask::Chosen { condition, masks_where: score == no, number })
        }
        _ => return None,
    };
    let of_mask = match &found.1 {
        Mask::Added(mask) => *mask,
        Mask::Chosen { condition, .. } => *condition,
    };
    may_broadcast_to(graph, of_mask, found.0)?.then_some((found.0, Some(found.1)))
}

/// Whether a value has no more dimensions than another one, and in none of them more elements, as far as extents are known.
fn may_broadcast_to(graph: &Rewriter<'_>, value: ValueId, other: ValueId) -> Option<bool> {
    let (own, other) = (graph.builder.ty(value).extents()?, graph.builder.ty(other).extents()?);
    let fits = |(own, other): (&SymInt, &SymInt)| match (own.as_constant(), other.as_constant()) {
        (Some(own), Some(other)) => own == 1 || own == other,
        (None, Some(other)) => other != 1,
        _ => true,
    };
    Some(own.len() <= other.len() && own.iter().rev().zip(other.iter().rev()).all(fits))
}

/// Splits a value into another value and a constant factor. With `alone`, only factors of values that nothing else uses are split off.
fn scaled(graph: &Rewriter<'_>, value: ValueId, alone: bool) -> (ValueId, f64) {
    let (mut value, mut factor) = (value, 1.0);
    while let Some((inner, own)) = one_factor(graph, value) {
        if alone && !graph.used_once(value) {
            break;
        }
        (value, factor) = (inner, factor * own);
    }
    (value, factor)
}

fn one_factor(graph: &Rewriter<'_>, value: ValueId) -> Option<(ValueId, f64)> {
    let call = graph.call(value)?;
    let &[Some(left), Some(right)] = &call.inputs[..] else { return None };
    let (inner, factor) = match call.operator.name {
        "mul" => match (graph.number(left), graph.number(right)) {
            (_, Some(factor)) => (left, factor),
            (Some(factor), None) => (right, factor),
            _ => return None,
        },
        "div" => (left, graph.number(right)?.recip()),
        _ => return None,
    };
    // A factor of higher rank would add dimensions.
    let extents = |value: ValueId| graph.builder.ty(value).extents();
    (factor.is_finite() && extents(inner)? == extents(value)?).then_some((inner, factor))
}

fn number_of(tensor: &HostTensor) -> Option<f64> {
    if tensor.element() == ElementType::String {
        return None;
    }
    tensor.cast(ElementType::F64).ok()?.as_slice::<f64>()?.first().copied()
}

fn zero_like(number: &HostTensor) -> HostTensor {
    HostTensor::scalar(0.0f32).cast(number.element()).expect("zero is a number of each type")
}

/// Looks through a transposition of the last two dimensions: its operand and `true`, or the value itself and `false`.
fn untransposed(graph: &Rewriter<'_>, value: ValueId) -> (ValueId, bool) {
    let source = || {
        let call = graph.call(value).filter(|call| call.operator.name == "transpose")?;
        let Some(Attribute::Ints(order)) = call.attributes.get("perm") else { return None };
        let rank = order.len();
        let mut expected: Vec<i64> = (0..rank as i64).collect();
        expected.swap(rank.checked_sub(2)?, rank - 1);
        (*order == expected).then_some(call.inputs[0]?)
    };
    source().map_or((value, false), |source| (source, true))
}
