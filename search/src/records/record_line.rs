//! A record as one line of JSON, checked on the way in.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::line::{FORMAT_VERSION, Malformed, check_kernel, check_shape, parse_hash, print_hash};
use super::{CacheState, Measurement, Outcome, Provenance, Record, Shape};

/// The fields of a line, in their order.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    version: u32,
    kernel: String,
    program: String,
    shape: BTreeMap<String, i64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    params: BTreeMap<String, i64>,
    target: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    median_ns: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spread: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_rel_err: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    confirmed: bool,
    seed: u64,
    trial: u64,
    tilewright: String,
    cpu: String,
    time: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    predicted: Option<f32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rules: Option<Vec<String>>,
    /// Whether operands were evicted before each run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    cold: bool,
    trace: String,
}

/// The line of a record, without its end. A measurement that is not sound is written as a failure, because JSON has
/// no infinities and a look-up no use for them.
pub(super) fn print(record: &Record) -> String {
    let measurement = record.measurement().filter(|measurement| measurement.is_sound());
    let error = match &record.outcome {
        Outcome::Failed(reason) => Some(reason.clone()),
        Outcome::Measured(found) if measurement.is_none() => {
            Some(format!("meaningless measurement: {found:?}"))
        }
        Outcome::Measured(_) => None,
    };
    let fields = Fields {
        version: FORMAT_VERSION,
        kernel: record.kernel.clone(),
        program: print_hash(record.program),
        shape: record.shape.dims.clone(),
        params: record.shape.params.clone(),
        target: record.target.to_string(),
        median_ns: measurement.map(|measurement| measurement.median_ns),
        spread: measurement.map(|measurement| measurement.spread),
        max_rel_err: measurement.map(|measurement| measurement.max_rel_err),
        error,
        confirmed: measurement.is_some_and(|measurement| measurement.is_confirmed),
        seed: record.provenance.seed,
        trial: record.provenance.trial,
        tilewright: record.provenance.version.clone(),
        cpu: record.provenance.cpu.clone(),
        time: record.provenance.time,
        predicted: record.provenance.predicted.filter(|score| score.is_finite()),
        rules: record.provenance.rules.clone(),
        cold: record.provenance.cache == CacheState::Cold,
        trace: record.trace.to_string(),
    };
    serde_json::to_string(&fields).expect("numbers, texts and maps with text keys always have a JSON form")
}

/// The record of a line that states no kind.
pub(super) fn parse(bytes: &[u8]) -> Result<Record, Malformed> {
    let fields: Fields = serde_json::from_slice(bytes)?;
    Ok(record(fields)?)
}

/// Checks what JSON cannot say.
fn record(fields: Fields) -> Result<Record, String> {
    check_kernel(&fields.kernel)?;
    let program = parse_hash("program", &fields.program)?;
    check_shape(&fields.shape, &fields.params)?;
    let target = fields.target.parse().map_err(|error| format!("`target`: {error}"))?;
    let outcome = match (fields.median_ns, fields.error) {
        (Some(median_ns), None) => {
            let (Some(spread), Some(max_rel_err)) = (fields.spread, fields.max_rel_err) else {
                return Err("`median_ns` without `spread` and `max_rel_err`".to_owned());
            };
            let measurement = Measurement { median_ns, spread, max_rel_err, is_confirmed: fields.confirmed };
            if !measurement.is_sound() {
                return Err(format!("a meaningless measurement: {measurement:?}"));
            }
            Outcome::Measured(measurement)
        }
        (None, Some(_)) if fields.confirmed => return Err("`confirmed` without `median_ns`".to_owned()),
        (None, Some(reason)) => Outcome::Failed(reason),
        _ => return Err("expected either `median_ns` or `error`".to_owned()),
    };
    let trace = fields.trace.parse().map_err(|error| format!("`trace`: {error}"))?;
    Ok(Record {
        kernel: fields.kernel,
        program,
        shape: Shape { dims: fields.shape, params: fields.params },
        target,
        trace,
        outcome,
        provenance: Provenance {
            seed: fields.seed,
            trial: fields.trial,
            version: fields.tilewright,
            cpu: fields.cpu,
            time: fields.time,
            predicted: fields.predicted,
            cache: if fields.cold { CacheState::Cold } else { CacheState::Warm },
            rules: fields.rules,
        },
    })
}
