//! Why nothing could be measured.

use tilewright_runtime::Error;

/// Why nothing could be measured; what is wrong with one candidate is a [`Failure`](crate::Failure).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// The kernel, its dimensions or the environment are not fit for it.
    #[error(transparent)]
    Runtime(#[from] Error),
    /// The measuring process cannot do its work.
    #[error("the measuring process failed: {0}")]
    Worker(String),
}
