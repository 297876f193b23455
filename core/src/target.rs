//! What a program is compiled for, and the boundary to the backends.
//!
//! [`Target`] describes a machine in the terms that schedules and legality need. [`Backend`] and
//! [`Executable`] are what the search and the facade know of a backend; backends see only programs of
//! the `Flat` [level](crate::verify::Level).

use std::collections::BTreeSet;
use std::fmt;

use crate::expr::Constant;
use crate::program::Program;
use crate::stmt::Symbol;
use crate::tensor::IdentifiedBytes;

/// A machine, in the terms that schedules and legality need.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// The kind of machine.
    pub kind: TargetKind,
    /// Threads that run at once.
    pub cores: u32,
    /// The width of a vector register that code generation uses, in bits.
    pub vector_bits: u32,
    /// The number of vector registers.
    pub vector_registers: u32,
    /// The first-level data cache of a core, in bytes.
    pub l1_bytes: u64,
    /// The second-level cache of a core, in bytes.
    pub l2_bytes: u64,
    /// The third-level cache that the cores share, in bytes; 0 when there is none or it is unknown.
    pub l3_bytes: u64,
    /// A cache line, in bytes.
    pub cache_line_bytes: u32,
    /// Instruction-set features by name, such as `avx2` and `fma`.
    pub features: BTreeSet<String>,
    /// The names of the [tensor intrinsics](crate::intrinsic) that code generation emits.
    pub intrinsics: Vec<Symbol>,
}

/// The kind of a machine; schedule rules are registered for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TargetKind {
    /// A multi-core processor.
    Cpu,
    /// An NVIDIA GPU.
    Gpu,
}

impl TargetKind {
    /// The name used by schedule rules and records.
    pub const fn name(self) -> &'static str {
        match self {
            TargetKind::Cpu => "cpu",
            TargetKind::Gpu => "gpu",
        }
    }
}

impl Target {
    /// A plain processor of unknown make: four cores, 128-bit vectors, small caches.
    pub fn generic_cpu() -> Self {
        Target {
            kind: TargetKind::Cpu,
            cores: 4,
            vector_bits: 128,
            vector_registers: 16,
            l1_bytes: 32 << 10,
            l2_bytes: 512 << 10,
            l3_bytes: 8 << 20,
            cache_line_bytes: 64,
            features: BTreeSet::new(),
            intrinsics: Vec::new(),
        }
    }

    /// How many elements of `bytes` bytes a vector register holds; at least 1.
    pub fn lanes(&self, bytes: usize) -> u32 {
        (self.vector_bits / 8 / bytes.max(1) as u32).max(1)
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
