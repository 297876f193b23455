//! Equal calls are made once, and equal constants kept once.

use rustc_hash::FxHashMap;

use crate::build::BuildError;
use crate::ir::{Operation, ValueId};
use crate::pass::{Rewriter, Rule};

/// The key under which operations can be equal: name, inputs, and the number of outputs.
type Key = (&'static str, Vec<Option<ValueId>>, usize);

/// Finds operations that were made before.
#[derive(Default)]
pub(super) struct MergeEqual {
    made: FxHashMap<Key, Vec<(Operation, Vec<ValueId>)>>,
    /// Keys in the order in which operations were made, and where each open body began.
    order: Vec<Key>,
    bodies: Vec<usize>,
}

/// The key of an operation that may be merged. Large constants are not compared, and numbers that are drawn at random differ.
fn key(operation: &Operation, outputs: usize) -> Option<Key> {
    const LARGEST: usize = 4096;
    match operation {
        Operation::Call(call) if !call.operator.draws => {
            Some((call.operator.name, call.inputs.clone(), outputs))
        }
        Operation::Constant(tensor) if tensor.byte_count() <= LARGEST => {
            Some(("constant", Vec::new(), tensor.len()))
        }
        _ => None,
    }
}

impl Rule for MergeEqual {
    fn rewrite(
        &mut self,
        _graph: &mut Rewriter<'_>,
        operation: &Operation,
        outputs: usize,
    ) -> Result<Option<Vec<ValueId>>, BuildError> {
        let candidates = key(operation, outputs).and_then(|key| self.made.get(&key));
        let equal = candidates.and_then(|made| made.iter().find(|(other, _)| other == operation));
        Ok(equal.map(|(_, values)| values.clone()))
    }

    fn kept(&mut self, operation: &Operation, outputs: &[ValueId]) {
        if let Some(key) = key(operation, outputs.len()) {
            self.order.push(key.clone());
            self.made.entry(key).or_default().push((operation.clone(), outputs.to_vec()));
        }
    }

    fn nested(&mut self, entered: bool) {
        if entered {
            self.bodies.push(self.order.len());
            return;
        }
        let start = self.bodies.pop().unwrap_or(0);
        for key in self.order.drain(start..).rev() {
            self.made.get_mut(&key).and_then(Vec::pop);
        }
    }
}
