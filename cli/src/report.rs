//! `tilewright report`.

use tilewright::tuning::report::{Peak, Series, write_html};

use crate::arguments::Report;
use crate::records::open_all;
use crate::words::count;
use crate::{Failure, Outcome};

pub(crate) fn run(options: &Report) -> Outcome {
    let series = Series::of_records(&open_all(&options.paths)?, Peak::Recorded);
    if series.is_empty() {
        return Err(Failure("there are no records to report".to_owned()));
    }
    write_html(&options.output, &series).map_err(Failure::new)?;
    Ok(format!("`{}` shows {}\n", options.output.display(), count(series.len(), "tuned kernel")))
}
