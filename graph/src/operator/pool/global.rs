//! Pooling over all spatial dimensions.

use crate::deduce;
use crate::legalise::reduction::{self, Reduction};
use crate::operator::attribute::IntOr;
use crate::operator::evaluate::{one, refuse};
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{HostTensor, Number, with_float};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("global_average_pool", "GlobalAveragePool", |a| {
        over_planes(a, |plane| plane.iter().sum::<f64>() / plane.len() as f64)
    })
    .legalise(|e, o| reduction::global(e, o, Reduction::Mean))
    .deduce(deduce::global_pool),
    Operator::new("global_max_pool", "GlobalMaxPool", |a| {
        over_planes(a, |plane| plane.iter().fold(f64::NEG_INFINITY, |largest, &x| largest.larger(x)))
    })
    .legalise(|e, o| reduction::global(e, o, Reduction::Largest))
    .deduce(deduce::global_pool),
    Operator::new("global_lp_pool", "GlobalLpPool", |a| {
        let order = a.int_or_default("p") as f64;
        over_planes(a, |plane| plane.iter().map(|x| x.abs().powf(order)).sum::<f64>().powf(order.recip()))
    })
    .deduce(deduce::global_pool)
    .attributes(&[("p", IntOr(2))]),
];

fn over_planes(arguments: &Arguments<'_>, function: impl Fn(&[f64]) -> f64) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let &[batch, channels, ref input @ ..] = x.shape() else {
        refuse!("expected batch and channels, found shape {:?}", x.shape())
    };
    let plane: usize = input.iter().product();
    if plane == 0 {
        refuse!("there is nothing to be pooled in shape {:?}", x.shape());
    }
    with_float!(x.element(), T => {
        let wide: Vec<f64> = x.expect::<T>()?.iter().map(|x| x.widen()).collect();
        let values = wide.chunks_exact(plane).map(|plane| T::narrow(function(plane))).collect();
        let shape: Vec<usize> = [batch, channels].into_iter().chain(input.iter().map(|_| 1)).collect();
        one(HostTensor::new(&shape, values)?)
    }, else refuse!("expected floating-point elements, found {}", x.element()))
}
