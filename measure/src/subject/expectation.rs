//! Arguments and expected results: computed once, and kept in a file for the next measuring process of a run.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tilewright_core::device::Device;
use tilewright_core::dtype::DType;
use tilewright_core::program::Program;
use tilewright_core::target::RunOptions;
use tilewright_core::tensor::AnyTensor;
use tilewright_runtime::Error;

use super::Reference;
use super::exact::exact;
use super::inputs::{Inputs, Sign};
use super::tolerance::Expected;

/// Arguments, and the content of each tensor after a run; `None` for tensors that it only reads.
pub(super) type Expectation = (Inputs, Vec<Option<Expected>>);

/// The kind of the expected results of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The definition's own results.
    Reference,
    /// Results computed in `f64`.
    Exact,
    /// Results computed in `f64`, with the magnitudes of terms.
    Judged,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Reference, Kind::Exact, Kind::Judged];

    fn of(expected: &[Option<Expected>]) -> Self {
        let floats = || expected.iter().flatten().filter(|expected| expected.values.dtype().is_float());
        match (floats().any(|expected| expected.magnitudes.is_some()), floats().next()) {
            (true, _) => Kind::Judged,
            (false, Some(first)) if first.values.dtype() == DType::F64 => Kind::Exact,
            _ => Kind::Reference,
        }
    }
}

/// Takes the expected results from the cache, or computes them and puts them there.
pub(super) fn expectation<E: From<Error>>(
    program: &Program,
    seed: u64,
    cache: Option<&Path>,
    device: &Arc<dyn Device>,
    options: RunOptions,
    reference: &Reference<'_, E>,
) -> Result<Expectation, E> {
    if let Some(known) = cache.and_then(|path| read_cached(program, seed, path)) {
        return Ok(known);
    }
    let mut sign = Sign::Any;
    let (inputs, results) = loop {
        let inputs = Inputs::random(program, seed, sign).map_err(Error::from)?;
        let results = reference(program, &inputs)?;
        // Where the definition has no value, as for the logarithm of a negative number, a comparison would
        // check nothing.
        let has_nan = results.iter().flatten().any(contains_nan);
        if !has_nan || sign == Sign::Positive {
            break (inputs, results);
        }
        sign = Sign::Positive;
    };
    let expected = exact(program, &inputs, &results, device, options)
        .unwrap_or_else(|| results.into_iter().map(|tensor| tensor.map(Expected::from)).collect());
    if let Some(path) = cache {
        write_cached(path, sign, &expected);
    }
    Ok((inputs, expected))
}

fn contains_nan(tensor: &AnyTensor) -> bool {
    tensor.dtype().is_float() && tensor.to_f64_vec().into_iter().any(f64::is_nan)
}

/// A stamp of the program that computed results: a program that was built anew computes them anew.
fn build_stamp() -> [u8; 8] {
    let modified = std::env::current_exe().and_then(|path| path.metadata()?.modified());
    let since = modified.ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    since.map_or(0, |duration| duration.as_nanos() as u64).to_le_bytes()
}

/// Expected results are stored behind a stamp of the program, one byte for the inputs' signs and one for their kind, as the bytes of
/// each tensor that is written and of its magnitudes.
fn write_cached(path: &Path, sign: Sign, expected: &[Option<Expected>]) {
    let mut content = build_stamp().to_vec();
    content.push(u8::from(sign == Sign::Positive));
    content.push(Kind::of(expected) as u8);
    for expected in expected.iter().flatten() {
        content.extend_from_slice(expected.values.bytes());
        expected.magnitudes.iter().for_each(|magnitudes| content.extend_from_slice(magnitudes.bytes()));
    }
    // Renaming makes the file appear whole or not at all. A failure to store it costs time and nothing else.
    let unfinished = path.with_extension("unfinished");
    let written = fs::write(&unfinished, content).and_then(|()| fs::rename(&unfinished, path));
    if let Err(error) = written {
        tracing::debug!(%error, path = %path.display(), "expected results are not kept");
    }
}

fn read_cached(program: &Program, seed: u64, path: &Path) -> Option<Expectation> {
    let content = fs::read(path).ok()?;
    let (sign, rest) = content.strip_prefix(&build_stamp())?.split_first()?;
    let (kind, mut rest) = rest.split_first()?;
    let sign = if *sign == 1 { Sign::Positive } else { Sign::Any };
    let kind = Kind::ALL.into_iter().find(|known| *known as u8 == *kind)?;
    let inputs = Inputs::random(program, seed, sign).ok()?;
    let mut take = |dtype: DType, shape: &[usize]| {
        let mut tensor = AnyTensor::zeros(dtype, shape).ok()?;
        let (own, others) = rest.split_at_checked(tensor.bytes().len())?;
        tensor.bytes_mut().copy_from_slice(own);
        rest = others;
        Some(tensor)
    };
    let mut expected = Vec::new();
    for ((_, access), tensor) in program.buffer_params().zip(&inputs.tensors) {
        if !access.is_written() {
            expected.push(None);
            continue;
        }
        let (own, shape) = (tensor.dtype(), tensor.shape());
        let is_wide = own.is_float() && kind != Kind::Reference;
        let values = take(if is_wide { DType::F64 } else { own }, shape)?;
        let has_magnitudes = own.is_float() && kind == Kind::Judged;
        let magnitudes = if has_magnitudes { Some(take(DType::F64, shape)?) } else { None };
        expected.push(Some(Expected { values, magnitudes }));
    }
    rest.is_empty().then_some((inputs, expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again() {
        let text = "kernel k(in x: f32[4], out y: f32[4], out n: i32[4]) {
  for i in 0..4 {
    block y(vi: spatial 4 = i) {
      y[vi] = x[vi]
    }
  }
  for i1 in 0..4 {
    block n(vi1: spatial 4 = i1) {
      n[vi1] = 1
    }
  }
}
";
        let program: Program = text.parse().expect("the text is a program");
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("kept.expected");
        let tensor = |dtype| AnyTensor::from_f64s(dtype, &[1.0, -2.0, 3.0, 4.0], &[4]).expect("it fits");
        let expected = |values: DType, magnitudes: Option<DType>| {
            let y = Expected { values: tensor(values), magnitudes: magnitudes.map(tensor) };
            vec![None, Some(y), Some(Expected::from(tensor(DType::I32)))]
        };
        for written in
            [expected(DType::F32, None), expected(DType::F64, None), expected(DType::F64, Some(DType::F64))]
        {
            write_cached(&path, Sign::Any, &written);
            let (_, read) = read_cached(&program, 1, &path).expect("it was written just now");
            assert_eq!(read, written);
        }
        let whole = fs::read(&path).expect("a file");
        fs::write(&path, &whole[..whole.len() - 1]).expect("a disk");
        assert!(read_cached(&program, 1, &path).is_none(), "it is cut off");
    }
}
