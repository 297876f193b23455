//! The graph under construction.

use std::cell::RefCell;

use rustc_hash::FxHashMap;
use tilewright_core::dtype::DType;
use tilewright_core::tensor::{AnyTensor, Element};

use super::extent::{Dim, GraphDim};
use super::traced::Traced;
use super::{EqualExtents, GraphError, GraphInput, GraphOutput, GraphStep, GraphValue, KernelGraph, element};
use crate::error::Error;

thread_local! {
    /// The graph that this thread records.
    static RECORDED: RefCell<Option<Recorder>> = const { RefCell::new(None) };
}

/// A graph, and the tensors elsewhere that have become constants of it.
pub(super) struct Recorder {
    pub(super) graph: KernelGraph,
    /// By address and length: a weight that is used twice is one constant.
    constants: FxHashMap<(usize, usize), usize>,
}

impl Recorder {
    /// Adds a tensor.
    pub(super) fn value(&mut self, dtype: DType, shape: &[Dim]) -> usize {
        let shape = shape.iter().map(|extent| extent.extent().clone()).collect();
        self.graph.values.push(GraphValue { dtype, shape });
        self.graph.values.len() - 1
    }

    /// Adds a tensor that is the same in every run. `key` says where it lies, if it stays there.
    pub(super) fn constant(
        &mut self,
        key: Option<(usize, usize)>,
        make: impl FnOnce() -> Result<AnyTensor, Error>,
    ) -> Result<usize, Error> {
        if let Some(known) = key.and_then(|key| self.constants.get(&key)) {
            return Ok(*known);
        }
        let tensor = make()?;
        let shape: Vec<Dim> = tensor.shape().iter().map(|&extent| Dim::from(extent)).collect();
        let value = self.value(tensor.dtype(), &shape);
        self.graph.steps.push(GraphStep::Constant { tensor, value });
        if let Some(key) = key {
            self.constants.insert(key, value);
        }
        Ok(value)
    }

    /// Notes that two extents have to be equal; an error where they cannot be.
    pub(super) fn check(
        &mut self,
        found: Dim,
        expected: Dim,
        place: &dyn Fn() -> String,
    ) -> Result<(), Error> {
        if found == expected {
            return Ok(());
        }
        if found.differs(expected) {
            return Err(mismatch(place(), found, expected));
        }
        let (found, expected) = (found.to_extent(), expected.to_extent());
        self.graph.checks.push(EqualExtents { found, expected, place: place() });
        Ok(())
    }
}

fn mismatch(place: String, found: impl ToString, expected: impl ToString) -> Error {
    GraphError::Extent { place, found: found.to_string(), expected: expected.to_string() }.into()
}

/// Uses the graph that this thread records.
pub(super) fn with_recorder<R>(act: impl FnOnce(&mut Recorder) -> Result<R, Error>) -> Result<R, Error> {
    RECORDED.with_borrow_mut(|recorder| match recorder {
        Some(recorder) => act(recorder),
        None => Err(GraphError::NotRecording.into()),
    })
}

/// Ends the recording of this thread, also when the function that is recorded panics.
struct Recording;

impl Drop for Recording {
    fn drop(&mut self) {
        RECORDED.take();
    }
}

/// Records the graph that `function` describes; it gives the outputs.
///
/// # Errors
/// When the function fails, or a graph is recorded already.
pub fn record(
    name: &str,
    function: impl FnOnce() -> Result<Vec<GraphOutput>, Error>,
) -> Result<KernelGraph, Error> {
    let graph = KernelGraph {
        name: name.to_owned(),
        values: Vec::new(),
        inputs: Vec::new(),
        steps: Vec::new(),
        outputs: Vec::new(),
        checks: Vec::new(),
    };
    RECORDED.with_borrow_mut(|recorder| match recorder {
        Some(outer) => {
            let (outer, inner) = (outer.graph.name.clone(), name.to_owned());
            Err(Error::from(GraphError::Nested { outer, inner }))
        }
        None => {
            *recorder = Some(Recorder { graph, constants: FxHashMap::default() });
            Ok(())
        }
    })?;
    let recording = Recording;
    let outputs = function()?;
    let recorded = RECORDED.take().map(|recorder| KernelGraph { outputs, ..recorder.graph });
    drop(recording);
    recorded.ok_or_else(|| GraphError::NotRecording.into())
}

/// An argument of the function that is recorded, with its extents.
///
/// # Errors
/// When no graph is recorded.
pub fn input<T: Element, const RANK: usize>(
    name: &str,
    shape: [Dim; RANK],
) -> Result<Traced<T, RANK>, Error> {
    with_recorder(|recorder| {
        let value = recorder.value(T::DTYPE, &shape);
        recorder.graph.inputs.push(GraphInput { name: name.to_owned(), value });
        Ok(Traced::new(value, shape))
    })
}

/// An argument of the function that is recorded that is a list of tensors, with the extents of each.
///
/// # Errors
/// When no graph is recorded.
pub fn inputs<T: Element, const RANK: usize>(
    name: &str,
    count: usize,
    shape: [Dim; RANK],
) -> Result<Vec<Traced<T, RANK>>, Error> {
    (0..count).map(|place| input(&element(name, place), shape)).collect()
}

/// The first tensor of an argument that is a list, which gives a dimension its size.
///
/// # Errors
/// [`GraphError::EmptyList`] when there is none.
pub fn first<'l, T>(graph: &str, argument: &str, dimension: &str, list: &'l [T]) -> Result<&'l T, Error> {
    list.first().ok_or_else(|| {
        let (graph, argument) = (graph.to_owned(), argument.to_owned());
        GraphError::EmptyList { graph, argument, dimension: dimension.to_owned() }.into()
    })
}

/// Checks an extent of an argument or a result of a graph function: at once in a call, and as far as it is known while the graph is
/// recorded.
///
/// # Errors
/// [`GraphError::Extent`] when the extents differ.
pub fn check_extent<D: GraphDim>(
    graph: &str,
    tensor: &str,
    (axis, dimension): (usize, &str),
    found: D,
    expected: impl Into<D>,
) -> Result<(), Error> {
    let expected: D = expected.into();
    let place = || format!("graph `{graph}`, {tensor}: dimension {axis} (`{dimension}`)");
    if found.differs(expected) {
        return Err(mismatch(place(), found, expected));
    }
    let (found, expected) = (found.to_extent(), expected.to_extent());
    if found == expected {
        return Ok(());
    }
    with_recorder(|recorder| {
        recorder.graph.checks.push(EqualExtents { found, expected, place: place() });
        Ok(())
    })
}
