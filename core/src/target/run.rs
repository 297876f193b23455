//! A target with the options of a run on it.

use std::sync::Arc;

use super::Target;

/// Options of a run that schedules, features and records depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunOptions {
    threads: u32,
}

impl RunOptions {
    /// The options of a run that uses a whole target: one thread for each core of a CPU, one thread beside a GPU.
    pub fn of(target: &Target) -> Self {
        match target {
            Target::Cpu(cpu) => Self::with_threads(cpu.cores as usize),
            Target::Gpu(_) => Self::with_threads(1),
        }
    }

    /// The options of a run on a number of threads; 0 counts as 1.
    pub fn with_threads(threads: usize) -> Self {
        RunOptions { threads: u32::try_from(threads).unwrap_or(u32::MAX).max(1) }
    }

    /// The CPU threads that execute a kernel, 1 or more. Kernels of a GPU do not depend on it.
    pub fn threads(&self) -> u32 {
        self.threads
    }
}

/// The circumstances that a schedule is made for: a target, and the options of runs on it. Cheap to clone.
///
/// A target alone stands for runs that use all of it.
///
/// ```
/// use tilewright_core::target::{RunContext, Target};
///
/// let whole = RunContext::from(Target::generic_cpu());
/// assert_eq!(whole.threads(), 4);
/// assert_eq!(whole.with_threads(2).threads(), 2);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RunContext {
    /// The device.
    pub target: Arc<Target>,
    /// The options of a run.
    pub options: RunOptions,
}

impl RunContext {
    /// The circumstances of runs with some options.
    pub fn new(target: impl Into<Arc<Target>>, options: RunOptions) -> Self {
        RunContext { target: target.into(), options }
    }

    /// The same target with another number of threads; 0 counts as 1.
    pub fn with_threads(&self, threads: usize) -> Self {
        RunContext { target: Arc::clone(&self.target), options: RunOptions::with_threads(threads) }
    }

    /// The CPU threads that execute a kernel, 1 or more.
    pub fn threads(&self) -> u32 {
        self.options.threads()
    }

    /// The number of workers that execute parallel iterations: threads of a CPU, multiprocessors of a GPU; 1 or more.
    pub fn workers(&self) -> u32 {
        match &*self.target {
            Target::Cpu(_) => self.threads(),
            Target::Gpu(gpu) => gpu.multiprocessors.max(1),
        }
    }
}

impl From<Arc<Target>> for RunContext {
    fn from(target: Arc<Target>) -> Self {
        RunContext { options: RunOptions::of(&target), target }
    }
}

impl From<&Arc<Target>> for RunContext {
    fn from(target: &Arc<Target>) -> Self {
        Arc::clone(target).into()
    }
}

impl From<Target> for RunContext {
    fn from(target: Target) -> Self {
        Arc::new(target).into()
    }
}

impl From<&RunContext> for RunContext {
    fn from(context: &RunContext) -> Self {
        context.clone()
    }
}

impl From<super::CpuTarget> for RunContext {
    fn from(cpu: super::CpuTarget) -> Self {
        Target::from(cpu).into()
    }
}

impl From<super::GpuTarget> for RunContext {
    fn from(gpu: super::GpuTarget) -> Self {
        Target::from(gpu).into()
    }
}
