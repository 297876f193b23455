//! `tilewright replay`.

use tilewright::tuning::replay::{self, Oracle};
use tilewright::tuning::report::duration;

use crate::arguments::Replay;
use crate::records::Wanted;
use crate::show::head;
use crate::words::percent;
use crate::{Failure, Outcome};

pub(crate) fn run(options: &Replay) -> Outcome {
    let found = Wanted::from(&options.which).find()?;
    let program = found.program(&options.which.path)?;
    let record = &found.record;
    let failed = |error| Failure(format!("{} was not repeated: {error}", found.series.title()));
    let bound = replay::bind(program, &record.shape).map_err(failed)?;
    let context = replay::context(record.target.threads).map_err(failed)?;
    let missing = record.target.missing(&context.target);
    let mut text = head(&found);
    if !missing.is_empty() {
        let missing: Vec<&str> = missing.iter().map(String::as_str).collect();
        text += &format!("  this machine lacks {}: its code is another one here\n", missing.join(", "));
    }
    replay::schedule(&bound, &record.trace, &context).map_err(failed)?;
    let threads = record.target.threads as usize;
    let timed = replay::time(&bound, &record.trace, threads, options.seed).map_err(failed)?;
    let oracle = match timed.oracle {
        Oracle::Interpreter => "the unscheduled program, interpreted",
        _ => "the unscheduled program, compiled without a schedule (it is too large for the interpreter)",
    };
    text += &format!(
        "\nreplayed: the results are right, error {:.1e}\n  compared with {oracle}\n",
        timed.max_relative_error
    );
    let now = format!("{} ± {}", duration(timed.seconds), percent(timed.spread));
    text += &match record.median_ns().map(|ns| ns * 1e-9) {
        Some(recorded) => format!(
            "  recorded {}, now {now}: {:.2} × the recorded time\n",
            duration(recorded),
            timed.seconds / recorded
        ),
        None => format!("  recorded as failed, now {now}\n"),
    };
    Ok(text)
}
