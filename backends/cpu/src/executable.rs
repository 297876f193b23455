//! Compiled kernels: the checks around a call, and the call.

use std::sync::Arc;
use std::time::{Duration, Instant};

use smallvec::SmallVec;
use tilewright_core::device::{Arguments, BufferArgument, CallError, Executable};
use tilewright_core::dtype::DType;
use tilewright_core::expr::Constant;
use tilewright_core::flat::access::accessed_buffers;
use tilewright_core::ids::VarId;
use tilewright_core::index::Index;
use tilewright_core::program::Program;
use tilewright_core::target::RunOptions;

use super::codegen::Need;
use super::compile::Code;
use super::memory;
use super::runtime::frame::{HEADER_WORDS, Status};
use super::runtime::workspace;

/// A compiled kernel's entry: a function of the frame's address.
type Entry = unsafe extern "C" fn(*const u64);

/// The memory that the address of a tensor points to that is empty or not accessed: loads that a condition leaves out go to a tensor's
/// first element instead.
#[repr(align(64))]
struct EmptyTensor(#[expect(dead_code, reason = "only its address is used")] [u8; 64]);

static EMPTY: EmptyTensor = EmptyTensor([0; 64]);

/// A compiled kernel.
pub(super) struct Kernel {
    entry: Entry,
    /// Keeps the machine code alive.
    _code: Arc<Code>,
    code_bytes: usize,
    name: String,
    /// The symbolic dimensions and their names.
    dims: Vec<(VarId, String)>,
    scalars: Vec<DType>,
    tensors: Vec<Tensor>,
    main: Need,
    body: Need,
}

/// Facts about a tensor parameter.
struct Tensor {
    name: String,
    element_bytes: u64,
    extent: Extent,
    is_written: bool,
    is_accessed: bool,
}

/// The number of elements of a tensor.
enum Extent {
    Constant(u64),
    Symbolic(Vec<Index>),
}

/// Where the elements of an argument lie.
#[derive(Clone, Copy)]
struct MemoryRange {
    start: u64,
    bytes: u64,
}

impl MemoryRange {
    fn empty() -> Self {
        MemoryRange { start: &raw const EMPTY as u64, bytes: 0 }
    }

    fn overlaps(self, other: MemoryRange) -> bool {
        let is_empty = self.bytes == 0 || other.bytes == 0;
        !is_empty && self.start < other.start + other.bytes && other.start < self.start + self.bytes
    }
}

/// The parts of a kernel.
pub(super) struct Parts {
    /// The program.
    pub(super) program: Program,
    /// The address of the compiled function of one argument, the frame's address.
    pub(super) entry: *const u8,
    /// The owner of that function.
    pub(super) code: Arc<Code>,
    /// The size of its machine code.
    pub(super) code_bytes: usize,
    /// The need of the calling thread outside parallel loops.
    pub(super) main: Need,
    /// The need of each thread inside parallel loops.
    pub(super) body: Need,
}

impl Kernel {
    /// A kernel.
    ///
    /// # Safety
    /// `entry` is the address of a compiled [`Entry`] for this very program, which lives as long as `code`.
    pub(super) unsafe fn new(parts: Parts) -> Self {
        let program = parts.program;
        let accessed = accessed_buffers(&program.body);
        let tensors = program.buffer_params().map(|(id, access)| {
            let buffer = program.buffer(id);
            let constant = buffer.constant_len().and_then(|elements| u64::try_from(elements).ok());
            Tensor {
                name: buffer.name.to_string(),
                element_bytes: buffer.dtype.bytes() as u64,
                extent: constant.map_or_else(|| Extent::Symbolic(buffer.shape.clone()), Extent::Constant),
                is_written: access.is_written(),
                is_accessed: accessed.contains(&id),
            }
        });
        Kernel {
            // SAFETY: the caller promises that this is the address of such a function.
            entry: unsafe { std::mem::transmute::<*const u8, Entry>(parts.entry) },
            _code: parts.code,
            code_bytes: parts.code_bytes,
            name: program.name.to_string(),
            dims: program.dims().map(|(var, name)| (var, name.to_string())).collect(),
            scalars: program.scalar_params().map(|(_, dtype)| dtype).collect(),
            tensors: tensors.collect(),
            main: parts.main,
            body: parts.body,
        }
    }

    fn check_counts(&self, arguments: &Arguments<'_, '_>) -> Result<(), CallError> {
        let check = |sort, expected, found| {
            if expected == found { Ok(()) } else { Err(CallError::Count { sort, expected, found }) }
        };
        check("dimensions", self.dims.len(), arguments.dims.len())?;
        check("scalars", self.scalars.len(), arguments.scalars.len())?;
        check("tensors", self.tensors.len(), arguments.buffers.len())
    }

    fn check_dims(&self, dims: &[i64]) -> Result<(), CallError> {
        match dims.iter().position(|dim| *dim < 0) {
            None => Ok(()),
            Some(position) => {
                Err(CallError::Dimension { name: self.dims[position].1.clone(), value: dims[position] })
            }
        }
    }

    /// Checks one tensor and gives its address and its size in bytes.
    fn check_tensor(
        &self,
        tensor: &Tensor,
        argument: &mut BufferArgument<'_>,
        extent: &dyn Fn(&Index) -> Option<i64>,
    ) -> Result<MemoryRange, CallError> {
        let expected = tensor.bytes(extent)?;
        let found = argument.len() as u64;
        if expected != found {
            return Err(CallError::Size { name: tensor.name.clone(), expected, found });
        }
        if tensor.is_written && !argument.is_writable() {
            return Err(tensor.problem("is written by the kernel, but was passed for reading only"));
        }
        let address = match argument {
            BufferArgument::Stored(_) if !tensor.is_accessed => return Ok(MemoryRange::empty()),
            BufferArgument::Stored(_) => return Err(tensor.problem("is not in memory")),
            BufferArgument::Read(bytes) => Some(bytes.as_ptr()),
            BufferArgument::Identified(identified) => Some(identified.bytes().as_ptr()),
            BufferArgument::Write(bytes) => Some(bytes.as_mut_ptr().cast_const()),
            BufferArgument::DeviceRead(slice) => memory::address(slice),
            BufferArgument::DeviceWrite(slice) => memory::address_mut(slice).map(<*mut u8>::cast_const),
        };
        let Some(address) = address.map(|address| address as u64) else {
            return Err(
                tensor.problem("is in the memory of another device: pass one of the host or of the CPU")
            );
        };
        if found == 0 {
            return Ok(MemoryRange::empty());
        }
        if !address.is_multiple_of(tensor.element_bytes) {
            return Err(tensor.problem("is not aligned to the size of its elements"));
        }
        Ok(MemoryRange { start: address, bytes: found })
    }

    /// Checks that what is written overlaps nothing else. Slices cannot, but compiled code relies on it.
    fn check_overlap(&self, places: &[MemoryRange]) -> Result<(), CallError> {
        for (position, tensor) in self.tensors.iter().enumerate().filter(|(_, tensor)| tensor.is_written) {
            let written = places[position];
            for (other, place) in places.iter().enumerate() {
                if other != position && written.overlaps(*place) {
                    let problem = format!("overlaps tensor `{}`", self.tensors[other].name);
                    return Err(tensor.problem(&problem));
                }
            }
        }
        Ok(())
    }

    fn workspace_bytes(&self, need: &Need, extent: &dyn Fn(&Index) -> Option<i64>) -> Result<u64, CallError> {
        need.bytes(extent).ok_or_else(|| CallError::Dimension {
            name: format!("the intermediates of `{}`", self.name),
            value: i64::MAX,
        })
    }
}

impl Tensor {
    fn bytes(&self, extent: &dyn Fn(&Index) -> Option<i64>) -> Result<u64, CallError> {
        let elements = match &self.extent {
            Extent::Constant(elements) => Ok(*elements),
            Extent::Symbolic(shape) => self.elements(shape, extent),
        }?;
        let bytes = elements.checked_mul(self.element_bytes).filter(|bytes| *bytes <= i64::MAX as u64);
        bytes.ok_or_else(|| CallError::Dimension { name: self.name.clone(), value: i64::MAX })
    }

    fn elements(&self, shape: &[Index], extent: &dyn Fn(&Index) -> Option<i64>) -> Result<u64, CallError> {
        let error = |value| CallError::Dimension { name: self.name.clone(), value };
        shape.iter().try_fold(1u64, |product, index| {
            let value = extent(index).ok_or_else(|| error(i64::MAX))?;
            let size = u64::try_from(value).map_err(|_| error(value))?;
            product.checked_mul(size).ok_or_else(|| error(i64::MAX))
        })
    }

    #[cold]
    fn problem(&self, problem: &str) -> CallError {
        CallError::Tensor { name: self.name.clone(), problem: problem.to_owned() }
    }
}

/// The word of the frame that holds a scalar.
fn scalar_word(dtype: DType, constant: Constant) -> u64 {
    let int = match constant {
        Constant::Int(value) => value,
        Constant::Float(_) => constant.as_f64() as i64,
    };
    let float = constant.as_f64();
    match dtype {
        DType::Bool => u64::from(float != 0.0),
        DType::F16 => u64::from(::half::f16::from_f64(float).to_f32().to_bits()),
        DType::BF16 => u64::from(::half::bf16::from_f64(float).to_f32().to_bits()),
        DType::F32 => u64::from((float as f32).to_bits()),
        DType::F64 => float.to_bits(),
        _ => dtype.wrap(int) as u64,
    }
}

impl Executable for Kernel {
    fn run(&self, arguments: &mut Arguments<'_, '_>, options: RunOptions) -> Result<(), CallError> {
        self.check_counts(arguments)?;
        let dims = arguments.dims;
        self.check_dims(dims)?;
        let dim = |var| dims.get(self.dims.iter().position(|(dim, _)| *dim == var)?).copied();
        let extent = |index: &Index| index.evaluate(&dim);

        let status = Status::default();
        let mut words: SmallVec<[u64; 24]> = SmallVec::from_elem(0, HEADER_WORDS);
        words.extend(dims.iter().map(|dim| *dim as u64));
        words.extend(self.scalars.iter().zip(arguments.scalars).map(|(ty, value)| scalar_word(*ty, *value)));
        let mut places: SmallVec<[MemoryRange; 8]> = SmallVec::new();
        for (tensor, argument) in self.tensors.iter().zip(arguments.buffers.iter_mut()) {
            let place = self.check_tensor(tensor, argument, &extent)?;
            words.push(place.start);
            places.push(place);
        }
        self.check_overlap(&places)?;
        let main = self.workspace_bytes(&self.main, &extent)?;
        let body = self.workspace_bytes(&self.body, &extent)?;
        words[0] = &raw const status as u64;
        words[1] = u64::from(options.threads());
        words[3] = body;
        let called = workspace::with(main, body, |workspace| {
            words[2] = workspace as u64;
            // SAFETY: `entry` is the kernel of the program, and the frame is what it expects: a status; a
            // workspace of as many bytes as the plan that it was compiled with needs, of this thread alone; dimensions
            // that are not negative; and for each tensor that the program accesses, the address of as many bytes as its
            // shape takes, aligned to its elements, borrowed for the call, mutably and without overlap if the program
            // stores to it. The code proves or checks that every access stays inside its buffer.
            unsafe { (self.entry)(words.as_ptr()) }
        });
        if let Err(error) = called {
            let name = format!("the intermediates of `{}`", self.name);
            return Err(CallError::Dimension { name, value: error.bytes as i64 });
        }
        match status.failure() {
            None => Ok(()),
            Some((value, extent)) => Err(CallError::IndexOutOfBounds { value, extent, location: None }),
        }
    }

    fn time(
        &self,
        arguments: &mut Arguments<'_, '_>,
        options: RunOptions,
        repetitions: u64,
    ) -> Result<Duration, CallError> {
        let start = Instant::now();
        for _ in 0..repetitions {
            self.run(arguments, options)?;
        }
        Ok(start.elapsed())
    }

    fn code_bytes(&self) -> usize {
        self.code_bytes
    }
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel").field("program", &self.name).field("bytes", &self.code_bytes).finish()
    }
}
