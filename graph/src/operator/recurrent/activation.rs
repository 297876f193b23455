//! Activation functions that recurrent layers name.

use crate::operator::evaluate::refuse;
use crate::operator::{Arguments, Fault};

/// A function of one number.
pub(super) type Activation = Box<dyn Fn(f64) -> f64>;

/// The activations of each direction: those of the attributes, or `defaults` repeated.
pub(super) fn read(
    arguments: &Arguments<'_>,
    directions: usize,
    defaults: &[&str],
) -> Result<Vec<Vec<Activation>>, Fault> {
    let names: Vec<String> = match arguments.texts("activations") {
        Some(names) if names.len() == directions * defaults.len() => {
            names.iter().map(|name| name.to_string()).collect()
        }
        Some(names) => {
            refuse!("there must be {} activations, not {}", directions * defaults.len(), names.len())
        }
        None => {
            defaults.iter().cycle().take(directions * defaults.len()).map(|name| (*name).to_owned()).collect()
        }
    };
    let mut alphas = arguments.floats("activation_alpha").unwrap_or_default().iter().copied().map(f64::from);
    let mut betas = arguments.floats("activation_beta").unwrap_or_default().iter().copied().map(f64::from);
    let activations =
        names.iter().map(|name| find(name, &mut alphas, &mut betas)).collect::<Result<Vec<_>, _>>()?;
    let mut directions = Vec::new();
    let mut rest = activations.into_iter().peekable();
    while rest.peek().is_some() {
        directions.push(rest.by_ref().take(defaults.len()).collect());
    }
    Ok(directions)
}

/// An activation by name. An activation with parameters takes the next ones of the lists, or its defaults.
fn find(
    name: &str,
    alphas: &mut dyn Iterator<Item = f64>,
    betas: &mut dyn Iterator<Item = f64>,
) -> Result<Activation, Fault> {
    let mut alpha = |default: f64| alphas.next().unwrap_or(default);
    let mut beta = |default: f64| betas.next().unwrap_or(default);
    Ok(match &name.to_ascii_lowercase()[..] {
        "sigmoid" => Box::new(crate::operator::elementwise::sigmoid),
        "tanh" => Box::new(f64::tanh),
        "relu" => Box::new(|x| x.max(0.0)),
        "softsign" => Box::new(|x| x / (1.0 + x.abs())),
        "softplus" => Box::new(|x| x.max(0.0) + (-x.abs()).exp().ln_1p()),
        "affine" => {
            let (alpha, beta) = (alpha(1.0), beta(0.0));
            Box::new(move |x| alpha * x + beta)
        }
        "leakyrelu" => {
            let alpha = alpha(0.01);
            Box::new(move |x| if x < 0.0 { alpha * x } else { x })
        }
        "thresholdedrelu" => {
            let alpha = alpha(1.0);
            Box::new(move |x| if x > alpha { x } else { 0.0 })
        }
        "scaledtanh" => {
            let (alpha, beta) = (alpha(1.0), beta(1.0));
            Box::new(move |x| alpha * (beta * x).tanh())
        }
        "hardsigmoid" => {
            let (alpha, beta) = (alpha(0.2), beta(0.5));
            Box::new(move |x| (alpha * x + beta).clamp(0.0, 1.0))
        }
        "elu" => {
            let alpha = alpha(1.0);
            Box::new(move |x| if x < 0.0 { alpha * x.exp_m1() } else { x })
        }
        _ => refuse!("activation {name} is not known"),
    })
}
