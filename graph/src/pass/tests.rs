mod attention;
mod normalisation;
mod quantised;

use super::*;
use crate::build::GraphBuilder;
use crate::interpret::Interpreter;
use crate::ir::{Attribute, Attributes, Module, Operation, Shape, Type, ValueId};
use crate::operator::Value;
use crate::symbolic::SymInt;
use crate::tensor::{ElementType, HostTensor};

fn parameter(graph: &mut GraphBuilder, extents: &[SymInt]) -> ValueId {
    graph.parameter("x", Type::tensor(ElementType::F32, Shape::Known(extents.to_vec())))
}

/// Runs a function and its optimised form; both must agree. Gives the optimised form.
fn optimised(function: &Function, argument: &HostTensor) -> Function {
    let after = optimise(function).unwrap();
    let run = |function: &Function| {
        let module = Module { functions: [(function.name.clone(), function.clone())].into() };
        Interpreter::new(&module).run(&function.name, vec![Value::Tensor(argument.clone())]).unwrap()
    };
    let close = |before: &Value, after: &Value| {
        let numbers = |value: &Value| value.as_tensor().unwrap().cast(ElementType::F64).unwrap();
        let (before, after) = (numbers(before), numbers(after));
        assert_eq!(before.shape(), after.shape());
        for (x, y) in before.as_slice::<f64>().unwrap().iter().zip(after.as_slice::<f64>().unwrap()) {
            assert!((x - y).abs() <= 1e-5 * (1.0 + x.abs()), "{x} and {y}");
        }
    };
    run(function).iter().zip(&run(&after)).for_each(|(before, after)| close(before, after));
    after
}

fn names(function: &Function) -> Vec<&'static str> {
    function
        .body
        .bindings
        .iter()
        .map(|binding| binding.operation.name())
        .filter(|name| *name != "constant")
        .collect()
}

fn numbers(shape: &[usize]) -> HostTensor {
    let count = shape.iter().product::<usize>();
    HostTensor::new(shape, (0..count).map(|n| (n % 7) as f32 - 2.5).collect()).unwrap()
}

#[test]
fn shape_arithmetic_of_a_reshape_disappears() {
    let mut graph = GraphBuilder::new("flatten");
    let x = parameter(&mut graph, &[SymInt::symbol("N"), 4.into(), 5.into()]);
    let shape = graph.call("shape", &[x], Attributes::none()).unwrap();
    let one = graph.constant(HostTensor::vector(vec![1i64]));
    let channels = graph.call("gather", &[shape, one], Attributes::none()).unwrap();
    let open = graph.constant(HostTensor::vector(vec![-1i64]));
    let wanted = Attributes::none().with("axis", Attribute::Int(0));
    let wanted = graph.call("concat", &[channels, open], wanted).unwrap();
    let y = graph.call("reshape", &[x, wanted], Attributes::none()).unwrap();
    assert_eq!(graph.ty(y).to_string(), "f32[4, 5*N]");
    let function = graph.finish(vec![y]).unwrap();
    assert_eq!(names(&optimised(&function, &numbers(&[3, 4, 5]))), ["reshape"]);
}

#[test]
fn transpositions_cancel_and_equal_calls_merge() {
    let mut graph = GraphBuilder::new("merge");
    let x = parameter(&mut graph, &[2.into(), SymInt::symbol("N")]);
    let turned = graph.call("transpose", &[x], Attributes::none()).unwrap();
    let back = graph.call("transpose", &[turned], Attributes::none()).unwrap();
    let zero = graph.constant(HostTensor::scalar(0f32));
    let same = graph.call("add", &[zero, back], Attributes::none()).unwrap();
    let left = graph.call("exp", &[same], Attributes::none()).unwrap();
    let right = graph.call("exp", &[x], Attributes::none()).unwrap();
    let y = graph.call("mul", &[left, right], Attributes::none()).unwrap();
    let function = graph.finish(vec![y]).unwrap();
    assert_eq!(names(&optimised(&function, &numbers(&[2, 3]))), ["exp", "mul"]);
}

#[test]
fn a_constant_that_broadcasts_its_operand_stays() {
    let mut graph = GraphBuilder::new("broadcast");
    let x = parameter(&mut graph, &[1.into()]);
    let zeros = graph.constant(HostTensor::full(&[3], 0f32).unwrap());
    let y = graph.call("add", &[x, zeros], Attributes::none()).unwrap();
    let function = graph.finish(vec![y]).unwrap();
    assert_eq!(names(&optimised(&function, &numbers(&[1]))), ["add"]);
}

#[test]
fn a_reversed_slice_of_everything_stays() {
    let mut graph = GraphBuilder::new("reverse");
    let x = parameter(&mut graph, &[4.into()]);
    let list = |graph: &mut GraphBuilder, number: i64| graph.constant(HostTensor::vector(vec![number]));
    let inputs =
        [x, list(&mut graph, -1), list(&mut graph, i64::MIN), list(&mut graph, 0), list(&mut graph, -1)];
    let y = graph.call("slice", &inputs, Attributes::none()).unwrap();
    let function = graph.finish(vec![y]).unwrap();
    assert_eq!(names(&optimised(&function, &numbers(&[4]))), ["slice"]);
}

#[test]
fn normalisations_become_weights_or_arithmetic_where_the_convolution_is_used_twice() {
    let build = |twice: bool| {
        let mut graph = GraphBuilder::new("normalise");
        let x = parameter(&mut graph, &[1.into(), 2.into(), SymInt::symbol("W")]);
        let weights = graph.constant(numbers(&[3, 2, 2]));
        let y = graph.call("conv", &[x, weights], Attributes::none()).unwrap();
        let mut inputs = vec![y];
        for offset in [1.0f32, 0.5, -0.25, 2.0] {
            inputs.push(graph.constant(HostTensor::vector(vec![offset, offset + 1.0, offset + 2.0])));
        }
        let z = graph.call("batch_normalization", &inputs, Attributes::none()).unwrap();
        graph.finish(if twice { vec![z, y] } else { vec![z] }).unwrap()
    };
    assert_eq!(names(&optimised(&build(false), &numbers(&[1, 2, 5]))), ["conv"]);
    assert_eq!(names(&optimised(&build(true), &numbers(&[1, 2, 5]))), ["conv", "mul", "add"]);
}

#[test]
fn gates_are_multiplied_by_the_reciprocal_of_their_bound() {
    let build = |bound: f32, gates: bool| {
        let mut graph = GraphBuilder::new("gate");
        let x = parameter(&mut graph, &[2.into(), SymInt::symbol("W")]);
        let [three, zero, six, bound] =
            [3.0, 0.0, 6.0, bound].map(|number| graph.constant(HostTensor::scalar(number)));
        let moved = graph.call("add", &[x, three], Attributes::none()).unwrap();
        let gate = graph.call("clip", &[moved, zero, six], Attributes::none()).unwrap();
        let gated = if gates { graph.call("mul", &[gate, x], Attributes::none()).unwrap() } else { gate };
        let y = graph.call("div", &[gated, bound], Attributes::none()).unwrap();
        graph.finish(vec![y]).unwrap()
    };
    let input = numbers(&[2, 5]);
    assert_eq!(names(&optimised(&build(6.0, true), &input)), ["add", "clip", "mul", "mul"]);
    assert_eq!(names(&optimised(&build(6.0, false), &input)), ["add", "clip", "mul"]);
    assert_eq!(names(&optimised(&build(5.0, true), &input)), ["add", "clip", "mul", "div"]);
}

#[test]
fn known_branches_are_taken_and_captured_values_stay() {
    let mut graph = GraphBuilder::new("branch");
    let x = parameter(&mut graph, &[2.into()]);
    let outer = graph.call("exp", &[x], Attributes::none()).unwrap();
    let condition = graph.constant(HostTensor::scalar(true));
    graph.open_body();
    let inner = graph.call("neg", &[outer], Attributes::none()).unwrap();
    let then_body = graph.close_body(vec![inner]).unwrap();
    graph.open_body();
    let else_body = graph.close_body(vec![x]).unwrap();
    let y = graph.conditional(condition, then_body, else_body).unwrap()[0];
    let function = graph.finish(vec![y]).unwrap();
    assert_eq!(names(&optimised(&function, &numbers(&[2]))), ["exp", "neg"]);
}

/// A loop carries weights that it never changes; a product of them, and of a constant inside, is the same in each iteration.
#[test]
fn a_loop_keeps_what_changes() {
    let mut graph = GraphBuilder::new("loop");
    let x = parameter(&mut graph, &[3.into(), 3.into()]);
    let count = graph.constant(HostTensor::scalar(4i64));
    let weights = graph.constant(numbers(&[3, 3]));
    graph.open_body();
    graph.parameter("i", Type::fixed(ElementType::I64, &[]));
    let condition = graph.parameter("c", Type::fixed(ElementType::Bool, &[]));
    let ty = Type::fixed(ElementType::F32, &[3, 3]);
    let (state, carried) = (graph.parameter("state", ty.clone()), graph.parameter("weights", ty));
    let call = |graph: &mut GraphBuilder, name: &str, inputs: &[ValueId]| {
        graph.call(name, inputs, Attributes::none()).unwrap()
    };
    let turned = call(&mut graph, "transpose", &[carried]);
    let same = call(&mut graph, "matmul", &[x, turned]);
    let mixed = call(&mut graph, "add", &[state, same]);
    let next = call(&mut graph, "tanh", &[mixed]);
    let body = graph.close_body(vec![condition, next, carried]).unwrap();
    let repeated =
        crate::ir::Loop { trip_count: Some(count), condition: None, carried: vec![x, weights], body };
    let results = graph.repeat(repeated).unwrap();
    let function = graph.finish(results).unwrap();
    function.verify().unwrap();
    let after = optimised(&function, &numbers(&[3, 3]));
    after.verify().unwrap();
    assert_eq!(names(&after), ["matmul", "loop"]);
    let Some(Operation::Loop(inner)) = after.body.bindings.last().map(|binding| &binding.operation) else {
        panic!("the loop is the last operation")
    };
    assert_eq!((inner.carried.len(), inner.body.bindings.len()), (1, 2));
}

/// A loop whose parameters have no declared types: one value keeps its shape, one grows in each iteration.
#[test]
fn a_carried_value_keeps_the_type_that_all_iterations_give_it() {
    let mut graph = GraphBuilder::new("loop");
    let x = parameter(&mut graph, &[SymInt::symbol("N"), 3.into()]);
    let count = graph.constant(HostTensor::scalar(3i64));
    graph.open_body();
    graph.parameter("i", Type::fixed(ElementType::I64, &[]));
    let condition = graph.parameter("c", Type::fixed(ElementType::Bool, &[]));
    let (state, rows) = (graph.parameter("state", Type::Unknown), graph.parameter("rows", Type::Unknown));
    let gate = graph.call("sigmoid", &[state], Attributes::none()).unwrap();
    let next = graph.call("mul", &[state, gate], Attributes::none()).unwrap();
    let along = Attributes::none().with("axis", Attribute::Int(0));
    let more = graph.call("concat", &[rows, next], along).unwrap();
    let body = graph.close_body(vec![condition, next, more]).unwrap();
    let repeated = crate::ir::Loop { trip_count: Some(count), condition: None, carried: vec![x, x], body };
    let results = graph.repeat(repeated).unwrap();
    let function = graph.finish(results).unwrap();
    let after = optimised(&function, &numbers(&[2, 3]));
    let Some(Operation::Loop(inner)) = after.body.bindings.last().map(|binding| &binding.operation) else {
        panic!("the loop is the last operation")
    };
    let ty = |place: usize| after.value(inner.body.parameters[place]).ty.to_string();
    assert_eq!((ty(2), ty(3)), ("f32[N, 3]".to_owned(), "unknown".to_owned()));
    assert_eq!(after.value(after.body.results[0]).ty.to_string(), "f32[N, 3]");
}

#[test]
fn outputs_that_nobody_uses_are_left_out() {
    let mut graph = GraphBuilder::new("statistics");
    let x = parameter(&mut graph, &[2.into(), 3.into()]);
    let scale = graph.constant(HostTensor::vector(vec![1f32, 2.0, 3.0]));
    let normal = graph
        .call_operator("layer_normalization", vec![Some(x), Some(scale)], Attributes::none(), 3)
        .unwrap();
    let kept = graph.call_operator("dropout", vec![Some(normal[0])], Attributes::none(), 2).unwrap();
    let parts = Attributes::none().with("axis", Attribute::Int(1));
    let parts = graph.call_operator("split", vec![Some(kept[0])], parts, 3).unwrap();
    let function = graph.finish(vec![parts[0]]).unwrap();
    let after = optimised(&function, &numbers(&[2, 3]));
    assert_eq!(names(&after), ["layer_normalization", "split"]);
    let outputs = |name: &str| {
        let binding = after.body.bindings.iter().find(|binding| binding.operation.name() == name);
        binding.unwrap().outputs.len()
    };
    // A split has as many parts as it has outputs.
    assert_eq!((outputs("layer_normalization"), outputs("split")), (1, 3));
}

#[test]
fn random_numbers_are_neither_merged_nor_folded() {
    let mut graph = GraphBuilder::new("noise");
    let x = parameter(&mut graph, &[2.into(), 3.into()]);
    let shape = graph.constant(numbers(&[2, 3]));
    let [first, second] =
        [(); 2].map(|()| graph.call("random_normal_like", &[shape], Attributes::none()).unwrap());
    let difference = graph.call("sub", &[first, second], Attributes::none()).unwrap();
    let y = graph.call("add", &[x, difference], Attributes::none()).unwrap();
    let function = graph.finish(vec![y]).unwrap();
    let after = optimise(&function).unwrap();
    assert_eq!(names(&after), ["random_normal_like", "random_normal_like", "sub", "add"]);
}

#[test]
fn a_conversion_to_the_type_of_a_value_is_one_to_a_known_type() {
    let mut graph = GraphBuilder::new("like");
    let x = parameter(&mut graph, &[2.into(), 3.into()]);
    let other = graph.constant(HostTensor::scalar(1f64));
    let wide = graph.call("cast_like", &[x, other], Attributes::none()).unwrap();
    let function = graph.finish(vec![wide]).unwrap();
    assert_eq!(names(&optimised(&function, &numbers(&[2, 3]))), ["cast"]);
}

/// `Gemm` of `[N, 3, 4]` with other extents while it is computed; `restored` is the shape of the result, and `bias` that of what is added.
fn gemm_of_rows(stacked: [i64; 2], restored: &[i64], bias: &[usize], transposed: i64) -> Function {
    let mut graph = GraphBuilder::new("rows");
    let x = parameter(&mut graph, &[SymInt::symbol("N"), 3.into(), 4.into()]);
    let wanted = graph.constant(HostTensor::vector(stacked.to_vec()));
    let flat = graph.call("reshape", &[x, wanted], Attributes::none()).unwrap();
    let depth = stacked[1] as usize;
    let matrix = graph.constant(numbers(&if transposed == 1 { [6, depth] } else { [depth, 6] }));
    let bias = graph.constant(numbers(bias));
    let attributes = Attributes::none().with("transB", Attribute::Int(transposed));
    let product = graph.call("gemm", &[flat, matrix, bias], attributes).unwrap();
    let wanted = graph.constant(HostTensor::vector(restored.to_vec()));
    let y = graph.call("reshape", &[product, wanted], Attributes::none()).unwrap();
    let y = graph.call("relu", &[y], Attributes::none()).unwrap();
    graph.finish(vec![y]).unwrap()
}

#[test]
fn rows_are_not_stacked_for_a_product() {
    let argument = numbers(&[2, 3, 4]);
    for transposed in [0, 1] {
        for bias in [&[6][..], &[1, 6], &[1]] {
            let function = gemm_of_rows([-1, 4], &[-1, 3, 6], bias, transposed);
            assert_eq!(names(&optimised(&function, &argument)), ["matmul", "add", "relu"]);
        }
    }
    // Other rows, another stack of rows, and a bias of each row.
    for other in [
        gemm_of_rows([-1, 12], &[-1, 1, 6], &[6], 0),
        gemm_of_rows([-1, 4], &[3, -1, 6], &[6], 0),
        gemm_of_rows([6, 4], &[-1, 3, 6], &[6, 1], 0),
    ] {
        let names = names(&optimised(&other, &argument)).join(" ");
        assert!(names.contains("gemm"), "{names}");
    }
}

/// The extents of the second input of each call of an operator, where it is constant.
fn weights_of(function: &Function, name: &str) -> Vec<Vec<usize>> {
    let constant = |value: ValueId| {
        function.body.bindings.iter().find_map(|binding| match &binding.operation {
            Operation::Constant(tensor) if binding.outputs[0] == value => Some(tensor.shape().to_vec()),
            _ => None,
        })
    };
    let weights = |operation: &Operation| match operation {
        Operation::Call(call) if call.operator.name == name => constant(call.inputs[1]?),
        _ => None,
    };
    function.body.bindings.iter().filter_map(|binding| weights(&binding.operation)).collect()
}

#[test]
fn products_of_one_input_are_joined_with_what_follows_them() {
    let mut graph = GraphBuilder::new("heads");
    let x = parameter(&mut graph, &[2.into(), SymInt::symbol("S"), 6.into()]);
    let mut projected = |width: usize, bias: bool, heads: i64| {
        let weights = graph.constant(numbers(&[6, width]));
        let mut y = graph.call("matmul", &[x, weights], Attributes::none()).unwrap();
        if bias {
            let bias = graph.constant(numbers(&[width]));
            y = graph.call("add", &[bias, y], Attributes::none()).unwrap();
        }
        let shape = graph.constant(HostTensor::vector(vec![2i64, -1, heads, 4]));
        graph.call("reshape", &[y, shape], Attributes::none()).unwrap()
    };
    let all = vec![
        projected(8, true, 2),
        projected(4, true, 1),
        projected(4, true, 1),
        projected(4, false, 1),
        projected(8, false, 2),
    ];
    let function = graph.finish(all).unwrap();
    let after = optimised(&function, &numbers(&[2, 5, 6]));
    assert_eq!(weights_of(&after, "matmul"), [[6, 16], [6, 12]]);
    assert_eq!(names(&after).iter().filter(|name| **name == "add").count(), 1);
}

#[test]
fn convolutions_of_one_input_are_joined_where_equal_calls_follow() {
    let mut graph = GraphBuilder::new("branches");
    let x = parameter(&mut graph, &[1.into(), 3.into(), 5.into(), 5.into()]);
    let mut branch = |channels: usize, kernel: usize, activation: &str| {
        let weights = graph.constant(numbers(&[channels, 3, kernel, kernel]));
        let y = graph.call("conv", &[x, weights], Attributes::none()).unwrap();
        let y = match activation {
            "silu" => {
                let gate = graph.call("sigmoid", &[y], Attributes::none()).unwrap();
                graph.call("mul", &[y, gate], Attributes::none()).unwrap()
            }
            name => graph.call(name, &[y], Attributes::none()).unwrap(),
        };
        let axes = Attributes::none().with("axis", Attribute::Int(1));
        graph.call("softmax", &[y], axes).unwrap()
    };
    let all = vec![
        branch(4, 1, "silu"),
        branch(2, 1, "relu"),
        branch(3, 1, "silu"),
        branch(5, 1, "relu"),
        branch(4, 3, "relu"),
    ];
    let function = graph.finish(all).unwrap();
    let after = optimised(&function, &numbers(&[1, 3, 5, 5]));
    let found = weights_of(&after, "conv");
    assert_eq!(found, [vec![7, 3, 1, 1], vec![7, 3, 1, 1], vec![4, 3, 3, 3]]);
}

#[test]
fn products_that_leave_their_kernel_or_the_graph_stay_alone() {
    let mut graph = GraphBuilder::new("gate");
    let x = parameter(&mut graph, &[SymInt::symbol("S"), 6.into()]);
    let product = |graph: &mut GraphBuilder| {
        let weights = graph.constant(numbers(&[6, 8]));
        graph.call("matmul", &[x, weights], Attributes::none()).unwrap()
    };
    let [gate, up, left, right, result] = [(); 5].map(|()| product(&mut graph));
    let gate = graph.call("sigmoid", &[gate], Attributes::none()).unwrap();
    let gated = graph.call("mul", &[gate, up], Attributes::none()).unwrap();
    let chances = graph.call("softmax", &[gated], Attributes::none()).unwrap();
    // Each would read the other's result in its own kernel.
    let sum = graph.call("add", &[left, right], Attributes::none()).unwrap();
    let sum = graph.call("softmax", &[sum], Attributes::none()).unwrap();
    let function = graph.finish(vec![chances, sum, result]).unwrap();
    let after = join_products::join_products(&function).unwrap();
    assert_eq!(weights_of(&after, "matmul").len(), 5);
}
