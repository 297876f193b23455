//! Products of f32 matrices beside the crate `gemm`, and beside the machine's FMA peak, all measured alternately.
//!
//! `cargo run --release -p tilewright-peers -- [--threads N] [--trials N] [MxNxK …]` tunes what has no record in `peers/tuned`
//! and prints, for each shape, GFLOP/s (medians of the rounds) and the ratios of the rounds: median, and the quarter below
//! and above.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use gemm::Parallelism;
use tilewright::backends::cpu::peak::{VECTOR_BITS, fma_peak};
use tilewright::bench::{Comparison, Effort, Variant};
use tilewright::search::records::Database;
use tilewright::tuning::Tuner;
use tilewright::{Source, Tensor, tensor_kernel};

/// C = A·B
#[tensor_kernel]
fn matmul(a: &Tensor<f32, M, K>, b: &Tensor<f32, K, N>) -> Tensor<f32, M, N> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                c[[i, j]] += a[[i, k]] * b[[k, j]];
            }
        }
    }
    c
}

/// Measured when none is named: the standing goals.
const SHAPES: [[i64; 3]; 3] = [[512; 3], [1024; 3], [2048; 3]];

/// Every figure is taken once a round.
const ROUNDS: usize = 15;

/// A sample lasts at least this long.
const SAMPLE: Duration = Duration::from_millis(20);

/// The command line.
struct Arguments {
    threads: usize,
    trials: usize,
    shapes: Vec<[i64; 3]>,
}

fn main() -> ExitCode {
    tilewright::init();
    let run =
        Arguments::parse(std::env::args().skip(1)).map_err(Into::into).and_then(|arguments| run(&arguments));
    match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Arguments { threads: 0, trials: 96, shapes: Vec::new() };
        while let Some(word) = words.next() {
            let mut number = || {
                let text = words.next().unwrap_or_default();
                text.parse().map_err(|_| format!("{word} is followed by `{text}`, expected a number"))
            };
            match word.as_str() {
                "--threads" => arguments.threads = number()?,
                "--trials" => arguments.trials = number()?,
                shape => arguments.shapes.push(parse_shape(shape)?),
            }
        }
        if arguments.shapes.is_empty() {
            arguments.shapes = SHAPES.to_vec();
        }
        Ok(arguments)
    }
}

fn parse_shape(text: &str) -> Result<[i64; 3], String> {
    let sizes: Result<Vec<i64>, _> = text.split('x').map(str::parse).collect();
    sizes
        .ok()
        .and_then(|sizes| <[i64; 3]>::try_from(sizes).ok())
        .filter(|sizes| sizes.iter().all(|size| *size > 0))
        .ok_or_else(|| format!("`{text}` is no shape: expected MxNxK, as in 512x512x512"))
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    tilewright::set_threads(arguments.threads);
    let threads = tilewright::threads()?;
    // Another number of threads wants other schedules.
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tuned/threads-{threads}"));
    println!(
        "threads: {threads}; GFLOP/s, and ratios as median (lower to upper quartile) of {ROUNDS} rounds"
    );
    for [m, n, k] in &arguments.shapes {
        let dims = [("M", *m), ("N", *n), ("K", *k)];
        let mut comparison = Comparison::new(matmul::kernel(), &dims, None)?;
        if !matches!(comparison.source(), Source::Exact { .. }) {
            eprintln!("tuning {}", comparison.title());
            tune(&dims, arguments.trials, &records)?;
            comparison = Comparison::new(matmul::kernel(), &dims, None)?;
        }
        comparison.check(Variant::Tuned)?;
        let rounds = measure(&mut comparison, [*m, *n, *k], threads)?;
        print_shape(&format!("{m}x{n}x{k}"), &rounds);
    }
    Ok(())
}

/// Tunes a shape and keeps the fastest record, and one to compare it with.
fn tune(dims: &[(&str, i64)], trials: usize, records: &Path) -> Result<(), Box<dyn Error>> {
    Tuner::new().records(records).trials(trials).tune(matmul::kernel(), dims)?;
    Database::open(records)?.prune(2)?;
    tilewright::use_records(records)?;
    Ok(())
}

/// The rates of one round, in GFLOP/s.
struct Round {
    peak: f64,
    gemm: f64,
    default: f64,
    tuned: f64,
}

fn measure(
    comparison: &mut Comparison,
    sizes: [i64; 3],
    threads: usize,
) -> Result<Vec<Round>, Box<dyn Error>> {
    let mut peer = Peer::new(sizes.map(|size| size as usize), threads)?;
    peer.check()?;
    let flops = comparison.flops();
    let effort = Effort { samples: 3, sample: SAMPLE, budget: Duration::ZERO };
    (0..ROUNDS)
        .map(|_| {
            let peaks = VECTOR_BITS.iter().filter_map(|bits| fma_peak(*bits, threads, 2 * SAMPLE));
            let peak = peaks.map(|peak| peak.gflops.median).fold(0.0, f64::max);
            let gemm = flops / peer.sample_ns();
            let sampled = comparison.measure(&[Variant::Default, Variant::Tuned], &effort)?;
            let [default, tuned] = [0, 1].map(|variant: usize| flops / sampled[variant].median_ns);
            Ok(Round { peak, gemm, default, tuned })
        })
        .collect()
}

fn print_shape(shape: &str, rounds: &[Round]) {
    let column = |of: &dyn Fn(&Round) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        [values[values.len() / 2], values[values.len() / 4], values[values.len() * 3 / 4]]
    };
    let rate = |of: &dyn Fn(&Round) -> f64| format!("{:.0}", column(of)[0]);
    let ratio = |of: &dyn Fn(&Round) -> f64| {
        let [median, lower, upper] = column(of);
        format!("{median:.2} ({lower:.2} to {upper:.2})")
    };
    println!(
        "{shape}: peak {}, gemm {}, default {}, tuned {}; tuned/peak {}, tuned/gemm {}, default/gemm {}",
        rate(&|round| round.peak),
        rate(&|round| round.gemm),
        rate(&|round| round.default),
        rate(&|round| round.tuned),
        ratio(&|round| round.tuned / round.peak),
        ratio(&|round| round.tuned / round.gemm),
        ratio(&|round| round.default / round.gemm),
    );
}

/// A product by the crate `gemm`.
struct Peer {
    sizes: [usize; 3],
    parallelism: Parallelism,
    a: Vec<f32>,
    b: Vec<f32>,
    c: Vec<f32>,
}

impl Peer {
    fn new([m, n, k]: [usize; 3], threads: usize) -> Result<Self, tilewright::Error> {
        let parallelism = if threads == 1 { Parallelism::None } else { Parallelism::Rayon(threads) };
        // Small integers, so that sums are exact in any order.
        let a = (0..m * k).map(|at| (at % 7) as f32 - 3.0).collect();
        let b = (0..k * n).map(|at| (at % 5) as f32 - 2.0).collect();
        Ok(Peer { sizes: [m, n, k], parallelism, a, b, c: vec![0.0; m * n] })
    }

    /// Compares its product with ours.
    fn check(&mut self) -> Result<(), Box<dyn Error>> {
        let [m, n, k] = self.sizes;
        self.run();
        let a = Tensor::from_vec(self.a.clone(), [m, k])?;
        let b = Tensor::from_vec(self.b.clone(), [k, n])?;
        if matmul(&a, &b)?.as_slice() != self.c {
            return Err(format!("{m}x{n}x{k}: the two products differ").into());
        }
        Ok(())
    }

    /// The median time of a run, of three samples.
    fn sample_ns(&mut self) -> f64 {
        self.run();
        let mut samples = [0; 3].map(|_| {
            let (start, mut runs) = (Instant::now(), 0);
            while start.elapsed() < SAMPLE {
                self.run();
                runs += 1;
            }
            start.elapsed().as_secs_f64() * 1e9 / f64::from(runs)
        });
        samples.sort_by(f64::total_cmp);
        samples[1]
    }

    fn run(&mut self) {
        let [m, n, k] = self.sizes;
        // SAFETY: the slices hold m × k, k × n and m × n elements, row after row, as the strides say, and `c` is borrowed
        // exclusively.
        unsafe {
            gemm::gemm(
                m,
                n,
                k,
                self.c.as_mut_ptr(),
                1,
                n as isize,
                false,
                self.a.as_ptr(),
                1,
                k as isize,
                self.b.as_ptr(),
                1,
                n as isize,
                0.0,
                1.0,
                false,
                false,
                false,
                self.parallelism,
            );
        }
    }
}
