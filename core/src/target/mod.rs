//! The targets that programs are compiled for.
//!
//! [`Target`] describes a device in the terms that schedules and legality need, and [`RunContext`] adds the options of a
//! run on it. A [`Device`](crate::device::Device) compiles for a target and runs programs.

mod cpu;
mod gpu;
mod run;

use std::fmt;

pub use cpu::CpuTarget;
pub use gpu::{ComputeCapability, GpuTarget};
pub use run::{RunContext, RunOptions};

use crate::intrinsic::IntrinsicSet;
use crate::stmt::Symbol;

/// A device that programs are compiled for, in the terms that schedules, legality and cost models need.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A multi-core processor.
    Cpu(CpuTarget),
    /// An NVIDIA GPU.
    Gpu(GpuTarget),
}

/// The kind of a target; schedule rules are registered for one, or for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TargetKind {
    /// A multi-core processor.
    Cpu,
    /// An NVIDIA GPU.
    Gpu,
}

/// Code for one kind of target was applied to a target of another kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("this needs a target of the kind `{expected}`, and the target is a `{found}`")]
pub struct WrongTargetKind {
    /// The kind that the code is for.
    pub expected: TargetKind,
    /// The kind of the target.
    pub found: TargetKind,
}

impl TargetKind {
    /// All kinds.
    pub const ALL: [TargetKind; 2] = [TargetKind::Cpu, TargetKind::Gpu];

    /// The name used by schedule rules and records.
    pub const fn name(self) -> &'static str {
        match self {
            TargetKind::Cpu => "cpu",
            TargetKind::Gpu => "gpu",
        }
    }

    /// The kind of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl Target {
    /// A plain processor of unknown make; see [`CpuTarget::generic`].
    pub fn generic_cpu() -> Self {
        CpuTarget::generic().into()
    }

    /// A GPU that has no more than any of compute capability 8.0 or later; see [`GpuTarget::generic`].
    pub fn generic_gpu() -> Self {
        GpuTarget::generic().into()
    }

    /// The kind.
    pub const fn kind(&self) -> TargetKind {
        match self {
            Target::Cpu(_) => TargetKind::Cpu,
            Target::Gpu(_) => TargetKind::Gpu,
        }
    }

    /// The facts of a CPU.
    ///
    /// # Errors
    /// When the target is no CPU.
    pub fn cpu(&self) -> Result<&CpuTarget, WrongTargetKind> {
        match self {
            Target::Cpu(cpu) => Ok(cpu),
            Target::Gpu(_) => Err(self.wrong_kind(TargetKind::Cpu)),
        }
    }

    /// The facts of a GPU.
    ///
    /// # Errors
    /// When the target is no GPU.
    pub fn gpu(&self) -> Result<&GpuTarget, WrongTargetKind> {
        match self {
            Target::Gpu(gpu) => Ok(gpu),
            Target::Cpu(_) => Err(self.wrong_kind(TargetKind::Gpu)),
        }
    }

    fn wrong_kind(&self, expected: TargetKind) -> WrongTargetKind {
        WrongTargetKind { expected, found: self.kind() }
    }

    /// The names of the [tensor intrinsics](crate::intrinsic) that code generation emits.
    pub fn intrinsics(&self) -> &[Symbol] {
        match self {
            Target::Cpu(cpu) => &cpu.intrinsics,
            Target::Gpu(gpu) => &gpu.intrinsics,
        }
    }

    /// The descriptions of tensor intrinsics that schedules may name.
    pub fn descriptions(&self) -> &IntrinsicSet {
        match self {
            Target::Cpu(cpu) => &cpu.descriptions,
            Target::Gpu(gpu) => &gpu.descriptions,
        }
    }

    /// Whether code may use an instruction-set feature of a name, such as `avx2` of a CPU and `sm_80` of a GPU.
    pub fn has_feature(&self, name: &str) -> bool {
        match self {
            Target::Cpu(cpu) => cpu.features.contains(name),
            Target::Gpu(gpu) => gpu.has_feature(name),
        }
    }
}

impl From<CpuTarget> for Target {
    fn from(cpu: CpuTarget) -> Self {
        Target::Cpu(cpu)
    }
}

impl From<GpuTarget> for Target {
    fn from(gpu: GpuTarget) -> Self {
        Target::Gpu(gpu)
    }
}

impl fmt::Display for TargetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
