//! The program under construction: its dimensions, tensors and loop nests.
//!
//! The buffers of a program have no dimensions of extent 1. No loop steps through them, and without them a block that computes
//! each element shows it: no elements have to be set before, and weights of one tap are those of a product.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tilewright_core::build::{KernelBuilder, SourceLocation, TensorHandle, UpdateOp, Value};
use tilewright_core::dtype::DType;
use tilewright_core::expr::BinaryOp;
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::Index;
use tilewright_core::program::{Param, Program};

use crate::ir::ValueId;
use crate::legalise::decisions::Decisions;
use crate::legalise::scalar::literal;
use crate::legalise::{Argument, Fusion, Legalised, Order, Output, Signature, Unsupported, unsupported};
use crate::symbolic::{Arithmetic, SymInt, Symbol};
use crate::tensor::{ElementType, HostTensor};

/// The place in this crate that emits a statement.
macro_rules! here {
    () => {
        tilewright_core::build::SourceLocation::new(file!(), line!(), column!())
    };
}
pub(super) use here;

/// A tensor of the program.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub(super) source: Source,
    pub(super) element: ElementType,
    pub(super) dtype: DType,
    pub(super) extents: Vec<SymInt>,
    pub(super) order: Order,
}

/// Where the elements of a tensor are.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// In a buffer.
    Buffer(TensorHandle),
    /// All of them are this value.
    Literal(Value),
}

impl Tensor {
    pub(super) fn rank(&self) -> usize {
        self.extents.len()
    }

    /// The element at some indices, one for each dimension.
    pub(super) fn at(&self, builder: &KernelBuilder, indices: &[Value]) -> Value {
        match &self.source {
            Source::Buffer(handle) => builder.load(*handle, &in_buffer(&self.order, &self.extents, indices)),
            Source::Literal(value) => value.clone(),
        }
    }

    /// Changes the element at some indices, one for each dimension, of a tensor that the program computes.
    pub(super) fn store(
        &self,
        builder: &mut KernelBuilder,
        indices: &[Value],
        op: UpdateOp,
        value: Value,
        location: SourceLocation,
    ) {
        let Source::Buffer(handle) = self.source else {
            unreachable!("a tensor that is computed has a buffer")
        };
        builder.store(handle, &in_buffer(&self.order, &self.extents, indices), op, value, location);
    }
}

/// Takes one value for each dimension of a tensor, and gives those of the dimensions of its buffer, which has them in the order of
/// memory and without extents of 1.
fn in_buffer<T: Clone>(order: &Order, extents: &[SymInt], values: &[T]) -> Vec<T> {
    order
        .dimensions()
        .filter(|&dimension| !extents[dimension].is(1))
        .map(|dimension| values[dimension].clone())
        .collect()
}

/// A program under construction.
pub(crate) struct Emitter {
    pub(super) builder: KernelBuilder,
    dims: BTreeMap<Symbol, (Value, i64)>,
    decisions: Decisions,
    /// The order of new tensors of its rank; others have the graph's order.
    order: Option<Order>,
    /// Inputs that were not used yet.
    inputs: FxHashMap<ValueId, Signature>,
    tensors: FxHashMap<ValueId, Tensor>,
    parameters: Vec<Argument>,
    /// The buffers of the parameters.
    arguments: Vec<TensorHandle>,
    /// Parameters that are not dense, by their places, with the strides of the dimensions of their buffers.
    strided: Vec<(usize, Vec<SymInt>)>,
    /// The strides of the first result, where it is not dense.
    placed: Option<Vec<SymInt>>,
    locals: usize,
}

impl Emitter {
    pub(super) fn new(name: &str, fusion: &Fusion<'_>, decisions: Decisions) -> Self {
        let mut builder = KernelBuilder::new(name);
        if let Some(accuracy) = fusion.accuracy {
            builder.accuracy(accuracy.relative());
        }
        let dims = fusion
            .dims
            .iter()
            .map(|(symbol, size)| (symbol.clone(), (builder.dim(symbol.name()), *size)))
            .collect();
        Emitter {
            builder,
            dims,
            decisions,
            order: fusion.order.clone(),
            inputs: fusion.inputs.clone(),
            tensors: FxHashMap::default(),
            parameters: Vec::new(),
            arguments: Vec::new(),
            strided: Vec::new(),
            placed: fusion.placed.clone(),
            locals: 0,
        }
    }

    /// The tensor that a value is. An input is declared when it is read first.
    pub(super) fn tensor(&mut self, value: ValueId) -> Result<Tensor, Unsupported> {
        if let Some(tensor) = self.tensors.get(&value) {
            return Ok(tensor.clone());
        }
        let Some(signature) = self.inputs.remove(&value) else {
            unsupported!("value %{} is not known here", value.index())
        };
        let Some(dtype) = signature.element.dtype() else {
            unsupported!("kernels do not compute with elements of type {}", signature.element)
        };
        // The caller makes a program only for tensors that have elements: this is no choice.
        if signature.extents.iter().any(|extent| self.present(extent) == Some(0)) {
            unsupported!("value %{} has no elements", value.index())
        }
        let single = signature.contents.as_ref().filter(|contents| contents.len() == 1);
        let source = match single.and_then(literal) {
            Some(value) => {
                signature.note_contents(&self.decisions);
                Source::Literal(value)
            }
            None => {
                let extents = in_buffer(&signature.order, &signature.extents, &signature.extents);
                let shape = self.values(&extents)?;
                let name = format!("x{}", self.parameters.len());
                self.parameters.push(Argument::Value(value));
                if let Some(strides) = &signature.strides {
                    let own = in_buffer(&signature.order, &signature.extents, strides);
                    self.strided.push((self.arguments.len(), own));
                }
                let handle = if signature.constant {
                    self.builder.constant(&name, dtype, &shape)
                } else {
                    self.builder.input(&name, dtype, &shape)
                };
                self.arguments.push(handle);
                Source::Buffer(handle)
            }
        };
        let Signature { element, extents, order, .. } = signature;
        let tensor = Tensor { source, element, dtype, extents, order };
        self.tensors.insert(value, tensor.clone());
        Ok(tensor)
    }

    /// Has nothing computed ahead of calls from a value, although it is constant, as that would take more memory than the value.
    /// It holds for values that were not read yet.
    pub(super) fn keep_packed(&mut self, value: ValueId) {
        if let Some(signature) = self.inputs.get_mut(&value) {
            signature.constant = false;
        }
    }

    /// A tensor whose elements the definition brings along. They hold for these extents alone, so that it is refused where
    /// the program has dimensions.
    pub(super) fn table(&mut self, elements: HostTensor) -> Result<Tensor, Unsupported> {
        if !self.dims.is_empty() {
            unsupported!("a table needs fixed extents");
        }
        let element = elements.element();
        let Some(dtype) = element.dtype() else {
            unsupported!("kernels do not compute with elements of type {element}")
        };
        let extents: Vec<SymInt> = elements.shape().iter().map(|&extent| extent.into()).collect();
        let order = Order::given(extents.len());
        let shape = self.values(&in_buffer(&order, &extents, &extents))?;
        let handle = self.builder.constant(&format!("x{}", self.parameters.len()), dtype, &shape);
        self.parameters.push(Argument::Table(elements));
        self.arguments.push(handle);
        Ok(Tensor { source: Source::Buffer(handle), element, dtype, extents, order })
    }

    /// Says what tensor a value is.
    pub(super) fn set(&mut self, value: ValueId, tensor: Tensor) {
        self.tensors.insert(value, tensor);
    }

    /// An integer as a value of the program.
    pub(super) fn value(&self, integer: &SymInt) -> Result<Value, Unsupported> {
        integer.translate(&mut Values(&self.dims))
    }

    /// Integers as values of the program.
    pub(super) fn values(&self, integers: &[SymInt]) -> Result<Vec<Value>, Unsupported> {
        integers.iter().map(|integer| self.value(integer)).collect()
    }

    /// The value of an integer for the present values of the dimensions. The program that uses it depends on this value.
    pub(super) fn size(&self, integer: &SymInt) -> Result<i64, Unsupported> {
        let size = self.present(integer);
        let size = size.ok_or_else(|| Unsupported::Form(format!("extent {integer} is not known")))?;
        self.decisions.note(integer, size);
        Ok(size)
    }

    /// Whether an integer is at most another one now. The program holds for all sizes with the same answer.
    pub(super) fn at_most(&self, left: &SymInt, right: &SymInt) -> Result<bool, Unsupported> {
        let excess = |more: &SymInt, less: &SymInt| (more - less).maximum(&0.into());
        let (over, under) = (excess(left, right), excess(&(right + &1.into()), left));
        let unknown = || Unsupported::Form(format!("whether {left} is at most {right} is not known"));
        let is_at_most = self.present(&over).ok_or_else(unknown)? == 0;
        self.decisions.note(if is_at_most { &over } else { &under }, 0);
        Ok(is_at_most)
    }

    /// The value of an integer for the present values of the dimensions, for choices that come out alike for all sizes.
    pub(super) fn present(&self, integer: &SymInt) -> Option<i64> {
        integer.evaluate(&|symbol| self.dims.get(symbol).map(|(_, size)| *size))
    }

    /// Whether no extent is zero. The program holds for all sizes with the same answer.
    pub(super) fn has_elements(&self, extents: &[SymInt]) -> Result<bool, Unsupported> {
        let mut all = true;
        for extent in extents {
            all &= self.at_most(&1.into(), extent)?;
        }
        Ok(all)
    }

    /// The values of extents for the present values of the dimensions, for choices that come out alike for all sizes.
    pub(super) fn present_sizes(&self, extents: &[SymInt]) -> Result<Vec<usize>, Unsupported> {
        let size = |extent: &SymInt| self.present(extent).and_then(|size| usize::try_from(size).ok());
        let unknown = |extent: &SymInt| Unsupported::Form(format!("extent {extent} is not known"));
        extents.iter().map(|extent| size(extent).ok_or_else(|| unknown(extent))).collect()
    }

    /// The values of extents for the present values of the dimensions.
    pub(super) fn sizes(&self, extents: &[SymInt]) -> Result<Vec<usize>, Unsupported> {
        let size = |extent: &SymInt| {
            let size = self.size(extent)?;
            usize::try_from(size).map_err(|_| Unsupported::Form(format!("{size} is no extent")))
        };
        extents.iter().map(size).collect()
    }

    /// A new tensor, whose elements are `initial` at first, or nothing known.
    pub(super) fn local(
        &mut self,
        element: ElementType,
        extents: &[SymInt],
        initial: Option<Value>,
    ) -> Result<Tensor, Unsupported> {
        self.ordered(element, extents, initial, self.order(extents.len()))
    }

    /// As [`Emitter::local`], in an order of its own.
    pub(super) fn ordered(
        &mut self,
        element: ElementType,
        extents: &[SymInt],
        initial: Option<Value>,
        order: Order,
    ) -> Result<Tensor, Unsupported> {
        let Some(dtype) = element.dtype() else {
            unsupported!("kernels do not compute with elements of type {element}")
        };
        let shape = self.values(&in_buffer(&order, extents, extents))?;
        let name = format!("y{}", self.locals);
        self.locals += 1;
        let handle = self.builder.tensor(&name, dtype, &shape, initial, here!());
        let source = Source::Buffer(handle);
        Ok(Tensor { source, element, dtype, extents: extents.to_vec(), order })
    }

    /// A tensor in the graph's order that no other call reads.
    pub(super) fn scratch(
        &mut self,
        element: ElementType,
        extents: &[SymInt],
    ) -> Result<Tensor, Unsupported> {
        self.ordered(element, extents, None, Order::given(extents.len()))
    }

    /// As [`Emitter::scratch`], with a value for all elements at first.
    pub(super) fn filled(
        &mut self,
        element: ElementType,
        extents: &[SymInt],
        initial: Value,
    ) -> Result<Tensor, Unsupported> {
        self.ordered(element, extents, Some(initial), Order::given(extents.len()))
    }

    /// The order of new tensors with `rank` dimensions.
    pub(super) fn order(&self, rank: usize) -> Order {
        self.order.clone().filter(|order| order.rank() == rank).unwrap_or_else(|| Order::given(rank))
    }

    /// Loops over all places of some extents, nested as new tensors of this rank lie in memory. Dimensions of extent 1 have no
    /// loop.
    pub(super) fn nest(
        &mut self,
        extents: &[SymInt],
        body: &mut dyn FnMut(&mut KernelBuilder, &[Value]),
    ) -> Result<(), Unsupported> {
        let loops: Vec<usize> = self.order(extents.len()).dimensions().collect();
        self.nest_in(&loops, extents, body)
    }

    /// As [`Emitter::nest`], with the loops in a given order, outermost first.
    pub(super) fn nest_in(
        &mut self,
        loops: &[usize],
        extents: &[SymInt],
        body: &mut dyn FnMut(&mut KernelBuilder, &[Value]),
    ) -> Result<(), Unsupported> {
        let bounds = self.bounds(extents)?;
        let bounds: Vec<Bound> = loops.iter().map(|&dimension| bounds[dimension].clone()).collect();
        nest(&mut self.builder, &bounds, &mut Vec::new(), &mut |builder, nested| {
            let mut indices = vec![Value::int(0); nested.len()];
            for (&dimension, index) in loops.iter().zip(nested) {
                indices[dimension] = index.clone();
            }
            body(builder, &indices);
        });
        Ok(())
    }

    /// The ends of loops over extents, for [`nest`].
    pub(super) fn bounds(&self, extents: &[SymInt]) -> Result<Vec<Bound>, Unsupported> {
        let bound =
            |extent: &SymInt| Ok(if extent.is(1) { Bound::One } else { Bound::Many(self.value(extent)?) });
        extents.iter().map(bound).collect()
    }

    /// A new tensor with each element computed from its place.
    pub(super) fn compute(
        &mut self,
        element: ElementType,
        extents: &[SymInt],
        function: &mut dyn FnMut(&mut KernelBuilder, &[Value]) -> Value,
    ) -> Result<Tensor, Unsupported> {
        let tensor = self.local(element, extents, None)?;
        self.nest(extents, &mut |builder, indices| {
            let value = function(builder, indices);
            tensor.store(builder, indices, UpdateOp::Set, value, here!());
        })?;
        Ok(tensor)
    }

    pub(super) fn finish(mut self, outputs: &[ValueId]) -> Result<Legalised, Unsupported> {
        let (mut given, mut returned, mut placed) = (Vec::new(), Vec::new(), None);
        for output in outputs {
            let mut tensor = self.tensor(*output)?;
            // A program returns neither its arguments nor a tensor twice.
            let is_own = match &tensor.source {
                Source::Literal(_) => false,
                Source::Buffer(handle) => !self.arguments.contains(handle) && !returned.contains(handle),
            };
            if !is_own {
                tensor = self.copy(&tensor)?;
            }
            let Source::Buffer(handle) = tensor.source else { unreachable!("a copy is a buffer") };
            self.builder.output(handle);
            returned.push(handle);
            if let Some(strides) = self.placed.take() {
                placed = Some(in_buffer(&tensor.order, &tensor.extents, &strides));
            }
            given.push(Output { element: tensor.element, extents: tensor.extents, order: tensor.order });
        }
        let mut program = self.builder.finish().map_err(Unsupported::Definition)?;
        let first_result = self.arguments.len();
        self.strided.extend(placed.map(|strides| (first_result, strides)));
        set_strides(&mut program, &self.strided, &self.dims)?;
        let decided_by = self.decisions.list();
        Ok(Legalised { program: Arc::new(program), inputs: self.parameters, outputs: given, decided_by })
    }

    fn copy(&mut self, tensor: &Tensor) -> Result<Tensor, Unsupported> {
        let Tensor { element, extents, .. } = tensor.clone();
        self.compute(element, &extents, &mut |builder, indices| tensor.at(builder, indices))
    }
}

/// Gives strides to parameters. Each of them is a dimension of the program or a number.
fn set_strides(
    program: &mut Program,
    strided: &[(usize, Vec<SymInt>)],
    dims: &BTreeMap<Symbol, (Value, i64)>,
) -> Result<(), Unsupported> {
    let variables = program.params.iter().filter_map(|param| match param {
        Param::Dim(variable) => Some(*variable),
        _ => None,
    });
    let variables: FxHashMap<String, VarId> =
        variables.map(|variable| (program.variable(variable).name.to_string(), variable)).collect();
    let index = |stride: &SymInt| {
        let symbol = stride.as_symbol().filter(|symbol| dims.contains_key(symbol));
        let dimension = symbol.and_then(|symbol| variables.get(symbol.name()));
        let index = stride.as_constant().map(Index::constant).or(dimension.map(|&own| Index::var(own)));
        index.ok_or_else(|| Unsupported::Form(format!("stride {stride} is no dimension of the program")))
    };
    let buffers: Vec<BufferId> = program.buffer_params().map(|(id, _)| id).collect();
    for (place, strides) in strided {
        let strides = strides.iter().map(index).collect::<Result<_, _>>()?;
        program.set_strides(buffers[*place], strides);
    }
    Ok(())
}

/// The end of a loop.
#[derive(Clone, Debug)]
pub(super) enum Bound {
    /// There is one iteration, and no loop is needed.
    One,
    /// As many iterations as this says.
    Many(Value),
}

/// Loops around a body, outermost first; `indices` are those of loops that are open already.
pub(super) fn nest(
    builder: &mut KernelBuilder,
    bounds: &[Bound],
    indices: &mut Vec<Value>,
    body: &mut dyn FnMut(&mut KernelBuilder, &[Value]),
) {
    match bounds.split_first() {
        None => body(builder, indices),
        Some((Bound::One, rest)) => {
            indices.push(Value::int(0));
            nest(builder, rest, indices, body);
            indices.pop();
        }
        Some((Bound::Many(end), rest)) => {
            let name = format!("i{}", indices.len());
            let at: SourceLocation = here!();
            builder.for_loop(&name, Value::int(0), end.clone(), 1, at, |builder, index| {
                indices.push(index);
                nest(builder, rest, indices, body);
                indices.pop();
            });
        }
    }
}

/// Symbolic integers in the arithmetic of programs.
struct Values<'a>(&'a BTreeMap<Symbol, (Value, i64)>);

impl Arithmetic for Values<'_> {
    type Number = Value;
    type Error = Unsupported;

    fn constant(&mut self, constant: i64) -> Value {
        Value::typed_int(DType::I64, constant)
    }

    fn symbol(&mut self, symbol: &Symbol) -> Result<Value, Unsupported> {
        let known = self.0.get(symbol).map(|(value, _)| value.clone());
        known.ok_or_else(|| Unsupported::Form(format!("size {symbol} is not known")))
    }

    fn add(&mut self, left: Value, right: Value) -> Value {
        left.binary(BinaryOp::Add, right)
    }

    fn multiply(&mut self, left: Value, right: Value) -> Value {
        left.binary(BinaryOp::Mul, right)
    }

    fn divide(&mut self, left: Value, right: Value) -> Value {
        left.binary(BinaryOp::Div, right)
    }

    fn remainder(&mut self, left: Value, right: Value) -> Value {
        left.binary(BinaryOp::Rem, right)
    }

    fn minimum(&mut self, left: Value, right: Value) -> Value {
        left.binary(BinaryOp::Min, right)
    }

    fn maximum(&mut self, left: Value, right: Value) -> Value {
        left.binary(BinaryOp::Max, right)
    }
}
