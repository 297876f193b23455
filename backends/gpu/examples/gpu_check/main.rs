//! Checks a GPU, or the mock driver: `scripts/gpu-check` builds and runs it.
//!
//! Single instructions give on the GPU what the simulator computes for them, so that tests on the simulator say something about
//! GPUs; programs give what the interpreter computes; copies are timed. The last line says how many checks failed, and the exit status
//! is 1 if any did.

mod conformance;
mod golden;
mod kernel;
mod programs;
mod speed;

use std::path::PathBuf;
use std::process::ExitCode;

use tilewright_core::device::DeviceError;
use tilewright_gpu::{Gpu, load_driver};

use golden::Goldens;

/// The arguments of the command line.
struct Settings {
    device: usize,
    driver: Option<PathBuf>,
    /// Where the outputs of single instructions are written.
    golden: Option<PathBuf>,
    /// A file of such outputs to compare the simulator with, which needs no GPU.
    replay: Option<PathBuf>,
}

/// The checks so far.
#[derive(Default)]
pub(crate) struct Tally {
    passed: usize,
    failed: usize,
}

impl Tally {
    /// Notes the outcome of a check, and prints one that failed.
    pub(crate) fn note(&mut self, name: &str, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.passed += 1,
            Err(problem) => {
                self.failed += 1;
                println!("FAILED {name}: {problem}");
            }
        }
    }
}

fn main() -> ExitCode {
    let settings = match settings(std::env::args().skip(1)) {
        Ok(settings) => settings,
        Err(problem) => {
            eprintln!(
                "{problem}\nusage: gpu_check [--device N] [--driver FILE | --mock] [--golden FILE]\n       gpu_check --replay FILE"
            );
            return ExitCode::from(2);
        }
    };
    match check(&settings) {
        Ok(tally) => {
            println!("{} checks passed, {} failed", tally.passed, tally.failed);
            ExitCode::from(u8::from(tally.failed > 0))
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn settings(mut arguments: impl Iterator<Item = String>) -> Result<Settings, String> {
    let mut settings = Settings { device: 0, driver: None, golden: None, replay: None };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("`{argument}` needs a value"));
        match argument.as_str() {
            "--device" => {
                let number = value()?;
                settings.device =
                    number.parse().map_err(|_| format!("`{number}` is no number of a device"))?;
            }
            "--driver" => settings.driver = Some(value()?.into()),
            "--golden" => settings.golden = Some(value()?.into()),
            "--replay" => settings.replay = Some(value()?.into()),
            "--mock" => {
                let file = tilewright_mock_cuda::library();
                settings.driver = Some(file.ok_or("the mock driver is not beside this program")?);
            }
            _ => return Err(format!("`{argument}` is unknown")),
        }
    }
    Ok(settings)
}

fn check(settings: &Settings) -> Result<Tally, String> {
    let mut tally = Tally::default();
    if let Some(file) = &settings.replay {
        golden::replay(file, &mut tally)?;
        return Ok(tally);
    }
    let text = |error: DeviceError| error.to_string();
    if let Some(file) = &settings.driver {
        load_driver(file).map_err(text)?;
    }
    let gpu = Gpu::open(settings.device).map_err(text)?;
    let facts = gpu.facts();
    println!(
        "{}: {}, {}, {} multiprocessors, {} KiB of shared memory for a block",
        gpu.name(),
        gpu.product(),
        facts.architecture(),
        facts.multiprocessors,
        facts.shared_bytes_per_block_opt_in >> 10
    );
    let create = |file: &PathBuf| Goldens::create(file, gpu.product(), &facts.architecture());
    let goldens = settings.golden.as_ref().map(create).transpose()?;
    conformance::check(&gpu, settings.device, goldens, &mut tally);
    programs::check(&gpu, &mut tally);
    speed::report(&gpu, &mut tally);
    Ok(tally)
}
