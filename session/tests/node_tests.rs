//! ONNX's own tests of operators, run by sessions: whatever the interpreter computes rightly, kernels have to as well.
//!
//! Which tests pass says `graph/tests/node_tests.txt`, the table of the interpreter. Without the environment variable
//! `TILEWRIGHT_NODE_TESTS=all`, every tenth test is run: each compiles kernels of its own.

#[path = "../../graph/tests/support/mod.rs"]
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

// Brings the CPU.
use tilewright as _;
use tilewright_graph::ir::Type;
use tilewright_graph::onnx;
use tilewright_graph::operator::Value;
use tilewright_graph::tensor::HostTensor;
use tilewright_session::{Model, Outputs, Session};

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../graph/tests/node_tests.txt");

/// ONNX's tolerances.
const RELATIVE: f64 = 1e-3;
const ABSOLUTE: f64 = 1e-7;

/// How many tests are left out for each that is run.
const STEP: usize = 10;

#[test]
fn kernels_compute_what_the_interpreter_computes() {
    let Some(models) = support::models() else { return };
    let folder = models.join("onnx-node-tests");
    let listed = std::fs::read_to_string(TABLE).unwrap();
    let step =
        if std::env::var("TILEWRIGHT_NODE_TESTS").is_ok_and(|value| value == "all") { 1 } else { STEP };
    let names: Vec<&str> =
        listed.lines().filter_map(|line| line.strip_prefix("pass ")).step_by(step).collect();
    let (next, kernels) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failures = Mutex::new(Vec::new());
    let work = || {
        while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = catch_unwind(AssertUnwindSafe(|| run(&folder.join(name))));
            match outcome.unwrap_or_else(|_| Err("PANIC".to_owned())) {
                Ok(made) => drop(kernels.fetch_add(made, Ordering::Relaxed)),
                Err(reason) => {
                    failures.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{name}: {reason}"));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        (0..workers).for_each(|_| drop(scope.spawn(work)));
    });
    let failures = failures.into_inner().unwrap();
    println!("{} tests, {} kernels", names.len(), kernels.load(Ordering::Relaxed));
    assert!(failures.is_empty(), "{} of {} fail:\n{}", failures.len(), names.len(), failures.join("\n"));
    assert!(kernels.load(Ordering::Relaxed) > names.len() / 4, "most tests run without a kernel");
}

/// Runs one test with all of its sets of data, and gives the number of kernels.
fn run(folder: &Path) -> Result<usize, String> {
    let file = onnx::Model::read(&folder.join("model.onnx")).map_err(|error| error.to_string())?;
    let function = file.import().map_err(|error| error.to_string())?.function;
    // Sessions take tensors alone.
    let is_other = |ty: &Type| matches!(ty, Type::Sequence(_) | Type::Optional(_));
    if function.body.parameters.iter().any(|&parameter| is_other(&function.value(parameter).ty)) {
        return Ok(0);
    }
    let model = Model::from_onnx(&file).map_err(|error| error.to_string())?;
    let mut session = Session::new(&model);
    support::compare_sets(&function, folder, RELATIVE, ABSOLUTE, &mut |arguments| {
        let arguments = support::tensors(arguments)?;
        let names = model.info().inputs.iter().map(|port| &port.name[..]);
        let inputs: Vec<(&str, &HostTensor)> = names.zip(&arguments).collect();
        let outputs = session.run(&inputs).map_err(|error| error.to_string())?;
        Ok(model.info().outputs.iter().map(|port| value(&outputs, &port.name, &port.ty)).collect())
    })?;
    Ok(model.kernels())
}

/// The value of an output, of which a session gives the tensors.
fn value(outputs: &Outputs, name: &str, ty: &Type) -> Value {
    if let Type::Optional(inner) = ty {
        return Value::Optional(Some(Box::new(value(outputs, name, inner))));
    }
    match outputs.get(name) {
        Some(tensor) => Value::Tensor(tensor.clone()),
        None => {
            let elements = (0..).map_while(|place| outputs.get(&format!("{name}[{place}]")));
            Value::Sequence(elements.cloned().map(Value::Tensor).collect())
        }
    }
}
