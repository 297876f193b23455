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
        self.get_near(instance, None, device)
    }

    /// As [`Kernels::get`], with a default schedule that is chosen near that of another instance.
    fn get_near(
        &self,
        instance: &Instance,
        other: Option<&Instance>,
        device: DeviceId,
    ) -> Result<Arc<Kernel>, Error> {
        let Instance { program, dims, bounds } = instance;
        let slot = self.with_slots(|slots| Arc::clone(slots.entry(Arc::clone(program)).or_default()));
        let make = || {
            let kernel = Kernel::from_program(Program::clone(program))?;
            let names: Vec<String> = kernel.dims().into_iter().map(str::to_owned).collect();
            let buckets = bounds.iter().map(|(position, bounds)| (&*names[*position], &bounds[..]));
            let kernel = kernel.with_buckets(&buckets.collect::<Vec<_>>())?;
            let known = other.and_then(|other| Some((self.get(other, device).ok()?, &other.dims)));
            match known {
                Some((other, other_dims)) => kernel.prepare_near(device, dims, &other, other_dims)?,
                None => kernel.prepare_on(device, std::slice::from_ref(dims))?,
            }
            Ok(Arc::new(kernel))
        };
        slot.get_or_init(make).clone()
    }

    /// Makes the kernels that do not exist yet, for a device, on as many threads as the machine runs: one for each program, each with code for all of
    /// its dimensions here. Of programs that differ in numbers alone, one schedule is chosen with care, and those for similar sizes near it.
    pub(crate) fn prepare(&self, instances: &[&Instance], device: DeviceId) {
        let mut new: Vec<&Instance> = Vec::new();
        self.with_slots(|slots| {
            new.extend(instances.iter().filter(|instance| !slots.contains_key(&instance.program)));
        });
        let mut seen = FxHashSet::default();
        new.retain(|&instance| seen.insert(instance));
        let mut families: FxHashMap<String, Vec<Member<'_>>> = FxHashMap::default();
        // Threads that need the same kernel would wait for each other: a second instance of a program comes last.
        let (mut first, mut others, mut again) = (Vec::new(), Vec::new(), Vec::new());
        let mut programs = FxHashSet::default();
        for instance in new {
            if !programs.insert(&instance.program) {
                again.push((instance, None));
                continue;
            }
            let own = Member::of(instance);
            let family = families.entry(without_numbers(&instance.program)).or_default();
            match own.nearest(family) {
                Some(other) => others.push((instance, Some(other))),
                None => {
                    family.push(own);
                    first.push((instance, None));
                }
            }
        }
        for group in [first, others, again] {
            on_all_cores(&group, |&(instance, other)| {
                // Errors are kept, and reported by the step that needs the kernel.
                if let Ok(kernel) = self.get_near(instance, other, device) {
                    let _ = kernel.prepare_on(device, std::slice::from_ref(&instance.dims));
                }
            });
        }
    }

    /// How many kernels there are.
    pub(crate) fn len(&self) -> usize {
        self.with_slots(|slots| slots.len())
    }
}

/// The ratio of two programs' extents up to which the schedule of one is a good beginning for the other. With 3, some choices for quantised networks get much
/// worse by the draft model's score; with 1.5, more choices are made with care, and get no better.
const NEAR: f64 = 2.0;

/// An instance among those whose programs differ in numbers alone, with the extents of its tensors.
struct Member<'i> {
    instance: &'i Instance,
    extents: Vec<i64>,
}

impl<'i> Member<'i> {
    fn of(instance: &'i Instance) -> Self {
        let Instance { program, dims, .. } = instance;
        let sizes: Vec<_> = program.dims().map(|(var, _)| var).zip(dims.iter().copied()).collect();
        let size = |var| sizes.iter().find(|(own, _)| *own == var).map(|(_, size)| *size);
        let tensors = program.buffer_params().map(|(id, _)| program.buffer(id));
        let extents = tensors.flat_map(|tensor| &tensor.shape);
        Member { instance, extents: extents.map(|extent| extent.evaluate(&size).unwrap_or(1)).collect() }
    }

    /// The one of others whose extents are nearest, if they are near.
    fn nearest(&self, others: &[Member<'i>]) -> Option<&'i Instance> {
        let ratio = |(own, other): (&i64, &i64)| {
            let (own, other) = (*own.max(&1) as f64, *other.max(&1) as f64);
            (own / other).max(other / own)
        };
        let distance = |other: &Member<'_>| {
            (self.extents.len() == other.extents.len())
                .then(|| self.extents.iter().zip(&other.extents).map(ratio).fold(1.0, f64::max))
        };
        let measured = others.iter().filter_map(|other| Some((distance(other)?, other.instance)));
        let near = measured.filter(|(distance, _)| *distance <= NEAR);
        near.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, instance)| instance)
    }
}

/// The text of a program without its numbers.
fn without_numbers(program: &Program) -> String {
    let mut text = program.to_string();
    text.retain(|character| !character.is_ascii_digit());
    text
}

/// Does something with each item, on as many threads as the machine runs.
fn on_all_cores<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(item);
        }
    };
    let threads = available_parallelism().map_or(1, usize::from).min(items.len());
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
}
