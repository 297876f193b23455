//! Comparing sessions with the interpreter of graphs.

use std::sync::Arc;

use tilewright_graph::interpret::Interpreter;
use tilewright_graph::ir::{Function, Module};
use tilewright_graph::operator::Value;
use tilewright_graph::tensor::HostTensor;
use tilewright_session::Outputs;

/// The results of a function, by its meaning.
pub(crate) fn interpret(function: &Function, inputs: Vec<Value>) -> Vec<HostTensor> {
    let module = Module { functions: [(Arc::from("main"), function.clone())].into() };
    let results = Interpreter::new(&module).run("main", inputs).unwrap();
    results.iter().map(|result| result.as_tensor().unwrap().clone()).collect()
}

/// Fails where a session's outputs are not the expected ones, apart from the rounding of floats.
#[track_caller]
pub(crate) fn agree(outputs: &Outputs, expected: &[HostTensor]) {
    assert_eq!(outputs.iter().count(), expected.len());
    for ((name, found), expected) in outputs.iter().zip(expected) {
        assert_eq!(found.shape(), expected.shape(), "{name}");
        let pairs = found.as_slice::<f32>().unwrap().iter().zip(expected.as_slice::<f32>().unwrap());
        for (found, expected) in pairs {
            assert!(
                (found - expected).abs() <= 1e-5 * (1.0 + expected.abs()),
                "{name}: {found} is not {expected}"
            );
        }
    }
}
