//! The pipeline that the annotations of a loop describe, and why a loop cannot be pipelined.

use crate::annotation::{Key, PIPELINE_ASYNC, PIPELINE_ORDER, PIPELINE_STAGE};
use crate::ids::BufferId;
use crate::stmt::{For, LoopKind, Stmt};

/// The last stage that there may be: iterations that are under way at once are written out before and after the loop.
pub const MAX_PIPELINE_STAGE: i64 = 15;

/// Why a loop cannot be pipelined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PipelineFault {
    /// An annotation is no list of numbers.
    NotNumbers,
    /// There are not as many stages, or places, as statements.
    Count {
        /// How many statements the loop has.
        statements: usize,
        /// How many numbers the annotation has.
        numbers: usize,
    },
    /// A stage is negative or above [`MAX_PIPELINE_STAGE`].
    BadStage(i64),
    /// The order does not give each place once.
    BadOrder,
    /// The loop is parallel, vectorized, unrolled or bound to threads.
    NotSerial,
    /// The loop stands in the body of a block, which is executed as a whole.
    InsideBlock,
    /// Statements of an asynchronous stage and of the same stage access a buffer.
    AsyncStage {
        /// The number of the asynchronous statement, from 0.
        copy: usize,
        /// The number of the other one.
        user: usize,
        /// The buffer that both access.
        buffer: BufferId,
    },
    /// A statement would be executed before one that it depends on, in the same iteration or in an earlier one.
    Dependence {
        /// The number of the statement that comes first without a pipeline, from 0.
        first: usize,
        /// The number of the other one.
        second: usize,
        /// The buffer that both access, and one writes.
        buffer: BufferId,
    },
}

impl PipelineFault {
    /// The fault in words; `name` gives those of buffers.
    pub(crate) fn describe(self, name: impl FnOnce(BufferId) -> String) -> String {
        match self {
            PipelineFault::NotNumbers => {
                format!("`{}` and `{}` are lists of numbers", PIPELINE_STAGE.name(), PIPELINE_ORDER.name())
            }
            PipelineFault::Count { statements, numbers } => {
                format!("it has {statements} statements, and {numbers} numbers are given; give one for each")
            }
            PipelineFault::BadStage(stage) => {
                format!("{stage} is no stage; stages are between 0 and {MAX_PIPELINE_STAGE}")
            }
            PipelineFault::BadOrder => {
                "the order must give each place, from 0 on, to one statement".to_owned()
            }
            PipelineFault::NotSerial => "it is parallel, vectorized, unrolled or bound to threads".to_owned(),
            PipelineFault::InsideBlock => {
                "it stands in the body of a block; pipeline before blockize".to_owned()
            }
            PipelineFault::AsyncStage { copy, user, buffer } => format!(
                "its statement {copy}, counted from 0, stores to `{}` asynchronously, which statement {user} needs in the same \
                 stage; give the latter a larger stage",
                name(buffer)
            ),
            PipelineFault::Dependence { first, second, buffer } => format!(
                "its statements {first} and {second}, counted from 0, both access `{}` and would not be \
                 executed in the order in which they have to; give the former a smaller stage or place",
                name(buffer)
            ),
        }
    }
}

/// The stage of each statement of a loop, and its place among those that are executed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) stages: Vec<i64>,
    pub(crate) order: Vec<i64>,
    /// The stages whose statements copy asynchronously.
    pub(crate) asynchronous: Vec<i64>,
}

impl Plan {
    /// The pipeline that the annotations of a loop describe; `None` when it has none. Without an order, statements keep theirs.
    pub(crate) fn of(node: &For) -> Result<Option<Plan>, PipelineFault> {
        let numbers = |key: Key<Vec<i64>>| match key.get(&node.annotations) {
            None if key.is_in(&node.annotations) => Err(PipelineFault::NotNumbers),
            numbers => Ok(numbers),
        };
        let (stages, order) = (numbers(PIPELINE_STAGE)?, numbers(PIPELINE_ORDER)?);
        let asynchronous = numbers(PIPELINE_ASYNC)?;
        let Some(stages) = stages else {
            let is_plain = order.is_none() && asynchronous.is_none();
            return if is_plain { Ok(None) } else { Err(PipelineFault::NotNumbers) };
        };
        if node.kind != LoopKind::Serial {
            return Err(PipelineFault::NotSerial);
        }
        if let Some(stage) = stages.iter().find(|stage| !(0..=MAX_PIPELINE_STAGE).contains(*stage)) {
            return Err(PipelineFault::BadStage(*stage));
        }
        let order = order.unwrap_or_else(|| (0..stages.len() as i64).collect());
        if order.len() != stages.len() {
            return Err(PipelineFault::Count { statements: stages.len(), numbers: order.len() });
        }
        let mut places = order.clone();
        places.sort_unstable();
        if !places.iter().copied().eq(0..order.len() as i64) {
            return Err(PipelineFault::BadOrder);
        }
        Ok(Some(Plan { stages, order, asynchronous: asynchronous.unwrap_or_default() }))
    }

    /// As [`Plan::of`]; the statements are those of the loop's body.
    pub(crate) fn of_statements(node: &For) -> Result<Option<Plan>, PipelineFault> {
        let Some(plan) = Plan::of(node)? else { return Ok(None) };
        let statements = statements(&node.body).len();
        match plan.stages.len() {
            numbers if numbers == statements => Ok(Some(plan)),
            numbers => Err(PipelineFault::Count { statements, numbers }),
        }
    }

    /// Whether a statement copies asynchronously.
    pub(crate) fn is_async(&self, statement: usize) -> bool {
        self.asynchronous.contains(&self.stages[statement])
    }

    /// When a statement is executed: how many iterations later, and at which place then.
    pub(crate) fn time(&self, statement: usize) -> (i64, i64) {
        (self.stages[statement], self.order[statement])
    }
}

/// The statements of a loop's body.
pub(crate) fn statements(body: &Stmt) -> &[Stmt] {
    match body {
        Stmt::Seq(stmts) => stmts,
        single => std::slice::from_ref(single),
    }
}

/// Takes the annotations off a loop.
pub(crate) fn without_plan(node: &mut For) {
    PIPELINE_STAGE.remove(&mut node.annotations);
    PIPELINE_ORDER.remove(&mut node.annotations);
    PIPELINE_ASYNC.remove(&mut node.annotations);
}
