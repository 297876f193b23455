//! Reports for people: the schedule chosen for a kernel and a shape, and the reason.

use std::fmt;

use tilewright_core::program::Program;
use tilewright_core::schedule::Trace;
use tilewright_search::gpu::features::{KernelReport, report};
use tilewright_search::records::Shape;

use super::versions::DeviceGeneration;
use super::{Kernel, Source};
use crate::code;
use crate::devices::{self, DeviceId};
use crate::error::Error;

/// The code that calls of a kernel run once its own version is made. Prints as a report.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// The kernel's name.
    pub kernel: String,
    /// The shape.
    pub shape: Shape,
    /// Where the schedule comes from.
    pub source: Source,
    /// Why better schedules were not used: records that do not replay or need what this machine lacks.
    pub notes: Vec<String>,
    /// The schedule.
    pub trace: Trace,
    /// The scheduled program, at the `Blocks` level.
    pub scheduled: Program,
    /// The static costs of the kernels, where the device is a GPU.
    pub reports: Vec<KernelReport>,
    /// The program that was compiled, at the `Flat` level. When there is a prologue, without what that computes.
    pub flat: Program,
    /// The computation on constant tensors alone, run once for each, at the `Flat` level.
    pub prologue: Option<Program>,
    /// The size of the machine code, in bytes.
    pub code_bytes: usize,
    /// The machine code, one instruction a line.
    pub disassembly: String,
}

/// Explains what a call with given dimensions runs on the default device; compiles it if it has not been called yet. Dimensions and
/// `usize` arguments are given by name, in any order.
///
/// # Errors
/// [`Error::DimensionNames`] when the names are not the kernel's, or why the kernel cannot be compiled.
pub fn explain(kernel: &Kernel, dims: &[(&str, i64)]) -> Result<Explanation, Error> {
    explain_on(kernel, DeviceId::DEFAULT, dims)
}

/// As [`explain`], for any device.
///
/// # Errors
/// As [`explain`], and when the device cannot be opened.
pub fn explain_on(kernel: &Kernel, device: DeviceId, dims: &[(&str, i64)]) -> Result<Explanation, Error> {
    let dims = kernel.dims_by_name(dims)?;
    let version = kernel.best_version(&dims, DeviceGeneration::now(device))?;
    let lowered = version.lower()?;
    let disassembly = code::list(&*devices::device(device)?, &lowered)?;
    Ok(Explanation {
        kernel: kernel.name().to_owned(),
        shape: kernel.shape(&dims),
        source: version.source.clone(),
        notes: version.notes.clone(),
        trace: version.trace.clone(),
        scheduled: version.scheduled.clone(),
        reports: match devices::run_context_of(device)?.target.gpu() {
            Ok(gpu) => report(&version.scheduled, gpu),
            Err(_) => Vec::new(),
        },
        flat: lowered.main,
        prologue: lowered.prologue.map(|prologue| prologue.program),
        code_bytes: version.code.code_bytes(),
        disassembly,
    })
}

impl Kernel {
    /// Values of the dimensions in the order of the definition, from values by name in any order.
    ///
    /// # Errors
    /// [`Error::DimensionNames`] when one is missing, unknown or given twice.
    pub fn dims_by_name(&self, named: &[(&str, i64)]) -> Result<Vec<i64>, Error> {
        let wrong = |problem: String| {
            let expected = self.dims().join(", ");
            let expected = if expected.is_empty() { "no dimensions".to_owned() } else { expected };
            Error::DimensionNames { kernel: self.name().to_owned(), expected, problem }
        };
        if let Some((name, _)) = named.iter().find(|(name, _)| !self.dims().contains(name)) {
            return Err(wrong(format!("`{name}` is none of them")));
        }
        let value = |dim: &&str| {
            let mut values = named.iter().filter(|(name, _)| name == dim).map(|(_, value)| *value);
            match (values.next(), values.next()) {
                (Some(value), None) => Ok(value),
                (None, _) => Err(wrong(format!("`{dim}` is missing"))),
                (Some(_), Some(_)) => Err(wrong(format!("`{dim}` is given twice"))),
            }
        };
        self.dims().iter().map(value).collect()
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "kernel {} for {}: {}", self.kernel, self.shape, self.source)?;
        self.notes.iter().try_for_each(|note| writeln!(f, "  note: {note}"))?;
        writeln!(f, "\n{}", self.trace)?;
        writeln!(f, "scheduled program:\n{}", self.scheduled)?;
        for (number, report) in self.reports.iter().enumerate() {
            writeln!(f, "kernel {number}, before any run: {report}\n")?;
        }
        if let Some(prologue) = &self.prologue {
            writeln!(f, "computed once for each constant tensor:\n{prologue}")?;
        }
        writeln!(f, "compiled program:\n{}", self.flat)?;
        write!(f, "machine code, {} bytes:\n{}", self.code_bytes, self.disassembly)
    }
}
