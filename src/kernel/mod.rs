//! Kernels at run time.

use tilewright_core::build::{DefinitionErrors, KernelBuilder};
use tilewright_core::expr::Constant;
use tilewright_core::program::Program;
use tilewright_core::target::BufferArgument;

use crate::definition::KernelDefinition;
use crate::error::Error;

/// A kernel: its definition, and what is known of it at run time.
#[derive(Debug)]
pub struct Kernel {
    definition: &'static KernelDefinition,
}

/// A kernel in the registry.
#[derive(Clone, Copy, Debug)]
pub struct KernelEntry {
    /// The kernel.
    pub kernel: fn() -> &'static Kernel,
}

inventory::collect!(KernelEntry);

impl Kernel {
    /// A kernel that has not been called yet.
    pub const fn new(definition: &'static KernelDefinition) -> Self {
        Kernel { definition }
    }

    /// The definition.
    pub fn definition(&self) -> &'static KernelDefinition {
        self.definition
    }

    /// Every kernel that is linked into this program, in the order of their modules and names.
    pub fn all() -> Vec<&'static Kernel> {
        let mut kernels: Vec<_> = inventory::iter::<KernelEntry>().map(|entry| (entry.kernel)()).collect();
        kernels.sort_by_key(|kernel| (kernel.definition.module, kernel.definition.name));
        kernels
    }

    /// The definition as a program.
    ///
    /// # Errors
    /// [`DefinitionErrors`] when the definition has no schedulable form.
    pub fn program(&self) -> Result<Program, DefinitionErrors> {
        let mut builder = KernelBuilder::new(self.definition.name);
        (self.definition.build)(&mut builder);
        builder.finish()
    }

    /// Runs the kernel: a value for each dimension, the scalars, and the tensors (arguments, then results).
    ///
    /// # Errors
    /// When an argument does not fit, or an index that depends on data is out of bounds.
    pub fn run(
        &self,
        dims: &[i64],
        scalars: &[Constant],
        buffers: &mut [BufferArgument<'_>],
    ) -> Result<(), Error> {
        (self.definition.reference)(dims, scalars, buffers)
    }
}
