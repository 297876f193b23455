//! Attention: for each query, the mean of values weighted by the softmax of its products with keys.

use crate::deduce;
use crate::legalise::attention;
use crate::operator::attribute::{FloatOr, IntOr};
use crate::operator::evaluate::{one, refuse};
use crate::operator::linear::matmul::matmul_wide;
use crate::operator::select::transpose;
use crate::operator::{Arguments, Fault, OWN_DOMAIN, Operator, ResultOrder};
use crate::tensor::{HostTensor, Number, Places, broadcast_shapes, with_float};

/// Inputs: queries `[…, R, D]`, keys `[…, C, D]`, values `[…, C, E]`, and a mask that broadcasts to `[…, R, C]` and is added to the
/// scaled products. The result is `[…, R, E]`.
pub(super) const OPERATORS: &[Operator] = &[Operator::new("attention", "Attention", |a| {
    with_float!(a.tensor(0)?.element(), T => one(attention::<T>(a)?),
        else refuse!("expected floating-point elements, found {}", a.tensor(0)?.element()))
})
.domain(OWN_DOMAIN)
.legalise(attention::attention)
// Means of values lie as the queries do: what splits heads before often joins them behind.
.result_order(ResultOrder::FirstOperand)
.deduce(deduce::attention)
.inputs(3, 4)
.attributes(&[
    // The factor of the products of queries and keys.
    ("scale", FloatOr(1.0)),
    // Whether keys are `[…, D, C]`.
    ("keys_transposed", IntOr(0)),
    // Whether a query whose keys are all masked by -∞ gives zeros, and not NaN.
    ("zero_if_masked", IntOr(0)),
    // Whether a query whose softmax is NaN gives zeros: all its keys are masked by -∞, or a product is NaN or ∞.
    ("zero_if_nan", IntOr(0)),
])];

/// A tensor's numbers, with its shape.
type Wide = (Vec<f64>, Vec<usize>);

fn widen<T: Number<Wide = f64>>(tensor: &HostTensor) -> Result<Wide, Fault> {
    Ok((tensor.expect::<T>()?.iter().map(|x| x.widen()).collect(), tensor.shape().to_vec()))
}

fn attention<T: Number<Wide = f64>>(arguments: &Arguments<'_>) -> Result<HostTensor, Fault> {
    let mut keys = arguments.tensor(1)?.clone();
    let rank = keys.rank();
    if [arguments.tensor(0)?.rank(), rank, arguments.tensor(2)?.rank()].iter().any(|&rank| rank < 2) {
        refuse!("queries, keys and values must be stacks of matrices");
    }
    if !arguments.flag("keys_transposed") {
        let mut order: Vec<usize> = (0..rank).collect();
        order.swap(rank - 2, rank - 1);
        keys = transpose(&keys, &order)?;
    }
    let (queries, query_shape) = widen::<T>(arguments.tensor(0)?)?;
    let (keys, key_shape) = widen::<T>(&keys)?;
    let (mut weights, shape) = matmul_wide((&queries[..], &query_shape), (&keys[..], &key_shape))?;
    let scale = arguments.float_or_default("scale");
    weights.iter_mut().for_each(|product| *product *= scale);
    let (mut weights, shape) = match arguments.optional(3)? {
        None => (weights, shape),
        Some(mask) => {
            let (mask, mask_shape) = widen::<T>(mask)?;
            let all = broadcast_shapes(&shape, &mask_shape)?;
            let places = Places::broadcast(&all, &shape).zip(Places::broadcast(&all, &mask_shape));
            (places.map(|(own, other)| weights[own] + mask[other]).collect(), all.clone())
        }
    };
    let columns = shape.last().copied().unwrap_or(0);
    if columns > 0 {
        weights.chunks_exact_mut(columns).for_each(|row| softmax(row, arguments.flag("zero_if_masked")));
    }
    let (values, value_shape) = widen::<T>(arguments.tensor(2)?)?;
    let product = |weights: &[f64], values: &[f64]| matmul_wide((weights, &shape), (values, &value_shape));
    let (mut result, result_shape) = product(&weights, &values)?;
    if arguments.flag("zero_if_nan") {
        let nans: Vec<f64> = weights.iter().map(|weight| f64::from(weight.is_nan())).collect();
        let (nans, _) = product(&nans, &vec![1.0; values.len()])?;
        result.iter_mut().zip(nans).filter(|(_, nans)| *nans > 0.0).for_each(|(mean, _)| *mean = 0.0);
    }
    Ok(HostTensor::new(&result_shape, result.into_iter().map(T::narrow).collect())?)
}

fn softmax(row: &mut [f64], zero_if_masked: bool) {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if zero_if_masked && largest == f64::NEG_INFINITY {
        row.fill(0.0);
        return;
    }
    row.iter_mut().for_each(|x| *x = (*x - largest).exp());
    let sum: f64 = row.iter().sum();
    row.iter_mut().for_each(|x| *x /= sum);
}
