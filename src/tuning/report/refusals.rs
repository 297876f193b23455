//! Why candidates did not become trials, or trials have no times.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Series;
use super::html::escape;
use super::reasons;

/// The stage at which a candidate was refused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Before compilation: a primitive or a postprocessor refused, or it could not be lowered.
    Generating,
    /// At compilation, in a run or in the check.
    Measuring,
}

/// How many candidates were refused for a reason, and of how many kernels and shapes.
type Reasons<'a> = BTreeMap<(Stage, &'a str), (u64, usize)>;

/// The table of reasons, if any are known.
pub(super) fn write_section(page: &mut String, series: &[Series]) -> std::fmt::Result {
    let mut reasons: Reasons<'_> = BTreeMap::new();
    let mut generated: u64 = 0;
    for one in series {
        generated = one.runs.iter().fold(generated, |sum, run| sum.saturating_add(run.generated));
        count(&mut reasons, Stage::Generating, summed(one.runs.iter().map(|run| &run.refused)));
        let of_runs = summed(one.runs.iter().map(|run| &run.failed));
        let failed = if of_runs.is_empty() { summed(std::iter::once(&one.failures)) } else { of_runs };
        count(&mut reasons, Stage::Measuring, failed);
    }
    if reasons.is_empty() {
        return Ok(());
    }
    writeln!(page, "<h2>Why candidates were refused</h2>")?;
    writeln!(
        page,
        "<p class=\"legend\">{generated} candidates were generated. Most of what is refused costs a fraction of a millisecond: \
         a random decision asked for something that is not legal, or needless.</p>"
    )?;
    writeln!(
        page,
        "<table>\n<tr><th>reason</th><th>when</th><th>meaning</th><th>candidates</th><th>kernels</th></tr>"
    )?;
    let mut rows: Vec<_> = reasons.into_iter().collect();
    rows.sort_by_key(|((stage, reason), (sum, _))| (*stage, std::cmp::Reverse(*sum), *reason));
    for ((stage, reason), (sum, places)) in rows {
        let when = match stage {
            Stage::Generating => "generated",
            Stage::Measuring => "compiled, run or checked",
        };
        let (meaning, reason) = (escape(reasons::meaning(reason)), escape(reason));
        writeln!(
            page,
            "<tr><td>{reason}</td><td>{when}</td><td>{meaning}</td><td>{sum}</td><td>{places}</td></tr>"
        )?;
    }
    writeln!(page, "</table>")
}

fn count<'a>(reasons: &mut Reasons<'a>, stage: Stage, counts: BTreeMap<&'a str, u64>) {
    for (reason, own) in counts {
        let (sum, places) = reasons.entry((stage, reason)).or_default();
        *sum = sum.saturating_add(own);
        *places += 1;
    }
}

fn summed<'a>(counts: impl Iterator<Item = &'a BTreeMap<String, u64>>) -> BTreeMap<&'a str, u64> {
    let mut all: BTreeMap<&str, u64> = BTreeMap::new();
    for (reason, count) in counts.flatten() {
        let sum = all.entry(reason).or_default();
        *sum = sum.saturating_add(*count);
    }
    all
}
