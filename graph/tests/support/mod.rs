//! Helpers of tests with model files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use prost::Message;
use tilewright_graph::interpret::Interpreter;
use tilewright_graph::ir::{Function, Module, Type};
use tilewright_graph::onnx::decode_tensor;
use tilewright_graph::onnx::schema::TensorProto;
use tilewright_graph::operator::Value;
use tilewright_graph::tensor::{ElementType, HostTensor};

/// The folder of fetched models, or `None`, said aloud, where they were not fetched.
pub(crate) fn models() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    let folder = root.join("target/models");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("SKIPPED: {} is missing; scripts/fetch-models.sh fetches it", folder.display());
    None
}

/// Compares tensors: numbers with tolerances, everything else exactly.
pub(crate) fn compare(
    expected: &HostTensor,
    found: &HostTensor,
    relative: f64,
    absolute: f64,
) -> Result<(), String> {
    if (expected.element(), expected.shape()) != (found.element(), found.shape()) {
        return Err(format!(
            "expected {}{:?}, found {}{:?}",
            expected.element(),
            expected.shape(),
            found.element(),
            found.shape()
        ));
    }
    if !expected.element().is_float() {
        return if expected == found {
            Ok(())
        } else {
            Err(format!("expected {expected:?}, found {found:?}"))
        };
    }
    let numbers = |tensor: &HostTensor| {
        let cast = tensor.cast(ElementType::F64).map_err(|error| error.to_string())?;
        cast.expect::<f64>().map(<[f64]>::to_vec).map_err(|error| error.to_string())
    };
    for (place, (expected, found)) in numbers(expected)?.into_iter().zip(numbers(found)?).enumerate() {
        let close = expected == found
            || (expected.is_nan() && found.is_nan())
            || (expected - found).abs() <= absolute + relative * expected.abs();
        if !close {
            return Err(format!("element {place}: expected {expected}, found {found}"));
        }
    }
    Ok(())
}

/// Runs a function with all sets of data in a folder, and compares what it gives with what they hold.
#[allow(dead_code)]
pub(crate) fn run_sets(
    function: &Function,
    folder: &Path,
    relative: f64,
    absolute: f64,
) -> Result<(), String> {
    let module = Module { functions: [(Arc::from("main"), function.clone())].into() };
    compare_sets(function, folder, relative, absolute, &mut |arguments| {
        Interpreter::new(&module).run("main", arguments).map_err(|error| error.to_string())
    })
}

/// A file with a sequence of tensors, as far as the tests have them.
#[derive(Clone, PartialEq, prost::Message)]
struct SequenceProto {
    #[prost(message, repeated, tag = "3")]
    tensor_values: Vec<TensorProto>,
}

/// A file with a tensor, a sequence of tensors, or nothing.
#[derive(Clone, PartialEq, prost::Message)]
struct OptionalProto {
    #[prost(message, optional, tag = "3")]
    tensor_value: Option<TensorProto>,
    #[prost(message, optional, tag = "5")]
    sequence_value: Option<SequenceProto>,
}

fn tensor(proto: &TensorProto) -> Result<Value, String> {
    let tensor = decode_tensor(proto.encode_to_vec().into()).map_err(|error| error.to_string())?;
    Ok(Value::Tensor(tensor))
}

fn sequence(proto: &SequenceProto) -> Result<Value, String> {
    Ok(Value::Sequence(proto.tensor_values.iter().map(tensor).collect::<Result<_, _>>()?))
}

/// The value in a file, which is of the kind that a type or another value has.
fn read(file: &Path, kind: Kind) -> Result<Value, String> {
    let bytes = std::fs::read(file).map_err(|error| error.to_string())?;
    let text = |error: prost::DecodeError| error.to_string();
    match kind {
        Kind::Tensor => tensor(&TensorProto::decode(&bytes[..]).map_err(text)?),
        Kind::Sequence => sequence(&SequenceProto::decode(&bytes[..]).map_err(text)?),
        Kind::Optional => {
            let proto = OptionalProto::decode(&bytes[..]).map_err(text)?;
            let value = match (&proto.tensor_value, &proto.sequence_value) {
                (Some(value), _) => Some(tensor(value)?),
                (None, Some(value)) => Some(sequence(value)?),
                (None, None) => None,
            };
            Ok(Value::Optional(value.map(Box::new)))
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Tensor,
    Sequence,
    Optional,
}

impl Kind {
    fn of_type(ty: &Type) -> Self {
        match ty {
            Type::Sequence(_) => Kind::Sequence,
            Type::Optional(_) => Kind::Optional,
            Type::Tensor(_) | Type::Tuple(_) | Type::Unknown => Kind::Tensor,
        }
    }

    fn of_value(value: &Value) -> Self {
        match value {
            Value::Sequence(_) => Kind::Sequence,
            Value::Optional(_) => Kind::Optional,
            Value::Tensor(_) | Value::Tuple(_) => Kind::Tensor,
        }
    }
}

/// As [`compare`], for values of any kind.
fn compare_values(expected: &Value, found: &Value, relative: f64, absolute: f64) -> Result<(), String> {
    match (expected, found) {
        (Value::Tensor(expected), Value::Tensor(found)) => compare(expected, found, relative, absolute),
        (Value::Sequence(expected), Value::Sequence(found)) if expected.len() == found.len() => {
            let mut pairs = expected.iter().zip(found);
            pairs.try_for_each(|(expected, found)| compare_values(expected, found, relative, absolute))
        }
        (Value::Optional(Some(expected)), Value::Optional(Some(found))) => {
            compare_values(expected, found, relative, absolute)
        }
        (Value::Optional(None), Value::Optional(None)) => Ok(()),
        _ => Err(format!("expected {expected:?}, found {found:?}")),
    }
}

/// How a function is run with the values of one set.
pub(crate) type Run<'r> = &'r mut dyn FnMut(Vec<Value>) -> Result<Vec<Value>, String>;

/// The tensors among values, which have to be nothing else.
#[allow(dead_code)]
pub(crate) fn tensors(values: Vec<Value>) -> Result<Vec<HostTensor>, String> {
    let tensor = |value: Value| match value {
        Value::Tensor(tensor) => Ok(tensor),
        other => Err(format!("{other:?} is no tensor")),
    };
    values.into_iter().map(tensor).collect()
}

/// As [`run_sets`], with another way of running the function.
pub(crate) fn compare_sets(
    function: &Function,
    folder: &Path,
    relative: f64,
    absolute: f64,
    run: Run<'_>,
) -> Result<(), String> {
    let parameters = function.body.parameters.iter();
    let kinds: Vec<Kind> =
        parameters.map(|&parameter| Kind::of_type(&function.value(parameter).ty)).collect();
    for set in 0.. {
        let data = folder.join(format!("test_data_set_{set}"));
        if !data.is_dir() {
            return if set > 0 { Ok(()) } else { Err("there are no data".to_owned()) };
        }
        let arguments = kinds
            .iter()
            .enumerate()
            .map(|(place, &kind)| read(&data.join(format!("input_{place}.pb")), kind));
        let results = run(arguments.collect::<Result<Vec<_>, String>>()?)?;
        for (place, found) in results.iter().enumerate() {
            let expected = read(&data.join(format!("output_{place}.pb")), Kind::of_value(found))?;
            compare_values(&expected, found, relative, absolute)
                .map_err(|error| format!("output {place}: {error}"))?;
        }
    }
    unreachable!("the loop ends at the first set that is missing")
}
