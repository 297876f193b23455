//! Scales have to be numbers above zero.

use rustc_hash::FxHashMap;

use crate::build::BuildError;
use crate::ir::{Body, Function, Operation, ValueId};
use crate::tensor::{ElementType, HostTensor};

/// The inputs of operators that are scales.
const SCALES: &[(&str, &[usize])] = &[
    ("quantize_linear", &[1]),
    ("dequantize_linear", &[1]),
    ("requantize", &[1]),
    ("qlinear_matmul", &[1, 4, 6]),
    ("qlinear_conv", &[1, 4, 6]),
];

/// Checks all scales that are constant.
///
/// # Errors
/// When one is zero, negative, infinite or not a number.
pub(crate) fn check_scales(function: &Function) -> Result<(), BuildError> {
    check(function, &function.body, &mut FxHashMap::default())
}

fn check<'f>(
    function: &'f Function,
    body: &'f Body,
    constants: &mut FxHashMap<ValueId, &'f HostTensor>,
) -> Result<(), BuildError> {
    for binding in &body.bindings {
        match &binding.operation {
            Operation::Constant(tensor) => {
                constants.insert(binding.outputs[0], tensor);
            }
            Operation::Call(call) => {
                let row = SCALES.iter().find(|(name, _)| *name == call.operator.name);
                for &place in row.map(|(_, places)| *places).unwrap_or_default() {
                    let Some(value) = call.inputs.get(place).copied().flatten() else { continue };
                    if let Some(wrong) = constants.get(&value).and_then(|tensor| wrong(tensor)) {
                        return Err(BuildError::Scale {
                            tensor: function.describe(value),
                            scale: wrong.to_string(),
                        });
                    }
                }
            }
            operation => {
                for inner in operation.bodies() {
                    check(function, inner, constants)?;
                }
            }
        }
    }
    Ok(())
}

/// The first number that is no scale.
fn wrong(scales: &HostTensor) -> Option<f64> {
    let numbers = scales.cast(ElementType::F64).ok()?;
    numbers.as_slice::<f64>()?.iter().copied().find(|scale| !(scale.is_finite() && *scale > 0.0))
}
