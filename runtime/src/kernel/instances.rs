//! Kernels of a generic definition: one for each combination of element types that the program names.

use std::sync::{Mutex, OnceLock, PoisonError};

use tilewright_core::dtype::DType;

use super::Kernel;
use crate::definition::KernelDefinition;

/// The kernels of one generic definition. They are made when they are first asked for, and stay until the program ends.
#[derive(Debug, Default)]
pub struct Instances {
    first: OnceLock<Box<Instance>>,
}

/// One kernel, in a list to which kernels are only added: looking one up takes no lock.
#[derive(Debug)]
struct Instance {
    types: Vec<DType>,
    kernel: Kernel,
    next: OnceLock<Box<Instance>>,
}

/// Every instance of this program.
static MADE: Mutex<Vec<&'static Kernel>> = Mutex::new(Vec::new());

impl Instances {
    /// No kernel yet.
    pub const fn new() -> Self {
        Instances { first: OnceLock::new() }
    }

    /// The kernel for element types. `define` makes its definition, whose name is that of the function; the kernel's name has
    /// the types behind it: `add_f32`.
    pub fn get(&'static self, types: &[DType], define: impl Fn() -> KernelDefinition) -> &'static Kernel {
        let mut place = &self.first;
        loop {
            let mut made = false;
            let instance = place.get_or_init(|| {
                made = true;
                Box::new(Instance::new(types, define()))
            });
            if made {
                MADE.lock().unwrap_or_else(PoisonError::into_inner).push(&instance.kernel);
            }
            if instance.types == types {
                return &instance.kernel;
            }
            place = &instance.next;
        }
    }
}

impl Instance {
    fn new(types: &[DType], mut definition: KernelDefinition) -> Self {
        let names = types.iter().map(|dtype| format!("_{dtype}"));
        let name = std::iter::once(definition.name.to_owned()).chain(names).collect::<String>();
        // Definitions live as long as the program: there is one for each kernel.
        definition.name = Box::leak(name.into_boxed_str());
        let kernel = Kernel::new(Box::leak(Box::new(definition)));
        Instance { types: types.to_vec(), kernel, next: OnceLock::new() }
    }
}

/// The kernels of generic definitions that the program has asked for so far.
pub(super) fn made() -> Vec<&'static Kernel> {
    MADE.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
