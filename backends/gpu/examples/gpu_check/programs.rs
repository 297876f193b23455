//! Programs: a GPU gives what the interpreter computes of the lowered program, bit by bit.

use tilewright_core::device::{Arguments, BufferArgument, Device};
use tilewright_core::interp;
use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::Program;
use tilewright_core::schedule::Trace;
use tilewright_core::target::RunOptions;
use tilewright_core::tensor::AnyTensor;
use tilewright_gpu::Gpu;

use crate::Tally;

/// One thread for each element.
const STEPS: &str = "trace v1
%0 = get_block \"y\"
%1 = get_loops %0
%2, %3 = split %1, [none, 128]
bind %2, \"block_x\"
bind %3, \"thread_x\"
";

/// Programs of a length `n`, by the expression of an element.
const ELEMENTS: &[(&str, &str, &str)] = &[
    ("add", "f32", "a[v] + b[v]"),
    ("multiply and add", "f32", "a[v] * b[v] + a[v]"),
    ("maximum", "f32", "max(a[v], b[v])"),
    ("doubles", "f64", "a[v] * b[v] - a[v]"),
    ("integers", "i32", "a[v] * b[v] + a[v]"),
    ("long integers", "i64", "a[v] - b[v]"),
    ("bytes", "i8", "a[v] + b[v]"),
];

/// Lengths: one, primes, parts of a block, whole blocks.
const LENGTHS: [usize; 6] = [1, 7, 127, 128, 129, 10_007];

/// Runs all programs at all lengths.
pub(crate) fn check(gpu: &Gpu, tally: &mut Tally) {
    for (name, dtype, element) in ELEMENTS {
        let text = format!(
            "kernel elements(n, in a: {dtype}[n], in b: {dtype}[n], out y: {dtype}[n]) {{
  for i in 0..n {{
    block y(v: spatial n = i) {{
      y[v] = {element}
    }}
  }}
}}"
        );
        for length in LENGTHS {
            tally.note(&format!("{name}, length {length}"), run(gpu, &text, length));
        }
    }
}

fn run(gpu: &Gpu, text: &str, length: usize) -> Result<(), String> {
    let program: Program = text.parse().map_err(|error| format!("{error}"))?;
    let trace: Trace = STEPS.parse().map_err(|error| format!("{error}"))?;
    let target = Device::target(gpu);
    let schedule = trace.replay(&program, target.clone(), 0).map_err(|error| error.to_string())?;
    let flat = lower(schedule.program(), &LowerOptions::of(target)).map_err(|error| error.to_string())?;
    let compiled = gpu.compile(&[&flat]).remove(0).map_err(|error| error.to_string())?;
    let mut tensors = Vec::new();
    for ((id, _), seed) in program.buffer_params().zip(1..) {
        let dtype = program.buffer(id).dtype;
        tensors.push(AnyTensor::random(dtype, &[length], seed).map_err(|error| error.to_string())?);
    }
    let dims = [length as i64];
    let mut expected = tensors.clone();
    interp::run(&flat, &dims, &[], &mut expected).map_err(|error| error.to_string())?;
    let mut found = vec![0; tensors[2].bytes().len()];
    let mut buffers = [
        BufferArgument::Read(tensors[0].bytes()),
        BufferArgument::Read(tensors[1].bytes()),
        BufferArgument::Write(&mut found),
    ];
    let mut arguments = Arguments { dims: &dims, scalars: &[], buffers: &mut buffers };
    compiled.run(&mut arguments, RunOptions::with_threads(1)).map_err(|error| error.to_string())?;
    if found == expected[2].bytes() {
        Ok(())
    } else {
        Err("the result differs from the interpreter's".into())
    }
}
