//! What it is worth that the rows of a layer roll through a buffer of three: two layers of 3 by 3 sums, of which the first is
//! computed as a whole, strip by strip, anew for each row of the second, or rolling. All variants run alternately in one run; the fastest sample of each counts.
//!
//! `cargo run --release --example rolling -p tilewright-cpu [-- COLUMNS [THREADS]]`

use std::sync::Arc;
use std::time::{Duration, Instant};

use tilewright_core::dtype::DType;
use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::Program;
use tilewright_core::schedule::Trace;
use tilewright_core::target::{Arguments, Backend, BufferArgument, Executable, Target};
use tilewright_core::tensor::AnyTensor;
use tilewright_cpu::CpuBackend;

/// The rows of the result, and of a strip.
const ROWS: usize = 1024;
const STRIP: usize = 64;
/// How often each variant runs.
const ROUNDS: u32 = 30;

/// Fetches the blocks and cuts the second layer into strips.
const STRIPS: &str = "trace v1
%0 = get_block \"b\"
%1 = get_block \"y\"
%2, %3 = get_loops %1
%4, %5 = split %2, [none, STRIP]
";

/// Lanes for the second layer, and threads for strips.
const SECOND_LAYER: &str = "%6, %7 = split %3, [none, 32]
vectorize %7
parallel %4
";

/// Where the first layer is computed, for each variant, and its lanes.
const VARIANTS: [(&str, &str, &str); 4] = [
    (
        "whole",
        "",
        "%8, %9 = get_loops %0
%10, %11 = split %8, [none, STRIP]
%12, %13 = split %9, [none, 32]
vectorize %13
parallel %10
",
    ),
    (
        "strip by strip",
        "compute_at %0, %4\n",
        "%8, %9, %10 = get_loops %0
%11, %12 = split %10, [none, 32]
vectorize %12
",
    ),
    ("anew for each row", "compute_at %0, %5\n", FIRST_LAYER_ROWS),
    ("rolling", "compute_at %0, %5\nrolling_buffer %0, %5\n", FIRST_LAYER_ROWS),
];

const FIRST_LAYER_ROWS: &str = "%8, %9, %10, %11 = get_loops %0
%12, %13 = split %11, [none, 32]
vectorize %13
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let columns = arguments.next().map_or(Ok(4096), |columns| columns.parse())?;
    let threads = arguments.next().map_or(Ok(1), |threads| threads.parse())?;
    let x = AnyTensor::random(DType::F32, &[ROWS + 4, columns + 4], 1)?;
    let mut y = AnyTensor::zeros(DType::F32, &[ROWS, columns])?;
    let mut measured = Vec::new();
    for (name, place, lanes) in VARIANTS {
        let kernel = compile(&format!("{STRIPS}{place}{SECOND_LAYER}{lanes}"), columns)?;
        run(&*kernel, &x, &mut y, threads)?;
        measured.push((name, kernel, y.clone(), Duration::MAX));
    }
    for _ in 0..ROUNDS {
        for (_, kernel, _, best) in &mut measured {
            *best = run(&**kernel, &x, &mut y, threads)?.min(*best);
        }
    }
    println!("{ROWS} by {columns} results on {threads} threads");
    let whole = measured[0].3.as_secs_f64();
    for (name, _, result, best) in &measured {
        assert!(*result == measured[0].2, "`{name}` computes something else");
        let seconds = best.as_secs_f64();
        println!("{name:18} {:8.3} ms, {:.2} of the time of `whole`", seconds * 1e3, seconds / whole);
    }
    Ok(())
}

fn compile(trace: &str, columns: usize) -> Result<Box<dyn Executable>, Box<dyn std::error::Error>> {
    let trace: Trace = trace.replace("STRIP", &STRIP.to_string()).parse()?;
    let schedule = trace.replay(&layers(columns)?, &Arc::new(Target::generic_cpu()), 0)?;
    let backend = CpuBackend::host()?;
    let flat = lower(schedule.program(), &LowerOptions::of(backend.target()))?;
    Ok(backend.compile(&[&flat]).remove(0)?)
}

fn run(
    kernel: &dyn Executable,
    x: &AnyTensor,
    y: &mut AnyTensor,
    threads: usize,
) -> Result<Duration, Box<dyn std::error::Error>> {
    let mut buffers = [BufferArgument::Read(x.bytes()), BufferArgument::Write(y.bytes_mut())];
    let start = Instant::now();
    kernel.run(&mut Arguments { dims: &[], scalars: &[], buffers: &mut buffers }, threads)?;
    Ok(start.elapsed())
}

/// Two layers of weighted sums over neighbourhoods of 3 by 3.
fn layers(columns: usize) -> Result<Program, Box<dyn std::error::Error>> {
    let sum = |from: &str| {
        let rows: Vec<String> = (0..3)
            .map(|row| {
                let at = |column: usize| format!("{from}[vi + {row}, vj + {column}]");
                format!("({} + {} * 2.0 + {})", at(0), at(1), at(2))
            })
            .collect();
        rows.join(" + ")
    };
    let layer = |name: &str, rows: usize, columns: usize, value: String| {
        format!(
            "for i in 0..{rows} {{ for j in 0..{columns} {{
               block {name}(vi: spatial {rows} = i, vj: spatial {columns} = j) {{ {name}[vi, vj] = {value} }}
             }} }}"
        )
    };
    let text = format!(
        "kernel layers(in x: f32[{}, {}], out y: f32[{ROWS}, {columns}]) {{
           buffer b: f32[{}, {}] global
           {}
           {}
         }}",
        ROWS + 4,
        columns + 4,
        ROWS + 2,
        columns + 2,
        layer("b", ROWS + 2, columns + 2, sum("x")),
        layer("y", ROWS, columns, sum("b")),
    );
    Ok(text.parse()?)
}
