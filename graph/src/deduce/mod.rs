//! Types before anything runs: what a call gives, from what its inputs are known to be.
//!
//! Deduction goes forward, one call at a time. An extent that only the data decide becomes a symbol of its own. Small
//! integer tensors carry their elements as symbolic integers, so that the shape arithmetic of models (the shape of a
//! tensor, an element of it, a product, a new shape made of these) is computed here and not when the model runs.

mod contents;
mod control;
mod elementwise;
mod linear;
mod quantise;
mod recurrent;
mod reduce;
mod sample;
mod shape;
mod signal;

use std::sync::Arc;

pub(crate) use control::{branches, repeated, scanned};
pub(crate) use elementwise::{broadcast, cast, cast_like, choose, compare, same};
pub(crate) use linear::{
    attention, conv, conv_transpose, einsum, fused_matmul, gemm, global_pool, matmul, max_unpool, pool,
};
pub(crate) use quantise::{
    block_product, conv_integer, dequantize, dynamic_quantize, look_up, matmul_integer, qlinear_conv,
    qlinear_matmul, quantize,
};
pub(crate) use recurrent::recurrent;
pub(crate) use reduce::{arg_reduce, reduce};
pub(crate) use sample::{chosen_boxes, grid_sample, multinomial, of_shape_attribute, roi_align};
pub(crate) use shape::{
    compress, concat, constant_of_shape, depth_to_space, expand, eye_like, flatten, gather,
    gather_like_indices, gather_nd, non_zero, one_hot, pad, range, reshape, resize, shape, size, slice,
    space_to_depth, split, squeeze, tile, top_k, transpose, unsqueeze,
};

pub(crate) use signal::{dft, stft, window};

use crate::ir::{Attribute, AttributeKind, Call, Shape, TensorType, Type, ValueInfo};
use crate::operator::Fault;
use crate::symbolic::{SymInt, Symbol};
use crate::tensor::{ElementType, HostTensor};

/// The type of a value, and the parts of the value that are known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fact {
    /// Its type.
    pub(crate) ty: Type,
    /// The elements of a small integer tensor, in row-major order, if they are known. Its extents are constants then.
    pub(crate) contents: Option<Arc<Vec<SymInt>>>,
}

/// How many elements a tensor may have whose contents are followed.
const MOST_CONTENTS: usize = 256;

impl Fact {
    /// A fact about the type alone.
    pub(crate) fn of_type(ty: Type) -> Self {
        Fact { ty, contents: None }
    }

    /// Nothing is known.
    pub(crate) fn unknown() -> Self {
        Fact::of_type(Type::Unknown)
    }

    /// A tensor of known element type and shape.
    pub(crate) fn tensor(element: Option<ElementType>, shape: Shape) -> Self {
        Fact::of_type(Type::Tensor(TensorType { element, shape }))
    }

    /// All about a constant.
    pub(crate) fn of_constant(tensor: &HostTensor) -> Self {
        let ty = Type::fixed(tensor.element(), tensor.shape());
        let follow = tensor.element().is_integer() && tensor.len() <= MOST_CONTENTS;
        let numbers = follow.then(|| tensor.cast(ElementType::I64).ok()).flatten();
        let contents = numbers.and_then(|numbers| {
            let numbers = numbers.as_slice::<i64>()?.iter().map(|&number| number.into());
            Some(Arc::new(numbers.collect()))
        });
        Fact { ty, contents }
    }
}

/// Deduces the outputs of a call.
pub(crate) type Deduce = fn(&mut Deduction<'_>) -> Result<Vec<Fact>, Fault>;

/// The facts about a call.
pub(crate) struct Deduction<'a> {
    pub(crate) call: &'a Call,
    /// How many outputs are wanted.
    pub(crate) outputs: usize,
    values: &'a [ValueInfo],
    fresh: &'a mut u32,
}

/// Deduces what a call gives.
pub(crate) fn call(
    call: &Call,
    outputs: usize,
    values: &[ValueInfo],
    fresh: &mut u32,
) -> Result<Vec<Fact>, Fault> {
    let mut deduction = Deduction { call, outputs, values, fresh };
    let mut facts = (call.operator.deduce)(&mut deduction)?;
    facts.truncate(outputs);
    facts.resize(outputs, Fact::unknown());
    let small = facts.iter().all(|fact| fact.ty.extents().is_some_and(is_small));
    if let Some(computed) = small.then(|| contents::compute(&deduction)).flatten() {
        for (fact, computed) in facts.iter_mut().zip(computed) {
            fact.contents = Some(computed.contents);
            fact.ty = computed.ty;
        }
    }
    Ok(facts)
}

/// Whether a tensor of these extents has so few elements that they are followed.
fn is_small(extents: &[SymInt]) -> bool {
    let count = extents.iter().try_fold(1i64, |count, extent| count.checked_mul(extent.as_constant()?));
    count.is_some_and(|count| count <= MOST_CONTENTS as i64)
}

/// Nothing is known of the outputs.
pub(crate) fn unknown(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    Ok(vec![Fact::unknown(); deduction.outputs])
}

/// The first output has the element type of the first input, and a shape that is not known before it runs.
pub(crate) fn element_only(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    Ok(vec![Fact::tensor(deduction.element(0), Shape::Unknown)])
}

/// How the names of symbols begin that stand for extents nothing is known of.
const FRESH: &str = "dyn_";

/// A symbol that stands for nothing yet.
pub(crate) fn fresh(counter: &mut u32) -> SymInt {
    *counter += 1;
    SymInt::symbol(&format!("{FRESH}{counter}"))
}

/// Whether a symbol stands for an extent nothing is known of.
pub(crate) fn is_fresh(symbol: &Symbol) -> bool {
    symbol.name().starts_with(FRESH)
}

impl<'a> Deduction<'a> {
    /// The properties of an input, if it is given.
    pub(crate) fn input(&self, place: usize) -> Option<&'a ValueInfo> {
        let value = (*self.call.inputs.get(place)?)?;
        self.values.get(value.index())
    }

    /// The element type of an input, if it is known.
    pub(crate) fn element(&self, place: usize) -> Option<ElementType> {
        self.input(place)?.ty.element()
    }

    /// The extents of an input, if its rank is known.
    pub(crate) fn extents(&self, place: usize) -> Option<&'a [SymInt]> {
        self.input(place)?.ty.extents()
    }

    /// The elements of an input, if they are followed.
    pub(crate) fn contents(&self, place: usize) -> Option<&'a [SymInt]> {
        self.input(place)?.contents.as_ref().map(|contents| &contents[..])
    }

    /// The elements of an input, if all of them are constants.
    pub(crate) fn constants(&self, place: usize) -> Option<Vec<i64>> {
        self.contents(place)?.iter().map(SymInt::as_constant).collect()
    }

    /// The number of elements of an input of rank 1, if it is known.
    pub(crate) fn length(&self, place: usize) -> Option<usize> {
        match self.extents(place)? {
            [length] => usize::try_from(length.as_constant()?).ok(),
            _ => None,
        }
    }

    /// An extent that only the data decide.
    pub(crate) fn fresh(&mut self) -> SymInt {
        fresh(self.fresh)
    }

    /// A shape of a given rank of which nothing else is known.
    pub(crate) fn fresh_shape(&mut self, rank: usize) -> Shape {
        Shape::Known((0..rank).map(|_| self.fresh()).collect())
    }

    /// An integer attribute, with the default of the table.
    pub(crate) fn int(&self, name: &str) -> Option<i64> {
        match (self.call.attributes.get(name), self.call.operator.attribute(name)) {
            (Some(Attribute::Int(value)), _) => Some(*value),
            (_, Some(AttributeKind::IntOr(value))) => Some(value),
            _ => None,
        }
    }

    /// A truth value attribute.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.int(name).is_some_and(|value| value != 0)
    }

    /// An attribute that is a list of integers, if it is given.
    pub(crate) fn ints(&self, name: &str) -> Option<&'a [i64]> {
        match self.call.attributes.get(name) {
            Some(Attribute::Ints(values)) => Some(values),
            _ => None,
        }
    }
}
