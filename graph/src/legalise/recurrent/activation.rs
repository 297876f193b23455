//! Activation functions of recurrent layers, as values of a definition.

use tilewright_core::build::Value;
use tilewright_core::dtype::DType;
use tilewright_core::expr::UnaryOp;

use crate::legalise::scalar::{add, clamp, elu, less, multiply, number, relu, softplus, softsign};
use crate::operator::Activation;

/// An activation of `x`.
pub(super) fn activate(activation: Activation, x: &Value, dtype: DType) -> Value {
    let constant = |value: f64| number(dtype, value);
    match activation {
        Activation::Sigmoid => x.unary(UnaryOp::Sigmoid),
        Activation::Tanh => x.unary(UnaryOp::Tanh),
        Activation::Relu => relu(x, dtype),
        Activation::Softsign => softsign(x, dtype),
        Activation::Softplus => softplus(x, dtype),
        Activation::Affine { alpha, beta } => add(&multiply(&constant(alpha), x), &constant(beta)),
        Activation::LeakyRelu { alpha } => {
            less(x, &constant(0.0)).select(multiply(&constant(alpha), x), x.clone())
        }
        Activation::ThresholdedRelu { alpha } => less(&constant(alpha), x).select(x.clone(), constant(0.0)),
        Activation::ScaledTanh { alpha, beta } => {
            multiply(&constant(alpha), &multiply(&constant(beta), x).unary(UnaryOp::Tanh))
        }
        Activation::HardSigmoid { alpha, beta } => {
            clamp(&add(&multiply(&constant(alpha), x), &constant(beta)), 0.0, 1.0, dtype)
        }
        Activation::Elu { alpha } => elu(x, alpha, dtype),
    }
}
