//! Why nothing could be measured.

use tilewright_runtime::Error;

/// Why nothing could be measured; an error of one candidate is a [`Failure`](crate::Failure).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// The kernel, its dimensions or the environment prevent it.
    #[error(transparent)]
    Runtime(#[from] Error),
    /// The measuring process does not work.
    #[error("the measuring process failed: {0}")]
    Worker(String),
}
