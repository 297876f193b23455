//! Elements of small integer tensors, before anything runs.

use std::sync::Arc;

use crate::deduce::{Deduction, MOST_CONTENTS};
use crate::ir::{Shape, Type};
use crate::operator::{Arguments, Value};
use crate::symbolic::SymInt;
use crate::tensor::{ElementType, HostTensor};

/// An output whose elements are known.
pub(super) struct Computed {
    pub(super) ty: Type,
    pub(super) contents: Arc<Vec<SymInt>>,
}

/// The operators of which each output element is an element of the inputs named here, the rest saying which.
const MOVERS: &[(&str, Moved)] = &[
    ("identity", Moved::First),
    ("reshape", Moved::First),
    ("flatten", Moved::First),
    ("squeeze", Moved::First),
    ("unsqueeze", Moved::First),
    ("transpose", Moved::First),
    ("expand", Moved::First),
    ("tile", Moved::First),
    ("slice", Moved::First),
    ("split", Moved::First),
    ("gather", Moved::First),
    ("gather_elements", Moved::First),
    ("gather_nd", Moved::First),
    ("concat", Moved::All),
];

#[derive(Clone, Copy, PartialEq)]
enum Moved {
    /// The first input.
    First,
    /// All inputs.
    All,
}

/// The elements of the outputs, where they can be computed from the elements of the inputs.
pub(super) fn compute(deduction: &Deduction<'_>) -> Option<Vec<Computed>> {
    let name = deduction.call.operator.name;
    if let Some((_, moved)) = MOVERS.iter().find(|(mover, _)| *mover == name) {
        return moved_contents(deduction, *moved);
    }
    arithmetic(deduction).map(|computed| vec![computed])
}

/// Evaluates a mover on the numbers of elements instead of elements, and looks these up.
fn moved_contents(deduction: &Deduction<'_>, moved: Moved) -> Option<Vec<Computed>> {
    let element = deduction.element(0)?;
    let mut elements: Vec<SymInt> = Vec::new();
    let mut inputs = Vec::with_capacity(deduction.call.inputs.len());
    for place in 0..deduction.call.inputs.len() {
        if deduction.call.inputs[place].is_none() {
            inputs.push(None);
            continue;
        }
        let shape = fixed_shape(deduction, place)?;
        let numbers: Vec<i64> = if place == 0 || moved == Moved::All {
            let contents = deduction.contents(place)?;
            let first = elements.len() as i64;
            elements.extend_from_slice(contents);
            (first..elements.len() as i64).collect()
        } else {
            deduction.constants(place)?
        };
        inputs.push(Some(Value::Tensor(HostTensor::new(&shape, numbers).ok()?)));
    }
    let call = deduction.call;
    let arguments = Arguments {
        operator: call.operator,
        attributes: &call.attributes,
        inputs: &inputs,
        outputs: deduction.outputs,
    };
    // A small input can be made large, for instance repeated; the deduced extents say so before.
    let outputs = (call.operator.evaluate)(&arguments).ok()?;
    let look_up = |output: &Value| {
        let tensor = output.as_tensor().filter(|tensor| tensor.len() <= MOST_CONTENTS)?;
        let numbers = tensor.as_slice::<i64>()?;
        let contents = numbers.iter().map(|&number| elements[number as usize].clone()).collect();
        Some(Computed { ty: Type::fixed(element, tensor.shape()), contents: Arc::new(contents) })
    };
    outputs.iter().map(look_up).collect()
}

fn fixed_shape(deduction: &Deduction<'_>, place: usize) -> Option<Vec<usize>> {
    let extent = |extent: &SymInt| usize::try_from(extent.as_constant()?).ok();
    deduction.extents(place)?.iter().map(extent).collect()
}

/// Arithmetic on integers, element by element with broadcasting of single elements.
fn arithmetic(deduction: &Deduction<'_>) -> Option<Computed> {
    let name = deduction.call.operator.name;
    let left = deduction.contents(0)?;
    let element = deduction.element(0)?;
    let shape = |place: usize| deduction.extents(place).map(<[SymInt]>::to_vec);
    if name == "cast" {
        let to = match deduction.call.attributes.get("to") {
            Some(crate::ir::Attribute::Element(to)) if matches!(to, ElementType::I64 | ElementType::I32) => {
                *to
            }
            _ => return None,
        };
        return Some(Computed {
            ty: Type::tensor(to, Shape::Known(shape(0)?)),
            contents: left.to_vec().into(),
        });
    }
    if name == "reduce_prod" && deduction.input(1).is_none() && !deduction.flag("keepdims") {
        let product = left.iter().fold(SymInt::from(1), |product, extent| &product * extent);
        return Some(Computed { ty: Type::fixed(element, &[]), contents: Arc::new(vec![product]) });
    }
    let right = deduction.contents(1)?;
    let function: fn(&SymInt, &SymInt) -> Option<SymInt> = match name {
        "add" => |x, y| Some(x + y),
        "sub" => |x, y| Some(x - y),
        "mul" => |x, y| Some(x * y),
        "min" if deduction.call.inputs.len() == 2 => |x, y| Some(x.minimum(y)),
        "max" if deduction.call.inputs.len() == 2 => |x, y| Some(x.maximum(y)),
        // Division truncates here: only where nothing is negative does it agree with rounding down.
        "div" => |x, y| {
            let positive = x.is_not_negative() && y.as_constant().map_or(y.is_not_negative(), |y| y > 0);
            positive.then(|| x.floor_div(y))
        },
        _ => return None,
    };
    let (extents, pairs): (_, Vec<(&SymInt, &SymInt)>) = match (left, right) {
        (left, [right]) if shape(1)?.len() <= shape(0)?.len() => {
            (shape(0)?, left.iter().map(|left| (left, right)).collect())
        }
        ([left], right) if shape(0)?.len() <= shape(1)?.len() => {
            (shape(1)?, right.iter().map(|right| (left, right)).collect())
        }
        (left, right) if shape(0) == shape(1) => (shape(0)?, left.iter().zip(right).collect()),
        _ => return None,
    };
    let contents =
        pairs.into_iter().map(|(left, right)| function(left, right)).collect::<Option<Vec<_>>>()?;
    Some(Computed { ty: Type::tensor(element, Shape::Known(extents)), contents: Arc::new(contents) })
}
