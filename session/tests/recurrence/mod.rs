//! A graph with a loop, whose body has parts that a plan takes and parts that only the data decide.

use tilewright_graph::build::GraphBuilder;
use tilewright_graph::ir::{Function, Loop, Type};
use tilewright_graph::tensor::{ElementType, HostTensor};

use crate::support::call;

/// Numbers between -0.75 and 0.75 that repeat after 61 elements.
fn small_numbers(shape: &[usize], seed: usize) -> HostTensor {
    let length = shape.iter().product::<usize>();
    let number = |place: usize| ((place * 37 + seed * 11) % 61) as f32 / 40.0 - 0.75;
    HostTensor::new(shape, (0..length).map(number).collect()).unwrap()
}

/// A state of six numbers that each iteration multiplies by weights, which the loop carries. The sum of as many rows of a table as
/// there were iterations is added: only the number of the iteration says how many. The loop ends after `count` iterations, or when
/// the largest number of the state exceeds a limit.
pub(crate) fn recurrence() -> Function {
    let mut graph = GraphBuilder::new("main");
    let count = graph.parameter("count", Type::fixed(ElementType::I64, &[]));
    let state = graph.parameter("state", Type::fixed(ElementType::F32, &[1, 6]));
    let weights = graph.constant(small_numbers(&[6, 6], 1));
    let table = graph.constant(small_numbers(&[9, 6], 2));
    graph.open_body();
    let number = graph.parameter("number", Type::fixed(ElementType::I64, &[]));
    graph.parameter("condition", Type::fixed(ElementType::Bool, &[]));
    let inner = graph.parameter("inner", Type::fixed(ElementType::F32, &[1, 6]));
    let carried = graph.parameter("weights", Type::fixed(ElementType::F32, &[6, 6]));
    let product = call(&mut graph, "matmul", &[inner, carried], &[]);
    let next = call(&mut graph, "tanh", &[product], &[]);
    let (zero, one) =
        (graph.constant(HostTensor::vector(vec![0i64])), graph.constant(HostTensor::vector(vec![1i64])));
    let end = call(&mut graph, "reshape", &[number, one], &[]);
    let rows = call(&mut graph, "slice", &[table, zero, end], &[]);
    let sum = call(&mut graph, "reduce_sum", &[rows, zero], &[]);
    let mixed = call(&mut graph, "add", &[next, sum], &[]);
    let largest = call(&mut graph, "reduce_max", &[mixed], &[]);
    let limit = graph.constant(HostTensor::new(&[1, 1], vec![1.25f32]).unwrap());
    let below = call(&mut graph, "less", &[largest, limit], &[]);
    let truth = call(&mut graph, "squeeze", &[below], &[]);
    let body = graph.close_body(vec![truth, mixed, carried, next]).unwrap();
    let repeated = Loop { trip_count: Some(count), condition: None, carried: vec![state, weights], body };
    let results = graph.repeat(repeated).unwrap();
    graph.finish(results).unwrap()
}
