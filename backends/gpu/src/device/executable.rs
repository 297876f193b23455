//! A compiled program: memory that it needs, launches, times.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tilewright_core::device::{Arguments, BufferArgument, CallError, CompileError, DeviceError, Executable};
use tilewright_core::expr::Constant;
use tilewright_core::program::Program;
use tilewright_core::target::RunOptions;

use super::call::{Parameter, Signature};
use crate::driver::{CudaStream, Current, Extents, Gpu, GpuMemory, Kernel, LoadError, Module, Use};
use crate::emit::{emit, emit_with_comments};
use crate::launch::{FAILURE_RECORD_BYTES, GpuCode, LaunchArgument, TENSOR_ALIGNMENT};

/// A program that the driver has compiled.
pub(super) struct GpuExecutable {
    gpu: Gpu,
    signature: Signature,
    code: GpuCode,
    /// The kernels, one for each launch.
    kernels: Vec<Kernel>,
    /// Held while a run is submitted: another one would write to the same memory.
    resources: Mutex<Resources>,
}

/// Memory that runs use one behind the other.
#[derive(Default)]
struct Resources {
    workspaces: Vec<Option<GpuMemory>>,
    failure_record: Option<GpuMemory>,
}

/// The places of a run's arguments on the GPU.
struct Places {
    tensors: Vec<u64>,
    workspaces: Vec<u64>,
    failure_record: Option<(Use, u64)>,
    /// Copies of tensors that are in the memory of the host, by the number of the tensor.
    copies: Vec<Option<GpuMemory>>,
    /// All of this memory.
    uses: Vec<Use>,
}

impl GpuExecutable {
    /// The PTX, with the registers of each kernel where the driver knows them.
    pub(super) fn listing(&self) -> String {
        let counts = self.code.launches.iter().zip(&self.kernels).filter_map(|(launch, kernel)| {
            let registers = kernel.registers()?;
            Some(format!("// {}: {registers} registers\n", launch.entry))
        });
        counts.collect::<String>() + &self.code.ptx
    }

    /// Emits and compiles a program.
    pub(super) fn compile(gpu: &Gpu, program: &Program) -> Result<Self, CompileError> {
        let code = emit(program, gpu.facts())?;
        let module = Module::load(gpu, &code.ptx).map_err(|error| match error {
            LoadError::Refused(words) => {
                let words = Self::with_statements(gpu, program).unwrap_or(words);
                CompileError::CodeGeneration(format!("the driver refuses `{}`: {words}", program.name))
            }
            LoadError::Device(error) => CompileError::Device(error),
        })?;
        let kernels: Result<_, DeviceError> = code
            .launches
            .iter()
            .map(|launch| module.kernel(&launch.entry, launch.dynamic_shared_bytes))
            .collect();
        Ok(GpuExecutable {
            gpu: gpu.clone(),
            signature: Signature::of(program),
            kernels: kernels.map_err(CompileError::Device)?,
            code,
            resources: Mutex::default(),
        })
    }

    /// The driver's words about a program that it refuses, with the statements that they are about.
    fn with_statements(gpu: &Gpu, program: &Program) -> Option<String> {
        let code = emit_with_comments(program, gpu.facts()).ok()?;
        match Module::load(gpu, &code.ptx) {
            Err(LoadError::Refused(words)) => Some(words),
            _ => None,
        }
    }

    /// Finds or makes a place on the GPU for each argument. Tensors of the host are copied.
    fn place(
        &self,
        arguments: &mut Arguments<'_, '_>,
        resources: &mut Resources,
    ) -> Result<Places, CallError> {
        let (mut copies, mut tensors, mut uses) = (Vec::new(), Vec::new(), Vec::new());
        for (number, argument) in arguments.buffers.iter().enumerate() {
            let (used, address, copy) = self.place_tensor(number, argument)?;
            tensors.push(address);
            copies.push(copy);
            uses.push(used);
        }
        let mut workspaces = Vec::new();
        resources.workspaces.resize_with(self.code.workspaces.len(), || None);
        for (workspace, memory) in self.code.workspaces.iter().zip(&mut resources.workspaces) {
            let bytes = self.code.workspace_bytes(workspace, arguments.dims)?;
            let memory = self.grown(memory, bytes)?;
            workspaces.push(memory.address());
            uses.push(memory.used(true));
        }
        let failure_record = match self.code.can_fail() {
            true => {
                let memory = self.grown(&mut resources.failure_record, FAILURE_RECORD_BYTES)?;
                uses.push(memory.used(true));
                Some((memory.used(false), memory.address()))
            }
            false => None,
        };
        Ok(Places { tensors, workspaces, failure_record, copies, uses })
    }

    fn place_tensor(
        &self,
        number: usize,
        argument: &BufferArgument<'_>,
    ) -> Result<(Use, u64, Option<GpuMemory>), CallError> {
        let is_written = self.signature.is_written(number);
        let stored = match argument {
            BufferArgument::Stored(stored) => Some(stored.make_resident()?),
            _ => None,
        };
        if let Some(bytes) = stored.map(|identified| identified.bytes()).or_else(|| argument.host_bytes()) {
            if self.gpu.current().recording().is_some() {
                let problem = "is in the memory of the host: upload it before a graph is recorded";
                return Err(self.signature.problem(number, problem));
            }
            let copy = self.gpu.take(bytes.len())?;
            self.gpu.write(copy.used(true), copy.address(), bytes)?;
            return Ok((copy.used(is_written), copy.address(), Some(copy)));
        }
        let memory = match argument {
            BufferArgument::DeviceRead(slice) => slice.memory(),
            BufferArgument::DeviceWrite(slice) => slice.memory(),
            _ => unreachable!("an argument is in the memory of the host or of a device"),
        };
        let (used, address) = self.gpu.place(memory, is_written).map_err(|error| match error {
            DeviceError::OtherDevice { place, .. } => {
                let name = self.gpu.name();
                self.signature
                    .problem(number, &format!("is in the memory of {place}: copy it to {name} first"))
            }
            error => error.into(),
        })?;
        if !address.is_multiple_of(TENSOR_ALIGNMENT as u64) {
            let problem = format!("begins at an address that is no multiple of {TENSOR_ALIGNMENT} bytes");
            return Err(self.signature.problem(number, &problem));
        }
        Ok((used, address, None))
    }

    /// Memory of at least `bytes` bytes, which is kept for later runs.
    fn grown<'m>(
        &self,
        memory: &'m mut Option<GpuMemory>,
        bytes: usize,
    ) -> Result<&'m GpuMemory, DeviceError> {
        if memory.as_ref().is_none_or(|known| known.size() < bytes) {
            // The old memory is given back behind the runs that use it.
            *memory = None;
            *memory = Some(self.gpu.take(bytes)?);
        }
        Ok(memory.as_ref().expect("it was made now, or was there"))
    }

    /// Submits the launches of a run.
    fn submit(
        &self,
        dims: &[i64],
        scalars: &[Constant],
        places: &Places,
        stream: &CudaStream,
    ) -> Result<(), CallError> {
        let failure_record = places.failure_record.as_ref().map_or(0, |(_, address)| *address);
        if failure_record != 0 {
            self.gpu.clear(failure_record, FAILURE_RECORD_BYTES, stream)?;
        }
        for (launch, kernel) in self.code.launches.iter().zip(&self.kernels) {
            let grid = self.code.grid(launch, dims)?;
            if grid.contains(&0) {
                continue;
            }
            let parameter = |argument: &LaunchArgument| -> Parameter {
                match argument {
                    LaunchArgument::Tensor(number) => address(places.tensors[*number]),
                    LaunchArgument::Workspace(number) => address(places.workspaces[*number]),
                    LaunchArgument::FailureRecord => address(failure_record),
                    LaunchArgument::Dimension(number) => Parameter::from_slice(&dims[*number].to_le_bytes()),
                    LaunchArgument::Scalar(number) => self.signature.scalar(*number, scalars[*number]),
                }
            };
            let parameters: Vec<Parameter> = launch.arguments.iter().map(parameter).collect();
            let extents =
                Extents { grid, block: launch.threads, dynamic_shared_bytes: launch.dynamic_shared_bytes };
            self.launch(kernel, extents, &parameters, stream)?;
        }
        Ok(())
    }

    #[allow(unsafe_code, reason = "a kernel does what its code says")]
    fn launch(
        &self,
        kernel: &Kernel,
        extents: Extents,
        parameters: &[Parameter],
        stream: &CudaStream,
    ) -> Result<(), DeviceError> {
        // SAFETY: the kernel was emitted with these parameters, and each access that it makes is proven or checked to lie inside of
        // its tensor or workspace. All of them were checked to have the size that their shapes take, and are on this GPU: tensors
        // are borrowed for the call, and given back behind the launch in the stream, as copies and workspaces are.
        unsafe { kernel.launch(extents, parameters, stream) }
    }

    /// Keeps the kernels of a run that was recorded.
    fn finish_recording(&self, current: &Current) {
        if let (Some(recording), Some(kernel)) = (current.recording(), self.kernels.first()) {
            recording.keep(kernel.module());
        }
    }

    /// Copies results back to the host, and looks whether an index was out of bounds.
    fn finish(&self, arguments: &mut Arguments<'_, '_>, places: &Places) -> Result<(), CallError> {
        if let Some((used, address)) = &places.failure_record {
            let mut record = [0; FAILURE_RECORD_BYTES];
            self.gpu.read(used.clone(), *address, &mut record)?;
            let (words, _) = record.as_chunks::<8>();
            if let [failed, value, extent] =
                words.iter().map(|word| i64::from_le_bytes(*word)).collect::<Vec<_>>()[..]
                && failed != 0
            {
                return Err(CallError::IndexOutOfBounds { value, extent, location: None });
            }
        }
        let mut results = Vec::new();
        for (number, (argument, copy)) in arguments.buffers.iter_mut().zip(&places.copies).enumerate() {
            if let (BufferArgument::Write(bytes), Some(copy)) = (argument, copy)
                && self.signature.is_written(number)
            {
                results.push((bytes, copy));
            }
        }
        // All copies or none: after a failure the host has what it had.
        let mut contents = Vec::new();
        for (bytes, copy) in &results {
            let mut content = vec![0; bytes.len()];
            self.gpu.read(copy.used(false), copy.address(), &mut content)?;
            contents.push(content);
        }
        for ((bytes, _), content) in results.iter_mut().zip(contents) {
            bytes.copy_from_slice(&content);
        }
        Ok(())
    }
}

/// An address as a parameter.
fn address(address: u64) -> Parameter {
    Parameter::from_slice(&address.to_le_bytes())
}

impl Executable for GpuExecutable {
    fn run(&self, arguments: &mut Arguments<'_, '_>, _: RunOptions) -> Result<(), CallError> {
        self.signature.check(arguments)?;
        let mut resources = self.resources.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.gpu.current();
        if current.recording().is_some() && self.code.can_fail() {
            self.gpu.refuse_recording("a kernel that reports indices out of bounds")?;
        }
        let places = self.place(arguments, &mut resources)?;
        self.gpu.before(&places.uses, &current)?;
        let submitted = self.submit(arguments.dims, arguments.scalars, &places, current.stream());
        // Of several launches, some may have been submitted.
        self.gpu.after(&places.uses, &current)?;
        submitted?;
        self.finish_recording(&current);
        self.finish(arguments, &places)
    }

    fn time(
        &self,
        arguments: &mut Arguments<'_, '_>,
        _: RunOptions,
        repetitions: u64,
    ) -> Result<Duration, CallError> {
        self.signature.check(arguments)?;
        let mut resources = self.resources.lock().unwrap_or_else(PoisonError::into_inner);
        let places = self.place(arguments, &mut resources)?;
        let (dims, scalars) = (arguments.dims, arguments.scalars);
        let submit = |stream: &CudaStream| self.submit(dims, scalars, &places, stream);
        let time = self.gpu.time(repetitions, &places.uses, submit)?;
        self.finish(arguments, &places)?;
        Ok(time)
    }

    /// The size of the PTX: the driver does not tell that of the machine code.
    fn code_bytes(&self) -> usize {
        self.code.ptx.len()
    }
}
