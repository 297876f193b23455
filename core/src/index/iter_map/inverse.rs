//! The inverse of an iterator map.

use rustc_hash::FxHashMap;

use super::{IterMap, MapLevel};
use crate::ids::VarId;
use crate::index::Index;

/// Why a map has no inverse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InverseError {
    /// The map was only found to be surjective.
    #[error("a map that is only known to be surjective has no inverse; detect it at the bijective level")]
    NotInjective,
    /// There must be one value per index of the map.
    #[error("{found} values for a map of {expected} indices; give one value per index")]
    Count {
        /// The number of indices.
        expected: usize,
        /// The number of values.
        found: usize,
    },
}

impl IterMap {
    /// Every iterator as a function of the indices' values `outputs`: the point of the domain whose image
    /// they are. Values that are no image give no meaningful point. With symbolic extents the quotients
    /// are opaque.
    ///
    /// # Errors
    /// When the map was not detected at an injective level, or the number of values differs from the
    /// number of indices.
    pub fn inverse(&self, outputs: &[Index]) -> Result<Vec<(VarId, Index)>, InverseError> {
        if self.level == MapLevel::Surjective {
            return Err(InverseError::NotInjective);
        }
        if outputs.len() != self.outputs.len() {
            return Err(InverseError::Count { expected: self.outputs.len(), found: outputs.len() });
        }
        let mut atoms: FxHashMap<VarId, Index> =
            self.atoms.iter().map(|(var, _)| (*var, Index::constant(0))).collect();
        for ((output, sum), digits) in outputs.iter().zip(&self.outputs).zip(&self.digits) {
            let mut rest = output - &sum.min;
            for digit in digits.iter().rev() {
                let mut value = rest.divide(&digit.scale);
                rest = rest.remainder(&digit.scale);
                if digit.negative {
                    value = &digit.extent.offset(-1) - &value;
                }
                if let Some(atom) = atoms.get_mut(&digit.var) {
                    *atom = atom.add_scaled(&value, digit.divisor);
                }
            }
        }
        let value = |var: VarId| atoms.get(&var).cloned();
        Ok(self.iterators.iter().map(|(var, index)| (*var, index.substitute(&value))).collect())
    }
}
