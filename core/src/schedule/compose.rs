//! Steps that are often made together: either all of them are, or the schedule is unchanged.

use crate::program::Scope;
use crate::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};

impl Schedule {
    /// Lets a block read a copy of its `read`-th operand that is made in each iteration of a loop, and gives the block that
    /// makes it: [`Schedule::cache_read`] and [`Schedule::compute_at`].
    ///
    /// # Errors
    /// The errors of the two primitives.
    pub fn read_at(
        &mut self,
        target: LoopRv,
        block: BlockRv,
        read: i64,
        scope: Scope,
    ) -> Result<BlockRv, ScheduleError> {
        self.all_or_none(|schedule| {
            let copy = schedule.cache_read(block, read, scope)?;
            schedule.compute_at(copy, target).map(|()| copy)
        })
    }

    /// Lets a block write a buffer of its own that is copied to the result in each iteration of a loop, and gives the block
    /// that copies: [`Schedule::cache_write`] and [`Schedule::reverse_compute_at`].
    ///
    /// # Errors
    /// The errors of the two primitives.
    pub fn write_at(
        &mut self,
        target: LoopRv,
        block: BlockRv,
        scope: Scope,
    ) -> Result<BlockRv, ScheduleError> {
        self.all_or_none(|schedule| {
            let copy = schedule.cache_write(block, scope)?;
            schedule.reverse_compute_at(copy, target).map(|()| copy)
        })
    }

    fn all_or_none<T>(
        &mut self,
        steps: impl FnOnce(&mut Schedule) -> Result<T, ScheduleError>,
    ) -> Result<T, ScheduleError> {
        let mut attempt = self.clone();
        let result = steps(&mut attempt)?;
        *self = attempt;
        Ok(result)
    }
}
