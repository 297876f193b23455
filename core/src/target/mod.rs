//! What a program is compiled for, and the boundary to the backends.
//!
//! [`Target`] describes a device in the terms that schedules and legality need, and [`RunContext`] adds the options of a
//! run on it. [`Backend`] and [`Executable`] are what the search and the facade know of a backend; backends see
//! only programs of the `Flat` [level](crate::verify::Level).

mod cpu;
mod gpu;
mod run;

use std::fmt;

pub use cpu::CpuTarget;
pub use gpu::{ComputeCapability, GpuTarget};
pub use run::{RunContext, RunOptions};

use crate::expr::Constant;
use crate::program::Program;
use crate::stmt::Symbol;
use crate::tensor::IdentifiedBytes;

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

    /// Whether code may use an instruction-set feature of a name, such as `avx2` of a CPU and `sm_80` of a GPU.
    pub fn has_feature(&self, name: &str) -> bool {
        match self {
            Target::Cpu(cpu) => cpu.features.contains(name),
            Target::Gpu(gpu) => gpu.runs_code_for(name),
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

/// A compiler for one kind of machine.
pub trait Backend: Send + Sync {
    /// The machine that programs are compiled for.
    fn target(&self) -> &Target;

    /// Compiles programs of the `Flat` level, one result each. Several programs at once share the fixed costs.
    fn compile(&self, programs: &[&Program]) -> Vec<Result<Box<dyn Executable>, BackendError>>;
}

/// A compiled kernel. Safe to call with any arguments: they are checked.
pub trait Executable: Send + Sync {
    /// Runs the kernel on `threads` threads (1 runs on the calling thread alone).
    ///
    /// # Errors
    /// [`CallError`] when the arguments do not fit the program, or an index that depends on data was out of bounds.
    fn run(&self, arguments: &mut Arguments<'_, '_>, threads: usize) -> Result<(), CallError>;

    /// The size of the machine code, in bytes.
    fn code_bytes(&self) -> usize;

    /// The machine code as text for people, one instruction a line.
    fn disassembly(&self) -> String;
}

/// What a call passes, in the order of the program's parameters.
#[derive(Debug)]
pub struct Arguments<'a, 'data> {
    /// A value for each symbolic dimension.
    pub dims: &'a [i64],
    /// A value for each run-time scalar.
    pub scalars: &'a [Constant],
    /// The bytes of each tensor.
    pub buffers: &'a mut [BufferArgument<'data>],
}

/// The bytes of one tensor argument, dense and row-major.
#[derive(Debug)]
pub enum BufferArgument<'data> {
    /// A tensor that is only read.
    Read(&'data [u8]),
    /// A tensor that is only read, with the identity of its contents: what is computed from it alone may be kept.
    Identified(IdentifiedBytes<'data>),
    /// A tensor that is written, and perhaps read.
    Write(&'data mut [u8]),
}

impl BufferArgument<'_> {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            BufferArgument::Read(bytes) => bytes,
            BufferArgument::Identified(identified) => identified.bytes(),
            BufferArgument::Write(bytes) => bytes,
        }
    }
}

/// Why a backend could not compile a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackendError {
    /// The backend lacks something that the program needs.
    #[error("{target} backend cannot compile {what}")]
    Unsupported {
        /// The backend.
        target: &'static str,
        /// The thing, named as in the program.
        what: String,
    },
    /// The code generator failed: a bug of ours.
    #[error("code generation failed: {0}")]
    CodeGeneration(String),
}

/// Why a call was refused or failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The number of arguments of one sort differs from the program's.
    #[error("{expected} {sort} expected, {found} given")]
    Count {
        /// `dimensions`, `scalars` or `tensors`.
        sort: &'static str,
        /// How many the program has.
        expected: usize,
        /// How many came.
        found: usize,
    },
    /// A tensor's size does not fit its shape.
    #[error("tensor `{name}` needs {expected} bytes for its shape, {found} given")]
    Size {
        /// The parameter.
        name: String,
        /// Bytes that its shape takes.
        expected: u64,
        /// Bytes that came.
        found: u64,
    },
    /// A tensor that is written was passed for reading only, or its memory is not aligned to its elements.
    #[error("tensor `{name}` {problem}")]
    Tensor {
        /// The parameter.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A dimension is negative or a shape too large to address.
    #[error("dimension `{name}` = {value} is out of range")]
    Dimension {
        /// The dimension or tensor.
        name: String,
        /// The offending value.
        value: i64,
    },
    /// An index that depends on data lay outside its tensor.
    #[error("an index read from data is {value}, outside 0..{extent}{}", .location.as_ref().map(|l| format!(" {l}")).unwrap_or_default())]
    IndexOutOfBounds {
        /// The index.
        value: i64,
        /// The extent of the dimension.
        extent: i64,
        /// Where in the definition: `at src/lib.rs:12:9`, with `or` and more places when it can be one of several.
        /// Compiled code does not know; who has the definition adds it.
        location: Option<String>,
    },
}

impl fmt::Display for TargetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
