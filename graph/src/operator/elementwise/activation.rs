//! Activation functions.

use tilewright_core::expr::UnaryOp;

use crate::deduce;
use crate::legalise::{pointwise, scalar};
use crate::operator::attribute::{FloatOr, TextOr};
use crate::operator::elementwise::binary::broadcast;
use crate::operator::elementwise::unary::float;
use crate::operator::evaluate::{one, refuse};
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{Number, with_float, with_number};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("sigmoid", "Sigmoid", |a| float(a, sigmoid))
        .legalise(|e, o| pointwise::unary(e, o, UnaryOp::Sigmoid))
        .deduce(deduce::same),
    Operator::new("softplus", "Softplus", |a| float(a, softplus))
        .legalise(|e, o| pointwise::float(e, o, scalar::softplus))
        .deduce(deduce::same),
    Operator::new("softsign", "Softsign", |a| float(a, |x| x / (1.0 + x.abs())))
        .legalise(|e, o| pointwise::float(e, o, scalar::softsign))
        .deduce(deduce::same),
    Operator::new("mish", "Mish", |a| float(a, |x| x * softplus(x).tanh()))
        .legalise(|e, o| pointwise::float(e, o, scalar::mish))
        .deduce(deduce::same),
    Operator::new("hard_swish", "HardSwish", |a| float(a, |x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0)))
        .legalise(|e, o| pointwise::float(e, o, scalar::hard_swish))
        .deduce(deduce::same),
    Operator::new("elu", "Elu", |a| {
        let alpha = a.float_or_default("alpha");
        float(a, |x| if x < 0.0 { alpha * x.exp_m1() } else { x })
    })
    .legalise(pointwise::exponential_unit)
    .deduce(deduce::same)
    .attributes(&[("alpha", FloatOr(1.0))]),
    Operator::new("celu", "Celu", |a| {
        let alpha = a.float_or_default("alpha");
        float(a, |x| x.max(0.0) + (alpha * (x / alpha).exp_m1()).min(0.0))
    })
    .legalise(pointwise::celu)
    .deduce(deduce::same)
    .attributes(&[("alpha", FloatOr(1.0))]),
    Operator::new("selu", "Selu", |a| {
        let (alpha, gamma) = (a.float_or_default("alpha"), a.float_or_default("gamma"));
        float(a, |x| gamma * if x > 0.0 { x } else { alpha * x.exp_m1() })
    })
    .legalise(pointwise::selu)
    .deduce(deduce::same)
    .attributes(&[("alpha", FloatOr(1.673_263_2)), ("gamma", FloatOr(1.050_701))]),
    Operator::new("leaky_relu", "LeakyRelu", |a| {
        let alpha = a.float_or_default("alpha");
        float(a, |x| if x < 0.0 { alpha * x } else { x })
    })
    .legalise(pointwise::leaky_relu)
    .deduce(deduce::same)
    .attributes(&[("alpha", FloatOr(0.01))]),
    Operator::new("thresholded_relu", "ThresholdedRelu", |a| {
        let alpha = a.float_or_default("alpha");
        float(a, |x| if x > alpha { x } else { 0.0 })
    })
    .legalise(pointwise::thresholded_relu)
    .deduce(deduce::same)
    .attributes(&[("alpha", FloatOr(1.0))]),
    Operator::new("hard_sigmoid", "HardSigmoid", |a| {
        let (alpha, beta) = (a.float_or_default("alpha"), a.float_or_default("beta"));
        float(a, |x| (alpha * x + beta).clamp(0.0, 1.0))
    })
    .legalise(pointwise::hard_sigmoid)
    .deduce(deduce::same)
    .attributes(&[("alpha", FloatOr(0.2)), ("beta", FloatOr(0.5))]),
    Operator::new("swish", "Swish", |a| {
        let alpha = a.float_or_default("alpha");
        float(a, |x| x * sigmoid(alpha * x))
    })
    .legalise(pointwise::swish)
    .deduce(deduce::same)
    .attributes(&[("alpha", FloatOr(1.0))]),
    Operator::new("gelu", "Gelu", |a| match a.text("approximate") {
        "none" => float(a, gelu),
        "tanh" => float(a, gelu_by_tanh),
        other => refuse!("attribute approximate must be none or tanh, not {other}"),
    })
    .legalise(pointwise::gelu)
    .deduce(deduce::same)
    .attributes(&[("approximate", TextOr("none"))]),
    Operator::new("fast_gelu", "FastGelu", fast_gelu)
        .legalise(|e, o| pointwise::biased(e, o, scalar::gelu_by_tanh))
        .deduce(deduce::same)
        .inputs(1, 2)
        .domain("com.microsoft"),
    Operator::new("quick_gelu", "QuickGelu", |a| {
        let alpha = a.float_or_default("alpha");
        float(a, |x| x * sigmoid(alpha * x))
    })
    .legalise(pointwise::swish)
    .deduce(deduce::same)
    .attributes(&[("alpha", FloatOr(1.702))])
    .domain("com.microsoft"),
    Operator::new("bias_gelu", "BiasGelu", bias_gelu)
        .legalise(|e, o| pointwise::biased(e, o, scalar::gelu))
        .deduce(deduce::same)
        .inputs(2, 2)
        .domain("com.microsoft"),
    Operator::new("prelu", "PRelu", prelu).legalise(pointwise::prelu).deduce(deduce::same).inputs(2, 2),
    Operator::new("shrink", "Shrink", shrink)
        .deduce(deduce::same)
        .attributes(&[("bias", FloatOr(0.0)), ("lambd", FloatOr(0.5))]),
];

/// `1 / (1 + exp(-x))`
pub(crate) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// `ln(1 + exp(x))`, without overflow for large `x`.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + libm::erf(x * std::f64::consts::FRAC_1_SQRT_2))
}

/// The approximation of GELU by a hyperbolic tangent (Hendrycks and Gimpel 2016).
fn gelu_by_tanh(x: f64) -> f64 {
    let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3));
    0.5 * x * (1.0 + inner.tanh())
}

fn fast_gelu(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    match arguments.optional(1)? {
        None => float(arguments, gelu_by_tanh),
        Some(_) => biased(arguments, gelu_by_tanh),
    }
}

fn bias_gelu(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    biased(arguments, gelu)
}

/// A function of the sum of both inputs.
fn biased(arguments: &Arguments<'_>, function: fn(f64) -> f64) -> Result<Vec<Value>, Fault> {
    let (x, bias) = (arguments.tensor(0)?, arguments.tensor(1)?);
    with_float!(x.element(), T => {
        one(broadcast::<T, T, T>(x, bias, |x, bias| Ok(T::narrow(function(x.widen() + bias.widen()))))?)
    }, else refuse!("expected floating-point elements, found {}", x.element()))
}

fn prelu(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (x, slope) = (arguments.tensor(0)?, arguments.tensor(1)?);
    with_number!(x.element(), T => {
        one(broadcast::<T, T, T>(x, slope, |&x, &slope| {
            Ok(if x < T::default() { x.multiply(slope) } else { x })
        })?)
    }, else refuse!("expected numbers, found {}", x.element()))
}

fn shrink(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let (bias, limit) = (arguments.float_or_default("bias"), arguments.float_or_default("lambd"));
    let apply = |x: f64| match x {
        x if x < -limit => x + bias,
        x if x > limit => x - bias,
        _ => 0.0,
    };
    with_number!(x.element(), T => {
        let elements = x.expect::<T>()?.iter().map(|x| T::from_f64(apply(x.to_f64()))).collect();
        one(crate::tensor::HostTensor::new(x.shape(), elements)?)
    }, else refuse!("expected numbers, found {}", x.element()))
}
