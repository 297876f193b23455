//! The report as a page.

use std::fmt::Write;

use tilewright_search::model::Ranking;

use super::{Series, duration, refusals, rules, svg};

/// Colours and layout, for light and dark screens.
const STYLE: &str = include_str!("report.css");

/// The page.
pub(super) fn page(series: &[Series]) -> String {
    let mut page = String::new();
    // A write to a text cannot fail.
    let Ok(()) = write_page(&mut page, series) else { unreachable!("a text takes everything") };
    page
}

fn write_page(page: &mut String, series: &[Series]) -> std::fmt::Result {
    writeln!(page, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
    writeln!(page, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
    writeln!(page, "<title>Tilewright: tuning report</title>\n<style>\n{STYLE}</style>\n</head>\n<body>")?;
    writeln!(page, "<h1>Tuning report</h1>\n<p class=\"machine\">{}</p>", machines(series))?;
    if series.iter().any(|one| one.best().and_then(|best| one.share_of_peak(best)).is_some()) {
        write_overview(page, series)?;
    }
    write_kernels(page, series)?;
    refusals::write_section(page, series)?;
    write_rankings(page, series)?;
    rules::write_section(page, series)?;
    writeln!(page, "</body>\n</html>")
}

/// The machines of the records, each once.
fn machines(series: &[Series]) -> String {
    let mut machines: Vec<String> = series
        .iter()
        .map(|one| {
            let peak =
                one.peak_gflops.map(|peak| format!(", FMA peak {peak:.0} GFLOP/s")).unwrap_or_default();
            format!("{}{peak}", machine(one))
        })
        .collect();
    machines.sort();
    machines.dedup();
    machines.join("<br>")
}

/// The machine of a series, and how much of it was used.
fn machine(one: &Series) -> String {
    let threads = one.target.threads;
    let plural = if threads == 1 { "" } else { "s" };
    format!("{}, {threads} thread{plural}", escape(&one.cpu))
}

/// The name of a series, with its machine where several are shown.
fn title(one: &Series, series: &[Series]) -> String {
    let is_only = series.iter().all(|other| (&other.cpu, &other.target) == (&one.cpu, &one.target));
    let machine = if is_only { String::new() } else { format!("<small>{}</small>", machine(one)) };
    format!("{}{machine}", escape(&one.title()))
}

/// The share of the peak of every kernel, as bars.
fn write_overview(page: &mut String, series: &[Series]) -> std::fmt::Result {
    writeln!(
        page,
        "<h2>Share of the machine's peak</h2>\n<p class=\"legend\">{} {}</p>\n<div class=\"bars\">",
        entry("best", "", "tuned"),
        entry("default", "", "default schedule")
    )?;
    for one in series {
        let share = |seconds: Option<f64>| seconds.and_then(|seconds| one.share_of_peak(seconds));
        let Some(best) = share(one.best()) else { continue };
        let percent = |share: f64| 100.0 * share.clamp(0.0, 1.0);
        write!(
            page,
            "<div class=\"label\">{}</div><div class=\"bar\"><div class=\"fill\" style=\"width:{:.1}%\"></div>",
            title(one, series),
            percent(best)
        )?;
        if let Some(default) = share(one.default_time()) {
            write!(page, "<div class=\"tick\" style=\"left:{:.1}%\"></div>", percent(default))?;
        }
        // The kernel's card explains a share above the peak.
        let share = if best < 1.005 { format!("{:.0} %", 100.0 * best) } else { "&gt; 100 %".to_owned() };
        writeln!(page, "</div><div class=\"value\">{share}</div>")?;
    }
    writeln!(page, "</div>")
}

/// An entry of the legend: a mark and its meaning.
fn entry(key: &str, mark: &str, meaning: &str) -> String {
    format!("<span class=\"entry\"><span class=\"key {key}\">{mark}</span>{meaning}</span>")
}

/// Writes the best record of each kernel, and the course of its tuning.
fn write_kernels(page: &mut String, series: &[Series]) -> std::fmt::Result {
    if series.iter().any(svg::has_course) {
        let legend = [
            entry("best", "", "best so far"),
            entry("trial", "", "one trial"),
            entry("failed", "×", "failed"),
            entry("dashed", "", "default schedule"),
        ];
        writeln!(
            page,
            "<h2>Course of tuning</h2>\n<p class=\"legend\">{}</p>\n<p class=\"legend\">Upwards is faster. Trials are drawn \
             with their times in the search; the numbers above the pictures are of the comparison at its end, which is more \
             careful.</p>",
            legend.join(" ")
        )?;
    } else {
        writeln!(page, "<h2>Kernels</h2>")?;
    }
    writeln!(page, "<div class=\"cards\">")?;
    series.iter().try_for_each(|one| write_card(page, one, &title(one, series)))?;
    writeln!(page, "</div>")
}

fn write_card(page: &mut String, one: &Series, title: &str) -> std::fmt::Result {
    writeln!(page, "<section class=\"card\">\n<h3>{title}</h3>")?;
    let mut facts = Vec::new();
    if let Some(best) = one.best() {
        facts.push(format!("<b>{}</b>", duration(best)));
        facts.extend(one.gflops(best).map(|gflops| format!("{gflops:.1} GFLOP/s")));
        facts.extend(one.share(best).map(|share| share.to_string()));
        facts.extend(one.bandwidth(best).map(|bandwidth| format!("{bandwidth:.1} GB/s")));
        facts.extend(one.default_time().map(|default| format!("{:.2} × default", default / best)));
        facts.extend(one.error().map(|error| format!("error {error:.1e}")));
    } else {
        facts.push("nothing measured".to_owned());
    }
    write_facts(page, &facts)?;
    match svg::has_course(one) {
        true => writeln!(page, "{}", svg::course(one))?,
        false => writeln!(page, "<p class=\"legend\">Trials on record: {}.</p>", one.trials.len())?,
    }
    if !one.failures.is_empty() {
        let failures: Vec<String> =
            one.failures.iter().map(|(reason, count)| format!("{count} × {}", escape(reason))).collect();
        writeln!(page, "<p class=\"failures\">failed: {}</p>", failures.join(", "))?;
    }
    writeln!(page, "</section>")
}

/// Facts in a row; lines break between them only.
fn write_facts(page: &mut String, facts: &[String]) -> std::fmt::Result {
    writeln!(page, "<p class=\"facts\"><span>{}</span></p>", facts.join("</span> <span>"))
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
        writeln!(page, "<section class=\"card\">\n<h3>{}</h3>", title(one, series))?;
        let correlation = format!("τ <b>{}</b>", signed(all.correlation));
        write_facts(
            page,
            &[correlation, format!("rounds: {}", rounds.len()), format!("pairs: {}", all.pairs)],
        )?;
        writeln!(page, "{}\n</section>", svg::rankings(rounds))?;
    }
    writeln!(page, "</div>")
}

/// A number with two decimals, of which those that round to 0 have no sign.
pub(super) fn signed(number: f64) -> String {
    let text = format!("{number:.2}");
    let digits = text.trim_start_matches('-');
    let is_negative = digits.len() < text.len() && digits.parse() != Ok(0.0);
    if is_negative { format!("−{digits}") } else { digits.to_owned() }
}

/// Text for a page: nothing in a record becomes markup.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tilewright_search::records::{CacheState, Measurement, Outcome, Provenance, Record, Run, Shape};

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
            cache: CacheState::Warm,
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
            peak_bandwidth: None,
            generated: 700,
            refused: BTreeMap::from([("<i>lowering</i>".to_owned(), 30)]),
            failed: BTreeMap::from([("crash".to_owned(), 1)]),
            rounds: vec![Ranking { candidates: 3, pairs: 3, correlation: 0.25 }],
            forecast: None,
            version: String::new(),
            cpu: String::new(),
            time: 0,
        }
    }

    fn series() -> Series {
        let trial = |number, seconds| Trial { number, seconds, ..Trial::default() };
        Series {
            kernel: "matmul".to_owned(),
            program: 1,
            shape: Shape::of_dims([("M", 4)]),
            target: "cpu;threads=1".parse().expect("a target"),
            cache: CacheState::Warm,
            cpu: "<script>".to_owned(),
            trials: vec![trial(0, Some(2e-6)), trial(1, None), trial(2, Some(1e-6))],
            winner: Some(winner()),
            failures: BTreeMap::from([("crash".to_owned(), 1)]),
            runs: vec![run()],
            last_time: 0,
            flops: Some(2e4),
            bytes: Some(1e4),
            peak_gflops: Some(40.0),
            peak_bandwidth: None,
        }
    }

    #[test]
    fn machines_are_told_apart_where_there_are_several() {
        let other = Series { cpu: "another".to_owned(), ..series() };
        assert!(page(&[series(), other]).contains("<h3>matmul[M=4]<small>another, 1 thread</small></h3>"));
        assert!(!page(&[series(), series()]).contains("<small>"));
    }

    #[test]
    fn what_is_left_of_a_course_is_not_drawn() {
        let mut pruned = series();
        assert!(page(&[pruned.clone()]).contains("GFLOP/s</text>"));
        assert!(page(&[Series { flops: None, ..pruned.clone() }]).contains("runs/ms</text>"));
        pruned.trials.truncate(2);
        pruned.runs.clear();
        let page = page(&[pruned]);
        assert!(page.contains("Trials on record: 2.") && !page.contains("<svg"), "{page}");
    }

    #[test]
    fn zero_has_no_sign() {
        assert_eq!([-0.004, 0.004, -0.006, 1.0].map(signed), ["0.00", "0.00", "−0.01", "1.00"]);
    }

    #[test]
    fn more_than_the_peak_is_said_without_a_number() {
        let page = page(&[Series { peak_gflops: Some(10.0), ..series() }]);
        assert!(
            page.contains("<div class=\"value\">&gt; 100 %</div>") && page.contains("width:100.0%"),
            "{page}"
        );
    }

    #[test]
    fn a_page_shows_each_series_and_trusts_no_text() {
        let page = page(&[series()]);
        assert!(page.contains("<h3>matmul[M=4]</h3>"), "{page}");
        for fact in
            ["<b>1.00 µs</b>", "20.0 GFLOP/s", "50 % of peak", "10.0 GB/s", "2.00 × default", "error 3.0e-7"]
        {
            assert!(page.contains(&format!("<span>{fact}</span>")), "{fact}\n{page}");
        }
        assert!(page.contains("failed: 1 × crash") && page.contains("width:50.0%"), "{page}");
        for row in [
            "<tr><td>&lt;i&gt;lowering&lt;/i&gt;</td><td>generated</td><td></td><td>30</td><td>1</td></tr>",
            "<tr><td>crash</td><td>compiled, run or checked</td><td>the process that ran it died</td><td>1</td><td>1</td></tr>",
            "<tr><td>&lt;b&gt;bold&lt;/b&gt;</td><td>1 (100 %)</td><td>–</td></tr>",
            "<span>τ <b>0.25</b></span> <span>rounds: 1</span> <span>pairs: 3</span>",
        ] {
            assert!(page.contains(row), "{row}\n{page}");
        }
        assert!(!page.contains("<script") && !page.contains("<i>"), "{page}");
    }
}
