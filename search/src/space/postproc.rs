//! Postprocessors: they turn a drawn schedule into one that can be compiled well, or refuse it.
//!
//! They are applied one after the other, after the mark [`enter_postproc`](tilewright_core::schedule::prim::EnterPostproc), and
//! use the same primitives as rules, so that the whole result is one trace. Users' postprocessors are made with
//! [`Postprocessor::new`] and put among the built-in ones:
//!
//! ```
//! use tilewright_core::target::TargetKind;
//! use tilewright_search::postproc::{Postprocessor, Postprocessors, Rejection};
//!
//! /// Refuses schedules that would take long to compile.
//! let is_short = Postprocessor::new("is_short", |schedule| {
//!     let steps = schedule.trace().steps().len();
//!     if steps > 200 { Err(Rejection("too_many_steps")) } else { Ok(()) }
//! });
//! let postprocessors = Postprocessors::built_in(TargetKind::Cpu).before("verify_limits", is_short)?;
//! # assert_eq!(postprocessors.names().len(), 10);
//! # Ok::<(), tilewright_search::chain::ChainError>(())
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};

use tilewright_core::schedule::{Schedule, ScheduleError};

use crate::space::chain::{Chain, Named};

/// The reason why a candidate was refused before compilation: a short, stable word for statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rejection(pub &'static str);

impl From<ScheduleError> for Rejection {
    fn from(error: ScheduleError) -> Self {
        Rejection(error.reason())
    }
}

impl std::fmt::Display for Rejection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

/// The function of a postprocessor.
pub type Postprocess = fn(&mut Schedule) -> Result<(), Rejection>;

/// Edits a drawn schedule, or refuses it.
#[derive(Clone, Copy, Debug)]
pub struct Postprocessor {
    name: &'static str,
    apply: Postprocess,
    is_built_in: bool,
}

impl Postprocessor {
    /// A postprocessor of a name. When it panics, the schedule is refused. When it never returns, the search hangs.
    pub const fn new(name: &'static str, apply: Postprocess) -> Self {
        Postprocessor { name, apply, is_built_in: false }
    }

    /// A postprocessor of this crate, which is trusted not to panic.
    pub(crate) const fn built_in(name: &'static str, apply: Postprocess) -> Self {
        Postprocessor { name, apply, is_built_in: true }
    }

    fn apply(&self, schedule: &mut Schedule) -> Result<(), Rejection> {
        if self.is_built_in {
            return (self.apply)(schedule);
        }
        catch_unwind(AssertUnwindSafe(|| (self.apply)(schedule))).unwrap_or(Err(PANIC))
    }
}

/// The reason of a postprocessor that panics.
const PANIC: Rejection = Rejection("postprocessor_panic");

impl Named for Postprocessor {
    const KIND: &'static str = "postprocessor";

    fn name(&self) -> &'static str {
        self.name
    }
}

/// Postprocessors in the order in which they are applied.
pub type Postprocessors = Chain<Postprocessor>;

impl Postprocessors {
    /// Applies them one after the other.
    ///
    /// # Errors
    /// When one refuses.
    pub fn apply(&self, schedule: &mut Schedule) -> Result<(), Rejection> {
        schedule.enter_postproc()?;
        self.elements().iter().try_for_each(|postprocessor| postprocessor.apply(schedule))
    }
}
