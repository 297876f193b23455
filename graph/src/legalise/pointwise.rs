//! Operators that compute each element from one element of each input.

use tilewright_core::build::{KernelBuilder, Value};
use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, UnaryOp};

use crate::legalise::emitter::{Emitter, Tensor};
use crate::legalise::operands::Operands;
use crate::legalise::scalar::{
    Scalar, add, both, clamp, computing, elu, larger, less, multiply, number, smaller, subtract,
};
use crate::legalise::{Unsupported, integer, scalar, unsupported};
use crate::symbolic::SymInt;
use crate::tensor::ElementType;

type Emitted = Result<Vec<Tensor>, Unsupported>;

/// The extents that shapes broadcast to.
pub(super) fn broadcast_extents(shapes: &[&[SymInt]]) -> Result<Vec<SymInt>, Unsupported> {
    let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut extents = vec![SymInt::from(1); rank];
    for shape in shapes {
        for (extent, own) in extents[rank - shape.len()..].iter_mut().zip(*shape) {
            if extent.is(1) {
                *extent = own.clone();
            } else if !own.is(1) && own != extent {
                unsupported!("whether extents {extent} and {own} are equal depends on the call");
            }
        }
    }
    Ok(extents)
}

/// The element of a tensor that takes part at a place of the shape that it broadcasts to.
pub(super) fn broadcast_load(builder: &KernelBuilder, tensor: &Tensor, indices: &[Value]) -> Value {
    let own = &indices[indices.len() - tensor.rank()..];
    let index = |(extent, index): (&SymInt, &Value)| if extent.is(1) { Value::int(0) } else { index.clone() };
    let places: Vec<Value> = tensor.extents.iter().zip(own).map(index).collect();
    tensor.at(builder, &places)
}

/// Computes each element of the result from the elements of the inputs that broadcasting brings together.
pub(super) fn broadcast(
    emitter: &mut Emitter,
    inputs: &[Tensor],
    element: ElementType,
    function: &dyn Fn(&[Value]) -> Value,
) -> Result<Tensor, Unsupported> {
    let shapes: Vec<&[SymInt]> = inputs.iter().map(|input| &input.extents[..]).collect();
    let extents = broadcast_extents(&shapes)?;
    emitter.compute(element, &extents, &mut |builder, indices| {
        let values: Vec<Value> = inputs.iter().map(|input| broadcast_load(builder, input, indices)).collect();
        function(&values)
    })
}

/// As [`broadcast`], for numbers of one type: they are computed with in a type that is exact enough.
fn numbers(
    emitter: &mut Emitter,
    inputs: &[Tensor],
    function: &dyn Fn(&[Value], DType) -> Value,
) -> Result<Tensor, Unsupported> {
    let (element, dtype) = (inputs[0].element, inputs[0].dtype);
    if let Some(other) = inputs.iter().find(|input| input.element != element) {
        unsupported!("elements of types {element} and {} meet", other.element);
    }
    let wide = computing(dtype);
    broadcast(emitter, inputs, element, &|values| {
        let values: Vec<Value> = values.iter().map(|value| cast(value, dtype, wide)).collect();
        cast(&function(&values, wide), wide, dtype)
    })
}

fn cast(value: &Value, from: DType, to: DType) -> Value {
    if from == to { value.clone() } else { value.cast(to) }
}

fn all(emitter: &mut Emitter, operands: &Operands<'_>) -> Result<Vec<Tensor>, Unsupported> {
    (0..operands.len()).map(|place| operands.tensor(emitter, place)).collect()
}

fn require_float(tensor: &Tensor) -> Result<(), Unsupported> {
    if !tensor.dtype.is_float() {
        unsupported!("elements of type {} are no floats", tensor.element);
    }
    Ok(())
}

/// A function of one floating-point number.
pub(crate) fn float(emitter: &mut Emitter, operands: &Operands<'_>, function: Scalar) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    require_float(&x)?;
    Ok(vec![numbers(emitter, &[x], &|x, dtype| function(&x[0], dtype))?])
}

/// A function of one floating-point number that is an operator of programs.
pub(crate) fn unary(emitter: &mut Emitter, operands: &Operands<'_>, op: UnaryOp) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    require_float(&x)?;
    Ok(vec![numbers(emitter, &[x], &|x, _| x[0].unary(op))?])
}

/// A function of one number of any type.
pub(crate) fn any_number(emitter: &mut Emitter, operands: &Operands<'_>, function: Scalar) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    if x.dtype == DType::Bool {
        unsupported!("truth values are no numbers");
    }
    Ok(vec![numbers(emitter, &[x], &|x, dtype| function(&x[0], dtype))?])
}

/// A function of one floating-point number and an attribute that is a number.
pub(crate) fn with_number(
    emitter: &mut Emitter,
    operands: &Operands<'_>,
    attribute: &str,
    function: fn(&Value, f64, DType) -> Value,
) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    require_float(&x)?;
    let parameter = operands.float(attribute);
    Ok(vec![numbers(emitter, &[x], &|x, dtype| function(&x[0], parameter, dtype))?])
}

pub(crate) fn leaky_relu(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    with_number(emitter, operands, "alpha", |x, alpha, dtype| {
        less(x, &number(dtype, 0.0)).select(multiply(&number(dtype, alpha), x), x.clone())
    })
}

pub(crate) fn thresholded_relu(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    with_number(emitter, operands, "alpha", |x, alpha, dtype| {
        less(&number(dtype, alpha), x).select(x.clone(), number(dtype, 0.0))
    })
}

pub(crate) fn exponential_unit(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    with_number(emitter, operands, "alpha", elu)
}

pub(crate) fn celu(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    with_number(emitter, operands, "alpha", |x, alpha, dtype| {
        let decay = scalar::divide(x, &number(dtype, alpha)).unary(UnaryOp::ExpM1);
        let decay = multiply(&number(dtype, alpha), &decay);
        less(x, &number(dtype, 0.0)).select(decay, x.clone())
    })
}

pub(crate) fn selu(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    require_float(&x)?;
    let (alpha, gamma) = (operands.float("alpha"), operands.float("gamma"));
    let function = |x: &[Value], dtype| multiply(&number(dtype, gamma), &elu(&x[0], alpha, dtype));
    Ok(vec![numbers(emitter, &[x], &function)?])
}

pub(crate) fn hard_sigmoid(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    require_float(&x)?;
    let (alpha, beta) = (operands.float("alpha"), operands.float("beta"));
    let function = |x: &[Value], dtype| {
        let line = add(&multiply(&number(dtype, alpha), &x[0]), &number(dtype, beta));
        clamp(&line, 0.0, 1.0, dtype)
    };
    Ok(vec![numbers(emitter, &[x], &function)?])
}

/// `x · sigmoid(alpha · x)`
pub(crate) fn swish(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    with_number(emitter, operands, "alpha", |x, alpha, dtype| {
        multiply(x, &multiply(&number(dtype, alpha), x).unary(UnaryOp::Sigmoid))
    })
}

pub(crate) fn gelu(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    match operands.text("approximate") {
        "none" => float(emitter, operands, scalar::gelu),
        "tanh" => float(emitter, operands, scalar::gelu_by_tanh),
        other => unsupported!("attribute approximate must be none or tanh, not {other}"),
    }
}

/// A function of the sum of both inputs, of which the second may be left out.
pub(crate) fn biased(emitter: &mut Emitter, operands: &Operands<'_>, function: Scalar) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    require_float(&x)?;
    let inputs = match operands.optional(emitter, 1)? {
        None => vec![x],
        Some(bias) => vec![x, bias],
    };
    let of_sum = |values: &[Value], dtype| match values {
        [x, bias] => function(&add(x, bias), dtype),
        values => function(&values[0], dtype),
    };
    Ok(vec![numbers(emitter, &inputs, &of_sum)?])
}

/// An operator of programs on two numbers.
pub(crate) fn binary(emitter: &mut Emitter, operands: &Operands<'_>, op: BinaryOp) -> Emitted {
    let inputs = all(emitter, operands)?;
    if inputs.iter().any(|input| input.dtype == DType::Bool) {
        unsupported!("truth values are no numbers");
    }
    Ok(vec![numbers(emitter, &inputs, &|values, _| values[0].binary(op, values[1].clone()))?])
}

/// A quotient.
pub(crate) fn divide(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    if operands.tensor(emitter, 0)?.dtype.is_float() {
        return binary(emitter, operands, BinaryOp::Div);
    }
    integer::divide(emitter, operands)
}

/// A power of floats. Constant exponents that are frequent become products and roots.
pub(crate) fn power(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let (base, exponent) = (operands.tensor(emitter, 0)?, operands.tensor(emitter, 1)?);
    require_float(&base)?;
    let (dtype, wide) = (base.dtype, computing(base.dtype));
    let known = operands.contents(1).ok().flatten().filter(|contents| contents.len() == 1);
    let known = known.and_then(|contents| contents.cast(ElementType::F64).ok());
    let known = known.and_then(|contents| contents.as_slice::<f64>()?.first().copied());
    let exponent_dtype = exponent.dtype;
    let (element, inputs) = (base.element, [base, exponent]);
    let power = |values: &[Value]| {
        let x = cast(&values[0], dtype, wide);
        let result = match known {
            Some(exponent) if (1.0..=4.0).contains(&exponent) && exponent.fract() == 0.0 => {
                x.powi(exponent as i32)
            }
            Some(0.5) => x.unary(UnaryOp::Sqrt),
            _ => x.binary(BinaryOp::Powf, cast(&values[1], exponent_dtype, wide)),
        };
        cast(&result, wide, dtype)
    };
    Ok(vec![broadcast(emitter, &inputs, element, &power)?])
}

/// A function of two numbers applied to any number of tensors, from the first to the last.
pub(crate) fn fold(
    emitter: &mut Emitter,
    operands: &Operands<'_>,
    function: fn(&Value, &Value, DType) -> Value,
) -> Emitted {
    let inputs = all(emitter, operands)?;
    let first = inputs.first().ok_or_else(|| Unsupported::Fault("there are no inputs".to_owned()))?;
    if first.dtype == DType::Bool {
        unsupported!("truth values are no numbers");
    }
    let folded = |values: &[Value], dtype| {
        let (first, rest) = values.split_first().expect("there is an input");
        rest.iter().fold(first.clone(), |result, next| function(&result, next, dtype))
    };
    Ok(vec![numbers(emitter, &inputs, &folded)?])
}

pub(crate) fn sum(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    fold(emitter, operands, |x, y, _| add(x, y))
}

pub(crate) fn mean(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let inputs = all(emitter, operands)?;
    let first = inputs.first().ok_or_else(|| Unsupported::Fault("there are no inputs".to_owned()))?;
    require_float(first)?;
    let count = inputs.len() as f64;
    let mean = |values: &[Value], dtype| {
        let (first, rest) = values.split_first().expect("there is an input");
        let sum = rest.iter().fold(first.clone(), |sum, next| add(&sum, next));
        scalar::divide(&sum, &number(dtype, count))
    };
    Ok(vec![numbers(emitter, &inputs, &mean)?])
}

/// Bounds that are left out, or given by an empty name, do not bound. NaN stays.
pub(crate) fn clip(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let mut result = operands.tensor(emitter, 0)?;
    if result.dtype == DType::Bool {
        unsupported!("truth values are no numbers");
    }
    for (place, choose) in [(1, larger as fn(&Value, &Value, DType) -> Value), (2, smaller)] {
        let Some(bound) = operands.optional(emitter, place)? else { continue };
        if !bound.extents.iter().all(|extent| extent.is(1)) {
            unsupported!("a bound must have one element");
        }
        let bound = Tensor { extents: Vec::new(), source: scalar_source(emitter, &bound)?, ..bound };
        result = numbers(emitter, &[result, bound], &|values, dtype| choose(&values[0], &values[1], dtype))?;
    }
    Ok(vec![result])
}

/// The source of a tensor of one element, as one of rank 0.
fn scalar_source(
    emitter: &mut Emitter,
    tensor: &Tensor,
) -> Result<crate::legalise::emitter::Source, Unsupported> {
    if tensor.rank() == 0 {
        return Ok(tensor.source.clone());
    }
    let zeros = vec![Value::int(0); tensor.rank()];
    let copy = emitter.compute(tensor.element, &[], &mut |builder, _| tensor.at(builder, &zeros))?;
    Ok(copy.source)
}

pub(crate) fn prelu(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let inputs = all(emitter, operands)?;
    let function = |values: &[Value], dtype| {
        let scaled = multiply(&values[0], &values[1]);
        less(&values[0], &number(dtype, 0.0)).select(scaled, values[0].clone())
    };
    Ok(vec![numbers(emitter, &inputs, &function)?])
}

/// A comparison of two numbers or truth values.
pub(crate) fn compare(emitter: &mut Emitter, operands: &Operands<'_>, op: BinaryOp) -> Emitted {
    let inputs = all(emitter, operands)?;
    if inputs[0].dtype != inputs[1].dtype {
        unsupported!("elements of different types are compared");
    }
    let compare = |values: &[Value]| values[0].binary(op, values[1].clone());
    Ok(vec![broadcast(emitter, &inputs, ElementType::Bool, &compare)?])
}

/// An operator on two truth values.
pub(crate) fn truth(emitter: &mut Emitter, operands: &Operands<'_>, op: BinaryOp) -> Emitted {
    let inputs = all(emitter, operands)?;
    if inputs.iter().any(|input| input.dtype != DType::Bool) {
        unsupported!("expected truth values");
    }
    let function = |values: &[Value]| values[0].binary(op, values[1].clone());
    Ok(vec![broadcast(emitter, &inputs, ElementType::Bool, &function)?])
}

/// An operator on the bits of two integers.
pub(crate) fn bits(emitter: &mut Emitter, operands: &Operands<'_>, op: BinaryOp) -> Emitted {
    let inputs = all(emitter, operands)?;
    if inputs.iter().any(|input| !input.element.is_integer()) {
        unsupported!("expected integers");
    }
    Ok(vec![numbers(emitter, &inputs, &|values, _| values[0].binary(op, values[1].clone()))?])
}

pub(crate) fn not(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    if x.dtype != DType::Bool {
        unsupported!("expected truth values");
    }
    Ok(vec![broadcast(emitter, &[x], ElementType::Bool, &|x| x[0].unary(UnaryOp::Not))?])
}

pub(crate) fn is_nan(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    require_float(&x)?;
    let is_nan = |x: &[Value]| x[0].binary(BinaryOp::Ne, x[0].clone());
    Ok(vec![broadcast(emitter, &[x], ElementType::Bool, &is_nan)?])
}

/// One of two values, by a truth value.
pub(crate) fn choose(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let inputs = all(emitter, operands)?;
    let [condition, x, y] = &inputs[..] else { unsupported!("expected three inputs") };
    if condition.dtype != DType::Bool || x.element != y.element {
        unsupported!("expected a condition and two tensors of one type");
    }
    let element = x.element;
    let choose = |values: &[Value]| values[0].select(values[1].clone(), values[2].clone());
    Ok(vec![broadcast(emitter, &inputs, element, &choose)?])
}

/// Elements of another type.
pub(crate) fn convert(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let Some(to) = operands.attributes().element("to") else { unsupported!("attribute to is missing") };
    let x = operands.tensor(emitter, 0)?;
    let Some(dtype) = to.dtype() else { unsupported!("kernels do not compute with elements of type {to}") };
    let (from, truncates) = (x.dtype, x.dtype.is_float() && to.is_integer());
    let convert = |x: &[Value]| match dtype {
        DType::Bool if from != DType::Bool => x[0].binary(BinaryOp::Ne, number(from, 0.0)),
        dtype if truncates => integer::truncate(&x[0], from, to, dtype),
        dtype => cast(&x[0], from, dtype),
    };
    Ok(vec![broadcast(emitter, &[x], to, &convert)?])
}

/// The same tensor.
pub(crate) fn identity(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    Ok(vec![operands.tensor(emitter, 0)?])
}

/// Whether a place is inside a tensor, along one dimension.
pub(super) fn inside(place: &Value, extent: &Value) -> Value {
    both(&place.binary(BinaryOp::Ge, Value::int(0)), &less(place, extent))
}

/// `place − shift`, without the operation where it changes nothing.
pub(super) fn moved(place: &Value, shift: i64) -> Value {
    match shift {
        0 => place.clone(),
        shift if shift > 0 => subtract(place, &Value::int(shift)),
        shift => add(place, &Value::int(-shift)),
    }
}

/// `place · factor`, without the operation where it changes nothing.
pub(super) fn scaled(place: &Value, factor: i64) -> Value {
    if factor == 1 { place.clone() } else { multiply(place, &Value::int(factor)) }
}
