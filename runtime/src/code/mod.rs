//! Code: lowered kernels compiled for a device, in two parts.
//!
//! Lowering separates the computation that depends on constant tensors alone, the prologue, from the rest. The caller sees one
//! kernel with the parameters of the definition. [`compile`] makes code for calls, for tuning and for tools alike.
//!
//! | module | does |
//! |---|---|
//!
//! `prologue`
//! runs the prologue when its results are not kept yet
//!
//! | `packed` | keeps these results |

mod packed;
mod prologue;

use std::sync::Arc;
use std::time::Duration;

use tilewright_core::device::{Arguments, BufferArgument, CallError, CompileError, Device, Executable};
use tilewright_core::flat::access::accessed_buffers;
use tilewright_core::lower::LoweredKernel;
use tilewright_core::program::Program;
use tilewright_core::target::RunOptions;

use prologue::Prologue;

/// Compiled code.
pub struct Compiled {
    main: Box<dyn Executable>,
    prologue: Option<Prologue>,
    /// The positions of the tensors that are only read and that `main` reads in each call.
    read: Vec<usize>,
}

/// Compiles programs for a device, one result each. Several at once share the fixed costs.
pub fn compile(device: &Arc<dyn Device>, programs: &[&LoweredKernel]) -> Vec<Result<Compiled, CompileError>> {
    let mut flat: Vec<&Program> = Vec::new();
    for lowered in programs {
        flat.extend(lowered.prologue.iter().map(|prologue| &prologue.program));
        flat.push(&lowered.main);
    }
    let mut compiled = device.compile(&flat).into_iter();
    let mut next = || compiled.next().expect("a device gives one result for each program");
    programs
        .iter()
        .map(|lowered| {
            let prologue = lowered.prologue.as_ref().map(|prologue| (prologue, next()));
            let main = next()?;
            let prologue = prologue
                .map(|(lowered, executable)| Ok(Prologue::new(Arc::clone(device), executable?, lowered)));
            Ok(Compiled { main, prologue: prologue.transpose()?, read: read_in_calls(&lowered.main) })
        })
        .collect()
}

/// Compiles a kernel once more and gives the machine code of its parts as text for people.
///
/// # Errors
/// As [`Device::compile`].
pub fn list(device: &dyn Device, lowered: &LoweredKernel) -> Result<String, CompileError> {
    let prologue = lowered.prologue.iter().map(|prologue| &prologue.program);
    prologue.chain([&lowered.main]).map(|program| device.list(program)).collect()
}

/// The positions of the tensors that are only read and that a flat program accesses.
fn read_in_calls(program: &Program) -> Vec<usize> {
    let accessed = accessed_buffers(&program.body);
    let parameters = program.buffer_params().enumerate();
    let read = parameters.filter(|(_, (id, access))| !access.is_written() && accessed.contains(id));
    read.map(|(position, _)| position).collect()
}

impl Compiled {
    /// Runs the kernel. The prologue runs unless its results were kept from an earlier call; its results are
    /// kept when all of the constant tensors have an identity.
    ///
    /// # Errors
    /// As [`Executable::run`].
    #[inline]
    pub fn run(&self, arguments: &mut Arguments<'_, '_>, options: RunOptions) -> Result<(), CallError> {
        self.with_operands(arguments, options, |arguments| self.main.run(arguments, options))
    }

    /// Runs the kernel several times in a row and gives the time of all runs together, by the device's clock. The
    /// prologue runs before, once.
    ///
    /// # Errors
    /// As [`Executable::run`].
    pub fn time(
        &self,
        arguments: &mut Arguments<'_, '_>,
        options: RunOptions,
        repetitions: u64,
    ) -> Result<Duration, CallError> {
        self.with_operands(arguments, options, |arguments| self.main.time(arguments, options, repetitions))
    }

    /// Runs the kernel once, with its operands and the results of constant tensors evicted from the caches of the device before, and
    /// gives the time by the device's clock; `None` where the device cannot evict.
    ///
    /// # Errors
    /// As [`Executable::run`].
    pub fn time_cold(
        &self,
        device: &dyn Device,
        arguments: &mut Arguments<'_, '_>,
        options: RunOptions,
    ) -> Result<Option<Duration>, CallError> {
        let run = |arguments: &mut Arguments<'_, '_>| match device.evict(arguments.buffers) {
            true => self.main.time(arguments, options, 1).map(Some),
            false => Ok(None),
        };
        self.with_operands(arguments, options, run)
    }

    /// Runs a closure that takes the arguments as the main part needs them: with the results of the prologue, and with all that it reads in
    /// memory.
    #[inline]
    fn with_operands<T>(
        &self,
        arguments: &mut Arguments<'_, '_>,
        options: RunOptions,
        run: impl FnOnce(&mut Arguments<'_, '_>) -> Result<T, CallError>,
    ) -> Result<T, CallError> {
        for &position in &self.read {
            if let Some(BufferArgument::Stored(stored)) = arguments.buffers.get(position) {
                arguments.buffers[position] = BufferArgument::Identified(stored.make_resident()?);
            }
        }
        match &self.prologue {
            None => run(arguments),
            Some(prologue) => prologue.with_packed(arguments, options, run),
        }
    }

    /// The size of the machine code, in bytes.
    pub fn code_bytes(&self) -> usize {
        self.parts().map(Executable::code_bytes).sum()
    }

    fn parts(&self) -> impl Iterator<Item = &dyn Executable> {
        self.prologue.iter().map(Prologue::executable).chain([&*self.main])
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tilewright_core::dtype::DType;
    use tilewright_core::lower::lower_kernel;
    use tilewright_core::tensor::{AnyTensor, Loaded, Source, SourceError, StoredBytes};
    use tilewright_cpu::CpuDevice;

    use super::*;

    /// Rows of `x` plus a row that is computed from constants alone.
    fn program(factor: &str) -> Program {
        let text = format!(
            "kernel shifted(M, in x: f32[M, 8], constant w: f32[8], out y: f32[M, 8]) {{
  buffer p: f32[8] global
  for a in 0..8 {{
    block p(va: spatial 8 = a) {{ p[va] = w[7 - va] * {factor} }}
  }}
  for i in 0..M {{
    for j in 0..8 {{
      block y(vi: spatial M = i, vj: spatial 8 = j) {{ y[vi, vj] = x[vi, vj] + p[vj] }}
    }}
  }}
}}
"
        );
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    struct Copied(AnyTensor);

    impl AsRef<[u8]> for Copied {
        fn as_ref(&self) -> &[u8] {
            self.0.bytes()
        }
    }

    /// Elements that lie elsewhere; counts how often they are read.
    struct Elsewhere(AnyTensor, AtomicUsize);

    impl Source for Elsewhere {
        fn len(&self) -> usize {
            self.0.bytes().len()
        }

        fn load(&self) -> Result<Loaded, SourceError> {
            match self.1.fetch_add(1, Ordering::Relaxed) {
                0 => Ok(Loaded::new(Copied(self.0.clone()))),
                _ => Err(SourceError("they are gone".to_owned())),
            }
        }
    }

    #[test]
    fn constants_stay_elsewhere_unless_calls_read_them() {
        let device: Arc<dyn Device> = Arc::new(CpuDevice::host().expect("no override"));
        let ahead = "buffer p: f32[8] global
          for a in 0..8 { block p(va: spatial 8 = a) { p[va] = w[7 - va] * 2.0 } }";
        let program = |ahead: &str, addend: &str| -> Program {
            let text = format!(
                "kernel shifted(in x: f32[8], constant w: f32[8], out y: f32[8]) {{
                   {ahead}
                   for j in 0..8 {{ block y(vj: spatial 8 = j) {{ y[vj] = x[vj] + {addend} }} }}
                 }}"
            );
            text.parse().unwrap_or_else(|error| panic!("{error}"))
        };
        for (program, stays) in [
            (program(ahead, "p[vj]"), false),
            (program("", "w[vj]"), true),
            (program(ahead, "p[vj] + w[vj]"), true),
        ] {
            let lowered = lower_kernel(&program, device.target()).expect("it is legal");
            let code = compile(&device, &[&lowered]).remove(0).unwrap();
            let [x, w] = [1, 2].map(|seed| AnyTensor::random(DType::F32, &[8], seed).unwrap());
            let stored = StoredBytes::new(Arc::new(Elsewhere(w.clone(), AtomicUsize::new(0))));
            let run = |w: BufferArgument<'_>| {
                let mut y = AnyTensor::zeros(DType::F32, &[8]).unwrap();
                let mut buffers = [BufferArgument::Read(x.bytes()), w, BufferArgument::Write(y.bytes_mut())];
                let mut arguments = Arguments { dims: &[], scalars: &[], buffers: &mut buffers };
                code.run(&mut arguments, RunOptions::with_threads(1)).map(|()| y.to_f64_vec())
            };
            let expected = run(BufferArgument::Identified(w.identified_bytes()));
            // Where both parts need the elements, they are read once for both.
            for _ in 0..2 {
                assert_eq!(run(BufferArgument::Stored(&stored)), expected, "{program}");
            }
            assert_eq!(stored.resident().is_some(), stays, "{program}");
        }
    }

    #[test]
    fn elements_that_cannot_be_read_are_an_error() {
        let device: Arc<dyn Device> = Arc::new(CpuDevice::host().expect("no override"));
        let lowered = lower_kernel(&self::program("2.0"), device.target()).expect("it is legal");
        let code = compile(&device, &[&lowered]).remove(0).unwrap();
        let w = AnyTensor::zeros(DType::F32, &[8]).unwrap();
        let stored = StoredBytes::new(Arc::new(Elsewhere(w, AtomicUsize::new(1))));
        let (x, mut y) = ([1u8; 32], [0u8; 32]);
        let mut buffers =
            [BufferArgument::Read(&x), BufferArgument::Stored(&stored), BufferArgument::Write(&mut y)];
        let mut arguments = Arguments { dims: &[1], scalars: &[], buffers: &mut buffers };
        let error = code.run(&mut arguments, RunOptions::with_threads(1)).unwrap_err();
        assert_eq!(error.to_string(), "they are gone");
    }

    #[test]
    fn versions_for_several_sizes_share_the_results_of_constants() {
        let device: Arc<dyn Device> = Arc::new(CpuDevice::host().expect("no override"));
        let any = program("2.0");
        let (dim, _) = any.dims().next().expect("there is one");
        let programs = [any.bind_dims(&[(dim, 3)]), any, program("3.0")];
        let lowered = programs.map(|program| lower_kernel(&program, device.target()).expect("it is legal"));
        let compiled = compile(&device, &lowered.each_ref());
        let [own, any, other] = <[_; 3]>::try_from(compiled).ok().expect("one for each").map(Result::unwrap);

        let w = AnyTensor::random(DType::F32, &[8], 1).unwrap();
        let run = |code: &Compiled, dims: &[i64], rows: usize| {
            let x = AnyTensor::random(DType::F32, &[rows, 8], 2).unwrap();
            let mut y = AnyTensor::zeros(DType::F32, &[rows, 8]).unwrap();
            let mut buffers = [
                BufferArgument::Read(x.bytes()),
                BufferArgument::Identified(w.identified_bytes()),
                BufferArgument::Write(y.bytes_mut()),
            ];
            let mut arguments = Arguments { dims, scalars: &[], buffers: &mut buffers };
            code.run(&mut arguments, RunOptions::with_threads(1)).unwrap();
            let expected = |place: usize, factor: f64| {
                x.to_f64_vec()[place] + (w.to_f64_vec()[7 - place % 8] as f32 * factor as f32) as f64
            };
            (y.to_f64_vec(), expected(rows * 8 - 1, 2.0) as f32, expected(rows * 8 - 1, 3.0) as f32)
        };
        let is_packed = |code: &Compiled| {
            let prologue = code.prologue.as_ref().expect("it has constants");
            prologue.has_results_for(&[w.identified_bytes().identity()])
        };
        assert!(!is_packed(&own) && !is_packed(&any));
        let (y, twice, _) = run(&own, &[], 3);
        assert_eq!(y.last().map(|last| *last as f32), Some(twice));
        assert!(is_packed(&own) && is_packed(&any) && !is_packed(&other));
        let (y, twice, _) = run(&any, &[5], 5);
        assert_eq!(y.last().map(|last| *last as f32), Some(twice));
        let (y, _, thrice) = run(&other, &[2], 2);
        assert_eq!(y.last().map(|last| *last as f32), Some(thrice));
        drop(own);
        assert!(is_packed(&any), "another version needs them");
    }
}
