//! The operator set, with one line for each operator and variant.
//!
//! `cargo bench --bench operators -- --json --ops GMM.0,C2D.0 --threads 1` prints JSON lines, without `--json` a
//! table. `--ops ALL` takes one shape of every family at least, `--ops 'GMM:1x96x200x33'` any shape of a family; `QMM`, `SMM`, `UMM` and `XMM` are products of matrices of
//! bytes (unsigned × signed, signed × signed, unsigned × unsigned, signed × unsigned), as in `QMM:128x768x768`, `QCV` is a
//! convolution of bytes; `HMM` and `HMR` are products of matrices of `bf16` with results in `f32` and in `bf16`; `QMW`,
//! `SMW` and `HMW` are `QMM`, `SMM` and `HMM` with a second matrix that stays the same; `GMM3`, `GMM6` and `GMM9` are `GMM`
//! with an accuracy that allows the given number of products of `bf16` pieces for each of `f32`. The variant `tuned` is what a call would
//! run with the records of `benches/tuned/` (or `--records`): it says on the standard error where there is none for the shape.
//!
//! `--device gpu:0` measures on a GPU, `--device gpu:mock` on a simulated one, whose times are those of a simple model. There, `tuned` tunes
//! an operator of which the device has no record, with `--trials` measurements, and leaves records in `--records`; `--no-tune`
//! takes what there is.
//!
//! `--target sm_80 --emit DIR` measures nothing and needs no GPU: it writes the kernels of each operator by their default
//! schedules, or by those of the records in `--records`, as `NAME.ptx`, with `NAME.json`, which says how they are launched (see `tilewright_gpu::manifest`), and
//! `NAME.trace`. `--target h100` writes them for a product; `--candidates N` adds the files of N further points of each design space, as `NAME-1.ptx`. In names, `_` stands for what is no letter or digit.
//!
//! The environment variables `PEER_OPS` and `PEER_THREADS` stand for `--ops` and `--threads`. A program that sets the
//! former runs us in alternation with others, each with one time for an operator: then only `tuned` is
//! measured, unless `--variants` says otherwise.

#[path = "operators/attention.rs"]
mod attention;
#[path = "operators/bytes.rs"]
mod bytes;
#[path = "operators/emit.rs"]
mod emit;
#[path = "operators/halves.rs"]
mod halves;
#[path = "operators/kernels.rs"]
mod kernels;
#[path = "operators/memory.rs"]
mod memory;
#[path = "operators/opset.rs"]
mod opset;
#[path = "operators/pieces.rs"]
mod pieces;
#[path = "operators/quantised.rs"]
mod quantised;
#[path = "operators/recurrences.rs"]
mod recurrences;
#[path = "operators/whole_set.rs"]
mod whole_set;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tilewright::Source;
use tilewright::bench::{
    Checked, Comparison, Effort, Line, Options, OptionsError, Sampled, Variant, list, run_when,
};
use tilewright::devices::{self, DeviceId};
use tilewright::kernel::explain_on;
use tilewright::tuning::Tuner;
use tilewright::tuning::report::{Table, duration};

use opset::Operator;

/// The environment variable that stands for `--ops`.
const PEER_OPS: &str = "PEER_OPS";

/// The reference is left out when it is estimated to take longer than this, in seconds, at the rate below.
const SLOWEST_REFERENCE: f64 = 20.0;

/// The reference is run once when it is estimated to take longer than this, in seconds.
const SLOW_REFERENCE: f64 = 0.1;

/// Operations per second of a definition as ordinary Rust, roughly.
const REFERENCE_RATE: f64 = 0.8e9;

fn main() -> ExitCode {
    run_when(|options| options.is_given || std::env::var_os(PEER_OPS).is_some(), run)
}

fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let peer_ops = std::env::var(PEER_OPS).ok();
    options.refuse_budget()?;
    let names = match (&options.ops[..], &peer_ops) {
        ([], None) => opset::names(),
        ([], Some(names)) => list(names).collect(),
        ([all], _) if all == "ALL" => whole_set::whole_set(),
        (names, _) => names.to_vec(),
    };
    let operators = names.iter().map(|name| opset::operator(name)).collect::<Result<Vec<_>, _>>()?;
    if options.list {
        operators.iter().for_each(|operator| println!("{}", operator.name));
        return Ok(());
    }
    let device = match &options.device {
        Some(name) => devices::find(name)?,
        None => DeviceId::DEFAULT,
    };
    let records = options.records.as_deref();
    let candidates = options.candidates.unwrap_or(0);
    match (&options.target, &options.device, &options.emit) {
        (Some(target), None, Some(folder)) => {
            return emit::emit(&operators, emit::target(target)?, folder, records, candidates);
        }
        (None, Some(_), Some(folder)) => {
            let target = devices::device(device)?.target().gpu().cloned();
            let target = target.map_err(|_| "`--emit` writes kernels for GPUs: name one, such as gpu:0")?;
            return emit::emit(&operators, target, folder, records, candidates);
        }
        (Some(_), Some(_), _) => return Err("`--target` and `--device` exclude each other".into()),
        (None, _, None) => {}
        _ => return Err("`--target` or `--device`, and `--emit` are given together".into()),
    }
    let threads = match (options.threads, std::env::var("PEER_THREADS")) {
        (Some(threads), _) => threads,
        (None, Ok(text)) => {
            text.parse().map_err(|_| format!("PEER_THREADS is `{text}`, expected a number"))?
        }
        (None, Err(_)) => 0,
    };
    tilewright::set_threads(threads);
    let variants = variants(options, peer_ops.is_some() && options.ops.is_empty())?;
    let records = options.records.clone().unwrap_or_else(|| default_records(options.device.as_deref()));
    if options.device.is_none() || records.exists() {
        tilewright::use_records(&records)?;
    }
    let mut table = Table::new(&["operator", "variant", "median", "fastest", "GFLOP/s", "error"]);
    for operator in &operators {
        if options.device.is_some() && variants.contains(&Variant::Tuned) && !options.no_tune {
            tune(operator, device, &records, options)?;
        }
        measure(operator, device, &variants, options, &mut table)?;
    }
    if !options.json {
        print!("{table}");
    }
    for (reason, count) in tilewright::backends::cpu::refusals() {
        eprintln!("{count} statements were not compiled to vectors of full width as a whole: {reason}");
    }
    Ok(())
}

fn variants(options: &Options, is_peer: bool) -> Result<Vec<Variant>, OptionsError> {
    match (options.variants()?, is_peer) {
        (given, _) if !given.is_empty() => Ok(given),
        (_, true) => Ok(vec![Variant::Tuned]),
        (_, false) => Ok(Variant::ALL.to_vec()),
    }
}

/// The records of the CPU are kept with the benches, those of other devices with what is built.
fn default_records(device: Option<&str>) -> PathBuf {
    match device {
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/tuned"),
        Some(name) => {
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tuned-{}", name.replace(':', "-")))
        }
    }
}

/// The most measurements of an operator on a device that has no record of it, where `--trials` gives no other number.
const TRIALS: usize = 16;

/// Tunes an operator on a device that has no record of it yet.
fn tune(
    operator: &Operator,
    device: DeviceId,
    records: &Path,
    options: &Options,
) -> Result<(), Box<dyn std::error::Error>> {
    let kernel = (operator.kernel)();
    if matches!(explain_on(kernel, device, &operator.dims)?.source, Source::Exact { .. }) {
        return Ok(());
    }
    let mut tuner = Tuner::new()
        .device(device)
        .records(records)
        .trials(options.trials.unwrap_or(TRIALS))
        .seed(options.seed.unwrap_or(1))
        .cache(options.cache);
    if let Some(limit) = options.time_limit {
        tuner = tuner.time_limit(limit);
    }
    let tuned = tuner.tune(kernel, &operator.dims)?;
    eprintln!("{}: {} schedules measured, records in {}", operator.name, tuned.trials, records.display());
    Ok(())
}

/// Measures the variants of an operator and prints a line, or adds a row, for each.
fn measure(
    operator: &Operator,
    device: DeviceId,
    variants: &[Variant],
    options: &Options,
    table: &mut Table,
) -> Result<(), Box<dyn std::error::Error>> {
    // Results of the definition are kept between runs, because the largest operators take seconds.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut comparison = Comparison::on(device, (operator.kernel)(), &operator.dims, Some(cache))?;
    comparison.set_cache(options.cache);
    if !matches!(comparison.source(), Source::Exact { .. }) && variants.contains(&Variant::Tuned) {
        eprintln!("{}: not tuned for this shape; `tuned` is {}", operator.name, comparison.source());
        comparison.notes().iter().for_each(|note| eprintln!("{}: {note}", operator.name));
    }
    let estimate = operator.flops / REFERENCE_RATE;
    for variant in variants {
        if *variant == Variant::Reference && estimate > SLOWEST_REFERENCE && !options.reference {
            eprintln!("{}: the reference takes about {estimate:.0} s; --reference insists", operator.name);
            continue;
        }
        let Checked { max_rel_err, duration: once } = comparison.check(*variant)?;
        let sampled = if *variant == Variant::Reference && estimate > SLOW_REFERENCE {
            let once = once.as_secs_f64() * 1e9;
            Sampled { median_ns: once, clean_ns: once, min_ns: once, spread: 0.0 }
        } else {
            comparison.measure(&[*variant], &Effort::default())?.remove(0)
        };
        let gflops = operator.flops / sampled.median_ns;
        if options.json {
            let line = Line {
                op: operator.name.clone(),
                variant: variant.name(),
                cache: options.cache.name(),
                device: options.device.clone(),
                threads: if *variant == Variant::Reference { 1 } else { tilewright::threads()? },
                ns_median: sampled.median_ns,
                ns_clean: sampled.clean_ns,
                ns_min: sampled.min_ns,
                gflops,
                max_rel_err,
            };
            println!("{line}");
        } else {
            table.row([
                operator.name.clone(),
                variant.name().to_owned(),
                duration(sampled.median_ns * 1e-9),
                duration(sampled.min_ns * 1e-9),
                format!("{gflops:.2}"),
                format!("{max_rel_err:.1e}"),
            ]);
        }
    }
    Ok(())
}
