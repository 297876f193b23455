//! Tensor data in files beside a model.

use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::onnx::error::OnnxError;
use crate::onnx::schema::TensorProto;
use crate::onnx::thin;
use crate::tensor::region::{Region, TensorFile};

/// Reads tensor data from files in the folder of a model, and from nowhere else.
#[derive(Clone, Debug)]
pub struct ExternalData {
    /// The folder with all links resolved; none for a model that came without one.
    folder: Option<PathBuf>,
    /// The model's own file, in which the elements of large tensors lie.
    own: Option<PathBuf>,
    /// The files that have been read.
    open: Arc<Mutex<FxHashMap<PathBuf, Arc<TensorFile>>>>,
}

impl ExternalData {
    /// Data beside no model: every tensor that lies elsewhere is refused.
    pub fn none() -> Self {
        ExternalData { folder: None, own: None, open: Arc::default() }
    }

    /// Data in the folder of the model file.
    ///
    /// # Errors
    /// When the folder cannot be resolved.
    pub fn beside(model: &Path) -> Result<Self, OnnxError> {
        let folder = match model.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let resolved = folder.canonicalize();
        let folder = resolved.map_err(|source| OnnxError::File { path: folder.to_owned(), source })?;
        Ok(ExternalData { folder: Some(folder), own: Some(model.to_owned()), open: Arc::default() })
    }

    /// The place of a tensor whose data lie in a file.
    ///
    /// # Errors
    /// When the file is outside the folder, also by way of a link, or too short for the tensor.
    pub(crate) fn find(&self, proto: &TensorProto) -> Result<Region, OnnxError> {
        let field = |key: &str| {
            proto.external_data.iter().find(|entry| entry.key == key).map(|entry| &entry.value[..])
        };
        let location = field("location").unwrap_or_default();
        let refuse = |reason: String| OnnxError::ExternalData {
            tensor: proto.name.clone(),
            location: location.to_owned(),
            reason,
        };
        let number = |key: &str| match field(key) {
            None => Ok(None),
            Some(text) => {
                text.parse::<u64>().map(Some).map_err(|_| refuse(format!("`{key}` is no number: {text}")))
            }
        };
        let (offset, length) = (number("offset")?.unwrap_or(0), number("length")?);
        let path = self.resolve(location).map_err(refuse)?;
        self.region(&path, offset, length).map_err(|error| refuse(error.to_string()))
    }

    /// The place of a tensor whose data lie in the model's own file.
    ///
    /// # Errors
    /// When the file cannot be read there.
    pub(crate) fn find_own(&self, proto: &TensorProto) -> Result<Region, OnnxError> {
        let refuse = |reason: String| OnnxError::Tensor { tensor: proto.name.clone(), reason };
        let number = |key: &str| {
            let entry = proto.external_data.iter().find(|entry| entry.key == key);
            entry.and_then(|entry| entry.value.parse::<u64>().ok())
        };
        match (&self.own, number(thin::OFFSET), number(thin::LENGTH)) {
            (Some(own), Some(offset), Some(length)) => {
                self.region(own, offset, Some(length)).map_err(|error| refuse(error.to_string()))
            }
            _ => Err(refuse(format!("data location {} is unknown", proto.data_location))),
        }
    }

    /// Part of a file, which stays open.
    fn region(&self, path: &Path, offset: u64, length: Option<u64>) -> std::io::Result<Region> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match open.get(path) {
            Some(file) => Arc::clone(file),
            None => {
                let file = Arc::new(TensorFile::open(path)?);
                open.insert(path.to_owned(), Arc::clone(&file));
                file
            }
        };
        Region::of(&file, offset, length)
    }

    /// The file that a location names, inside the folder.
    pub(super) fn resolve(&self, location: &str) -> Result<PathBuf, String> {
        let folder = self
            .folder
            .as_ref()
            .ok_or("the model was not read from a folder, so that there is none to look in")?;
        let relative = Path::new(location);
        let plain =
            relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if location.is_empty() || !plain {
            return Err("it must be a path inside the model's folder".to_owned());
        }
        let path = folder.join(relative).canonicalize().map_err(|error| error.to_string())?;
        if !path.starts_with(folder) {
            return Err("it is a link to a place outside the model's folder".to_owned());
        }
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use tilewright_core::tensor::Source;

    use super::*;
    use crate::onnx::schema::StringStringEntryProto;

    fn tensor(location: &str, offset: u64, length: u64) -> TensorProto {
        let entry = |key: &str, value: String| StringStringEntryProto { key: key.to_owned(), value };
        TensorProto {
            name: "w".to_owned(),
            data_location: 1,
            external_data: vec![
                entry("location", location.to_owned()),
                entry("offset", offset.to_string()),
                entry("length", length.to_string()),
            ],
            ..TensorProto::default()
        }
    }

    #[test]
    fn only_files_in_the_folder_are_read() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("model");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(outer.path().join("secret"), b"outside").unwrap();
        std::fs::write(folder.join("weights"), b"0123456789").unwrap();
        let external = ExternalData::beside(&folder.join("model.onnx")).unwrap();
        let read = |location, offset, length| {
            let region = external.find(&tensor(location, offset, length)).unwrap();
            let mut bytes = vec![0; region.len()];
            region.read(&mut bytes).unwrap();
            bytes
        };
        assert_eq!(read("weights", 2, 3), b"234");
        assert_eq!(read("./weights", 10, 0), b"");
        for location in ["../secret", "", "/etc/hostname", "sub/../../secret"] {
            let error = external.find(&tensor(location, 0, 1)).unwrap_err().to_string();
            assert!(error.contains("inside the model's folder"), "{location}: {error}");
        }
        let error = external.find(&tensor("weights", 8, 3)).unwrap_err().to_string();
        assert_eq!(
            error,
            "tensor `w` names the file `weights`: the file has 10 bytes, the tensor needs 3 from byte 8 on"
        );
        assert!(ExternalData::none().find(&tensor("weights", 0, 1)).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn links_that_lead_outside_are_refused() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("model");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(outer.path().join("secret"), b"outside").unwrap();
        std::os::unix::fs::symlink(outer.path().join("secret"), folder.join("weights")).unwrap();
        let external = ExternalData::beside(&folder.join("model.onnx")).unwrap();
        let error = external.find(&tensor("weights", 0, 1)).unwrap_err().to_string();
        assert!(error.contains("a link to a place outside"), "{error}");
    }
}
