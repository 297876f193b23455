//! Kernels by their programs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::available_parallelism;

use rustc_hash::FxHashMap;
use tilewright_core::program::Program;
use tilewright_runtime::Error;
use tilewright_runtime::kernel::{Kernel, explain};

type Slot = Arc<OnceLock<Result<Arc<Kernel>, Error>>>;

/// The kernels of a model. Equal programs share one.
#[derive(Default)]
pub(crate) struct Kernels(Mutex<FxHashMap<Arc<Program>, Slot>>);

impl Kernels {
    fn slot(&self, program: &Arc<Program>) -> Slot {
        // No code that could panic runs while the map is changed.
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slots.entry(Arc::clone(program)).or_default())
    }

    /// The kernel of a program whose extents are all fixed, compiled now if it was not before.
    pub(crate) fn get(&self, program: &Arc<Program>) -> Result<Arc<Kernel>, Error> {
        let slot = self.slot(program);
        slot.get_or_init(|| make(program)).clone()
    }

    /// Compiles the kernels of programs on as many threads as the machine runs.
    pub(crate) fn prepare(&self, programs: &[Arc<Program>]) {
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                // Errors are kept, and reported by the step that needs the kernel.
                let _ = self.get(program);
            }
        };
        let threads = available_parallelism().map_or(1, usize::from).min(programs.len());
        std::thread::scope(|scope| {
            (1..threads).for_each(|_| drop(scope.spawn(work)));
            work();
        });
    }

    /// How many kernels there are.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

fn make(program: &Program) -> Result<Arc<Kernel>, Error> {
    let kernel = Kernel::from_program(program.clone())?;
    // Explaining chooses a schedule and compiles it.
    explain(&kernel, &[])?;
    Ok(Arc::new(kernel))
}
