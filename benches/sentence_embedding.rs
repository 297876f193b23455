//! A whole model: all-MiniLM-L6-v2 on 128 tokens, one sentence and a batch of 32.
//!
//! `cargo bench --bench sentence_embedding -- --records DIR --budget 3min --threads 2` tunes every kernel of the model at
//! its shapes, spending the budget where it takes most off the whole, and times the model; `--no-tune` only times it.
//! `--json` prints one line for each batch. `scripts/fetch-minilm.sh` fetches the model, and
//! `scripts/compare_sentence_embedding.py` runs PyTorch and ONNX Runtime alternately with this program.

#[path = "../examples/sentence_embedding/kernels.rs"]
mod kernels;
#[path = "../examples/sentence_embedding/model.rs"]
mod model;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tilewright::bench::{Options, run_when_asked, stop_on_interrupt};
use tilewright::kernel::Kernel;
use tilewright::search::records::Database;
use tilewright::search::scheduler::Budget;
use tilewright::tuning::report::{Table, duration};
use tilewright::tuning::{TuneTask, Tuner};

use model::Model;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The tokens of each sentence.
const TOKENS: i64 = 128;
/// Ten times this is more than enough tokens; the peers read the same.
const SENTENCE: &str =
    "The quick brown fox jumps over the lazy dog while the compiler searches for a faster loop nest. ";
/// The sentences of a batch.
const BATCHES: [i64; 2] = [1, 32];
/// How long each batch is timed.
const TIMED: Duration = Duration::from_secs(3);
/// The default tuning budget.
const BUDGET: Duration = Duration::from_secs(180);
/// The records that are kept of a kernel and shape: the fastest, and one to compare it with.
const KEPT: usize = 2;

/// The sizes of all-MiniLM-L6-v2.
const LAYERS: f64 = 6.0;
const HIDDEN: i64 = 384;
const INNER: i64 = 1536;
const HEADS: i64 = 12;
const WORDS: i64 = 30522;
const POSITIONS: i64 = 512;

fn main() -> ExitCode {
    run_when_asked(|options| run(options).map_err(|error| error as Box<dyn std::error::Error>))
}

fn run(options: &Options) -> Result<()> {
    tilewright::set_threads(options.threads.unwrap_or(0));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/minilm");
    let model = Model::load(&folder, TOKENS as usize)
        .map_err(|error| format!("{error}; run scripts/fetch-minilm.sh first"))?;
    let scratch = tempfile::tempdir()?;
    let records = options.records.as_deref().unwrap_or(scratch.path());
    if !options.no_tune {
        tune(options, records)?;
    }
    tilewright::use_records(records)?;
    let mut table = Table::new(&["batch", "tokens", "median", "fastest", "GFLOP/s"]);
    for batch in BATCHES {
        let times = time(&model, batch)?;
        let (median, fastest) = (times[times.len() / 2], times[0]);
        let rate = flops(batch) / median / 1e9;
        match options.json {
            true => println!(
                "{}",
                serde_json::json!({ "op": "sentence_embedding", "batch": batch, "tokens": TOKENS,
                    "ns_median": median * 1e9, "ns_min": fastest * 1e9, "gflops": rate })
            ),
            false => table.row([
                batch.to_string(),
                TOKENS.to_string(),
                duration(median),
                duration(fastest),
                format!("{rate:.0}"),
            ]),
        }
    }
    if !options.json {
        print!("{table}");
    }
    Ok(())
}

/// The times of a call in seconds, the fastest first.
fn time(model: &Model, batch: i64) -> Result<Vec<f64>> {
    let text = SENTENCE.repeat(10);
    let sentences = vec![text.as_str(); usize::try_from(batch)?];
    let (ids, lengths) = model.tokenize(&sentences)?;
    if ids.shape()[1] != TOKENS as usize {
        return Err(format!("the sentence has {} tokens, expected {TOKENS}", ids.shape()[1]).into());
    }
    // Twice, because the first call compiles and the second one finds out what is constant.
    model.embed(&sentences)?;
    model.embed(&sentences)?;
    let (begin, mut times) = (Instant::now(), Vec::new());
    while begin.elapsed() < TIMED {
        let start = Instant::now();
        model.embed_tokens(&ids, &lengths)?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// The multiplications and additions of the model's products.
fn flops(batch: i64) -> f64 {
    let dense = 2 * TOKENS * (4 * HIDDEN * HIDDEN + 2 * HIDDEN * INNER);
    let attention = 4 * TOKENS * TOKENS * HIDDEN;
    LAYERS * (batch * (dense + attention)) as f64
}

/// A kernel of the model, its sizes, and how often it runs.
type Use = (&'static Kernel, Vec<(&'static str, i64)>, f64);

/// Every kernel that the model runs for a batch.
fn uses(batch: i64) -> Vec<Use> {
    let rows = batch * TOKENS;
    let by_head = vec![("B", batch), ("S", TOKENS), ("A", HEADS), ("D", HIDDEN / HEADS)];
    let linear = |inputs, outputs| vec![("R", rows), ("K", inputs), ("N", outputs)];
    let embedded = vec![("B", batch), ("S", TOKENS), ("V", WORDS), ("H", HIDDEN), ("P", POSITIONS), ("T", 2)];
    vec![
        (kernels::embed::kernel(), embedded, 1.0),
        (kernels::layer_norm::kernel(), vec![("R", rows), ("H", HIDDEN)], 1.0),
        (kernels::attention_weights::kernel(), by_head.clone(), LAYERS),
        (kernels::attend::kernel(), by_head, LAYERS),
        (kernels::linear::kernel(), linear(HIDDEN, HIDDEN), 4.0 * LAYERS),
        (kernels::linear_gelu::kernel(), linear(HIDDEN, INNER), LAYERS),
        (kernels::linear::kernel(), linear(INNER, HIDDEN), LAYERS),
        (kernels::add_layer_norm::kernel(), vec![("R", rows), ("H", HIDDEN)], 2.0 * LAYERS),
        (kernels::mean_pool::kernel(), vec![("B", batch), ("S", TOKENS), ("H", HIDDEN)], 1.0),
    ]
}

fn tune(options: &Options, records: &Path) -> Result<()> {
    // A batch of 32 takes as much more time as it has sentences: per sentence both count alike.
    let uses: Vec<Use> = BATCHES
        .iter()
        .flat_map(|batch| {
            uses(*batch).into_iter().map(|(kernel, dims, count)| (kernel, dims, count / *batch as f64))
        })
        .collect();
    let tasks: Vec<TuneTask<'_>> =
        uses.iter().map(|(kernel, dims, weight)| TuneTask { kernel, dims, weight: *weight }).collect();
    let mut tuner = Tuner::new()
        .records(records)
        .seed(options.seed.unwrap_or(1))
        .progress(!options.json)
        .stop_when(stop_on_interrupt());
    if let Some(trials) = options.trials {
        tuner = tuner.trials(trials);
    }
    let coverage = tuner.tune_all(&tasks, options.budget.unwrap_or(Budget::time(BUDGET)))?;
    eprintln!("{coverage}");
    Database::open(records)?.prune(KEPT)?;
    Ok(())
}
