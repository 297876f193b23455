//! NumPy's files of one tensor (`.npy`): reading and writing, versions 1 to 3, in row-major order and little endian.
//!
//! The format is that of NumPy's "NEP 1 — A Simple File Format for NumPy Arrays".

use std::io;
use std::path::{Path, PathBuf};

use tilewright_graph::tensor::{ElementType, HostTensor};

/// Why a file of a tensor cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpyError {
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The bytes are no such file, or one of a kind that is not read.
    #[error("not a NumPy file that can be read: {0}")]
    Format(String),
}

const MAGIC: &[u8] = b"\x93NUMPY";

/// Element types with their codes.
const CODES: [(&str, ElementType); 12] = [
    ("|b1", ElementType::Bool),
    ("|i1", ElementType::I8),
    ("|u1", ElementType::U8),
    ("<i2", ElementType::I16),
    ("<u2", ElementType::U16),
    ("<i4", ElementType::I32),
    ("<u4", ElementType::U32),
    ("<i8", ElementType::I64),
    ("<u8", ElementType::U64),
    ("<f2", ElementType::F16),
    ("<f4", ElementType::F32),
    ("<f8", ElementType::F64),
];

/// Reads a file.
///
/// # Errors
/// [`NpyError`], naming the file or what is wrong in it.
pub fn read(path: &Path) -> Result<HostTensor, NpyError> {
    let bytes = std::fs::read(path).map_err(|source| NpyError::File { path: path.to_owned(), source })?;
    decode(&bytes)
}

/// Writes a file.
///
/// # Errors
/// [`NpyError::File`] when it cannot be written, [`NpyError::Format`] for elements that such files do not hold.
pub fn write(path: &Path, tensor: &HostTensor) -> Result<(), NpyError> {
    let bytes = encode(tensor)?;
    std::fs::write(path, bytes).map_err(|source| NpyError::File { path: path.to_owned(), source })
}

/// The tensor in the bytes of a file.
///
/// # Errors
/// [`NpyError::Format`].
pub fn decode(bytes: &[u8]) -> Result<HostTensor, NpyError> {
    let format = |reason: &str| NpyError::Format(reason.to_owned());
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| format("it does not begin as one"))?;
    let (header, data) = match rest {
        [1, _, low, high, rest @ ..] => rest.split_at_checked(usize::from(u16::from_le_bytes([*low, *high]))),
        [2 | 3, _, a, b, c, d, rest @ ..] => {
            rest.split_at_checked(u32::from_le_bytes([*a, *b, *c, *d]) as usize)
        }
        _ => None,
    }
    .ok_or_else(|| format("the header is cut short or of an unknown version"))?;
    let header = std::str::from_utf8(header).map_err(|_| format("the header is no text"))?;
    let value = |key: &str| {
        let (_, behind) = header.split_once(&format!("'{key}':"))?;
        Some(behind.trim_start())
    };
    let code = value("descr").and_then(|text| text.strip_prefix('\'')?.split('\'').next());
    let code = code.ok_or_else(|| format("the header names no simple element type"))?;
    // One byte has no order, whatever a file says.
    let same = |own: &str| own == code || (own.starts_with('|') && own[1..] == code[1.min(code.len())..]);
    let element = CODES.iter().find(|(own, _)| same(own)).map(|(_, element)| *element);
    let element = element.ok_or_else(|| NpyError::Format(format!("elements of type {code} are not read")))?;
    if !value("fortran_order").is_some_and(|text| text.starts_with("False")) {
        return Err(format("only row-major order is read"));
    }
    let shape = value("shape").and_then(|text| text.strip_prefix('(')?.split(')').next());
    let shape = shape.ok_or_else(|| format("the header has no shape"))?;
    let extents = shape.split(',').map(str::trim).filter(|extent| !extent.is_empty());
    let shape: Result<Vec<usize>, _> = extents.map(str::parse).collect();
    let shape = shape.map_err(|_| format("the shape is no list of numbers"))?;
    let expected =
        shape.iter().try_fold(element.dtype().map_or(1, |dtype| dtype.bytes()), |bytes, &extent| {
            bytes.checked_mul(extent)
        });
    if expected != Some(data.len()) {
        return Err(format("there are not as many elements as the shape has"));
    }
    if element == ElementType::Bool && data.iter().any(|&byte| byte > 1) {
        return Err(format("a truth value is neither true nor false"));
    }
    HostTensor::from_bytes(element, &shape, data).map_err(|error| NpyError::Format(error.to_string()))
}

/// The bytes of a file with a tensor.
///
/// # Errors
/// [`NpyError::Format`] for elements that such files do not hold.
pub fn encode(tensor: &HostTensor) -> Result<Vec<u8>, NpyError> {
    let element = tensor.element();
    let code = CODES.iter().find(|(_, own)| *own == element).map(|(code, _)| code);
    let (Some(code), Some(data)) = (code, tensor.bytes()) else {
        return Err(NpyError::Format(format!("elements of type {element} are not written")));
    };
    let extents: String = tensor.shape().iter().map(|extent| format!("{extent}, ")).collect();
    let mut header = format!("{{'descr': '{code}', 'fortran_order': False, 'shape': ({extents}), }}");
    // The elements begin at a multiple of 64; before them is the end of a line.
    let begin = MAGIC.len() + 4;
    let padded = (begin + header.len() + 1).next_multiple_of(64) - begin;
    header.extend(std::iter::repeat_n(' ', padded - header.len() - 1));
    header.push('\n');
    let length =
        u16::try_from(header.len()).map_err(|_| NpyError::Format("the rank is too large".to_owned()))?;
    let mut bytes = Vec::with_capacity(begin + header.len() + data.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&[1, 0]);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(data);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_round_trip() {
        let tensors = [
            HostTensor::new(&[2, 3], vec![1f32, -2.0, 3.5, 0.0, f32::INFINITY, -0.0]).unwrap(),
            HostTensor::vector(vec![true, false]),
            HostTensor::scalar(7i64),
            HostTensor::new::<u8>(&[0, 4], vec![]).unwrap(),
        ];
        for tensor in tensors {
            let bytes = encode(&tensor).unwrap();
            assert_eq!(decode(&bytes).unwrap(), tensor);
            for length in 0..bytes.len() {
                assert!(decode(&bytes[..length]).is_err() || tensor.is_empty(), "cut to {length} bytes");
            }
        }
    }

    #[test]
    fn numpys_own_headers_are_read() {
        let mut bytes =
            b"\x93NUMPY\x01\x00\x3e\x00{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }    \n"
                .to_vec();
        bytes.extend([1, 0, 0, 0, 255, 255, 255, 255]);
        assert_eq!(decode(&bytes).unwrap(), HostTensor::vector(vec![1i32, -1]));
        let columns = String::from_utf8_lossy(&bytes).replace("False", "True ");
        assert!(decode(columns.as_bytes()).is_err());
    }
}
