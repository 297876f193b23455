//! A model in a folder, with the records of its kernels.

use std::path::Path;

use tilewright::search::records::Database;
use tilewright_session::pack;

use crate::arguments::ModelPack;
use crate::records::open;
use crate::words::count;
use crate::{Failure, Outcome};

pub(super) fn run(options: &ModelPack) -> Outcome {
    let given: Vec<Database> = options.records.iter().map(|path| open(path)).collect::<Result<_, _>>()?;
    let folder = &options.output;
    let place = pack(&options.model, &options.buckets, options.accuracy, folder).map_err(Failure::new)?;
    let kept = if given.is_empty() { 0 } else { keep(&given, &place)? };
    Ok(format!(
        "packed `{}` into `{}`, with {}\n",
        options.model.display(),
        folder.display(),
        count(kept, "record")
    ))
}

/// Writes the best record of each kernel, shape and machine; how many these are.
fn keep(given: &[Database], place: &Path) -> Result<usize, Failure> {
    let mut all = Database::in_memory();
    for database in given {
        all.merge(database).map_err(Failure::new)?;
    }
    std::fs::create_dir_all(place).map_err(|error| Failure::new(format!("{}: {error}", place.display())))?;
    let mut kept = Database::open(place).map_err(Failure::new)?;
    kept.merge(&all).map_err(Failure::new)?;
    kept.sync().map_err(Failure::new)?;
    kept.prune(1).map_err(Failure::new)?;
    Ok(Database::open(place).map_err(Failure::new)?.records().len())
}
