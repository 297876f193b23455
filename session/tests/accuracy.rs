//! Products that may be less exact than those of `f32`.

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

/// Rows, terms of a sum and columns of a product that fills no tile of rows.
const ODD: [usize; 3] = [37, 96, 64];

/// Rows, terms of a sum and columns of a product that fills tiles of tensor cores.
const WHOLE: [usize; 3] = [128, 128, 128];

/// A product of `x` with constant weights.
fn product([rows, steps, columns]: [usize; 3]) -> (Function, Vec<f32>) {
    let mut graph = GraphBuilder::new("main");
    let x = graph.parameter("x", Type::fixed(ElementType::F32, &[rows, steps]));
    let weights = numbers(steps * columns, 7);
    let constant = graph.constant(HostTensor::new(&[steps, columns], weights.clone()).unwrap());
    let result = graph.call("matmul", &[x, constant], Attributes::none()).unwrap();
    (graph.finish(vec![result]).unwrap(), weights)
}

/// Runs the product with an accuracy, and compares each result with the exact one. Gives the largest error of a result, relative to the sum of the
/// magnitudes of its terms.
fn largest_error(size: [usize; 3], accuracy: Option<f64>, session: impl Fn(&Model) -> Session) -> f64 {
    let [rows, steps, columns] = size;
    let (function, weights) = product(size);
    let elements = numbers(rows * steps, 3);
    let x = HostTensor::new(&[rows, steps], elements.clone()).unwrap();
    let mut model = Model::from_function(&function).unwrap();
    if let Some(relative) = accuracy {
        model = model.with_accuracy(relative).unwrap();
    }
    assert_eq!(model.accuracy(), accuracy);
    let outputs = session(&model).run(&[("x", &x)]).unwrap();
    let found = outputs[0].as_slice::<f32>().unwrap();
    assert_eq!(found.len(), rows * columns);
    let error = |(place, &found): (usize, &f32)| {
        let (row, column) = (place / columns, place % columns);
        let terms = (0..steps).map(|step| {
            f64::from(elements[row * steps + step]) * f64::from(weights[step * columns + column])
        });
        let (exact, magnitude) = terms.fold((0.0, 0.0), |(sum, all), term| (sum + term, all + term.abs()));
        (f64::from(found) - exact).abs() / magnitude
    };
    found.iter().enumerate().map(error).fold(0.0, f64::max)
}

/// The error of adding up in `f32`, where there may be nine terms for each product.
fn adding([_, steps, _]: [usize; 3]) -> f64 {
    9.0 * steps as f64 / f64::from(1 << 24)
}

#[test]
fn results_keep_the_bound_of_their_accuracy() {
    for accuracy in [None, Some(0.0), Some(6e-8), Some(1e-4), Some(1e-2)] {
        let error = largest_error(ODD, accuracy, Session::new);
        assert!(error <= accuracy.unwrap_or(0.0) + adding(ODD), "accuracy {accuracy:?}: {error}");
    }
}

#[test]
fn gpus_use_tensor_cores_where_the_accuracy_allows_it() {
    let gpu = tilewright::devices::open("gpu:mock").expect("the mock driver is built with the tests");
    let error = |accuracy| largest_error(WHOLE, accuracy, |model| Session::on(model, &gpu));
    let (exact, rounded) = (error(None), error(Some(1e-3)));
    assert!(exact <= adding(WHOLE), "products of `f32`: {exact}");
    // Factors of eleven binary digits leave errors that products of `f32` do not have.
    assert!(
        rounded <= 1e-3 + adding(WHOLE) && rounded > 8.0 * exact,
        "rounded factors: {rounded}, exact ones: {exact}"
    );
}

#[test]
fn kernels_state_the_accuracy() {
    let (function, _) = product(ODD);
    let [rows, steps, _] = ODD;
    let x = HostTensor::new(&[rows, steps], vec![1.0f32; rows * steps]).unwrap();
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
    let (function, _) = product(ODD);
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
