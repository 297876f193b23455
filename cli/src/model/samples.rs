//! Calibration data: inputs of a model in NumPy's files.
//!
//! A `.npz` file is a ZIP archive with a `.npy` file for each array, as `numpy.savez` and `numpy.savez_compressed` write it.

use std::fmt::Display;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use tilewright_quantiser::Sample;
use tilewright_session::npy;
use zip::ZipArchive;

use crate::Failure;

/// The samples of some paths, each with its file; those of a folder in the order of the names of its files. `inputs` are the names of the
/// model's inputs: an array without a name belongs to the only one.
pub(super) fn read(paths: &[PathBuf], inputs: &[String]) -> Result<Vec<(PathBuf, Sample)>, Failure> {
    let mut samples = Vec::new();
    for path in paths {
        let files = if path.is_dir() { files_of(path)? } else { vec![path.clone()] };
        for file in files {
            let sample = sample(&file, inputs).map_err(|reason| about(&file, reason))?;
            samples.push((file, sample));
        }
    }
    Ok(samples)
}

fn about(path: &Path, reason: impl Display) -> Failure {
    Failure::new(format!("{}: {reason}", path.display()))
}

/// How a file holds a sample.
#[derive(Clone, Copy)]
enum Kind {
    /// One array.
    Array,
    /// Arrays with names.
    Archive,
}

impl Kind {
    fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "npy" => Some(Kind::Array),
            "npz" => Some(Kind::Archive),
            _ => None,
        }
    }
}

/// The files of a folder that hold samples.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = folder.read_dir().map_err(|error| about(folder, error))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>();
    let mut files = paths.map_err(|error| about(folder, error))?;
    files.retain(|file| Kind::of(file).is_some());
    files.sort();
    if files.is_empty() {
        return Err(about(folder, "it holds no `.npz` and no `.npy` files; write one with numpy.savez"));
    }
    Ok(files)
}

/// The sample in a file, whose arrays have to be inputs of the model.
fn sample(path: &Path, inputs: &[String]) -> Result<Sample, String> {
    let sample = match Kind::of(path) {
        Some(Kind::Archive) => {
            let file = File::open(path).map_err(|error| error.to_string())?;
            archive(BufReader::new(file))?
        }
        Some(Kind::Array) => {
            let [input] = inputs else {
                let count = inputs.len();
                return Err(format!(
                    "the model has {count} inputs; give `.npz` files with an array for each"
                ));
            };
            // The error of a file names it.
            let tensor = npy::read(path).map_err(|error| match error {
                npy::NpyError::File { source, .. } => source.to_string(),
                other => other.to_string(),
            })?;
            vec![(input.clone(), tensor)]
        }
        None => return Err("calibration data are `.npz` and `.npy` files, and folders of them".to_owned()),
    };
    match sample.iter().find(|(name, _)| !inputs.contains(name)) {
        None => Ok(sample),
        Some((name, _)) => {
            let known: Vec<String> = inputs.iter().map(|input| format!("`{input}`")).collect();
            Err(format!("the model has no input `{name}`; its inputs are {}", known.join(", ")))
        }
    }
}

/// The arrays of an archive with their names.
fn archive(file: impl Read + Seek) -> Result<Sample, String> {
    let unreadable = |error| format!("not an archive that can be read: {error}");
    let mut archive = ZipArchive::new(file).map_err(unreadable)?;
    let mut arrays = Sample::new();
    for place in 0..archive.len() {
        let mut entry = archive.by_index(place).map_err(unreadable)?;
        let name = entry.name().map_err(unreadable)?.into_owned();
        let size = entry.size();
        let mut bytes = Vec::new();
        // The checksum is compared at the end of the data, which more bytes than the archive declares would hide.
        entry
            .by_ref()
            .take(size.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|error| format!("array `{name}`: {error}"))?;
        if bytes.len() as u64 != size {
            return Err(format!(
                "array `{name}`: it has other than the {size} bytes that the archive declares"
            ));
        }
        let tensor = npy::decode(&bytes).map_err(|error| format!("array `{name}`: {error}"))?;
        arrays.push((name.strip_suffix(".npy").unwrap_or(&name).to_owned(), tensor));
    }
    Ok(arrays)
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use tilewright_session::HostTensor;
    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipWriter};

    use super::*;

    /// An archive of arrays.
    fn packed(arrays: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in arrays {
            writer.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn tensor() -> HostTensor {
        HostTensor::new(&[3, 4], (0..12).map(|value| value as f32).collect()).unwrap()
    }

    #[test]
    fn archives_are_read_whether_compressed_or_not() {
        let (x, y) = (tensor(), HostTensor::vector(vec![1i64, -2]));
        let bytes = [npy::encode(&x).unwrap(), npy::encode(&y).unwrap()];
        for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
            let packed = packed(&[("x.npy", &bytes[0]), ("deep/y.npy", &bytes[1])], method);
            let expected = [("x".to_owned(), x.clone()), ("deep/y".to_owned(), y.clone())];
            assert_eq!(archive(Cursor::new(&packed)).unwrap(), expected);
            for length in 0..packed.len() {
                assert!(archive(Cursor::new(&packed[..length])).is_err(), "cut to {length} bytes");
            }
        }
    }

    #[test]
    fn damaged_data_are_refused_by_name() {
        let bytes = npy::encode(&tensor()).unwrap();
        let mut packed = packed(&[("weights.npy", &bytes)], CompressionMethod::Stored);
        let place = packed.windows(4).position(|window| window == 11f32.to_le_bytes()).unwrap();
        packed[place] ^= 1;
        let message = archive(Cursor::new(&packed)).unwrap_err();
        assert!(message.contains("`weights.npy`") && message.contains("checksum"), "{message}");
    }
}
