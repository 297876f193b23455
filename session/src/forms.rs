//! The kernel forms of groups, kept between plans.
//!
//! A new size of an input needs a new plan, but the programs of most groups have dimensions and serve any size. Making such a program takes much
//! longer than finding it again; a decoder whose keys and values grow needs a plan for each token.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use tilewright_core::accuracy::Accuracy;
use tilewright_graph::ir::ValueId;
use tilewright_graph::legalise::{Legalised, Order, Signature};
use tilewright_graph::symbolic::SymInt;

/// The properties of a group that decide its form, but for sizes.
pub(crate) struct Form {
    /// How many calls it has, and its first output: these name the group, or the copy of a value.
    pub(crate) calls: usize,
    pub(crate) output: ValueId,
    /// Its inputs, over the dimensions of the program.
    pub(crate) signatures: Vec<Signature>,
    /// The order of its results in memory.
    pub(crate) order: Option<Order>,
    /// The strides of its first result, where that is a part of another tensor.
    pub(crate) placed: Option<Vec<SymInt>>,
}

impl Form {
    fn is_like(&self, other: &Form) -> bool {
        // The elements of constants are those of the group's own values.
        let alike = |(own, other): (&Signature, &Signature)| {
            let is_equal = own.constant == other.constant
                && own.element == other.element
                && own.extents == other.extents
                && own.order == other.order
                && own.strides == other.strides;
            // Of elements that the graph follows, the choices say which ones count.
            let has_equal_elements = || match &own.integers {
                Some(_) => own.integers == other.integers,
                None => other.integers.is_none() && own.contents == other.contents,
            };
            is_equal && (own.constant || has_equal_elements())
        };
        self.order == other.order
            && self.placed == other.placed
            && self.signatures.len() == other.signatures.len()
            && self.signatures.iter().zip(&other.signatures).all(alike)
    }
}

/// How many forms of one group are kept: beyond them, the oldest goes.
const MOST_FORMS: usize = 8;

/// The forms of one group.
type Kept = Vec<(Form, Arc<Legalised>)>;

/// The forms of a model.
#[derive(Default)]
pub(crate) struct Forms {
    /// How exactly their programs form products.
    accuracy: Option<Accuracy>,
    /// The forms by the numbers of calls of groups and their first outputs.
    kept: Mutex<FxHashMap<(usize, ValueId), Kept>>,
}

impl Forms {
    /// No forms yet, of programs with an accuracy.
    pub(crate) fn of(accuracy: Accuracy) -> Self {
        Forms { accuracy: Some(accuracy), ..Forms::default() }
    }

    /// How exactly programs form products; without it, as `f32` does.
    pub(crate) fn accuracy(&self) -> Option<Accuracy> {
        self.accuracy
    }

    /// The program that was made before for the same form, if it is the same for these sizes. `size` gives the value of an integer over
    /// the dimensions.
    pub(crate) fn find(&self, form: &Form, size: &dyn Fn(&SymInt) -> Option<i64>) -> Option<Arc<Legalised>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let decides_alike =
            |made: &Legalised| made.decided_by.iter().all(|(integer, value)| size(integer) == Some(*value));
        let found = kept
            .get(&(form.calls, form.output))?
            .iter()
            .find(|(known, made)| decides_alike(made) && known.is_like(form))?;
        Some(Arc::clone(&found.1))
    }

    /// Keeps a program.
    pub(crate) fn keep(&self, form: Form, made: &Arc<Legalised>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let own = kept.entry((form.calls, form.output)).or_default();
        if own.len() >= MOST_FORMS {
            own.remove(0);
        }
        own.push((form, Arc::clone(made)));
    }
}
