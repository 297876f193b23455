//! Pictures as SVG text.

use tilewright_search::model::Ranking;

use super::html::signed;
use super::{Series, duration};

/// The size of the picture of one series.
const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 160.0;
/// Room for the axes.
const LEFT: f64 = 44.0;
const BOTTOM: f64 = 22.0;
const TOP: f64 = 20.0;
/// Where the unit of an axis stands.
const UNIT: f64 = 10.0;
const RIGHT: f64 = 8.0;

/// The fewest trials whose course is drawn: pruned records have no course.
const FEWEST: usize = 3;

/// Whether a series has a course.
pub(super) fn has_course(series: &Series) -> bool {
    series.trials.len() >= FEWEST
}

/// The course of tuning: a dot for each trial, a line for the best so far. Upwards is faster.
pub(super) fn course(series: &Series) -> String {
    let speed = |seconds: f64| series.gflops(seconds).unwrap_or(1e-3 / seconds);
    let speeds: Vec<Option<f64>> = series.trials.iter().map(|trial| trial.seconds.map(speed)).collect();
    let fastest = speeds.iter().copied().flatten().fold(0.0, f64::max);
    let step = round_step(fastest.max(1e-9));
    let top = (fastest / step).ceil().max(1.0) * step;
    let last = speeds.len().max(2) as f64 - 1.0;
    let x = |trial: f64| LEFT + trial / last * (WIDTH - LEFT - RIGHT);
    let y = |speed: f64| HEIGHT - BOTTOM - speed / top * (HEIGHT - BOTTOM - TOP);
    let unit = if series.flops.is_some_and(|flops| flops > 0.0) { "GFLOP/s" } else { "runs/ms" };
    let mut parts = vec![grid(step, top, unit, speeds.len(), &y)];
    let mut best: Option<f64> = None;
    let mut line = String::new();
    for (trial, speed) in speeds.iter().enumerate() {
        let place = x(trial as f64);
        if let (Some(speed), Some(seconds)) = (speed, series.trials[trial].seconds) {
            parts.push(format!(
                "<circle class=\"trial\" cx=\"{place:.1}\" cy=\"{:.1}\" r=\"2\"><title>trial {}: {}</title></circle>",
                y(*speed),
                series.trials[trial].number + 1,
                duration(seconds)
            ));
            best = Some(best.map_or(*speed, |best: f64| best.max(*speed)));
        } else {
            parts.push(format!(
                "<path class=\"failed\" d=\"M{:.1},{:.1}l4,4m0,-4l-4,4\"><title>trial {}: failed</title></path>",
                place - 2.0,
                y(0.0) - 6.0,
                series.trials[trial].number + 1
            ));
        }
        if let Some(best) = best {
            // A step function: a time is the best from its trial on.
            line.push_str(&match line.is_empty() {
                true => format!("M{place:.1},{:.1}", y(best)),
                false => format!("H{place:.1}V{:.1}", y(best)),
            });
        }
    }
    parts.push(format!("<path class=\"best\" d=\"{line}\"/>"));
    if let Some(default) = series.default_time().map(speed) {
        parts.push(format!(
            "<path class=\"default\" d=\"M{LEFT:.1},{0:.1}H{1:.1}\"/>",
            y(default),
            WIDTH - RIGHT
        ));
    }
    format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">{}</svg>", parts.concat())
}

/// The lines, numbers and names of the axes.
fn grid(step: f64, top: f64, unit: &str, trials: usize, y: &dyn Fn(f64) -> f64) -> String {
    let mut text = format!("<text x=\"{LEFT}\" y=\"{UNIT}\">{unit}</text>");
    let lines = (top / step).round() as usize;
    for number in 0..=lines {
        let value = number as f64 * step;
        let digits = if step < 0.1 { 2 } else { usize::from(step < 1.0) };
        text.push_str(&format!(
            "<path class=\"grid\" d=\"M{LEFT},{0:.1}H{1}\"/><text x=\"{2}\" y=\"{3:.1}\" class=\"end\">{value:.digits$}</text>",
            y(value),
            WIDTH - RIGHT,
            LEFT - 6.0,
            y(value) + 3.5,
        ));
    }
    text.push_str(&format!(
        "<text x=\"{LEFT}\" y=\"{0}\">1</text><text x=\"{1}\" y=\"{0}\" class=\"end\">{trials}</text><text x=\"{2}\" y=\"{0}\" class=\"middle\">trials</text>",
        HEIGHT - 6.0,
        WIDTH - RIGHT,
        (LEFT + WIDTH - RIGHT) / 2.0,
    ));
    text
}

/// The rank correlation of each round, as columns that stand on a line for guessing or hang from it.
pub(super) fn rankings(rounds: &[Ranking]) -> String {
    /// The height of the picture, and the room above and below the columns.
    const LOW: f64 = 100.0;
    const EDGE: f64 = 6.0;
    let y = |correlation: f64| (TOP + LOW) / 2.0 - correlation * ((LOW - TOP) / 2.0 - EDGE);
    let width = (WIDTH - LEFT - RIGHT) / rounds.len() as f64;
    let mut text = format!("<text x=\"{LEFT}\" y=\"{UNIT}\">τ of each round</text>");
    for (mark, name) in [(-1.0, "−1"), (0.0, "0"), (1.0, "1")] {
        text.push_str(&format!(
            "<path class=\"grid\" d=\"M{LEFT},{0:.1}H{1}\"/><text x=\"{2}\" y=\"{3:.1}\" class=\"end\">{name}</text>",
            y(mark),
            WIDTH - RIGHT,
            LEFT - 6.0,
            y(mark) + 3.5,
        ));
    }
    for (number, round) in rounds.iter().enumerate() {
        let (top, bottom) = (y(round.correlation.max(0.0)), y(round.correlation.min(0.0)));
        text.push_str(&format!(
            "<rect class=\"round\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>round {}: τ {} of {} \
             candidates</title></rect>",
            LEFT + width * (number as f64 + 0.1),
            width * 0.8,
            (bottom - top).max(0.5),
            number + 1,
            signed(round.correlation),
            round.candidates
        ));
    }
    format!("<svg viewBox=\"0 0 {WIDTH} {LOW}\" role=\"img\">{text}</svg>")
}

/// A step of 1, 2 or 5 times a power of ten that divides `range` into two to five parts.
fn round_step(range: f64) -> f64 {
    let magnitude = 10f64.powf((range / 4.0).log10().floor());
    let digit = range / 4.0 / magnitude;
    let rounded = [1.0, 2.0, 5.0].into_iter().find(|&candidate| digit <= candidate).unwrap_or(10.0);
    rounded * magnitude
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        for (range, step) in [(10.0, 5.0), (4.0, 1.0), (0.09, 0.05), (37.0, 10.0), (130.0, 50.0), (7.9, 2.0)]
        {
            assert!((round_step(range) - step).abs() < 1e-9, "{range}: {}", round_step(range));
        }
    }
}
