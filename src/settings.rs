//! Settings of the whole process: those of [kernels at run time](tilewright_runtime::settings), and the budget of benchmark
//! programs.
//!
//! | environment variable | meaning |
//! |---|---|
//! | `TILEWRIGHT_BUDGET` | the budget for tuning all kernels of a benchmark program: measurements or time, such as `500`, `90s`, `10min` |

use tilewright_runtime::settings::variable;
pub use tilewright_runtime::settings::{
    packed_limit, set_packed_limit, set_spare_limit, set_specialized_shapes, set_threads, specialized_shapes,
    threads,
};
use tilewright_search::scheduler::{Budget, BudgetError};

use crate::Error;

const BUDGET_VARIABLE: &str = "TILEWRIGHT_BUDGET";

/// The budget for tuning all kernels of a benchmark program, if the environment has one.
///
/// # Errors
/// [`Error::Environment`] when `TILEWRIGHT_BUDGET` is no budget.
pub fn budget() -> Result<Option<Budget>, Error> {
    let Some(value) = variable(BUDGET_VARIABLE)?.filter(|value| !value.trim().is_empty()) else {
        return Ok(None);
    };
    let budget = value.trim().parse();
    budget.map(Some).map_err(|error: BudgetError| Error::Environment {
        variable: BUDGET_VARIABLE,
        problem: error.to_string(),
        value,
    })
}
