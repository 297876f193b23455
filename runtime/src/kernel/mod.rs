//! Kernels at run time: from a definition and the dimensions of a call to compiled code, looked up, made once, run.
//!
//! | module | does |
//! |---|---|
//! | `ahead` | which version a call runs while better ones are made; versions before they are needed |
//! | `origin` | where a kernel comes from, and its signature |
//! | `registry` | finds kernels by name |
//! | `instances` | kernels of generic definitions, one for each combination of element types |
//! | `state` | the program, shared by the kernel and by work in the background |
//! | `strided` | calls whose tensors are read by strides |
//! | `versions` | keeps compiled versions, one for each shape or class of shapes |
//! | `select` | chooses a schedule: exact record, nearest record, default |
//! | `nearest` | fits records of other shapes, and says where they are worth it |
//! | `buckets` | the sizes for which a kernel is tuned where a dimension takes many |
//! | `compile` | makes a version |
//! | `fault` | finds where in the definition a call failed |
//! | `explain` | reports the choice and its reason |

mod ahead;
mod buckets;
mod call;
mod compile;
mod explain;
mod fault;
mod instances;
mod nearest;
mod origin;
mod patience;
mod registry;
mod select;
mod state;
mod strided;
mod versions;

use std::fmt;
use std::sync::Arc;

use tilewright_core::device::BufferArgument;
use tilewright_core::expr::Constant;
use tilewright_core::program::Program;
use tilewright_search::records::Shape;

pub use explain::{Explanation, explain, explain_on};
pub use instances::Instances;
pub use registry::{KernelEntry, check_all, kernel, kernels, record_problems};
pub use select::Source;

use crate::definition::KernelDefinition;
use crate::error::Error;
use origin::Origin;
use state::State;

/// A kernel: its definition, and its compiled versions.
///
/// It can be called from several threads at once. A call finds its version under a shared lock; a version that does not exist
/// yet is made by the first call that needs it.
pub struct Kernel {
    origin: Origin,
}

impl Kernel {
    /// A kernel of a definition, without compiled versions.
    pub const fn new(definition: &'static KernelDefinition) -> Self {
        Kernel { origin: Origin::definition(definition) }
    }

    /// A kernel from a program that was made at run time, at the `Blocks` level: named as the program is, with the program's
    /// dimensions, scalars and tensors as its parameters. Records are found for it as for any other kernel, by the hash of
    /// the program; it is not among the [`kernels`] that are found by name.
    ///
    /// ```
    /// use tilewright_core::device::BufferArgument;
    /// use tilewright_core::program::Program;
    /// use tilewright_runtime::kernel::Kernel;
    ///
    /// let program: Program = "kernel double(N, in x: f32[N], out y: f32[N]) {
    ///   for i in 0..N {
    ///     block y(v: spatial N = i) {
    ///       y[v] = x[v] + x[v]
    ///     }
    ///   }
    /// }".parse()?;
    /// let kernel = Kernel::from_program(program)?;
    /// let (x, mut y) = (1.5f32.to_ne_bytes(), [0; 4]);
    /// kernel.reference(&[1], &[], &mut [BufferArgument::Read(&x), BufferArgument::Write(&mut y)])?;
    /// assert_eq!(f32::from_ne_bytes(y), 3.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Malformed`] when the program breaks an invariant of its level, or two of its dimensions have the same name.
    pub fn from_program(program: Program) -> Result<Self, Error> {
        Ok(Kernel { origin: Origin::program(program)? })
    }

    /// The definition in Rust; `None` for a kernel from a program.
    pub fn definition(&self) -> Option<&'static KernelDefinition> {
        match self.origin {
            Origin::Definition(definition, _) => Some(definition),
            Origin::Program(_) => None,
        }
    }

    /// The name of the function or of the program.
    pub fn name(&self) -> &str {
        self.origin.name()
    }

    /// The name with the module that the definition stands in, such as `my_crate::layers::matmul`.
    pub fn path(&self) -> String {
        match self.definition() {
            Some(definition) => format!("{}::{}", definition.module, definition.name),
            None => self.name().to_owned(),
        }
    }

    /// The names of the dimensions: symbolic ones in order of appearance, then the `usize` arguments.
    pub fn dims(&self) -> Vec<&str> {
        self.origin.dims()
    }

    /// The definition as a program at the `Blocks` level with symbolic dimensions; made once.
    ///
    /// # Errors
    /// [`Error::Definition`] when the definition has no schedulable form.
    pub fn program(&self) -> Result<&Program, Error> {
        Ok(&self.state()?.program)
    }

    /// The hash of [`Kernel::program`] under which records are kept.
    ///
    /// # Errors
    /// As [`Kernel::program`].
    pub fn hash(&self) -> Result<u64, Error> {
        Ok(self.state()?.hash)
    }

    /// The program, and what is made of it.
    #[inline]
    fn state(&self) -> Result<&Arc<State>, Error> {
        self.origin.state()
    }

    /// Computes what [`Kernel::run`] computes without a schedule and without compiled code: runs the definition as ordinary Rust, or
    /// interprets the program. Tensors are those of the host.
    ///
    /// # Errors
    /// When an argument does not fit, or an index is out of bounds.
    pub fn reference(
        &self,
        dims: &[i64],
        scalars: &[Constant],
        buffers: &mut [BufferArgument<'_>],
    ) -> Result<(), Error> {
        self.origin.reference(dims, scalars, buffers)
    }

    /// The program for given dimensions, in the order of the definition, to which schedules apply. Every
    /// access is proven to stay inside its tensor or is checked when the kernel runs.
    ///
    /// # Errors
    /// When the number of dimensions is wrong or one is negative, a tensor would be too large, or an access
    /// certainly leaves its tensor.
    pub fn program_for(&self, dims: &[i64]) -> Result<Program, Error> {
        self.origin.check_dims(dims)?;
        self.state()?.bind(dims, 0)
    }

    /// Dimensions and `usize` arguments as records name them.
    pub fn shape(&self, dims: &[i64]) -> Shape {
        state::shape(self.dims(), self.origin.symbols(), dims)
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("name", &self.name()).finish_non_exhaustive()
    }
}
