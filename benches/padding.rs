//! The gain of leaving out the products with padding.
//!
//! `cargo bench --bench padding -- [--ops C2D:1x7x7x512x512x3x1x1] [--threads N] [--json]`
//!
//! Each convolution is measured alternately as it is and as with the option `multiply_padding`, by the default schedule of each. With
//! `--trials N --records DIR` both are tuned first, and measured by their records, too. The end of the output is the geometric mean of
//! the gains and the smallest one.

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
#[expect(dead_code, reason = "the names of the set of operators are for the other benches")]
#[path = "operators/opset.rs"]
mod opset;
#[path = "operators/pair.rs"]
mod pair;
#[path = "operators/pieces.rs"]
mod pieces;
#[path = "operators/quantised.rs"]
mod quantised;
#[path = "operators/recurrences.rs"]
mod recurrences;

use std::process::ExitCode;

use serde::Serialize;
use tilewright::Kernel;
use tilewright::bench::{Comparison, Options, Variant, run_when_asked};
use tilewright::tuning::report::{Table, duration};

/// Convolutions with more and less padding, along few and many channels, in one to three dimensions.
const OPERATORS: [&str; 12] = [
    "C2D:1x7x7x512x512x3x1x1",
    "C2D:1x14x14x256x256x3x1x1",
    "C2D:1x28x28x128x128x3x1x1",
    "C2D:1x13x13x61x67x3x1x1",
    "C2D:1x14x14x96x96x5x1x2",
    "C2D:1x28x28x64x64x3x1x4x4",
    "C2D:1x224x224x3x64x7x2x3",
    "C1D:1x256x64x128x3x2x1",
    "C3D:1x8x14x14x32x64x3x1x1",
    "DEP:1x112x112x32x3x1x1",
    "DEP:1x14x14x384x5x1x2",
    "DIL.0",
];

/// The result for an operator.
#[derive(Debug, Serialize)]
struct Line {
    operator: String,
    variant: &'static str,
    threads: usize,
    left_out_ns: f64,
    formed_ns: f64,
    /// The time with all products over the time without products with padding.
    gain: f64,
}

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    run_when_asked(run)
}

fn run(options: &Options) -> Result<(), Failure> {
    let variants = pair::prepare(options)?;
    let names =
        if options.ops.is_empty() { OPERATORS.map(str::to_owned).to_vec() } else { options.ops.clone() };
    let mut lines = Vec::new();
    for name in &names {
        let operator = opset::operator(name)?;
        let ways = [(operator.kernel)(), with_all_products((operator.kernel)())?];
        for kernel in ways {
            pair::tune(&operator.name, kernel, &operator.dims, options)?;
        }
        let mut ways = [
            Comparison::new(ways[0], &operator.dims, None)?,
            Comparison::new(ways[1], &operator.dims, None)?,
        ];
        for variant in &variants {
            let line = measure(name, &mut ways, *variant)?;
            if options.json {
                println!("{}", serde_json::to_string(&line)?);
            }
            lines.push(line);
        }
    }
    if !options.json {
        print!("{}", table(&lines));
    }
    summarise(&lines, &variants);
    Ok(())
}

/// A kernel as with the option `multiply_padding`, for the rest of the process.
fn with_all_products(kernel: &Kernel) -> Result<&'static Kernel, Failure> {
    let mut program = kernel.program()?.clone();
    program.multiplies_padding = true;
    Ok(Box::leak(Box::new(Kernel::from_program(program)?)))
}

/// Measures a variant of both ways alternately.
fn measure(name: &str, ways: &mut [Comparison; 2], variant: Variant) -> Result<Line, Failure> {
    let [left_out_ns, formed_ns] = pair::fastest(ways, variant)?;
    let (variant, threads, gain) = (variant.name(), tilewright::threads()?, formed_ns / left_out_ns);
    Ok(Line { operator: name.to_owned(), variant, threads, left_out_ns, formed_ns, gain })
}

fn table(lines: &[Line]) -> Table {
    let mut table = Table::new(&["operator", "variant", "left out", "formed", "gain"]);
    for line in lines {
        table.row([
            line.operator.clone(),
            line.variant.to_owned(),
            duration(line.left_out_ns * 1e-9),
            duration(line.formed_ns * 1e-9),
            format!("{:.2} ×", line.gain),
        ]);
    }
    table
}

/// Prints the geometric mean and the smallest gain of each variant.
fn summarise(lines: &[Line], variants: &[Variant]) {
    for variant in variants {
        let gains: Vec<f64> =
            lines.iter().filter(|line| line.variant == variant.name()).map(|line| line.gain).collect();
        let mean = pair::geometric_mean(&gains);
        let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
        eprintln!("{}: {mean:.2} × in geometric mean, {least:.2} × at least", variant.name());
    }
}
