//! A function with conversions around its products.

use rustc_hash::FxHashMap;
use tilewright_graph::build::BuildError;
use tilewright_graph::ir::{Attribute, Attributes, Call, Function, Operation, ValueId};
use tilewright_graph::operator;
use tilewright_graph::pass::{Rewriter, Rule, remove_unused};
use tilewright_graph::tensor::HostTensor;

use crate::affine::{Affine, Integers, Zero, integer_bias};
use crate::product::{Bias, Product};

/// How a product is quantised.
pub(crate) struct Choice {
    pub(crate) input: Affine,
    pub(crate) weights: Integers,
    /// The bias of each channel; empty without one.
    pub(crate) bias: Vec<f32>,
}

/// A product with the way in which it is quantised.
pub(crate) type Chosen<'p> = (&'p Product, Choice);

/// The function with its products quantised.
pub(crate) fn replace(
    function: &Function,
    chosen: &[Chosen<'_>],
) -> Result<(Function, Vec<ValueId>), BuildError> {
    let mut insert = Insert::new(chosen, false);
    // The weights as floats are left over, and would be written to files.
    let quantised = remove_unused(&Rewriter::apply(function, &mut insert)?);
    Ok((quantised, insert.results.into_iter().flatten().collect()))
}

/// The function with each product twice, of numbers and of integers. All others read the one of numbers. The values are those of each pair, one
/// after the other.
pub(crate) fn beside(
    function: &Function,
    chosen: &[Chosen<'_>],
) -> Result<(Function, Vec<ValueId>), BuildError> {
    let mut insert = Insert::new(chosen, true);
    let both = Rewriter::apply(function, &mut insert)?;
    Ok((both, insert.results.into_iter().flatten().collect()))
}

/// Puts conversions around products.
struct Insert<'c, 'p> {
    chosen: &'c [Chosen<'p>],
    /// The choice for the product at each place of the function's body.
    products: FxHashMap<usize, usize>,
    /// The choice whose bias the call at a place adds.
    biases: FxHashMap<usize, usize>,
    beside: bool,
    /// The place of the next operation of the function's body.
    place: usize,
    /// How many bodies of control flow are open.
    depth: usize,
    /// Values that were stored as bytes and read again.
    read: FxHashMap<(ValueId, u32, Zero), ValueId>,
    /// The values of each choice.
    results: Vec<Vec<ValueId>>,
}

impl<'c, 'p> Insert<'c, 'p> {
    fn new(chosen: &'c [Chosen<'p>], beside: bool) -> Self {
        let products = chosen.iter().enumerate().map(|(number, (product, _))| (product.place, number));
        let added = |(number, (product, _)): (usize, &Chosen<'p>)| match product.bias {
            Bias::Added { place, .. } if !beside => Some((place, number)),
            _ => None,
        };
        Insert {
            chosen,
            products: products.collect(),
            biases: chosen.iter().enumerate().filter_map(added).collect(),
            beside,
            place: 0,
            depth: 0,
            read: FxHashMap::default(),
            results: vec![Vec::new(); chosen.len()],
        }
    }

    /// A value stored as bytes and read again.
    fn through_bytes(
        &mut self,
        graph: &mut Rewriter<'_>,
        value: ValueId,
        affine: Affine,
    ) -> Result<ValueId, BuildError> {
        let key = (value, affine.scale.to_bits(), affine.zero);
        if let Some(&read) = self.read.get(&key) {
            return Ok(read);
        }
        let scale = graph.add_constant(HostTensor::scalar(affine.scale));
        let zero = graph.add_constant(affine.zero_tensor());
        let stored = convert(graph, "quantize_linear", [value, scale, zero], Attributes::none())?;
        let read = convert(graph, "dequantize_linear", [stored, scale, zero], Attributes::none())?;
        self.read.insert(key, read);
        Ok(read)
    }

    /// The product of integers.
    fn product(
        &mut self,
        graph: &mut Rewriter<'_>,
        call: &Call,
        number: usize,
    ) -> Result<ValueId, BuildError> {
        let (product, choice) = &self.chosen[number];
        let mut inputs = call.inputs.clone();
        let input = call.inputs[0].expect("a product has two factors");
        inputs[0] = Some(self.through_bytes(graph, input, choice.input)?);
        let integers = HostTensor::new(product.weights.shape(), choice.weights.values.clone())
            .expect("there are as many integers as weights");
        let scales = &choice.weights.scales;
        inputs[1] = Some(constant(graph, integers, scales, HostTensor::scalar(0i8), product.axis)?);
        if product.operator != "matmul" && !choice.bias.is_empty() {
            let of_products: Vec<f32> = scales.iter().map(|scale| scale * choice.input.scale).collect();
            let bias = HostTensor::vector(integer_bias(&choice.bias, &of_products));
            inputs.resize(3, None);
            inputs[2] = Some(constant(graph, bias, &of_products, HostTensor::scalar(0i32), 0)?);
        }
        Ok(graph.add_call(Call { inputs, ..call.clone() }, 1)?[0])
    }

    /// A product of matrices that nothing is added to, with what takes up its mean error.
    fn corrected(
        &self,
        graph: &mut Rewriter<'_>,
        product: ValueId,
        number: usize,
    ) -> Result<ValueId, BuildError> {
        let (own, choice) = &self.chosen[number];
        if own.operator != "matmul" || !matches!(own.bias, Bias::None) || choice.bias.is_empty() {
            return Ok(product);
        }
        let bias = graph.add_constant(HostTensor::vector(choice.bias.clone()));
        convert_any(graph, "add", vec![Some(product), Some(bias)], Attributes::none())
    }
}

impl Rule for Insert<'_, '_> {
    fn rewrite(
        &mut self,
        graph: &mut Rewriter<'_>,
        operation: &Operation,
        _outputs: usize,
    ) -> Result<Option<Vec<ValueId>>, BuildError> {
        if self.depth > 0 {
            return Ok(None);
        }
        let place = self.place;
        self.place += 1;
        let Operation::Call(call) = operation else { return Ok(None) };
        if let Some(&number) = self.products.get(&place) {
            let integer = self.product(graph, call, number)?;
            if self.beside {
                let float = graph.add_call(call.clone(), 1)?[0];
                self.results[number] = vec![float, integer];
                return Ok(Some(vec![float]));
            }
            let result = self.corrected(graph, integer, number)?;
            self.results[number] = vec![result];
            return Ok(Some(vec![result]));
        }
        if let Some(&number) = self.biases.get(&place) {
            let bias = graph.add_constant(HostTensor::vector(self.chosen[number].1.bias.clone()));
            let product = self.results[number][0];
            let result = convert_any(graph, "add", vec![Some(product), Some(bias)], Attributes::none())?;
            self.results[number] = vec![result];
            return Ok(Some(vec![result]));
        }
        Ok(None)
    }

    fn nested(&mut self, entered: bool) {
        if entered { self.depth += 1 } else { self.depth -= 1 }
    }
}

/// A constant of integers as numbers. One zero stands for each scale.
fn constant(
    graph: &mut Rewriter<'_>,
    integers: HostTensor,
    scales: &[f32],
    zero: HostTensor,
    axis: usize,
) -> Result<ValueId, BuildError> {
    let (scale, zero, attributes) = match scales {
        &[scale] => (HostTensor::scalar(scale), zero, Attributes::none()),
        scales => {
            let zeros = HostTensor::zeros(zero.element(), &[scales.len()]).expect("there is room for zeros");
            let along = Attributes::none().with("axis", Attribute::Int(axis as i64));
            (HostTensor::vector(scales.to_vec()), zeros, along)
        }
    };
    let inputs = [integers, scale, zero].map(|tensor| graph.add_constant(tensor));
    convert(graph, "dequantize_linear", inputs, attributes)
}

fn convert(
    graph: &mut Rewriter<'_>,
    name: &str,
    inputs: [ValueId; 3],
    attributes: Attributes,
) -> Result<ValueId, BuildError> {
    convert_any(graph, name, inputs.map(Some).to_vec(), attributes)
}

fn convert_any(
    graph: &mut Rewriter<'_>,
    name: &str,
    inputs: Vec<Option<ValueId>>,
    attributes: Attributes,
) -> Result<ValueId, BuildError> {
    let operator = operator::find(name).ok_or_else(|| BuildError::UnknownOperator(name.to_owned()))?;
    Ok(graph.add_call(Call { operator, inputs, attributes }, 1)?[0])
}
