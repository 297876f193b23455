//! Products that may be less exact than those of `f32`.

// Brings the CPU.
use tilewright as _;
use tilewright_graph::build::GraphBuilder;
use tilewright_graph::ir::{Attributes, Function, Type};
use tilewright_graph::tensor::ElementType;
use tilewright_session::{Error, HostTensor, Model, Session};

/// Numbers between −1 and 1 whose digits differ from each other to the end.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

const ROWS: usize = 37;
const STEPS: usize = 96;
const COLUMNS: usize = 64;

/// A product of `x` with constant weights.
fn product() -> (Function, Vec<f32>) {
    let mut graph = GraphBuilder::new("main");
    let x = graph.parameter("x", Type::fixed(ElementType::F32, &[ROWS, STEPS]));
    let weights = numbers(STEPS * COLUMNS, 7);
    let constant = graph.constant(HostTensor::new(&[STEPS, COLUMNS], weights.clone()).unwrap());
    let result = graph.call("matmul", &[x, constant], Attributes::none()).unwrap();
    (graph.finish(vec![result]).unwrap(), weights)
}

#[test]
fn results_keep_the_bound_of_their_accuracy() {
    let (function, weights) = product();
    let elements = numbers(ROWS * STEPS, 3);
    let x = HostTensor::new(&[ROWS, STEPS], elements.clone()).unwrap();
    for accuracy in [None, Some(0.0), Some(6e-8), Some(1e-4), Some(1e-2)] {
        let mut model = Model::from_function(&function).unwrap();
        if let Some(relative) = accuracy {
            model = model.with_accuracy(relative).unwrap();
        }
        assert_eq!(model.accuracy(), accuracy);
        let outputs = Session::new(&model).run(&[("x", &x)]).unwrap();
        let found = outputs[0].as_slice::<f32>().unwrap();
        for (place, &found) in found.iter().enumerate() {
            let (row, column) = (place / COLUMNS, place % COLUMNS);
            let terms = (0..STEPS).map(|step| {
                f64::from(elements[row * STEPS + step]) * f64::from(weights[step * COLUMNS + column])
            });
            let (exact, magnitude) =
                terms.fold((0.0, 0.0), |(sum, all), term| (sum + term, all + term.abs()));
            // There may be nine terms of a sum of `f32` for each product.
            let adding = 9.0 * STEPS as f64 * 2f64.powi(-24);
            let bound = (accuracy.unwrap_or(0.0) + adding) * magnitude;
            assert!(
                (f64::from(found) - exact).abs() <= bound,
                "accuracy {accuracy:?}, element {row}, {column}: {found}, expected {exact} ± {bound}"
            );
        }
    }
}

#[test]
fn kernels_state_the_accuracy() {
    let (function, _) = product();
    let x = HostTensor::new(&[ROWS, STEPS], vec![1.0f32; ROWS * STEPS]).unwrap();
    let stated = |model: &Model| {
        let uses = Session::new(model).kernels(&[("x", &x)]).unwrap();
        let accuracy = |one: &tilewright_session::KernelUse| one.kernel.program().unwrap().accuracy;
        uses.iter().map(|one| accuracy(one).map(|accuracy| accuracy.relative())).collect::<Vec<_>>()
    };
    let model = Model::from_function(&function).unwrap();
    assert_eq!(stated(&model), [None]);
    assert_eq!(stated(&Model::from_function(&function).unwrap().with_accuracy(1e-4).unwrap()), [Some(1e-4)]);
}

#[test]
fn an_accuracy_comes_before_sessions_and_is_a_small_number() {
    let (function, _) = product();
    let refusal = |relative: f64| match Model::from_function(&function).unwrap().with_accuracy(relative) {
        Err(error @ Error::Accuracy { .. }) => error.to_string(),
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("an accuracy of {relative} was taken"),
    };
    for relative in [-1e-3, 1.0, f64::NAN, f64::INFINITY] {
        let error = refusal(relative);
        assert!(error.contains("at least 0 and less than 1"), "{error}");
    }
    let model = Model::from_function(&function).unwrap();
    let session = Session::new(&model);
    let error = model.with_accuracy(1e-3).map(drop).unwrap_err().to_string();
    assert!(error.contains("before"), "{error}");
    drop(session);
}
