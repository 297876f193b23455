//! A model in a folder: its file, the records of its kernels, and a manifest that names both.
//!
//! | file | holds |
//! |---|---|
//! | `manifest.json` | the version of this form, the names of the other two, buckets and accuracy |
//! | `model.onnx` | the model, with the files that its tensors lie in beside it |
//! | `records` | tuning records; those of other programs or machines do not count |

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use tilewright_graph::onnx;

use crate::buckets::Bucket;
use crate::error::Error;
use crate::model::Model;

const MANIFEST: &str = "manifest.json";

const MODEL: &str = "model.onnx";

const RECORDS: &str = "records";

/// The version of the manifest that this crate writes, and the latest that it reads.
const VERSION: u32 = 1;

/// Which files make up a model.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    version: u32,
    /// The name of the model's file.
    model: String,
    /// The name of the directory or file of records, if there is one.
    records: Option<String>,
    /// The sizes that the model is tuned for, by the names of extents.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    buckets: BTreeMap<String, Vec<usize>>,
    /// How exactly products are formed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    accuracy: Option<f64>,
}

/// Copies a model and the files that its tensors lie in to a folder, and writes a manifest, which names buckets and [the accuracy](Model::with_accuracy), too. Gives
/// the directory in the folder that records belong into, which does not exist yet.
///
/// # Errors
/// When the model cannot be loaded, a bucket or the accuracy does not suit it, one of its files is missing or lies outside of its folder, or the folder holds anything
/// but a model that was packed before. The folder is unchanged then.
pub fn pack(
    model: &Path,
    buckets: &[Bucket],
    accuracy: Option<f64>,
    folder: &Path,
) -> Result<PathBuf, Error> {
    let fail = |path: &Path, reason: String| Error::Folder { path: path.to_owned(), reason };
    let io = |path: &Path| {
        let path = path.to_owned();
        move |error: std::io::Error| fail(&path, error.to_string())
    };
    let files = onnx::Model::read(model)?.files()?;
    let is_ours = |relative: &Path| {
        relative == Path::new(MANIFEST) || relative == Path::new(MODEL) || relative.starts_with(RECORDS)
    };
    if let Some((relative, _)) = files.iter().find(|(relative, _)| is_ours(relative)) {
        let reason = format!("the model names `{}` for its tensors; rename it", relative.display());
        return Err(fail(model, reason));
    }
    drop(tuned_for(Model::load_file(model)?, buckets, accuracy)?);
    clear(folder)?;
    fs::create_dir_all(folder).map_err(io(folder))?;
    for (relative, path) in files {
        let target = folder.join(&relative);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(io(parent))?;
        }
        fs::copy(&path, &target).map_err(io(&target))?;
    }
    fs::copy(model, folder.join(MODEL)).map_err(io(&folder.join(MODEL)))?;
    let manifest = Manifest {
        version: VERSION,
        model: MODEL.to_owned(),
        records: Some(RECORDS.to_owned()),
        buckets: buckets.iter().map(|bucket| (bucket.name.clone(), bucket.bounds.clone())).collect(),
        accuracy,
    };
    let text = serde_json::to_string_pretty(&manifest).expect("a manifest has no keys that are no text");
    fs::write(folder.join(MANIFEST), text + "\n").map_err(io(&folder.join(MANIFEST)))?;
    Ok(folder.join(RECORDS))
}

/// A model with the buckets and the accuracy that its records are for.
fn tuned_for(model: Model, buckets: &[Bucket], accuracy: Option<f64>) -> Result<Model, Error> {
    let model = model.with_buckets(buckets)?;
    match accuracy {
        Some(relative) => model.with_accuracy(relative),
        None => Ok(model),
    }
}

/// Removes the manifest and the records of a model that was packed into a folder before.
fn clear(folder: &Path) -> Result<(), Error> {
    let Ok(mut entries) = fs::read_dir(folder) else { return Ok(()) };
    if entries.next().is_none() {
        return Ok(());
    }
    let fail = |reason: &str| Error::Folder { path: folder.to_owned(), reason: reason.to_owned() };
    read(folder).map_err(|_| fail("it holds other files than a packed model; name a folder of its own"))?;
    let remove = |path: &Path| if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    for name in [MANIFEST, RECORDS] {
        let path = folder.join(name);
        if path.exists() {
            remove(&path).map_err(|error| fail(&error.to_string()))?;
        }
    }
    Ok(())
}

fn read(folder: &Path) -> Result<Manifest, Error> {
    let fail = |reason: String| Error::Folder { path: folder.to_owned(), reason };
    let text = fs::read_to_string(folder.join(MANIFEST));
    let text = text.map_err(|error| {
        fail(format!("its {MANIFEST} cannot be read: {error}; `tilewright model pack` makes such folders"))
    })?;
    let manifest: Manifest =
        serde_json::from_str(&text).map_err(|error| fail(format!("its {MANIFEST} is malformed: {error}")))?;
    if manifest.version > VERSION {
        let version = manifest.version;
        return Err(fail(format!("its {MANIFEST} has version {version}, this program reads {VERSION}")));
    }
    for name in [Some(&manifest.model), manifest.records.as_ref()].into_iter().flatten() {
        let mut parts = Path::new(name).components();
        if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
            return Err(fail(format!(
                "its {MANIFEST} names `{name}`, which is not the name of a file in it"
            )));
        }
    }
    Ok(manifest)
}

/// Loads the model of a folder, and uses its records from now on. Records that cannot be read are left out with a warning.
pub(crate) fn load(folder: &Path) -> Result<Model, Error> {
    let manifest = read(folder)?;
    let buckets = manifest.buckets.into_iter().map(|(name, bounds)| Bucket { name, bounds });
    let buckets: Vec<Bucket> = buckets.collect();
    let model = tuned_for(Model::load_file(&folder.join(&manifest.model))?, &buckets, manifest.accuracy)?;
    let records = manifest.records.map(|records| folder.join(records));
    if let Some(records) = records.filter(|records| records.exists()) {
        match tilewright_runtime::records::use_records(&records) {
            Ok(problems) => problems.iter().for_each(|problem| {
                tracing::warn!(%problem, "a record of the model is skipped");
            }),
            Err(error) => tracing::warn!(%error, "the records of the model are not used"),
        }
    }
    Ok(model)
}
