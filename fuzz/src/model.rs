//! The processing of a model file from outside. No file may lead to a panic, run for long, or take much more memory than it is
//! large.

use tilewright_graph::ir::Function;
use tilewright_graph::onnx::Model;
use tilewright_graph::pass::optimise;

/// Decodes and translates a file, and runs the passes on what it holds. Says whether it is a model.
pub fn import(bytes: &[u8]) -> bool {
    let imported = Model::from_bytes(bytes.to_vec().into()).and_then(|model| model.import());
    let imported = match imported {
        Ok(imported) => imported,
        Err(error) => return error.to_string().is_empty(),
    };
    let printed = imported.function.to_string();
    let again: Function = printed.parse().unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(again.to_string(), printed, "the printed form is not stable");
    drop(optimise(&imported.function));
    true
}
