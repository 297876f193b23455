//! Programs of operators, executed by the interpreter of programs, against the operators' own evaluation: for fixed extents,
//! and with a dimension of the program in place of one extent.

mod attention;
mod conv2d;
mod numeric;
mod placed;
mod quantised;
mod recurrent;
mod requantise;
mod sampled;
mod sizes;

use tilewright_core::interp;
use tilewright_core::tensor::AnyTensor;

use super::*;
use crate::ir::{Attribute, Attributes};
use crate::operator::{self, Arguments, Value};

/// Attributes of a case.
fn attributes(given: &[(&str, Attribute)]) -> Attributes {
    given.iter().fold(Attributes::none(), |attributes, (name, value)| attributes.with(name, value.clone()))
}

fn ints(values: &[i64]) -> Attribute {
    Attribute::Ints(values.to_vec())
}

fn text(value: &str) -> Attribute {
    Attribute::Text(value.into())
}

/// Numbers that differ from one another, between -1.5 and 1.5.
fn numbers(shape: &[usize], seed: usize) -> HostTensor {
    let length = shape.iter().product::<usize>();
    let number = |place: usize| ((place * 37 + seed * 11) % 61) as f32 / 20.0 - 1.5;
    HostTensor::new(shape, (0..length).map(number).collect()).unwrap()
}

fn integers(values: &[i64]) -> HostTensor {
    HostTensor::vector(values.to_vec())
}

/// An input, and whether its elements are known when the program is made.
struct Given(HostTensor, bool);

fn tensor(shape: &[usize]) -> Given {
    Given(numbers(shape, shape.len()), false)
}

fn known(tensor: HostTensor) -> Given {
    Given(tensor, true)
}

/// Compares one call, with tensors in the graph's order, with channels last, and from the one to the other.
fn check(name: &str, given: &[(&str, Attribute)], inputs: &[Given], outputs: usize, symbolic: bool) {
    check_in(name, given, inputs, outputs, symbolic, &Order::given);
    check_in(name, given, inputs, outputs, symbolic, &Order::channels_last);
    let inputs: Vec<Option<&Given>> = inputs.iter().map(Some).collect();
    for orders in [
        [&Order::given as &dyn Fn(usize) -> Order, &Order::channels_last],
        [&Order::channels_last, &Order::given],
    ] {
        check_given(name, given, &inputs, outputs, symbolic, orders);
    }
}

/// The elements of a tensor, stored in an order, as programs take them: without dimensions of extent 1.
fn in_order(tensor: &HostTensor, order: &Order) -> AnyTensor {
    let perm = Attribute::Ints(order.dimensions().map(|dimension| dimension as i64).collect());
    let transpose = operator::find("transpose").unwrap();
    let results = (transpose.evaluate)(&Arguments {
        operator: transpose,
        attributes: &Attributes::none().with("perm", perm),
        inputs: &[Some(tensor.clone().into())],
        outputs: 1,
    });
    let stored = results.unwrap()[0].as_tensor().unwrap().clone();
    stored.reshape(&long(stored.shape())).unwrap().to_kernel().unwrap()
}

/// The extents other than 1.
fn long(shape: &[usize]) -> Vec<usize> {
    shape.iter().copied().filter(|&extent| extent != 1).collect()
}

/// Compares one call. `symbolic` makes a dimension of the first extent of the first input, and of all that are equal to it.
/// Tensors have the order that `order` gives for their rank; results that of the largest input.
fn check_in(
    name: &str,
    given: &[(&str, Attribute)],
    inputs: &[Given],
    outputs: usize,
    symbolic: bool,
    order: &dyn Fn(usize) -> Order,
) {
    let inputs: Vec<Option<&Given>> = inputs.iter().map(Some).collect();
    check_given(name, given, &inputs, outputs, symbolic, [order, order]);
}

/// As [`check_in`], with inputs that are left out, and results in another order than inputs.
fn check_given(
    name: &str,
    given: &[(&str, Attribute)],
    inputs: &[Option<&Given>],
    outputs: usize,
    symbolic: bool,
    [order, result_order]: [&dyn Fn(usize) -> Order; 2],
) {
    let operator = operator::find(name).unwrap();
    let values: Vec<ValueId> = (0..inputs.len() + outputs).map(|number| ValueId(number as u32)).collect();
    let (arguments, results) = values.split_at(inputs.len());
    let call = Call {
        operator,
        inputs: arguments.iter().zip(inputs).map(|(&value, input)| input.map(|_| value)).collect(),
        attributes: attributes(given),
    };
    let first = inputs[0].unwrap().0.shape().first().copied().filter(|&first| symbolic && first > 1);
    let dims: Vec<(Symbol, i64)> = first.iter().map(|&first| (Symbol::new("D"), first as i64)).collect();
    let mut signatures = FxHashMap::default();
    for (&value, input) in arguments.iter().zip(inputs) {
        let Some(Given(tensor, known)) = input else { continue };
        let extent = |&extent: &usize| {
            let is_symbolic = !known && Some(extent) == first;
            if is_symbolic { SymInt::symbol("D") } else { extent.into() }
        };
        let extents = tensor.shape().iter().map(extent).collect();
        let contents = known.then(|| tensor.clone());
        let order = if *known { Order::given(tensor.rank()) } else { order(tensor.rank()) };
        let element = tensor.element();
        signatures.insert(
            value,
            Signature { element, extents, order, strides: None, contents, integers: None, constant: *known },
        );
    }
    let largest = inputs.iter().flatten().map(|input| input.0.rank()).max().unwrap_or(0);
    let fusion = Fusion {
        calls: vec![(&call, results)],
        inputs: signatures,
        outputs: results.to_vec(),
        dims: dims.clone(),
        order: Some(result_order(largest)),
        placed: None,
        accuracy: None,
    };
    let legalised = legalise(&fusion).unwrap_or_else(|error| panic!("{name}: {error}"));
    let hosts: Vec<Option<Value>> =
        inputs.iter().map(|input| input.map(|input| input.0.clone().into())).collect();
    let evaluated =
        (operator.evaluate)(&Arguments { operator, attributes: &call.attributes, inputs: &hosts, outputs })
            .unwrap();
    let mut buffers: Vec<AnyTensor> = legalised
        .inputs
        .iter()
        .map(|argument| match argument {
            Argument::Value(value) => {
                in_order(&inputs[value.index()].unwrap().0, &fusion.inputs[value].order)
            }
            Argument::Table(table) => table.reshape(&long(table.shape())).unwrap().to_kernel().unwrap(),
        })
        .collect();
    for (output, expected) in legalised.outputs.iter().zip(&evaluated) {
        let size = |extent: &SymInt| {
            let known = |symbol: &Symbol| dims.iter().find(|(name, _)| name == symbol).map(|(_, size)| *size);
            extent.evaluate(&known).unwrap() as usize
        };
        let shape: Vec<usize> = output.extents.iter().map(size).collect();
        assert_eq!(shape, expected.as_tensor().unwrap().shape(), "{name}: {}", legalised.program);
        let shape = long(&output.order.dimensions().map(|dimension| shape[dimension]).collect::<Vec<_>>());
        buffers.push(AnyTensor::zeros(output.element.dtype().unwrap(), &shape).unwrap());
    }
    let sizes: Vec<i64> = dims.iter().map(|(_, size)| *size).collect();
    interp::run(&legalised.program, &sizes, &[], &mut buffers)
        .unwrap_or_else(|error| panic!("{name}: {error}\n{}", legalised.program));
    let found = buffers[legalised.inputs.len()..].iter();
    for ((found, output), expected) in found.zip(&legalised.outputs).zip(&evaluated) {
        let expected = in_order(expected.as_tensor().unwrap(), &output.order);
        agree(name, found, &expected, &legalised.program);
    }
}

/// Compares the elements of a result with those of the operator.
fn agree(title: &str, found: &AnyTensor, expected: &AnyTensor, program: &Program) {
    let elements = found.to_f64_vec().into_iter().zip(expected.to_f64_vec());
    for (place, (found, expected)) in elements.enumerate() {
        let close = (found - expected).abs() <= 1e-6 + 1e-5 * expected.abs()
            || found == expected
            || (found.is_nan() && expected.is_nan());
        assert!(close, "{title}: element {place} is {found}, expected {expected}\n{program}");
    }
}

fn both(name: &str, given: &[(&str, Attribute)], inputs: &[Given]) {
    check(name, given, inputs, 1, false);
    check(name, given, inputs, 1, true);
}

fn fixed(name: &str, given: &[(&str, Attribute)], inputs: &[Given]) {
    check(name, given, inputs, 1, false);
}

#[test]
fn functions_of_one_number() {
    let names = [
        "abs",
        "neg",
        "sign",
        "relu",
        "ceil",
        "floor",
        "round",
        "exp",
        "sin",
        "cos",
        "tanh",
        "erf",
        "sigmoid",
        "softplus",
        "softsign",
        "mish",
        "hard_swish",
        "elu",
        "celu",
        "selu",
        "leaky_relu",
        "thresholded_relu",
        "hard_sigmoid",
        "swish",
        "gelu",
        "quick_gelu",
        "fast_gelu",
        "reciprocal",
        "is_nan",
        "identity",
    ];
    for name in names {
        both(name, &[], &[tensor(&[5, 7])]);
    }
    both("gelu", &[("approximate", text("tanh"))], &[tensor(&[3, 1, 2])]);
    both("cast", &[("to", Attribute::Element(ElementType::F64))], &[tensor(&[4])]);
    both("cast", &[("to", Attribute::Element(ElementType::Bool))], &[tensor(&[4])]);
    both(
        "clip",
        &[],
        &[tensor(&[6, 2]), known(HostTensor::scalar(-0.5f32)), known(HostTensor::scalar(1f32))],
    );
}

#[test]
fn functions_of_several_numbers_broadcast() {
    for name in ["add", "sub", "mul", "div", "min", "max", "less", "equal", "greater_or_equal", "sum", "mean"]
    {
        both(name, &[], &[tensor(&[5, 3, 4]), tensor(&[3, 1])]);
        both(name, &[], &[tensor(&[1]), tensor(&[5, 4])]);
        both(name, &[], &[tensor(&[]), tensor(&[])]);
    }
    both("pow", &[], &[tensor(&[7]), known(HostTensor::scalar(2f32))]);
    both("prelu", &[], &[tensor(&[4, 3]), tensor(&[3])]);
    let condition = HostTensor::new(&[2, 1], vec![true, false]).unwrap();
    fixed("where", &[], &[Given(condition, false), tensor(&[3]), tensor(&[2, 3])]);
}

#[test]
fn reductions() {
    let names = [
        "reduce_sum",
        "reduce_mean",
        "reduce_max",
        "reduce_min",
        "reduce_l1",
        "reduce_l2",
        "reduce_sum_square",
    ];
    for name in names {
        both(name, &[], &[tensor(&[3, 4, 5])]);
        both(name, &[("keepdims", Attribute::Int(0))], &[tensor(&[3, 4, 5]), known(integers(&[-1, 0]))]);
    }
    both("reduce_prod", &[], &[tensor(&[3, 4]), known(integers(&[1]))]);
    for axis in [0, 1, -1] {
        both("softmax", &[("axis", Attribute::Int(axis))], &[tensor(&[3, 4, 5])]);
        both("log_softmax", &[("axis", Attribute::Int(axis))], &[tensor(&[3, 4, 5])]);
        fixed("arg_max", &[("axis", Attribute::Int(axis))], &[tensor(&[3, 4, 5])]);
        let last = ("select_last_index", Attribute::Int(1));
        fixed(
            "arg_min",
            &[("axis", Attribute::Int(axis)), last, ("keepdims", Attribute::Int(0))],
            &[tensor(&[3, 70])],
        );
    }
    both("global_average_pool", &[], &[tensor(&[2, 3, 4, 5])]);
    both("global_max_pool", &[], &[tensor(&[2, 3, 7])]);
}

#[test]
fn normalisations() {
    both("layer_normalization", &[], &[tensor(&[3, 4, 5]), tensor(&[5]), tensor(&[5])]);
    both("layer_normalization", &[("axis", Attribute::Int(1))], &[tensor(&[3, 4, 5]), tensor(&[4, 5])]);
    both("rms_normalization", &[], &[tensor(&[3, 7]), tensor(&[7])]);
    let positive = || Given(HostTensor::vector(vec![0.5f32, 1.0, 2.0]), false);
    fixed(
        "batch_normalization",
        &[],
        &[tensor(&[2, 3, 4, 4]), tensor(&[3]), tensor(&[3]), tensor(&[3]), positive()],
    );
}

#[test]
fn products_of_matrices() {
    both("matmul", &[], &[tensor(&[3, 4]), tensor(&[4, 5])]);
    both("matmul", &[], &[tensor(&[2, 1, 3, 4]), tensor(&[5, 4, 2])]);
    both("matmul", &[], &[tensor(&[6]), tensor(&[6])]);
    both("matmul", &[], &[tensor(&[6]), tensor(&[2, 6, 3])]);
    both("matmul", &[], &[tensor(&[2, 3, 6]), tensor(&[6])]);
    let transposed =
        [("transA", Attribute::Int(1)), ("transB", Attribute::Int(1)), ("alpha", Attribute::Float(0.5))];
    both("gemm", &transposed, &[tensor(&[4, 3]), tensor(&[5, 4]), tensor(&[5])]);
    both("gemm", &[("beta", Attribute::Float(2.0))], &[tensor(&[3, 4]), tensor(&[4, 5]), tensor(&[3, 1])]);
    both(
        "fused_matmul",
        &[("alpha", Attribute::Float(0.5)), ("transB", Attribute::Int(1))],
        &[tensor(&[2, 3, 4]), tensor(&[2, 5, 4])],
    );
}

#[test]
fn convolutions() {
    let weights = |shape: &[usize]| Given(numbers(shape, 9), true);
    both("conv", &[], &[tensor(&[2, 3, 6, 5]), weights(&[4, 3, 3, 2])]);
    both(
        "conv",
        &[("pads", ints(&[1, 2, 0, 1])), ("strides", ints(&[2, 1]))],
        &[tensor(&[2, 3, 6, 5]), weights(&[4, 3, 3, 2]), tensor(&[4])],
    );
    both("conv", &[("dilations", ints(&[2]))], &[tensor(&[2, 3, 9]), weights(&[4, 3, 3])]);
    both("conv", &[("group", Attribute::Int(2))], &[tensor(&[2, 4, 5]), weights(&[6, 2, 3])]);
    both(
        "conv",
        &[("group", Attribute::Int(4)), ("pads", ints(&[1, 1]))],
        &[tensor(&[2, 4, 5]), weights(&[4, 1, 3])],
    );
    both("conv", &[("group", Attribute::Int(2))], &[tensor(&[2, 4, 5]), weights(&[2, 2, 3])]);
    // Groups of whole vectors, and groups of fewer filters.
    for filters in [16, 32, 3, 7] {
        let attributes = [("group", Attribute::Int(3)), ("pads", ints(&[0, 1, 1, 0]))];
        let shape = [3 * filters, 2, 2, 1];
        both("conv", &attributes, &[tensor(&[2, 6, 3, 4]), weights(&shape), tensor(&[3 * filters])]);
    }
    both("conv", &[("auto_pad", text("SAME_UPPER"))], &[tensor(&[1, 2, 5, 4]), weights(&[3, 2, 2, 3])]);
    // Taps that meet nothing but padding, on both sides, on one, and along one dimension.
    for (dilations, pads) in [([6, 6], [6, 6, 6, 6]), ([5, 3], [10, 2, 0, 4]), ([1, 7], [1, 14, 1, 0])] {
        let attributes = [("dilations", ints(&dilations)), ("pads", ints(&pads))];
        both("conv", &attributes, &[tensor(&[2, 3, 5, 4]), weights(&[4, 3, 3, 3]), tensor(&[4])]);
    }
    both("conv", &[], &[tensor(&[1, 2, 3, 4, 3]), weights(&[2, 2, 2, 3, 1])]);
}

#[test]
fn transposed_convolutions() {
    let weights = |shape: &[usize]| Given(numbers(shape, 9), true);
    both(
        "conv_transpose",
        &[("strides", ints(&[2, 2]))],
        &[tensor(&[5, 3, 3, 4]), weights(&[3, 2, 2, 2]), tensor(&[2])],
    );
    both(
        "conv_transpose",
        &[("strides", ints(&[2])), ("pads", ints(&[1, 1])), ("output_padding", ints(&[1]))],
        &[tensor(&[2, 3, 5]), weights(&[3, 2, 3])],
    );
    both("conv_transpose", &[], &[tensor(&[1, 2, 4, 3]), weights(&[2, 3, 3, 2])]);
    both(
        "conv_transpose",
        &[("group", Attribute::Int(2)), ("strides", ints(&[3]))],
        &[tensor(&[1, 4, 5]), weights(&[4, 3, 2])],
    );
    both(
        "conv_transpose",
        &[("group", Attribute::Int(4)), ("strides", ints(&[2]))],
        &[tensor(&[2, 4, 5]), weights(&[4, 1, 3])],
    );
    // Windows that overlap, and phases with different numbers of taps.
    for (kernel, strides, pads) in [
        ([4, 4], [2, 2], [1, 1, 1, 1]),
        ([3, 5], [2, 3], [1, 0, 0, 2]),
        ([1, 2], [3, 5], [0, 0, 0, 0]),
        ([5, 3], [2, 1], [2, 2, 2, 0]),
        ([2, 3], [2, 2], [-1, -3, 0, 1]),
    ] {
        let attributes = [("strides", ints(&strides)), ("pads", ints(&pads))];
        let shape = [2, 3, kernel[0], kernel[1]];
        both("conv_transpose", &attributes, &[tensor(&[3, 2, 4, 3]), weights(&shape), tensor(&[3])]);
        let grouped = [&attributes[..], &[("group", Attribute::Int(2))]].concat();
        let shape = [4, 2, kernel[0], kernel[1]];
        both("conv_transpose", &grouped, &[tensor(&[1, 4, 3, 2]), weights(&shape), tensor(&[4])]);
    }
}

#[test]
fn pools() {
    let kernel = ("kernel_shape", ints(&[3, 2]));
    for name in ["max_pool", "average_pool", "lp_pool"] {
        both(name, std::slice::from_ref(&kernel), &[tensor(&[2, 2, 5, 6])]);
        both(
            name,
            &[kernel.clone(), ("strides", ints(&[2, 2])), ("pads", ints(&[1, 0, 1, 1]))],
            &[tensor(&[2, 2, 5, 6])],
        );
        both(
            name,
            &[kernel.clone(), ("strides", ints(&[2, 2])), ("ceil_mode", Attribute::Int(1))],
            &[tensor(&[1, 2, 6, 7])],
        );
    }
    let padded = [
        kernel,
        ("pads", ints(&[1, 1, 1, 1])),
        ("count_include_pad", Attribute::Int(1)),
        ("ceil_mode", Attribute::Int(1)),
        ("strides", ints(&[2, 2])),
    ];
    both("average_pool", &padded, &[tensor(&[1, 2, 6, 7])]);
    for order in [1, 3] {
        let attributes =
            [("p", Attribute::Int(order)), ("kernel_shape", ints(&[3])), ("pads", ints(&[1, 1]))];
        both("lp_pool", &attributes, &[tensor(&[2, 3, 7])]);
    }
}

#[test]
fn dilated_pools() {
    for (extents, kernel, dilations, pads, strides) in [
        (&[2, 3, 17][..], &[3][..], &[2][..], &[2, 1][..], &[1][..]),
        (&[1, 2, 9, 8], &[3, 2], &[2, 3], &[2, 1, 1, 2], &[1, 2]),
        (&[1, 2, 5, 6, 7], &[2, 3, 2], &[1, 2, 3], &[0, 2, 1, 1, 1, 2], &[1, 1, 1]),
    ] {
        let window = [
            ("kernel_shape", ints(kernel)),
            ("dilations", ints(dilations)),
            ("pads", ints(pads)),
            ("strides", ints(strides)),
        ];
        both("max_pool", &window, &[tensor(extents)]);
        for counted in [0, 1] {
            let attributes = [&window[..], &[("count_include_pad", Attribute::Int(counted))]].concat();
            both("average_pool", &attributes, &[tensor(extents)]);
        }
    }
}

#[test]
fn pools_of_bytes() {
    let window = [("kernel_shape", ints(&[3, 3])), ("pads", ints(&[1, 1, 1, 1]))];
    let elements = |place: i32| (place * 37 % 256) as u8;
    let unsigned: Vec<u8> = (0..60).map(elements).collect();
    let signed: Vec<i8> = (0..60).map(|place| elements(place) as i8).collect();
    both("max_pool", &window, &[Given(HostTensor::new(&[1, 3, 4, 5], unsigned).unwrap(), false)]);
    both("max_pool", &window, &[Given(HostTensor::new(&[1, 3, 4, 5], signed).unwrap(), false)]);
}

#[test]
fn elements_in_another_order() {
    both("transpose", &[("perm", ints(&[2, 0, 1]))], &[tensor(&[3, 4, 5])]);
    both("transpose", &[], &[tensor(&[3, 4])]);
    both("expand", &[], &[tensor(&[3, 1]), known(integers(&[2, 1, 4]))]);
    both("tile", &[], &[tensor(&[2, 1, 3]), known(integers(&[2, 3, 2]))]);
    both("concat", &[("axis", Attribute::Int(1))], &[tensor(&[2, 3]), tensor(&[2, 1]), tensor(&[2, 4])]);
    both("concat", &[("axis", Attribute::Int(0))], &[tensor(&[2, 3]), tensor(&[4, 3])]);
    check("split", &[("axis", Attribute::Int(1))], &[tensor(&[3, 7]), known(integers(&[2, 4, 1]))], 3, true);
    for mode in ["DCR", "CRD"] {
        both(
            "depth_to_space",
            &[("blocksize", Attribute::Int(2)), ("mode", text(mode))],
            &[tensor(&[2, 8, 3, 2])],
        );
    }
    both("space_to_depth", &[("blocksize", Attribute::Int(2))], &[tensor(&[3, 2, 6, 4])]);
    both("space_to_depth", &[("blocksize", Attribute::Int(2))], &[tensor(&[4, 3, 4, 2])]);
}

#[test]
fn parts_of_tensors() {
    let slice = |starts: &[i64], ends: &[i64], axes: &[i64], steps: &[i64]| {
        fixed(
            "slice",
            &[],
            &[
                tensor(&[5, 6]),
                known(integers(starts)),
                known(integers(ends)),
                known(integers(axes)),
                known(integers(steps)),
            ],
        );
    };
    slice(&[1], &[i64::MAX], &[1], &[2]);
    slice(&[-1, 4], &[i64::MIN, 0], &[0, 1], &[-2, -1]);
    let fill = || known(HostTensor::scalar(7f32));
    both("pad", &[], &[tensor(&[3, 4]), known(integers(&[1, 0, 2, 3])), fill()]);
    both("pad", &[], &[tensor(&[3, 4]), known(integers(&[-1, 2, 0, -1]))]);
    both("pad", &[("mode", text("edge"))], &[tensor(&[3, 4]), known(integers(&[2, 0, 1, 3]))]);
    let places = || Given(HostTensor::new(&[2, 2], vec![0i64, -1, 2, 1]).unwrap(), false);
    fixed("gather", &[("axis", Attribute::Int(1))], &[tensor(&[2, 3, 4]), places()]);
    fixed("gather", &[], &[tensor(&[3, 4]), places()]);
    let asymmetric =
        [("coordinate_transformation_mode", text("asymmetric")), ("nearest_mode", text("floor"))];
    let nothing = || known(HostTensor::vector::<f32>(vec![]));
    both(
        "resize",
        &asymmetric,
        &[tensor(&[2, 3, 2, 3]), nothing(), known(HostTensor::vector(vec![1f32, 1.0, 2.0, 3.0]))],
    );
}

#[test]
fn calls_that_are_fused_become_one_program() {
    let (conv, relu, add) =
        (operator::find("conv").unwrap(), operator::find("relu").unwrap(), operator::find("add").unwrap());
    let id = |number: u32| ValueId(number);
    let call = |operator, inputs: &[u32]| Call {
        operator,
        inputs: inputs.iter().map(|&number| Some(id(number))).collect(),
        attributes: Attributes::none(),
    };
    let calls = [call(conv, &[0, 1]), call(relu, &[3]), call(add, &[4, 2])];
    let outputs = [[id(3)], [id(4)], [id(5)]];
    let signature = |shape: &[usize]| Signature {
        element: ElementType::F32,
        extents: shape.iter().map(|&extent| extent.into()).collect(),
        order: Order::given(shape.len()),
        strides: None,
        contents: None,
        integers: None,
        constant: false,
    };
    let fusion = Fusion {
        calls: calls.iter().zip(&outputs).map(|(call, outputs)| (call, &outputs[..])).collect(),
        inputs: [
            (id(0), signature(&[1, 3, 5])),
            (id(1), signature(&[2, 3, 2])),
            (id(2), signature(&[1, 2, 4])),
        ]
        .into_iter()
        .collect(),
        outputs: vec![id(5)],
        dims: Vec::new(),
        order: None,
        placed: None,
        accuracy: None,
    };
    let legalised = legalise(&fusion).unwrap();
    assert_eq!(legalised.inputs, [id(0), id(1), id(2)].map(Argument::Value));
    assert_eq!(&*legalised.program.name, "conv_relu_add");
    assert_eq!(legalised.outputs.len(), 1);
    assert_eq!(legalised.program.buffer_params().count(), 4);
}
