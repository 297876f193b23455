//! The sizes that choices of a definition depended on.
//!
//! A definition whose extents are dimensions of its program serves all sizes, but where it was emitted otherwise for other sizes: a slice
//! that ends inside of a tensor, a window whose last place is padding. Each such choice is noted as an integer with its value. Sizes for which
//! all of them have the same values have the same definition.

use std::cell::RefCell;
use std::rc::Rc;

use crate::symbolic::SymInt;

/// The choices of one definition. Clones note into the same list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decisions(Rc<RefCell<Vec<(SymInt, i64)>>>);

impl Decisions {
    /// Notes that a choice depended on an integer, which has this value now.
    pub(super) fn note(&self, integer: &SymInt, value: i64) {
        let mut all = self.0.borrow_mut();
        if integer.as_constant().is_none() && all.iter().all(|(known, _)| known != integer) {
            all.push((integer.clone(), value));
        }
    }

    /// All of them.
    pub(super) fn list(&self) -> Vec<(SymInt, i64)> {
        self.0.borrow().clone()
    }
}
