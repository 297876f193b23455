//! Sums of products in Einstein's notation.

use std::collections::BTreeMap;

use tilewright_core::build::{KernelBuilder, Value};
use tilewright_core::dtype::DType;

use crate::legalise::emitter::{Emitter, Tensor};
use crate::legalise::matmul::sum_of_products;
use crate::legalise::operands::Operands;
use crate::legalise::scalar::{computing, multiply};
use crate::legalise::{Unsupported, unsupported};
use crate::operator::{Contraction, Label};
use crate::symbolic::SymInt;

pub(crate) fn einsum(emitter: &mut Emitter, operands: &Operands<'_>) -> Result<Vec<Tensor>, Unsupported> {
    let inputs: Vec<Tensor> =
        (0..operands.len()).map(|place| operands.tensor(emitter, place)).collect::<Result<_, _>>()?;
    let ranks: Vec<usize> = inputs.iter().map(Tensor::rank).collect();
    let contraction = Contraction::parse(operands.text("equation"), &ranks)?;
    let (element, dtype) = (inputs[0].element, inputs[0].dtype);
    if dtype == DType::Bool || inputs.iter().any(|input| input.element != element) {
        unsupported!("the inputs are not numbers of one type");
    }
    let extents = extents(&contraction, &inputs)?;
    let summed = contraction.summed();
    let shape = |labels: &[Label]| labels.iter().map(|label| extents[label].clone()).collect::<Vec<_>>();
    let (outer, inner) = (shape(&contraction.kept), shape(&summed));
    let wide = computing(dtype);
    let product = |builder: &KernelBuilder, outer: &[Value], inner: &[Value]| {
        let places: BTreeMap<Label, &Value> =
            contraction.kept.iter().copied().zip(outer).chain(summed.iter().copied().zip(inner)).collect();
        let factors = inputs.iter().zip(&contraction.inputs).map(|(input, labels)| {
            let place = |(label, extent): (&Label, &SymInt)| {
                if extent.is(1) { Value::int(0) } else { places[label].clone() }
            };
            let indices: Vec<Value> = labels.iter().zip(&input.extents).map(place).collect();
            input.at(builder, &indices).cast(wide)
        });
        factors.reduce(|product, factor| multiply(&product, &factor)).expect("there is an input")
    };
    let result = if inner.is_empty() {
        emitter.compute(element, &outer, &mut |builder, outer| product(builder, outer, &[]).cast(dtype))?
    } else {
        let depth = emitter.bounds(&inner)?;
        sum_of_products(emitter, element, &outer, &depth, &product)?
    };
    Ok(vec![result])
}

/// The extent of each label; those of an extent of 1 broadcast.
fn extents(contraction: &Contraction, inputs: &[Tensor]) -> Result<BTreeMap<Label, SymInt>, Unsupported> {
    let mut extents: BTreeMap<Label, SymInt> = BTreeMap::new();
    for (labels, input) in contraction.inputs.iter().zip(inputs) {
        for (&label, extent) in labels.iter().zip(&input.extents) {
            let known = extents.entry(label).or_insert_with(|| extent.clone());
            if known.is(1) {
                *known = extent.clone();
            } else if !extent.is(1) && extent != known {
                unsupported!("whether extents {known} and {extent} are equal depends on the call");
            }
        }
    }
    Ok(extents)
}
