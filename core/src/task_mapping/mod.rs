//! Task mappings: which worker does which tasks, as a value.
//!
//! A mapping distributes a box of tasks over workers, such as the elements of a tile over the threads of a block. There are two
//! elementary ones, and mappings of the same number of dimensions are composed:
//!
//! | mapping | workers | tasks of worker `w` |
//! |---|---|---|
//! | `spatial(4, 8)` | 32 | one: `(w / 8, w % 8)` |
//! | `repeat(4, 8)` | 1 | all 32, the last dimension fastest |
//! | `outer * inner` | product of both | `t·d + u` for each task `t` that `outer` gives to worker `w / n`, and each task `u` that `inner` gives to `w % n`, where `inner` has `n` workers and the shape `d` |
//!
//! `ranks` orders the dimensions: the one with the greatest rank is fastest. The algebra is that of Hidet (Ding et al., "Hidet: Task-Mapping
//! Programming Paradigm for Deep Learning Tensor Programs", ASPLOS 2023).
//!
//! ```
//! use tilewright_core::task_mapping::TaskMapping;
//!
//! let mapping: TaskMapping = "repeat(2, 1) * spatial(1, 4) * repeat(1, 2)".parse()?;
//! assert_eq!((mapping.workers(), mapping.shape()), (4, [2, 8].into()));
//! assert_eq!(mapping.tasks(1), [[0, 2], [0, 3], [1, 2], [1, 3]]);
//! # Ok::<(), tilewright_core::task_mapping::TaskMappingError>(())
//! ```

mod automatic;
mod text;

use std::ops::Mul;

/// How an elementary mapping distributes its box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// Each task has a worker of its own.
    Spatial,
    /// One worker does all tasks one after the other.
    Repeat,
}

/// An elementary mapping.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Elementary {
    /// How the box is distributed.
    pub distribution: Distribution,
    /// The extents of the box.
    pub shape: Vec<i64>,
    /// For each dimension its place in the order, from 0 for the slowest.
    pub ranks: Vec<usize>,
}

/// A task mapping: elementary ones, composed from the outermost to the innermost.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TaskMapping {
    elementary: Vec<Elementary>,
}

/// Why a task mapping cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskMappingError {
    /// An extent is below 1, or there is no dimension, or the box has too many tasks.
    #[error(
        "a task mapping of shape {0:?}: expected one extent or more, each at least 1, with a product below 2^63"
    )]
    Shape(Vec<i64>),
    /// The ranks do not order the dimensions.
    #[error(
        "ranks {ranks:?} of a task mapping with {dimensions} dimensions: expected each number below {dimensions} once"
    )]
    Ranks {
        /// The ranks that were given.
        ranks: Vec<usize>,
        /// The number of dimensions.
        dimensions: usize,
    },
    /// Two mappings have different numbers of dimensions.
    #[error(
        "mappings of {outer} and of {inner} dimensions cannot be composed; give both the same number of extents"
    )]
    Dimensions {
        /// The number of dimensions of the outer mapping.
        outer: usize,
        /// The number of dimensions of the inner mapping.
        inner: usize,
    },
    /// The workers cannot share the tasks evenly.
    #[error(
        "{workers} workers cannot share a box of shape {shape:?} evenly; take a divisor of the number of its tasks, or a covering mapping"
    )]
    Uneven {
        /// The extents of the box.
        shape: Vec<i64>,
        /// The number of workers.
        workers: i64,
    },
    /// A text is no task mapping.
    #[error("`{text}` is no task mapping: expected {expected}, as in `spatial(4, 8) * repeat(2, 2)`")]
    Text {
        /// The part that is wrong.
        text: String,
        /// The expected text.
        expected: &'static str,
    },
}

impl Elementary {
    /// An elementary mapping with given ranks.
    ///
    /// # Errors
    /// [`TaskMappingError::Shape`] and [`TaskMappingError::Ranks`].
    pub fn new(distribution: Distribution, shape: &[i64], ranks: &[usize]) -> Result<Self, TaskMappingError> {
        let tasks = shape.iter().try_fold(1i64, |tasks, extent| tasks.checked_mul(*extent));
        if shape.is_empty() || shape.iter().any(|extent| *extent < 1) || tasks.is_none() {
            return Err(TaskMappingError::Shape(shape.to_vec()));
        }
        let mut sorted = ranks.to_vec();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..shape.len()) {
            return Err(TaskMappingError::Ranks { ranks: ranks.to_vec(), dimensions: shape.len() });
        }
        Ok(Elementary { distribution, shape: shape.to_vec(), ranks: ranks.to_vec() })
    }

    /// The dimensions in their order, the slowest first.
    pub fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.shape.len()).collect();
        order.sort_by_key(|dimension| self.ranks[*dimension]);
        order
    }

    /// The number of workers.
    pub fn workers(&self) -> i64 {
        match self.distribution {
            Distribution::Spatial => self.shape.iter().product(),
            Distribution::Repeat => 1,
        }
    }

    /// The task with a number in the order of the ranks.
    fn task(&self, number: i64) -> Vec<i64> {
        let mut task = vec![0; self.shape.len()];
        let mut rest = number;
        for dimension in self.order().into_iter().rev() {
            task[dimension] = rest % self.shape[dimension];
            rest /= self.shape[dimension];
        }
        task
    }

    fn tasks(&self, worker: i64) -> Vec<Vec<i64>> {
        match self.distribution {
            Distribution::Spatial => vec![self.task(worker)],
            Distribution::Repeat => {
                (0..self.shape.iter().product()).map(|number| self.task(number)).collect()
            }
        }
    }
}

impl TaskMapping {
    /// A worker for each task; the last dimension is fastest.
    ///
    /// # Errors
    /// [`TaskMappingError::Shape`].
    pub fn spatial(shape: &[i64]) -> Result<Self, TaskMappingError> {
        Self::elementary(Distribution::Spatial, shape)
    }

    /// One worker for all tasks; the last dimension is fastest.
    ///
    /// # Errors
    /// [`TaskMappingError::Shape`].
    pub fn repeat(shape: &[i64]) -> Result<Self, TaskMappingError> {
        Self::elementary(Distribution::Repeat, shape)
    }

    fn elementary(distribution: Distribution, shape: &[i64]) -> Result<Self, TaskMappingError> {
        let ranks: Vec<usize> = (0..shape.len()).collect();
        Elementary::new(distribution, shape, &ranks).map(Self::from)
    }

    /// The composition, in which this mapping distributes boxes of the shape of `inner`.
    ///
    /// # Errors
    /// [`TaskMappingError::Dimensions`], and [`TaskMappingError::Shape`] where the box becomes too large.
    pub fn compose(&self, inner: &Self) -> Result<Self, TaskMappingError> {
        let (own, other) = (self.dimensions(), inner.dimensions());
        if own != other {
            return Err(TaskMappingError::Dimensions { outer: own, inner: other });
        }
        let composed = TaskMapping { elementary: [&self.elementary[..], &inner.elementary].concat() };
        let extents = composed.elementary.iter().flat_map(|part| &part.shape);
        let tasks = extents.copied().try_fold(1i64, |tasks, extent| tasks.checked_mul(extent));
        tasks
            .map(|_| composed)
            .ok_or_else(|| TaskMappingError::Shape(self.shape().into_iter().chain(inner.shape()).collect()))
    }

    /// The elementary mappings that it is composed of, the outermost first.
    pub fn parts(&self) -> &[Elementary] {
        &self.elementary
    }

    /// The number of dimensions.
    pub fn dimensions(&self) -> usize {
        self.elementary[0].shape.len()
    }

    /// The number of workers.
    pub fn workers(&self) -> i64 {
        self.elementary.iter().map(Elementary::workers).product()
    }

    /// The extents of the whole box.
    pub fn shape(&self) -> Vec<i64> {
        let extent = |dimension: usize| self.elementary.iter().map(|part| part.shape[dimension]).product();
        (0..self.dimensions()).map(extent).collect()
    }

    /// The tasks of a worker, in order; none for a number that no worker has.
    pub fn tasks(&self, worker: i64) -> Vec<Vec<i64>> {
        if !(0..self.workers()).contains(&worker) {
            return Vec::new();
        }
        let mut rest = worker;
        let mut tasks = vec![vec![0; self.dimensions()]];
        let mut extents = vec![1; self.dimensions()];
        for part in self.elementary.iter().rev() {
            let own = part.tasks(rest % part.workers());
            rest /= part.workers();
            let place = |outer: &Vec<i64>, inner: &Vec<i64>| -> Vec<i64> {
                (0..extents.len()).map(|d| outer[d] * extents[d] + inner[d]).collect()
            };
            tasks = own.iter().flat_map(|outer| tasks.iter().map(move |inner| place(outer, inner))).collect();
            extents.iter_mut().zip(&part.shape).for_each(|(extent, more)| *extent *= more);
        }
        tasks
    }
}

impl From<Elementary> for TaskMapping {
    fn from(elementary: Elementary) -> Self {
        TaskMapping { elementary: vec![elementary] }
    }
}

/// [`TaskMapping::compose`].
impl Mul for &TaskMapping {
    type Output = Result<TaskMapping, TaskMappingError>;

    fn mul(self, inner: Self) -> Self::Output {
        self.compose(inner)
    }
}

#[cfg(test)]
mod tests;
