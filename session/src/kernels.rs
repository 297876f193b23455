//! Kernels by their programs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::available_parallelism;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_core::program::Program;
use tilewright_runtime::kernel::Kernel;
use tilewright_runtime::{DeviceId, Error};

/// A program with values for its dimensions.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Instance {
    pub(crate) program: Arc<Program>,
    pub(crate) dims: Vec<i64>,
    /// The bounds of dimensions with buckets, by their positions.
    pub(crate) bounds: Vec<(usize, Vec<i64>)>,
}

type Slot = Arc<OnceLock<Result<Arc<Kernel>, Error>>>;

/// The kernels of a model. Equal programs share one.
#[derive(Default)]
pub(crate) struct Kernels(Mutex<FxHashMap<Arc<Program>, Slot>>);

impl Kernels {
    fn with_slots<T>(&self, look: impl FnOnce(&mut FxHashMap<Arc<Program>, Slot>) -> T) -> T {
        // No code that could panic runs while the map is changed.
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The kernel of a program. One that is new is compiled for these dimensions on a device now; one that served other dimensions
    /// before runs the version that it has, until a better one is made beside the calls.
    pub(crate) fn get(&self, instance: &Instance, device: DeviceId) -> Result<Arc<Kernel>, Error> {
        let Instance { program, dims, bounds } = instance;
        let slot = self.with_slots(|slots| Arc::clone(slots.entry(Arc::clone(program)).or_default()));
        let make = || {
            let kernel = Kernel::from_program(Program::clone(program))?;
            let names: Vec<String> = kernel.dims().into_iter().map(str::to_owned).collect();
            let buckets = bounds.iter().map(|(position, bounds)| (&*names[*position], &bounds[..]));
            let kernel = kernel.with_buckets(&buckets.collect::<Vec<_>>())?;
            kernel.prepare_on(device, std::slice::from_ref(dims))?;
            Ok(Arc::new(kernel))
        };
        slot.get_or_init(make).clone()
    }

    /// Makes the kernels that do not exist yet, for a device, on as many threads as the machine runs: one for each program, each with code for all of
    /// its dimensions here.
    pub(crate) fn prepare(&self, instances: &[&Instance], device: DeviceId) {
        let mut new: Vec<&Instance> = Vec::new();
        self.with_slots(|slots| {
            new.extend(instances.iter().filter(|instance| !slots.contains_key(&instance.program)));
        });
        let mut seen = FxHashSet::default();
        new.retain(|&instance| seen.insert(instance));
        // Threads that need the same kernel would wait for each other.
        let mut programs = FxHashSet::default();
        let (first, others): (Vec<&Instance>, Vec<&Instance>) =
            new.into_iter().partition(|&instance| programs.insert(&instance.program));
        let new: Vec<&Instance> = first.into_iter().chain(others).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(instance) = new.get(next.fetch_add(1, Ordering::Relaxed)) {
                // Errors are kept, and reported by the step that needs the kernel.
                if let Ok(kernel) = self.get(instance, device) {
                    let _ = kernel.prepare_on(device, std::slice::from_ref(&instance.dims));
                }
            }
        };
        let threads = available_parallelism().map_or(1, usize::from).min(new.len());
        std::thread::scope(|scope| {
            (1..threads).for_each(|_| drop(scope.spawn(work)));
            work();
        });
    }

    /// How many kernels there are.
    pub(crate) fn len(&self) -> usize {
        self.with_slots(|slots| slots.len())
    }
}
