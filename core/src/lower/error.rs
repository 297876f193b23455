//! Errors of lowering.

use crate::analysis::pipeline::PipelineFault;
use crate::dtype::DType;
use crate::ids::LoopId;
use crate::verify::VerifyErrors;

/// Why a program could not be lowered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LowerError {
    /// The given program is not well-formed at the `Blocks` level.
    #[error("lowering was given a malformed program: {0}")]
    Malformed(VerifyErrors),
    /// A pass made a malformed program: a bug of the pass.
    #[error("pass `{pass}` broke the program: {errors}")]
    Broken {
        /// The pass.
        pass: &'static str,
        /// The errors, with the names of the broken program.
        errors: VerifyErrors,
    },
    /// The size of a buffer in bytes does not fit 63 bits.
    #[error(
        "pass `{pass}`: buffer `{buffer}` of shape [{shape}] is too large to address; make its extents smaller"
    )]
    TooLarge {
        /// The pass.
        pass: &'static str,
        /// The buffer's name.
        buffer: String,
        /// Its extents, separated by commas.
        shape: String,
    },
    /// A loop is bound to threads of a GPU, which no machine here has.
    #[error(
        "loop `{variable}` is bound to `{axis}`, and this machine has no such threads; make the loop parallel instead"
    )]
    Bound {
        /// The loop's variable.
        variable: String,
        /// The axis.
        axis: &'static str,
    },
    /// A loop is bound to threads of a GPU that cannot execute it.
    #[error("loop `{variable}` cannot be bound to `{axis}`: {problem}")]
    Threads {
        /// The loop's variable.
        variable: String,
        /// The axis.
        axis: &'static str,
        /// The reason, and the remedy.
        problem: &'static str,
    },
    /// A loop is parallel, but a GPU has no such threads.
    #[error(
        "loop `{variable}` is parallel, and this target is a GPU; bind the loop to blocks or threads instead"
    )]
    Parallel {
        /// The loop's variable.
        variable: String,
    },
    /// A buffer whose elements share bytes is stored to.
    #[error(
        "buffer `{buffer}` of {dtype} cannot be stored to, because two elements share a byte; store bytes instead"
    )]
    PackedStore {
        /// The buffer's name.
        buffer: String,
        /// Its element type.
        dtype: DType,
    },
    /// A buffer cannot have the scope that a schedule gave it.
    #[error("buffer `{buffer}` cannot be `{scope}`: {problem}")]
    Scope {
        /// The buffer's name.
        buffer: String,
        /// The scope, as in the text form.
        scope: &'static str,
        /// The reason, and the remedy.
        problem: &'static str,
    },
    /// A loop cannot be executed in the annotated stages.
    #[error("loop `{variable}` cannot be pipelined: {problem}")]
    Pipeline {
        /// The loop.
        target: LoopId,
        /// Why.
        fault: PipelineFault,
        /// The loop's variable.
        variable: String,
        /// The problem.
        problem: String,
    },
    /// A reduction of symbolic size shares loops with its elements in a way that hides which elements need
    /// an initial value when there is nothing to combine.
    #[error(
        "the reduction of block `{block}` may have no point, and its loops do not say which elements it has then; \
         bind its sizes before lowering"
    )]
    UnknownElements {
        /// The block's name.
        block: String,
    },
}
