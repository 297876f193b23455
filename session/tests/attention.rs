//! Attention over a growing number of keys, compared with the graph's interpreter.

mod support;

use std::sync::Arc;

// Brings the CPU.
use tilewright as _;
use tilewright_graph::build::GraphBuilder;
use tilewright_graph::interpret::Interpreter;
use tilewright_graph::ir::{Attribute, Function, Module, Operation, Shape, Type};
use tilewright_graph::operator::Value;
use tilewright_graph::pass::optimise;
use tilewright_graph::symbolic::SymInt;
use tilewright_graph::tensor::{ElementType, HostTensor};
use tilewright_session::{Model, Session};

use support::{call, numbers};

const HEADS: usize = 3;
const DEPTH: usize = 8;

fn tokens(count: &str) -> Type {
    let extents = [1.into(), SymInt::symbol(count), HEADS.into(), DEPTH.into()];
    Type::tensor(ElementType::F32, Shape::Known(extents.to_vec()))
}

/// A step of a decoder: `R` tokens attend to the `P` tokens before and to themselves, as far as a mask lets them. The results are
/// the joined means and all keys.
fn decoder() -> Function {
    let mut graph = GraphBuilder::new("main");
    let past = [1.into(), HEADS.into(), SymInt::symbol("P"), DEPTH.into()].to_vec();
    let past = Type::tensor(ElementType::F32, Shape::Known(past));
    let (q, k, v) = (
        graph.parameter("q", tokens("R")),
        graph.parameter("k", tokens("R")),
        graph.parameter("v", tokens("R")),
    );
    let (past_keys, past_values) =
        (graph.parameter("past_keys", past.clone()), graph.parameter("past_values", past));
    let mask = Shape::Known(vec![1.into(), 1.into(), SymInt::symbol("R"), SymInt::symbol("C")]);
    let mask = graph.parameter("mask", Type::tensor(ElementType::F32, mask));
    let heads = [("perm", Attribute::Ints(vec![0, 2, 1, 3]))];
    let [q, k, v] = [q, k, v].map(|tokens| call(&mut graph, "transpose", &[tokens], &heads));
    let along = [("axis", Attribute::Int(2))];
    let (keys, values) = (
        call(&mut graph, "concat", &[past_keys, k], &along),
        call(&mut graph, "concat", &[past_values, v], &along),
    );
    let turned = call(&mut graph, "transpose", &[keys], &[("perm", Attribute::Ints(vec![0, 1, 3, 2]))]);
    let scores = call(&mut graph, "matmul", &[q, turned], &[]);
    let root = graph.constant(HostTensor::scalar((DEPTH as f32).sqrt()));
    let scaled = call(&mut graph, "div", &[scores, root], &[]);
    let masked = call(&mut graph, "add", &[scaled, mask], &[]);
    let weights = call(&mut graph, "softmax", &[masked], &[]);
    let means = call(&mut graph, "matmul", &[weights, values], &[]);
    let joined = call(&mut graph, "transpose", &[means], &heads);
    graph.finish(vec![joined, keys]).unwrap()
}

/// 0 for keys up to a token's own place, and -∞ for those behind it.
fn causal(rows: usize, past: usize) -> HostTensor {
    let columns = past + rows;
    let number = |place: usize| {
        if place % columns <= place / columns + past { 0.0 } else { f32::NEG_INFINITY }
    };
    HostTensor::new(&[1, 1, rows, columns], (0..rows * columns).map(number).collect()).unwrap()
}

#[test]
fn each_number_of_tokens_gives_what_the_interpreter_gives() {
    let function = decoder();
    let optimised = optimise(&function).unwrap();
    let is_attention = |operation: &Operation| operation.name() == "attention";
    assert!(optimised.body.bindings.iter().any(|binding| is_attention(&binding.operation)), "{optimised}");
    let model = Model::from_function(&function).unwrap();
    let mut session = Session::new(&model);
    let module = Module { functions: [(Arc::from("main"), function)].into() };
    for (rows, past) in [(1, 1), (1, 30), (2, 5), (7, 13), (16, 1), (37, 4), (67, 61)] {
        let own = |seed| numbers(&[1, rows, HEADS, DEPTH], seed);
        let before = |seed| numbers(&[1, HEADS, past, DEPTH], seed);
        let inputs = [
            ("q", own(1)),
            ("k", own(2)),
            ("v", own(3)),
            ("past_keys", before(4)),
            ("past_values", before(5)),
            ("mask", causal(rows, past)),
        ];
        let given: Vec<(&str, &HostTensor)> = inputs.iter().map(|(name, tensor)| (*name, tensor)).collect();
        let outputs = session.run(&given).unwrap();
        let arguments = inputs.iter().map(|(_, tensor)| Value::Tensor(tensor.clone())).collect();
        let expected = Interpreter::new(&module).run("main", arguments).unwrap();
        for ((_, found), expected) in outputs.iter().zip(&expected) {
            let expected = expected.as_tensor().unwrap();
            assert_eq!(found.shape(), expected.shape());
            let pairs = found.expect::<f32>().unwrap().iter().zip(expected.expect::<f32>().unwrap());
            for (found, expected) in pairs {
                let close = (found - expected).abs() <= 1e-5 * (1.0 + expected.abs());
                assert!(close, "{rows} tokens behind {past}: {found} is not {expected}");
            }
        }
    }
}
