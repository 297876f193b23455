//! A record as one line of JSON, checked on the way in.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::file::Line;
use super::record::is_kernel_name;
use super::{Measurement, Outcome, Provenance, Record, Shape};

/// The version of the format, which each line states. Raised whenever the meaning of a field changes.
pub const FORMAT_VERSION: u32 = 1;

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
    trace: String,
}

/// The one field that every version has.
#[derive(Deserialize)]
struct Versioned {
    version: Option<u64>,
}

/// The line of a record, without its end. A measurement that is not sound is written as a failure, because JSON has
/// no infinities and a look-up no use for them.
pub(super) fn print_line(record: &Record) -> String {
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
        program: format!("{:016x}", record.program),
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
        trace: record.trace.to_string(),
    };
    serde_json::to_string(&fields).expect("numbers, texts and maps with text keys always have a JSON form")
}

/// The record of a line, `None` for an empty line, or what is wrong with it.
pub(super) fn parse_line(line: &Line<'_>) -> Result<Option<Record>, String> {
    let (bytes, finished) = match *line {
        Line::Whole(bytes) => (bytes, true),
        Line::Unfinished(bytes) => (bytes, false),
        Line::TooLong { limit } => return Err(format!("the line is longer than {limit} bytes")),
    };
    if bytes.trim_ascii().is_empty() {
        return Ok(None);
    }
    let cut_off = |error: serde_json::Error| match finished {
        true => format!("not a record: {error}"),
        false => "the line was cut off while it was written".to_owned(),
    };
    let Versioned { version } = serde_json::from_slice(bytes).map_err(cut_off)?;
    match version {
        Some(version) if version == u64::from(FORMAT_VERSION) => {}
        Some(other) => {
            return Err(format!("a record of format version {other}, expected {FORMAT_VERSION}; tune again"));
        }
        None => return Err("not a record: it states no `version`".to_owned()),
    }
    let fields: Fields = serde_json::from_slice(bytes).map_err(cut_off)?;
    record(fields).map(Some)
}

/// Checks what JSON cannot say.
fn record(fields: Fields) -> Result<Record, String> {
    if !is_kernel_name(&fields.kernel) {
        return Err(format!("`kernel`: `{}` is no kernel name", fields.kernel));
    }
    let is_hash = fields.program.len() == 16 && fields.program.bytes().all(|byte| byte.is_ascii_hexdigit());
    let program = u64::from_str_radix(&fields.program, 16).ok().filter(|_| is_hash);
    let program = program
        .ok_or_else(|| format!("`program`: `{}` is no hash of 16 hexadecimal digits", fields.program))?;
    if let Some((name, value)) = fields.shape.iter().chain(&fields.params).find(|(_, value)| **value < 0) {
        return Err(format!("`shape`: `{name}` is {value}, but dimensions are not negative"));
    }
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
        },
    })
}
