//! All that a search of one kind of device goes by, as one value.

use tilewright_core::program::Program;
use tilewright_core::schedule::{BlockRv, Decision, Rng, Schedule, ScheduleError, Step};
use tilewright_core::target::{RunContext, WrongTargetKind};

use crate::model::{FeatureShapeError, ProgramFeatures};
use crate::space::mutate::Mutators;
use crate::space::postproc::{Postprocessors, Rejection};
use crate::space::rule::{RuleSet, RuleSetError};

/// A search of one kind of device: rules make its design spaces, mutators move in them, postprocessors make their points fit to
/// be compiled, and the functions of the device judge them. Users can exchange the rules, the mutators and the postprocessors.
///
/// ```
/// use tilewright_core::target::TargetKind;
/// use tilewright_search::spec::SearchSpec;
///
/// let spec = SearchSpec::built_in(TargetKind::Cpu)?;
/// let without_streaming = spec.rules.clone().without("stream_results")?;
/// let smaller = SearchSpec { rules: without_streaming, ..spec };
/// assert!(!smaller.rules.names().contains(&"stream_results"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SearchSpec {
    /// They make the design spaces.
    pub rules: RuleSet,
    /// They step from one point of a design space to another.
    pub mutators: Mutators,
    /// They make a point fit to be compiled, or refuse it.
    pub postprocessors: Postprocessors,
    /// The functions of the device.
    pub device: DeviceFunctions,
}

/// The features of a scheduled program, with the score of the device's draft model.
pub type ExtractFeatures = fn(&Program, &RunContext) -> Result<ProgramFeatures, FeatureError>;

/// A decision for a step that is aligned to the device, such as a tile that fills vectors; `None` for a step that has nothing to
/// align, and where nothing fits.
pub type AlignDecision = fn(&Step, &RunContext, &mut Rng) -> Option<Decision>;

/// Refuses a scheduled program that breaks a limit of the device.
pub type VerifyLimits = fn(&Program, &RunContext) -> Result<(), Rejection>;

/// Whether a block is the last of its nest, and has no annotations that tell the postprocessors how the nest is to run.
pub type LacksAnnotations = fn(&Schedule, BlockRv) -> Result<bool, ScheduleError>;

/// The functions of one kind of device, which no user exchanges.
#[derive(Clone, Copy, Debug)]
pub struct DeviceFunctions {
    /// The features that the cost model sees, and the draft model's score.
    pub extract_features: ExtractFeatures,
    /// The decisions that a search begins with.
    pub align_decision: AlignDecision,
    /// The limits of the device.
    pub verify_limits: VerifyLimits,
    /// Whether a nest still needs annotations.
    pub lacks_annotations: LacksAnnotations,
}

/// Why a search cannot be put together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The built-in rules cannot be put in order.
    #[error(transparent)]
    Rules(#[from] RuleSetError),
}

/// Why a program has no features.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FeatureError {
    /// The features are those of another kind of device.
    #[error(transparent)]
    Target(#[from] WrongTargetKind),
    /// The values do not form rows: a bug of ours.
    #[error(transparent)]
    Shape(#[from] FeatureShapeError),
}
