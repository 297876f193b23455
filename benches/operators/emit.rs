//! Operators as PTX for a GPU, without one: `NAME.ptx`, `NAME.json` with all that launching needs, `NAME.trace` with the schedule, and
//! `NAME.report` with the static costs of its kernels.

use std::error::Error;
use std::fs;
use std::path::Path;

use tilewright::Kernel;
use tilewright::core::lower::{LowerOptions, lower};
use tilewright::core::program::Program;
use tilewright::core::schedule::{Rng, Schedule, Step};
use tilewright::core::target::{GpuTarget, RunContext, Target};
use tilewright::search::candidate::{Candidate, Generator, Statistics};
use tilewright::search::gpu::features::report;
use tilewright::search::records::{Database, Shape};
use tilewright::search::schedule_by_default;
use tilewright::search::space::design_spaces;
use tilewright::search::spec::{DeviceFunctions, SearchSpec};
use tilewright_gpu::intrinsics::with_intrinsics;

use super::opset::Operator;

/// A GPU by the name of its architecture or of a product, with its tensor cores.
pub(crate) fn target(name: &str) -> Result<GpuTarget, String> {
    GpuTarget::named(name).map(with_intrinsics).ok_or_else(|| {
        let products = GpuTarget::product_names().collect::<Vec<_>>().join(", ");
        format!("`--target` needs an architecture from sm_80 on, such as sm_90, or one of {products}; found `{name}`")
    })
}

/// Writes the files of each operator into a folder, by the schedules of records where there are any of its shape that serve the GPU, and
/// those of `candidates` further points of its design space.
pub(crate) fn emit(
    operators: &[Operator],
    gpu: GpuTarget,
    folder: &Path,
    records: Option<&Path>,
    candidates: usize,
) -> Result<(), Box<dyn Error>> {
    let context = RunContext::from(Target::from(gpu.clone()));
    let records = records.map(open).transpose()?;
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for operator in operators {
        let kernel = (operator.kernel)();
        let dims = kernel.dims_by_name(&operator.dims)?;
        let program = kernel.program_for(&dims)?;
        let recorded = match &records {
            Some(records) => match recorded(kernel, &kernel.shape(&dims), &program, records, &context) {
                Ok(schedule) => Some(schedule),
                Err(reason) => {
                    eprintln!("{}: by its default schedule: {reason}", operator.name);
                    None
                }
            },
            None => None,
        };
        let origin = if recorded.is_some() { "recorded" } else { "default" };
        let schedule = recorded.unwrap_or_else(|| schedule_by_default(&program, context.clone()));
        let name: String =
            operator.name.chars().map(|letter| if letter.is_alphanumeric() { letter } else { '_' }).collect();
        let (kernels, micros) = write(&folder.join(&name), &program, &schedule, &gpu)?;
        println!("{}: {kernels} kernels by the {origin} schedule, about {micros:.0} µs", operator.name);
        for (number, schedule) in (1..).zip(points(&program, &context, candidates)?) {
            write(&folder.join(format!("{name}-{number}")), &program, &schedule, &gpu)?;
        }
    }
    Ok(())
}

/// Writes the files of a scheduled program; gives the number of its kernels and their time by the draft model, in µs.
fn write(
    stem: &Path,
    program: &Program,
    schedule: &Schedule,
    gpu: &GpuTarget,
) -> Result<(usize, f64), Box<dyn Error>> {
    let flat = lower(schedule.program(), &LowerOptions::of(&schedule.context().target))?;
    let code = tilewright_gpu::emit(&flat, gpu)?;
    // The lowered program has tensors of one dimension.
    let manifest = tilewright_gpu::manifest(program, &code, &[], gpu)?;
    let reports = report(schedule.program(), gpu);
    let described = reports.iter().map(|report| format!("{report}\n")).collect::<Vec<_>>().join("\n");
    let kernels = code.launches.len();
    let texts = [
        ("ptx", code.ptx),
        ("json", format!("{manifest:#}\n")),
        ("trace", schedule.trace().to_string()),
        ("report", described),
    ];
    for (extension, text) in texts {
        let file = stem.with_extension(extension);
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok((kernels, reports.iter().map(|report| report.cost.seconds() * 1e6).sum()))
}

/// Different points of a program's design spaces that can be lowered: the first half are those of which the draft model expects most
/// among eight times as many, the other ones are drawn from the rest.
fn points(program: &Program, context: &RunContext, count: usize) -> Result<Vec<Schedule>, Box<dyn Error>> {
    let spec = SearchSpec::built_in(context.target.kind())?;
    let spaces = design_spaces(program, context, &spec.rules, 1);
    let generator = Generator::new(program.clone(), context.clone(), spec);
    let mut rng = Rng::new(1);
    let mut found: Vec<(Candidate, Schedule)> = Vec::new();
    for _ in 0..40 * count {
        if found.len() == 8 * count || spaces.is_empty() {
            break;
        }
        let (space, seed) = (rng.below(spaces.len()), rng.next_u64());
        let mut own = Rng::new(seed);
        let decide = |_: usize, step: &Step| generator.align(step, &mut own);
        let made = generator.generate(space, &spaces[space], seed, decide, &mut Statistics::default());
        let Some(made) = made.filter(|made| found.iter().all(|(known, _)| known.hash != made.hash)) else {
            continue;
        };
        let schedule = made.trace.replay(program, context, 0)?;
        if lower(schedule.program(), &LowerOptions::of(&context.target)).is_ok() {
            found.push((made, schedule));
        }
    }
    let prior = |candidate: &Candidate| candidate.features.prior();
    found.sort_by(|(a, _), (b, _)| prior(b).total_cmp(&prior(a)).then(a.hash.cmp(&b.hash)));
    let best = (count / 2).min(found.len());
    while found.len() > count {
        found.remove(best + rng.below(found.len() - best));
    }
    Ok(found.into_iter().map(|(_, schedule)| schedule).collect())
}

/// The records at a path, which has to be there.
fn open(path: &Path) -> Result<Database, Box<dyn Error>> {
    if !path.exists() {
        return Err(format!("`--records {}`: there is no such directory or file", path.display()).into());
    }
    let records = Database::open(path)?;
    for problem in records.problems() {
        eprintln!("a line of the records is skipped: {problem}");
    }
    Ok(records)
}

/// The schedule of the best record of a kernel at this shape, or why there is none.
fn recorded(
    kernel: &Kernel,
    shape: &Shape,
    program: &Program,
    records: &Database,
    context: &RunContext,
) -> Result<Schedule, String> {
    let hash = kernel.hash().map_err(|error| error.to_string())?;
    let Some(record) = records.best(hash, shape, context) else {
        let other = records.passed_over(hash, &context.target);
        let of_shape = other.iter().find(|passed| passed.record.shape == *shape);
        return Err(match of_shape {
            Some(passed) => {
                let missing: Vec<&str> = passed.missing.iter().map(String::as_str).collect();
                format!("the record of {shape} is of another GPU, with {}", missing.join(", "))
            }
            None => format!("there is no record of {shape} for a GPU"),
        });
    };
    if record.median_ns().is_none() {
        return Err(format!("no schedule of {shape} was measured successfully"));
    }
    let schedule = record
        .trace
        .replay_exactly(program, context, 0)
        .map_err(|error| format!("the record of {shape} does not replay: {error}"))?;
    let device = DeviceFunctions::built_in(context.target.kind());
    (device.verify_limits)(schedule.program(), schedule.context())
        .map_err(|reason| format!("the record of {shape} does not suit this GPU: {reason}"))?;
    Ok(schedule)
}
