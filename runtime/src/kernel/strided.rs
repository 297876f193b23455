//! Calls whose tensors have strides: columns of a matrix, a transposed matrix, a row that is repeated.
//!
//! For each set of strided tensors, a kernel has a second program, in which the distances of these tensors are parameters.
//! They are treated like `usize` arguments: constants of the compiled code. Records of the kernel count for it as well, because
//! loops and blocks are the same.

use std::sync::{Arc, PoisonError, RwLock};

use smallvec::SmallVec;
use tilewright_core::device::{BufferArgument, CallError};
use tilewright_core::expr::Constant;
use tilewright_core::ids::BufferId;
use tilewright_core::index::Index;
use tilewright_core::program::{Access, Param, Program, VariableKind};
use tilewright_core::strides::lie_apart;

use super::Kernel;
use super::state::State;
use super::versions::DeviceGeneration;
use crate::devices::DeviceId;
use crate::error::Error;

impl Kernel {
    /// As [`Kernel::run`], where tensors need not be dense: for each tensor the distance of neighbours along each dimension in elements, or `None` for
    /// a dense one. The memory of a tensor with strides ends with its last element. The elements of one that is written [lie apart](lie_apart), and what lies between
    /// them stays as it is.
    ///
    /// # Errors
    /// As [`Kernel::run`], and when elements that are written would lie on each other, or a tensor has another number of strides than dimensions.
    pub fn run_strided(
        &self,
        dims: &[i64],
        strides: &[Option<&[usize]>],
        scalars: &[Constant],
        buffers: &mut [BufferArgument<'_>],
    ) -> Result<(), Error> {
        if strides.iter().all(Option::is_none) {
            return self.run(dims, scalars, buffers);
        }
        let state = self.state()?;
        let positions: SmallVec<[usize; 4]> =
            strides.iter().enumerate().filter(|(_, strides)| strides.is_some()).map(|(at, _)| at).collect();
        let mut all: SmallVec<[i64; 8]> = SmallVec::from_slice(dims);
        for &position in &positions {
            let (tensor, rank, access) = described(&state.program, position)?;
            let given = strides[position].unwrap_or_default();
            if given.len() != rank {
                let problem = format!("has {rank} dimensions, and {} strides were given", given.len());
                return Err(CallError::Tensor { name: tensor, problem }.into());
            }
            for &stride in given {
                let stride = i64::try_from(stride);
                all.push(stride.map_err(|_| refusal(&tensor, "has a stride that is too large"))?);
            }
            if access.is_written() {
                let shape = state.tensor_shapes(dims)?.swap_remove(position);
                let shape: SmallVec<[i64; 8]> = shape.iter().map(|&extent| extent as i64).collect();
                if !lie_apart(&shape, &all[all.len() - rank..]) {
                    return Err(refusal(
                        &tensor,
                        "is written, and its strides do not keep its elements apart",
                    ));
                }
            }
        }
        let (strided, at) = (state.with_strides(&positions), DeviceGeneration::now(DeviceId::DEFAULT));
        strided.call(&all, at, || self.origin.check_dims(dims), scalars, buffers)
    }
}

/// The name and the rank of a tensor, and what is done with it.
fn described(program: &Program, position: usize) -> Result<(String, usize, Access), Error> {
    let Some((id, access)) = program.buffer_params().nth(position) else {
        let (expected, found) = (program.buffer_params().count(), position + 1);
        return Err(CallError::Count { sort: "tensors", expected, found }.into());
    };
    let buffer = program.buffer(id);
    Ok((buffer.name.to_string(), buffer.shape.len(), access))
}

fn refusal(name: &str, problem: &str) -> Error {
    CallError::Tensor { name: name.to_owned(), problem: problem.to_owned() }.into()
}

/// The states of one kernel for strided tensors, by the positions of these tensors.
#[derive(Default)]
pub(super) struct StridedStates {
    made: RwLock<Vec<(Vec<usize>, Arc<State>)>>,
}

impl StridedStates {
    fn find(&self, positions: &[usize]) -> Option<Arc<State>> {
        let made = self.made.read().unwrap_or_else(PoisonError::into_inner);
        made.iter().find(|(known, _)| known == positions).map(|(_, state)| Arc::clone(state))
    }

    fn get_or_make(&self, positions: &[usize], make: impl FnOnce() -> Arc<State>) -> Arc<State> {
        if let Some(state) = self.find(positions) {
            return state;
        }
        let state = make();
        let mut made = self.made.write().unwrap_or_else(PoisonError::into_inner);
        // Of several threads, the first one counts.
        if let Some((_, known)) = made.iter().find(|(known, _)| known == positions) {
            return Arc::clone(known);
        }
        made.push((positions.to_vec(), Arc::clone(&state)));
        state
    }
}

impl State {
    /// The same for calls that pass strides of the tensors at these positions, behind the dimensions.
    fn with_strides(self: &Arc<Self>, positions: &[usize]) -> Arc<State> {
        self.strided.get_or_make(positions, || {
            let (program, added) = with_strides(&self.program, positions);
            let sizes = self.dims.len() - self.symbols;
            let mut state = State::new(program, sizes + added);
            (state.hash, state.dense) = (self.hash, Some(Arc::clone(self)));
            Arc::new(state)
        })
    }
}

/// The program with parameters for the strides of the tensors at these positions, behind its dimensions; and their number.
fn with_strides(program: &Program, positions: &[usize]) -> (Program, usize) {
    let mut strided = program.clone();
    let tensors: Vec<(BufferId, Access)> = program.buffer_params().collect();
    let mut added = Vec::new();
    for &position in positions {
        let (id, _) = tensors[position];
        let buffer = program.buffer(id);
        let mut strides = Vec::new();
        for axis in 0..buffer.shape.len() {
            let name = format!("{}_stride{axis}", buffer.name);
            let var = strided.add_variable(name, VariableKind::Dim);
            strides.push(Index::var(var));
            added.push(Param::Dim(var));
        }
        strided.set_strides(id, strides);
    }
    let count = added.len();
    let params = Arc::make_mut(&mut strided.params);
    let dims = params.iter().filter(|param| matches!(param, Param::Dim(_))).count();
    params.splice(dims..dims, added);
    for &position in positions {
        let (id, _) = tensors[position];
        for param in params.iter_mut() {
            // Nothing is kept of a tensor that is no whole one.
            if *param == Param::Buffer(id, Access::Constant) {
                *param = Param::Buffer(id, Access::Input);
            }
        }
    }
    (strided, count)
}
