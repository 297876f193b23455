//! Following a plan on a device: values stay in its memory between steps. Steps that have run before are launched together, where the device can
//! record them, which costs the host less than launching each.

use std::sync::{Arc, Weak};
use std::time::Instant;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_core::device::{
    BufferArgument, DeviceBuffer, DeviceError, DeviceSlice, DeviceSliceMut, RecordedRuns,
};
use tilewright_core::tensor::SourceError;
use tilewright_graph::ir::ValueId;
use tilewright_graph::operator::{Arguments, Value};
use tilewright_graph::tensor::HostTensor;
use tilewright_runtime::background;
use tilewright_runtime::devices::DeviceHandle;

use crate::error::Error;
use crate::model::Graph;
use crate::plan::run::{check_result, failed};
use crate::plan::{Action, Place, Plan, Slice, Step, host};
use crate::profile::Clock;

/// The memory of a session on a device.
pub(crate) struct OnDevice {
    device: DeviceHandle,
    arena: Option<DeviceBuffer>,
    /// The constants of the graph that steps have used so far. They are copied once.
    constants: FxHashMap<ValueId, DeviceBuffer>,
    /// The memory of each plan that is still kept.
    plans: Vec<OfPlan>,
}

/// The memory of one plan, besides the arena and the constants, which it shares with others.
struct OfPlan {
    plan: Weak<Plan>,
    /// The tensors that shapes decide.
    known: Vec<DeviceBuffer>,
    /// The inputs that steps or results name.
    inputs: Vec<Option<DeviceBuffer>>,
    launch: Launch,
}

/// How the steps of a plan are launched.
enum Launch {
    /// One by one, so far in this number of runs.
    Apart(usize),
    /// One by one for good: some of them cannot be recorded.
    AlwaysApart,
    /// Together.
    Together(Box<dyn RecordedRuns>),
}

/// In the first runs, kernels are made and constants are laid out.
const RUNS_APART: usize = 2;

/// The memory that a run reads, besides the arena.
struct Sources<'r> {
    inputs: &'r [Option<DeviceBuffer>],
    constants: &'r FxHashMap<ValueId, DeviceBuffer>,
    known: &'r [DeviceBuffer],
}

impl OnDevice {
    pub(crate) fn new(device: DeviceHandle) -> Self {
        OnDevice { device, arena: None, constants: FxHashMap::default(), plans: Vec::new() }
    }

    pub(crate) fn device(&self) -> &DeviceHandle {
        &self.device
    }

    /// How many bytes the arena has.
    pub(crate) fn len(&self) -> usize {
        self.arena.as_ref().map_or(0, DeviceBuffer::len)
    }

    /// Runs all steps of a plan, and gives the results. A clock measures each step, which it waits for.
    pub(crate) fn run(
        &mut self,
        plan: &Arc<Plan>,
        graph: &Graph,
        inputs: &[&HostTensor],
        clock: Option<&Clock>,
    ) -> Result<Vec<HostTensor>, Error> {
        if let Some(clock) = clock {
            clock.note_arena(plan.arena, plan.lower_bound);
        }
        self.reserve(plan.arena)?;
        self.upload_constants(plan, graph)?;
        let place = self.place_of(plan, inputs.len())?;
        self.upload_inputs(place, plan, inputs)?;
        let mut arena = self.arena.take().expect("it was reserved");
        let done = match clock {
            None => self.launch(place, plan, &mut arena),
            Some(clock) => self.measure(place, plan, &mut arena, clock),
        };
        let results = done.and_then(|()| {
            let sources = self.sources(place);
            plan.outputs.iter().map(|slice| self.download(slice, &sources, &arena, "a result")).collect()
        });
        self.arena = Some(arena);
        results
    }

    fn sources(&self, place: usize) -> Sources<'_> {
        let OfPlan { known, inputs, .. } = &self.plans[place];
        Sources { inputs, constants: &self.constants, known }
    }

    /// Runs the steps one by one, and measures each.
    fn measure(
        &self,
        place: usize,
        plan: &Plan,
        arena: &mut DeviceBuffer,
        clock: &Clock,
    ) -> Result<(), Error> {
        let sources = self.sources(place);
        plan.steps.iter().try_for_each(|step| {
            let start = Instant::now();
            run_step(&self.device, step, &sources, arena)?;
            self.device.device().synchronize().map_err(device_failed)?;
            step.count(clock, start.elapsed());
            Ok(())
        })
    }

    /// Runs the steps: together, once they have run often enough one by one.
    fn launch(&mut self, place: usize, plan: &Plan, arena: &mut DeviceBuffer) -> Result<(), Error> {
        if let Launch::Apart(runs) = self.plans[place].launch
            && runs >= RUNS_APART
            && background::is_idle()
        {
            self.plans[place].launch = self.recorded(place, plan, arena);
        }
        match &mut self.plans[place].launch {
            Launch::Together(recorded) => return recorded.launch().map_err(device_failed),
            Launch::Apart(runs) => *runs += 1,
            Launch::AlwaysApart => {}
        }
        let sources = self.sources(place);
        plan.steps.iter().try_for_each(|step| run_step(&self.device, step, &sources, arena))
    }

    /// Records the steps, where each of them can be.
    fn recorded(&self, place: usize, plan: &Plan, arena: &mut DeviceBuffer) -> Launch {
        if plan.steps.iter().any(|step| matches!(step.action, Action::Evaluate { .. })) {
            return Launch::AlwaysApart;
        }
        let sources = self.sources(place);
        let mut refused = false;
        let mut work = || {
            let steps = plan.steps.iter();
            refused =
                steps.map(|step| run_step(&self.device, step, &sources, arena)).any(|done| done.is_err());
            Ok(())
        };
        let recorded = self.device.device().record_runs(&mut work);
        // A step or a device that fails does so again when the steps run apart, and the error is reported then.
        match recorded.ok().flatten().filter(|_| !refused) {
            Some(recorded) => Launch::Together(recorded),
            None => Launch::AlwaysApart,
        }
    }

    fn reserve(&mut self, bytes: usize) -> Result<(), Error> {
        if self.arena.as_ref().is_none_or(|arena| arena.len() < bytes) {
            // The old arena is given back first, by those who have recorded runs in it, too.
            self.plans.iter_mut().for_each(|own| own.launch = Launch::Apart(0));
            self.arena = None;
            self.arena = Some(self.allocate(bytes)?);
        }
        Ok(())
    }

    fn allocate(&self, bytes: usize) -> Result<DeviceBuffer, Error> {
        self.device.device().allocate(bytes).map_err(device_failed)
    }

    fn copy(&self, bytes: &[u8]) -> Result<DeviceBuffer, Error> {
        let mut buffer = self.allocate(bytes.len())?;
        self.device.device().upload(bytes, buffer.as_mut_slice()).map_err(device_failed)?;
        Ok(buffer)
    }

    /// Copies the inputs that steps or results name to the device.
    fn upload_inputs(&mut self, place: usize, plan: &Plan, inputs: &[&HostTensor]) -> Result<(), Error> {
        let of_steps =
            plan.steps.iter().flat_map(|step| step.inputs.iter().map(move |slice| (Some(step), slice)));
        let all = of_steps.chain(plan.outputs.iter().map(|slice| (None, slice)));
        let mut is_done = vec![false; inputs.len()];
        for (step, slice) in all {
            let Place::Input(number) = slice.place else { continue };
            if std::mem::replace(&mut is_done[number], true) {
                continue;
            }
            let bytes = match (inputs[number].bytes(), step) {
                (Some(bytes), _) => bytes,
                (None, Some(step)) => return Err(failed(step, "an input has no bytes")),
                (None, None) => continue,
            };
            match &mut self.plans[place].inputs[number] {
                Some(buffer) if buffer.len() == bytes.len() => {
                    self.device.device().upload(bytes, buffer.as_mut_slice()).map_err(device_failed)?;
                }
                _ => self.plans[place].inputs[number] = Some(self.copy(bytes)?),
            }
        }
        Ok(())
    }

    fn upload_constants(&mut self, plan: &Plan, graph: &Graph) -> Result<(), Error> {
        let slices = plan.steps.iter().flat_map(|step| &step.inputs).chain(&plan.outputs);
        for slice in slices {
            let Place::Constant(value) = slice.place else { continue };
            if self.constants.contains_key(&value) {
                continue;
            }
            let constant = graph.kernel_constant(value).ok_or_else(|| Error::Operator {
                node: "a constant".to_owned(),
                reason: "it has no bytes".to_owned(),
            })?;
            let unreadable = |error: SourceError| Error::Operator {
                node: "a constant".to_owned(),
                reason: error.to_string(),
            };
            let buffer = match constant.load().map_err(unreadable)? {
                Some(loaded) => self.copy(loaded.bytes()),
                None => self.copy(constant.bytes().map_err(unreadable)?),
            }?;
            self.constants.insert(value, buffer);
        }
        Ok(())
    }

    /// The place of a plan among those that have memory here.
    fn place_of(&mut self, plan: &Arc<Plan>, inputs: usize) -> Result<usize, Error> {
        self.plans.retain(|own| own.plan.strong_count() > 0);
        let position = self.plans.iter().position(|own| own.plan.as_ptr() == Arc::as_ptr(plan));
        if let Some(position) = position {
            return Ok(position);
        }
        let known = plan.known.iter().map(|tensor| self.copy(tensor.bytes())).collect::<Result<_, _>>()?;
        let inputs = std::iter::repeat_with(|| None).take(inputs).collect();
        self.plans.push(OfPlan { plan: Arc::downgrade(plan), known, inputs, launch: Launch::Apart(0) });
        Ok(self.plans.len() - 1)
    }

    fn download(
        &self,
        slice: &Slice,
        sources: &Sources<'_>,
        arena: &DeviceBuffer,
        what: &str,
    ) -> Result<HostTensor, Error> {
        let from = sources.find(slice, arena).ok_or_else(|| Error::Operator {
            node: what.to_owned(),
            reason: "its elements are not in the memory of the device".to_owned(),
        })?;
        let mut bytes = vec![0; from.len()];
        self.device.device().download(from, &mut bytes).map_err(device_failed)?;
        Ok(host(slice, &bytes)?)
    }
}

impl Sources<'_> {
    /// The memory of a tensor.
    fn find<'s>(&'s self, slice: &Slice, arena: &'s DeviceBuffer) -> Option<DeviceSlice<'s>> {
        match slice.place {
            Place::Arena(offset, size) => part_of(slice, arena.as_slice().part(offset..offset + size)?),
            _ => self.outside(slice),
        }
    }

    /// The memory of a tensor outside of the arena.
    fn outside(&self, slice: &Slice) -> Option<DeviceSlice<'_>> {
        let whole = match slice.place {
            Place::Input(place) => self.inputs[place].as_ref()?.as_slice(),
            Place::Constant(value) => self.constants.get(&value)?.as_slice(),
            Place::Known(place) => self.known[place].as_slice(),
            Place::Arena(..) => return None,
        };
        part_of(slice, whole)
    }
}

/// The memory that a tensor takes of the one that it lies in.
fn part_of<'s>(slice: &Slice, whole: DeviceSlice<'s>) -> Option<DeviceSlice<'s>> {
    match &slice.part {
        None => Some(whole),
        Some(part) => whole.part(part.clone()),
    }
}

fn run_step(
    device: &DeviceHandle,
    step: &Step,
    sources: &Sources<'_>,
    arena: &mut DeviceBuffer,
) -> Result<(), Error> {
    match &step.action {
        Action::Kernel(kernel, dims) => with_arguments(step, sources, arena, |buffers| {
            kernel
                .run_on(device.id(), dims, &[], buffers)
                .map_err(|source| Error::Kernel { node: step.name.to_string(), source: Box::new(source) })
        }),
        // The host evaluates what has no kernel form.
        Action::Evaluate { call, given, .. } => {
            let mut slices = step.inputs.iter();
            let mut arguments = Vec::with_capacity(given.len());
            for is_given in given {
                let slice = if *is_given { slices.next() } else { None };
                let tensor = slice.map(|slice| {
                    let from =
                        sources.find(slice, arena).ok_or_else(|| failed(step, "an input is missing"))?;
                    let mut bytes = vec![0; from.len()];
                    device.device().download(from, &mut bytes).map_err(device_failed)?;
                    Ok::<HostTensor, Error>(host(slice, &bytes)?)
                });
                arguments.push(tensor.transpose()?.map(Value::Tensor));
            }
            let results = (call.operator.evaluate)(&Arguments {
                operator: call.operator,
                attributes: &call.attributes,
                inputs: &arguments,
                outputs: step.outputs.len(),
            })
            .map_err(|fault| failed(step, fault.0))?;
            for (place, slice) in step.outputs.iter().enumerate() {
                let bytes = check_result(step, slice, results.get(place).and_then(Value::as_tensor))?;
                let Place::Arena(offset, size) = slice.place else {
                    unreachable!("results lie in the arena")
                };
                let to = part(arena.as_mut_slice(), offset, size);
                device.device().upload(bytes, to).map_err(device_failed)?;
            }
            Ok(())
        }
    }
}

/// A part of the arena, which has it.
fn part(arena: DeviceSliceMut<'_>, offset: usize, size: usize) -> DeviceSliceMut<'_> {
    let (_, from) = arena.split_at(offset).expect("the arena has all parts of the plan");
    from.split_at(size).expect("the arena has all parts of the plan").0
}

/// A part of the arena that a step writes.
struct Region<'a> {
    offset: usize,
    size: usize,
    bytes: Option<DeviceSliceMut<'a>>,
}

/// Calls a function with the arguments of a kernel.
fn with_arguments(
    step: &Step,
    sources: &Sources<'_>,
    arena: &mut DeviceBuffer,
    call: impl FnOnce(&mut [BufferArgument<'_>]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut written: SmallVec<[Region<'_>; 2]> = SmallVec::new();
    for slice in &step.outputs {
        let Place::Arena(offset, size) = slice.place else { unreachable!("results lie in the arena") };
        written.push(Region { offset, size, bytes: None });
    }
    let mut order: SmallVec<[usize; 2]> = (0..written.len()).collect();
    order.sort_unstable_by_key(|&place| written[place].offset);
    // What is read lies between what is written: the plan keeps parts apart that live at the same time.
    let mut rest: SmallVec<[(usize, DeviceSliceMut<'_>); 4]> = SmallVec::new();
    let (mut behind, mut passed) = (arena.as_mut_slice(), 0);
    for place in order {
        let Region { offset, size, bytes } = &mut written[place];
        let (before, from) = behind.split_at(*offset - passed).expect("parts do not overlap");
        let (own, next) = from.split_at(*size).expect("the arena has all parts of the plan");
        *bytes = Some(own);
        rest.push((passed, before));
        (behind, passed) = (next, *offset + *size);
    }
    rest.push((passed, behind));
    let mut arguments: SmallVec<[BufferArgument<'_>; 8]> = SmallVec::new();
    for slice in &step.inputs {
        let bytes = match slice.place {
            Place::Arena(offset, size) => rest.iter().find_map(|(start, bytes)| {
                let offset = offset.checked_sub(*start)?;
                part_of(slice, bytes.as_slice().part(offset..offset + size)?)
            }),
            _ => sources.outside(slice),
        };
        let bytes = bytes.ok_or_else(|| failed(step, "an input is not in the memory of the device"))?;
        arguments.push(BufferArgument::DeviceRead(bytes));
    }
    for (region, slice) in written.into_iter().zip(&step.outputs) {
        let bytes = region.bytes.expect("each part was taken");
        arguments.push(BufferArgument::DeviceWrite(match slice.part.clone() {
            Some(own) => part(bytes, own.start, own.len()),
            None => bytes,
        }));
    }
    call(&mut arguments)
}

fn device_failed(error: DeviceError) -> Error {
    Error::Device(error)
}
