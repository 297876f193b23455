//! `tilewright merge` and `tilewright prune`: keeping records.

use std::path::Path;

use tilewright::search::records::{Database, Merged};

use crate::arguments::{Merge, Prune};
use crate::records::open;
use crate::words::count;
use crate::{Failure, Outcome};

pub(crate) fn merge(options: &Merge) -> Outcome {
    // All sources are read before anything is written.
    let inputs: Vec<Database> = options.inputs.iter().map(|path| open(path)).collect::<Result<_, _>>()?;
    let output = &options.output;
    let mut merged = match output.exists() {
        true => open(output)?,
        false => Database::open(output).map_err(Failure::new)?,
    };
    let mut all = Database::in_memory();
    for input in &inputs {
        all.merge(input).map_err(Failure::new)?;
    }
    let added = merged.merge(&all).map_err(Failure::new)?;
    merged.sync().map_err(Failure::new)?;
    Ok(format!("added {} to `{}`, which has {}\n", words(&added), output.display(), total(output)?))
}

pub(crate) fn prune(options: &Prune) -> Outcome {
    let path = &options.path;
    let mut database = open(path)?;
    let dropped = database.prune(options.keep as usize).map_err(Failure::new)?;
    Ok(format!("dropped {} of `{}`, which has {}\n", count(dropped, "record"), path.display(), total(path)?))
}

/// The number of records.
fn total(path: &Path) -> Result<String, Failure> {
    let database = Database::open(path).map_err(Failure::new)?;
    Ok(count(database.records().len(), "record"))
}

/// `2 records, 1 program`: records are always counted, the others where there are some.
fn words(merged: &Merged) -> String {
    let others = [
        (merged.programs, "program", ""),
        (merged.runs, "tuning run", ""),
        (merged.later, "line", " of a later version"),
    ];
    let others = others.into_iter().filter(|(number, ..)| *number > 0);
    let others = others.map(|(number, what, rest)| count(number, what) + rest);
    std::iter::once(count(merged.records, "record")).chain(others).collect::<Vec<_>>().join(", ")
}
