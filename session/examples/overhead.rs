//! The time that a session spends on a node besides running its kernel.
//!
//! A chain of kernels on a few numbers is run by a session, and the same kernel is called as often directly. Prints both for one node.

use std::time::Instant;

use tilewright as _;
use tilewright_core::device::BufferArgument;
use tilewright_graph::build::GraphBuilder;
use tilewright_graph::ir::{Attributes, Type};
use tilewright_graph::tensor::{ElementType, HostTensor};
use tilewright_session::{Model, Session};

/// Nodes of the chain.
const NODES: usize = 256;

/// Rounds, of which the shortest counts.
const ROUNDS: usize = 200;

/// The shortest time of `NODES` nodes, as nanoseconds of one.
fn shortest(mut run: impl FnMut()) -> f64 {
    let time = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    (0..ROUNDS).map(|_| time(&mut run)).fold(f64::INFINITY, f64::min) * 1e9 / NODES as f64
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tilewright::set_threads(1);
    let mut graph = GraphBuilder::new("main");
    let mut value = graph.parameter("x", Type::fixed(ElementType::F32, &[1, 16]));
    for _ in 0..NODES {
        value = graph.call("softmax", &[value], Attributes::none())?;
    }
    let model = Model::from_function(&graph.finish(vec![value])?)?;
    let mut session = Session::new(&model);
    let x = HostTensor::new(&[1, 16], (0..16).map(|n| n as f32).collect())?;
    let inputs = [("x", &x)];
    let uses = session.kernels(&inputs)?;
    let mut outputs = session.run(&inputs)?;
    let whole = shortest(|| session.run_into(&inputs, &mut outputs).expect("it ran before"));
    let (kernel, dims) = (&uses[0].kernel, &uses[0].dims);
    let (from, mut to) = (x.bytes().expect("numbers have bytes").to_vec(), vec![0; 64]);
    let direct = shortest(|| {
        for _ in 0..NODES {
            let mut buffers = [BufferArgument::Read(&from), BufferArgument::Write(&mut to)];
            kernel.run(dims, &[], &mut buffers).expect("it ran before");
        }
    });
    println!(
        "a node: {whole:.0} ns in a session, {direct:.0} ns called directly, {:.0} ns between",
        whole - direct
    );
    Ok(())
}
