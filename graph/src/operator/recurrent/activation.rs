//! Activation functions that recurrent layers name.

use crate::operator::evaluate::refuse;
use crate::operator::{Arguments, Fault};

/// A function of one number, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Activation {
    Sigmoid,
    Tanh,
    Relu,
    Softsign,
    Softplus,
    Affine { alpha: f64, beta: f64 },
    LeakyRelu { alpha: f64 },
    ThresholdedRelu { alpha: f64 },
    ScaledTanh { alpha: f64, beta: f64 },
    HardSigmoid { alpha: f64, beta: f64 },
    Elu { alpha: f64 },
}

impl Activation {
    /// The activation of a name. One with parameters takes the next ones of the lists, or its defaults.
    fn find(
        name: &str,
        alphas: &mut dyn Iterator<Item = f64>,
        betas: &mut dyn Iterator<Item = f64>,
    ) -> Result<Self, Fault> {
        let mut alpha = |default: f64| alphas.next().unwrap_or(default);
        let mut beta = |default: f64| betas.next().unwrap_or(default);
        Ok(match &name.to_ascii_lowercase()[..] {
            "sigmoid" => Activation::Sigmoid,
            "tanh" => Activation::Tanh,
            "relu" => Activation::Relu,
            "softsign" => Activation::Softsign,
            "softplus" => Activation::Softplus,
            "affine" => Activation::Affine { alpha: alpha(1.0), beta: beta(0.0) },
            "leakyrelu" => Activation::LeakyRelu { alpha: alpha(0.01) },
            "thresholdedrelu" => Activation::ThresholdedRelu { alpha: alpha(1.0) },
            "scaledtanh" => Activation::ScaledTanh { alpha: alpha(1.0), beta: beta(1.0) },
            "hardsigmoid" => Activation::HardSigmoid { alpha: alpha(0.2), beta: beta(0.5) },
            "elu" => Activation::Elu { alpha: alpha(1.0) },
            _ => refuse!("activation {name} is not known"),
        })
    }

    /// The function's value.
    pub(super) fn apply(self, x: f64) -> f64 {
        match self {
            Activation::Sigmoid => crate::operator::elementwise::sigmoid(x),
            Activation::Tanh => x.tanh(),
            Activation::Relu => {
                if x < 0.0 {
                    0.0
                } else {
                    x
                }
            }
            Activation::Softsign => x / (1.0 + x.abs()),
            Activation::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
            Activation::Affine { alpha, beta } => alpha * x + beta,
            Activation::LeakyRelu { alpha } => {
                if x < 0.0 {
                    alpha * x
                } else {
                    x
                }
            }
            Activation::ThresholdedRelu { alpha } => {
                if x > alpha {
                    x
                } else {
                    0.0
                }
            }
            Activation::ScaledTanh { alpha, beta } => alpha * (beta * x).tanh(),
            Activation::HardSigmoid { alpha, beta } => (alpha * x + beta).clamp(0.0, 1.0),
            Activation::Elu { alpha } => {
                if x < 0.0 {
                    alpha * x.exp_m1()
                } else {
                    x
                }
            }
        }
    }
}

/// The activations of each direction: those of the attributes, or `defaults` repeated.
pub(crate) fn activations(
    arguments: &Arguments<'_>,
    directions: usize,
    defaults: &[&str],
) -> Result<Vec<Vec<Activation>>, Fault> {
    let count = directions * defaults.len();
    let names: Vec<&str> = match arguments.texts("activations") {
        Some(names) if names.len() == count => names.iter().map(|name| &**name).collect(),
        Some(names) => refuse!("there must be {count} activations, not {}", names.len()),
        None => defaults.iter().cycle().take(count).copied().collect(),
    };
    let numbers = |name: &str| {
        arguments.floats(name).unwrap_or_default().iter().copied().map(f64::from).collect::<Vec<_>>()
    };
    let (alphas, betas) = (numbers("activation_alpha"), numbers("activation_beta"));
    let (mut alphas, mut betas) = (alphas.into_iter(), betas.into_iter());
    let found = names
        .iter()
        .map(|name| Activation::find(name, &mut alphas, &mut betas))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(found.chunks(defaults.len()).map(<[Activation]>::to_vec).collect())
}
