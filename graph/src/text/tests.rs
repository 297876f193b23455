use std::sync::Arc;

use crate::build::GraphBuilder;
use crate::ir::{Attribute, Attributes, Function, Loop, Shape, Type};
use crate::symbolic::SymInt;
use crate::tensor::{ElementType, HostTensor};

const TEXT: &str = "\
function \"scale\"(%0 \"x\": f32[N, div(H + 1, 2)]) {
  %1: f32[2] = constant f32[2] {2.0, -inf}
  %2 \"y \\\"z\\\"\": f32[N, div(H + 1, 2)] = leaky_relu(%0) {alpha = float 0.5} from \"node\"
  %3: any[..] = clip(%2, _, _)
  return %3, %1
}
";

#[test]
fn what_is_printed_reads_back() {
    let function: Function = TEXT.parse().unwrap();
    assert_eq!(function.to_string(), TEXT);
}

#[test]
fn control_flow_and_all_kinds_of_attributes_read_back() {
    let mut graph = GraphBuilder::new("main");
    let x = graph.parameter("x", Type::tensor(ElementType::I64, Shape::Known(vec![SymInt::symbol("N")])));
    let text: Arc<str> = "a\n\"b\"\u{e9}".into();
    graph.constant(HostTensor::vector(vec![text]));
    let condition = graph.constant(HostTensor::scalar(true));
    graph.open_body();
    graph.parameter("i", Type::fixed(ElementType::I64, &[]));
    graph.parameter("c", Type::fixed(ElementType::Bool, &[]));
    let carried = graph.parameter("s", Type::Unknown);
    let next = graph.call("add", &[carried, x], Attributes::none()).unwrap();
    let body = graph.close_body(vec![condition, next]).unwrap();
    let trip_count = Some(graph.constant(HostTensor::scalar(3i64)));
    let last = graph.repeat(Loop { trip_count, condition: None, carried: vec![x], body }).unwrap()[0];
    let perm = Attributes::none().with("perm", Attribute::Ints(vec![0]));
    let y = graph.call("transpose", &[last], perm).unwrap();
    let cast = graph
        .call("cast", &[y], Attributes::none().with("to", Attribute::Element(ElementType::F16)))
        .unwrap();
    let function = graph.finish(vec![cast]).unwrap();
    let read: Function = function.to_string().parse().unwrap();
    assert_eq!(read.to_string(), function.to_string());
    assert_eq!(read.body, function.body);
}

#[test]
fn texts_that_are_no_functions_are_refused_with_their_place() {
    let cases = [
        ("function", "line 1, column 9: expected `\"`"),
        (
            "function \"f\"() {\n  %0: f32[] = nothing()\n  return\n}",
            "line 2, column 22: there is no operator `nothing`",
        ),
        ("function \"f\"() { return %0 }", "value `%0` is used before it is bound"),
        ("function \"f\"(%9999999: f32[]) { return }", "too large a number"),
        (
            "function \"f\"() { %0: f32[2] = constant f32[2] {1} return %0 }",
            "shape [2] has 2 elements, found 1",
        ),
    ];
    for (text, reason) in cases {
        let error = text.parse::<Function>().unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
    let nested = format!("function \"f\"(%0: {}", "(".repeat(100_000));
    assert!(nested.parse::<Function>().is_err());
}
