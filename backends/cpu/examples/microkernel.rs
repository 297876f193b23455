//! How fast register-tiled matrix products run whose operands lie in the first-level cache, against the
//! peak of the vectors that the backend uses, measured in the same run; and what compiling them takes.
//!
//! `cargo run --release --example microkernel -p tilewright-cpu [-- --listing]`

use std::fmt::Write;
use std::time::{Duration, Instant};

use tilewright_core::device::{Arguments, BufferArgument, Device, Executable};
use tilewright_core::dtype::DType;
use tilewright_core::program::Program;
use tilewright_core::target::RunOptions;
use tilewright_core::tensor::AnyTensor;
use tilewright_cpu::CpuDevice;
use tilewright_cpu::peak::fma_peak;

/// The length of the reduction.
const DEPTH: usize = 192;
/// How often one call computes the tile.
const REPEATS: usize = 16;
/// How often the kernel runs between two looks at the clock.
const CALLS: u32 = 20;
/// How often the time is taken; the best counts, because others use the machine too.
const ROUNDS: u32 = 300;

/// A tile of `rows` by `columns` accumulators, with `unroll` steps of the reduction written out.
#[derive(Clone, Copy)]
struct Tile {
    rows: usize,
    columns: usize,
    unroll: usize,
}

impl Tile {
    /// `c = a · b`, with `a` of one row after the other and `b` of one step after the other.
    fn program(self) -> Program {
        let Tile { rows, columns, unroll } = self;
        let (mut start, mut steps, mut end) = (String::new(), String::new(), String::new());
        for row in 0..rows {
            let place = format!("lane<{columns}> + {}", row * columns);
            writeln!(start, "acc[{place}] = 0.0").expect("a string");
            writeln!(end, "c[{place}] = acc[{place}]").expect("a string");
        }
        for step in 0..unroll {
            for row in 0..rows {
                let place = format!("lane<{columns}> + {}", row * columns);
                let a = format!("a[k*{unroll} + {}]", row * DEPTH + step);
                let b = format!("b[k*{} + {} + lane<{columns}>]", unroll * columns, step * columns);
                writeln!(steps, "acc[{place}] = mul_add({a}, {b}, acc[{place}])").expect("a string");
            }
        }
        let text = format!(
            "kernel tile(in a: f32[{}], in b: f32[{}], out c: f32[{tile}]) {{
               buffer acc: f32[{tile}] local
               for r in 0..{REPEATS} {{ alloc acc {{ {start} for k in 0..{} {{ {steps} }} {end} }} }}
             }}",
            rows * DEPTH,
            DEPTH * columns,
            DEPTH / unroll,
            tile = rows * columns,
        );
        text.parse().expect("a program")
    }
}

/// The best time of one call.
fn time(kernel: &dyn Executable, tile: Tile) -> Duration {
    let random = |len, seed| AnyTensor::random(DType::F32, &[len], seed).expect("a small tensor");
    let (a, b) = (random(tile.rows * DEPTH, 1), random(DEPTH * tile.columns, 2));
    let mut c = random(tile.rows * tile.columns, 3);
    let mut buffers = [
        BufferArgument::Read(a.bytes()),
        BufferArgument::Read(b.bytes()),
        BufferArgument::Write(c.bytes_mut()),
    ];
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        for _ in 0..CALLS {
            let mut arguments = Arguments { dims: &[], scalars: &[], buffers: &mut buffers };
            kernel.run(&mut arguments, RunOptions::with_threads(1)).expect("fitting arguments");
        }
        best = best.min(begin.elapsed() / CALLS);
    }
    best
}

/// Compiles one program and says how long it took, at best.
fn compile(backend: &CpuDevice, program: &Program) -> (Box<dyn Executable>, Duration) {
    let mut best = Duration::MAX;
    let mut kernel = None;
    for _ in 0..10 {
        let begin = Instant::now();
        kernel = Some(backend.compile(&[program]).remove(0).expect("a supported program"));
        best = best.min(begin.elapsed());
    }
    (kernel.expect("compiled"), best)
}

/// The time of a call that does nothing.
fn overhead(backend: &CpuDevice) -> Duration {
    let text = "kernel nothing(M, in x: f32[M*4], in z: f32[M], out y: f32[4]) { y[lane<4>] = x[lane<4>] }";
    let (kernel, _) = compile(backend, &text.parse().expect("a program"));
    let (x, mut y) = ([0u8; 16], [0u8; 16]);
    let z = [0u8; 4];
    let mut buffers = [BufferArgument::Read(&x), BufferArgument::Read(&z), BufferArgument::Write(&mut y)];
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        for _ in 0..CALLS {
            let mut arguments = Arguments { dims: &[1], scalars: &[], buffers: &mut buffers };
            kernel.run(&mut arguments, RunOptions::with_threads(1)).expect("fitting arguments");
        }
        best = best.min(begin.elapsed() / CALLS);
    }
    best
}

fn main() {
    let listing = std::env::args().any(|argument| argument == "--listing");
    let backend = CpuDevice::host().expect("a well-formed override of features");
    let bits = backend.target().cpu().expect("a CPU").vector_bits;
    let peak = fma_peak(bits, 1, Duration::from_millis(300)).expect("a CPU with FMA");
    let peak = peak.gflops.best;
    println!("peak of {bits}-bit FMA: {peak:.1} GFLOP/s; a call of nothing: {:?}", overhead(&backend));
    println!("{:>12} {:>10} {:>5} {:>10} {:>7}", "tile", "GFLOP/s", "%", "compile", "bytes");
    for (rows, columns, unroll) in [
        (4, 8, 1),
        (4, 8, 4),
        (5, 8, 1),
        (5, 8, 4),
        (6, 8, 1),
        (6, 8, 4),
        (12, 4, 1),
        (3, 16, 1),
        (4, 12, 1),
        (6, 16, 1),
        (12, 32, 1),
        (14, 32, 1),
        (14, 32, 4),
        (8, 48, 1),
        (6, 64, 1),
        (28, 16, 1),
    ] {
        let tile = Tile { rows, columns, unroll };
        let (kernel, compile_time) = compile(&backend, &tile.program());
        let operations = (2 * rows * columns * DEPTH * REPEATS) as f64;
        let gflops = operations / time(&*kernel, tile).as_secs_f64() / 1e9;
        let (name, share) = (format!("{rows}x{columns} /{unroll}"), 100.0 * gflops / peak);
        let (micros, bytes) = (compile_time.as_micros(), kernel.code_bytes());
        println!("{name:>12} {gflops:>10.1} {share:>5.0} {micros:>7} µs {bytes:>7}");
        if listing {
            println!("{}", backend.list(&tile.program()).unwrap_or_else(|error| error.to_string()));
        }
    }
}
