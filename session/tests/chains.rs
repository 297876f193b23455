//! Random networks whose convolutions and products of matrices have arithmetic in front of them, compared with the graph's interpreter.
//! `TILEWRIGHT_CASES` and `TILEWRIGHT_SEED` choose how many, and which.

mod compare;
mod random;
mod support;

// Brings the CPU.
use tilewright as _;
use tilewright_graph::build::GraphBuilder;
use tilewright_graph::ir::{Attribute, Function, Shape, Type, ValueId};
use tilewright_graph::symbolic::SymInt;
use tilewright_graph::tensor::{ElementType, HostTensor};
use tilewright_session::{Model, Session};

use compare::{agree, interpret};
use random::{Random, compare_random};
use support::{call, numbers};

/// A network under construction.
struct Network {
    graph: GraphBuilder,
    random: Random,
    /// How many constants it has: each has other numbers.
    constants: usize,
}

impl Network {
    fn call(&mut self, name: &str, inputs: &[ValueId], attributes: &[(&str, Attribute)]) -> ValueId {
        call(&mut self.graph, name, inputs, attributes)
    }

    fn constant(&mut self, shape: &[usize]) -> ValueId {
        self.constants += 1;
        self.graph.constant(numbers(shape, self.constants))
    }

    /// Weights for sums of `terms` products. They are divided by `terms`, so that sums and their rounding stay small.
    fn weights(&mut self, shape: &[usize], terms: usize) -> ValueId {
        self.constants += 1;
        let plain = numbers(shape, self.constants);
        let scaled = plain.as_slice::<f32>().unwrap().iter().map(|weight| weight / terms as f32).collect();
        self.graph.constant(HostTensor::new(shape, scaled).unwrap())
    }

    /// Arithmetic on each element. `along` is the shape of a constant for each channel.
    fn chain(&mut self, mut value: ValueId, along: &[usize]) -> ValueId {
        for _ in 0..1 + self.random.below(3) {
            value = match self.random.below(5) {
                0 => self.call("relu", &[value], &[]),
                1 => self.call("sigmoid", &[value], &[]),
                2 => {
                    let offsets = self.constant(along);
                    self.call("add", &[value, offsets], &[])
                }
                3 => {
                    let factors = self.constant(along);
                    self.call("mul", &[factors, value], &[])
                }
                _ => {
                    let clipped = self.call("tanh", &[value], &[]);
                    self.call("mul", &[value, clipped], &[])
                }
            };
        }
        value
    }

    /// A gate for each channel, computed from the means of planes.
    fn gated(&mut self, value: ValueId, channels: usize) -> ValueId {
        let means = self.call("global_average_pool", &[value], &[]);
        let weights = self.weights(&[channels, channels, 1, 1], channels);
        let sums = self.call("conv", &[means, weights], &[]);
        let gate = self.call("sigmoid", &[sums], &[]);
        self.call("mul", &[value, gate], &[])
    }

    fn normalised(&mut self, value: ValueId, channels: usize) -> ValueId {
        let [scale, shift, mean] = [0; 3].map(|_| self.constant(&[channels]));
        let variance = self.graph.constant(HostTensor::full(&[channels], 0.7f32).unwrap());
        self.call("batch_normalization", &[value, scale, shift, mean, variance], &[])
    }

    /// A convolution of any kind that keeps planes of one element; gives its number of channels, too.
    fn convolution(&mut self, value: ValueId, channels: usize) -> (ValueId, usize) {
        let is_depthwise = self.random.below(4) == 0;
        let filters = if is_depthwise { channels } else { [3, 8, 20][self.random.below(3)] };
        let groups = if is_depthwise { channels } else { 1 };
        let taps = 1 + 2 * self.random.below(2);
        let padding = (taps / 2) as i64;
        let stride = 1 + self.random.below(2) as i64;
        let own = channels / groups;
        let weights = self.weights(&[filters, own, taps, taps], own * taps * taps);
        let bias = self.constant(&[filters]);
        let attributes = [
            ("group", Attribute::Int(groups as i64)),
            ("pads", Attribute::Ints(vec![padding; 4])),
            ("strides", Attribute::Ints(vec![stride; 2])),
        ];
        (self.call("conv", &[value, weights, bias], &attributes), filters)
    }
}

/// A network of convolutions, some of which read the results of several ones.
fn random_pictures(seed: u64) -> Function {
    let mut graph = GraphBuilder::new("main");
    let mut random = Random::new(seed);
    let mut channels = [3, 8, 17][random.below(3)];
    let extents = [SymInt::symbol("N"), channels.into(), (1 + random.below(9)).into(), 6.into()];
    let x = graph.parameter("x", Type::tensor(ElementType::F32, Shape::Known(extents.to_vec())));
    let mut network = Network { graph, random, constants: 0 };
    let (mut value, mut results) = (x, Vec::new());
    for _ in 0..3 {
        let before = (value, channels);
        value = match network.random.below(4) {
            0 => network.gated(value, channels),
            1 => network.normalised(value, channels),
            _ => network.chain(value, &[channels, 1, 1]),
        };
        if network.random.below(3) == 0 {
            value = network.chain(value, &[channels, 1, 1]);
        }
        if network.random.below(5) == 0 {
            results.push(value);
        }
        let (sums, filters) = network.convolution(value, channels);
        (value, channels) = (sums, filters);
        if network.random.below(2) == 0 {
            value = network.chain(value, &[channels, 1, 1]);
        }
        if network.random.below(3) == 0 && before.1 == channels {
            let (other, filters) = network.convolution(before.0, before.1);
            if network.graph.ty(other) == network.graph.ty(value) {
                value = network.call("concat", &[value, other], &[("axis", Attribute::Int(1))]);
                channels += filters;
            }
        }
    }
    results.push(value);
    network.graph.finish(results).unwrap()
}

/// Products of matrices with arithmetic in front of them, or between them.
fn random_rows(seed: u64) -> Function {
    let mut graph = GraphBuilder::new("main");
    let mut random = Random::new(seed);
    let mut columns = [1, 5, 24, 40][random.below(4)];
    let extents = [SymInt::symbol("N"), columns.into()];
    let x = graph.parameter("x", Type::tensor(ElementType::F32, Shape::Known(extents.to_vec())));
    let mut network = Network { graph, random, constants: 0 };
    let mut value = x;
    for _ in 0..2 {
        value = network.call("softmax", &[value], &[]);
        value = network.chain(value, &[columns]);
        let next = [1, 7, 32, 33][network.random.below(4)];
        value = if network.random.below(2) == 0 {
            let weights = network.weights(&[columns, next], columns);
            network.call("matmul", &[value, weights], &[])
        } else {
            let weights = network.weights(&[next, columns], columns);
            let bias = network.constant(&[next]);
            network.call("gemm", &[value, weights, bias], &[("transB", Attribute::Int(1))])
        };
        columns = next;
    }
    let result = network.chain(value, &[columns]);
    network.graph.finish(vec![result]).unwrap()
}

#[test]
fn arithmetic_in_front_of_convolutions() {
    compare_random(random_pictures, 16, &[2, 1], numbers, &Session::new);
}

#[test]
fn arithmetic_in_front_of_products_of_matrices() {
    compare_random(random_rows, 16, &[7, 1, 33], numbers, &Session::new);
}

#[test]
fn arithmetic_in_front_of_products_on_a_gpu() {
    let gpu = tilewright::devices::open("gpu:mock").expect("the mock driver is built with the tests");
    compare_random(random_pictures, 2, &[2], numbers, &|model| Session::on(model, &gpu));
    compare_random(random_rows, 3, &[5], numbers, &|model| Session::on(model, &gpu));
}

#[test]
fn a_gate_and_a_normalisation_take_no_steps() {
    let graph = GraphBuilder::new("main");
    let mut network = Network { graph, random: Random::new(1), constants: 0 };
    let extents = [SymInt::symbol("N"), 16.into(), 6.into(), 6.into()];
    let x = network.graph.parameter("x", Type::tensor(ElementType::F32, Shape::Known(extents.to_vec())));
    let gated = network.gated(x, 16);
    let weights = network.constant(&[24, 16, 1, 1]);
    let pixels = network.call("conv", &[gated, weights], &[]);
    let weights = network.constant(&[24, 16, 1, 1]);
    let beside = network.call("conv", &[x, weights], &[]);
    let joined = network.call("concat", &[pixels, beside], &[("axis", Attribute::Int(1))]);
    let normal = network.normalised(joined, 48);
    let kept = network.call("relu", &[normal], &[]);
    let weights = network.constant(&[8, 48, 1, 1]);
    let sums = network.call("conv", &[kept, weights], &[]);
    let function = network.graph.finish(vec![sums]).unwrap();
    let mut session = Session::new(&Model::from_function(&function).unwrap());
    let input = numbers(&[2, 16, 6, 6], 2);
    let (outputs, profile) = session.profile(&[("x", &input)]).unwrap();
    let kernels: Vec<_> = profile.steps.iter().map(|step| step.kernel.as_deref().unwrap_or("?")).collect();
    for fused in ["mul_conv", "mul_add_relu_conv"] {
        assert!(kernels.contains(&fused), "{kernels:?}");
    }
    agree(&outputs, &interpret(&function, vec![input.into()]));
}
