//! Compiled programs.

use std::time::Duration;

use super::{Arguments, CallError};
use crate::target::RunOptions;

/// A compiled program of a device. Safe to call with any arguments: they are checked.
pub trait Executable: Send + Sync {
    /// Runs the program. Buffers of the host hold the results when it returns. Buffers of the device may be written later, in
    /// the order in which runs were launched.
    ///
    /// # Errors
    /// [`CallError`] when the arguments do not fit the program, or an index that depends on data was out of bounds.
    fn run(&self, arguments: &mut Arguments<'_, '_>, options: RunOptions) -> Result<(), CallError>;

    /// Runs the program several times in a row, waits for the last run, and gives the time that all of them took together
    /// by the device's own clock.
    ///
    /// # Errors
    /// As [`Executable::run`].
    fn time(
        &self,
        arguments: &mut Arguments<'_, '_>,
        options: RunOptions,
        repetitions: u64,
    ) -> Result<Duration, CallError>;

    /// The size of the machine code, in bytes.
    fn code_bytes(&self) -> usize;
}
