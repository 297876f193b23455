//! A compiled program: memory that it needs, launches, times.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tilewright_core::device::{Arguments, BufferArgument, CallError, CompileError, DeviceError, Executable};
use tilewright_core::expr::Constant;
use tilewright_core::program::Program;
use tilewright_core::target::RunOptions;

use super::call::{Parameter, Signature};
use crate::driver::{Extents, Gpu, GpuMemory, Kernel, LoadError, Module, Stream};
use crate::emit::emit;
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
    failure_record: u64,
    /// Copies of tensors that are in the memory of the host, by the number of the tensor.
    copies: Vec<Option<GpuMemory>>,
}

impl GpuExecutable {
    /// Emits and compiles a program.
    pub(super) fn compile(gpu: &Gpu, program: &Program) -> Result<Self, CompileError> {
        let code = emit(program, gpu.facts())?;
        let module = Module::load(gpu, &code.ptx).map_err(|error| match error {
            LoadError::Refused(words) => {
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

    /// Finds or makes a place on the GPU for each argument. Tensors of the host are copied.
    fn place(
        &self,
        arguments: &mut Arguments<'_, '_>,
        resources: &mut Resources,
    ) -> Result<Places, CallError> {
        let mut copies = Vec::new();
        let mut tensors = Vec::new();
        for (number, argument) in arguments.buffers.iter().enumerate() {
            let (address, copy) = self.place_tensor(number, argument)?;
            tensors.push(address);
            copies.push(copy);
        }
        let mut workspaces = Vec::new();
        resources.workspaces.resize_with(self.code.workspaces.len(), || None);
        for (workspace, memory) in self.code.workspaces.iter().zip(&mut resources.workspaces) {
            let bytes = self.code.workspace_bytes(workspace, arguments.dims)?;
            workspaces.push(self.grown(memory, bytes)?);
        }
        let failure_record = match self.code.can_fail() {
            true => self.grown(&mut resources.failure_record, FAILURE_RECORD_BYTES)?,
            false => 0,
        };
        Ok(Places { tensors, workspaces, failure_record, copies })
    }

    fn place_tensor(
        &self,
        number: usize,
        argument: &BufferArgument<'_>,
    ) -> Result<(u64, Option<GpuMemory>), CallError> {
        if let Some(bytes) = argument.host_bytes() {
            let copy = self.gpu.take(bytes.len())?;
            self.gpu.write(copy.address(), bytes)?;
            return Ok((copy.address(), Some(copy)));
        }
        let memory = match argument {
            BufferArgument::DeviceRead(slice) => slice.memory(),
            BufferArgument::DeviceWrite(slice) => slice.memory(),
            _ => unreachable!("an argument is in the memory of the host or of a device"),
        };
        let address = self.gpu.address(memory).map_err(|error| match error {
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
        Ok((address, None))
    }

    /// The address of memory of at least `bytes` bytes, which is kept for later runs.
    fn grown(&self, memory: &mut Option<GpuMemory>, bytes: usize) -> Result<u64, DeviceError> {
        match memory {
            Some(known) if known.size() >= bytes => Ok(known.address()),
            _ => {
                // The old memory is given back behind the runs that use it.
                *memory = None;
                Ok(memory.insert(self.gpu.take(bytes)?).address())
            }
        }
    }

    /// Submits the launches of a run.
    fn submit(
        &self,
        dims: &[i64],
        scalars: &[Constant],
        places: &Places,
        stream: &Stream,
    ) -> Result<(), CallError> {
        if self.code.can_fail() {
            self.gpu.clear(places.failure_record, FAILURE_RECORD_BYTES, stream)?;
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
                    LaunchArgument::FailureRecord => address(places.failure_record),
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
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        // SAFETY: the kernel was emitted with these parameters, and each access that it makes is proven or checked to lie inside of
        // its tensor or workspace. All of them were checked to have the size that their shapes take, and are on this GPU: tensors
        // are borrowed for the call, and given back behind the launch in the stream, as copies and workspaces are.
        unsafe { kernel.launch(extents, parameters, stream) }
    }

    /// Copies results back to the host, and looks whether an index was out of bounds.
    fn finish(&self, arguments: &mut Arguments<'_, '_>, places: &Places) -> Result<(), CallError> {
        if self.code.can_fail() {
            let mut record = [0; FAILURE_RECORD_BYTES];
            self.gpu.read(places.failure_record, &mut record)?;
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
            self.gpu.read(copy.address(), &mut content)?;
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
        let places = self.place(arguments, &mut resources)?;
        self.submit(arguments.dims, arguments.scalars, &places, self.gpu.stream())?;
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
        let time = self.gpu.time(repetitions, |stream| self.submit(dims, scalars, &places, stream))?;
        self.finish(arguments, &places)?;
        Ok(time)
    }

    /// The size of the PTX: the driver does not tell that of the machine code.
    fn code_bytes(&self) -> usize {
        self.code.ptx.len()
    }

    /// The PTX, with the registers of each kernel where the driver knows them.
    fn disassembly(&self) -> String {
        let counts = self.code.launches.iter().zip(&self.kernels).filter_map(|(launch, kernel)| {
            let registers = kernel.registers()?;
            Some(format!("// {}: {registers} registers\n", launch.entry))
        });
        counts.collect::<String>() + &self.code.ptx
    }
}
