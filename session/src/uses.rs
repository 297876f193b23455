//! Which kernels a call runs, and how often.

use std::sync::{Arc, Mutex, PoisonError};

use tilewright_runtime::kernel::Kernel;

use crate::plan::{Action, Plan};

/// A kernel of a model at the sizes of a call.
#[derive(Clone)]
pub struct KernelUse {
    /// The kernel.
    pub kernel: Arc<Kernel>,
    /// The values of its dimensions, in the order of [`Kernel::dims`].
    pub dims: Vec<i64>,
    /// How often the call runs it.
    pub steps: usize,
}

/// Counts the kernels of a call.
#[derive(Default)]
pub(crate) struct Uses(Mutex<Vec<KernelUse>>);

impl Uses {
    /// Counts a run of a kernel.
    pub(crate) fn count(&self, kernel: &Arc<Kernel>, dims: &[i64]) {
        let mut uses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |known: &&mut KernelUse| Arc::ptr_eq(&known.kernel, kernel) && known.dims == dims;
        match uses.iter_mut().find(same) {
            Some(known) => known.steps += 1,
            None => uses.push(KernelUse { kernel: Arc::clone(kernel), dims: dims.to_vec(), steps: 1 }),
        }
    }

    /// Counts the steps of a plan.
    pub(crate) fn count_steps(&self, plan: &Plan) {
        for step in &plan.steps {
            if let Action::Kernel(kernel, dims) = &step.action {
                self.count(kernel, dims);
            }
        }
    }

    /// The kernels in the order of their first runs.
    pub(crate) fn into_kernels(self) -> Vec<KernelUse> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
