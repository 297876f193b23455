//! Making a plan.

mod program;

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_core::tensor::AnyTensor;
use tilewright_graph::fuse::Group;
use tilewright_graph::ir::{Binding, Body, Call, Function, Operation, ValueId};
use tilewright_graph::legalise::Order;
use tilewright_graph::operator::{Arguments, Value};
use tilewright_graph::symbolic::SymInt;
use tilewright_graph::tensor::{ElementType, HostTensor};

use crate::kernels::Instance;
use crate::model::Graph;
use crate::plan::memory::{Lifetime, assign};
use crate::plan::order::{choose_order, permutation};
use crate::plan::sizes::Sizes;
use crate::plan::{Action, Place, Plan, Slice, Step};
use crate::prepare::{Computed, Input, Known, Prepared, prepare, prepare_copy};

/// Makes the plan of a graph for inputs of given shapes. `None` when its steps or sizes depend on more than shapes.
pub(crate) fn build(graph: &Graph, shapes: &[Vec<usize>]) -> Option<Plan> {
    let function = graph.main();
    let sizes = Sizes::of_inputs(function, shapes)?;
    let mut planner = Planner {
        graph,
        function,
        sizes,
        values: FxHashMap::default(),
        buffers: Vec::new(),
        drafts: Vec::new(),
        known: Vec::new(),
    };
    for (place, (&parameter, shape)) in function.body.parameters.iter().zip(shapes).enumerate() {
        let element = function.value(parameter).ty.element()?;
        element.dtype()?;
        let state = State::new(element, shape.clone(), None, Some(At::Input(place)));
        planner.values.insert(parameter, state);
    }
    for group in graph.groups(&function.body).unwrap_or_default() {
        planner.group(&function.body, group)?;
    }
    planner.finish(shapes)
}

/// A value while a plan is made.
#[derive(Clone)]
struct State {
    element: ElementType,
    shape: Vec<usize>,
    /// The order of its dimensions where it is.
    order: Order,
    /// Its elements, if the shapes decide them.
    contents: Option<HostTensor>,
    /// Where it is; `None` for one that is known and was not needed in memory yet.
    at: Option<At>,
    /// Where it is in the graph's order, if it has been copied.
    copy: Option<At>,
}

impl State {
    /// A value in the graph's order.
    fn new(element: ElementType, shape: Vec<usize>, contents: Option<HostTensor>, at: Option<At>) -> Self {
        State { element, order: Order::given(shape.len()), shape, contents, at, copy: None }
    }
}

/// Where a value is while the arena has no offsets yet.
#[derive(Clone, Copy)]
enum At {
    Input(usize),
    Constant(ValueId),
    Known(usize),
    Buffer(usize),
}

/// A step whose kernel is not compiled and whose places have no offsets yet.
struct Draft {
    action: DraftAction,
    inputs: SmallVec<[(At, ElementType, Vec<usize>); 4]>,
    outputs: SmallVec<[(At, ElementType, Vec<usize>); 1]>,
    name: Arc<str>,
}

enum DraftAction {
    Kernel(Instance),
    Evaluate { binding: usize, given: SmallVec<[bool; 4]> },
}

struct Planner<'g> {
    graph: &'g Graph,
    function: &'g Function,
    sizes: Sizes,
    values: FxHashMap<ValueId, State>,
    buffers: Vec<Lifetime>,
    drafts: Vec<Draft>,
    known: Vec<AnyTensor>,
}

impl Planner<'_> {
    fn group(&mut self, body: &Body, group: &Group) -> Option<()> {
        let bindings: Vec<&Binding> = group.bindings.iter().map(|&place| &body.bindings[place]).collect();
        if let [binding] = bindings[..] {
            if let Operation::CallProgram { program, inputs, .. } = &binding.operation {
                return self.program(program, inputs, binding);
            }
            if self.simple(binding)? {
                return Some(());
            }
        }
        let order = choose_order(&bindings, &|value| {
            self.values.get(&value).map(|state| (&state.shape[..], &state.order))
        });
        if let Ok(prepared) = prepare(body, group, &|value| self.describe(value), order.as_ref()) {
            let name = name(&bindings);
            return self.kernel(prepared, &group.outputs, name);
        }
        if let [place] = group.bindings[..] {
            return self.evaluation(&body.bindings[place], place);
        }
        for &place in &group.bindings {
            let outputs = body.bindings[place].outputs.clone();
            self.group(body, &Group { bindings: vec![place], outputs })?;
        }
        Some(())
    }

    /// Handles bindings that need no step: constants, known values, other shapes of the same elements.
    fn simple(&mut self, binding: &Binding) -> Option<bool> {
        if let Operation::Constant(tensor) = &binding.operation {
            let value = binding.outputs[0];
            let (element, shape) = (tensor.element(), tensor.shape().to_vec());
            let state = State::new(element, shape, Some(tensor.clone()), Some(At::Constant(value)));
            self.values.insert(value, state);
            return Some(true);
        }
        let Operation::Call(call) = &binding.operation else { return None };
        if self.known_outputs(binding) || self.computed(call, binding) || self.transposed(call, binding) {
            return Some(true);
        }
        Some(self.reshaped(call, binding))
    }

    /// Values whose elements the graph follows as symbolic integers.
    fn known_outputs(&mut self, binding: &Binding) -> bool {
        let states: Option<Vec<State>> = binding
            .outputs
            .iter()
            .map(|&output| {
                let info = self.function.value(output);
                let element = info.ty.element()?;
                let shape = self.sizes.extents(info.ty.extents()?)?;
                let elements: Option<Vec<i64>> =
                    info.contents.as_ref()?.iter().map(|number| self.sizes.integer(number)).collect();
                let contents = HostTensor::new(&shape, elements?).ok()?.cast(element).ok()?;
                Some(State::new(element, shape, Some(contents), None))
            })
            .collect();
        let Some(states) = states else { return false };
        self.values.extend(binding.outputs.iter().copied().zip(states));
        true
    }

    /// A call whose inputs the shapes decide is evaluated now, unless its result is large.
    fn computed(&mut self, call: &Call, binding: &Binding) -> bool {
        let mut inputs = Vec::with_capacity(call.inputs.len());
        for input in &call.inputs {
            inputs.push(match input {
                None => None,
                Some(value) => match self.values.get(value).and_then(|state| state.contents.clone()) {
                    Some(contents) if contents.len() <= MOST_KNOWN => Some(Value::Tensor(contents)),
                    _ => return false,
                },
            });
        }
        let arguments = Arguments {
            operator: call.operator,
            attributes: &call.attributes,
            inputs: &inputs,
            outputs: binding.outputs.len(),
        };
        let Ok(results) = (call.operator.evaluate)(&arguments) else { return false };
        let tensors: Option<Vec<HostTensor>> =
            results.iter().map(|result| result.as_tensor().cloned()).collect();
        let Some(tensors) = tensors.filter(|tensors| tensors.len() >= binding.outputs.len()) else {
            return false;
        };
        for (&output, tensor) in binding.outputs.iter().zip(tensors) {
            let (element, shape) = (tensor.element(), tensor.shape().to_vec());
            self.values.insert(output, State::new(element, shape, Some(tensor), None));
        }
        true
    }

    /// A call that gives the elements of its first input in another shape.
    fn reshaped(&mut self, call: &Call, binding: &Binding) -> bool {
        const VIEWS: [&str; 5] = ["reshape", "flatten", "squeeze", "unsqueeze", "identity"];
        if !VIEWS.contains(&call.operator.name) {
            return false;
        }
        let Some(source) = call.inputs.first().copied().flatten() else { return false };
        let Some(extents) = self.function.value(binding.outputs[0]).ty.extents() else { return false };
        let Some(shape) = self.sizes.extents(extents) else { return false };
        let Some(state) = self.values.get(&source) else { return false };
        if shape.iter().product::<usize>() != state.shape.iter().product::<usize>() {
            return false;
        }
        let element = state.element;
        let contents = state.contents.as_ref().and_then(|contents| contents.reshape(&shape).ok());
        let (order, at) = match state.order.reshaped(&state.shape, &shape) {
            Some(order) => (order, self.locate(source)),
            None => (Order::given(shape.len()), self.copied(source)),
        };
        let Some(at) = at else { return false };
        let state = State { order, ..State::new(element, shape, contents, Some(at)) };
        self.values.insert(binding.outputs[0], state);
        true
    }

    /// A call that numbers the dimensions of its input anew: its result is the same memory.
    fn transposed(&mut self, call: &Call, binding: &Binding) -> bool {
        if call.operator.name != "transpose" {
            return false;
        }
        let Some(source) = call.inputs.first().copied().flatten() else { return false };
        let Some(at) = self.locate(source) else { return false };
        let state = &self.values[&source];
        let Some(perm) = permutation(call, state.shape.len()) else { return false };
        let shape: Vec<usize> = perm.iter().map(|&dimension| state.shape[dimension]).collect();
        let order = state.order.renumbered(&perm).simplified(&shape);
        let state = State { order, ..State::new(state.element, shape, None, Some(at)) };
        self.values.insert(binding.outputs[0], state);
        true
    }

    fn kernel(&mut self, prepared: Prepared, outputs: &[ValueId], name: Arc<str>) -> Option<()> {
        let mut inputs = SmallVec::new();
        for input in prepared.inputs {
            inputs.push(match input {
                Input::Value(value) => self.operand(value)?,
                Input::Table(element, table) => self.table(element, table),
            });
        }
        let outputs = outputs
            .iter()
            .zip(prepared.outputs)
            .map(|(&output, computed)| self.result(output, computed))
            .collect::<Option<_>>()?;
        self.drafts.push(Draft { action: DraftAction::Kernel(prepared.instance), inputs, outputs, name });
        Some(())
    }

    /// A call without kernel form.
    fn evaluation(&mut self, binding: &Binding, place: usize) -> Option<()> {
        let Operation::Call(call) = &binding.operation else { return None };
        let mut results = Vec::new();
        for &output in &binding.outputs {
            let ty = &self.function.value(output).ty;
            let shape = ty.extents().and_then(|extents| self.sizes.extents(extents));
            let shape = shape.or_else(|| self.result_extents(call))?;
            results.push(Computed { element: ty.element()?, order: Order::given(shape.len()), shape });
        }
        let given = call.inputs.iter().map(Option::is_some).collect();
        for &input in call.inputs.iter().flatten() {
            self.copied(input)?;
        }
        let inputs =
            call.inputs.iter().flatten().map(|&value| self.copied_operand(value)).collect::<Option<_>>()?;
        let outputs = binding
            .outputs
            .iter()
            .zip(results)
            .map(|(&output, computed)| self.result(output, computed))
            .collect::<Option<_>>()?;
        let name = name(&[binding]);
        self.drafts.push(Draft {
            action: DraftAction::Evaluate { binding: place, given },
            inputs,
            outputs,
            name,
        });
        Some(())
    }

    /// The extents of the only result of a call, if its operator computes them from sizes and from elements that are known.
    fn result_extents(&self, call: &Call) -> Option<Vec<usize>> {
        let extents = call.operator.extents?;
        let (first, others) = call.inputs.split_first()?;
        let mut inputs = vec![None];
        for input in others {
            let contents = input.map(|value| self.values.get(&value)?.contents.clone());
            inputs.push(match contents {
                None => None,
                Some(contents) => Some(Value::Tensor(contents?)),
            });
        }
        let arguments =
            Arguments { operator: call.operator, attributes: &call.attributes, inputs: &inputs, outputs: 1 };
        extents(&arguments, &self.values.get(&(*first)?)?.shape).ok()
    }

    /// A value that the next step reads.
    fn operand(&mut self, value: ValueId) -> Option<(At, ElementType, Vec<usize>)> {
        let at = self.locate(value)?;
        self.read(value, at)
    }

    /// A value that the next step reads in the graph's order.
    fn copied_operand(&mut self, value: ValueId) -> Option<(At, ElementType, Vec<usize>)> {
        let at = self.copied(value)?;
        self.read(value, at)
    }

    fn read(&mut self, value: ValueId, at: At) -> Option<(At, ElementType, Vec<usize>)> {
        if let At::Buffer(buffer) = at {
            self.buffers[buffer].death = self.drafts.len();
        }
        let state = &self.values[&value];
        Some((at, state.element, state.shape.clone()))
    }

    /// Where a value is in the graph's order; one that is in another order is copied.
    fn copied(&mut self, value: ValueId) -> Option<At> {
        let at = self.locate(value)?;
        let state = &self.values[&value];
        if state.order.is_given() {
            return Some(at);
        }
        if state.copy.is_some() {
            return state.copy;
        }
        let original = state.clone();
        let prepared = prepare_copy(value, &|value| self.describe(value)).ok()?;
        self.kernel(prepared, &[value], "copy".into())?;
        let copy = self.values.get(&value)?.at;
        self.values.insert(value, State { copy, ..original });
        copy
    }

    /// Where a value is; one that is known and not in memory yet is put there.
    fn locate(&mut self, value: ValueId) -> Option<At> {
        let state = self.values.get_mut(&value)?;
        if let Some(at) = state.at {
            return Some(at);
        }
        state.element.dtype()?;
        let at = At::Known(self.known.len());
        self.known.push(state.contents.as_ref()?.to_kernel()?);
        state.at = Some(at);
        Some(at)
    }

    /// A table that the next step reads.
    fn table(&mut self, element: ElementType, table: AnyTensor) -> (At, ElementType, Vec<usize>) {
        let described = (At::Known(self.known.len()), element, table.shape().to_vec());
        self.known.push(table);
        described
    }

    /// A value that the next step writes.
    fn result(&mut self, value: ValueId, computed: Computed) -> Option<(At, ElementType, Vec<usize>)> {
        let Computed { element, shape, order } = computed;
        let step = self.drafts.len();
        let size = shape.iter().product::<usize>().checked_mul(element.dtype()?.bytes())?;
        self.sizes.bind(&self.function.value(value).ty, &shape);
        let at = At::Buffer(self.buffers.len());
        self.buffers.push(Lifetime { size, birth: step, death: step });
        self.values.insert(value, State { order, ..State::new(element, shape.clone(), None, Some(at)) });
        Some((at, element, shape))
    }

    fn describe(&self, value: ValueId) -> Option<Known> {
        let state = self.values.get(&value)?;
        Some(Known {
            element: state.element,
            shape: state.shape.clone(),
            order: state.order.clone(),
            extents: self.function.value(value).ty.extents().map(<[SymInt]>::to_vec),
            contents: state.contents.clone(),
            constant: matches!(state.at, Some(At::Constant(_))),
        })
    }

    /// Compiles kernels, places buffers.
    fn finish(mut self, shapes: &[Vec<usize>]) -> Option<Plan> {
        let mut results = Vec::new();
        for &result in &self.function.body.results {
            self.copied(result)?;
        }
        let end = self.drafts.len();
        for &result in &self.function.body.results {
            let at = self.copied(result)?;
            if let At::Buffer(buffer) = at {
                self.buffers[buffer].death = end;
            }
            let state = &self.values[&result];
            results.push((at, state.element, state.shape.clone()));
        }
        let instances: Vec<&Instance> = self
            .drafts
            .iter()
            .filter_map(|draft| match &draft.action {
                DraftAction::Kernel(instance) => Some(instance),
                DraftAction::Evaluate { .. } => None,
            })
            .collect();
        self.graph.kernels.prepare(&instances);
        let arena = assign(&self.buffers);
        let place = |(at, element, shape): (At, ElementType, Vec<usize>)| {
            let place = match at {
                At::Input(place) => Place::Input(place),
                At::Constant(value) => Place::Constant(value),
                At::Known(place) => Place::Known(place),
                At::Buffer(buffer) => Place::Arena(arena.offsets[buffer], self.buffers[buffer].size),
            };
            Slice { place, element, shape }
        };
        let mut steps = Vec::with_capacity(self.drafts.len());
        for Draft { action, inputs, outputs, name } in self.drafts {
            let action = match action {
                DraftAction::Kernel(instance) => match self.graph.kernels.get(&instance) {
                    Ok(kernel) => Action::Kernel(kernel, instance.1.into()),
                    Err(error) => {
                        tracing::warn!(node = &*name, %error, "a kernel cannot be compiled; the graph is executed without a plan");
                        return None;
                    }
                },
                DraftAction::Evaluate { binding, given } => Action::Evaluate { binding, given },
            };
            let (inputs, outputs) =
                (inputs.into_iter().map(&place).collect(), outputs.into_iter().map(&place).collect());
            steps.push(Step { action, inputs, outputs, name });
        }
        Some(Plan {
            steps,
            arena: arena.size,
            lower_bound: arena.lower_bound,
            outputs: results.into_iter().map(place).collect(),
            known: self.known,
            shapes: shapes.to_vec(),
        })
    }
}

/// How many elements a tensor may have that is computed while a plan is made.
const MOST_KNOWN: usize = 1 << 12;

/// The nodes that bindings come from, in order.
fn name(bindings: &[&Binding]) -> Arc<str> {
    let name = |binding: &&Binding| {
        binding.origin.as_deref().map_or_else(|| binding.operation.name().to_owned(), str::to_owned)
    };
    bindings.iter().map(name).collect::<Vec<_>>().join(" + ").into()
}
