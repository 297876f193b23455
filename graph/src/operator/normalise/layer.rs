//! Normalisations of the innermost dimensions.

use crate::deduce;
use crate::legalise::normalisation;
use crate::operator::attribute::{FloatOr, IntOr};
use crate::operator::evaluate::{axis, refuse};
use crate::operator::normalise::moments;
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{HostTensor, Number, Places, broadcast_shapes, with_float};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("layer_normalization", "LayerNormalization", |a| {
        normalised(
            a,
            a.tensor(0)?,
            [a.optional(1)?, a.optional(2)?],
            a.int_or_default("axis"),
            Moments::MeanAndVariance,
        )
    })
    .legalise(normalisation::layer)
    .deduce(deduce::same)
    .inputs(2, 3)
    .outputs(1, 3)
    .attributes(&[("axis", IntOr(-1)), ("epsilon", FloatOr(1e-5)), ("stash_type", IntOr(1))]),
    Operator::new("rms_normalization", "RMSNormalization", |a| {
        normalised(a, a.tensor(0)?, [a.optional(1)?, None], a.int_or_default("axis"), Moments::Square)
    })
    .legalise(normalisation::root_mean_square)
    .deduce(deduce::same)
    .inputs(2, 2)
    .attributes(&[("axis", IntOr(-1)), ("epsilon", FloatOr(1e-5)), ("stash_type", IntOr(1))]),
];

/// The moments that elements are normalised by.
#[derive(Clone, Copy, PartialEq)]
enum Moments {
    /// Mean and variance.
    MeanAndVariance,
    /// The mean of squares, with no mean taken away.
    Square,
}

/// The normalised tensor, then the mean and the inverse deviation of each row.
fn normalised(
    arguments: &Arguments<'_>,
    x: &HostTensor,
    [scale, bias]: [Option<&HostTensor>; 2],
    number: i64,
    kind: Moments,
) -> Result<Vec<Value>, Fault> {
    let dimension = axis(number, x.rank())?;
    let run: usize = x.shape()[dimension..].iter().product();
    let epsilon = arguments.float_or_default("epsilon");
    with_float!(x.element(), T => {
        let parameter = |tensor: Option<&HostTensor>, default: f64| -> Result<Vec<f64>, Fault> {
            let Some(tensor) = tensor else { return Ok(vec![default; x.len()]) };
            if broadcast_shapes(x.shape(), tensor.shape()).as_deref() != Ok(x.shape()) {
                refuse!("a parameter of shape {:?} does not broadcast to {:?}", tensor.shape(), x.shape());
            }
            let elements = tensor.expect::<T>()?;
            Ok(Places::broadcast(x.shape(), tensor.shape()).map(|place| elements[place].widen()).collect())
        };
        let (scale, bias) = (parameter(scale, 1.0)?, parameter(bias, 0.0)?);
        let (mut elements, mut means, mut deviations) = (Vec::with_capacity(x.len()), Vec::new(), Vec::new());
        for row in x.expect::<T>()?.chunks(run.max(1)) {
            let values = row.iter().map(|x| x.widen());
            let (mean, variance) = match kind {
                Moments::MeanAndVariance => moments(values),
                Moments::Square => (0.0, moments(values.map(|x| x * x)).0),
            };
            let inverse = (variance + epsilon).sqrt().recip();
            for x in row {
                let place = elements.len();
                elements.push(T::narrow((x.widen() - mean) * inverse * scale[place] + bias[place]));
            }
            means.push(mean as f32);
            deviations.push(inverse as f32);
        }
        let kept: Vec<usize> =
            x.shape().iter().enumerate().map(|(place, &extent)| if place < dimension { extent } else { 1 }).collect();
        let statistics = |values: Vec<f32>| Ok::<Value, Fault>(HostTensor::new(&kept, values)?.into());
        Ok(vec![HostTensor::new(x.shape(), elements)?.into(), statistics(means)?, statistics(deviations)?])
    }, else refuse!("expected floating-point elements, found {}", x.element()))
}
