//! Functions of one quantised tensor become tables.
//!
//! `quantize(sigmoid(dequantize(x)))` of a byte `x` is one of 256 bytes, whatever the function costs; so is `x · sigmoid(x)` with conversions around
//! both operators. Each call of pointwise operators between a byte and the byte that its number is stored as is evaluated for every byte when the
//! graph is built, and `look_up(x, table)` takes their place.

use rustc_hash::FxHashMap;
use tilewright_core::flat::tables::BYTES;

use crate::build::BuildError;
use crate::ir::{Attributes, Call, ValueId};
use crate::operator::{Arguments, Value, is_pointwise};
use crate::pass::Rewriter;
use crate::pass::quantise::call;
use crate::tensor::{ElementType, HostTensor};

/// The most values that are looked at for one table.
const MOST_VALUES: usize = 256;

/// The look-up that takes the place of a call whose bytes are a function of other bytes.
pub(super) fn look_up(graph: &mut Rewriter<'_>, quantize: &Call) -> Result<Option<Vec<ValueId>>, BuildError> {
    let mut search = Search { graph, known: FxHashMap::default(), visited: 0 };
    let Some(Source::Byte(byte)) = search.common_source(quantize) else { return Ok(None) };
    let Some(table) = table(graph, byte, quantize) else { return Ok(None) };
    let table = graph.add_constant(table);
    graph.add_call(call("look_up", vec![Some(byte), Some(table)], Attributes::none())?, 1).map(Some)
}

/// The tensor from whose bytes a value is computed, element by element.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// None: the value is constant.
    Constant,
    /// This one.
    Byte(ValueId),
}

/// A search for the sources of values.
struct Search<'r, 'f> {
    graph: &'r Rewriter<'f>,
    known: FxHashMap<ValueId, Option<Source>>,
    visited: usize,
}

impl Search<'_, '_> {
    /// The source of a value, if it has a single one.
    fn source(&mut self, value: ValueId) -> Option<Source> {
        if let Some(&known) = self.known.get(&value) {
            return known;
        }
        self.visited += 1;
        let source = if self.visited > MOST_VALUES { None } else { self.find_source(value) };
        self.known.insert(value, source);
        source
    }

    fn find_source(&mut self, value: ValueId) -> Option<Source> {
        if let Some(tensor) = self.graph.constant(value) {
            return (tensor.len() == 1).then_some(Source::Constant);
        }
        let call = self.graph.call(value).filter(|call| is_pointwise(call.operator)).cloned();
        let through = call.and_then(|call| self.common_source(&call));
        through.or_else(|| is_byte(self.graph.builder.ty(value).element()).then_some(Source::Byte(value)))
    }

    /// The only source of all inputs of a call.
    fn common_source(&mut self, call: &Call) -> Option<Source> {
        if call.operator.draws {
            return None;
        }
        let mut common = Source::Constant;
        for (place, &input) in call.inputs.iter().enumerate() {
            let Some(input) = input else { continue };
            // The table of a look-up is no element.
            if place == 1 && call.operator.name == "look_up" && self.graph.constant(input).is_some() {
                continue;
            }
            match (common, self.source(input)?) {
                (_, Source::Constant) => {}
                (Source::Constant, source) => common = source,
                (Source::Byte(one), Source::Byte(other)) if one == other => {}
                _ => return None,
            }
        }
        Some(common)
    }
}

/// The results of a call for every byte, if it does more than to convert numbers: two conversions take no longer than a table.
fn table(graph: &Rewriter<'_>, byte: ValueId, call: &Call) -> Option<HostTensor> {
    let ty = graph.builder.ty(byte);
    let mut shape = vec![1; ty.extents()?.len()];
    *shape.last_mut()? = BYTES;
    let all = 0..=u8::MAX;
    let bytes = match ty.element()? {
        ElementType::I8 => HostTensor::new(&shape, all.map(|byte| byte as i8).collect()),
        _ => HostTensor::new(&shape, all.collect::<Vec<u8>>()),
    };
    let mut function =
        Evaluation { graph, values: FxHashMap::from_iter([(byte, bytes.ok()?)]), converts_only: true };
    let results = function.call(call)?;
    let is_table = !function.converts_only && is_byte(Some(results.element())) && results.shape() == shape;
    is_table.then(|| results.reshape(&[BYTES]).ok()).flatten()
}

/// The evaluation of calls for each byte.
struct Evaluation<'r, 'f> {
    graph: &'r Rewriter<'f>,
    values: FxHashMap<ValueId, HostTensor>,
    converts_only: bool,
}

impl Evaluation<'_, '_> {
    fn value(&mut self, value: ValueId) -> Option<HostTensor> {
        if let Some(known) = self.values.get(&value).or_else(|| self.graph.constant(value)) {
            return Some(known.clone());
        }
        let call = self.graph.call(value)?.clone();
        let result = self.call(&call)?;
        self.values.insert(value, result.clone());
        Some(result)
    }

    /// The first result of a call. One that fails stays, so that the failure is reported if and when it runs.
    fn call(&mut self, call: &Call) -> Option<HostTensor> {
        self.converts_only &= matches!(call.operator.name, "quantize_linear" | "dequantize_linear");
        let mut inputs = Vec::with_capacity(call.inputs.len());
        for &input in &call.inputs {
            inputs.push(match input {
                None => None,
                Some(value) => Some(Value::Tensor(self.value(value)?)),
            });
        }
        let arguments =
            Arguments { operator: call.operator, attributes: &call.attributes, inputs: &inputs, outputs: 1 };
        (call.operator.evaluate)(&arguments).ok()?.first()?.as_tensor().cloned()
    }
}

fn is_byte(element: Option<ElementType>) -> bool {
    matches!(element, Some(ElementType::U8 | ElementType::I8))
}
