//! Random graphs of tests, of which the environment chooses how many.

use tilewright_graph::ir::Function;
use tilewright_graph::tensor::HostTensor;
use tilewright_session::{Model, Session};

use crate::compare::{agree, interpret};

/// A number of the environment.
fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Random choices: the same for the same seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1))
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % bound
    }
}

/// Compares sessions of random graphs with the interpreter, for each number of rows. A graph has one input `x`; `input` makes its elements of a shape and a seed.
pub(crate) fn compare_random(
    build: fn(u64) -> Function,
    cases: u64,
    rows: &[usize],
    input: fn(&[usize], usize) -> HostTensor,
    session_of: &dyn Fn(&Model) -> Session,
) {
    let first = from_environment("TILEWRIGHT_SEED", 1);
    for seed in first..first + from_environment("TILEWRIGHT_CASES", cases) {
        // Shown where a comparison fails.
        println!("seed {seed}");
        let function = build(seed);
        let mut session = session_of(&Model::from_function(&function).unwrap());
        let extents = function.value(function.body.parameters[0]).ty.extents().unwrap();
        let inner: Vec<usize> =
            extents[1..].iter().map(|extent| extent.as_constant().unwrap() as usize).collect();
        for &rows in rows {
            let input = input(&[&[rows], &inner[..]].concat(), rows);
            let outputs = session.run(&[("x", &input)]).unwrap();
            agree(&outputs, &interpret(&function, vec![input.into()]));
        }
    }
}
