//! The report as a page.

use std::fmt::Write;

use tilewright_search::model::Ranking;

use super::super::peak::percent_of_peak;
use super::{Series, duration, refusals, rules, svg};

/// Colours and layout, for light and dark screens.
const STYLE: &str = include_str!("report.css");

/// The page.
pub(super) fn page(series: &[Series]) -> String {
    let mut page = String::new();
    // Writing to a text cannot fail.
    let Ok(()) = write_page(&mut page, series) else { unreachable!("a text takes everything") };
    page
}

fn write_page(page: &mut String, series: &[Series]) -> std::fmt::Result {
    writeln!(page, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
    writeln!(page, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
    writeln!(page, "<title>Tilewright: tuning report</title>\n<style>\n{STYLE}</style>\n</head>\n<body>")?;
    writeln!(page, "<h1>Tuning report</h1>\n<p class=\"machine\">{}</p>", machine(series))?;
    if series.iter().any(|one| one.best().and_then(|best| one.share_of_peak(best)).is_some()) {
        write_overview(page, series)?;
    }
    writeln!(page, "<h2>Course of tuning</h2>")?;
    writeln!(
        page,
        "<p class=\"legend\"><span class=\"key best\"></span>best so far <span class=\"key trial\"></span>one trial \
         <span class=\"key default\"></span>default schedule; the axis is in GFLOP/s, or in runs per millisecond \
         where there is nothing to count</p>\n<div class=\"cards\">"
    )?;
    series.iter().try_for_each(|one| write_card(page, one))?;
    writeln!(page, "</div>")?;
    refusals::write_section(page, series)?;
    write_rankings(page, series)?;
    rules::write_section(page, series)?;
    writeln!(page, "</body>\n</html>")
}

/// The machines of the records, each once.
fn machine(series: &[Series]) -> String {
    let mut machines: Vec<String> = series
        .iter()
        .map(|one| {
            let peak =
                one.peak_gflops.map(|peak| format!(", FMA peak {peak:.0} GFLOP/s")).unwrap_or_default();
            let (cpu, threads) = (escape(&one.cpu), one.target.threads);
            let plural = if threads == 1 { "" } else { "s" };
            format!("{cpu}, {threads} thread{plural}{peak}")
        })
        .collect();
    machines.sort();
    machines.dedup();
    machines.join("<br>")
}

/// The share of the peak of every kernel, as bars.
fn write_overview(page: &mut String, series: &[Series]) -> std::fmt::Result {
    writeln!(
        page,
        "<h2>Share of the machine's peak</h2>\n<p class=\"legend\"><span class=\"key best\"></span>tuned"
    )?;
    writeln!(page, "<span class=\"key default\"></span>default schedule</p>\n<div class=\"bars\">")?;
    for one in series {
        let share = |seconds: Option<f64>| seconds.and_then(|seconds| one.share_of_peak(seconds));
        let Some(best) = share(one.best()) else { continue };
        let percent = |share: f64| 100.0 * share.clamp(0.0, 1.0);
        write!(
            page,
            "<div class=\"label\">{}</div><div class=\"bar\"><div class=\"fill\" style=\"width:{:.1}%\"></div>",
            escape(&one.title()),
            percent(best)
        )?;
        if let Some(default) = share(one.default_time()) {
            write!(page, "<div class=\"tick\" style=\"left:{:.1}%\"></div>", percent(default))?;
        }
        writeln!(page, "</div><div class=\"value\">{}</div>", percent_of_peak(best))?;
    }
    writeln!(page, "</div>")
}

fn write_card(page: &mut String, one: &Series) -> std::fmt::Result {
    writeln!(page, "<section class=\"card\">\n<h3>{}</h3>", escape(&one.title()))?;
    let mut facts = Vec::new();
    if let Some(best) = one.best() {
        facts.push(format!("<b>{}</b>", duration(best)));
        facts.extend(one.gflops(best).map(|gflops| format!("{gflops:.1} GFLOP/s")));
        facts.extend(one.share_of_peak(best).map(percent_of_peak));
        facts.extend(one.bandwidth(best).map(|bandwidth| format!("{bandwidth:.1} GB/s")));
        facts.extend(one.default_time().map(|default| format!("{:.2}\u{a0}×\u{a0}default", default / best)));
        facts.extend(one.error().map(|error| format!("error {error:.1e}")));
    } else {
        facts.push("nothing measured".to_owned());
    }
    writeln!(page, "<p>{}</p>\n{}", facts.join(" · "), svg::course(one))?;
    if !one.failures.is_empty() {
        let failures: Vec<String> =
            one.failures.iter().map(|(reason, count)| format!("{count} × {}", escape(reason))).collect();
        writeln!(page, "<p class=\"failures\">failed: {}</p>", failures.join(", "))?;
    }
    writeln!(page, "</section>")
}

/// How well the cost model ranked candidates before they were measured.
fn write_rankings(page: &mut String, series: &[Series]) -> std::fmt::Result {
    let ranked: Vec<(&Series, Vec<Ranking>)> = series
        .iter()
        .map(|one| (one, one.runs.iter().flat_map(|run| run.rounds.iter().copied()).collect()))
        .filter(|(_, rounds): &(_, Vec<Ranking>)| !rounds.is_empty())
        .collect();
    if ranked.is_empty() {
        return Ok(());
    }
    writeln!(
        page,
        "<h2>Accuracy of the cost model</h2>\n<p class=\"legend\">The rank correlation (Kendall's τ) of the scores that it \
         gave before measuring with the measured speeds, among the candidates of each round: 1 puts all in order, 0 is \
         guessing. One column is one round; candidates of a round resemble each other more the longer the search \
         goes on.</p>\n<div class=\"cards\">"
    )?;
    for (one, rounds) in &ranked {
        let Some(all) = Ranking::overall(rounds) else { continue };
        writeln!(
            page,
            "<section class=\"card\">\n<h3>{}</h3>\n<p>τ <b>{:.2}</b> · rounds: {} · pairs: {}</p>\n{}\n</section>",
            escape(&one.title()),
            all.correlation,
            rounds.len(),
            all.pairs,
            svg::rankings(rounds)
        )?;
    }
    writeln!(page, "</div>")
}

/// Text for a page: nothing in a record becomes markup.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tilewright_search::database::{Measurement, Outcome, Provenance, Record, Run, Shape};

    use super::super::Trial;
    use super::*;

    fn winner() -> Record {
        Record {
            kernel: "matmul".to_owned(),
            program: 1,
            shape: Shape::of_dims([("M", 4)]),
            target: "cpu;threads=1".parse().expect("a target"),
            trace: "trace v1\n".parse().expect("a trace"),
            outcome: Outcome::Measured(Measurement {
                median_ns: 1e3,
                spread: 0.0,
                max_rel_err: 3e-7,
                is_confirmed: false,
            }),
            provenance: Provenance { rules: Some(vec!["<b>bold</b>".to_owned()]), ..Provenance::default() },
        }
    }

    fn run() -> Run {
        Run {
            kernel: "matmul".to_owned(),
            program: 1,
            shape: Shape::of_dims([("M", 4)]),
            target: "cpu;threads=1".parse().expect("a target"),
            seed: 1,
            earlier: 0,
            trials: 3,
            seconds: 1.0,
            generation_seconds: 0.5,
            end: "it was stopped".to_owned(),
            best_ns: Some(1e3),
            default_ns: None,
            flops: 2e4,
            bytes: 1e4,
            peak_gflops: Some(40.0),
            generated: 700,
            refused: BTreeMap::from([("<i>lowering</i>".to_owned(), 30)]),
            failed: BTreeMap::from([("crash".to_owned(), 1)]),
            rounds: vec![Ranking { candidates: 3, pairs: 3, correlation: 0.25 }],
            outlook: None,
            version: String::new(),
            cpu: String::new(),
            time: 0,
        }
    }

    #[test]
    fn a_page_shows_each_series_and_trusts_no_text() {
        let trial = |number, seconds| Trial { number, seconds, ..Trial::default() };
        let series = Series {
            kernel: "matmul".to_owned(),
            program: 1,
            shape: Shape::of_dims([("M", 4)]),
            target: "cpu;threads=1".parse().expect("a target"),
            cpu: "<script>".to_owned(),
            trials: vec![trial(0, Some(2e-6)), trial(1, None), trial(2, Some(1e-6))],
            winner: Some(winner()),
            failures: BTreeMap::from([("crash".to_owned(), 1)]),
            runs: vec![run()],
            last_time: 0,
            flops: Some(2e4),
            bytes: Some(1e4),
            peak_gflops: Some(40.0),
        };
        let page = page(&[series]);
        assert!(page.contains("<h3>matmul[M=4]</h3>"), "{page}");
        let facts = "<b>1.00 µs</b> · 20.0 GFLOP/s · 50 % of peak · 10.0 GB/s · 2.00\u{a0}×\u{a0}default · error 3.0e-7";
        assert!(page.contains(facts), "{page}");
        assert!(page.contains("failed: 1 × crash") && page.contains("width:50.0%"), "{page}");
        for row in [
            "<tr><td>&lt;i&gt;lowering&lt;/i&gt;</td><td>generated</td><td>30</td><td>1</td></tr>",
            "<tr><td>crash</td><td>compiled, run or checked</td><td>1</td><td>1</td></tr>",
            "<tr><td>&lt;b&gt;bold&lt;/b&gt;</td><td>1 of 1 (100 %)</td><td>–</td></tr>",
            "<p>τ <b>0.25</b> · rounds: 1 · pairs: 3</p>",
        ] {
            assert!(page.contains(row), "{row}\n{page}");
        }
        assert!(!page.contains("<script") && !page.contains("<i>"), "{page}");
    }
}
