//! Programs executed on random arguments.

use tilewright_core::dtype::DType;
use tilewright_core::expr::Constant;
use tilewright_core::index::Index;
use tilewright_core::interp::{InterpError, Interpreter, Options};
use tilewright_core::program::{Access, Program};
use tilewright_core::schedule::Rng;
use tilewright_core::tensor::AnyTensor;

/// The arguments of one call.
#[derive(Clone)]
pub(crate) struct Arguments {
    pub(crate) dims: Vec<i64>,
    pub(crate) scalars: Vec<Constant>,
    pub(crate) buffers: Vec<AnyTensor>,
}

impl Arguments {
    /// Random arguments for an unscheduled program and sizes of its dimensions. Tensors of `i32` hold small
    /// indices.
    pub(crate) fn random(program: &Program, sizes: &[i64], seed: u64) -> Self {
        let dims: Vec<_> = program.dims().map(|(var, _)| var).collect();
        let size = |var| {
            let position = dims.iter().position(|dim| *dim == var)?;
            Some(Index::constant(sizes[position]))
        };
        let buffers = program.buffer_params().enumerate().map(|(position, (id, access))| {
            let buffer = program.buffer(id);
            let number =
                |index: &Index| index.substitute(&size).as_constant().expect("a fixed extent") as usize;
            let mut shape: Vec<usize> = buffer.shape.iter().map(number).collect();
            if program.strides(id).is_some() && !shape.contains(&0) {
                shape = vec![number(&program.memory_len(id))];
            }
            let seed = seed.wrapping_add(position as u64 * 0x51_7c);
            let tensor = match (access, buffer.dtype) {
                (Access::Output, dtype) => AnyTensor::zeros(dtype, &shape),
                (_, DType::I32) => AnyTensor::random_indices(DType::I32, &shape, 8, seed),
                (_, dtype) => AnyTensor::random(dtype, &shape, seed),
            };
            tensor.unwrap_or_else(|error| panic!("{error}"))
        });
        let scalars = program.scalar_params().map(|_| Constant::float(0.25)).collect();
        Arguments { dims: sizes.to_vec(), scalars, buffers: buffers.collect() }
    }

    /// The arguments of a program whose dimensions are bound to these sizes.
    pub(crate) fn without_dims(&self) -> Self {
        Arguments { dims: Vec::new(), ..self.clone() }
    }

    /// The tensors after a program ran on them, with parallel iterations in an order of this seed.
    pub(crate) fn run(&self, program: &Program, order: Option<u64>) -> Result<Vec<AnyTensor>, InterpError> {
        let mut buffers = self.buffers.clone();
        let options = Options { parallel_order_seed: order };
        Interpreter::new(program)?.run(options, &self.dims, &self.scalars, &mut buffers)?;
        Ok(buffers)
    }
}

/// The program with some of its tensors as parts of larger ones, chosen by a seed: rows have up to three more elements behind their own. A tensor without elements
/// has no strides, so that such programs are for sizes without zero.
pub(crate) fn with_parts(mut program: Program, seed: u64) -> Program {
    let mut rng = Rng::stream(seed, 3);
    let parameters: Vec<_> = program.buffer_params().collect();
    for (id, access) in parameters {
        let buffer = program.buffer(id).clone();
        let is_possible = !buffer.dtype.is_storage_only() && access != Access::Constant;
        if rng.below(4) > 0 || !is_possible {
            continue;
        }
        let mut strides = vec![Index::constant(1); buffer.shape.len()];
        for axis in (1..buffer.shape.len()).rev() {
            let row = buffer.shape[axis].offset(rng.below(4) as i64);
            strides[axis - 1] = strides[axis].multiply(&row);
        }
        program.set_strides(id, strides);
    }
    program
}

/// Whether tensors agree up to the rounding of sums in another order.
pub(crate) fn agree(found: &[AnyTensor], expected: &[AnyTensor]) -> Result<(), String> {
    for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
        let exact = !found.dtype().is_float();
        let (relative, absolute) = if exact { (0.0, 0.0) } else { (1e-4, 1e-5) };
        let reshaped: Vec<f64> = found.to_f64_vec();
        let found =
            AnyTensor::from_f64s(expected.dtype(), &reshaped, expected.shape()).expect("the same shape");
        if !found.all_close(expected, relative, absolute) {
            let summary = found.max_error(expected);
            return Err(format!("tensor {number} differs: {summary:?}"));
        }
    }
    Ok(())
}
