//! Products with matrices of integers in blocks, compared with the graph's interpreter: few rows and many, and the tails of blocks and panels.

mod support;

use std::sync::Arc;

// Brings the CPU.
use tilewright as _;
use tilewright_graph::build::GraphBuilder;
use tilewright_graph::interpret::Interpreter;
use tilewright_graph::ir::{Attribute, Module, Shape, Type};
use tilewright_graph::operator::Value;
use tilewright_graph::symbolic::SymInt;
use tilewright_graph::tensor::{ElementType, HostTensor};
use tilewright_session::{Model, Session};

use support::{call, numbers};

/// A matrix: bits, panels, blocks, bytes in a block, lanes, columns.
type Sizes = [usize; 6];

fn bytes(shape: &[usize]) -> HostTensor {
    let byte = |place: usize| (place * 83 + place / 7) as u8;
    HostTensor::new(shape, (0..shape.iter().product()).map(byte).collect()).unwrap()
}

fn compare([bits, panels, blocks, size, lanes, columns]: Sizes, has_offsets: bool) {
    let depth = blocks * size * 8 / bits;
    let mut graph = GraphBuilder::new("main");
    let extents = vec![1.into(), SymInt::symbol("R"), depth.into()];
    let x = graph.parameter("x", Type::tensor(ElementType::F32, Shape::Known(extents)));
    let mut inputs = vec![x, graph.constant(bytes(&[panels, blocks, size, lanes]))];
    inputs.push(graph.constant(numbers(&[panels, blocks, lanes], 3)));
    if has_offsets {
        inputs.push(graph.constant(numbers(&[panels, blocks, lanes], 5)));
    }
    let attributes = [("bits", Attribute::Int(bits as i64)), ("columns", Attribute::Int(columns as i64))];
    let y = call(&mut graph, "block_product", &inputs, &attributes);
    let function = graph.finish(vec![y]).unwrap();
    let model = Model::from_function(&function).unwrap();
    let mut session = Session::new(&model);
    let module = Module { functions: [(Arc::from("main"), function)].into() };
    for rows in [1, 2, 5, 37] {
        let x = numbers(&[1, rows, depth], rows);
        let outputs = session.run(&[("x", &x)]).unwrap();
        let expected = Interpreter::new(&module).run("main", vec![Value::Tensor(x)]).unwrap();
        let expected = expected[0].as_tensor().unwrap();
        let (_, found) = outputs.iter().next().unwrap();
        assert_eq!(found.shape(), [1, rows, columns]);
        // The largest sum of magnitudes: integers up to half their range, scales and offsets up to 1.6.
        let magnitude = depth as f32 * 1.6 * 1.6 * ((1 << (bits - 1)) + 1) as f32;
        let pairs = found.expect::<f32>().unwrap().iter().zip(expected.expect::<f32>().unwrap());
        for (found, expected) in pairs {
            let close = (found - expected).abs() <= 1e-6 * magnitude;
            assert!(close, "{rows} rows by {bits} bits, {columns} columns: {found} is not {expected}");
        }
    }
}

#[test]
fn products_with_blocks_give_what_the_interpreter_gives() {
    for sizes in [[4, 3, 2, 8, 32, 90], [2, 1, 3, 4, 17, 17], [8, 2, 2, 16, 32, 64]] {
        compare(sizes, false);
        compare(sizes, true);
    }
}

#[test]
fn a_single_column_has_a_product() {
    compare([4, 1, 5, 16, 1, 1], true);
    compare([4, 1, 5, 16, 8, 1], false);
}
