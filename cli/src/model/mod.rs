//! Whole models: what they are, running them, where their time goes, tuning them.

mod info;
mod pack;
mod profile;
mod quantise;
mod samples;
mod shapes;
mod tune;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tilewright::background;
use tilewright::devices::{self, DeviceHandle};
use tilewright_session::{HostTensor, Model, Session, npy};

use crate::arguments::{Input, ModelCall, ModelCommand, ModelRun, ModelTime};
use crate::{Failure, Outcome};
pub(crate) use shapes::Shapes;

pub(crate) fn run(command: &ModelCommand) -> Outcome {
    match command {
        ModelCommand::Info(options) => info::run(options),
        ModelCommand::Run(options) => run_once(options),
        ModelCommand::Profile(options) => profile::run(options),
        ModelCommand::Time(options) => time(options),
        ModelCommand::Tune(options) => tune::run(options),
        ModelCommand::Pack(options) => pack::run(options),
        ModelCommand::Quantise(options) => quantise::run(options),
    }
}

fn load(path: &std::path::Path) -> Result<Model, Failure> {
    Model::load(path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// A model with the accuracy that the arguments give, if they do.
fn with_accuracy(model: Model, accuracy: Option<f64>) -> Result<Model, Failure> {
    match accuracy {
        Some(relative) => model.with_accuracy(relative).map_err(Failure::new),
        None => Ok(model),
    }
}

/// Reads the inputs of a call.
fn read(inputs: &[Input]) -> Result<Vec<(String, HostTensor)>, Failure> {
    let read = |input: &Input| {
        let tensor = npy::read(&input.path).map_err(|error| {
            Failure::new(format!("input `{}`, {}: {error}", input.name, input.path.display()))
        })?;
        Ok((input.name.clone(), tensor))
    };
    inputs.iter().map(read).collect()
}

/// A model with its inputs, as the arguments name them.
struct Opened {
    model: Model,
    inputs: Vec<(String, HostTensor)>,
    device: DeviceHandle,
}

/// The device with a name.
fn open(device: &str) -> Result<DeviceHandle, Failure> {
    devices::open(device).map_err(Failure::new)
}

impl Opened {
    fn of(call: &ModelCall) -> Result<Self, Failure> {
        set_threads(call.threads);
        if let Some(path) = &call.records {
            if !path.exists() {
                return Err(Failure::new(format!("there are no records at {}", path.display())));
            }
            for problem in tilewright::use_records(path).map_err(Failure::new)? {
                drop(writeln!(io::stderr(), "warning: a record is skipped: {problem}"));
            }
        }
        let device = open(&call.device)?;
        let model = with_accuracy(load(&call.model)?, call.accuracy)?;
        Ok(Opened { model, inputs: read(&call.inputs)?, device })
    }

    fn session(&self) -> Session {
        Session::on(&self.model, &self.device)
    }

    fn inputs(&self) -> Vec<(&str, &HostTensor)> {
        named(&self.inputs)
    }
}

fn named(inputs: &[(String, HostTensor)]) -> Vec<(&str, &HostTensor)> {
    inputs.iter().map(|(name, tensor)| (&name[..], tensor)).collect()
}

fn set_threads(threads: Option<usize>) {
    if let Some(threads) = threads {
        tilewright::set_threads(threads);
    }
}

fn run_once(options: &ModelRun) -> Outcome {
    let opened = Opened::of(&options.call)?;
    let inputs = opened.inputs();
    let outputs = opened.session().run(&inputs).map_err(Failure::new)?;
    std::fs::create_dir_all(&options.output)
        .map_err(|error| Failure::new(format!("{}: {error}", options.output.display())))?;
    let mut text = String::new();
    let mut paths = Map::new();
    for (place, (name, tensor)) in outputs.iter().enumerate() {
        // A name may hold anything; the file's name does not.
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let path =
            options.output.join(format!("{place}-{}.npy", name.chars().map(plain).collect::<String>()));
        npy::write(&path, tensor).map_err(Failure::new)?;
        if !options.json {
            text += &format!("{name}: {tensor:?} → {}\n", path.display());
        }
        paths.insert(name.to_owned(), Value::String(path.display().to_string()));
    }
    if options.json {
        text += &format!("{}\n", json!({ "outputs": paths }));
    }
    Ok(text)
}

/// How long a round runs at least.
const ROUND: Duration = Duration::from_millis(100);

/// How many calls a round has at least.
const CALLS: usize = 3;

/// Prints the time of the first call, then the median of each round, in milliseconds, a line each, as they are measured.
fn time(options: &ModelTime) -> Outcome {
    let opened = Opened::of(&options.call)?;
    let (inputs, mut session) = (opened.inputs(), opened.session());
    let start = Instant::now();
    session.run(&inputs).map_err(Failure::new)?;
    report(start.elapsed())?;
    // Versions of kernels that are still made beside calls take a core from the rounds.
    background::finish();
    let mut round = 0;
    while if options.paced { has_line()? } else { round < options.rounds } {
        let (begin, mut times) = (Instant::now(), Vec::new());
        while times.len() < CALLS || begin.elapsed() < ROUND {
            let start = Instant::now();
            session.run(&inputs).map_err(Failure::new)?;
            times.push(start.elapsed());
        }
        times.sort_unstable();
        report(times[times.len() / 2])?;
        round += 1;
    }
    Ok(String::new())
}

fn has_line() -> Result<bool, Failure> {
    Ok(io::stdin().read_line(&mut String::new()).map_err(Failure::new)? > 0)
}

fn report(time: Duration) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    writeln!(output, "{:.4}", 1e3 * time.as_secs_f64()).and_then(|()| output.flush()).map_err(Failure::new)
}
