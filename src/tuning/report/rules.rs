//! Which schedule rules generated the design spaces of trials, and of the winners.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Series;
use super::html::escape;

/// How often a rule took part.
#[derive(Clone, Copy, Default)]
struct Part {
    winners: usize,
    trials: usize,
}

/// The table of rules, if any are known.
pub(super) fn write_section(page: &mut String, series: &[Series]) -> std::fmt::Result {
    let mut parts: BTreeMap<&str, Part> = BTreeMap::new();
    let known = series.iter().flat_map(|one| &one.trials).filter_map(|trial| trial.rules.as_ref());
    let (mut trials, mut winners) = (0, 0);
    for rules in known {
        trials += 1;
        rules.iter().for_each(|rule| parts.entry(rule).or_default().trials += 1);
    }
    let won = series.iter().filter_map(|one| one.winner.as_ref());
    for rules in won.clone().filter_map(|record| record.provenance.rules.as_ref()) {
        winners += 1;
        rules.iter().for_each(|rule| parts.entry(rule).or_default().winners += 1);
    }
    if parts.is_empty() {
        return Ok(());
    }
    writeln!(
        page,
        "<h2>Rules</h2>\n<p class=\"legend\">A rule takes part when it did something to the design space that a candidate is \
         from. That is known of {trials} of {} trials and of {winners} of {} winners: not of those that began as traces of \
         other records, or are older.</p>",
        series.iter().map(|one| one.trials.len()).sum::<usize>(),
        won.count()
    )?;
    writeln!(page, "<table>\n<tr><th>rule</th><th>winners</th><th>trials</th></tr>")?;
    let mut rows: Vec<(&str, Part)> = parts.into_iter().collect();
    rows.sort_by_key(|(rule, part)| (std::cmp::Reverse((part.winners, part.trials)), *rule));
    for (rule, part) in rows {
        let (own, all) = (share(part.winners, winners), share(part.trials, trials));
        writeln!(page, "<tr><td>{}</td><td>{own}</td><td>{all}</td></tr>", escape(rule))?;
    }
    writeln!(page, "</table>")
}

/// `3 (75 %)`
fn share(part: usize, all: usize) -> String {
    match all {
        0 => "–".to_owned(),
        _ => format!("{part} ({:.0} %)", 100.0 * part as f64 / all as f64),
    }
}
