//! Products of one input with several constant weights become one product with all of them: queries, keys and values, and the
//! branches of a block that begin with convolutions of one input.
//!
//! Pointwise calls that follow the products are joined, too. They have to be the same for all products; a constant in them may have a number for
//! each column of its product. A product whose pointwise calls differ from those of the others stays alone, since it shares a kernel with
//! them. Each reader of a product reads its part of the joint result.

use rustc_hash::FxHashMap;

use crate::build::BuildError;
use crate::fuse::Uses;
use crate::ir::{Attribute, Attributes, Body, Call, Function, Operation, ValueId};
use crate::operator;
use crate::pass::{Rewriter, Rule};
use crate::tensor::{ElementType, HostTensor};

/// How many calls may lie between two products that are joined: the results of one wait in memory for the readers of the other.
const MOST_BETWEEN: usize = 32;

/// The function with products joined.
pub(super) fn join_products(function: &Function) -> Result<Function, BuildError> {
    let mut search = Search { function, constants: constants(function), joints: Vec::new(), next: 0 };
    search.body(&function.body);
    if search.joints.is_empty() {
        return Ok(function.clone());
    }
    let mut parts = FxHashMap::default();
    for (number, joint) in search.joints.iter().enumerate() {
        for (part, product) in joint.products.iter().enumerate() {
            parts.extend(product.calls.iter().map(|&call| (call, (number, part))));
        }
    }
    let mut rule = JoinProducts { joints: search.joints, parts, next: 0 };
    Rewriter::apply(function, &mut rule)
}

/// The constants of a function.
fn constants(function: &Function) -> FxHashMap<ValueId, &HostTensor> {
    fn collect<'f>(body: &'f Body, found: &mut FxHashMap<ValueId, &'f HostTensor>) {
        for binding in &body.bindings {
            if let Operation::Constant(tensor) = &binding.operation {
                found.insert(binding.outputs[0], tensor);
            }
            binding.operation.bodies().into_iter().for_each(|inner| collect(inner, found));
        }
    }
    let mut found = FxHashMap::default();
    collect(&function.body, &mut found);
    found
}

/// An operator that multiplies its first input with its second.
struct Kind {
    operator: &'static str,
    columns: Columns,
}

/// The dimensions of weights and result that number columns, both counted from the last one backwards; `None` for a call whose columns
/// cannot be joined with others'.
type Columns = fn(&Call, &HostTensor) -> Option<(usize, usize)>;

const KINDS: &[Kind] = &[
    Kind { operator: "matmul", columns: |_, weights| (weights.rank() == 2).then_some((0, 0)) },
    Kind {
        operator: "gemm",
        columns: |call, weights| {
            let is_turned = call.attributes.get("transB").is_some_and(|turned| *turned != Attribute::Int(0));
            (weights.rank() == 2).then_some((usize::from(is_turned), 0))
        },
    },
    Kind {
        operator: "conv",
        columns: |call, weights| {
            let groups = call.attributes.get("group").unwrap_or(&Attribute::Int(1));
            let rank = weights.rank();
            (*groups == Attribute::Int(1) && rank >= 2).then_some((rank - 1, rank - 2))
        },
    },
];

/// A product, and the pointwise calls that follow it.
struct Product {
    /// The numbers of its calls in the function, in the order in which a [`Rewriter`] meets them: the product is the first.
    calls: Vec<usize>,
    /// How many columns it has.
    columns: usize,
    steps: Vec<Step>,
}

/// A call with inputs that are constants, or results of the product's own calls.
#[derive(Clone, PartialEq)]
struct Step {
    call: &'static str,
    attributes: Attributes,
    inputs: Vec<Input>,
}

#[derive(Clone)]
enum Input {
    Absent,
    /// The rows of the product.
    Rows,
    /// The result of an earlier step.
    Step(usize),
    /// The same constant for each column.
    Same(HostTensor),
    /// A constant that has a number, or a row, for each column along this dimension from the last one backwards.
    Columns(HostTensor, usize),
}

impl PartialEq for Input {
    /// Whether one input can take the place of both.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Input::Absent, Input::Absent) | (Input::Rows, Input::Rows) => true,
            (Input::Step(own), Input::Step(other)) => own == other,
            (Input::Same(own), Input::Same(other)) => own == other,
            (Input::Columns(own, axis), Input::Columns(other, other_axis)) => {
                axis == other_axis
                    && own.element() == other.element()
                    && rest(own, *axis) == rest(other, *axis)
            }
            _ => false,
        }
    }
}

/// The extents of a tensor without a dimension, which is counted from the last one backwards.
fn rest(tensor: &HostTensor, from_last: usize) -> (&[usize], &[usize]) {
    let axis = tensor.rank() - 1 - from_last;
    (&tensor.shape()[..axis], &tensor.shape()[axis + 1..])
}

/// Products that become one.
struct Joint {
    products: Vec<Product>,
    /// The dimension of the result that numbers columns, from the last one backwards.
    columns: usize,
    /// The parts of the joint result, once it is made.
    made: Option<Vec<ValueId>>,
}

/// Looks for products that can be joined.
struct Search<'f> {
    function: &'f Function,
    constants: FxHashMap<ValueId, &'f HostTensor>,
    joints: Vec<Joint>,
    /// The number of the next call.
    next: usize,
}

/// A product that was found, with what decides whether others can be joined with it.
struct Found {
    rows: ValueId,
    /// Its place among the bindings.
    place: usize,
    result: usize,
    product: Product,
}

impl<'f> Search<'f> {
    fn body(&mut self, body: &'f Body) {
        let uses = Uses::of(self.function, body);
        let mut numbers = Vec::with_capacity(body.bindings.len());
        for binding in &body.bindings {
            numbers.push(self.next);
            self.next += 1;
            binding.operation.bodies().into_iter().for_each(|inner| self.body(inner));
        }
        let mut taken = vec![false; body.bindings.len()];
        let found: Vec<Found> = (0..body.bindings.len())
            .filter_map(|place| self.product(body, &uses, place, &numbers, &mut taken))
            .collect();
        let mut open: Vec<(usize, Joint, ValueId)> = Vec::new();
        for Found { rows, place, result, product } in found {
            let fits = |(last, joint, own): &&mut (usize, Joint, ValueId)| {
                let between = &body.bindings[*last..place];
                let calls = between.iter().filter(|one| !matches!(one.operation, Operation::Constant(_)));
                *own == rows && joint.products[0].steps == product.steps && calls.count() <= MOST_BETWEEN
            };
            match open.iter_mut().find(fits) {
                Some((last, joint, _)) => {
                    *last = place;
                    joint.products.push(product);
                }
                None => {
                    let joint = Joint { products: vec![product], columns: result, made: None };
                    open.push((place, joint, rows));
                }
            }
        }
        let joints = open.into_iter().map(|(_, joint, _)| joint);
        self.joints.extend(joints.filter(|joint| joint.products.len() > 1));
    }

    /// The product that a binding begins, if it can be joined with others.
    fn product(
        &self,
        body: &Body,
        uses: &Uses,
        place: usize,
        numbers: &[usize],
        taken: &mut [bool],
    ) -> Option<Found> {
        let binding = &body.bindings[place];
        let Operation::Call(call) = &binding.operation else { return None };
        let kind = KINDS.iter().find(|kind| kind.operator == call.operator.name)?;
        let rows =
            call.inputs.first().copied().flatten().filter(|rows| !self.constants.contains_key(rows))?;
        let weights = *self.constants.get(&call.inputs.get(1).copied().flatten()?)?;
        let (along, result) = (kind.columns)(call, weights)?;
        let columns = weights.shape()[weights.rank() - 1 - along];
        let inputs = call.inputs.iter().enumerate().map(|(input, value)| match (input, value) {
            (_, None) => Some(Input::Absent),
            (0, _) => Some(Input::Rows),
            (1, _) => Some(Input::Columns(weights.clone(), along)),
            // A bias has a number for each column.
            (_, Some(bias)) => self.constant(*bias, columns, 0),
        });
        let mut product = Product { calls: Vec::new(), columns, steps: Vec::new() };
        product.steps.push(Step {
            call: call.operator.name,
            attributes: call.attributes.clone(),
            inputs: inputs.collect::<Option<_>>()?,
        });
        let mut places = vec![place];
        let mut output = binding.outputs[0];
        while let Some((region, end)) = uses.meeting(self.function, body, output, taken) {
            places.extend(region);
            output = body.bindings[end].outputs[0];
        }
        for &follower in &places[1..] {
            product.steps.push(self.step(body, follower, &places, columns, result)?);
        }
        // A result of the graph would be copied from the joint one.
        if uses.escapes(output) || uses.readers(output).is_empty() {
            return None;
        }
        places.iter().for_each(|&place| taken[place] = true);
        product.calls = places.iter().map(|&place| numbers[place]).collect();
        Some(Found { rows, place, result, product })
    }

    /// A call that follows a product.
    fn step(
        &self,
        body: &Body,
        place: usize,
        places: &[usize],
        columns: usize,
        result: usize,
    ) -> Option<Step> {
        let Operation::Call(call) = &body.bindings[place].operation else { return None };
        let inputs = call.inputs.iter().map(|input| {
            let Some(value) = input else { return Some(Input::Absent) };
            let own = places.iter().position(|&place| body.bindings[place].outputs[0] == *value);
            match own {
                Some(step) => Some(Input::Step(step)),
                None => self.constant(*value, columns, result),
            }
        });
        Some(Step {
            call: call.operator.name,
            attributes: call.attributes.clone(),
            inputs: inputs.collect::<Option<_>>()?,
        })
    }

    /// A constant beside a product with columns along a dimension.
    fn constant(&self, value: ValueId, columns: usize, axis: usize) -> Option<Input> {
        let tensor = *self.constants.get(&value)?;
        if tensor.element() == ElementType::String {
            return None;
        }
        if tensor.len() == 1 {
            return Some(Input::Same(tensor.clone()));
        }
        let is_vector = tensor.len() == columns
            && tensor.rank() > axis
            && tensor.shape()[tensor.rank() - 1 - axis] == columns;
        is_vector.then(|| Input::Columns(tensor.clone(), axis))
    }
}

/// Makes joint products.
struct JoinProducts {
    joints: Vec<Joint>,
    /// The joint and the product that a call belongs to.
    parts: FxHashMap<usize, (usize, usize)>,
    /// The number of the next call.
    next: usize,
}

impl Rule for JoinProducts {
    fn rewrite(
        &mut self,
        graph: &mut Rewriter<'_>,
        operation: &Operation,
        _: usize,
    ) -> Result<Option<Vec<ValueId>>, BuildError> {
        let number = self.next;
        self.next += 1;
        let Some(&(joint, part)) = self.parts.get(&number) else { return Ok(None) };
        let joint = &mut self.joints[joint];
        let made = match &joint.made {
            Some(made) => made,
            None => {
                let Operation::Call(Call { inputs, .. }) = operation else {
                    unreachable!("a product is a call, and comes before what follows it")
                };
                let rows = inputs[0].expect("a product has rows");
                let made = joint.make(graph, rows)?;
                joint.made.insert(made)
            }
        };
        // Only the last call of a product is read by calls that stay.
        Ok(Some(vec![made[part]]))
    }
}

impl Joint {
    /// Adds the joint product of some rows, and gives its parts.
    fn make(&self, graph: &mut Rewriter<'_>, rows: ValueId) -> Result<Vec<ValueId>, BuildError> {
        let mut results = Vec::new();
        for (number, step) in self.products[0].steps.iter().enumerate() {
            let mut inputs = Vec::with_capacity(step.inputs.len());
            for (place, input) in step.inputs.iter().enumerate() {
                inputs.push(match input {
                    Input::Absent => None,
                    Input::Rows => Some(rows),
                    Input::Step(step) => Some(results[*step]),
                    Input::Same(tensor) => Some(graph.add_constant(tensor.clone())),
                    Input::Columns(tensor, axis) => {
                        let all: Vec<&HostTensor> = (self.products.iter())
                            .filter_map(|product| match &product.steps[number].inputs[place] {
                                Input::Columns(tensor, _) => Some(tensor),
                                _ => None,
                            })
                            .collect();
                        let axis = (tensor.rank() - 1 - axis) as i64;
                        let joined = operator::concat(&all, axis)
                            .map_err(|fault| BuildError::Call { operator: "concat", reason: fault.0 })?;
                        Some(graph.add_constant(joined.aligned()))
                    }
                });
            }
            let operator = operator::find(step.call).expect("a step calls an operator of the table");
            let call = Call { operator, inputs, attributes: step.attributes.clone() };
            results.push(graph.add_call(call, 1)?[0]);
        }
        let lengths = self.products.iter().map(|product| product.columns as i64).collect::<Vec<i64>>();
        let lengths = graph.add_constant(HostTensor::vector(lengths));
        let axis = Attributes::none().with("axis", Attribute::Int(-1 - self.columns as i64));
        let operator = operator::find("split").expect("the table has split");
        let inputs = vec![results.last().copied(), Some(lengths)];
        graph.add_call(Call { operator, inputs, attributes: axis }, self.products.len())
    }
}
