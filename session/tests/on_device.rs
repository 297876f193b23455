//! Sessions on a GPU: the mock driver executes the kernels of a model; values stay in its memory between steps.

mod compare;
mod recurrence;
mod support;

use tilewright::DeviceHandle;
use tilewright_graph::build::GraphBuilder;
use tilewright_graph::ir::{Attribute, Function, Shape, Type};
use tilewright_graph::symbolic::SymInt;
use tilewright_graph::tensor::{ElementType, HostTensor};
use tilewright_session::{Error, Model, Session};

use compare::{agree, interpret};
use recurrence::recurrence;
use support::{call, numbers};

fn gpu() -> DeviceHandle {
    tilewright::devices::open("gpu:mock").expect("the mock driver is built with the tests")
}

/// Two layers with a rectifier between, an evaluated normalisation, and chances.
fn perceptron() -> Function {
    let mut graph = GraphBuilder::new("main");
    let x = graph
        .parameter("x", Type::tensor(ElementType::F32, Shape::Known(vec![SymInt::symbol("N"), 6.into()])));
    let first = graph.constant(numbers(&[6, 9], 1));
    let bias = graph.constant(numbers(&[9], 2));
    let second = graph.constant(numbers(&[9, 5], 3));
    let product = call(&mut graph, "matmul", &[x, first], &[]);
    let sum = call(&mut graph, "add", &[product, bias], &[]);
    let hidden = call(&mut graph, "relu", &[sum], &[]);
    let scaled = call(&mut graph, "lp_normalization", &[hidden], &[]);
    let out = call(&mut graph, "matmul", &[scaled, second], &[]);
    let chances = call(&mut graph, "softmax", &[out], &[]);
    graph.finish(vec![chances, hidden, x]).unwrap()
}

/// A convolution, a rectifier, a pool and a product.
fn convolutions() -> Function {
    let mut graph = GraphBuilder::new("main");
    let extents = vec![SymInt::symbol("N"), 3.into(), 8.into(), 8.into()];
    let x = graph.parameter("x", Type::tensor(ElementType::F32, Shape::Known(extents)));
    let filters = graph.constant(numbers(&[4, 3, 3, 3], 1));
    let pads = [("pads", Attribute::Ints(vec![1, 1, 1, 1]))];
    let convolved = call(&mut graph, "conv", &[x, filters], &pads);
    let rectified = call(&mut graph, "relu", &[convolved], &[]);
    let window = [("kernel_shape", Attribute::Ints(vec![2, 2])), ("strides", Attribute::Ints(vec![2, 2]))];
    let pooled = call(&mut graph, "max_pool", &[rectified], &window);
    let rows = graph.constant(HostTensor::vector(vec![0i64, -1]));
    let flat = call(&mut graph, "reshape", &[pooled, rows], &[]);
    let weights = graph.constant(numbers(&[64, 7], 5));
    let out = call(&mut graph, "matmul", &[flat, weights], &[]);
    graph.finish(vec![out]).unwrap()
}

fn compare(session: &mut Session, function: &Function, input: &HostTensor) {
    let outputs = session.run(&[("x", input)]).unwrap();
    agree(&outputs, &interpret(function, vec![input.clone().into()]));
}

#[test]
fn a_perceptron_runs_on_a_gpu() {
    let function = perceptron();
    let model = Model::from_function(&function).unwrap();
    let mut session = Session::on(&model, &gpu());
    for rows in [3, 1, 3, 7] {
        compare(&mut session, &function, &numbers(&[rows, 6], rows));
    }
    let (_, profile) = session.profile(&[("x", &numbers(&[3, 6], 0))]).unwrap();
    assert!(profile.steps.iter().any(|step| step.kernel.is_some()), "{:?}", profile.steps);
    assert!(session.arena_bytes() >= profile.arena);
    // The same model runs on the CPU beside it.
    compare(&mut Session::new(&model), &function, &numbers(&[3, 6], 3));
}

#[test]
fn convolutions_run_on_a_gpu() {
    let function = convolutions();
    let model = Model::from_function(&function).unwrap();
    let mut session = Session::on(&model, &gpu());
    for images in [1, 2] {
        compare(&mut session, &function, &numbers(&[images, 3, 8, 8], images));
    }
}

/// Runs that are recorded read the inputs of their own call, also after a larger arena has taken the place of that they were recorded in.
#[test]
fn runs_that_are_launched_together_give_the_results_of_their_own_inputs() {
    let function = convolutions();
    let model = Model::from_function(&function).unwrap();
    let mut session = Session::on(&model, &gpu());
    let mut seed = 0;
    for images in [1, 1, 1, 1, 2, 1, 2, 2, 2, 2, 1, 1, 1, 1] {
        tilewright::background::finish();
        seed += 1;
        compare(&mut session, &function, &numbers(&[images, 3, 8, 8], seed));
    }
}

#[test]
fn an_input_that_does_not_fit_is_refused_as_on_the_cpu() {
    let model = Model::from_function(&perceptron()).unwrap();
    let mut session = Session::on(&model, &gpu());
    let error = session.run(&[("x", &numbers(&[3, 5], 0))]).unwrap_err();
    assert!(matches!(&error, Error::Input { name, .. } if name == "x"), "{error}");
}

/// The parts of a graph that decides while it runs have kernels of the GPU.
#[test]
fn a_loop_runs_its_parts_on_a_gpu() {
    let function = recurrence();
    let model = Model::from_function(&function).unwrap();
    let mut session = Session::on(&model, &gpu());
    for count in [4i64, 1, 0, 9] {
        let (count, state) = (HostTensor::scalar(count), numbers(&[1, 6], 3));
        let (outputs, profile) = session.profile(&[("count", &count), ("state", &state)]).unwrap();
        agree(&outputs, &interpret(&function, vec![count.clone().into(), state.into()]));
        let has_product = profile
            .steps
            .iter()
            .any(|step| step.kernel.as_deref().is_some_and(|kernel| kernel.starts_with("matmul")));
        assert_eq!(has_product, count.as_slice::<i64>() != Some(&[0]), "{:?}", profile.steps);
    }
    // Plans of the GPU are not those of the model, which also runs on the CPU.
    let (count, state) = (HostTensor::scalar(3i64), numbers(&[1, 6], 2));
    let outputs = Session::new(&model).run(&[("count", &count), ("state", &state)]).unwrap();
    agree(&outputs, &interpret(&function, vec![count.into(), state.into()]));
}
