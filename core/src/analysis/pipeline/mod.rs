//! Whether a loop can be executed as a software pipeline.
//!
//! The annotations of a loop give a stage and a place to each statement of its body (`Plan`). A statement of stage `s` runs `s`
//! iterations later, together with earlier stages of the iterations that follow. `check_dependences` tells whether each statement
//! still finds its operands then. It has two callers: the primitive
//! [`software_pipeline`](crate::schedule::prim::SoftwarePipeline) about loops around blocks (`check_pipelines`), and lowering about
//! loops without blocks, when it carries the pipeline out. They differ in how they find the buffers of one iteration:
//! lowering has allocated them inside the loop before.

mod blocks;
mod dependence;
mod plan;

pub(crate) use blocks::check_pipelines;
pub(crate) use dependence::check_dependences;
pub use plan::{MAX_PIPELINE_STAGE, PipelineFault};
pub(crate) use plan::{Plan, statements, without_plan};

use crate::ids::BufferId;
use crate::stmt::Stmt;

/// The body of a pipelined loop, without blocks.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) statements: Vec<Statement>,
    /// The buffers that belong to one iteration.
    pub(crate) own: Vec<BufferId>,
}

/// A statement of a pipelined loop.
pub(crate) struct Statement {
    /// Its number in the loop's body, from 0.
    pub(crate) number: usize,
    pub(crate) body: Stmt,
}
