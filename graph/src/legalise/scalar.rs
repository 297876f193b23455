//! Functions of single elements, as values of a definition.

use tilewright_core::build::Value;
use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, UnaryOp};

use crate::tensor::{ElementType, HostTensor};

/// A number of a type.
pub(super) fn number(dtype: DType, value: f64) -> Value {
    if dtype.is_float() { Value::typed_float(dtype, value) } else { Value::typed_int(dtype, value as i64) }
}

/// The only element of a tensor as a literal, where its type has literals.
pub(super) fn literal(tensor: &HostTensor) -> Option<Value> {
    let dtype = tensor.element().dtype()?;
    if tensor.element().is_float() {
        let wide = tensor.cast(ElementType::F64).ok()?;
        return Some(Value::typed_float(dtype, *wide.as_slice::<f64>()?.first()?));
    }
    // An integer of 64 bits without sign is stored by its bits, as literals are.
    let wide = tensor.cast(ElementType::I64).ok()?;
    Some(Value::typed_int(dtype, *wide.as_slice::<i64>()?.first()?))
}

/// The type in which elements of a type are computed with and summed up.
pub(super) fn computing(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    }
}

pub(crate) fn add(left: &Value, right: &Value) -> Value {
    left.binary(BinaryOp::Add, right.clone())
}

pub(crate) fn subtract(left: &Value, right: &Value) -> Value {
    left.binary(BinaryOp::Sub, right.clone())
}

pub(crate) fn multiply(left: &Value, right: &Value) -> Value {
    left.binary(BinaryOp::Mul, right.clone())
}

pub(crate) fn divide(left: &Value, right: &Value) -> Value {
    left.binary(BinaryOp::Div, right.clone())
}

pub(super) fn both(left: &Value, right: &Value) -> Value {
    left.binary(BinaryOp::And, right.clone())
}

pub(super) fn less(left: &Value, right: &Value) -> Value {
    left.binary(BinaryOp::Lt, right.clone())
}

/// A function of a number of a type that is computed with.
pub(crate) type Scalar = fn(&Value, DType) -> Value;

/// Zero for negative numbers; NaN stays.
pub(crate) fn relu(x: &Value, dtype: DType) -> Value {
    less(x, &number(dtype, 0.0)).select(number(dtype, 0.0), x.clone())
}

/// The smaller of two numbers. NaN wins.
pub(crate) fn smaller(x: &Value, y: &Value, dtype: DType) -> Value {
    x.binary(if dtype.is_float() { BinaryOp::Minimum } else { BinaryOp::Min }, y.clone())
}

/// The larger of two numbers. NaN wins.
pub(crate) fn larger(x: &Value, y: &Value, dtype: DType) -> Value {
    x.binary(if dtype.is_float() { BinaryOp::Maximum } else { BinaryOp::Max }, y.clone())
}

/// `x` between two bounds. NaN stays.
pub(super) fn clamp(x: &Value, low: f64, high: f64, dtype: DType) -> Value {
    let (low, high) = (number(dtype, low), number(dtype, high));
    let raised = less(x, &low).select(low.clone(), x.clone());
    less(&high, &raised).select(high, raised)
}

/// −1, 0 or 1; NaN stays.
pub(crate) fn sign(x: &Value, dtype: DType) -> Value {
    let zero = number(dtype, 0.0);
    let negative = less(x, &zero).select(number(dtype, -1.0), x.clone());
    less(&zero, x).select(number(dtype, 1.0), negative)
}

pub(crate) fn reciprocal(x: &Value, dtype: DType) -> Value {
    divide(&number(dtype, 1.0), x)
}

/// `ln(1 + exp(x))`, without overflow for large `x`.
pub(crate) fn softplus(x: &Value, dtype: DType) -> Value {
    let decay = x.unary(UnaryOp::Abs).unary(UnaryOp::Neg).unary(UnaryOp::Exp);
    add(&relu(x, dtype), &decay.unary(UnaryOp::Ln1p))
}

pub(crate) fn softsign(x: &Value, dtype: DType) -> Value {
    divide(x, &add(&number(dtype, 1.0), &x.unary(UnaryOp::Abs)))
}

/// The inverse of the hyperbolic sine. Squares of large numbers would overflow: there it is `ln(2·|x|)`.
pub(crate) fn asinh(x: &Value, dtype: DType) -> Value {
    let (one, size) = (number(dtype, 1.0), x.unary(UnaryOp::Abs));
    let square = multiply(&size, &size);
    let root = add(&square, &one).unary(UnaryOp::Sqrt);
    let near = add(&size, &divide(&square, &add(&root, &one))).unary(UnaryOp::Ln1p);
    let far = add(&size.unary(UnaryOp::Ln), &number(dtype, std::f64::consts::LN_2));
    let magnitude = less(&number(dtype, LARGE), &size).select(far, near);
    less(x, &number(dtype, 0.0)).select(magnitude.unary(UnaryOp::Neg), magnitude)
}

/// The inverse of the hyperbolic cosine; NaN below 1.
pub(crate) fn acosh(x: &Value, dtype: DType) -> Value {
    let above = subtract(x, &number(dtype, 1.0));
    let square = add(&multiply(&above, &above), &multiply(&above, &number(dtype, 2.0)));
    let near = add(&above, &square.unary(UnaryOp::Sqrt)).unary(UnaryOp::Ln1p);
    let far = add(&x.unary(UnaryOp::Ln), &number(dtype, std::f64::consts::LN_2));
    less(&number(dtype, LARGE), x).select(far, near)
}

/// The inverse of the hyperbolic tangent.
pub(crate) fn atanh(x: &Value, dtype: DType) -> Value {
    let ratio = divide(&multiply(x, &number(dtype, 2.0)), &subtract(&number(dtype, 1.0), x));
    multiply(&ratio.unary(UnaryOp::Ln1p), &number(dtype, 0.5))
}

/// Beyond this number, `x² + 1` is `x²` in `f64`, and its square is finite in `f32`.
const LARGE: f64 = 1e9;

pub(crate) fn mish(x: &Value, dtype: DType) -> Value {
    multiply(x, &softplus(x, dtype).unary(UnaryOp::Tanh))
}

pub(crate) fn hard_swish(x: &Value, dtype: DType) -> Value {
    let line = add(&multiply(x, &number(dtype, 1.0 / 6.0)), &number(dtype, 0.5));
    multiply(x, &clamp(&line, 0.0, 1.0, dtype))
}

pub(crate) fn gelu(x: &Value, dtype: DType) -> Value {
    let erf = multiply(x, &number(dtype, std::f64::consts::FRAC_1_SQRT_2)).unary(UnaryOp::Erf);
    multiply(&multiply(&number(dtype, 0.5), x), &add(&number(dtype, 1.0), &erf))
}

/// The approximation of GELU by a hyperbolic tangent (Hendrycks and Gimpel 2016).
pub(crate) fn gelu_by_tanh(x: &Value, dtype: DType) -> Value {
    let cube = multiply(&multiply(x, x), &multiply(x, &number(dtype, 0.044_715)));
    let inner = multiply(&number(dtype, (2.0 / std::f64::consts::PI).sqrt()), &add(x, &cube));
    multiply(&multiply(&number(dtype, 0.5), x), &add(&number(dtype, 1.0), &inner.unary(UnaryOp::Tanh)))
}

/// `alpha · (exp(x) − 1)` for negative numbers.
pub(super) fn elu(x: &Value, alpha: f64, dtype: DType) -> Value {
    let decay = multiply(&number(dtype, alpha), &x.unary(UnaryOp::ExpM1));
    less(x, &number(dtype, 0.0)).select(decay, x.clone())
}
