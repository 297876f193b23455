//! Random graphs of slices, splits, picked places, transpositions, reshapes and concatenations, whose results or operands are parts of other tensors'
//! memory, compared with the graph's interpreter. `TILEWRIGHT_CASES` and `TILEWRIGHT_SEED` choose how many, and which.

mod compare;
mod random;
mod support;

// Brings the CPU.
use tilewright as _;
use tilewright_graph::build::GraphBuilder;
use tilewright_graph::ir::{Attribute, Attributes, Function, Shape, Type, ValueId};
use tilewright_graph::symbolic::SymInt;
use tilewright_graph::tensor::{ElementType, HostTensor};
use tilewright_session::{Model, Session};

use compare::{agree, interpret};
use random::{Random, compare_random};
use support::{call, numbers};

/// Small integers, whose products and sums are exact: operators that choose the largest element choose the same one everywhere.
fn exact(shape: &[usize], seed: usize) -> HostTensor {
    let number = |place: usize| ((place * 37 + seed * 11) % 17) as f32 - 8.0;
    HostTensor::new(shape, (0..shape.iter().product()).map(number).collect()).unwrap()
}

/// A graph under construction.
struct Case {
    graph: GraphBuilder,
    random: Random,
    /// Values that may be read further, with their extents where the first dimension is 2.
    values: Vec<(ValueId, Vec<usize>)>,
    results: Vec<ValueId>,
}

impl Case {
    fn integers(&mut self, integers: Vec<i64>) -> ValueId {
        self.graph.constant(HostTensor::vector(integers))
    }

    fn call(&mut self, name: &str, inputs: &[ValueId], attributes: &[(&str, Attribute)]) -> ValueId {
        call(&mut self.graph, name, inputs, attributes)
    }

    /// Some elements of a value, none of its first dimension left out: that has a name.
    fn part(&mut self, value: ValueId, shape: &[usize]) {
        let along = 1 + self.random.below(shape.len() - 1);
        let extent = shape[along];
        let axis = ("axis", Attribute::Int(along as i64));
        match self.random.below(3) {
            0 => {
                let (first, step) = (self.random.below(extent), 1 + self.random.below(2));
                let bounds = [first as i64, i64::MAX, along as i64, step as i64];
                let bounds: Vec<ValueId> = bounds.iter().map(|&bound| self.integers(vec![bound])).collect();
                let result = self.call("slice", &[&[value], &bounds[..]].concat(), &[]);
                let mut shape = shape.to_vec();
                shape[along] = (extent - first).div_ceil(step);
                self.values.push((result, shape));
            }
            1 if extent > 1 => {
                let first = 1 + self.random.below(extent - 1);
                let lengths = self.integers(vec![first as i64, (extent - first) as i64]);
                let attributes = Attributes::none().with(axis.0, axis.1);
                let inputs = vec![Some(value), Some(lengths)];
                let parts = self.graph.call_operator("split", inputs, attributes, 2).unwrap();
                for (result, own) in parts.into_iter().zip([first, extent - first]) {
                    let mut shape = shape.to_vec();
                    shape[along] = own;
                    self.values.push((result, shape));
                }
            }
            _ if shape.len() > 2 => {
                let place = self.random.below(extent) as i64
                    - if self.random.below(2) == 0 { extent as i64 } else { 0 };
                let place = self.graph.constant(HostTensor::scalar(place));
                let result = self.call("gather", &[value, place], &[axis]);
                let mut shape = shape.to_vec();
                shape.remove(along);
                self.values.push((result, shape));
            }
            _ => {}
        }
    }

    /// The same elements in another order or shape.
    fn arranged(&mut self, value: ValueId, shape: &[usize]) {
        if self.random.below(2) == 0 {
            let mut perm: Vec<usize> = (1..shape.len()).collect();
            for place in (1..perm.len()).rev() {
                perm.swap(place, self.random.below(place + 1));
            }
            perm.insert(0, 0);
            let attribute = Attribute::Ints(perm.iter().map(|&dimension| dimension as i64).collect());
            let result = self.call("transpose", &[value], &[("perm", attribute)]);
            let shape = perm.iter().map(|&dimension| shape[dimension]).collect();
            return self.values.push((result, shape));
        }
        let mut other = vec![1];
        for factor in shape[1..].iter().flat_map(|&extent| match extent {
            4 => vec![2, 2],
            6 => vec![2, 3],
            other => vec![other],
        }) {
            if self.random.below(2) == 0 && other.len() < 4 {
                other.push(factor);
            } else {
                *other.last_mut().unwrap() *= factor;
            }
        }
        let to: Vec<i64> = [-1].into_iter().chain(other.iter().map(|&extent| extent as i64)).collect();
        let to = self.integers(to);
        let result = self.call("reshape", &[value, to], &[]);
        self.values.push((result, [&[2], &other[..]].concat()));
    }

    /// Values of one shape, computed or not, one behind the other; now and then with all but one of them, as networks join the results of all layers so far.
    fn joined(&mut self, value: ValueId, shape: &[usize]) {
        let along = 1 + self.random.below(shape.len() - 1);
        let axis = ("axis", Attribute::Int(along as i64));
        let mut parts = Vec::new();
        for _ in 0..2 + self.random.below(2) {
            let operand = *parts.last().filter(|_| self.random.below(2) == 0).unwrap_or(&value);
            parts.push(match self.random.below(4) {
                0 => self.call("relu", &[operand], &[]),
                1 => self.call("add", &[operand, operand], &[]),
                2 => self.call("neg", &[operand], &[]),
                _ => operand,
            });
        }
        if self.random.below(2) == 0 {
            let first = self.call("concat", &parts[..parts.len() - 1], std::slice::from_ref(&axis));
            let mut own = shape.to_vec();
            own[along] *= parts.len() - 1;
            self.values.push((first, own));
        }
        let mut result = self.call("concat", &parts, &[axis]);
        if self.random.below(3) == 0 {
            result = self.call("relu", &[result], &[]);
        }
        let mut shape = shape.to_vec();
        shape[along] *= parts.len();
        self.values.push((result, shape));
    }

    /// Something computed from a value.
    fn computed(&mut self, value: ValueId, shape: &[usize]) {
        let last = *shape.last().unwrap();
        let result = match self.random.below(5) {
            0 => self.call("relu", &[value], &[]),
            1 => self.call("softmax", &[value], &[("axis", Attribute::Int(-1))]),
            2 => {
                let weights = self.graph.constant(exact(&[last, 5], 3));
                let product = self.call("matmul", &[value, weights], &[]);
                let shape = [&shape[..shape.len() - 1], &[5]].concat();
                self.values.push((product, shape));
                product
            }
            // An operator without a kernel form.
            3 => self.call("hardmax", &[value], &[("axis", Attribute::Int(-1))]),
            _ => self.call("add", &[value, value], &[]),
        };
        self.results.push(result);
    }
}

fn random_graph(seed: u64) -> Function {
    let mut graph = GraphBuilder::new("main");
    let mut random = Random::new(seed);
    let shape = vec![2, [8, 12][random.below(2)], 1 + random.below(6), 4];
    let extents = std::iter::once(SymInt::symbol("N")).chain(shape[1..].iter().map(|&extent| extent.into()));
    let x = graph.parameter("x", Type::tensor(ElementType::F32, Shape::Known(extents.collect())));
    let mut case = Case { graph, random, values: vec![(x, shape.clone())], results: Vec::new() };
    if case.random.below(2) == 0 {
        // Its channels lie innermost.
        let weights = case.graph.constant(exact(&[12, shape[1], 1, 1], 5));
        let pixels = case.call("conv", &[x, weights], &[]);
        case.values.push((pixels, vec![2, 12, shape[2], shape[3]]));
    }
    for _ in 0..6 {
        let newest = case.values.len() - 1 - case.random.below(case.values.len().min(2));
        let (value, shape) = case.values[newest].clone();
        match case.random.below(6) {
            0 | 1 => case.part(value, &shape),
            2 if shape.len() > 1 => case.arranged(value, &shape),
            3 | 4 if shape.iter().product::<usize>() < 2000 => case.joined(value, &shape),
            _ => case.computed(value, &shape),
        }
    }
    let (value, _) = *case.values.last().as_ref().unwrap();
    case.results.push(*value);
    case.graph.finish(case.results).unwrap()
}

#[test]
fn parts_and_other_shapes_take_no_steps() {
    let mut graph = GraphBuilder::new("main");
    let extents = vec![SymInt::symbol("N"), 24.into()];
    let x = graph.parameter("x", Type::tensor(ElementType::F32, Shape::Known(extents)));
    let weights = graph.constant(numbers(&[24, 24], 1));
    let product = call(&mut graph, "matmul", &[x, weights], &[]);
    let [low, high, axis] = [4i64, 20, 1].map(|bound| graph.constant(HostTensor::vector(vec![bound])));
    let middle = call(&mut graph, "slice", &[product, low, high, axis], &[]);
    let shape = graph.constant(HostTensor::vector(vec![-1i64, 4, 4]));
    let heads = call(&mut graph, "reshape", &[middle, shape], &[]);
    let turned = call(&mut graph, "transpose", &[heads], &[("perm", Attribute::Ints(vec![1, 0, 2]))]);
    let second = graph.constant(HostTensor::scalar(1i64));
    let head = call(&mut graph, "gather", &[turned, second], &[]);
    let chances = call(&mut graph, "softmax", &[head], &[]);
    let function = graph.finish(vec![chances]).unwrap();
    let mut session = Session::new(&Model::from_function(&function).unwrap());
    let (_, profile) = session.profile(&[("x", &numbers(&[5, 24], 2))]).unwrap();
    let kernels: Vec<_> = profile.steps.iter().map(|step| step.kernel.as_deref()).collect();
    assert_eq!(kernels, [Some("matmul"), Some("softmax")]);
}

#[test]
fn concatenations_of_results_take_no_steps() {
    let mut graph = GraphBuilder::new("main");
    let extents = [SymInt::symbol("N"), 8.into(), 6.into(), 6.into()];
    let x = graph.parameter("x", Type::tensor(ElementType::F32, Shape::Known(extents.into())));
    let joined = |graph: &mut GraphBuilder, layers: &[ValueId]| match *layers {
        [first] => first,
        _ => call(graph, "concat", layers, &[("axis", Attribute::Int(1))]),
    };
    let mut layers = Vec::new();
    for layer in 0..3 {
        let input = match &layers[..] {
            [] => x,
            layers => {
                let all = joined(&mut graph, layers);
                call(&mut graph, "relu", &[all], &[])
            }
        };
        let channels = 8 * layers.len().max(1);
        let weights = graph.constant(exact(&[8, channels, 1, 1], layer));
        layers.push(call(&mut graph, "conv", &[input, weights], &[]));
    }
    let all = joined(&mut graph, &layers);
    let means = call(&mut graph, "global_average_pool", &[all], &[]);
    let function = graph.finish(vec![means]).unwrap();
    let mut session = Session::new(&Model::from_function(&function).unwrap());
    let input = exact(&[2, 8, 6, 6], 2);
    let (outputs, profile) = session.profile(&[("x", &input)]).unwrap();
    let kernels: Vec<_> = profile.steps.iter().map(|step| step.kernel.as_deref().unwrap_or("?")).collect();
    assert_eq!(kernels, ["conv", "relu", "global_average_pool"], "nodes of one name are one step");
    agree(&outputs, &interpret(&function, vec![input.into()]));
}

#[test]
fn parts_of_tensors_are_read_where_they_lie() {
    compare_random(random_graph, 24, &[2, 3], exact, &Session::new);
}

#[test]
fn parts_of_tensors_are_read_where_they_lie_on_a_gpu() {
    let gpu = tilewright::devices::open("gpu:mock").expect("the mock driver is built with the tests");
    compare_random(random_graph, 6, &[2], exact, &|model| Session::on(model, &gpu));
}

#[test]
fn a_result_takes_the_memory_of_a_tensor_that_is_read_last() {
    let mut graph = GraphBuilder::new("main");
    let extents = vec![SymInt::symbol("N"), 32.into()];
    let x = graph.parameter("x", Type::tensor(ElementType::F32, Shape::Known(extents)));
    let weights = graph.constant(exact(&[32, 32], 1));
    let mut stream = call(&mut graph, "softmax", &[x], &[]);
    let first = stream;
    for _ in 0..3 {
        let normal = call(&mut graph, "softmax", &[stream], &[]);
        let product = call(&mut graph, "matmul", &[normal, weights], &[]);
        stream = call(&mut graph, "add", &[product, stream], &[]);
    }
    let kept = call(&mut graph, "add", &[stream, first], &[]);
    let function = graph.finish(vec![stream, kept]).unwrap();
    let mut session = Session::new(&Model::from_function(&function).unwrap());
    let input = exact(&[64, 32], 3);
    let (outputs, profile) = session.profile(&[("x", &input)]).unwrap();
    // Each sum but the first takes the place of its stream: the first addend is read again, and so is the last sum.
    assert_eq!(profile.arena, 3 * 64 * 32 * 4);
    agree(&outputs, &interpret(&function, vec![input.into()]));
}
