//! Normalisation by neighbouring channels.

use crate::deduce;
use crate::legalise::local;
use crate::operator::attribute::{FloatOr, IntOr};
use crate::operator::evaluate::{one, refuse};
use crate::operator::lanes::map_lanes;
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{Number, with_float};

pub(super) const OPERATORS: &[Operator] =
    &[Operator::new("local_response_normalization", "LRN", local_response)
        .legalise(local::local_response)
        .deduce(deduce::same)
        .attributes(&[
            ("alpha", FloatOr(1e-4)),
            ("beta", FloatOr(0.75)),
            ("bias", FloatOr(1.0)),
            ("size", IntOr(1)),
        ])];

fn local_response(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    if x.rank() < 2 {
        refuse!("expected batch and channels, found shape {:?}", x.shape());
    }
    let number = |name| arguments.float_or_default(name);
    let (alpha, beta, bias) = (number("alpha"), number("beta"), number("bias"));
    let size = usize::try_from(arguments.int_or_default("size")).unwrap_or(0).max(1);
    let (before, after) = ((size - 1) / 2, size / 2);
    with_float!(x.element(), T => one(map_lanes::<T, T>(x, 1, x.shape()[1], |lane| {
        let normal = |channel: usize| {
            let near = &lane[channel.saturating_sub(before)..(channel + after + 1).min(lane.len())];
            let squares: f64 = near.iter().map(|x| x.widen() * x.widen()).sum();
            T::narrow(lane[channel].widen() / (bias + alpha / size as f64 * squares).powf(beta))
        };
        Ok((0..lane.len()).map(normal).collect())
    })?), else refuse!("expected floating-point elements, found {}", x.element()))
}
