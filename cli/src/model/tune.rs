//! Tuning the kernels of a model under one budget.

use std::fmt::Write;
use std::sync::Arc;

use tilewright::DeviceHandle;
use tilewright::kernel::Kernel;
use tilewright::tuning::{TuneTask, Tuner};
use tilewright_session::{HostTensor, KernelUse, Model, Session};

use crate::arguments::ModelTune;
use crate::model::shapes::combinations;
use crate::model::{load, named, open, read, set_threads, with_accuracy};
use crate::{Failure, Outcome};

pub(super) fn run(options: &ModelTune) -> Outcome {
    set_threads(options.threads);
    let inputs = read(&options.inputs)?;
    let mut model = with_accuracy(load(&options.model)?, options.accuracy)?;
    if !options.buckets.is_empty() {
        model = model.with_buckets(&options.buckets).map_err(Failure::new)?;
    }
    let (device, buckets) = (open(&options.device)?, model.buckets());
    let given = inputs.len() == model.info().inputs.len();
    let uses = if options.shapes.is_empty() && (given || buckets.is_empty()) {
        Session::on(&model, &device).kernels(&named(&inputs)).map_err(Failure::new)?
    } else {
        let calls = combinations(&model.info().inputs, &options.shapes, &buckets, &inputs)?;
        all_kernels(&model, &device, &calls)?
    };
    if uses.is_empty() {
        return Err(Failure::new("no step of this model runs a kernel: there is nothing to tune"));
    }
    std::fs::create_dir_all(&options.records)
        .map_err(|error| Failure::new(format!("{}: {error}", options.records.display())))?;
    let dims: Vec<Vec<(&str, i64)>> =
        uses.iter().map(|KernelUse { kernel, dims, .. }| named_dims(kernel, dims)).collect();
    let tasks: Vec<TuneTask<'_>> = uses
        .iter()
        .zip(&dims)
        .map(|(one, dims)| TuneTask { kernel: &one.kernel, dims, weight: one.steps as f64 })
        .collect();
    let mut tuner = Tuner::new()
        .device(device.id())
        .seed(options.seed)
        .records(&options.records)
        .progress(options.progress);
    if let Some(threads) = options.threads {
        tuner = tuner.threads(threads);
    }
    let coverage = tuner.tune_all(&tasks, options.budget.unwrap_or_default()).map_err(Failure::new)?;
    let mut text = coverage.to_string();
    let (mut by_default, mut tuned) = (0.0, 0.0);
    for (task, one) in coverage.tasks.iter().zip(&uses) {
        let Ok(result) = &task.result else { continue };
        if let (Some(default), Some(best)) = (result.default_seconds, result.best_seconds) {
            by_default += one.steps as f64 * default;
            tuned += one.steps as f64 * best.min(default);
        }
    }
    if tuned > 0.0 {
        let _ = writeln!(
            text,
            "all compared kernels of a call: {:.3} ms by default, {:.3} ms tuned",
            1e3 * by_default,
            1e3 * tuned
        );
    }
    Ok(text)
}

/// The kernels of several calls, each once for each of its shapes.
fn all_kernels(
    model: &Model,
    device: &DeviceHandle,
    calls: &[Vec<(String, HostTensor)>],
) -> Result<Vec<KernelUse>, Failure> {
    let mut uses: Vec<KernelUse> = Vec::new();
    let mut session = Session::on(model, device);
    for inputs in calls {
        for one in session.kernels(&named(inputs)).map_err(Failure::new)? {
            let same =
                |known: &&mut KernelUse| Arc::ptr_eq(&known.kernel, &one.kernel) && known.dims == one.dims;
            match uses.iter_mut().find(same) {
                Some(known) => known.steps += one.steps,
                None => uses.push(one),
            }
        }
    }
    Ok(uses)
}

/// The dimensions of a kernel by name.
fn named_dims<'k>(kernel: &'k Kernel, dims: &[i64]) -> Vec<(&'k str, i64)> {
    kernel.dims().into_iter().zip(dims.iter().copied()).collect()
}
