//! Small networks of floats, quantised and compared with themselves.

// Brings the CPU.
use tilewright as _;
use tilewright_graph::build::GraphBuilder;
use tilewright_graph::ir::{Attribute, Attributes, Function, Operation, Shape, Type, ValueId};
use tilewright_graph::onnx::{self, Labels};
use tilewright_graph::symbolic::SymInt;
use tilewright_graph::tensor::{ElementType, HostTensor};
use tilewright_quantiser::{Activations, Error, Method, Options, Quantised, Sample, Weights, quantise};
use tilewright_session::{Model, Session};

/// Numbers between -1 and 1 that look random.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12_345);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn tensor(shape: &[usize], seed: u32) -> HostTensor {
    HostTensor::new(shape, numbers(shape.iter().product(), seed)).unwrap()
}

fn input(graph: &mut GraphBuilder, extents: &[usize]) -> ValueId {
    let rest = extents.iter().map(|&extent| SymInt::from(extent));
    let extents = std::iter::once(SymInt::symbol("N")).chain(rest).collect();
    graph.parameter("x", Type::tensor(ElementType::F32, Shape::Known(extents)))
}

/// A convolution with a bias, one by channels, and two products of matrices.
fn network() -> Function {
    let mut graph = GraphBuilder::new("network");
    let x = input(&mut graph, &[3, 10, 10]);
    let (w, b) = (graph.constant(tensor(&[8, 3, 3, 3], 1)), graph.constant(tensor(&[8], 2)));
    let pads = Attributes::none().with("pads", Attribute::Ints(vec![1, 1, 1, 1]));
    graph.set_origin(Some("first".into()));
    let y = graph.call("conv", &[x, w, b], pads.clone()).unwrap();
    let y = graph.call("relu", &[y], Attributes::none()).unwrap();
    let w = graph.constant(tensor(&[8, 1, 3, 3], 3));
    graph.set_origin(Some("by channels".into()));
    let y = graph.call("conv", &[y, w], pads.with("group", Attribute::Int(8))).unwrap();
    let y = graph.call("global_average_pool", &[y], Attributes::none()).unwrap();
    let y = graph.call("flatten", &[y], Attributes::none()).unwrap();
    let (w, b) = (graph.constant(tensor(&[8, 12], 4)), graph.constant(tensor(&[12], 5)));
    graph.set_origin(Some("product".into()));
    let y = graph.call("matmul", &[y, w], Attributes::none()).unwrap();
    let y = graph.call("add", &[b, y], Attributes::none()).unwrap();
    let (w, b) = (graph.constant(tensor(&[5, 12], 6)), graph.constant(tensor(&[5], 7)));
    graph.set_origin(Some("last".into()));
    let transposed = Attributes::none().with("transB", Attribute::Int(1));
    let y = graph.call("gemm", &[y, w, b], transposed).unwrap();
    graph.set_name(y, "y");
    graph.finish(vec![y]).unwrap()
}

fn samples(count: u32) -> Vec<Sample> {
    (0..count).map(|seed| vec![("x".to_owned(), tensor(&[2, 3, 10, 10], 100 + seed))]).collect()
}

fn run(function: &Function, sample: &Sample) -> Vec<f32> {
    let model = Model::from_function(function).unwrap();
    let inputs: Vec<(&str, &HostTensor)> = sample.iter().map(|(name, tensor)| (&name[..], tensor)).collect();
    Session::new(&model).run(&inputs).unwrap()[0].expect::<f32>().unwrap().to_vec()
}

fn largest_difference(left: &[f32], right: &[f32]) -> f32 {
    left.iter().zip(right).map(|(left, right)| (left - right).abs()).fold(0.0, f32::max)
}

fn quantised(function: &Function, options: &Options) -> Quantised {
    quantise(function, &samples(4), options).unwrap()
}

#[test]
fn all_products_become_products_of_integers() {
    let function = network();
    for method in [Method::MinMax, Method::Percentile(99.9)] {
        for activations in [Activations::Asymmetric, Activations::Symmetric] {
            let quantised = quantised(&function, &Options { method, activations, ..Options::default() });
            let model = Model::from_function(&quantised.function).unwrap();
            assert_eq!(model.info().integer_products, 4, "{:?}", model.info().stays_float);
            let layers: Vec<&str> = quantised.report.layers.iter().map(|layer| &layer.node[..]).collect();
            assert_eq!(layers, ["first", "by channels", "product", "last"]);
            let loss = quantised.report.outputs[0].loss;
            assert!(loss.ratio > 25.0 && loss.cosine > 0.998, "{method} {activations:?}: {loss:?}");
            // On data that calibration has not seen.
            let unseen = &samples(9)[8];
            let (exact, found) = (run(&function, unseen), run(&quantised.function, unseen));
            let largest = exact.iter().fold(0f32, |largest, x| largest.max(x.abs()));
            assert!(largest_difference(&exact, &found) < 0.1 * largest, "{exact:?} {found:?}");
            assert_ne!(exact, found);
        }
    }
}

#[test]
fn the_file_of_a_quantised_function_computes_the_same_bits() {
    let quantised = quantised(&network(), &Options::default());
    let labels = Labels::of_outputs(&["y"]);
    let bytes = onnx::Model::of_function(&quantised.function, &labels).unwrap().to_bytes().unwrap();
    let imported = onnx::Model::from_bytes(bytes.into()).unwrap().import().unwrap();
    let unseen = &samples(9)[8];
    assert_eq!(run(&imported.function, unseen), run(&quantised.function, unseen));
}

/// The function keeps no numbers that integers have replaced.
#[test]
fn weights_of_floats_are_left_out() {
    let quantised = quantised(&network(), &Options::default());
    let floats = quantised.function.body.bindings.iter().filter_map(|binding| match &binding.operation {
        Operation::Constant(tensor) if tensor.element() == ElementType::F32 => Some(tensor.len()),
        _ => None,
    });
    // Scales and biases have a number for each channel, of which there are 12 at most.
    assert_eq!(floats.filter(|&length| length > 12).count(), 0);
}

/// The losses of the report are those of the functions, recomputed here.
#[test]
fn reported_losses_are_those_of_the_outputs() {
    let function = network();
    let quantised = quantised(&function, &Options::default());
    let (mut signal, mut noise) = (0.0, 0.0);
    for sample in samples(4) {
        for (x, y) in run(&function, &sample).into_iter().zip(run(&quantised.function, &sample)) {
            signal += f64::from(x) * f64::from(x);
            noise += f64::from(x - y) * f64::from(x - y);
        }
    }
    let ratio = 10.0 * (signal / noise).log10();
    let reported = quantised.report.outputs[0].loss.ratio;
    assert!((ratio - reported).abs() < 0.01, "{ratio} and {reported}");
    let last = quantised.report.layers.last().unwrap().total.ratio;
    assert!((ratio - last).abs() < 0.01, "the last product is the output: {last}");
}

/// Weights whose rounding errors all go one way: without correction, each channel is off by a constant.
fn biased(bias: bool) -> Function {
    let mut graph = GraphBuilder::new("biased");
    let x = input(&mut graph, &[16]);
    // One large weight sets the step; the others lie just above the middle between two integers.
    let weights = (0..16 * 4).map(|place| if place < 4 { 1.27f32 } else { 0.0154 }).collect();
    let w = graph.constant(HostTensor::new(&[16, 4], weights).unwrap());
    let mut y = graph.call("matmul", &[x, w], Attributes::none()).unwrap();
    if bias {
        let b = graph.constant(HostTensor::vector(vec![1f32, 2.0, 3.0, 4.0]));
        y = graph.call("add", &[y, b], Attributes::none()).unwrap();
    }
    graph.finish(vec![y]).unwrap()
}

#[test]
fn biases_take_up_the_mean_error_of_channels() {
    let positive = |seed| {
        vec![(
            "x".to_owned(),
            HostTensor::new(&[64, 16], numbers(1024, seed).iter().map(|x| x + 1.5).collect()).unwrap(),
        )]
    };
    let samples: Vec<Sample> = (0..4).map(positive).collect();
    for bias in [false, true] {
        let function = biased(bias);
        let mean = |bias_correction| {
            let options = Options { bias_correction, ..Options::default() };
            let quantised = quantise(&function, &samples, &options).unwrap();
            let (exact, found) = (run(&function, &samples[0]), run(&quantised.function, &samples[0]));
            exact.iter().zip(&found).map(|(x, y)| y - x).sum::<f32>() / exact.len() as f32
        };
        let (without, with) = (mean(false), mean(true));
        assert!(without.abs() > 0.05 && with.abs() < 0.01, "without {without}, with {with}");
    }
}

#[test]
fn channels_of_zeros_and_constant_inputs_are_exact() {
    let mut graph = GraphBuilder::new("zeros");
    let x = input(&mut graph, &[4]);
    let mut weights = numbers(4 * 3, 1);
    weights.iter_mut().skip(1).step_by(3).for_each(|weight| *weight = 0.0);
    let w = graph.constant(HostTensor::new(&[4, 3], weights).unwrap());
    let bias = graph.constant(HostTensor::vector(vec![0.25f32, 0.7, -3.0]));
    let y = graph.call("gemm", &[x, w, bias], Attributes::none()).unwrap();
    let function = graph.finish(vec![y]).unwrap();
    for weights in [Weights::PerChannel, Weights::PerTensor] {
        for constant in [0f32, -2.5] {
            let sample = vec![("x".to_owned(), HostTensor::full(&[2, 4], constant).unwrap())];
            let options = Options { weights, ..Options::default() };
            let quantised = quantise(&function, std::slice::from_ref(&sample), &options).unwrap();
            let (exact, found) = (run(&function, &sample), run(&quantised.function, &sample));
            // The channel of zeros is its bias; the others are off by the rounding of weights, which the bias takes up.
            assert!((found[1] - 0.7).abs() < 1e-4, "{found:?}");
            assert!(largest_difference(&exact, &found) < 1e-3, "{exact:?} {found:?}");
        }
    }
}

#[test]
fn products_stay_in_floats_on_request_and_by_their_loss() {
    let function = network();
    let options = Options { keep: vec!["last".to_owned()], ..Options::default() };
    let report = quantised(&function, &options).report;
    assert_eq!(report.layers.len(), 3);
    assert_eq!((&report.left[0].node[..], report.left.len()), ("last", 1));
    let ratios: Vec<f64> =
        quantised(&function, &Options::default()).report.layers.iter().map(|layer| layer.own_ratio).collect();
    let mut sorted = ratios.clone();
    sorted.sort_by(f64::total_cmp);
    let between = (sorted[0] + sorted[1]) / 2.0;
    let report = quantised(&function, &Options { least_ratio: Some(between), ..Options::default() }).report;
    assert_eq!(report.layers.len(), 3, "{ratios:?}");
    assert!(report.left[0].reason.contains("dB"), "{:?}", report.left);
    let unknown = Options { keep: vec!["nothing".to_owned()], ..Options::default() };
    let message = quantise(&function, &samples(1), &unknown).unwrap_err().to_string();
    assert!(message.contains("`nothing`") && message.contains("`first`"), "{message}");
}

#[test]
fn bad_calibration_data_are_errors_that_name_them() {
    let function = network();
    let attempt = |samples: &[Sample]| quantise(&function, samples, &Options::default()).unwrap_err();
    assert!(matches!(attempt(&[]), Error::NoSamples));
    let mut wrong = samples(2);
    let mut numbers = numbers(600, 1);
    numbers[77] = f32::NAN;
    wrong[1][0].1 = HostTensor::new(&[2, 3, 10, 10], numbers).unwrap();
    let message = attempt(&wrong).to_string();
    for part in ["sample 1", "`x`", "`first`", "NaN"] {
        assert!(message.contains(part), "{message} lacks {part}");
    }
    let missing = attempt(&[vec![("z".to_owned(), HostTensor::scalar(1f32))]]).to_string();
    assert!(missing.contains("sample 0") && missing.contains('z'), "{missing}");
    // A batch without elements calibrates nothing.
    let empty = attempt(&[vec![("x".to_owned(), HostTensor::new::<f32>(&[0, 3, 10, 10], vec![]).unwrap())]]);
    assert!(matches!(&empty, Error::NoProducts(reason) if reason.contains("no sample gives")), "{empty}");
}

#[test]
fn products_without_a_form_on_integers_are_listed_with_the_reason() {
    let mut graph = GraphBuilder::new("left");
    let x = graph.parameter("x", Type::fixed(ElementType::F32, &[4, 4]));
    let w = graph.constant(tensor(&[4, 4], 1));
    graph.set_origin(Some("kept".into()));
    let y = graph.call("matmul", &[x, w], Attributes::none()).unwrap();
    graph.set_origin(Some("computed".into()));
    let y = graph.call("matmul", &[y, x], Attributes::none()).unwrap();
    graph.set_origin(Some("scaled".into()));
    let half = Attributes::none().with("alpha", Attribute::Float(0.5));
    let y = graph.call("gemm", &[y, w], half).unwrap();
    let function = graph.finish(vec![y]).unwrap();
    let sample = vec![vec![("x".to_owned(), tensor(&[4, 4], 2))]];
    let report = quantise(&function, &sample, &Options::default()).unwrap().report;
    let left: Vec<(&str, &str)> = report.left.iter().map(|left| (&left.node[..], &left.reason[..])).collect();
    assert_eq!(left, [("computed", "both factors are computed"), ("scaled", "the product has a factor")]);
    let text = report.to_string();
    assert!(text.contains("1 products on integers, 2 in floats") && text.contains("kept (matmul)"), "{text}");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["layers"][0]["node"], "kept");
}

/// Two products that read one value share its bytes.
#[test]
fn values_are_stored_as_bytes_once() {
    let mut graph = GraphBuilder::new("shared");
    let x = graph.parameter("x", Type::fixed(ElementType::F32, &[4, 4]));
    let weights = [1, 2].map(|seed| graph.constant(tensor(&[4, 4], seed)));
    let products = weights.map(|w| graph.call("matmul", &[x, w], Attributes::none()).unwrap());
    let function = graph.finish(products.to_vec()).unwrap();
    let sample = vec![vec![("x".to_owned(), tensor(&[4, 4], 3))]];
    let quantised = quantise(&function, &sample, &Options::default()).unwrap();
    let stores = quantised.function.body.bindings.iter().filter(
        |binding| matches!(&binding.operation, Operation::Call(call) if call.operator.name == "quantize_linear"),
    );
    assert_eq!(stores.count(), 1);
}
