//! Loops whose bodies have parts that a plan takes and parts that only the data decide.

mod recurrence;
mod support;

// Brings the CPU.
use tilewright as _;
use tilewright_graph::build::GraphBuilder;
use tilewright_graph::interpret::Interpreter;
use tilewright_graph::ir::{Function, Loop, Module, Type};
use tilewright_graph::tensor::{ElementType, HostTensor};
use tilewright_session::{Error, Model, Session};

use recurrence::recurrence;
use support::{call, numbers};

fn interpret(function: &Function, arguments: Vec<HostTensor>) -> Vec<HostTensor> {
    let module = Module { functions: [(function.name.clone(), function.clone())].into() };
    let arguments = arguments.into_iter().map(Into::into).collect();
    let results = Interpreter::new(&module).run("main", arguments).unwrap();
    results.into_iter().map(|result| result.as_tensor().unwrap().clone()).collect()
}

#[test]
fn parts_around_what_the_data_decide_have_plans() {
    let function = recurrence();
    let model = Model::from_function(&function).unwrap();
    let mut session = Session::new(&model);
    for count in [9i64, 3, 1, 0, 7, 9] {
        let (count, state) = (HostTensor::scalar(count), numbers(&[1, 6], 3));
        let (outputs, profile) = session.profile(&[("count", &count), ("state", &state)]).unwrap();
        let expected = interpret(&function, vec![count.clone(), state.clone()]);
        assert_eq!(outputs.iter().count(), expected.len());
        for ((_, found), expected) in outputs.iter().zip(&expected) {
            assert_eq!(found.shape(), expected.shape());
            let pairs = found.as_slice::<f32>().unwrap().iter().zip(expected.as_slice::<f32>().unwrap());
            pairs.for_each(|(x, y)| assert!((x - y).abs() <= 1e-5 * (1.0 + y.abs()), "{x} is not {y}"));
        }
        let runs = |name: &str| {
            let of_name = profile
                .steps
                .iter()
                .filter(|step| step.kernel.as_deref().is_some_and(|kernel| kernel.starts_with(name)));
            of_name.map(|step| step.runs).sum::<usize>()
        };
        // The weights never change, and the product with its function is one kernel of a plan.
        let iterations = expected[2].shape()[0];
        assert_eq!(runs("matmul"), iterations, "{:?}", profile.steps);
        // The tuner weighs kernels by their runs.
        let kernels = session.kernels(&[("count", &count), ("state", &state)]).unwrap();
        let products = kernels.iter().filter(|one| one.kernel.name().starts_with("matmul"));
        assert_eq!(products.map(|one| one.steps).sum::<usize>(), iterations);
    }
}

/// A loop whose condition never changes.
#[test]
fn a_loop_without_end_is_limited_and_interrupted() {
    let mut graph = GraphBuilder::new("main");
    let state = graph.parameter("state", Type::fixed(ElementType::F32, &[1, 6]));
    graph.open_body();
    graph.parameter("number", Type::fixed(ElementType::I64, &[]));
    let condition = graph.parameter("condition", Type::fixed(ElementType::Bool, &[]));
    let inner = graph.parameter("inner", Type::fixed(ElementType::F32, &[1, 6]));
    let next = call(&mut graph, "tanh", &[inner], &[]);
    let body = graph.close_body(vec![condition, next]).unwrap();
    let repeated = Loop { trip_count: None, condition: None, carried: vec![state], body };
    let results = graph.repeat(repeated).unwrap();
    let model = Model::from_function(&graph.finish(results).unwrap()).unwrap();
    let mut session = Session::new(&model);
    let state = numbers(&[1, 6], 3);
    session.set_iterations(1000);
    let error = session.run(&[("state", &state)]).unwrap_err().to_string();
    assert!(error.contains("not ended after 1000 iterations"), "{error}");
    session.set_iterations(u64::MAX);
    let interruption = session.interruption();
    let error = std::thread::scope(|scope| {
        let run = scope.spawn(|| session.run(&[("state", &state)]).unwrap_err());
        interruption.request();
        run.join().unwrap()
    });
    assert!(matches!(error, Error::Interrupted), "{error}");
    // The request is answered: the next run is limited again.
    session.set_iterations(10);
    let error = session.run(&[("state", &state)]).unwrap_err();
    assert!(matches!(error, Error::Run(_)), "{error}");
}
