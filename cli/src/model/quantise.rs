//! From a model of floats to one of bytes.

use std::path::PathBuf;

use serde_json::json;
use tilewright_graph::onnx::{Labels, Model};
use tilewright_quantiser::{Error, Options, quantise};

use crate::arguments::ModelQuantise;
use crate::model::{samples, set_threads};
use crate::{Failure, Outcome};

pub(super) fn run(options: &ModelQuantise) -> Outcome {
    set_threads(options.threads);
    let of_model = |error| Failure::new(format!("{}: {error}", options.model.display()));
    let file = Model::read(&options.model).map_err(of_model)?;
    let imported = file.import().map_err(of_model)?;
    let parameters = &imported.function.body.parameters;
    let inputs: Vec<String> =
        parameters.iter().map(|&parameter| imported.function.describe(parameter)).collect();
    let (files, samples): (Vec<PathBuf>, Vec<_>) =
        samples::read(&options.calibrate, &inputs)?.into_iter().unzip();
    let choices = Options {
        method: options.method,
        activations: options.activations,
        weights: options.weights,
        bias_correction: !options.no_bias_correction,
        keep: options.keep.clone(),
        least_ratio: options.keep_below,
    };
    let quantised =
        quantise(&imported.function, &samples, &choices).map_err(|error| explain(&error, options, &files))?;
    let bytes =
        Model::of_function(&quantised.function, &Labels::of(&file)).and_then(|model| model.to_bytes());
    let bytes = bytes.map_err(Failure::new)?;
    std::fs::write(&options.output, &bytes)
        .map_err(|error| Failure::new(format!("{}: {error}", options.output.display())))?;
    let (output, report) = (options.output.display().to_string(), quantised.report);
    if options.json {
        let whole = json!({ "output": output, "bytes": bytes.len(), "report": report });
        return Ok(format!("{}\n", serde_json::to_string_pretty(&whole).map_err(Failure::new)?));
    }
    let before = std::fs::metadata(&options.model).map_or(0, |metadata| metadata.len());
    Ok(format!("{report}wrote `{output}`: {} bytes, {before} before\n", bytes.len()))
}

/// An error with the file that it is about: the one of a sample, or the model.
fn explain(error: &Error, options: &ModelQuantise, files: &[PathBuf]) -> Failure {
    let file = match error {
        Error::Run { sample, .. } | Error::NotFinite { sample, .. } => files.get(*sample),
        _ => None,
    };
    Failure::new(format!("{}: {error}", file.unwrap_or(&options.model).display()))
}
