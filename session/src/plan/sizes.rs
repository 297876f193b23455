//! The sizes that a plan is made for.

use rustc_hash::FxHashMap;
use tilewright_graph::ir::Type;
use tilewright_graph::symbolic::{SymInt, Symbol};

/// The values of symbols.
#[derive(Default)]
pub(super) struct Sizes(FxHashMap<Symbol, i64>);

impl Sizes {
    /// Gives the extents of a value to the symbols that stand for them and have no value yet: names of the model's inputs, and
    /// symbols that deduction made because it could not follow an extent.
    pub(super) fn bind(&mut self, ty: &Type, shape: &[usize]) {
        for (extent, &size) in ty.extents().unwrap_or_default().iter().zip(shape) {
            if let Some(symbol) = extent.as_symbol() {
                self.0.entry(symbol.clone()).or_insert(size as i64);
            }
        }
    }

    /// The value of an integer. `None` when one of its symbols has none.
    pub(super) fn integer(&self, integer: &SymInt) -> Option<i64> {
        integer.evaluate(&|symbol| self.0.get(symbol).copied())
    }

    /// The values of extents.
    pub(super) fn extents(&self, extents: &[SymInt]) -> Option<Vec<usize>> {
        extents.iter().map(|extent| usize::try_from(self.integer(extent)?).ok()).collect()
    }
}
