//! Operators that memory limits, beside plain copies of as many bytes in the same run.
//!
//! `cargo bench --bench bandwidth -- --json --threads 2 [--ops CPY:4096x8192,LNM:4096x8192] [--records DIR]` prints a JSON line for
//! each operator and variant; without `--json` a table. All are measured alternately: a round runs every operator, our copy
//! and the system's once, each on tensors of its own that the others have pushed out of the caches meanwhile.
//!
//! The bytes of an operator are those that must move: each argument is read once and each result is written once. That a
//! processor reads a line before it writes to it, unless the store goes around the caches, is not counted: it is part of what an
//! operator can do badly, the system's copy included.
//!
//! How long a cache line takes to another thread and back is measured before and after, because it tells where a virtual machine's
//! cores lie: some 100 ns where they share a cache and its way to memory, several times that where each has its own. The host may
//! change it at any time, and everything here changes with it; a run in which the two numbers differ is worth repeating.

#[path = "operators/attention.rs"]
mod attention;
#[path = "operators/bytes.rs"]
mod bytes;
#[path = "operators/halves.rs"]
mod halves;
#[path = "operators/kernels.rs"]
mod kernels;
#[path = "operators/memory.rs"]
mod memory;
#[expect(dead_code, reason = "the standing set and its counts of operations are for the other benches")]
#[path = "operators/opset.rs"]
mod opset;
#[path = "operators/pieces.rs"]
mod pieces;
#[path = "operators/quantised.rs"]
mod quantised;
#[path = "operators/recurrences.rs"]
mod recurrences;

use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use tilewright::bench::{Comparison, Options, Variant, run_when_asked};
use tilewright::tuning::report::{Table, duration};

use opset::Operator;

/// The operators that are measured by default: 128 MiB for each matrix.
const OPERATORS: [&str; 6] = ["CPY", "ADD", "GBE", "SFM", "LNM", "TRN"];
const SHAPE: &str = "4096x8192";

/// Rounds, and after how long no further one is begun.
const ROUNDS: usize = 41;
const BUDGET: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    run_when_asked(run)
}

/// An operator, compiled, and its times so far.
struct Measured {
    operator: Operator,
    comparison: Comparison,
    bytes: f64,
    /// For each variant.
    seconds: Vec<Vec<f64>>,
    max_rel_err: Vec<f64>,
}

fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    options.refuse_budget()?;
    let names = match &options.ops[..] {
        [] => OPERATORS.map(|family| format!("{family}:{SHAPE}")).to_vec(),
        names => names.to_vec(),
    };
    tilewright::set_threads(options.threads.unwrap_or(0));
    let threads = tilewright::threads()?;
    if let Some(records) = &options.records {
        tilewright::use_records(records)?;
    }
    let variants = match (&options.variants()?[..], &options.records) {
        ([], None) => vec![Variant::Default],
        ([], Some(_)) => vec![Variant::Default, Variant::Tuned],
        (asked_for, _) => asked_for.to_vec(),
    };
    let mut measured = Vec::new();
    for name in &names {
        measured.push(Measured::new(opset::operator(name)?, &variants)?);
    }
    let elements = measured.iter().map(|own| own.bytes).fold(0.0, f64::max) as usize / 8;
    let mut system = SystemCopy::new(elements, threads);
    let before = round_trip();
    let start = Instant::now();
    for round in 0..ROUNDS {
        system.run();
        for own in &mut measured {
            own.run(&variants)?;
        }
        if round >= 4 && start.elapsed() > BUDGET {
            break;
        }
    }
    let machine = Machine { system, round_trips: [before, round_trip()] };
    report(&measured, &variants, &machine, options)
}

/// Figures of the machine, printed beside the operators.
struct Machine {
    system: SystemCopy,
    /// Before and after everything else.
    round_trips: [Duration; 2],
}

/// How long a cache line takes from one thread to another and back: the shortest of a few times, each the mean of many
/// round trips.
fn round_trip() -> Duration {
    const TIMES: u32 = 8;
    const TRIPS: u32 = 10_000;
    // Odd numbers are on their way there, even ones on their way back.
    let ball = AtomicU32::new(0);
    let wait_for = |number| {
        while ball.load(Ordering::Acquire) != number {
            std::hint::spin_loop();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for trip in 0..TIMES * TRIPS {
                wait_for(2 * trip + 1);
                ball.store(2 * trip + 2, Ordering::Release);
            }
        });
        let mean = |time: u32| {
            let start = Instant::now();
            for trip in time * TRIPS..(time + 1) * TRIPS {
                ball.store(2 * trip + 1, Ordering::Release);
                wait_for(2 * trip + 2);
            }
            start.elapsed() / TRIPS
        };
        (0..TIMES).map(mean).min().unwrap_or_default()
    })
}

impl Measured {
    fn new(operator: Operator, variants: &[Variant]) -> Result<Self, Box<dyn std::error::Error>> {
        let cache = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
        let mut comparison = Comparison::new((operator.kernel)(), &operator.dims, Some(cache))?;
        let mut max_rel_err = Vec::new();
        for variant in variants {
            max_rel_err.push(comparison.check(*variant)?.max_rel_err);
        }
        let definition = (operator.kernel)().definition().ok_or("an operator is written in Rust")?;
        let dims: Vec<i64> = (operator.kernel)().dims_by_name(&operator.dims)?;
        let mut bytes = 0.0;
        for parameter in definition.tensors() {
            let shape = definition.shape(parameter, &dims)?;
            bytes += (shape.iter().product::<usize>() * parameter.dtype.bytes()) as f64;
        }
        Ok(Measured { operator, comparison, bytes, seconds: vec![Vec::new(); variants.len()], max_rel_err })
    }

    fn run(&mut self, variants: &[Variant]) -> Result<(), Box<dyn std::error::Error>> {
        for (variant, seconds) in variants.iter().zip(&mut self.seconds) {
            seconds.push(self.comparison.run(*variant, 1)?.as_secs_f64());
        }
        Ok(())
    }

    /// Bytes per nanosecond of a variant.
    fn rate(&self, variant: usize) -> f64 {
        self.bytes / median(&self.seconds[variant]) * 1e-9
    }
}

/// The standard library's copy, a part for each thread.
struct SystemCopy {
    from: Vec<f32>,
    to: Vec<f32>,
    threads: usize,
    seconds: Vec<f64>,
}

impl SystemCopy {
    fn new(elements: usize, threads: usize) -> Self {
        let mut copy =
            SystemCopy { from: vec![1.0; elements], to: vec![2.0; elements], threads, seconds: Vec::new() };
        copy.run();
        copy.seconds.clear();
        copy
    }

    fn run(&mut self) {
        let part = self.from.len().div_ceil(self.threads);
        let start = Instant::now();
        std::thread::scope(|scope| {
            for (from, to) in self.from.chunks(part).zip(self.to.chunks_mut(part)) {
                scope.spawn(move || to.copy_from_slice(from));
            }
        });
        self.seconds.push(start.elapsed().as_secs_f64());
    }

    fn rate(&self) -> f64 {
        (8 * self.from.len()) as f64 / median(&self.seconds) * 1e-9
    }
}

fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// The line that is printed for a variant of an operator, as a JSON object.
#[derive(Serialize)]
struct Line<'a> {
    op: &'a str,
    variant: &'static str,
    threads: usize,
    bytes: f64,
    ns_median: f64,
    gb_per_s: f64,
    /// Of the bytes per second of our copy, the faster of its variants.
    of_copy: Option<f64>,
    /// Of those of the system's.
    of_system_copy: f64,
    /// Of a cache line between two threads, before and after.
    round_trip_ns: [u128; 2],
    max_rel_err: f64,
}

fn report(
    measured: &[Measured],
    variants: &[Variant],
    machine: &Machine,
    options: &Options,
) -> Result<(), Box<dyn std::error::Error>> {
    let rates = |own: &Measured| (0..variants.len()).map(|v| own.rate(v)).fold(0.0, f64::max);
    let copy = measured.iter().find(|own| own.operator.name.starts_with("CPY")).map(rates);
    let system = &machine.system;
    let round_trip_ns = machine.round_trips.map(|trip| trip.as_nanos());
    let mut table =
        Table::new(&["operator", "variant", "MiB", "median", "GB/s", "of copy", "of system's", "error"]);
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    for own in measured {
        for (number, variant) in variants.iter().enumerate() {
            let line = Line {
                op: &own.operator.name,
                variant: variant.name(),
                threads: tilewright::threads()?,
                bytes: own.bytes,
                ns_median: median(&own.seconds[number]) * 1e9,
                gb_per_s: own.rate(number),
                of_copy: copy.map(|copy| own.rate(number) / copy),
                of_system_copy: own.rate(number) / system.rate(),
                round_trip_ns,
                max_rel_err: own.max_rel_err[number],
            };
            if options.json {
                println!("{}", serde_json::to_string(&line)?);
                continue;
            }
            table.row([
                line.op.to_owned(),
                line.variant.to_owned(),
                format!("{:.0}", line.bytes / f64::from(1 << 20)),
                duration(line.ns_median * 1e-9),
                format!("{:.1}", line.gb_per_s),
                line.of_copy.map_or_else(|| "–".to_owned(), percent),
                percent(line.of_system_copy),
                format!("{:.1e}", line.max_rel_err),
            ]);
        }
    }
    if !options.json {
        println!("{table}\nthe system's copy: {:.1} GB/s", system.rate());
        let [before, after] = round_trip_ns;
        println!("a cache line to another thread and back: {before} ns before, {after} ns after");
    }
    Ok(())
}
