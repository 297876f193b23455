//! The records that calls look up: those embedded by `ship!`, those that `TILEWRIGHT_RECORDS`
//! names, and those added at run time.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use miniz_oxide::inflate::decompress_to_vec;
use tilewright_search::records::{Database, Problem, Record};

use crate::error::Error;
use crate::settings::{RECORDS_VARIABLE, start_generation};

/// Records embedded in the program, as `ship!` submits them.
#[derive(Clone, Copy, Debug)]
pub struct ShippedRecords {
    /// The directory or file that they are from.
    pub name: &'static str,
    /// Their lines, deflated.
    pub compressed: &'static [u8],
}

inventory::collect!(ShippedRecords);

/// `None` until the first look-up.
static RECORDS: RwLock<Option<Arc<Database>>> = RwLock::new(None);

/// The records in use.
pub fn current() -> Result<Arc<Database>, Error> {
    if let Some(database) = &*RECORDS.read().unwrap_or_else(PoisonError::into_inner) {
        return Ok(Arc::clone(database));
    }
    let mut slot = RECORDS.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(database) = &*slot {
        return Ok(Arc::clone(database));
    }
    let database = Arc::new(initial()?);
    *slot = Some(Arc::clone(&database));
    Ok(database)
}

/// Shipped records, then those that the environment names.
fn initial() -> Result<Database, Error> {
    let mut database = Database::in_memory();
    // Linking gives no order; that of the names is the same everywhere.
    let mut shipped: Vec<_> = inventory::iter::<ShippedRecords>().collect();
    shipped.sort_by_key(|shipped| (shipped.name, shipped.compressed));
    for ShippedRecords { name, compressed } in shipped {
        let text = decompress_to_vec(compressed).expect("`ship!` compresses it");
        database.add_text(name, &text);
    }
    if let Some(path) = std::env::var_os(RECORDS_VARIABLE).filter(|path| !path.is_empty()) {
        if !Path::new(&path).exists() {
            let value = path.to_string_lossy().into_owned();
            let problem = "there is no such directory or file; make it, or unset the variable".to_owned();
            return Err(Error::Environment { variable: RECORDS_VARIABLE, value, problem });
        }
        database.add_all(Database::open(path)?);
    }
    for problem in database.problems() {
        tracing::warn!(%problem, "tuning record skipped");
    }
    Ok(database)
}

/// Uses the records at a path from now on, besides those already in use: a directory, or a file whose name ends in
/// `.jsonl`. Returns the lines that were skipped.
///
/// # Errors
/// [`Error::Records`] when the directory cannot be listed.
pub fn use_records(path: impl AsRef<Path>) -> Result<Vec<Problem>, Error> {
    let added = Database::open(path)?;
    let problems = added.problems().to_vec();
    change(|database| database.add_all(added))?;
    Ok(problems)
}

/// Uses one more record from now on. Nothing is written.
///
/// # Errors
/// [`Error::Environment`] when `TILEWRIGHT_RECORDS` names something that is not there, [`Error::Records`] when it cannot be listed.
pub fn use_record(record: Record) -> Result<(), Error> {
    change(|database| database.add(record))
}

fn change(edit: impl FnOnce(&mut Database)) -> Result<(), Error> {
    current()?;
    let mut slot = RECORDS.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(database) = &mut *slot {
        edit(Arc::make_mut(database));
    }
    drop(slot);
    start_generation();
    Ok(())
}
