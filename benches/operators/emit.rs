//! Operators as PTX for a GPU, without one: `NAME.ptx`, `NAME.json` with all that launching needs, `NAME.trace` with the schedule, and
//! `NAME.report` with the static costs of its kernels.

use std::error::Error;
use std::fs;
use std::path::Path;

use tilewright::core::lower::{LowerOptions, lower};
use tilewright::core::target::{GpuTarget, Target};
use tilewright::search::gpu::features::report;
use tilewright::search::schedule_by_default;

use super::opset::Operator;

/// Writes the files of each operator into a folder.
pub(crate) fn emit(operators: &[Operator], architecture: &str, folder: &Path) -> Result<(), Box<dyn Error>> {
    let gpu = GpuTarget::for_architecture(architecture).ok_or_else(|| {
        format!(
            "`--target` needs an architecture from sm_80 on, such as sm_80 or sm_90, found `{architecture}`"
        )
    })?;
    let target = Target::from(gpu.clone());
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for operator in operators {
        let kernel = (operator.kernel)();
        let dims = kernel.dims_by_name(&operator.dims)?;
        let program = kernel.program_for(&dims)?;
        let schedule = schedule_by_default(&program, target.clone());
        let flat = lower(schedule.program(), &LowerOptions::of(&target))?;
        let code = tilewright_gpu::emit(&flat, &gpu)?;
        let manifest = tilewright_gpu::manifest(&flat, &code, &[], &gpu)?;
        let name: String =
            operator.name.chars().map(|letter| if letter.is_alphanumeric() { letter } else { '_' }).collect();
        let reports = report(schedule.program(), &gpu);
        let described = reports.iter().map(|report| format!("{report}\n")).collect::<Vec<_>>().join("\n");
        let texts = [
            ("ptx", code.ptx),
            ("json", format!("{manifest:#}\n")),
            ("trace", schedule.trace().to_string()),
            ("report", described),
        ];
        for (extension, text) in texts {
            let file = folder.join(format!("{name}.{extension}"));
            fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        }
        let micros = reports.iter().map(|report| report.cost.seconds() * 1e6).sum::<f64>();
        println!("{}: {} kernels, about {micros:.0} µs", operator.name, code.launches.len());
    }
    Ok(())
}
