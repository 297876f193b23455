//! Sets of descriptions.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::{DescriptionError, MAX_VECTOR_OUTPUTS, TensorIntrinsic};
use crate::ids::VarId;
use crate::stmt::{Intrinsic, Stmt, Store};

/// The descriptions that a kind of device knows, each with a name of its own. Immutable, and cheap to clone.
///
/// A target holds one, in which schedules, rules and traces look up names. It contains descriptions beyond those whose
/// instructions a particular machine has, so that traces of other machines replay: a machine without the instruction
/// executes the marked statement.
#[derive(Clone, Default)]
pub struct IntrinsicSet {
    known: Arc<[Arc<TensorIntrinsic>]>,
}

/// The names alone: descriptions are whole programs.
impl fmt::Debug for IntrinsicSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.known.iter().map(|intrinsic| intrinsic.name())).finish()
    }
}

impl IntrinsicSet {
    /// A set of descriptions.
    ///
    /// # Errors
    /// [`DescriptionError::Taken`] when two have the same name.
    pub fn new(intrinsics: impl IntoIterator<Item = TensorIntrinsic>) -> Result<Self, DescriptionError> {
        Self::default().with(intrinsics)
    }

    /// This set and some more descriptions.
    ///
    /// # Errors
    /// [`DescriptionError::Taken`] when a name occurs twice.
    pub fn with(
        &self,
        intrinsics: impl IntoIterator<Item = TensorIntrinsic>,
    ) -> Result<Self, DescriptionError> {
        let mut known: Vec<Arc<TensorIntrinsic>> = self.known.to_vec();
        for intrinsic in intrinsics {
            if known.iter().any(|other| other.name() == intrinsic.name()) {
                return Err(DescriptionError::Taken(intrinsic.name().clone()));
            }
            known.push(Arc::new(intrinsic));
        }
        Ok(IntrinsicSet { known: known.into() })
    }

    /// The description of a name.
    pub fn get(&self, name: &str) -> Option<&Arc<TensorIntrinsic>> {
        self.known.iter().find(|intrinsic| &**intrinsic.name() == name)
    }

    /// All descriptions, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<TensorIntrinsic>> {
        self.known.iter()
    }
}

impl PartialEq for IntrinsicSet {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.known, &other.known)
            || self.known.len() == other.known.len()
                && self
                    .iter()
                    .zip(other.iter())
                    .all(|(a, b)| a.description() == b.description() && a.fragments() == b.fragments())
    }
}

impl Eq for IntrinsicSet {}

/// Equal sets have equal names, so that their hash need not look at whole descriptions.
impl Hash for IntrinsicSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.known.len().hash(state);
        self.iter().for_each(|intrinsic| intrinsic.name().hash(state));
    }
}

/// The loops of a marked statement, with their extents, and its store; `None` when it is not a loop nest of constant extents around one store.
fn loops_and_store(marked: &Intrinsic) -> Option<(Vec<(VarId, i64)>, &Store)> {
    let mut loops = Vec::new();
    let mut current = &marked.body;
    while let Stmt::For(node) = current {
        loops.push((node.var, node.extent.as_constant()?));
        current = &node.body;
    }
    let Stmt::Store(store) = current else { return None };
    Some((loops, store))
}

/// The number of elements that a marked statement updates; 1 when it is not a loop nest of constant extents around one store.
pub fn marked_outputs(marked: &Intrinsic) -> i64 {
    let Some((loops, store)) = loops_and_store(marked) else { return 1 };
    let is_place = |var| store.indices.iter().any(|index| index.mentions(var));
    loops.into_iter().filter(|(var, _)| is_place(*var)).map(|(_, extent)| extent).product()
}

/// Whether a marked statement updates more elements than a vector has: a tile, in registers of its own.
pub fn computes_tile(marked: &Intrinsic) -> bool {
    marked_outputs(marked) > MAX_VECTOR_OUTPUTS
}

/// The store of a marked statement that updates its elements in vector registers.
pub fn marked_store(marked: &Intrinsic) -> Option<&Store> {
    let (_, store) = loops_and_store(marked)?;
    (!computes_tile(marked)).then_some(store)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(name: &str, operator: &str) -> TensorIntrinsic {
        let text = format!(
            "kernel {name}(inout c: f32[4]) {{
               for i in 0..4 {{ block c(vi: spatial 4 = i) {{ c[vi] = c[vi] {operator} c[vi] }} }}
             }}"
        );
        TensorIntrinsic::parse(&text).unwrap()
    }

    #[test]
    fn a_name_is_in_a_set_once() {
        let set = IntrinsicSet::new([described("doubled", "+"), described("squared", "*")]).unwrap();
        assert_eq!(set.get("squared").unwrap().description(), described("squared", "*").description());
        assert!(set.get("halved").is_none());
        let taken = Err(DescriptionError::Taken("doubled".into()));
        assert_eq!(set.with([described("doubled", "-")]), taken);
        assert_eq!(IntrinsicSet::new([described("doubled", "+"), described("doubled", "+")]), taken);
    }

    #[test]
    fn sets_are_shown_by_their_names() {
        let set = IntrinsicSet::new([described("doubled", "+"), described("squared", "*")]).unwrap();
        assert_eq!(format!("{set:?}"), r#"{"doubled", "squared"}"#);
    }

    #[test]
    fn sets_are_equal_by_their_descriptions() {
        let set = |operator| IntrinsicSet::new([described("same", operator)]).unwrap();
        assert_eq!(set("+"), set("+"));
        assert_ne!(set("+"), set("*"));
        assert_ne!(set("+"), IntrinsicSet::default());
    }
}
