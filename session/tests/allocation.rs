//! A call with shapes that came before allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

// Brings the CPU.
use tilewright as _;
use tilewright_graph::build::GraphBuilder;
use tilewright_graph::ir::{Attribute, Attributes, Function, Shape, Type};
use tilewright_graph::symbolic::SymInt;
use tilewright_graph::tensor::{ElementType, HostTensor};
use tilewright_session::{Model, Session};

struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator as it is; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller's promises are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are the same.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller's promises are the same.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn numbers(shape: &[usize]) -> HostTensor {
    let length = shape.iter().product::<usize>();
    HostTensor::new(shape, (0..length).map(|n| ((n * 37) % 61) as f32 / 20.0 - 1.5).collect()).unwrap()
}

/// Products, a softmax, a view, a result that is an input, one that is a constant, and one of truth values.
fn network() -> Function {
    let mut graph = GraphBuilder::new("main");
    let rows = Type::tensor(ElementType::F32, Shape::Known(vec![SymInt::symbol("N"), 24.into()]));
    let x = graph.parameter("x", rows);
    let call = |graph: &mut GraphBuilder, name: &str, inputs: &[_]| {
        graph.call(name, inputs, Attributes::none()).unwrap()
    };
    let (first, second) = (graph.constant(numbers(&[24, 40])), graph.constant(numbers(&[40, 24])));
    let wide = call(&mut graph, "matmul", &[x, first]);
    let active = call(&mut graph, "relu", &[wide]);
    let narrow = call(&mut graph, "matmul", &[active, second]);
    let sum = call(&mut graph, "add", &[narrow, x]);
    let last = graph.call("softmax", &[sum], Attributes::none().with("axis", Attribute::Int(-1))).unwrap();
    let shape = graph.constant(HostTensor::vector(vec![-1i64]));
    let flat = call(&mut graph, "reshape", &[last, shape]);
    let positive = call(&mut graph, "greater", &[sum, x]);
    graph.finish(vec![flat, positive, x, first]).unwrap()
}

#[test]
fn a_known_shape_allocates_nothing() {
    tilewright::set_threads(1);
    let model = Model::from_function(&network()).unwrap();
    let mut session = Session::new(&model);
    let inputs: Vec<HostTensor> = [5, 3].iter().map(|&rows| numbers(&[rows, 24])).collect();
    for input in &inputs {
        let expected = session.run(&[("x", input)]).unwrap();
        let mut outputs = session.run(&[("x", input)]).unwrap();
        session.run_into(&[("x", input)], &mut outputs).unwrap();
        let before = COUNT.get();
        session.run_into(&[("x", input)], &mut outputs).unwrap();
        let count = COUNT.get() - before;
        assert_eq!(outputs, expected);
        assert_eq!(count, 0, "allocations with {} rows", input.shape()[0]);
    }
    // Other shapes, and results that somebody else holds, are given as new tensors.
    let mut outputs = session.run(&[("x", &inputs[0])]).unwrap();
    let held = outputs[0].clone();
    session.run_into(&[("x", &inputs[1])], &mut outputs).unwrap();
    assert_eq!(outputs, session.run(&[("x", &inputs[1])]).unwrap());
    assert_eq!(held, session.run(&[("x", &inputs[0])]).unwrap()[0]);
}
