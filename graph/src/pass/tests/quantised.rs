//! Products of dequantised tensors.

use super::*;

fn bytes(shape: &[usize]) -> HostTensor {
    let count = shape.iter().product::<usize>();
    HostTensor::new(shape, (0..count).map(|place| (place * 97 % 256) as u8 as i8).collect()).unwrap()
}

fn convert(
    graph: &mut GraphBuilder,
    name: &str,
    x: ValueId,
    scale: HostTensor,
    zero: HostTensor,
    axis: i64,
) -> ValueId {
    let (scale, zero) = (graph.constant(scale), graph.constant(zero));
    graph.call(name, &[x, scale, zero], Attributes::none().with("axis", Attribute::Int(axis))).unwrap()
}

fn whole(scale: f32, zero: u8) -> (HostTensor, HostTensor) {
    (HostTensor::scalar(scale), HostTensor::scalar(zero))
}

/// A parameter that is stored as bytes and read again.
fn quantised_parameter(graph: &mut GraphBuilder, extents: &[usize]) -> ValueId {
    let extents: Vec<SymInt> = extents.iter().map(|&extent| extent.into()).collect();
    let x = parameter(graph, &extents);
    let (scale, zero) = whole(0.03, 100);
    let stored = convert(graph, "quantize_linear", x, scale.clone(), zero.clone(), 1);
    convert(graph, "dequantize_linear", stored, scale, zero, 1)
}

/// A graph of quantised `x`, quantised weights, and what `product` makes of both, stored as integers and read again.
fn network(
    extents: &[usize],
    weights: &[usize],
    scales: (HostTensor, i64),
    product: (&str, Attributes),
    bias: Option<HostTensor>,
) -> Function {
    let mut graph = GraphBuilder::new("quantised");
    let read = quantised_parameter(&mut graph, extents);
    let integers = graph.constant(bytes(weights));
    let zeros = HostTensor::vector(vec![0i8; scales.0.len()]);
    let weights = convert(&mut graph, "dequantize_linear", integers, scales.0.clone(), zeros, scales.1);
    let mut inputs = vec![read, weights];
    if let Some(bias) = bias {
        let bias = graph.constant(bias);
        let of_bias: Vec<f32> =
            scales.0.as_slice::<f32>().unwrap().iter().map(|scale| scale * 0.03).collect();
        let zeros = HostTensor::vector(vec![0i32; of_bias.len()]);
        inputs.push(convert(&mut graph, "dequantize_linear", bias, HostTensor::vector(of_bias), zeros, 0));
    }
    let y = graph.call(product.0, &inputs, product.1).unwrap();
    let (scale, zero) = whole(0.5, 120);
    let stored = convert(&mut graph, "quantize_linear", y, scale.clone(), zero.clone(), 1);
    graph.finish(vec![stored]).unwrap()
}

fn scales(count: usize) -> HostTensor {
    HostTensor::vector((0..count).map(|place| 0.01 + place as f32 * 0.004).collect())
}

#[test]
fn products_between_conversions_are_products_of_integers() {
    let function = network(&[3, 8], &[8, 5], (scales(5), 1), ("matmul", Attributes::none()), None);
    let after = optimised(&function, &numbers(&[3, 8]));
    assert_eq!(names(&after), ["quantize_linear", "matmul_integer", "requantize"]);
}

/// The calls that remain of a graph that quantises `x`, moves it in floats, and quantises it again with another scale or the same.
fn moved(extents: &[usize], name: &str, attributes: Attributes, scale_behind: f32) -> Vec<&'static str> {
    let mut graph = GraphBuilder::new("moved");
    let read = quantised_parameter(&mut graph, extents);
    let moved = graph.call(name, &[read], attributes).unwrap();
    let (scale, zero) = whole(scale_behind, 100);
    let again = convert(&mut graph, "quantize_linear", moved, scale.clone(), zero.clone(), 0);
    let read = convert(&mut graph, "dequantize_linear", again, scale, zero, 0);
    names(&optimised(&graph.finish(vec![again, read]).unwrap(), &numbers(extents)))
}

#[test]
fn movement_of_numbers_is_movement_of_their_integers() {
    let window = |dilation: i64| {
        Attributes::none()
            .with("kernel_shape", Attribute::Ints(vec![3, 2]))
            .with("pads", Attribute::Ints(vec![1, 1, 1, 1]))
            .with("dilations", Attribute::Ints(vec![1, dilation]))
    };
    let pool = |dilation: i64, scale: f32| moved(&[1, 2, 5, 7], "max_pool", window(dilation), scale);
    assert_eq!(pool(1, 0.03), ["quantize_linear", "max_pool", "dequantize_linear"]);
    let other_scale =
        ["quantize_linear", "max_pool", "dequantize_linear", "quantize_linear", "dequantize_linear"];
    assert_eq!(pool(1, 0.04), other_scale);
    // A window of padding alone has no largest byte that stands for minus infinity.
    let in_floats =
        ["quantize_linear", "dequantize_linear", "max_pool", "quantize_linear", "dequantize_linear"];
    assert_eq!(pool(2, 0.03), in_floats);
    let perm = Attributes::none().with("perm", Attribute::Ints(vec![1, 0, 2]));
    assert_eq!(
        moved(&[2, 3, 5], "transpose", perm, 0.03),
        ["quantize_linear", "transpose", "dequantize_linear"]
    );
}

#[test]
fn a_bias_is_added_to_the_sums() {
    let bias = HostTensor::vector(vec![1000i32, -2000, 3, 40_000]);
    let function = network(&[1, 3, 6], &[4, 3, 2], (scales(4), 0), ("conv", Attributes::none()), Some(bias));
    let after = optimised(&function, &numbers(&[1, 3, 6]));
    assert_eq!(names(&after), ["quantize_linear", "conv_integer", "add", "requantize"]);
}

#[test]
fn scales_along_the_depth_of_a_product_keep_it_in_floats() {
    let function = network(&[3, 8], &[8, 5], (scales(8), 0), ("matmul", Attributes::none()), None);
    let after = optimised(&function, &numbers(&[3, 8]));
    assert_eq!(names(&after), ["quantize_linear", "dequantize_linear", "matmul", "quantize_linear"]);
}

#[test]
fn sums_that_may_exceed_32_bits_stay_floats() {
    let function =
        network(&[1, 200_000], &[200_000, 1], (scales(1), 1), ("matmul", Attributes::none()), None);
    let after = optimise(&function).unwrap();
    assert!(names(&after).contains(&"matmul"), "{:?}", names(&after));
}

#[test]
fn general_products_are_products_of_integers_with_their_bias() {
    let transposed = || Attributes::none().with("transB", Attribute::Int(1));
    let bias = || Some(HostTensor::vector(vec![900i32, -7, 0, 12_345, 6]));
    let expected = ["quantize_linear", "matmul_integer", "add", "requantize"];
    let function = network(&[3, 8], &[5, 8], (scales(5), 0), ("gemm", transposed()), bias());
    assert_eq!(names(&optimised(&function, &numbers(&[3, 8]))), expected);
    let function = network(&[3, 8], &[8, 5], (scales(5), 1), ("gemm", Attributes::none()), bias());
    assert_eq!(names(&optimised(&function, &numbers(&[3, 8]))), expected);
}

#[test]
fn general_products_with_factors_or_scales_along_their_depth_stay_floats() {
    let stays = |scales: (HostTensor, i64), attributes: Attributes| {
        let function = network(&[3, 8], &[8, 8], scales, ("gemm", attributes), None);
        let after = optimised(&function, &numbers(&[3, 8]));
        assert!(names(&after).contains(&"gemm"), "{:?}", names(&after));
    };
    stays((scales(8), 1), Attributes::none().with("alpha", Attribute::Float(0.5)));
    stays((scales(8), 0), Attributes::none());
    stays((scales(8), 1), Attributes::none().with("transB", Attribute::Int(1)));
}

/// Weights of bytes with constant scales, and an input whose scale and zero point follow from its numbers.
fn dynamic(
    extents: &[usize],
    weights: &[usize],
    scales: (HostTensor, i64),
    product: &str,
    bias: &[usize],
) -> Function {
    let mut graph = GraphBuilder::new("dynamic");
    let extents: Vec<SymInt> = extents.iter().map(|&extent| extent.into()).collect();
    let x = parameter(&mut graph, &extents);
    let stored =
        graph.call_operator("dynamic_quantize_linear", vec![Some(x)], Attributes::none(), 3).unwrap();
    let read = graph.call("dequantize_linear", &stored, Attributes::none()).unwrap();
    let integers = graph.constant(bytes(weights));
    let scale = graph.constant(scales.0);
    let along = Attributes::none().with("axis", Attribute::Int(scales.1));
    let weights = graph.call("dequantize_linear", &[integers, scale], along).unwrap();
    let mut inputs = vec![read, weights];
    if !bias.is_empty() {
        inputs.push(graph.constant(numbers(bias)));
    }
    let y = graph.call(product, &inputs, Attributes::none()).unwrap();
    graph.finish(vec![y]).unwrap()
}

#[test]
fn scales_may_be_computed_and_biases_numbers() {
    let function = dynamic(&[3, 8], &[8, 5], (scales(5), 1), "matmul", &[]);
    let after = optimised(&function, &numbers(&[3, 8]));
    assert_eq!(names(&after), ["dynamic_quantize_linear", "mul", "matmul_integer", "dequantize_linear"]);
    let function = dynamic(&[3, 8], &[8, 5], (scales(5), 1), "gemm", &[5]);
    let after = optimised(&function, &numbers(&[3, 8]));
    assert_eq!(
        names(&after),
        ["dynamic_quantize_linear", "mul", "matmul_integer", "dequantize_linear", "add"]
    );
    let function = dynamic(&[1, 3, 6], &[4, 3, 2], (scales(4), 0), "conv", &[4]);
    let after = optimised(&function, &numbers(&[1, 3, 6]));
    assert_eq!(names(&after), ["dynamic_quantize_linear", "mul", "conv_integer", "dequantize_linear", "add"]);
}

#[test]
fn products_that_stay_floats_are_reported_with_their_reason() {
    let function = network(&[3, 8], &[8, 5], (scales(8), 0), ("matmul", Attributes::none()), None);
    let reasons = stays_float(&function, &optimise(&function).unwrap()).unwrap();
    assert_eq!((reasons.len(), reasons[0].operator), (1, "matmul"));
    assert!(reasons[0].reason.contains("summed up over"), "{}", reasons[0].reason);
    let function = network(&[3, 8], &[8, 5], (scales(5), 1), ("matmul", Attributes::none()), None);
    assert_eq!(stays_float(&function, &optimise(&function).unwrap()).unwrap(), []);
}

#[test]
fn scales_that_are_not_above_zero_are_errors_that_name_the_tensor() {
    for scale in [0.0f32, -1.0, f32::NAN, f32::INFINITY] {
        let mut graph = GraphBuilder::new("quantised");
        let x = parameter(&mut graph, &[4.into()]);
        let scale = graph.constant(HostTensor::scalar(scale));
        graph.set_name(scale, "the_scale");
        let y = graph.call("quantize_linear", &[x, scale], Attributes::none()).unwrap();
        let function = graph.finish(vec![y]).unwrap();
        let message = optimise(&function).unwrap_err().to_string();
        assert!(message.contains("the_scale"), "{message}");
    }
}

/// The calls that remain of a graph that stores `x` as bytes and then what `function` makes of them, with the bytes before and after.
fn after_bytes(function: impl Fn(&mut GraphBuilder, ValueId) -> ValueId) -> Vec<&'static str> {
    let mut graph = GraphBuilder::new("bytes");
    let read = quantised_parameter(&mut graph, &[2, 3, 37]);
    let result = function(&mut graph, read);
    let (scale, zero) = whole(0.02, 7);
    let stored = convert(&mut graph, "quantize_linear", result, scale, zero, 1);
    names(&optimised(&graph.finish(vec![stored]).unwrap(), &numbers(&[2, 3, 37])))
}

fn stored_again(graph: &mut GraphBuilder, x: ValueId, scale: f32) -> ValueId {
    let (scale, zero) = whole(scale, 3);
    let stored = convert(graph, "quantize_linear", x, scale.clone(), zero.clone(), 1);
    convert(graph, "dequantize_linear", stored, scale, zero, 1)
}

#[test]
fn functions_of_one_tensor_of_bytes_are_tables() {
    let one = |graph: &mut GraphBuilder, name: &str, inputs: &[ValueId]| {
        graph.call(name, inputs, Attributes::none()).unwrap()
    };
    let look_up = ["quantize_linear", "look_up"];
    assert_eq!(after_bytes(|graph, x| one(graph, "sigmoid", &[x])), look_up);
    let swish = |graph: &mut GraphBuilder, x: ValueId| {
        let gate = one(graph, "sigmoid", &[x]);
        let gate = stored_again(graph, gate, 1.0 / 255.0);
        one(graph, "mul", &[x, gate])
    };
    assert_eq!(after_bytes(swish), look_up);
    let twice = |graph: &mut GraphBuilder, x: ValueId| {
        let swish = swish(graph, x);
        let swish = stored_again(graph, swish, 0.03);
        let half = graph.constant(HostTensor::new(&[1, 1], vec![0.5f32]).unwrap());
        one(graph, "add", &[swish, half])
    };
    assert_eq!(after_bytes(twice), look_up);
    // One number for each place is no function of the byte alone.
    let by_place = |graph: &mut GraphBuilder, x: ValueId| {
        let numbers = graph.constant(HostTensor::vector((0..37).map(|place| place as f32).collect()));
        one(graph, "add", &[x, numbers])
    };
    assert_eq!(after_bytes(by_place), ["quantize_linear", "dequantize_linear", "add", "quantize_linear"]);
    // Two conversions alone stay as they are.
    assert_eq!(after_bytes(|_, x| x), ["quantize_linear", "dequantize_linear", "quantize_linear"]);
}

#[test]
fn each_reader_of_bytes_converts_them_itself() {
    let mut graph = GraphBuilder::new("bytes");
    let read = quantised_parameter(&mut graph, &[3, 8]);
    let results = ["relu", "reduce_max", "softmax", "abs"]
        .map(|name| graph.call(name, &[read], Attributes::none()).unwrap());
    let function = graph.finish(results.to_vec()).unwrap();
    let after = names(&optimised(&function, &numbers(&[3, 8])));
    let count = |name: &str| after.iter().filter(|own| **own == name).count();
    // One for the softmax, whose kernel takes no conversion, and one for each of the others.
    assert_eq!(count("dequantize_linear"), 4, "{after:?}");
}
