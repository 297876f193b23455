//! The expected results of a program whose kernel is not linked.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tilewright_core::analysis::scope::blocks;
use tilewright_core::device::{Arguments, CompileError, Device};
use tilewright_core::interp;
use tilewright_core::lower::{LowerError, lower_kernel};
use tilewright_core::program::{Access, Program};
use tilewright_core::target::RunOptions;
use tilewright_core::tensor::AnyTensor;
use tilewright_runtime::{Error, code, devices};

use super::inputs::Inputs;
use super::{Subject, SubjectOptions, buffer_arguments, written};

/// Up to this number of points of its blocks the unscheduled program is interpreted: a few seconds.
const INTERPRETED_POINTS: f64 = 4e6;

/// Beyond this number of points the unscheduled program, compiled, would run for minutes.
const MOST_POINTS: f64 = 4e10;

/// Why a program has no expected results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OracleError {
    /// The unscheduled program would run for minutes.
    #[error(
        "the number of points that its blocks run through is too large to be replayed: {points:.1e}, at most {most:.1e}"
    )]
    TooLong {
        /// The number of points.
        points: f64,
        /// The limit.
        most: f64,
    },
    /// The unscheduled program has no value for random arguments.
    #[error("the unscheduled program cannot be interpreted: {0}")]
    Interpreter(#[from] interp::InterpError),
    /// The unscheduled program cannot be lowered.
    #[error("the unscheduled program cannot be lowered: {0}")]
    Lower(#[from] LowerError),
    /// The unscheduled program cannot be compiled on this machine.
    #[error("the unscheduled program cannot be compiled on this machine: {0}")]
    Compile(#[from] CompileError),
    /// The environment prevents it.
    #[error(transparent)]
    Other(#[from] Error),
}

/// The source of the expected results of a program that is stored beside records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Oracle {
    /// The unscheduled program, interpreted.
    Interpreter,
    /// The unscheduled program, compiled: interpreting it would take too long.
    Unscheduled,
}

impl Oracle {
    /// The interpreter, unless that would take too long; then compiled code.
    ///
    /// # Errors
    /// [`OracleError::TooLong`] when both would take too long.
    pub fn of(bound: &Program) -> Result<Self, OracleError> {
        let points = points(bound);
        if points > MOST_POINTS {
            return Err(OracleError::TooLong { points, most: MOST_POINTS });
        }
        Ok(if points <= INTERPRETED_POINTS { Oracle::Interpreter } else { Oracle::Unscheduled })
    }

    /// A bound program with arguments, and with the results that this oracle gives.
    ///
    /// # Errors
    /// When the program has no results.
    pub fn subject(
        self,
        bound: Program,
        device: Arc<dyn Device>,
        options: &SubjectOptions,
    ) -> Result<Subject, OracleError> {
        let reference = match self {
            Oracle::Interpreter => interpreted,
            Oracle::Unscheduled => unscheduled,
        };
        Subject::of_program(bound, device, options, &reference)
    }
}

/// The number of points that the blocks of a bound program run through.
pub(super) fn points(bound: &Program) -> f64 {
    let extent = |extent: Option<i64>| extent.unwrap_or(1).max(0) as f64;
    blocks(&bound.body)
        .into_iter()
        .map(|block| block.iters.iter().map(|iter| extent(iter.extent.as_constant())).product::<f64>())
        .sum()
}

fn interpreted(bound: &Program, inputs: &Inputs) -> Result<Vec<Option<AnyTensor>>, OracleError> {
    let mut tensors = inputs.tensors.clone();
    interp::run(bound, &[], &inputs.scalars, &mut tensors)?;
    Ok(written(bound, tensors))
}

fn unscheduled(bound: &Program, inputs: &Inputs) -> Result<Vec<Option<AnyTensor>>, OracleError> {
    let device = devices::default_device()?;
    let lowered = lower_kernel(bound, device.target())?;
    let code = code::compile(&device, &[&lowered]).pop().expect("one result for one program")?;
    let accesses: Vec<Access> = bound.buffer_params().map(|(_, access)| access).collect();
    let mut tensors = inputs.tensors.clone();
    let mut buffers = buffer_arguments(&mut tensors, &accesses);
    let mut arguments = Arguments { dims: &[], scalars: &inputs.scalars, buffers: &mut buffers };
    code.run(&mut arguments, RunOptions::with_threads(1)).map_err(Error::from)?;
    Ok(written(bound, tensors))
}
