//! The results that are made from a kernel's program. Calls share them with work in the background, which may outlive the kernel.

use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use smallvec::SmallVec;
use tilewright_core::analysis::scope::blocks;
use tilewright_core::build::bounds::check_in_bounds;
use tilewright_core::device::CallError;
use tilewright_core::program::Program;
use tilewright_core::stmt::{Iter, Symbol};
use tilewright_core::tensor::checked_len;
use tilewright_search::records::Shape;

use super::buckets::Buckets;
use super::patience::Cost;
use super::strided::StridedStates;
use super::versions::Versions;
use crate::error::Error;
use crate::settings::Dump;

/// A kernel's program, and the versions that are made of it.
pub(super) struct State {
    /// At the `Blocks` level, with symbolic dimensions.
    pub(super) program: Program,
    /// The hash under which records are kept.
    pub(super) hash: u64,
    /// The names of the dimensions: symbolic ones, then `usize` arguments.
    pub(super) dims: Vec<Symbol>,
    /// How many of the dimensions are symbolic.
    pub(super) symbols: usize,
    /// How many blocks the program has.
    pub(super) blocks: usize,
    pub(super) versions: Versions,
    /// How long it takes to make an own version.
    pub(super) cost: Cost,
    /// The same kernel for tensors that are read by strides.
    pub(super) strided: StridedStates,
    /// The kernel for dense tensors, whose records count, if this one is for strided ones.
    pub(super) dense: Option<Arc<State>>,
    buckets: RwLock<Buckets>,
    /// Whether no access leaves its tensor, for all sizes but zero.
    is_sound: OnceLock<bool>,
}

impl State {
    /// For a program whose last dimensions are `usize` arguments.
    pub(super) fn new(program: Program, sizes: usize) -> Self {
        let dims: Vec<Symbol> = program.dims().map(|(_, name)| name.clone()).collect();
        State {
            hash: program.stable_hash(),
            blocks: blocks(&program.body).len(),
            symbols: dims.len().saturating_sub(sizes),
            dims,
            program,
            versions: Versions::new(),
            cost: Cost::default(),
            strided: StridedStates::default(),
            dense: None,
            buckets: RwLock::new(Buckets::none()),
            is_sound: OnceLock::new(),
        }
    }

    /// The kernel's name.
    pub(super) fn name(&self) -> &str {
        &self.program.name
    }

    /// The program with the dimensions from `first` on bound.
    pub(super) fn bind(&self, dims: &[i64], first: usize) -> Result<Program, Error> {
        self.bind_where(dims, &|position| position >= first)
    }

    /// The program with some of its dimensions bound, by their positions.
    pub(super) fn bind_where(
        &self,
        dims: &[i64],
        is_bound: &dyn Fn(usize) -> bool,
    ) -> Result<Program, Error> {
        let sizes = self.program.dims().map(|(var, _)| var).zip(dims.iter().copied()).enumerate();
        let sizes: Vec<_> = sizes.filter(|(position, _)| is_bound(*position)).map(|(_, size)| size).collect();
        let bound = check_in_bounds(&self.program.for_sizes(&sizes))
            .map_err(|errors| Error::OutOfBounds { dims: self.shape(dims).to_string(), errors })?;
        Dump::requested()?.print(&self.describe(dims), "bound", || bound.to_string());
        Ok(bound)
    }

    /// Refuses dimensions for which the definition leaves a tensor. Where it never does, nothing is looked at.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`].
    pub(super) fn check_bounds(&self, dims: &[i64]) -> Result<(), Error> {
        // Proofs for all sizes suppose that there are elements.
        if dims.contains(&0) || !self.is_sound() {
            self.bind(dims, 0)?;
        }
        Ok(())
    }

    /// Whether no access leaves its tensor, for all sizes but zero: none is checked when the kernel runs, either.
    fn is_sound(&self) -> bool {
        let is_unchanged = || check_in_bounds(&self.program).is_ok_and(|checked| checked == self.program);
        *self.is_sound.get_or_init(is_unchanged)
    }

    /// The program at a shape of a record; `None` when it is no shape of this kernel.
    pub(super) fn program_at(&self, shape: &Shape) -> Option<Program> {
        if let Some(dense) = &self.dense {
            return dense.program_at(shape);
        }
        let value = |name: &Symbol| shape.dims.get(&**name).or_else(|| shape.params.get(&**name)).copied();
        let dims = self.dims.iter().map(value).collect::<Option<Vec<i64>>>()?;
        self.tensor_shapes(&dims).ok()?;
        let sizes: Vec<_> = self.program.dims().map(|(var, _)| var).zip(dims).collect();
        Some(self.program.for_sizes(&sizes))
    }

    /// How many points the blocks have together for these dimensions, where that depends on nothing else.
    pub(super) fn points(&self, dims: &[i64]) -> Option<f64> {
        let size =
            |var| self.program.dims().zip(dims).find(|((own, _), _)| *own == var).map(|(_, size)| *size);
        let extent = |iter: &Iter| Some(iter.extent.evaluate(&size)?.max(0) as f64);
        blocks(&self.program.body)
            .into_iter()
            .map(|block| block.iters.iter().map(extent).product::<Option<f64>>())
            .sum()
    }

    /// Dimensions and `usize` arguments as records name them.
    pub(super) fn shape(&self, dims: &[i64]) -> Shape {
        if let Some(dense) = &self.dense {
            return dense.shape(&dims[..dense.dims.len()]);
        }
        shape(self.dims.iter().map(|name| &**name), self.symbols, dims)
    }

    /// `matmul (M=64, N=64, K=64)`
    pub(super) fn describe(&self, dims: &[i64]) -> String {
        format!("{} ({})", self.name(), self.shape(dims))
    }

    /// The shape of each tensor, which fits into the address space.
    ///
    /// # Errors
    /// [`CallError::Dimension`] and [`Error::Shape`] when one does not.
    pub(super) fn tensor_shapes(&self, dims: &[i64]) -> Result<Vec<Vec<usize>>, Error> {
        let program = &self.program;
        let sizes: SmallVec<[_; 4]> = program.dims().map(|(var, _)| var).zip(dims.iter().copied()).collect();
        let size = |var| sizes.iter().find(|(dim, _)| *dim == var).map(|(_, size)| *size);
        let shape = |id| {
            let buffer = program.buffer(id);
            let extent = |extent: Option<i64>| {
                let (name, value) = (buffer.name.to_string(), extent.unwrap_or(i64::MAX));
                usize::try_from(value).map_err(|_| CallError::Dimension { name, value })
            };
            let extents = buffer.shape.iter().map(|index| extent(index.evaluate(&size)));
            let shape = extents.collect::<Result<Vec<usize>, CallError>>()?;
            checked_len(&shape, buffer.dtype.bytes())?;
            Ok(shape)
        };
        program.buffer_params().map(|(id, _)| shape(id)).collect()
    }

    /// The dimensions with symbolic ones rounded up to powers of two, which have tiles of every kind; as they are when
    /// no tensor can have the rounded ones.
    pub(super) fn typical(&self, dims: &[i64]) -> Vec<i64> {
        let round = |(position, &dim): (usize, &i64)| match u64::try_from(dim) {
            Ok(size) if position < self.symbols => size.next_power_of_two().try_into().unwrap_or(dim),
            _ => dim,
        };
        let rounded: Vec<i64> = dims.iter().enumerate().map(round).collect();
        if self.tensor_shapes(&rounded).is_ok() { rounded } else { dims.to_vec() }
    }

    /// The buckets that there are.
    pub(super) fn buckets(&self) -> Buckets {
        self.buckets.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Uses other buckets; false when they are those that there are.
    pub(super) fn replace_buckets(&self, buckets: Buckets) -> bool {
        let mut own = self.buckets.write().unwrap_or_else(PoisonError::into_inner);
        let differs = *own != buckets;
        *own = buckets;
        differs
    }
}

/// The dimensions by name, of which the first `symbols` are symbolic and the others `usize` arguments.
pub(super) fn shape<'n>(names: impl IntoIterator<Item = &'n str>, symbols: usize, dims: &[i64]) -> Shape {
    let mut named = names.into_iter().map(str::to_owned).zip(dims.iter().copied());
    let symbolic = named.by_ref().take(symbols).collect();
    Shape { dims: symbolic, params: named.collect() }
}
