//! Making a plan.

mod concatenation;
mod in_place;
mod part;
mod program;
mod simple;
mod view;

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tilewright_core::tensor::AnyTensor;
use tilewright_graph::fuse::Group;
use tilewright_graph::ir::{Binding, Body, Call, Function, Operation, Type, ValueId};
use tilewright_graph::legalise::Order;
use tilewright_graph::operator::{Arguments, Value};
use tilewright_graph::part::Part;
use tilewright_graph::symbolic::SymInt;
use tilewright_graph::tensor::{ElementType, HostTensor};
use tilewright_runtime::{DeviceId, devices};

use crate::kernels::Instance;
use crate::model::Graph;
use crate::plan::memory::{Lifetime, assign};
use crate::plan::order::choose_order;
use crate::plan::sizes::Sizes;
use crate::plan::{Action, Place, Plan, Slice, Step};
use crate::prepare::{Computed, Input, Known, Prepared, prepare, prepare_copy};
use concatenation::{Concatenations, Placement};
use view::View;

/// Makes the plan of a graph on a device for inputs of given shapes, of which some have given elements. `None` when its steps or sizes depend
/// on more.
pub(crate) fn build(
    graph: &Graph,
    device: DeviceId,
    shapes: &[Vec<usize>],
    contents: &[Option<HostTensor>],
) -> Option<Plan> {
    let function = graph.main();
    let mut planner = Planner::new(graph, function, device);
    let inputs = function.body.parameters.iter().zip(shapes).zip(contents);
    for (place, ((&parameter, shape), contents)) in inputs.enumerate() {
        let element = function.value(parameter).ty.element()?;
        planner.input(place, parameter, element, shape, contents.clone())?;
    }
    planner.body(&function.body)?;
    planner.finish(&function.body.results)
}

/// Makes the plan of a part of a body on a device. `inputs` are the values from outside that are not the same in each run, with their types.
///
/// # Errors
/// The groups for which no step can be planned: they decide while they run, or the sizes of their results depend on more than
/// shapes. Groups that read what they give are not among them.
pub(crate) fn build_part(
    graph: &Graph,
    device: DeviceId,
    body: &Body,
    part: &Part,
    inputs: &[(ValueId, ElementType)],
    shapes: &[Vec<usize>],
) -> Result<Plan, Vec<usize>> {
    let mut planner = Planner::new(graph, graph.main(), device);
    for &value in &part.inputs {
        if let Some(tensor) = graph.constant(value) {
            planner.constant(value, tensor);
        }
    }
    for (place, (&(value, element), shape)) in inputs.iter().zip(shapes).enumerate() {
        // A value that has no place in a plan leaves the groups that read it without one.
        let _ = planner.input(place, value, element, shape, None);
    }
    let groups = graph.groups(body).unwrap_or_default();
    planner.concatenations.find(body, part.groups.iter().map(|&place| &groups[place]));
    let mut missing: FxHashSet<ValueId> = FxHashSet::default();
    let mut refused = Vec::new();
    for &place in &part.groups {
        let group = &groups[place];
        let bindings = || group.bindings.iter().map(|&place| &body.bindings[place]);
        let waits = bindings().any(|binding| reads(binding, &missing));
        if !waits && planner.group(body, group).is_none() {
            refused.push(place);
        }
        if waits || refused.last() == Some(&place) {
            missing.extend(bindings().flat_map(|binding| binding.outputs.iter().copied()));
        }
    }
    if !refused.is_empty() {
        return Err(refused);
    }
    planner.finish(&part.outputs).ok_or_else(|| part.groups.clone())
}

/// Whether a binding or its bodies read one of these values.
fn reads(binding: &Binding, values: &FxHashSet<ValueId>) -> bool {
    let mut found = false;
    binding.operation.for_each_input(&mut |value| found |= values.contains(&value));
    let mut visit = |value: ValueId| found |= values.contains(&value);
    binding.operation.bodies().into_iter().for_each(|inner| inner.for_each_use(&mut visit));
    found
}

/// A value while a plan is made.
#[derive(Clone)]
struct State {
    element: ElementType,
    shape: Vec<usize>,
    /// The order of its dimensions where it is.
    order: Order,
    /// Which elements of the memory there it has; `None` for all of them.
    view: Option<View>,
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
        State { element, order: Order::given(shape.len()), view: None, shape, contents, at, copy: None }
    }

    /// Whether it lies in a buffer.
    fn is_in(&self, buffer: usize) -> bool {
        matches!(self.at, Some(At::Buffer(own)) if own == buffer)
    }

    /// Whether the elements lie in the graph's order, with nothing between them.
    fn is_plain(&self) -> bool {
        self.order.is_given() && self.is_dense()
    }

    /// Whether nothing lies between the elements.
    fn is_dense(&self) -> bool {
        self.view.as_ref().is_none_or(|view| view.is_dense(&self.shape, &self.order))
    }

    /// The bytes from the first element to the last one, where these are a part of the memory.
    fn part(&self) -> Option<Range<usize>> {
        let (range, size) = (self.view.as_ref()?.range(&self.shape), self.element.dtype()?.bytes());
        Some(range.start * size..range.end * size)
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
    inputs: SmallVec<[Operand; 4]>,
    outputs: SmallVec<[Operand; 1]>,
    name: Arc<str>,
    /// Whether the program is the caller's, which has records of its own: it stays as it is.
    is_given: bool,
}

/// A tensor of a step.
struct Operand {
    at: At,
    element: ElementType,
    shape: Vec<usize>,
    /// As in [`Slice`].
    part: Option<Range<usize>>,
}

enum DraftAction {
    Kernel(Instance),
    Evaluate { call: Box<Call>, given: SmallVec<[bool; 4]>, reason: Arc<str> },
}

struct Planner<'g> {
    graph: &'g Graph,
    function: &'g Function,
    /// Where the kernels run.
    device: DeviceId,
    /// The alignment of tensors there, in bytes.
    alignment: usize,
    sizes: Sizes,
    values: FxHashMap<ValueId, State>,
    buffers: Vec<Lifetime>,
    drafts: Vec<Draft>,
    known: Vec<AnyTensor>,
    concatenations: Concatenations,
}

impl<'g> Planner<'g> {
    fn new(graph: &'g Graph, function: &'g Function, device: DeviceId) -> Self {
        Planner {
            graph,
            function,
            device,
            // A device that is not there runs no kernel either.
            alignment: devices::device(device).map_or(1, |device| device.tensor_alignment()),
            sizes: Sizes::default(),
            values: FxHashMap::default(),
            buffers: Vec::new(),
            drafts: Vec::new(),
            known: Vec::new(),
            concatenations: Concatenations::default(),
        }
    }

    /// A value that the caller passes.
    fn input(
        &mut self,
        place: usize,
        value: ValueId,
        element: ElementType,
        shape: &[usize],
        contents: Option<HostTensor>,
    ) -> Option<()> {
        element.dtype()?;
        let ty = &self.function.value(value).ty;
        if !matches!(ty, Type::Tensor(_) | Type::Unknown) {
            return None;
        }
        self.sizes.bind(ty, shape);
        let state = State::new(element, shape.to_vec(), contents, Some(At::Input(place)));
        self.values.insert(value, state);
        Some(())
    }

    /// A value that is the same in each run.
    fn constant(&mut self, value: ValueId, tensor: &HostTensor) {
        let (element, shape) = (tensor.element(), tensor.shape().to_vec());
        let state = State::new(element, shape, Some(tensor.clone()), Some(At::Constant(value)));
        self.values.insert(value, state);
    }

    fn body(&mut self, body: &Body) -> Option<()> {
        let groups = self.graph.groups(body).unwrap_or_default();
        self.concatenations.find(body, groups);
        groups.iter().try_for_each(|group| self.group(body, group))
    }

    fn group(&mut self, body: &Body, group: &Group) -> Option<()> {
        let bindings: Vec<&Binding> = group.bindings.iter().map(|&place| &body.bindings[place]).collect();
        if let [binding] = bindings[..] {
            if let Operation::CallProgram { program, inputs, .. } = &binding.operation {
                return self.program(program, inputs, binding);
            }
            if self.simple(binding)? || self.joined(binding, true) {
                return Some(());
            }
        } else if self.is_decided(body, group) {
            return self.one_by_one(body, group);
        } else if self.viewed(bindings[0]) || self.joined(bindings[0], false) {
            let rest = Group { bindings: group.bindings[1..].to_vec(), outputs: group.outputs.clone() };
            return self.group(body, &rest);
        }
        let order = choose_order(&bindings, &|value| {
            self.values.get(&value).map(|state| (&state.shape[..], &state.order))
        });
        if let Some(parts) = self.apart(body, group, order.as_ref()) {
            return parts.iter().try_for_each(|part| self.group(body, part));
        }
        let name = || name(bindings.iter().copied());
        if let Some(placement) = self.placement(body, group, order.as_ref()) {
            let strides = placement.view.strides();
            let describe = |value| self.describe(value);
            let prepared = prepare(&self.graph.forms, body, group, &describe, order.as_ref(), Some(&strides));
            if let Ok(prepared) = prepared
                && placement.takes(&prepared)
            {
                return self.kernel(prepared, &group.outputs, name(), Some(placement));
            }
        }
        let describe = |value| self.describe(value);
        match prepare(&self.graph.forms, body, group, &describe, order.as_ref(), None) {
            Ok(prepared) => self.kernel(prepared, &group.outputs, name(), None),
            Err(reason) => match bindings[..] {
                [binding] => self.evaluation(binding, reason.to_string().into()),
                _ => match group.before_product(body) {
                    Some(parts) => parts.iter().try_for_each(|part| self.group(body, part)),
                    None => self.one_by_one(body, group),
                },
            },
        }
    }

    /// A group with a product and a chain in front of it as two groups, where a single kernel is not expected to be faster: on a GPU, whose
    /// schedules have no place for the chain within the product; behind a concatenation that copies; and where the result could not be
    /// written into the concatenation that the chain reads.
    fn apart(&mut self, body: &Body, group: &Group, order: Option<&Order>) -> Option<[Group; 2]> {
        let parts = group.before_product(body)?;
        let first = &body.bindings[*group.bindings.first()?].operation;
        let copies = matches!(first, Operation::Call(call) if call.operator.name == "concat");
        let is_apart = copies || self.device != DeviceId::DEFAULT || self.reads_own_place(body, group, order);
        is_apart.then_some(parts)
    }

    /// The bindings of a group, each as a group of its own.
    fn one_by_one(&mut self, body: &Body, group: &Group) -> Option<()> {
        group.bindings.iter().try_for_each(|&place| {
            let outputs = body.bindings[place].outputs.clone();
            self.group(body, &Group { bindings: vec![place], outputs })
        })
    }

    /// A step that runs a kernel. Its first result is put where `placement` says.
    fn kernel(
        &mut self,
        prepared: Prepared,
        outputs: &[ValueId],
        name: Arc<str>,
        mut placement: Option<Placement>,
    ) -> Option<()> {
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
            .map(|(&output, computed)| match placement.take() {
                Some(placement) => self.placed_result(output, computed, placement),
                None => self.result(output, computed),
            })
            .collect::<Option<_>>()?;
        let bounds = self.graph.buckets.bounds(&prepared.extents);
        let action = DraftAction::Kernel(Instance { bounds, ..prepared.instance });
        self.drafts.push(Draft { action, inputs, outputs, name, is_given: false });
        Some(())
    }

    /// A call without kernel form, for this reason.
    fn evaluation(&mut self, binding: &Binding, reason: Arc<str>) -> Option<()> {
        let Operation::Call(call) = &binding.operation else { return None };
        let mut results = Vec::new();
        for &output in &binding.outputs {
            let element = self.function.value(output).ty.element()?;
            let shape = self.shape_of(call, output)?;
            results.push(Computed { element, order: Order::given(shape.len()), shape });
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
        let name = name([binding]);
        self.drafts.push(Draft {
            action: DraftAction::Evaluate { call: Box::new(call.clone()), given, reason },
            inputs,
            outputs,
            name,
            is_given: false,
        });
        Some(())
    }

    /// The shape of a result of a call, if the sizes decide it.
    fn shape_of(&self, call: &Call, output: ValueId) -> Option<Vec<usize>> {
        let extents = self.function.value(output).ty.extents();
        extents.and_then(|extents| self.sizes.extents(extents)).or_else(|| self.result_extents(call))
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
    fn operand(&mut self, value: ValueId) -> Option<Operand> {
        let at = self.locate(value)?;
        let part = self.values[&value].part();
        self.read(value, at, part)
    }

    /// A value that the next step reads in the graph's order.
    fn copied_operand(&mut self, value: ValueId) -> Option<Operand> {
        let (at, part) = self.copied(value)?;
        self.read(value, at, part)
    }

    fn read(&mut self, value: ValueId, at: At, part: Option<Range<usize>>) -> Option<Operand> {
        if let At::Buffer(buffer) = at {
            self.buffers[buffer].death = self.drafts.len();
        }
        let state = &self.values[&value];
        Some(Operand { at, element: state.element, shape: state.shape.clone(), part })
    }

    /// Where a value is in the graph's order, and the part of the memory there; one that is in another order, or has others' elements
    /// between its own, is copied.
    fn copied(&mut self, value: ValueId) -> Option<(At, Option<Range<usize>>)> {
        let at = self.locate(value)?;
        let state = &self.values[&value];
        if state.is_plain() {
            return Some((at, state.part()));
        }
        if let Some(copy) = state.copy {
            return Some((copy, None));
        }
        let original = state.clone();
        let describe = |value| self.describe(value);
        let prepared = prepare_copy(&self.graph.forms, value, &describe, None, None).ok()?;
        self.kernel(prepared, &[value], "copy".into(), None)?;
        let copy = self.values.get(&value)?.at?;
        self.values.insert(value, State { copy: Some(copy), ..original });
        Some((copy, None))
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
    fn table(&mut self, element: ElementType, table: AnyTensor) -> Operand {
        let (at, shape) = (At::Known(self.known.len()), table.shape().to_vec());
        self.known.push(table);
        Operand { at, element, shape, part: None }
    }

    /// A value that the next step writes.
    fn result(&mut self, value: ValueId, computed: Computed) -> Option<Operand> {
        let Computed { element, shape, order } = computed;
        let step = self.drafts.len();
        let size = shape.iter().product::<usize>().checked_mul(element.dtype()?.bytes())?;
        self.sizes.bind(&self.function.value(value).ty, &shape);
        let at = At::Buffer(self.buffers.len());
        self.buffers.push(Lifetime { size, birth: step, death: step });
        self.values.insert(value, State { order, ..State::new(element, shape.clone(), None, Some(at)) });
        Some(Operand { at, element, shape, part: None })
    }

    fn describe(&self, value: ValueId) -> Option<Known> {
        let state = self.values.get(&value)?;
        Some(Known {
            element: state.element,
            shape: state.shape.clone(),
            order: state.order.clone(),
            strides: state.view.as_ref().filter(|_| !state.is_dense()).map(View::strides),
            extents: self.function.value(value).ty.extents().map(<[SymInt]>::to_vec),
            contents: state.contents.clone(),
            integers: self.function.value(value).contents.clone(),
            // Nothing is kept of a part.
            constant: matches!(state.at, Some(At::Constant(_))) && state.view.is_none(),
        })
    }

    /// Compiles kernels, places buffers.
    fn finish(mut self, outputs: &[ValueId]) -> Option<Plan> {
        let mut results = Vec::new();
        for &result in outputs {
            self.copied(result)?;
        }
        let end = self.drafts.len();
        for &result in outputs {
            let (at, part) = self.copied(result)?;
            if let At::Buffer(buffer) = at {
                self.buffers[buffer].death = end;
            }
            let state = &self.values[&result];
            results.push(Operand { at, element: state.element, shape: state.shape.clone(), part });
        }
        self.update_in_place(&mut results);
        self.give_back_unwritten();
        let instances: Vec<&Instance> = self
            .drafts
            .iter()
            .filter_map(|draft| match &draft.action {
                DraftAction::Kernel(instance) => Some(instance),
                DraftAction::Evaluate { .. } => None,
            })
            .collect();
        self.graph.kernels.prepare(&instances, self.device);
        let arena = assign(&self.buffers);
        let place = |Operand { at, element, shape, part }: Operand| {
            let place = match at {
                At::Input(place) => Place::Input(place),
                At::Constant(value) => Place::Constant(value),
                At::Known(place) => Place::Known(place),
                At::Buffer(buffer) => Place::Arena(arena.offsets[buffer], self.buffers[buffer].size),
            };
            Slice { place, element, shape, part }
        };
        let mut steps = Vec::with_capacity(self.drafts.len());
        for Draft { action, inputs, outputs, name, .. } in self.drafts {
            let action = match action {
                DraftAction::Kernel(instance) => match self.graph.kernels.get(&instance, self.device) {
                    Ok(kernel) => Action::Kernel(kernel, instance.dims.into()),
                    Err(error) => {
                        tracing::warn!(node = &*name, %error, "a kernel cannot be compiled; the graph is executed without a plan");
                        return None;
                    }
                },
                DraftAction::Evaluate { call, given, reason } => Action::Evaluate { call, given, reason },
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
        })
    }
}

/// The nodes that bindings come from, in order.
pub(crate) fn name<'b>(bindings: impl IntoIterator<Item = &'b Binding>) -> Arc<str> {
    let name = |binding: &Binding| {
        binding.origin.as_deref().map_or_else(|| binding.operation.name().to_owned(), str::to_owned)
    };
    bindings.into_iter().map(name).collect::<Vec<_>>().join(" + ").into()
}
