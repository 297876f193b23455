//! `sample_categorical`

use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{Decision, IntRv, Schedule, ScheduleError, Value};

/// Draws one of several numbers by probability.
///
/// ```text
/// before
/// kernel copy(in a: f32[12], out b: f32[12]) {
///   for i in 0..12 {
///     block b(v: spatial 12 = i) {
///       b[v] = a[v]
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// %1 = sample_categorical [1, 16], [0.5, 0.5] !decision #1
/// annotate block %0, "unroll", %1
/// after
/// kernel copy(in a: f32[12], out b: f32[12]) {
///   for i in 0..12 {
///     @unroll 16
///     block b(v: spatial 12 = i) {
///       b[v] = a[v]
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleCategorical {
    /// The numbers to choose from.
    pub candidates: Vec<i64>,
    /// Their probabilities, up to a common factor.
    pub probabilities: Vec<f64>,
}

impl Primitive for SampleCategorical {
    const NAME: &'static str = "sample_categorical";
    const PURE: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Numbers(&mut self.candidates))?;
        visitor.visit(Argument::Weights(&mut self.probabilities))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        if self.candidates.len() != self.probabilities.len() || self.candidates.is_empty() {
            return Err(ScheduleError::BadCandidates);
        }
        let choice = match context.decision {
            Some(Decision::Choice(choice)) if *choice < self.candidates.len() => *choice,
            Some(Decision::Choice(_)) => {
                return Err(ScheduleError::BadDecision("no candidate of that number"));
            }
            Some(_) => return Err(ScheduleError::BadDecision("sample_categorical takes `#number`")),
            None => context.rng.weighted(&self.probabilities).ok_or(ScheduleError::BadCandidates)?,
        };
        *context.decision = Some(Decision::Choice(choice));
        Ok(Outputs::from_slice(&[Value::Int(self.candidates[choice])]))
    }
}

impl Schedule {
    /// Draws one of several numbers by probability. See [`SampleCategorical`].
    ///
    /// # Errors
    /// When candidates and probabilities do not match.
    pub fn sample_categorical(
        &mut self,
        candidates: &[i64],
        probabilities: &[f64],
    ) -> Result<IntRv, ScheduleError> {
        let (candidates, probabilities) = (candidates.to_vec(), probabilities.to_vec());
        self.push_one(SampleCategorical { candidates, probabilities }).map(IntRv)
    }

    /// The value of an integer variable of this schedule.
    ///
    /// # Errors
    /// When it belongs to another schedule.
    pub fn int(&self, variable: IntRv) -> Result<i64, ScheduleError> {
        self.values.int(variable.into())
    }
}
