//! An `If` whose condition is known becomes the branch that it takes.

use crate::build::BuildError;
use crate::ir::{Operation, ValueId};
use crate::pass::{Rewriter, Rule};

/// Puts the taken branch in the place of an `If`.
pub(super) struct InlineBranches;

impl Rule for InlineBranches {
    fn rewrite(
        &mut self,
        graph: &mut Rewriter<'_>,
        operation: &Operation,
        _outputs: usize,
    ) -> Result<Option<Vec<ValueId>>, BuildError> {
        let Operation::If { condition, then_body, else_body } = operation else { return Ok(None) };
        let taken = match graph.constant(*condition).and_then(|condition| condition.as_slice::<bool>()) {
            Some(&[true]) => then_body,
            Some(&[false]) => else_body,
            _ => return Ok(None),
        };
        graph.body(taken, self).map(Some)
    }
}
