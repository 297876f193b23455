//! Helpers of tests with model files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tilewright_graph::interpret::Interpreter;
use tilewright_graph::ir::{Function, Module, Type};
use tilewright_graph::onnx::decode_tensor;
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
        let arguments = arguments.into_iter().map(Value::Tensor).collect();
        let results = Interpreter::new(&module).run("main", arguments).map_err(|error| error.to_string())?;
        let tensor = |result: &Value| {
            result
                .as_tensor()
                .cloned()
                .ok_or_else(|| "outputs that are no tensors are not read here".to_owned())
        };
        results.iter().map(tensor).collect()
    })
}

/// How a function is run with the tensors of one set.
pub(crate) type Run<'r> = &'r mut dyn FnMut(Vec<HostTensor>) -> Result<Vec<HostTensor>, String>;

/// As [`run_sets`], with another way of running the function.
pub(crate) fn compare_sets(
    function: &Function,
    folder: &Path,
    relative: f64,
    absolute: f64,
    run: Run<'_>,
) -> Result<(), String> {
    let parameters = function.body.parameters.iter().map(|&parameter| &function.value(parameter).ty);
    if parameters.clone().any(|ty| matches!(ty, Type::Sequence(_) | Type::Optional(_))) {
        return Err("inputs that are sequences or optional are not read by this test".to_owned());
    }
    for set in 0.. {
        let data = folder.join(format!("test_data_set_{set}"));
        if !data.is_dir() {
            return if set > 0 { Ok(()) } else { Err("there are no data".to_owned()) };
        }
        let read = |file: String| -> Result<HostTensor, String> {
            let bytes = std::fs::read(data.join(file)).map_err(|error| error.to_string())?;
            decode_tensor(bytes.into()).map_err(|error| error.to_string())
        };
        let arguments = (0..parameters.len()).map(|place| read(format!("input_{place}.pb")));
        let results = run(arguments.collect::<Result<Vec<_>, String>>()?)?;
        for (place, found) in results.iter().enumerate() {
            let expected = read(format!("output_{place}.pb"))?;
            compare(&expected, found, relative, absolute)
                .map_err(|error| format!("output {place}: {error}"))?;
        }
    }
    unreachable!("the loop ends at the first set that is missing")
}
