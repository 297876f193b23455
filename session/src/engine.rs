//! Kernels below the graph's interpreter: for graphs that decide while they run.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rustc_hash::FxHashMap;
use tilewright_core::device::BufferArgument;
use tilewright_core::tensor::AnyTensor;
use tilewright_graph::fuse::Group;
use tilewright_graph::interpret::{Engine, Outcome};
use tilewright_graph::ir::{Binding, Body, Function, Type, ValueId};
use tilewright_graph::legalise::Order;
use tilewright_graph::operator::{Fault, Value};
use tilewright_graph::part::Part;
use tilewright_graph::tensor::{ElementType, HostTensor};
use tilewright_runtime::DeviceId;
use tilewright_runtime::kernel::Kernel;

use crate::error::Error;
use crate::model::Graph;
use crate::plan::{Memory, OnDevice, Plan, build_part, name};
use crate::plans::Plans;
use crate::prepare::{Computed, Input, Known, Prepared, inputs, prepare};
use crate::profile::{Clock, Way};
use crate::uses::Uses;

/// A group with the element types and shapes of its inputs.
type Key = (ValueId, Vec<(ElementType, Vec<usize>)>);

/// A kernel with its program, or why there is none.
type Entry = Result<Arc<(Prepared, Arc<Kernel>)>, Arc<str>>;

/// How a part is executed.
#[derive(Clone)]
enum Planned {
    /// By a plan.
    Plan(Arc<Plan>),
    /// As several parts.
    Parts(Arc<[Part]>),
}

/// Runs groups by kernels, which it keeps by the shapes of their inputs.
#[derive(Default)]
pub(crate) struct Engines {
    entries: Mutex<FxHashMap<Key, Entry>>,
    /// How parts are executed, by their numbers.
    parts: Mutex<FxHashMap<u64, Plans<Planned>>>,
    /// Arenas that no run uses.
    memories: Mutex<Vec<Memory>>,
}

/// How many groups with shapes are kept. A graph whose shapes never repeat would fill the memory.
const MOST_ENTRIES: usize = 1 << 14;

/// A group outside of plans whose inputs have so few elements is evaluated: a kernel for each of its shapes costs more.
const FEW_ELEMENTS: usize = 64;

/// The engine of one model.
pub(crate) struct KernelEngine<'m> {
    pub(crate) graph: &'m Graph,
    pub(crate) engines: &'m Engines,
    /// Measures steps.
    pub(crate) clock: Option<&'m Clock>,
    /// Counts kernels.
    pub(crate) uses: Option<&'m Uses>,
    /// Where parts run that have a plan, unless that is the host.
    pub(crate) device: Option<Mutex<&'m mut OnDevice>>,
}

impl Engine for KernelEngine<'_> {
    fn groups(&self, body: &Body) -> Option<&[Group]> {
        self.graph.groups(body)
    }

    fn whole(&self, body: &Body) -> Option<&Part> {
        self.graph.whole(body)
    }

    fn run_part(
        &self,
        _: &Function,
        body: &Body,
        part: &Part,
        get: &dyn Fn(ValueId) -> Option<Value>,
    ) -> Result<Outcome, Fault> {
        if part.outputs.is_empty() {
            return Ok(Outcome::Values(Vec::new()));
        }
        let (mut values, mut tensors) = (Vec::new(), Vec::new());
        for &value in part.inputs.iter().filter(|&&value| self.graph.constant(value).is_none()) {
            match get(value) {
                Some(Value::Tensor(tensor)) => {
                    values.push((value, tensor.element()));
                    tensors.push(tensor);
                }
                // A sequence stays one: the groups that read it find no tensor.
                Some(_) if !matches!(self.graph.main().value(value).ty, Type::Tensor(_) | Type::Unknown) => {}
                _ => return Ok(Outcome::Groups),
            }
        }
        let inputs: Vec<&HostTensor> = tensors.iter().collect();
        let planned = {
            let mut parts = self.engines.parts.lock().unwrap_or_else(PoisonError::into_inner);
            parts.entry(part.number).or_default().find(&inputs, |shapes, _| {
                Some(match build_part(self.graph, self.device_id(), body, part, &values, shapes) {
                    Ok(plan) => Planned::Plan(Arc::new(plan)),
                    Err(alone) => Planned::Parts(self.split(body, part, &alone)),
                })
            })
        };
        let plan = match planned {
            Some(Planned::Plan(plan)) => plan,
            Some(Planned::Parts(parts)) => return Ok(Outcome::Parts(parts)),
            None => return Ok(Outcome::Groups),
        };
        let results = self.follow(&plan, &inputs).map_err(|error| Fault(error.to_string()))?;
        Ok(Outcome::Values(results.into_iter().map(Value::Tensor).collect()))
    }

    fn run(
        &self,
        _: &Function,
        body: &Body,
        group: &Group,
        get: &dyn Fn(ValueId) -> Option<Value>,
    ) -> Result<Option<Vec<Value>>, Fault> {
        let mut given: FxHashMap<ValueId, HostTensor> = FxHashMap::default();
        let mut shapes = Vec::new();
        for value in inputs(body, group) {
            let Some(Value::Tensor(tensor)) = get(value) else { return Ok(None) };
            shapes.push((tensor.element(), tensor.shape().to_vec()));
            given.insert(value, tensor);
        }
        let elements: usize = given.values().map(HostTensor::len).sum();
        let Some(first) = group.outputs.first().filter(|_| elements > FEW_ELEMENTS) else { return Ok(None) };
        let key = (*first, shapes);
        let found = self.engines.entries.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let entry = match found {
            Some(entry) => entry,
            None => {
                let entry = self.prepare(body, group, &given);
                let mut entries = self.engines.entries.lock().unwrap_or_else(PoisonError::into_inner);
                if entries.len() >= MOST_ENTRIES {
                    entries.clear();
                }
                entries.insert(key, entry.clone());
                entry
            }
        };
        let entry = match entry {
            Ok(entry) => entry,
            Err(reason) => {
                if let Some(clock) = self.clock {
                    let calls = group.bindings.iter().map(|&place| &body.bindings[place]);
                    clock.note_reason(calls.flat_map(|call| call.outputs.iter().copied()), &reason);
                }
                return Ok(None);
            }
        };
        if let Some(uses) = self.uses {
            uses.count(&entry.1, &entry.0.instance.dims);
        }
        let start = self.clock.map(|_| Instant::now());
        let results = self.call(&entry.0, &entry.1, &given)?;
        if let (Some(clock), Some(start)) = (self.clock, start) {
            let bytes = given.values().chain(results.iter().filter_map(Value::as_tensor));
            let bytes = bytes.map(HostTensor::byte_count).sum();
            clock.count(
                &name(group.bindings.iter().map(|&place| &body.bindings[place])),
                &Way::Kernel(entry.1.name()),
                start.elapsed(),
                bytes,
            );
        }
        Ok(Some(results))
    }

    fn evaluate(&self, binding: &Binding, evaluate: &mut dyn FnMut()) {
        let Some(clock) = self.clock else { return evaluate() };
        let start = Instant::now();
        evaluate();
        let reason = binding.outputs.first().and_then(|&output| clock.reason(output));
        clock.count(&name([binding]), &Way::Evaluated(reason.as_ref()), start.elapsed(), 0);
    }
}

impl KernelEngine<'_> {
    /// Where plans run.
    fn device_id(&self) -> DeviceId {
        let of = |device: &Mutex<&mut OnDevice>| {
            device.lock().unwrap_or_else(PoisonError::into_inner).device().id()
        };
        self.device.as_ref().map_or(DeviceId::DEFAULT, of)
    }

    /// The results of a part by its plan.
    fn follow(&self, plan: &Arc<Plan>, inputs: &[&HostTensor]) -> Result<Vec<HostTensor>, Error> {
        if let Some(uses) = self.uses {
            uses.count_steps(plan);
        }
        if let Some(device) = &self.device {
            let mut device = device.lock().unwrap_or_else(PoisonError::into_inner);
            return device.run(plan, self.graph, inputs, self.clock);
        }
        let memory = self.engines.memories.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut memory = memory.unwrap_or_default();
        let results = plan.results(self.graph, inputs, &mut memory, self.clock);
        self.engines.memories.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
        results
    }

    fn split(&self, body: &Body, part: &Part, alone: &[usize]) -> Arc<[Part]> {
        part.split(body, self.graph.groups(body).unwrap_or_default(), alone).into()
    }

    fn prepare(&self, body: &Body, group: &Group, given: &FxHashMap<ValueId, HostTensor>) -> Entry {
        let known = |value: ValueId| {
            let tensor = given.get(&value)?;
            let contents = self.graph.constant(value).cloned();
            let constant = contents.is_some();
            let (element, shape) = (tensor.element(), tensor.shape().to_vec());
            // Sizes inside of bodies may change each time these run: extents are fixed.
            let order = Order::given(shape.len());
            Some(Known {
                element,
                shape,
                order,
                strides: None,
                extents: None,
                contents,
                integers: None,
                constant,
            })
        };
        let prepared = match prepare(&self.graph.forms, body, group, &known, None, None) {
            Ok(prepared) => prepared,
            Err(reason) => {
                tracing::debug!(group = ?group.outputs, %reason, "a group has no kernel form");
                return Err(reason.to_string().into());
            }
        };
        match self.graph.kernels.get(&prepared.instance, DeviceId::DEFAULT) {
            Ok(kernel) => Ok(Arc::new((prepared, kernel))),
            Err(error) => {
                tracing::warn!(kernel = &*prepared.instance.program.name, %error, "a kernel cannot be compiled; its operators are evaluated");
                Err(error.to_string().into())
            }
        }
    }

    fn call(
        &self,
        prepared: &Prepared,
        kernel: &Kernel,
        given: &FxHashMap<ValueId, HostTensor>,
    ) -> Result<Vec<Value>, Fault> {
        let mut results = Vec::with_capacity(prepared.outputs.len());
        for Computed { element, shape, .. } in &prepared.outputs {
            let dtype = element
                .dtype()
                .ok_or_else(|| Fault(format!("kernels do not give elements of type {element}")))?;
            results.push(AnyTensor::zeros(dtype, shape).map_err(|error| Fault(error.to_string()))?);
        }
        let mut buffers = Vec::new();
        for input in &prepared.inputs {
            let value = match input {
                Input::Value(value) => value,
                Input::Table(_, table) => {
                    buffers.push(BufferArgument::Identified(table.identified_bytes()));
                    continue;
                }
            };
            buffers.push(match self.graph.kernel_constant(*value) {
                Some(constant) => constant.argument(),
                None => {
                    let bytes = given.get(value).and_then(HostTensor::bytes);
                    BufferArgument::Read(bytes.ok_or_else(|| Fault("an input has no bytes".to_owned()))?)
                }
            });
        }
        buffers.extend(results.iter_mut().map(BufferArgument::from));
        kernel.run(&prepared.instance.dims, &[], &mut buffers).map_err(|error| Fault(error.to_string()))?;
        drop(buffers);
        let host = |tensor: &AnyTensor| HostTensor::from_kernel(tensor).map(Value::from);
        let values: Option<Vec<Value>> = results.iter().map(host).collect();
        values.ok_or_else(|| Fault("a kernel gave a truth value that is neither true nor false".to_owned()))
    }
}
