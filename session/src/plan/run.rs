//! Following a plan.

use std::time::{Duration, Instant};

use aligned_vec::{AVec, ConstAlign};
use smallvec::SmallVec;
use tilewright_core::device::BufferArgument;
use tilewright_graph::operator::{Arguments, Value};
use tilewright_graph::tensor::HostTensor;

use crate::error::Error;
use crate::model::Graph;
use crate::plan::memory::ALIGNMENT;
use crate::plan::{Action, Place, Plan, Slice, Step, host};
use crate::profile::{Clock, Way};

/// The arena of a session.
#[derive(Debug)]
pub(crate) struct Memory(AVec<u8, ConstAlign<ALIGNMENT>>);

impl Default for Memory {
    fn default() -> Self {
        Memory(AVec::new(ALIGNMENT))
    }
}

impl Memory {
    /// Makes room for a plan.
    pub(crate) fn reserve(&mut self, bytes: usize) -> Result<(), Error> {
        let more = bytes.saturating_sub(self.0.len());
        self.0.try_reserve(more).map_err(|_| Error::Memory { bytes })?;
        if more > 0 {
            self.0.resize(bytes, 0);
        }
        Ok(())
    }

    /// How many bytes it has.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Plan {
    /// Runs all steps, and gives the results.
    pub(crate) fn results(
        &self,
        graph: &Graph,
        inputs: &[&HostTensor],
        memory: &mut Memory,
        clock: Option<&Clock>,
    ) -> Result<Vec<HostTensor>, Error> {
        self.follow(graph, inputs, memory, clock)?;
        self.outputs.iter().map(|slice| self.host(slice, graph, inputs, memory)).collect()
    }

    /// Runs all steps. A clock measures each of them.
    pub(crate) fn follow(
        &self,
        graph: &Graph,
        inputs: &[&HostTensor],
        memory: &mut Memory,
        clock: Option<&Clock>,
    ) -> Result<(), Error> {
        memory.reserve(self.arena)?;
        let Some(clock) = clock else {
            return self.steps.iter().try_for_each(|step| self.run(step, graph, inputs, memory));
        };
        clock.note_arena(self.arena, self.lower_bound);
        for step in &self.steps {
            let start = Instant::now();
            self.run(step, graph, inputs, memory)?;
            let time = start.elapsed();
            step.count(clock, time);
        }
        Ok(())
    }

    /// Runs one step.
    fn run(
        &self,
        step: &Step,
        graph: &Graph,
        inputs: &[&HostTensor],
        memory: &mut Memory,
    ) -> Result<(), Error> {
        match &step.action {
            Action::Kernel(kernel, dims) => {
                let mut buffers = self.arguments(step, graph, inputs, memory)?;
                kernel
                    .run(dims, &[], &mut buffers)
                    .map_err(|source| Error::Kernel { node: step.name.to_string(), source: Box::new(source) })
            }
            Action::Evaluate { call, given, .. } => {
                let mut slices = step.inputs.iter();
                let mut arguments = Vec::with_capacity(given.len());
                for is_given in given {
                    let slice = if *is_given { slices.next() } else { None };
                    let tensor = slice.map(|slice| self.host(slice, graph, inputs, memory)).transpose()?;
                    arguments.push(tensor.map(Value::Tensor));
                }
                let results = (call.operator.evaluate)(&Arguments {
                    operator: call.operator,
                    attributes: &call.attributes,
                    inputs: &arguments,
                    outputs: step.outputs.len(),
                })
                .map_err(|fault| failed(step, fault.0))?;
                for (place, slice) in step.outputs.iter().enumerate() {
                    let result = results.get(place).and_then(Value::as_tensor);
                    store(step, slice, result, memory)?;
                }
                Ok(())
            }
        }
    }

    /// A tensor as a value of its own.
    pub(crate) fn host(
        &self,
        slice: &Slice,
        graph: &Graph,
        inputs: &[&HostTensor],
        memory: &Memory,
    ) -> Result<HostTensor, Error> {
        match slice.place {
            Place::Input(place) => part_of(inputs[place], slice),
            Place::Constant(value) => {
                let constant = graph.constant(value).expect("a plan names constants of its graph");
                constant.load()?;
                part_of(constant, slice)
            }
            Place::Known(place) => Ok(host(slice, slice.of(self.known[place].bytes()))?),
            Place::Arena(offset, size) => Ok(host(slice, slice.of(&memory.0[offset..offset + size]))?),
        }
    }

    /// Makes a tensor what [`Plan::host`] gives, in its own memory where that fits.
    pub(crate) fn update(
        &self,
        slice: &Slice,
        graph: &Graph,
        inputs: &[&HostTensor],
        memory: &Memory,
        tensor: &mut HostTensor,
    ) -> Result<(), Error> {
        let fits = tensor.element() == slice.element && tensor.shape() == slice.shape;
        let is_done = fits
            && match slice.place {
                _ if slice.part.is_some() => false,
                Place::Input(place) => tensor.is_same(inputs[place]),
                Place::Constant(value) => graph.constant(value).is_some_and(|own| tensor.is_same(own)),
                Place::Known(place) => tensor.overwrite(self.known[place].bytes()),
                Place::Arena(offset, size) => tensor.overwrite(&memory.0[offset..offset + size]),
            };
        if !is_done {
            *tensor = self.host(slice, graph, inputs, memory)?;
        }
        Ok(())
    }

    /// The arguments of a kernel.
    fn arguments<'a>(
        &'a self,
        step: &Step,
        graph: &'a Graph,
        inputs: &'a [&HostTensor],
        memory: &'a mut Memory,
    ) -> Result<SmallVec<[BufferArgument<'a>; 8]>, Error> {
        let mut regions: SmallVec<[Region<'a>; 8]> = SmallVec::new();
        for slice in step.inputs.iter().chain(&step.outputs) {
            if let Place::Arena(offset, size) = slice.place
                && !regions.iter().any(|region| region.offset == offset && region.size == size)
            {
                regions.push(Region { offset, size, bytes: None });
            }
        }
        regions.sort_unstable_by_key(|region| (region.offset, region.size));
        let (mut rest, mut passed): (&'a mut [u8], usize) = (&mut memory.0, 0);
        for region in &mut regions {
            // Regions of one step live at the same time, so that the plan keeps them apart.
            let (_, from) = rest.split_at_mut(region.offset - passed);
            let (bytes, behind) = from.split_at_mut(region.size);
            region.bytes = Some(Bytes::Write(bytes));
            (rest, passed) = (behind, region.offset + region.size);
        }
        let mut arguments = SmallVec::new();
        for slice in &step.inputs {
            arguments.push(match slice.place {
                Place::Input(place) => BufferArgument::Read(
                    slice.of(inputs[place].bytes().ok_or_else(|| failed(step, "an input has no bytes"))?),
                ),
                Place::Constant(value) => {
                    let constant = graph.kernel_constant(value);
                    let constant = constant.ok_or_else(|| failed(step, "a constant has no bytes"))?;
                    match slice.part {
                        Some(_) => {
                            let bytes = constant.bytes().map_err(|error| failed(step, error.to_string()))?;
                            BufferArgument::Read(slice.of(bytes))
                        }
                        None => constant.argument(),
                    }
                }
                Place::Known(place) => BufferArgument::Identified(self.known[place].identified_bytes()),
                Place::Arena(offset, size) => {
                    BufferArgument::Read(slice.of(find(&mut regions, offset, size).read()))
                }
            });
        }
        for slice in &step.outputs {
            let Place::Arena(offset, size) = slice.place else { unreachable!("results lie in the arena") };
            arguments.push(BufferArgument::Write(slice.of_mut(find(&mut regions, offset, size).write())));
        }
        Ok(arguments)
    }
}

/// The tensor that a slice of another tensor's memory is.
fn part_of(whole: &HostTensor, slice: &Slice) -> Result<HostTensor, Error> {
    match (&slice.part, whole.bytes()) {
        (Some(_), Some(bytes)) => Ok(host(slice, slice.of(bytes))?),
        _ => Ok(whole.reshape(&slice.shape)?),
    }
}

impl Step {
    /// Tells a clock how long the step took.
    pub(super) fn count(&self, clock: &Clock, time: Duration) {
        let way = match &self.action {
            Action::Kernel(kernel, _) => Way::Kernel(kernel.name()),
            Action::Evaluate { reason, .. } => Way::Evaluated(Some(reason)),
        };
        let bytes = self.inputs.iter().chain(&self.outputs).map(Slice::bytes).sum();
        clock.count(&self.name, &way, time, bytes);
    }
}

/// A part of the arena that a step uses.
struct Region<'a> {
    offset: usize,
    size: usize,
    bytes: Option<Bytes<'a>>,
}

enum Bytes<'a> {
    Write(&'a mut [u8]),
    Read(&'a [u8]),
}

impl<'a> Region<'a> {
    fn read(&mut self) -> &'a [u8] {
        let bytes = match self.bytes.take() {
            Some(Bytes::Write(bytes)) => &*bytes,
            Some(Bytes::Read(bytes)) => bytes,
            None => unreachable!("no step reads what it writes"),
        };
        self.bytes = Some(Bytes::Read(bytes));
        bytes
    }

    fn write(&mut self) -> &'a mut [u8] {
        match self.bytes.take() {
            Some(Bytes::Write(bytes)) => bytes,
            _ => unreachable!("no step writes what it reads, or writes it twice"),
        }
    }
}

fn find<'r, 'a>(regions: &'r mut [Region<'a>], offset: usize, size: usize) -> &'r mut Region<'a> {
    let found = regions.iter_mut().find(|region| region.offset == offset && region.size == size);
    found.expect("every part of the arena that a step uses is a region")
}

pub(super) fn failed(step: &Step, reason: impl Into<String>) -> Error {
    Error::Operator { node: step.name.to_string(), reason: reason.into() }
}

/// Puts the result of an evaluation where the plan wants it.
fn store(step: &Step, slice: &Slice, result: Option<&HostTensor>, memory: &mut Memory) -> Result<(), Error> {
    let bytes = check_result(step, slice, result)?;
    let Place::Arena(offset, size) = slice.place else { unreachable!("results lie in the arena") };
    memory.0[offset..offset + size].copy_from_slice(bytes);
    Ok(())
}

/// The bytes of the result of an evaluation, which has to be as the plan expects it.
pub(super) fn check_result<'r>(
    step: &Step,
    slice: &Slice,
    result: Option<&'r HostTensor>,
) -> Result<&'r [u8], Error> {
    let Some(result) = result else { return Err(failed(step, "a result is missing")) };
    if (result.element(), result.shape()) != (slice.element, &slice.shape[..]) {
        let reason = format!(
            "deduced and computed types differ: expected {}{:?}, found {}{:?}",
            slice.element,
            slice.shape,
            result.element(),
            result.shape()
        );
        return Err(failed(step, reason));
    }
    result.bytes().ok_or_else(|| failed(step, "a result has no bytes"))
}
