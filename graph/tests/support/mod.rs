//! What tests with model files share.

use std::path::{Path, PathBuf};

use tilewright_graph::tensor::{ElementType, HostTensor};

/// The folder of fetched models, or `None`, said aloud, where they were not fetched.
pub(crate) fn models() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    let folder = root.join("target/models");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("SKIPPED: {} is missing; scripts/fetch-models.sh fetches it", folder.display());
    None
}

/// Compares tensors: numbers with tolerances, everything else exactly.
pub(crate) fn compare(
    expected: &HostTensor,
    found: &HostTensor,
    relative: f64,
    absolute: f64,
) -> Result<(), String> {
    if (expected.element(), expected.shape()) != (found.element(), found.shape()) {
        return Err(format!(
            "expected {}{:?}, found {}{:?}",
            expected.element(),
            expected.shape(),
            found.element(),
            found.shape()
        ));
    }
    if !expected.element().is_float() {
        return if expected == found {
            Ok(())
        } else {
            Err(format!("expected {expected:?}, found {found:?}"))
        };
    }
    let numbers = |tensor: &HostTensor| {
        let cast = tensor.cast(ElementType::F64).map_err(|error| error.to_string())?;
        cast.expect::<f64>().map(<[f64]>::to_vec).map_err(|error| error.to_string())
    };
    for (place, (expected, found)) in numbers(expected)?.into_iter().zip(numbers(found)?).enumerate() {
        let close = expected == found
            || (expected.is_nan() && found.is_nan())
            || (expected - found).abs() <= absolute + relative * expected.abs();
        if !close {
            return Err(format!("element {place}: expected {expected}, found {found}"));
        }
    }
    Ok(())
}
