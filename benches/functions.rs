//! The time of elementary functions, per element.
//!
//! `cargo bench --bench functions -- [--only sin] [--threads N] [--json]`
//!
//! Each function is applied to 65,536 numbers in the caches, by the default schedule: to numbers of at most one, and, where the
//! magnitude matters to the method, to numbers of at most 10¹², of which few are small, and to numbers of at most one with one in
//! 4,096 that is large.

use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use tilewright::Kernel;
use tilewright::bench::{Comparison, Options, Variant, run_when_asked};
use tilewright::core::expr::UnaryOp;
use tilewright::tuning::report::Table;

/// The elements of one run.
const ELEMENTS: i64 = 65_536;

/// Samples, of which the fastest counts, and how long each takes.
const SAMPLES: usize = 9;
const SAMPLE: Duration = Duration::from_millis(5);

/// The arguments of a function, as an expression of a number `x[v]` between -1 and 1.
const ARGUMENTS: [(&str, &str); 3] =
    [("small", "x[v]"), ("large", "x[v] * LARGE"), ("few large", "select(v%4096 == 77, x[v] * LARGE, x[v])")];

/// The result for a function.
#[derive(Debug, Serialize)]
struct Line {
    function: &'static str,
    dtype: &'static str,
    arguments: &'static str,
    threads: usize,
    picoseconds_per_element: f64,
}

fn main() -> ExitCode {
    run_when_asked(run)
}

fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    options.refuse_budget()?;
    tilewright::set_threads(options.threads.unwrap_or(1));
    let mut table = Table::new(&["function", "type", "arguments", "per element"]);
    for function in UnaryOp::ALL.iter().filter(|function| function.error_bound().is_some()) {
        let name = function.text();
        let kinds = if matches!(name, "sin" | "cos" | "tan") { &ARGUMENTS[..] } else { &ARGUMENTS[..1] };
        for dtype in ["f32", "f64"] {
            for (arguments, text) in kinds {
                if !options.selects(name) {
                    continue;
                }
                let picoseconds_per_element = measure(name, dtype, text)?;
                let threads = tilewright::threads()?;
                let line = Line { function: name, dtype, arguments, threads, picoseconds_per_element };
                if options.json {
                    println!("{}", serde_json::to_string(&line)?);
                }
                let time = format!("{:.3} ns", picoseconds_per_element * 1e-3);
                table.row([name.to_owned(), dtype.to_owned(), (*arguments).to_owned(), time]);
            }
        }
    }
    if !options.json {
        print!("{table}");
    }
    Ok(())
}

/// The time of a function per element, in picoseconds.
fn measure(function: &str, dtype: &str, argument: &str) -> Result<f64, Box<dyn std::error::Error>> {
    let argument = argument.replace("LARGE", &format!("1000000000000.0{dtype}"));
    let text = format!(
        "kernel {function}(in x: {dtype}[{ELEMENTS}], out y: {dtype}[{ELEMENTS}]) {{
  for i in 0..{ELEMENTS} {{
    block y(v: spatial {ELEMENTS} = i) {{
      y[v] = {function}({argument})
    }}
  }}
}}"
    );
    let kernel: &'static Kernel = Box::leak(Box::new(Kernel::from_program(text.parse()?)?));
    let mut comparison = Comparison::new(kernel, &[], None)?;
    let mut repetitions = 1;
    while comparison.run(Variant::Default, repetitions)? < SAMPLE {
        repetitions *= 2;
    }
    let mut fastest = f64::INFINITY;
    for _ in 0..SAMPLES {
        let time = comparison.run(Variant::Default, repetitions)?;
        fastest = fastest.min(time.as_secs_f64() / repetitions as f64);
    }
    Ok(fastest / ELEMENTS as f64 * 1e12)
}
