//! The products of a function that can be quantised.

use rustc_hash::FxHashMap;
use tilewright_graph::ir::{Attribute, Binding, Body, Call, Function, Operation, ValueId};
use tilewright_graph::tensor::{ElementType, HostTensor};

use crate::report::Left;

/// The operators whose calls are products of two tensors.
const PRODUCTS: [&str; 5] = ["conv", "conv_transpose", "einsum", "gemm", "matmul"];

/// The most products in a sum whose bytes, with a bias, fit 32 bits whatever they are.
const MOST_DEPTH: usize = (1 << 30) / (255 * 128);

/// A product of a tensor and constant weights.
pub(crate) struct Product {
    /// The node that it comes from.
    pub(crate) node: String,
    pub(crate) operator: &'static str,
    /// Its place in the function's body.
    pub(crate) place: usize,
    pub(crate) input: ValueId,
    pub(crate) weights: HostTensor,
    /// The dimension of the weights that output channels are.
    pub(crate) axis: usize,
    pub(crate) bias: Bias,
    pub(crate) output: ValueId,
}

/// The bias of a product, with a number for each channel.
pub(crate) enum Bias {
    /// Nothing.
    None,
    /// The third input of the call.
    Input(Vec<f32>),
    /// A constant, by the only call that reads the product.
    Added {
        /// The place of that call in the function's body.
        place: usize,
        /// Its output.
        output: ValueId,
        constant: Vec<f32>,
    },
}

impl Product {
    /// The number of output channels.
    pub(crate) fn channels(&self) -> usize {
        self.weights.shape()[self.axis]
    }

    /// The number of weights from one channel to the next.
    pub(crate) fn inner(&self) -> usize {
        self.weights.shape()[self.axis + 1..].iter().product()
    }

    /// The number of elements of a result from one channel to the next.
    pub(crate) fn inner_of(&self, result: &[usize]) -> usize {
        if self.operator == "conv" { result.iter().skip(2).product() } else { 1 }
    }

    /// The numbers that are added to the channels, if any.
    pub(crate) fn bias(&self) -> &[f32] {
        match &self.bias {
            Bias::None => &[],
            Bias::Input(bias) | Bias::Added { constant: bias, .. } => bias,
        }
    }

    /// The value that is the product with its bias.
    pub(crate) fn result(&self) -> ValueId {
        match &self.bias {
            Bias::Added { output, .. } => *output,
            _ => self.output,
        }
    }
}

/// The products of a function, and those that cannot be quantised.
pub(crate) fn products(function: &Function) -> (Vec<Product>, Vec<Left>) {
    let survey = Survey::of(function);
    let (mut products, mut left) = (Vec::new(), Vec::new());
    for (place, binding) in function.body.bindings.iter().enumerate() {
        match &binding.operation {
            Operation::Call(call) if PRODUCTS.contains(&call.operator.name) => {
                let node = node_name(function, binding);
                match survey.product(place, binding, call, &node) {
                    Ok(product) => products.push(product),
                    Err(reason) => left.push(Left { node, operator: call.operator.name, reason }),
                }
            }
            other => other.bodies().into_iter().for_each(|body| inside(function, body, &mut left)),
        }
    }
    (products, left)
}

/// The products of bodies of control flow, which stay as they are.
fn inside(function: &Function, body: &Body, left: &mut Vec<Left>) {
    for binding in &body.bindings {
        match &binding.operation {
            Operation::Call(call) if PRODUCTS.contains(&call.operator.name) => left.push(Left {
                node: node_name(function, binding),
                operator: call.operator.name,
                reason: "it lies inside of control flow".to_owned(),
            }),
            other => other.bodies().into_iter().for_each(|body| inside(function, body, left)),
        }
    }
}

fn node_name(function: &Function, binding: &Binding) -> String {
    match &binding.origin {
        Some(origin) => origin.to_string(),
        None => function.describe(binding.outputs[0]),
    }
}

/// The constants of a body, and how often each value is used.
struct Survey<'f> {
    function: &'f Function,
    constants: FxHashMap<ValueId, &'f HostTensor>,
    uses: Vec<u32>,
}

impl<'f> Survey<'f> {
    fn of(function: &'f Function) -> Self {
        let mut uses = vec![0; function.values.len()];
        function.body.for_each_use(&mut |value| uses[value.index()] += 1);
        let constant = |binding: &'f Binding| match &binding.operation {
            Operation::Constant(tensor) => Some((binding.outputs[0], tensor)),
            _ => None,
        };
        Survey { function, constants: function.body.bindings.iter().filter_map(constant).collect(), uses }
    }

    /// The product of a call, or why it cannot be quantised.
    fn product(&self, place: usize, binding: &Binding, call: &Call, node: &str) -> Result<Product, String> {
        let operator = call.operator.name;
        let given = |place: usize| call.inputs.get(place).copied().flatten();
        let (Some(input), Some(weights)) = (given(0), given(1)) else {
            return Err("a factor is missing".to_owned());
        };
        if !matches!(operator, "conv" | "gemm" | "matmul") {
            return Err("the operator has no kernel on integers".to_owned());
        }
        let Some(&weights) = self.constants.get(&weights) else {
            return Err("both factors are computed".to_owned());
        };
        if self.constants.contains_key(&input) {
            return Err("both factors are constant".to_owned());
        }
        if self.function.value(input).ty.element() != Some(ElementType::F32) {
            return Err("the elements are not known to be 32-bit floats".to_owned());
        }
        let numbers = weights.as_slice::<f32>().ok_or("the weights are no 32-bit floats")?;
        if weights.rank() < 2 || weights.is_empty() {
            return Err(format!("weights of shape {:?} have no channels", weights.shape()));
        }
        if numbers.iter().any(|weight| !weight.is_finite()) {
            return Err("a weight is infinite or not a number".to_owned());
        }
        let is_set =
            |name: &str| matches!(call.attributes.get(name), Some(Attribute::Int(value)) if *value != 0);
        let axis = match operator {
            "conv" => 0,
            "gemm" if is_set("transB") => 0,
            _ => weights.rank() - 1,
        };
        let depth = match operator {
            "conv" => weights.shape()[1..].iter().product(),
            "gemm" => weights.len() / weights.shape()[axis].max(1),
            _ => weights.shape()[weights.rank() - 2],
        };
        if depth > MOST_DEPTH {
            return Err(format!("sums of {depth} products may exceed 32 bits"));
        }
        let channels = weights.shape()[axis];
        let output = binding.outputs[0];
        let bias = match (operator, given(2)) {
            ("matmul", _) => self.added(output, channels),
            (_, None) => Bias::None,
            (_, Some(bias)) => Bias::Input(self.bias(call, bias, channels)?),
        };
        if operator == "gemm" && !is_one(call, "alpha") {
            return Err("the product has a factor".to_owned());
        }
        let weights = weights.clone();
        Ok(Product { node: node.to_owned(), operator, place, input, weights, axis, bias, output })
    }

    /// The bias of a convolution or general product.
    fn bias(&self, call: &Call, bias: ValueId, channels: usize) -> Result<Vec<f32>, String> {
        if call.operator.name == "gemm" && !is_one(call, "beta") {
            return Err("the bias has a factor".to_owned());
        }
        let constant = self.constants.get(&bias).and_then(|bias| bias.as_slice::<f32>());
        match constant {
            None => Err("the bias is no constant of 32-bit floats".to_owned()),
            Some(bias) if bias.iter().any(|number| !number.is_finite()) => {
                Err("a bias is infinite or not a number".to_owned())
            }
            Some(bias) if bias.len() == channels => Ok(bias.to_vec()),
            Some(&[bias]) => Ok(vec![bias; channels]),
            Some(bias) => {
                Err(format!("a bias of {} numbers does not belong to {channels} channels", bias.len()))
            }
        }
    }

    /// The constant vector that the only reader of a product adds.
    fn added(&self, product: ValueId, channels: usize) -> Bias {
        if self.uses[product.index()] != 1 {
            return Bias::None;
        }
        for (place, binding) in self.function.body.bindings.iter().enumerate() {
            let Operation::Call(call) = &binding.operation else { continue };
            if call.operator.name != "add" || !call.inputs.contains(&Some(product)) {
                continue;
            }
            let other = call.inputs.iter().flatten().find(|&&input| input != product);
            let constant = other.and_then(|other| self.constants.get(other));
            let Some(constant) = constant.filter(|constant| constant.shape() == [channels]) else { break };
            let Some(numbers) = constant.as_slice::<f32>() else { break };
            return Bias::Added { place, output: binding.outputs[0], constant: numbers.to_vec() };
        }
        Bias::None
    }
}

/// Whether a factor of a general product is 1, as it is when nothing is said.
fn is_one(call: &Call, name: &str) -> bool {
    !matches!(call.attributes.get(name), Some(Attribute::Float(value)) if *value != 1.0)
}
