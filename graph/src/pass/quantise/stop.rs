//! Why a product is not rewritten.

use crate::build::BuildError;

/// Why a product is not rewritten.
pub(super) enum Stop {
    /// It stays in floats, for this reason.
    Stays(String),
    /// A call does not fit.
    Build(BuildError),
}

impl From<BuildError> for Stop {
    fn from(error: BuildError) -> Self {
        Stop::Build(error)
    }
}

/// Leaves the function: the product stays in floats.
macro_rules! stays {
    ($($message:tt)*) => {
        return Err($crate::pass::quantise::stop::Stop::Stays(format!($($message)*)))
    };
}
pub(super) use stays;
