//! Small files of records, made of fixed numbers.

use std::path::Path;

use tilewright::core::program::Program;
use tilewright::search::forecast::Forecast;
use tilewright::search::model::Ranking;
use tilewright::search::records::{
    CacheState, Database, Measurement, Outcome, Provenance, Record, Run, Shape, TunedFor,
};
use tilewright::tuning::replay;

/// C = max(A·B, 0) as text.
pub(crate) const PRODUCT: &str =
    "kernel product(M, N, K, in a: f32[M, K], in b: f32[K, N], out d: f32[M, N]) {
  buffer c: f32[M, N] global
  for i in 0..M {
    for j in 0..N {
      for k in 0..K {
        block c(vi: spatial M = i, vj: spatial N = j, vk: reduce K = k) {
          init {
            c[vi, vj] = 0.0
          }
          c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
        }
      }
    }
  }
  for i_1 in 0..M {
    for j_1 in 0..N {
      block d(vi_1: spatial M = i_1, vj_1: spatial N = j_1) {
        d[vi_1, vj_1] = max(c[vi_1, vj_1], 0.0)
      }
    }
  }
}
";

/// Records of two shapes of a product, with their program and a run, and of a kernel without a program.
pub(crate) fn write_records(directory: &Path) {
    let program: Program = PRODUCT.parse().expect("the program is well-formed");
    let mut database = Database::open(directory).expect("a directory");
    database.append_program("product", &program).expect("a disk");
    let hash = program.stable_hash();
    let records = [
        record(hash, 24, 0, Some(4000.0), "vectorize %2\n"),
        Record {
            outcome: Outcome::Failed("crash: it <died>".to_owned()),
            ..record(hash, 24, 1, None, "parallel %1\n")
        },
        record(hash, 24, 2, Some(2500.0), &tiled(4)),
        record(hash, 24, 3, Some(2000.0), &tiled(8)),
        confirmed(record(hash, 24, 3, Some(2100.0), &tiled(8))),
        record(hash, 40, 0, Some(9000.0), "vectorize %2\n"),
    ];
    for record in records {
        database.append(record).expect("a disk");
    }
    database.append_run(run(hash)).expect("a disk");
    let other = Record { kernel: "softmax".to_owned(), ..record(7, 24, 5, Some(800.0), "vectorize %2\n") };
    database.append(other).expect("a disk");
}

/// A record of the smaller shape for this machine, beside those for another one.
pub(crate) fn write_record_of_this_machine(directory: &Path, median_ns: f64) {
    let mut database = Database::open(directory).expect("a directory");
    let hash = PRODUCT.parse::<Program>().expect("the program is well-formed").stable_hash();
    let target = TunedFor::of(&replay::context(3).expect("the settings are in order"));
    let record = Record { target, ..record(hash, 24, 0, Some(median_ns), "vectorize %2\n") };
    database.append(record).expect("a disk");
}

fn tiled(width: i64) -> String {
    format!(
        "%4, %5 = sample_perfect_tile %2, 2, 64 !decision [{}, {width}]\n%6, %7 = split %2, [%4, %5]\n\
         reorder [%6, %3, %7]\nvectorize %7\n",
        24 / width
    )
}

fn record(program: u64, size: i64, trial: u64, median_ns: Option<f64>, steps: &str) -> Record {
    let trace = format!("trace v1\n%0 = get_block \"c\"\n%1, %2, %3 = get_loops %0\n{steps}");
    Record {
        kernel: "product".to_owned(),
        program,
        shape: Shape::of_dims([("M", size), ("N", size), ("K", 16)]),
        target: "cpu;threads=1".parse().expect("a target"),
        trace: trace.parse().expect("a trace"),
        outcome: Outcome::Measured(Measurement {
            median_ns: median_ns.unwrap_or(1.0),
            spread: 0.05,
            max_rel_err: 1e-7,
            is_confirmed: false,
        }),
        provenance: Provenance {
            seed: 1,
            trial,
            version: "0.1.0".to_owned(),
            cpu: "A <fast> CPU".to_owned(),
            time: 1_800_000_000 + trial,
            predicted: (trial > 0).then_some(trial as f32 / 2.0),
            rules: (trial > 0).then(|| {
                let tiling = (trial > 1).then_some("multi_level_tiling");
                tiling.into_iter().chain(["parallelize_vectorize_unroll"]).map(str::to_owned).collect()
            }),
            cache: CacheState::Warm,
        },
    }
}

fn confirmed(mut record: Record) -> Record {
    if let Outcome::Measured(measurement) = &mut record.outcome {
        measurement.is_confirmed = true;
    }
    record
}

fn run(program: u64) -> Run {
    Run {
        kernel: "product".to_owned(),
        program,
        shape: Shape::of_dims([("M", 24), ("N", 24), ("K", 16)]),
        target: "cpu;threads=1".parse().expect("a target"),
        cache: CacheState::Warm,
        seed: 1,
        earlier: 0,
        trials: 4,
        seconds: 2.5,
        generation_seconds: 0.5,
        end: "the trials are used up".to_owned(),
        best_ns: Some(2100.0),
        default_ns: Some(4100.0),
        flops: 19008.0,
        bytes: 5376.0,
        peak_gflops: Some(40.0),
        peak_bandwidth: Some(20.0),
        generated: 1000,
        refused: [("lowering".to_owned(), 3), ("crossing_dependence".to_owned(), 20)].into(),
        failed: [("crash".to_owned(), 1)].into(),
        rounds: vec![
            Ranking { candidates: 2, pairs: 1, correlation: 1.0 },
            Ranking { candidates: 2, pairs: 1, correlation: -0.5 },
        ],
        forecast: Some(Forecast { trials: 64, notable: 0.01, chance: 0.5, expected_gain: 0.1 }),
        version: "0.1.0".to_owned(),
        cpu: "A <fast> CPU".to_owned(),
        time: 1_800_000_010,
    }
}
