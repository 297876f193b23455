//! The arguments of the program.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use tilewright::tuning::Budget;
use tilewright_quantiser::{Activations, Method, Weights};
use tilewright_session::Bucket;

use crate::address::{Address, Dims};
use crate::model::Shapes;

/// Inspects, replays, compares and keeps tuning records.
///
/// Records are files whose names end in `.jsonl`, or directories of such files. Exit codes: 0 on success, 1 when a
/// command fails (also a replay with wrong results), 2 when its arguments are invalid.
#[derive(Parser, Debug)]
#[command(name = "tilewright", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    List(List),
    Show(Show),
    Replay(Replay),
    Diff(Diff),
    Merge(Merge),
    Prune(Prune),
    Report(Report),
    /// Whole models: ONNX files
    #[command(subcommand)]
    Model(ModelCommand),
}

#[derive(Subcommand, Debug)]
pub(crate) enum ModelCommand {
    Info(ModelInfo),
    Run(ModelRun),
    Profile(ModelProfile),
    Time(ModelTime),
    Tune(ModelTune),
    Pack(ModelPack),
    Quantise(ModelQuantise),
}

/// Shows the inputs and outputs of a model
#[derive(Args, Debug)]
pub(crate) struct ModelInfo {
    /// An ONNX file, or a folder that `pack` made
    pub(crate) model: PathBuf,
    /// As a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Puts a model and the best records of its kernels into a folder, which other commands and applications load
#[derive(Args, Debug)]
pub(crate) struct ModelPack {
    /// An ONNX file
    pub(crate) model: PathBuf,
    /// Files or directories of records
    #[arg(long, value_name = "PATH")]
    pub(crate) records: Vec<PathBuf>,
    /// A named extent of inputs and the sizes that the model was tuned for, as for `tune`; sizes between two of them share code
    #[arg(long = "bucket", value_name = "NAME=SIZES")]
    pub(crate) buckets: Vec<Bucket>,
    /// The accuracy of products that the model was tuned with, as for `tune`
    #[arg(long, value_name = "ERROR")]
    pub(crate) accuracy: Option<f64>,
    /// The folder, which is created, or holds a packed model that is replaced
    #[arg(long, value_name = "FOLDER")]
    pub(crate) output: PathBuf,
}

/// A model with its inputs, and how it is run
#[derive(Args, Debug)]
pub(crate) struct ModelCall {
    /// An ONNX file, or a folder that `pack` made
    pub(crate) model: PathBuf,
    /// An input and a NumPy file with its elements; once for each input
    #[arg(long = "input", value_name = "NAME=FILE.npy")]
    pub(crate) inputs: Vec<Input>,
    /// Where it runs: `cpu`, or `gpu:0` for the first NVIDIA GPU
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    pub(crate) device: String,
    /// How many threads kernels use
    #[arg(long, value_name = "COUNT")]
    pub(crate) threads: Option<usize>,
    /// A file or directory of tuning records to use
    #[arg(long, value_name = "PATH")]
    pub(crate) records: Option<PathBuf>,
    /// How far each product of `f32` may be off, relative to itself, where that is faster: `1e-4`. Without it, products are those of `f32`
    #[arg(long, value_name = "ERROR")]
    pub(crate) accuracy: Option<f64>,
}

/// Runs a model once
#[derive(Args, Debug)]
pub(crate) struct ModelRun {
    #[command(flatten)]
    pub(crate) call: ModelCall,
    /// The directory into which outputs are written as NumPy files
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) output: PathBuf,
    /// Ends with a line of JSON that names the files
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where the time of a model goes, step by step
#[derive(Args, Debug)]
pub(crate) struct ModelProfile {
    #[command(flatten)]
    pub(crate) call: ModelCall,
    /// As a JSON object, with all steps
    #[arg(long)]
    pub(crate) json: bool,
    /// How many runs are measured
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub(crate) rounds: u32,
}

/// The time of a call of a model, beside another program if need be
#[derive(Args, Debug)]
pub(crate) struct ModelTime {
    #[command(flatten)]
    pub(crate) call: ModelCall,
    /// Waits for a line of the standard input before each round, so that another program can take turns with it
    #[arg(long)]
    pub(crate) paced: bool,
    /// How many rounds are measured, where nothing paces them
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    pub(crate) rounds: u32,
}

/// Tunes the kernels of a model at the shapes of its inputs
///
/// Shapes are those of files, or given with `--shape`, which makes up the elements; then all combinations of the sizes in ranges are tuned.
/// All kernels share one budget, which goes where it saves most. Records are added to a directory, which is created; `--records`
/// of the other commands uses it, and so does the environment variable `TILEWRIGHT_RECORDS`.
#[derive(Args, Debug)]
pub(crate) struct ModelTune {
    /// An ONNX file, or a folder that `pack` made
    pub(crate) model: PathBuf,
    /// An input and a NumPy file with its elements; once for each input
    #[arg(long = "input", value_name = "NAME=FILE.npy")]
    pub(crate) inputs: Vec<Input>,
    /// An input and its shape: `x=8x128`, or several sizes of an extent: `x=1..32x128`, the ends of the range and all powers of two between them;
    /// `x=1x16,64,512`; `x=1x3x32..640/32x320`, all multiples of 32
    #[arg(long = "shape", value_name = "NAME=SHAPE")]
    pub(crate) shapes: Vec<Shapes>,
    /// A named extent of inputs and its sizes, instead of shapes: `S=16,64,512`
    #[arg(long = "bucket", value_name = "NAME=SIZES")]
    pub(crate) buckets: Vec<Bucket>,
    /// Measurements or time: `500`, `90s`, `10min`; 64 measurements for each kernel without it
    #[arg(long, value_name = "BUDGET")]
    pub(crate) budget: Option<Budget>,
    /// How far each product of `f32` may be off, relative to itself, where that is faster: `1e-4`. Without it, products are those of `f32`
    #[arg(long, value_name = "ERROR")]
    pub(crate) accuracy: Option<f64>,
    /// The directory of the records
    #[arg(long, value_name = "DIR", default_value = "tuned")]
    pub(crate) records: PathBuf,
    /// Where kernels are measured: `cpu`, or `gpu:0` for the first NVIDIA GPU
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    pub(crate) device: String,
    /// How many threads kernels use
    #[arg(long, value_name = "COUNT")]
    pub(crate) threads: Option<usize>,
    /// The seed of the search
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Shows the progress on the standard error stream
    #[arg(long)]
    pub(crate) progress: bool,
}

/// Makes the products of a model of floats products of bytes, and writes an ONNX file
///
/// Ranges of activations are those of a run on calibration data: a `.npz` file is a sample, with an array for each input; a folder holds such files,
/// or `.npy` files where the model has one input. The report lists what each product loses.
#[derive(Args, Debug)]
pub(crate) struct ModelQuantise {
    /// An ONNX file
    pub(crate) model: PathBuf,
    /// Calibration data: `.npz` and `.npy` files, and folders of them
    #[arg(long, value_name = "PATH", required = true, num_args = 1..)]
    pub(crate) calibrate: Vec<PathBuf>,
    /// The file to write
    #[arg(long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// How ranges follow from the data: `min-max`, `percentile`, `percentile:99.9`, `entropy`
    #[arg(long, default_value = "min-max")]
    pub(crate) method: Method,
    /// How activations become bytes: `asymmetric` (unsigned with a zero point) or `symmetric` (signed)
    #[arg(long, value_name = "KIND", default_value = "asymmetric")]
    pub(crate) activations: Activations,
    /// How many scales weights have: `per-channel` or `per-tensor`
    #[arg(long, value_name = "KIND", default_value = "per-channel")]
    pub(crate) weights: Weights,
    /// Leaves biases as they are, instead of moving the mean error of each channel into them
    #[arg(long)]
    pub(crate) no_bias_correction: bool,
    /// A product that stays in floats, by its node's name
    #[arg(long, value_name = "NODE")]
    pub(crate) keep: Vec<String>,
    /// Keeps products in floats whose own signal-to-noise ratio is lower
    #[arg(long, value_name = "DECIBELS")]
    pub(crate) keep_below: Option<f64>,
    /// How many threads calibration uses
    #[arg(long, value_name = "COUNT")]
    pub(crate) threads: Option<usize>,
    /// The report as a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// An input of a model, and the file with its elements.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

impl std::str::FromStr for Input {
    type Err = String;

    /// Names may hold `=`; paths after the last one may not.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, path) = text.rsplit_once('=').ok_or("expected NAME=FILE.npy")?;
        Ok(Input { name: name.to_owned(), path: path.into() })
    }
}

/// Lists records: the best of each kernel, shape and machine
#[derive(Args, Debug)]
pub(crate) struct List {
    /// Files or directories of records
    #[arg(value_name = "PATH", default_value = "tuned")]
    pub(crate) paths: Vec<PathBuf>,
    /// As a list of JSON objects
    #[arg(long)]
    pub(crate) json: bool,
}

/// The selection of a record
#[derive(Args, Debug)]
pub(crate) struct Which {
    /// A file or directory of records
    pub(crate) path: PathBuf,
    /// The kernel's name
    pub(crate) kernel: String,
    /// Its dimensions and `usize` arguments: `M=128,N=64`; may be left out where there is one shape
    #[arg(value_name = "SHAPE")]
    pub(crate) shape: Option<Dims>,
    /// The record of this trial, instead of the best one
    #[arg(long, value_name = "NUMBER")]
    pub(crate) trial: Option<u64>,
    /// The number of threads it was tuned for; may be left out where all records have the same
    #[arg(long, value_name = "COUNT")]
    pub(crate) threads: Option<u32>,
}

/// A record: its trace, and the program before and after
#[derive(Args, Debug)]
pub(crate) struct Show {
    #[command(flatten)]
    pub(crate) which: Which,
    /// Also the flat program that is compiled on this machine
    #[arg(long)]
    pub(crate) lowered: bool,
    /// Also the machine code for this machine
    #[arg(long)]
    pub(crate) assembly: bool,
}

/// Replays a record on this machine: checks its results and times it
///
/// The code runs in a process of its own, on random arguments. Its results are compared with those of the unscheduled program,
/// which is interpreted where it is small, else compiled.
#[derive(Args, Debug)]
pub(crate) struct Replay {
    #[command(flatten)]
    pub(crate) which: Which,
    /// The seed of the arguments
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

/// Shows how two records differ
///
/// Records are named `PATH:KERNEL`, `PATH:KERNEL:SHAPE`, and followed by `#TRIAL` for another than the best.
#[derive(Args, Debug)]
pub(crate) struct Diff {
    /// One record: `tuned:matmul:M=128,N=64#17`
    #[arg(value_name = "A")]
    pub(crate) first: Address,
    /// The other record
    #[arg(value_name = "B")]
    pub(crate) second: Address,
    /// Also show how the scheduled programs differ
    #[arg(long)]
    pub(crate) program: bool,
}

/// Adds the records of files or directories to another one
///
/// Records that the destination has are not added again. Each file gets all of its new lines at once, or none.
#[derive(Args, Debug)]
pub(crate) struct Merge {
    /// The destination: a directory, or a file whose name ends in `.jsonl`
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// Directories or files of records to add
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,
}

/// Drops all but the best records of each kernel, shape and machine
///
/// Programs, tuning runs and unreadable lines stay. Each file is replaced as a whole, or not at all.
#[derive(Args, Debug)]
pub(crate) struct Prune {
    /// A file or directory of records
    pub(crate) path: PathBuf,
    /// How many records stay of each kernel, shape and machine
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keep: u32,
}

/// Writes a page with the course of tuning, the share of the machine's peak, refused candidates, the cost model, the rules
#[derive(Args, Debug)]
pub(crate) struct Report {
    /// Files or directories of records
    #[arg(value_name = "PATH", default_value = "tuned")]
    pub(crate) paths: Vec<PathBuf>,
    /// The path of the page
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    pub(crate) output: PathBuf,
}
