//! `tilewright show`.

use tilewright::tuning::replay::{self, Code};

use crate::arguments::Show;
use crate::records::{Found, Wanted};
use crate::words::{day, outcome, percent};
use crate::{Failure, Outcome};

pub(crate) fn run(options: &Show) -> Outcome {
    let found = Wanted::from(&options.which).find()?;
    let mut text = head(&found);
    text += &format!("\n{}", found.record.trace);
    let program = match found.program(&options.which.path) {
        Ok(program) => program,
        Err(failure) if options.lowered || options.assembly => return Err(failure),
        Err(Failure(reason)) => return Ok(format!("{text}\n{reason}\n")),
    };
    let bound = replay::bind(program, &found.record.shape).map_err(Failure::new)?;
    let context = replay::context(found.record.target.threads).map_err(Failure::new)?;
    let scheduled = replay::schedule(&bound, &found.record.trace, &context).map_err(Failure::new)?;
    text += &format!("\nprogram:\n{program}\nscheduled program:\n{scheduled}");
    if options.lowered || options.assembly {
        let code = replay::compile(&scheduled, &context.target).map_err(Failure::new)?;
        text += &compiled(&code, options);
    }
    Ok(text)
}

/// The main facts of a record, in a few lines.
pub(crate) fn head(found: &Found) -> String {
    let (record, series) = (&found.record, &found.series);
    let (provenance, shape) = (&record.provenance, &record.shape);
    let mut lines = vec![
        format!("{}[{shape}], trial {} of seed {}", record.kernel, provenance.trial, provenance.seed),
        format!("  {}", outcome(record)),
    ];
    if let Some(seconds) = record.median_ns().map(|ns| ns * 1e-9) {
        let mut facts = Vec::new();
        facts.extend(series.gflops(seconds).map(|gflops| format!("{gflops:.1} GFLOP/s")));
        facts.extend(series.share_of_peak(seconds).map(|share| format!("{} of peak", percent(share))));
        facts.extend(series.bandwidth(seconds).map(|bandwidth| format!("{bandwidth:.1} GB/s")));
        facts.extend(series.default_time().map(|default| format!("{:.2} × default", default / seconds)));
        lines.extend((!facts.is_empty()).then(|| format!("  {}", facts.join(", "))));
    }
    lines.push(format!(
        "  {} on {}, tilewright {}",
        day(provenance.time),
        provenance.cpu,
        provenance.version
    ));
    lines.push(format!("  {}", record.target));
    lines.push(format!("  program {:016x}", record.program));
    lines.extend(provenance.predicted.map(|score| format!("  predicted score {score:.3}")));
    lines.extend(provenance.rules.as_ref().map(|rules| format!("  rules: {}", rules.join(", "))));
    lines.join("\n") + "\n"
}

fn compiled(code: &Code, options: &Show) -> String {
    let mut text = String::new();
    if options.lowered {
        if let Some(prologue) = &code.prologue {
            text += &format!("\ncomputed once for each constant tensor:\n{prologue}");
        }
        text += &format!("\ncompiled program:\n{}", code.flat);
    }
    if options.assembly {
        text += &format!("\nmachine code, {} bytes:\n{}", code.code_bytes, code.disassembly);
    }
    text
}
