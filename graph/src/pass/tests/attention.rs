//! The spellings of attention.

use super::*;

/// A graph of one input `[2, 4, R, 6]`, which serves as queries, keys and values; `logits` makes the logits of it and of its transpose.
fn attention(logits: impl Fn(&mut GraphBuilder, ValueId, ValueId) -> ValueId) -> Function {
    let mut graph = GraphBuilder::new("attention");
    let x = parameter(&mut graph, &[2.into(), 4.into(), SymInt::symbol("R"), 6.into()]);
    let turned = Attributes::none().with("perm", Attribute::Ints(vec![0, 1, 3, 2]));
    let turned = graph.call("transpose", &[x], turned).unwrap();
    let logits = logits(&mut graph, x, turned);
    let weights = graph.call("softmax", &[logits], Attributes::none()).unwrap();
    let means = graph.call("matmul", &[weights, x], Attributes::none()).unwrap();
    graph.finish(vec![means]).unwrap()
}

fn call(graph: &mut GraphBuilder, name: &str, inputs: &[ValueId]) -> ValueId {
    graph.call(name, inputs, Attributes::none()).unwrap()
}

fn number(graph: &mut GraphBuilder, number: f32) -> ValueId {
    graph.constant(HostTensor::scalar(number))
}

/// The attributes of the only attention.
fn found(function: &Function) -> (f32, i64, usize) {
    let after = optimised(function, &numbers(&[2, 4, 5, 6]));
    let calls = after.body.bindings.iter().filter_map(|binding| match &binding.operation {
        Operation::Call(call) if call.operator.name == "attention" => Some(call),
        _ => None,
    });
    let [call] = calls.collect::<Vec<_>>()[..] else { panic!("{after}") };
    let (Some(&Attribute::Float(scale)), Some(&Attribute::Int(turned))) =
        (call.attributes.get("scale"), call.attributes.get("keys_transposed"))
    else {
        panic!("{after}")
    };
    (scale, turned, call.inputs.len())
}

#[test]
fn a_scale_of_the_products_or_of_both_factors() {
    let of_products = attention(|graph, x, turned| {
        let product = call(graph, "matmul", &[x, turned]);
        let root = number(graph, 4.0);
        call(graph, "div", &[product, root])
    });
    assert_eq!(found(&of_products), (0.25, 0, 3));
    let of_factors = attention(|graph, x, turned| {
        let (half, quarter) = (number(graph, 0.5), number(graph, 0.25));
        let (queries, keys) = (call(graph, "mul", &[half, x]), call(graph, "mul", &[turned, quarter]));
        call(graph, "matmul", &[queries, keys])
    });
    assert_eq!(found(&of_factors), (0.125, 0, 3));
}

#[test]
fn zeros_may_replace_weights_that_are_no_numbers() {
    // The `replacement` of weights that are NaN, whether the weights are a result, too, and what is added to half of the scores.
    let spelled = |replacement: f32, weights_escape: bool, hidden: f32| {
        let mut graph = GraphBuilder::new("attention");
        let x = parameter(&mut graph, &[2.into(), 4.into(), SymInt::symbol("R"), 6.into()]);
        let mask = HostTensor::new(&[2, 1, 1, 1], vec![0.0f32, hidden]).unwrap();
        let mask = graph.constant(mask);
        let turned = Attributes::none().with("perm", Attribute::Ints(vec![0, 1, 3, 2]));
        let turned = graph.call("transpose", &[x], turned).unwrap();
        let product = call(&mut graph, "matmul", &[x, turned]);
        let logits = call(&mut graph, "add", &[product, mask]);
        let weights = call(&mut graph, "softmax", &[logits]);
        let (is_nan, other) = (call(&mut graph, "is_nan", &[weights]), number(&mut graph, replacement));
        let chosen = call(&mut graph, "where", &[is_nan, other, weights]);
        let means = call(&mut graph, "matmul", &[chosen, x]);
        let results = if weights_escape { vec![means, weights] } else { vec![means] };
        graph.finish(results).unwrap()
    };
    assert_eq!(found(&spelled(0.0, false, f32::NEG_INFINITY)), (1.0, 0, 4));
    for other in [spelled(1.0, false, -1.0), spelled(0.0, true, -1.0)] {
        let names = names(&optimised(&other, &numbers(&[2, 4, 5, 6]))).join(" ");
        assert!(!names.contains("attention"), "{names}");
    }
}

#[test]
fn masks_are_added_or_chosen() {
    let mask = |graph: &mut GraphBuilder| {
        let numbers = [0.0f32, 0.0, f32::NEG_INFINITY, 0.0, -1.0].map(|number| number).to_vec();
        graph.constant(HostTensor::new(&[1, 1, 1, 5], numbers).unwrap())
    };
    let added = attention(|graph, x, turned| {
        let (product, mask) = (call(graph, "matmul", &[x, turned]), mask(graph));
        call(graph, "add", &[mask, product])
    });
    // The product has `R` columns, and the mask five.
    assert_eq!(names(&optimised(&added, &numbers(&[2, 4, 5, 6]))).last(), Some(&"attention"));
    let chosen = attention(|graph, x, turned| {
        let product = call(graph, "matmul", &[x, turned]);
        let condition = graph.constant(HostTensor::new(&[1, 1, 1, 1], vec![false]).unwrap());
        let hidden = number(graph, f32::MIN);
        call(graph, "where", &[condition, hidden, product])
    });
    assert_eq!(found(&chosen), (1.0, 0, 4));
}

#[test]
fn what_is_no_attention_stays() {
    // The weights of a softmax along queries.
    let mut graph = GraphBuilder::new("columns");
    let x = parameter(&mut graph, &[4.into(), 4.into()]);
    let product = call(&mut graph, "matmul", &[x, x]);
    let along = Attributes::none().with("axis", Attribute::Int(0));
    let weights = graph.call("softmax", &[product], along).unwrap();
    let means = call(&mut graph, "matmul", &[weights, x]);
    let function = graph.finish(vec![means]).unwrap();
    assert_eq!(names(&optimised(&function, &numbers(&[4, 4]))), ["matmul", "softmax", "matmul"]);
    // Weights that are a result.
    let mut graph = GraphBuilder::new("weights");
    let x = parameter(&mut graph, &[4.into(), 4.into()]);
    let product = call(&mut graph, "matmul", &[x, x]);
    let weights = call(&mut graph, "softmax", &[product]);
    let means = call(&mut graph, "matmul", &[weights, x]);
    let function = graph.finish(vec![means, weights]).unwrap();
    assert_eq!(names(&optimised(&function, &numbers(&[4, 4]))), ["matmul", "softmax", "matmul"]);
    // A number that leaves something of a score that is added to it.
    let mild = attention(|graph, x, turned| {
        let product = call(graph, "matmul", &[x, turned]);
        let condition = graph.constant(HostTensor::new(&[1, 1, 1, 1], vec![true]).unwrap());
        let other = number(graph, -3.0);
        call(graph, "where", &[condition, other, product])
    });
    assert!(!names(&optimised(&mild, &numbers(&[2, 4, 5, 6]))).contains(&"attention"));
}
