//! The result of a tuning run of one kernel at one shape, as one line of JSON at its end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::line::{FORMAT_VERSION, Malformed, check_kernel, check_shape, parse_hash, print_hash};
use super::{CacheState, Shape, TunedFor};
use crate::model::Ranking;
use crate::tune::forecast::Forecast;

/// The kind of such lines.
pub(super) const KIND: &str = "run";

/// A tuning run of one kernel at one shape, for people: look-ups and searches do not depend on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The kernel's name.
    pub kernel: String,
    /// The hash of its program, as in the [records](super::Record::program).
    pub program: u64,
    /// The shape.
    pub shape: Shape,
    /// The machine.
    pub target: TunedFor,
    /// Where the operands of runs were.
    pub cache: CacheState,
    /// The seed of the search.
    pub seed: u64,
    /// The number of trials that earlier runs had recorded, which is the number of its first trial.
    pub earlier: u64,
    /// The number of its own trials.
    pub trials: u64,
    /// Its duration, in seconds.
    pub seconds: f64,
    /// The part of it that generated candidates, in seconds.
    pub generation_seconds: f64,
    /// The reason of its end, as the end of a sentence.
    pub end: String,
    /// The time of the best schedule in the end, in nanoseconds; `None` when nothing could be measured.
    pub best_ns: Option<f64>,
    /// The time of the default schedule, in nanoseconds, where it was measured.
    pub default_ns: Option<f64>,
    /// The arithmetic operations of one call.
    pub flops: f64,
    /// The bytes that one call must move: arguments once, results once.
    pub bytes: f64,
    /// The measured peak of the machine, in 10⁹ operations per second, where known.
    pub peak_gflops: Option<f64>,
    /// The measured bandwidth of memory, in 10⁹ bytes per second, where known.
    pub peak_bandwidth: Option<f64>,
    /// Candidates that were generated, legal or not.
    pub generated: u64,
    /// Candidates that were refused before they were compiled, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Trials that failed to compile, crashed or gave wrong results, by reason.
    pub failed: BTreeMap<String, u64>,
    /// The ranking quality of the cost model in each round, before its candidates were measured.
    pub rounds: Vec<Ranking>,
    /// The forecast of further trials.
    pub forecast: Option<Forecast>,
    /// The version of Tilewright.
    pub version: String,
    /// The CPU's model name.
    pub cpu: String,
    /// When it ended, in seconds since 1970.
    pub time: u64,
}

/// The fields of a line, in their order.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    version: u32,
    kind: String,
    kernel: String,
    program: String,
    shape: BTreeMap<String, i64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    params: BTreeMap<String, i64>,
    target: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    cold: bool,
    seed: u64,
    earlier: u64,
    trials: u64,
    seconds: f64,
    generation_seconds: f64,
    end: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    best_ns: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default_ns: Option<f64>,
    flops: f64,
    bytes: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    peak_gflops: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    peak_bandwidth: Option<f64>,
    generated: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    refused: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    failed: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rounds: Vec<RankingFields>,
    #[serde(default, rename = "outlook", skip_serializing_if = "Option::is_none")]
    forecast: Option<ForecastFields>,
    tilewright: String,
    cpu: String,
    time: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RankingFields {
    candidates: u64,
    pairs: u64,
    correlation: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ForecastFields {
    trials: u64,
    notable: f64,
    chance: f64,
    expected_gain: f64,
}

impl Run {
    /// The ranking quality of the cost model over all rounds; `None` without pairs. Only candidates of one round are compared, since the
    /// model learns between rounds.
    pub fn ranking(&self) -> Option<Ranking> {
        Ranking::overall(&self.rounds)
    }

    /// Whether the trial of a number belongs to it.
    pub fn covers(&self, trial: u64) -> bool {
        trial.checked_sub(self.earlier).is_some_and(|own| own < self.trials)
    }
}

/// The line, without its end. Numbers that are no finite ones, which JSON does not have, are left out or become 0.
pub(super) fn print(run: &Run) -> String {
    let finite = |value: f64| if value.is_finite() { value.max(0.0) } else { 0.0 };
    let positive = |value: &f64| value.is_finite() && *value > 0.0;
    let fields = Fields {
        version: FORMAT_VERSION,
        kind: KIND.to_owned(),
        kernel: run.kernel.clone(),
        program: print_hash(run.program),
        shape: run.shape.dims.clone(),
        params: run.shape.params.clone(),
        target: run.target.to_string(),
        cold: run.cache == CacheState::Cold,
        seed: run.seed,
        earlier: run.earlier,
        trials: run.trials,
        seconds: finite(run.seconds),
        generation_seconds: finite(run.generation_seconds),
        end: run.end.clone(),
        best_ns: run.best_ns.filter(positive),
        default_ns: run.default_ns.filter(positive),
        flops: finite(run.flops),
        bytes: finite(run.bytes),
        peak_gflops: run.peak_gflops.filter(positive),
        peak_bandwidth: run.peak_bandwidth.filter(positive),
        generated: run.generated,
        refused: run.refused.clone(),
        failed: run.failed.clone(),
        rounds: run
            .rounds
            .iter()
            .filter(|round| is_sound(round))
            .map(|round| RankingFields {
                candidates: round.candidates,
                pairs: round.pairs,
                correlation: round.correlation,
            })
            .collect(),
        forecast: run.forecast.filter(is_likely).map(|forecast| ForecastFields {
            trials: forecast.trials as u64,
            notable: forecast.notable,
            chance: forecast.chance,
            expected_gain: forecast.expected_gain,
        }),
        tilewright: run.version.clone(),
        cpu: run.cpu.clone(),
        time: run.time,
    };
    serde_json::to_string(&fields).expect("numbers, texts and maps with text keys always have a JSON form")
}

/// The run of a line of this kind.
pub(super) fn parse(bytes: &[u8]) -> Result<Run, Malformed> {
    let fields: Fields = serde_json::from_slice(bytes)?;
    check_kernel(&fields.kernel)?;
    let program = parse_hash("program", &fields.program)?;
    check_shape(&fields.shape, &fields.params)?;
    let target = fields.target.parse().map_err(|error| format!("`target`: {error}"))?;
    let at_least_zero = [
        ("seconds", fields.seconds),
        ("generation_seconds", fields.generation_seconds),
        ("flops", fields.flops),
        ("bytes", fields.bytes),
    ];
    if let Some((name, value)) = at_least_zero.iter().find(|(_, value)| !(*value >= 0.0 && value.is_finite()))
    {
        return Err(Malformed::Content(format!("`{name}` is {value}, expected a number of at least 0")));
    }
    let above_zero = [
        ("best_ns", fields.best_ns),
        ("default_ns", fields.default_ns),
        ("peak_gflops", fields.peak_gflops),
        ("peak_bandwidth", fields.peak_bandwidth),
    ];
    for (name, value) in above_zero {
        if let Some(value) = value.filter(|value| !(*value > 0.0 && value.is_finite())) {
            return Err(Malformed::Content(format!("`{name}` is {value}, expected a number above 0")));
        }
    }
    let rounds: Vec<Ranking> = fields
        .rounds
        .iter()
        .map(|round| Ranking {
            candidates: round.candidates,
            pairs: round.pairs,
            correlation: round.correlation,
        })
        .collect();
    if let Some(round) = rounds.iter().find(|round| !is_sound(round)) {
        return Err(Malformed::Content(format!("`rounds`: a meaningless ranking: {round:?}")));
    }
    let forecast = fields.forecast.map(|forecast| Forecast {
        trials: usize::try_from(forecast.trials).unwrap_or(usize::MAX),
        notable: forecast.notable,
        chance: forecast.chance,
        expected_gain: forecast.expected_gain,
    });
    if let Some(forecast) = forecast.filter(|forecast| !is_likely(forecast)) {
        return Err(Malformed::Content(format!("`outlook`: a meaningless forecast: {forecast:?}")));
    }
    Ok(Run {
        kernel: fields.kernel,
        program,
        shape: Shape { dims: fields.shape, params: fields.params },
        target,
        cache: if fields.cold { CacheState::Cold } else { CacheState::Warm },
        seed: fields.seed,
        earlier: fields.earlier,
        trials: fields.trials,
        seconds: fields.seconds,
        generation_seconds: fields.generation_seconds,
        end: fields.end,
        best_ns: fields.best_ns,
        default_ns: fields.default_ns,
        flops: fields.flops,
        bytes: fields.bytes,
        peak_gflops: fields.peak_gflops,
        peak_bandwidth: fields.peak_bandwidth,
        generated: fields.generated,
        refused: fields.refused,
        failed: fields.failed,
        rounds,
        forecast,
        version: fields.tilewright,
        cpu: fields.cpu,
        time: fields.time,
    })
}

/// Whether a ranking may be one.
fn is_sound(ranking: &Ranking) -> bool {
    (-1.0..=1.0).contains(&ranking.correlation)
}

/// Whether a forecast may be one.
fn is_likely(forecast: &Forecast) -> bool {
    [forecast.notable, forecast.chance, forecast.expected_gain]
        .iter()
        .all(|share| (0.0..=1.0).contains(share))
}
