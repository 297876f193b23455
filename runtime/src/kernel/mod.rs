//! Kernels at run time: from a definition and the dimensions of a call to compiled code, looked up, made once, run.
//!
//! | module | does |
//! |---|---|
//! | `registry` | finds kernels by name |
//! | `versions` | keeps compiled versions, one for each shape or class of shapes |
//!
//! `select`
//! chooses a schedule: exact record, nearest record, default
//!
//! | `buckets` | the sizes for which a kernel is tuned where a dimension takes many |
//! | `compile` | makes a version |
//! | `fault` | finds where in the definition a call failed |
//!
//! `explain`
//! reports the choice and its reason
//!

mod buckets;
mod call;
mod compile;
mod explain;
mod fault;
mod registry;
mod select;
mod versions;

use std::fmt;
use std::sync::{OnceLock, RwLock};

use tilewright_core::build::bounds::check_in_bounds;
use tilewright_core::build::{DefinitionErrors, KernelBuilder};
use tilewright_core::device::CallError;
use tilewright_core::program::Program;
use tilewright_core::tensor::checked_len;
use tilewright_search::records::Shape;

pub use explain::{Explanation, explain, explain_on};
pub use registry::{KernelEntry, kernel, kernels, record_problems};
pub use select::Source;

use crate::definition::{KernelDefinition, ParameterKind};
use crate::error::Error;
use crate::settings::Dump;
use buckets::Buckets;
use versions::Versions;

/// A kernel: its definition, and its compiled versions.
pub struct Kernel {
    definition: &'static KernelDefinition,
    program: OnceLock<Result<Definition, DefinitionErrors>>,
    versions: Versions,
    buckets: RwLock<Buckets>,
}

/// The definition as a program.
struct Definition {
    program: Program,
    /// The hash under which records are kept.
    hash: u64,
}

impl Kernel {
    /// A kernel without compiled versions.
    pub const fn new(definition: &'static KernelDefinition) -> Self {
        let buckets = RwLock::new(Buckets::none());
        Kernel { definition, program: OnceLock::new(), versions: Versions::new(), buckets }
    }

    /// The definition.
    pub fn definition(&self) -> &'static KernelDefinition {
        self.definition
    }

    /// The function's name.
    pub fn name(&self) -> &'static str {
        self.definition.name
    }

    /// The definition as a program at the `Blocks` level with symbolic dimensions; made once.
    ///
    /// # Errors
    /// [`Error::Definition`] when the definition has no schedulable form.
    pub fn program(&self) -> Result<&Program, Error> {
        Ok(&self.symbolic()?.program)
    }

    /// The hash of [`Kernel::program`] under which records are kept.
    ///
    /// # Errors
    /// As [`Kernel::program`].
    pub fn hash(&self) -> Result<u64, Error> {
        Ok(self.symbolic()?.hash)
    }

    fn symbolic(&self) -> Result<&Definition, Error> {
        let program = self.program.get_or_init(|| {
            let mut builder = KernelBuilder::new(self.definition.name);
            (self.definition.build)(&mut builder);
            let program = builder.finish()?;
            if let Ok(dump) = Dump::requested() {
                dump.print(&format!("{} (symbolic)", self.definition.name), "definition", || {
                    program.to_string()
                });
            }
            Ok(Definition { hash: program.stable_hash(), program })
        });
        program.as_ref().map_err(|errors| Error::Definition(errors.clone()))
    }

    /// The program for given dimensions, in the order of the definition, to which schedules apply. Every
    /// access is proven to stay inside its tensor or is checked when the kernel runs.
    ///
    /// # Errors
    /// When the number of dimensions is wrong or one is negative, a tensor would be too large, or an access
    /// certainly leaves its tensor.
    pub fn program_for(&self, dims: &[i64]) -> Result<Program, Error> {
        self.check_dims(dims)?;
        self.bind(dims, 0)
    }

    /// The program with the dimensions from `first` on bound.
    fn bind(&self, dims: &[i64], first: usize) -> Result<Program, Error> {
        self.bind_where(dims, &|position| position >= first)
    }

    /// The program with some of its dimensions bound, by their positions.
    fn bind_where(&self, dims: &[i64], is_bound: &dyn Fn(usize) -> bool) -> Result<Program, Error> {
        let program = &self.symbolic()?.program;
        let sizes = program.dims().map(|(var, _)| var).zip(dims.iter().copied()).enumerate();
        let sizes: Vec<_> = sizes.filter(|(position, _)| is_bound(*position)).map(|(_, size)| size).collect();
        let bound = check_in_bounds(&program.bind_dims(&sizes))
            .map_err(|errors| Error::OutOfBounds { dims: self.shape(dims).to_string(), errors })?;
        Dump::requested()?.print(&self.describe(dims), "bound", || bound.to_string());
        Ok(bound)
    }

    /// Dimensions and `usize` arguments as records name them.
    pub fn shape(&self, dims: &[i64]) -> Shape {
        let named = self.definition.dims.iter().map(|name| (*name).to_owned()).zip(dims.iter().copied());
        let mut shape = Shape { dims: named.collect(), ..Shape::default() };
        let sizes = self.definition.dims.iter().skip(self.symbols());
        shape.params = sizes.filter_map(|name| shape.dims.remove_entry(*name)).collect();
        shape
    }

    /// How many of the dimensions are symbolic; the others are `usize` arguments.
    fn symbols(&self) -> usize {
        let parameters = self.definition.parameters.iter();
        self.definition.dims.len()
            - parameters.filter(|parameter| parameter.kind == ParameterKind::Size).count()
    }

    /// Dimensions that no call through typed tensors can have are refused here.
    fn check_dims(&self, dims: &[i64]) -> Result<(), Error> {
        let (expected, found) = (self.definition.dims.len(), dims.len());
        if expected != found {
            return Err(CallError::Count { sort: "dimensions", expected, found }.into());
        }
        if let Some((name, &value)) = self.definition.dims.iter().zip(dims).find(|(_, value)| **value < 0) {
            return Err(CallError::Dimension { name: (*name).to_owned(), value }.into());
        }
        for parameter in self.definition.tensors() {
            let shape = self.definition.shape(parameter, dims)?;
            checked_len(&shape, parameter.dtype.bytes())?;
        }
        Ok(())
    }

    /// `matmul (M=64, N=64, K=64)`
    fn describe(&self, dims: &[i64]) -> String {
        format!("{} ({})", self.name(), self.shape(dims))
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("name", &self.definition.name).finish_non_exhaustive()
    }
}
