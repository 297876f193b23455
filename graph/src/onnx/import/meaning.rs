//! Operators that are expressed by several calls of the table's operators, by domain and name.

use crate::build::GraphBuilder;
use crate::ir::ValueId;
use crate::onnx::import::expansion::Expansion;
use crate::onnx::import::upgrade::{Node, Refusal};
use crate::onnx::import::{attention, fused, loss};

pub(super) type Translated = Result<Vec<ValueId>, Refusal>;

/// Adds the calls that a node means, and gives its outputs.
pub(super) type Translate = fn(&mut Expansion<'_, '_>) -> Translated;

/// A domain, the name of an operator in it, and its translation.
pub(super) type Meaning = (&'static str, &'static str, Translate);

static MEANINGS: &[&[Meaning]] = &[attention::MEANINGS, fused::MEANINGS, loss::MEANINGS];

/// The translation of an operator, if it is translated here.
pub(super) fn find(domain: &str, operator: &str) -> Option<Translate> {
    let mut meanings = MEANINGS.iter().copied().flatten();
    let found = meanings.find(|(own, name, _)| (*own, *name) == (domain, operator));
    found.map(|(.., translate)| *translate)
}

/// Adds the calls that a node means.
pub(super) fn translate(node: Node<'_>, builder: &mut GraphBuilder, translate: Translate) -> Translated {
    translate(&mut Expansion { node, builder })
}
