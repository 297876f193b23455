//! Runs with named inputs and outputs.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use smallvec::SmallVec;
use tilewright_graph::interpret::{Interpreter, MOST_ITERATIONS};
use tilewright_graph::ir::Type;
use tilewright_graph::operator::Value;
use tilewright_graph::symbolic::SymInt;
use tilewright_graph::tensor::HostTensor;
use tilewright_runtime::DeviceId;
use tilewright_runtime::devices::DeviceHandle;

use crate::engine::{Engines, KernelEngine};
use crate::error::Error;
use crate::interruption::Interruption;
use crate::model::{MAIN, Model};
use crate::plan::{Memory, OnDevice, Plan, build};
use crate::plans::Plans;
use crate::profile::{Clock, Profile};
use crate::uses::{KernelUse, Uses};

/// The results of a run: tensors with their names, in the model's order. The elements of an output `NAME` that is a sequence are results
/// `NAME[0]`, `NAME[1]` and so on; an optional output without a value has no result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outputs(Vec<(String, HostTensor)>);

impl Outputs {
    /// The tensor with a name.
    pub fn get(&self, name: &str) -> Option<&HostTensor> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, tensor)| tensor)
    }

    /// Adds all tensors of an output.
    fn add(&mut self, name: &str, value: Value) {
        match value {
            Value::Tensor(tensor) => self.0.push((name.to_owned(), tensor)),
            Value::Optional(value) => value.into_iter().for_each(|value| self.add(name, *value)),
            Value::Sequence(values) | Value::Tuple(values) => {
                values
                    .into_iter()
                    .enumerate()
                    .for_each(|(place, value)| self.add(&format!("{name}[{place}]"), value));
            }
        }
    }

    /// All of them, in the model's order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &HostTensor)> {
        self.0.iter().map(|(name, tensor)| (&name[..], tensor))
    }
}

impl std::ops::Index<usize> for Outputs {
    type Output = HostTensor;

    /// The tensor at a place among all results.
    fn index(&self, place: usize) -> &HostTensor {
        &self.0[place].1
    }
}

/// Runs a model. One session runs one call at a time; several sessions of one model run at the same time.
pub struct Session {
    model: Model,
    plans: Plans<Arc<Plan>>,
    memory: Memory,
    /// The results of the last run.
    last: Outputs,
    iterations: u64,
    interruption: Interruption,
    /// Where it runs, unless that is the host.
    device: Option<OnDevice>,
    /// The parts of a graph that decides while it runs: those of the model on the host, and its own on a device, whose plans are others.
    engines: Arc<Engines>,
}

impl Session {
    /// A session of a model.
    pub fn new(model: &Model) -> Self {
        Session {
            model: model.clone(),
            plans: Plans::default(),
            memory: Memory::default(),
            last: Outputs::default(),
            iterations: MOST_ITERATIONS,
            interruption: Interruption::default(),
            device: None,
            engines: Arc::clone(&model.graph.engines),
        }
    }

    /// A session of a model on a device. Constants are copied to its memory once, inputs in each run, and values stay there from one step to
    /// the next; operators without a kernel form are evaluated on the host. Of a graph that decides while it runs, the parts between decisions
    /// run on the device, and their inputs and results are copied. On the default device, this is [`Session::new`].
    pub fn on(model: &Model, device: &DeviceHandle) -> Self {
        if device.id() == DeviceId::DEFAULT {
            return Session::new(model);
        }
        let device = Some(OnDevice::new(device.clone()));
        Session { device, engines: Arc::default(), ..Session::new(model) }
    }

    /// Sets how many iterations one loop of the model may have; 2²⁴ at first. A run whose loop has more fails.
    pub fn set_iterations(&mut self, most: u64) {
        self.iterations = most;
    }

    /// What ends runs of this session from another thread.
    pub fn interruption(&self) -> Interruption {
        self.interruption.clone()
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Runs the model. Inputs are named as in the model, in any order. The session keeps the results, whose elements it shares, until the
    /// next run.
    ///
    /// # Errors
    /// When a name is unknown or missing, a type or shape does not fit, or a node fails.
    pub fn run(&mut self, inputs: &[(&str, &HostTensor)]) -> Result<Outputs, Error> {
        // New memory is slow at its first use. That of the last results serves again when the caller has dropped them.
        let mut outputs = std::mem::take(&mut self.last);
        self.run_into(inputs, &mut outputs)?;
        self.last = outputs.clone();
        Ok(outputs)
    }

    /// As [`Session::run`], into the results of an earlier run, whose memory is used again. For shapes that came before, nothing is
    /// allocated as long as every step has a kernel and nobody else holds the earlier results. After an error, the results may have been
    /// written in part.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn run_into(&mut self, inputs: &[(&str, &HostTensor)], outputs: &mut Outputs) -> Result<(), Error> {
        let inputs = self.arrange(inputs)?;
        if self.device.is_some() {
            *outputs = self.follow(&inputs, None)?;
            return Ok(());
        }
        let Some(plan) = self.plan(&inputs) else {
            *outputs = self.interpret(&inputs, None, None)?;
            return Ok(());
        };
        plan.follow(&self.model.graph, &inputs, &mut self.memory, None)?;
        let ports = &self.model.info().outputs;
        let fits = outputs.0.len() == ports.len()
            && outputs.0.iter().zip(ports).all(|((name, _), port)| *name == port.name);
        if !fits {
            *outputs = self.outputs(&plan, &inputs)?;
            return Ok(());
        }
        for ((_, tensor), slice) in outputs.0.iter_mut().zip(&plan.outputs) {
            plan.update(slice, &self.model.graph, &inputs, &self.memory, tensor)?;
        }
        Ok(())
    }

    /// As [`Session::run`], and measures each step. Steps of a graph that decides while it runs are those of all its parts; one that
    /// runs again, as in a loop, is listed once with the sum of its times.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn profile(&mut self, inputs: &[(&str, &HostTensor)]) -> Result<(Outputs, Profile), Error> {
        let inputs = self.arrange(inputs)?;
        let clock = Clock::default();
        let start = Instant::now();
        let outputs = self.follow(&inputs, Some(&clock))?;
        Ok((outputs, clock.profile(start.elapsed())))
    }

    /// The kernels that a call with these inputs runs, for tuning them, in the order of their first runs. The call is made.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn kernels(&mut self, inputs: &[(&str, &HostTensor)]) -> Result<Vec<KernelUse>, Error> {
        let inputs = self.arrange(inputs)?;
        let uses = Uses::default();
        match self.plan(&inputs) {
            Some(plan) => {
                self.follow(&inputs, None)?;
                uses.count_steps(&plan);
            }
            None => {
                self.interpret(&inputs, None, Some(&uses))?;
            }
        }
        Ok(uses.into_kernels())
    }

    /// The size of the arena, in bytes.
    pub fn arena_bytes(&self) -> usize {
        self.device.as_ref().map_or(self.memory.len(), OnDevice::len)
    }

    /// Runs the model where the session is. A clock measures each step.
    fn follow(&mut self, inputs: &[&HostTensor], clock: Option<&Clock>) -> Result<Outputs, Error> {
        let (plan, graph) = (self.plan(inputs), &self.model.graph);
        match (plan, &mut self.device) {
            (Some(plan), None) => {
                plan.follow(graph, inputs, &mut self.memory, clock)?;
                self.outputs(&plan, inputs)
            }
            (None, _) => self.interpret(inputs, clock, None),
            (Some(plan), Some(device)) => {
                let results = device.run(&plan, graph, inputs, clock)?;
                let names = self.model.info().outputs.iter().map(|port| port.name.clone());
                Ok(Outputs(names.zip(results).collect()))
            }
        }
    }

    /// The inputs in the model's order, checked.
    fn arrange<'i>(&self, given: &[(&str, &'i HostTensor)]) -> Result<SmallVec<[&'i HostTensor; 8]>, Error> {
        let ports = &self.model.info().inputs;
        if let Some((name, _)) = given.iter().find(|(name, _)| ports.iter().all(|port| port.name != *name)) {
            let known = ports.iter().map(|port| format!("`{}`", port.name)).collect::<Vec<_>>().join(", ");
            return Err(Error::UnknownInput { name: (*name).to_owned(), known });
        }
        let mut tensors = SmallVec::new();
        let mut sizes: Sizes<'_> = SmallVec::new();
        for port in ports {
            let found = given.iter().find(|(name, _)| port.name == *name);
            let (_, tensor) = found.ok_or_else(|| Error::MissingInput(port.name.clone()))?;
            check(&port.ty, tensor, &mut sizes).map_err(|reason| Error::Input {
                name: port.name.clone(),
                expected: port.ty.to_string(),
                element: tensor.element(),
                shape: tensor.shape().to_vec(),
                reason,
            })?;
            tensors.push(*tensor);
        }
        Ok(tensors)
    }

    /// The plan for inputs, if there is one.
    fn plan(&mut self, inputs: &[&HostTensor]) -> Option<Arc<Plan>> {
        let graph = &self.model.graph;
        let device = self.device.as_ref().map_or(DeviceId::DEFAULT, |device| device.device().id());
        self.plans.find(inputs, |shapes, contents| build(graph, device, shapes, contents).map(Arc::new))
    }

    fn outputs(&self, plan: &Plan, inputs: &[&HostTensor]) -> Result<Outputs, Error> {
        let ports = self.model.info().outputs.iter().zip(&plan.outputs);
        let tensors = ports.map(|(port, slice)| {
            Ok((port.name.clone(), plan.host(slice, &self.model.graph, inputs, &self.memory)?))
        });
        Ok(Outputs(tensors.collect::<Result<Vec<_>, Error>>()?))
    }

    /// Runs a graph that decides while it runs. A clock measures each step, and `uses` counts each kernel.
    fn interpret(
        &mut self,
        inputs: &[&HostTensor],
        clock: Option<&Clock>,
        uses: Option<&Uses>,
    ) -> Result<Outputs, Error> {
        let graph = &self.model.graph;
        let device = self.device.as_mut().map(Mutex::new);
        let engine = KernelEngine { graph, engines: &self.engines, clock, uses, device };
        let arguments = inputs.iter().map(|&input| Value::Tensor(input.clone())).collect();
        let interpreter = Interpreter::new(&graph.module)
            .engine(&engine)
            .iterations(self.iterations)
            .interruption(self.interruption.flag());
        let results = match interpreter.run(MAIN, arguments) {
            Err(_) if self.interruption.take() => return Err(Error::Interrupted),
            outcome => outcome?,
        };
        let mut outputs = Outputs(Vec::with_capacity(results.len()));
        for (port, result) in graph.info.outputs.iter().zip(results) {
            outputs.add(&port.name, result);
        }
        Ok(outputs)
    }
}

/// The sizes that inputs gave to symbols.
type Sizes<'t> = SmallVec<[(&'t SymInt, usize); 16]>;

/// Compares a tensor with its type.
fn check<'t>(ty: &'t Type, tensor: &HostTensor, sizes: &mut Sizes<'t>) -> Result<(), String> {
    if ty.element().is_some_and(|element| element != tensor.element()) {
        return Err(String::new());
    }
    let Some(extents) = ty.extents() else { return Ok(()) };
    if extents.len() != tensor.rank() {
        return Err(String::new());
    }
    for (extent, &found) in extents.iter().zip(tensor.shape()) {
        let expected = extent.as_constant().and_then(|extent| usize::try_from(extent).ok());
        let expected =
            expected.or_else(|| sizes.iter().find(|(known, _)| *known == extent).map(|(_, size)| *size));
        match expected {
            Some(expected) if expected != found => return Err(format!(": {extent} is {expected} here")),
            Some(_) => {}
            None => sizes.push((extent, found)),
        }
    }
    Ok(())
}
