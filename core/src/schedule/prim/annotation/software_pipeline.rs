//! `software_pipeline`

use crate::analysis::pipeline::check_pipelines;
use crate::annotation::{PIPELINE_ORDER, PIPELINE_STAGE};
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::edit_loop_annotations;
use crate::schedule::find::require_loop;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{LoopRv, Schedule, ScheduleError};

/// Executes the statements of a loop in stages: a statement of stage `s` runs `s` iterations later, together with earlier
/// stages of the iterations that follow. Each stage then finds its operands ready.
///
/// Each statement of the loop's body has a stage, from 0 on, and a place among those that run together. The program stays as it
/// is: lowering reorders the statements, peels the first and the last iterations, and keeps a copy of each buffer of an
/// iteration for every iteration under way. An order in which a statement runs before one that it depends on is refused.
/// Lowering refuses a loop whose statements have changed since, so that this is one of the last steps of a schedule.
///
/// ```text
/// before
/// kernel scaled(in a: f32[32], out c: f32[32]) {
///   buffer b: f32[32] local
///   for i in 0..8 {
///     for j in 0..4 {
///       block b(v: spatial 32 = i*4 + j) {
///         b[v] = a[v] * 2.0
///       }
///     }
///     for j in 0..4 {
///       block c(v: spatial 32 = i*4 + j) {
///         c[v] = b[v] + 1.0
///       }
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// %1, %2 = get_loops %0
/// software_pipeline %1, [0, 1], [0, 1]
/// after
/// kernel scaled(in a: f32[32], out c: f32[32]) {
///   buffer b: f32[32] local
///   @software_pipeline_order [0, 1]
///   @software_pipeline_stage [0, 1]
///   for i in 0..8 {
///     for j in 0..4 {
///       block b(v: spatial 32 = i*4 + j) {
///         b[v] = a[v] * 2.0
///       }
///     }
///     for j_1 in 0..4 {
///       block c(v_1: spatial 32 = i*4 + j_1) {
///         c[v_1] = b[v_1] + 1.0
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SoftwarePipeline {
    /// The loop, which is serial.
    pub target: LoopRv,
    /// The stage of each statement of its body, up to [`MAX_PIPELINE_STAGE`](crate::analysis::pipeline::MAX_PIPELINE_STAGE).
    pub stages: Vec<i64>,
    /// The place of each statement, each from 0 on exactly once.
    pub order: Vec<i64>,
}

impl Primitive for SoftwarePipeline {
    const NAME: &'static str = "software_pipeline";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Loop(&mut self.target))?;
        visitor.visit(Argument::Numbers(&mut self.stages))?;
        visitor.visit(Argument::Numbers(&mut self.order))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let target = context.values.target_loop(self.target)?;
        require_loop(context.program, target)?;
        let mut pipelined = context.program.clone();
        edit_loop_annotations(&mut pipelined.body, target, &mut |annotations| {
            PIPELINE_STAGE.set(annotations, self.stages.clone());
            PIPELINE_ORDER.set(annotations, self.order.clone());
        });
        check_pipelines(&pipelined).map_err(|(target, fault)| ScheduleError::Pipeline { target, fault })?;
        *context.program = pipelined;
        Ok(Outputs::new())
    }
}

impl Schedule {
    /// Executes the statements of a loop in stages. See [`SoftwarePipeline`].
    ///
    /// # Errors
    /// When the loop is not serial, the stages and the order do not fit its statements, or a statement would run before one
    /// that it depends on.
    pub fn software_pipeline(
        &mut self,
        target: LoopRv,
        stages: &[i64],
        order: &[i64],
    ) -> Result<(), ScheduleError> {
        let (stages, order) = (stages.to_vec(), order.to_vec());
        self.push(SoftwarePipeline { target, stages, order }, None).map(drop)
    }
}
