//! The cost of odd extents: the time per operation at a prime or odd extent over that at an aligned neighbour.
//!
//! `cargo bench --bench extents -- --variants default [--ops SFM:256x1021/256x1024] [--threads N] [--json]`
//!
//! Each pair is measured alternately. The variant `tuned` is what a call would run with the records of `--records DIR`; with
//! `--trials N` each shape is tuned first, as far as its records do not have that many trials. The end of the output is the
//! geometric mean and the largest ratio.

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
use tilewright::bench::{Comparison, Options, Variant, run_when_asked};
use tilewright::tuning::report::{Table, duration};

use opset::Operator;

/// An odd shape and an aligned one of a family: `FAMILY:ODD/ALIGNED`.
const PAIRS: [&str; 16] = [
    "GMM:1x127x127x127/1x128x128x128",
    "GMM:1x509x509x509/1x512x512x512",
    "C2D:1x29x29x61x67x3x1x1/1x28x28x64x64x3x1x1",
    "DEP:1x57x57x61x3x1x1/1x56x56x64x3x1x1",
    "SFM:256x1021/256x1024",
    "SFM:197x197/192x192",
    "LNM:256x769/256x768",
    "LNM:197x383/192x384",
    "NRM:1x1x769/1x1x768",
    "NRM:1x1x1009/1x1x1024",
    "NRM:1x1021x1021/1x1024x1024",
    "DOT:1000003/1000000",
    "DOT:10007/10000",
    "TBG:1x127x12x61/1x128x12x64",
    "ATT:4x64x509x64/4x64x512x64",
    "ATT:3x67x509x61/4x64x512x64",
];

/// The result for a pair.
#[derive(Debug, Serialize)]
struct Line {
    pair: String,
    variant: &'static str,
    threads: usize,
    odd_ns: f64,
    aligned_ns: f64,
    /// The time per operation at the odd shape over that at the aligned one.
    ratio: f64,
}

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    run_when_asked(run)
}

fn run(options: &Options) -> Result<(), Failure> {
    let variants = pair::prepare(options)?;
    let names = if options.ops.is_empty() { PAIRS.map(str::to_owned).to_vec() } else { options.ops.clone() };
    let mut lines = Vec::new();
    for name in &names {
        let operators = operators(name)?;
        for operator in &operators {
            pair::tune(&operator.name, (operator.kernel)(), &operator.dims, options)?;
        }
        let [odd, aligned] = &operators;
        let mut shapes = [
            Comparison::new((odd.kernel)(), &odd.dims, None)?,
            Comparison::new((aligned.kernel)(), &aligned.dims, None)?,
        ];
        for variant in &variants {
            let line = measure(name, &operators, &mut shapes, *variant)?;
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

/// The two operators of a pair, the odd one first.
fn operators(pair: &str) -> Result<[Operator; 2], String> {
    let (odd, aligned) = pair.split_once('/').ok_or_else(|| {
        format!("`{pair}` is no pair: expected FAMILY:ODD/ALIGNED as in `SFM:256x1021/256x1024`")
    })?;
    let (family, _) =
        odd.split_once(':').ok_or_else(|| format!("`{odd}` names no family: expected FAMILY:SHAPE"))?;
    Ok([opset::operator(odd)?, opset::operator(&format!("{family}:{aligned}"))?])
}

/// Measures a variant at both shapes alternately.
fn measure(
    name: &str,
    operators: &[Operator; 2],
    shapes: &mut [Comparison; 2],
    variant: Variant,
) -> Result<Line, Failure> {
    let [odd_ns, aligned_ns] = pair::fastest(shapes, variant)?;
    let ratio = (odd_ns / operators[0].flops) / (aligned_ns / operators[1].flops);
    let threads = tilewright::threads()?;
    Ok(Line { pair: name.to_owned(), variant: variant.name(), threads, odd_ns, aligned_ns, ratio })
}

fn table(lines: &[Line]) -> Table {
    let mut table = Table::new(&["pair", "variant", "odd", "aligned", "per operation"]);
    for line in lines {
        table.row([
            line.pair.clone(),
            line.variant.to_owned(),
            duration(line.odd_ns * 1e-9),
            duration(line.aligned_ns * 1e-9),
            format!("{:.2} ×", line.ratio),
        ]);
    }
    table
}

/// Prints the geometric mean and the largest ratio of each variant.
fn summarise(lines: &[Line], variants: &[Variant]) {
    for variant in variants {
        let ratios: Vec<f64> =
            lines.iter().filter(|line| line.variant == variant.name()).map(|line| line.ratio).collect();
        let mean = pair::geometric_mean(&ratios);
        let worst = ratios.iter().copied().fold(0.0, f64::max);
        eprintln!("{}: {mean:.2} × in geometric mean, {worst:.2} × at most", variant.name());
    }
}
