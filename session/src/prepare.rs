//! From a group of calls and the shapes of its inputs to a program.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tilewright_core::tensor::AnyTensor;
use tilewright_graph::fuse::Group;
use tilewright_graph::ir::{Body, Call, Operation, ValueId};
use tilewright_graph::legalise::{
    Argument, Fusion, Legalised, Order, Signature, Unsupported, follows, legalise,
};
use tilewright_graph::symbolic::{SymInt, Symbol};
use tilewright_graph::tensor::{ElementType, HostTensor};

use crate::forms::{Form, Forms};
use crate::kernels::Instance;

/// The distance of neighbours along each dimension of a tensor, in elements, and the same as the graph knows them.
pub(crate) type Strides = (Vec<usize>, Option<Vec<SymInt>>);

/// The properties of a value when a group is prepared.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) element: ElementType,
    pub(crate) shape: Vec<usize>,
    /// The order of its dimensions in memory.
    pub(crate) order: Order,
    /// As [`Strides`] says, where the elements are not dense.
    pub(crate) strides: Option<Strides>,
    /// The same extents as the graph knows them; equal expressions are equal in every run.
    pub(crate) extents: Option<Vec<SymInt>>,
    /// Its elements, when they are the same in each run of this shape.
    pub(crate) contents: Option<HostTensor>,
    /// The same elements as the graph knows them, with the extents.
    pub(crate) integers: Option<Arc<Vec<SymInt>>>,
    /// Whether kernels may keep what they compute from it alone.
    pub(crate) constant: bool,
}

/// A program for a group.
pub(crate) struct Prepared {
    /// The program with the dimensions of this run.
    pub(crate) instance: Instance,
    /// Its dimensions as the graph knows them.
    pub(crate) extents: Vec<SymInt>,
    /// The inputs that it reads, in order.
    pub(crate) inputs: Vec<Input>,
    /// The results, in order.
    pub(crate) outputs: Vec<Computed>,
}

/// An input of a program.
pub(crate) enum Input {
    Value(ValueId),
    /// A table that the definition brings along.
    Table(ElementType, AnyTensor),
}

/// The properties of a result.
#[derive(Clone, Debug)]
pub(crate) struct Computed {
    pub(crate) element: ElementType,
    pub(crate) shape: Vec<usize>,
    /// The order of its dimensions in memory.
    pub(crate) order: Order,
}

/// The values that a group reads and does not compute itself, each once, in order.
pub(crate) fn inputs(body: &Body, group: &Group) -> Vec<ValueId> {
    let own =
        |value: &ValueId| group.bindings.iter().any(|&place| body.bindings[place].outputs.contains(value));
    let mut inputs = Vec::new();
    for &place in &group.bindings {
        body.bindings[place].operation.for_each_input(&mut |value| {
            if !own(&value) && !inputs.contains(&value) {
                inputs.push(value);
            }
        });
    }
    inputs
}

/// Makes the program of a group. Extents that the graph knows by name become dimensions of the program, so that it serves
/// other shapes too; where the group has no such form, they are fixed. Results with as many dimensions as `order` lie in memory in
/// that order, and the first of them is a part of another tensor where `placed` says how its elements lie there.
///
/// # Errors
/// When it has no kernel form: then its calls are tried one by one, or evaluated.
pub(crate) fn prepare(
    forms: &Forms,
    body: &Body,
    group: &Group,
    known: &dyn Fn(ValueId) -> Option<Known>,
    order: Option<&Order>,
    placed: Option<&Strides>,
) -> Result<Prepared, Unsupported> {
    let mut calls = Vec::new();
    for &place in &group.bindings {
        let binding = &body.bindings[place];
        match &binding.operation {
            Operation::Call(call) => calls.push((call, &binding.outputs[..])),
            _ => return Err(form("only calls of operators become kernels")),
        }
    }
    Preparation { forms, calls, inputs: inputs(body, group), outputs: &group.outputs, order, placed }
        .prepare(known)
}

/// Makes a program that copies a value, in the graph's order of dimensions or another one, and to a part of another tensor where `placed` says how its
/// elements lie there.
///
/// # Errors
/// When kernels do not compute with its elements.
pub(crate) fn prepare_copy(
    forms: &Forms,
    value: ValueId,
    known: &dyn Fn(ValueId) -> Option<Known>,
    order: Option<&Order>,
    placed: Option<&Strides>,
) -> Result<Prepared, Unsupported> {
    Preparation { forms, calls: Vec::new(), inputs: vec![value], outputs: &[value], order, placed }
        .prepare(known)
}

fn form(reason: &str) -> Unsupported {
    Unsupported::Form(reason.to_owned())
}

/// What becomes a program.
struct Preparation<'a> {
    forms: &'a Forms,
    calls: Vec<(&'a Call, &'a [ValueId])>,
    inputs: Vec<ValueId>,
    outputs: &'a [ValueId],
    order: Option<&'a Order>,
    placed: Option<&'a Strides>,
}

impl Preparation<'_> {
    fn prepare(&self, known: &dyn Fn(ValueId) -> Option<Known>) -> Result<Prepared, Unsupported> {
        let mut outcome = self.prepare_with(known, Extents::ByName);
        for extents in [Extents::BySize, Extents::Fixed] {
            match outcome {
                Err(Unsupported::Form(_) | Unsupported::Definition(_)) => {
                    outcome = self.prepare_with(known, extents);
                }
                decided => return decided,
            }
        }
        outcome
    }

    fn prepare_with(
        &self,
        known: &dyn Fn(ValueId) -> Option<Known>,
        kind: Extents,
    ) -> Result<Prepared, Unsupported> {
        let symbolic = kind != Extents::Fixed;
        let mut dims = Dims { by_size: kind == Extents::BySize, ..Dims::default() };
        let mut signatures = Vec::with_capacity(self.inputs.len());
        for &value in &self.inputs {
            let Known { element, shape, order, strides, extents, contents, integers, constant } =
                known(value).ok_or_else(|| form("an input has no known shape"))?;
            // One whose elements are known may be an argument that stands for none, such as the region of a `Resize`.
            if shape.contains(&0) && contents.is_none() {
                return Err(form("an input has no elements"));
            }
            let mut integers_of = |named: Option<Vec<SymInt>>, sizes: &[usize]| {
                dims.all(named.as_ref().filter(|_| symbolic && contents.is_none()), sizes)
            };
            let extents = integers_of(extents, &shape);
            let strides = strides.map(|(distances, named)| integers_of(named, &distances));
            let is_followed = || self.calls.iter().any(|(call, _)| follows(call, value));
            let integers = integers.filter(|_| symbolic && !constant && is_followed());
            let integers = integers.and_then(|integers| dims.integers(&integers, contents.as_ref()?));
            signatures.push(Signature { element, extents, order, strides, contents, integers, constant });
        }
        let placed =
            self.placed.map(|(distances, named)| dims.all(named.as_ref().filter(|_| symbolic), distances));
        if symbolic && dims.dims.is_empty() {
            return self.prepare_with(known, Extents::Fixed);
        }
        let own = Form {
            calls: self.calls.len(),
            output: self.outputs[0],
            signatures,
            order: self.order.cloned(),
            placed,
        };
        let legalised = match self.forms.find(&own, &|integer| dims.value(integer)) {
            Some(known) => known,
            None => {
                let signatures = self.inputs.iter().copied().zip(own.signatures.iter().cloned());
                let made = Arc::new(legalise(&Fusion {
                    calls: self.calls.clone(),
                    inputs: signatures.collect(),
                    outputs: self.outputs.to_vec(),
                    dims: dims.dims.clone(),
                    order: own.order.clone(),
                    placed: own.placed.clone(),
                    accuracy: self.forms.accuracy(),
                })?);
                // Without dimensions, it serves these sizes alone, and their plan keeps it.
                if symbolic {
                    self.forms.keep(own, &made);
                }
                made
            }
        };
        let Legalised { program, inputs, outputs, .. } = &*legalised;
        let inputs = inputs.iter().map(|argument| match argument {
            Argument::Value(value) => Ok(Input::Value(*value)),
            Argument::Table(table) => {
                let kernel = table.to_kernel().ok_or_else(|| form("a table has no bytes"))?;
                Ok(Input::Table(table.element(), kernel))
            }
        });
        let inputs = inputs.collect::<Result<_, Unsupported>>()?;
        let outputs = outputs
            .iter()
            .map(|output| {
                let shape: Option<Vec<usize>> =
                    output.extents.iter().map(|extent| dims.size(extent)).collect();
                let shape = shape.filter(|shape| !shape.contains(&0));
                let shape = shape.ok_or_else(|| form("a result has no elements"))?;
                Ok(Computed {
                    element: output.element,
                    order: output.order.clone().simplified(&shape),
                    shape,
                })
            })
            .collect::<Result<_, Unsupported>>()?;
        let sizes = dims.dims.iter().map(|(_, size)| *size).collect();
        let instance = Instance { program: Arc::clone(program), dims: sizes, bounds: Vec::new() };
        Ok(Prepared { instance, extents: dims.extents, inputs, outputs })
    }
}

/// What the extents of a program are.
#[derive(Clone, Copy, PartialEq)]
enum Extents {
    /// A dimension for each expression of the graph.
    ByName,
    /// A dimension for all expressions that have the same value now. A file may name the same extent in two ways, such as the number of
    /// all tokens by that of a mask and by that of keys.
    BySize,
    /// Numbers.
    Fixed,
}

/// The dimensions of a program: one for each extent that the graph knows by an expression, or for each value of these.
#[derive(Default)]
struct Dims {
    by_size: bool,
    symbols: FxHashMap<SymInt, Symbol>,
    dims: Vec<(Symbol, i64)>,
    /// The expression of each dimension.
    extents: Vec<SymInt>,
}

impl Dims {
    /// Sizes as the graph knows them, where it does.
    fn all(&mut self, named: Option<&Vec<SymInt>>, sizes: &[usize]) -> Vec<SymInt> {
        match named.filter(|named| named.len() == sizes.len()) {
            Some(named) => named.iter().zip(sizes).map(|(extent, &size)| self.extent(extent, size)).collect(),
            None => sizes.iter().map(|&extent| extent.into()).collect(),
        }
    }

    fn extent(&mut self, extent: &SymInt, size: usize) -> SymInt {
        if extent.as_constant().is_some() {
            return size.into();
        }
        let (dims, extents) = (&mut self.dims, &mut self.extents);
        let alike = || dims.iter().find(|(_, own)| *own == size as i64).map(|(symbol, _)| symbol.clone());
        let known = if self.by_size { alike() } else { None };
        let symbol = self.symbols.entry(extent.clone()).or_insert_with(|| {
            if let Some(symbol) = known {
                return symbol;
            }
            let symbol = Symbol::new(&format!("D{}", dims.len()));
            dims.push((symbol.clone(), size as i64));
            extents.push(extent.clone());
            symbol
        });
        let symbol: SymInt = symbol.clone().into();
        // Sizes that contradict an expression are taken as they are.
        if self.size(&symbol) == Some(size) { symbol } else { size.into() }
    }

    /// Integers that the graph knows, which have these values now. `None` where none of them depends on a size.
    fn integers(&mut self, integers: &[SymInt], now: &HostTensor) -> Option<Vec<SymInt>> {
        let now = now.cast(ElementType::I64).ok()?;
        let now = now.as_slice::<i64>()?;
        if integers.len() != now.len() || integers.iter().all(|integer| integer.as_constant().is_some()) {
            return None;
        }
        let own = |(integer, &value): (&SymInt, &i64)| match usize::try_from(value) {
            Ok(size) => self.extent(integer, size),
            Err(_) => value.into(),
        };
        Some(integers.iter().zip(now).map(own).collect())
    }

    fn value(&self, integer: &SymInt) -> Option<i64> {
        let value = |symbol: &Symbol| self.dims.iter().find(|(own, _)| own == symbol).map(|(_, size)| *size);
        integer.evaluate(&value)
    }

    fn size(&self, extent: &SymInt) -> Option<usize> {
        usize::try_from(self.value(extent)?).ok()
    }
}
