//! Tensors of ONNX files as host tensors, and back.

use std::sync::Arc;

use half::{bf16, f16};
use tilewright_core::tensor::Source;

use crate::onnx::error::OnnxError;
use crate::onnx::external::ExternalData;
use crate::onnx::schema::{SparseTensorProto, TensorProto, data_type};
use crate::onnx::thin;
use crate::tensor::small::{F4E2M1, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0, I2, I4, Small, U2, U4};
use crate::tensor::{Buffer, Element, ElementType, HostTensor, TensorError, count, with_element};

/// The element type that a number of [`data_type`] stands for.
pub(crate) fn element_type(number: i32) -> Option<ElementType> {
    Some(match number {
        data_type::FLOAT => ElementType::F32,
        data_type::UINT8 => ElementType::U8,
        data_type::INT8 => ElementType::I8,
        data_type::UINT16 => ElementType::U16,
        data_type::INT16 => ElementType::I16,
        data_type::INT32 => ElementType::I32,
        data_type::INT64 => ElementType::I64,
        data_type::STRING => ElementType::String,
        data_type::BOOL => ElementType::Bool,
        data_type::FLOAT16 => ElementType::F16,
        data_type::DOUBLE => ElementType::F64,
        data_type::UINT32 => ElementType::U32,
        data_type::UINT64 => ElementType::U64,
        data_type::BFLOAT16 => ElementType::BF16,
        data_type::FLOAT8E4M3FN => ElementType::F8E4M3FN,
        data_type::FLOAT8E4M3FNUZ => ElementType::F8E4M3FNUZ,
        data_type::FLOAT8E5M2 => ElementType::F8E5M2,
        data_type::FLOAT8E5M2FNUZ => ElementType::F8E5M2FNUZ,
        data_type::UINT4 => ElementType::U4,
        data_type::INT4 => ElementType::I4,
        data_type::FLOAT4E2M1 => ElementType::F4E2M1,
        data_type::FLOAT8E8M0 => ElementType::F8E8M0,
        data_type::UINT2 => ElementType::U2,
        data_type::INT2 => ElementType::I2,
        _ => return None,
    })
}

/// The number of [`data_type`] that stands for an element type.
pub(crate) fn element_number(element: ElementType) -> i32 {
    let numbers = 1..data_type::NAMES.len() as i32;
    numbers
        .into_iter()
        .find(|&number| element_type(number) == Some(element))
        .expect("every element type has a number")
}

/// ONNX's name of an element type's number, for messages.
pub(crate) fn element_type_name(number: i32) -> String {
    let name = usize::try_from(number).ok().and_then(|number| data_type::NAMES.get(number));
    name.map_or_else(|| format!("number {number}"), |name| (*name).to_owned())
}

/// Reads a tensor. `external` gives the bytes of tensors that lie in files beside the model.
///
/// # Errors
/// When the element type is not supported, or the number of elements does not fit the shape. No more memory is taken
/// than the data take in the file: a shape that promises more is refused before.
pub(crate) fn read_tensor(proto: &TensorProto, external: &ExternalData) -> Result<HostTensor, OnnxError> {
    let refuse = |reason: String| OnnxError::Tensor { tensor: proto.name.clone(), reason };
    let element = element_type(proto.data_type).ok_or_else(|| {
        refuse(format!("elements of type {} are not supported", element_type_name(proto.data_type)))
    })?;
    let shape = read_shape(&proto.dims).map_err(refuse)?;
    let length = count(&shape).map_err(|error| refuse(error.to_string()))?;
    if element == ElementType::String {
        return read_strings(proto, &shape).map_err(refuse);
    }
    let region = match proto.data_location {
        0 => None,
        1 => Some(external.find(proto)?),
        thin::OWN_FILE => Some(external.find_own(proto)?),
        other => return Err(refuse(format!("data location {other} is unknown"))),
    };
    let raw = match &region {
        None => proto.raw_data.clone(),
        Some(region) => {
            let mut bytes = vec![0; region.len()];
            region.read(&mut bytes).map_err(|error| refuse(error.to_string()))?;
            bytes.into()
        }
    };
    let tensor = with_element!(element, T => {
        let elements = if raw.is_empty() && proto.data_location == 0 {
            <T as Stored>::from_fields(proto, length).into()
        } else {
            <T as Stored>::from_raw(&raw, length).ok_or_else(|| {
                refuse(format!("shape {shape:?} of {element} needs {length} elements, the data have {} bytes", raw.len()))
            })?
        };
        HostTensor::of_buffer(&shape, elements)
    });
    let tensor = tensor.map_err(|error: TensorError| refuse(error.to_string()))?;
    Ok(match region {
        Some(region) if cfg!(target_endian = "little") && region.len() >= LARGE => tensor.in_file(region),
        _ => tensor,
    })
}

/// Elements that take fewer bytes than this stay in memory.
const LARGE: usize = 1 << 16;

/// A tensor as a file has it, in raw bytes but for strings.
pub(crate) fn write_tensor(name: &str, tensor: &HostTensor) -> TensorProto {
    let mut proto = TensorProto {
        name: name.to_owned(),
        dims: tensor.shape().iter().map(|&extent| extent as i64).collect(),
        data_type: element_number(tensor.element()),
        ..TensorProto::default()
    };
    match tensor.as_slice::<Arc<str>>() {
        Some(strings) => {
            proto.string_data =
                strings.iter().map(|text| bytes::Bytes::copy_from_slice(text.as_bytes())).collect();
        }
        None => {
            proto.raw_data = with_element!(tensor.element(), T => {
                <T as Stored>::to_raw(tensor.as_slice::<T>().unwrap_or_default())
            })
            .into();
        }
    }
    proto
}

/// Reads a tensor of which only some elements are listed. The dense tensor may be larger than the file; `limit` bounds
/// its number of elements.
///
/// # Errors
/// As [`read_tensor`], and when a place is outside the shape.
pub(crate) fn read_sparse_tensor(
    proto: &SparseTensorProto,
    external: &ExternalData,
    limit: usize,
) -> Result<HostTensor, OnnxError> {
    let missing = |part: &str| OnnxError::Tensor {
        tensor: String::new(),
        reason: format!("a sparse tensor has no {part}"),
    };
    let values_proto = proto.values.as_ref().ok_or_else(|| missing("values"))?;
    let indices_proto = proto.indices.as_ref().ok_or_else(|| missing("indices"))?;
    let refuse = |reason: String| OnnxError::Tensor { tensor: values_proto.name.clone(), reason };
    let values = read_tensor(values_proto, external)?;
    let indices = read_tensor(indices_proto, external)?;
    let shape = read_shape(&proto.dims).map_err(refuse)?;
    let length = count(&shape).map_err(|error| refuse(error.to_string()))?;
    if length > limit {
        return Err(refuse(format!("a sparse tensor of shape {shape:?} has more than {limit} elements")));
    }
    let places = sparse_places(&indices, values.len(), &shape)
        .ok_or_else(|| refuse(format!("the indices of a sparse tensor do not fit shape {shape:?}")))?;
    with_element!(values.element(), T => {
        let mut dense = vec![T::default(); length];
        for (value, place) in values.as_slice::<T>().unwrap_or_default().iter().zip(places) {
            dense[place] = value.clone();
        }
        HostTensor::new(&shape, dense).map_err(|error| refuse(error.to_string()))
    })
}

/// The places of listed elements: given as row-major numbers, or as coordinates.
fn sparse_places(indices: &HostTensor, listed: usize, shape: &[usize]) -> Option<Vec<usize>> {
    let numbers = indices.as_slice::<i64>()?;
    let length: usize = shape.iter().product();
    match *indices.shape() {
        [n] if n == listed => {
            let place = |&number: &i64| usize::try_from(number).ok().filter(|&place| place < length);
            numbers.iter().map(place).collect()
        }
        [n, rank] if n == listed && rank == shape.len() && rank > 0 => {
            let place = |coordinates: &[i64]| {
                coordinates.iter().zip(shape).try_fold(0, |place, (&coordinate, &extent)| {
                    let coordinate =
                        usize::try_from(coordinate).ok().filter(|&coordinate| coordinate < extent)?;
                    Some(place * extent + coordinate)
                })
            };
            numbers.chunks_exact(rank).map(place).collect()
        }
        _ => None,
    }
}

fn read_shape(dims: &[i64]) -> Result<Vec<usize>, String> {
    let extent =
        |&dim: &i64| usize::try_from(dim).map_err(|_| format!("shape {dims:?} has a negative extent"));
    dims.iter().map(extent).collect()
}

fn read_strings(proto: &TensorProto, shape: &[usize]) -> Result<HostTensor, String> {
    let text = |bytes: &bytes::Bytes| std::str::from_utf8(bytes).map(Arc::from);
    let strings: Vec<Arc<str>> =
        proto.string_data.iter().map(text).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    HostTensor::new(shape, strings).map_err(|error| error.to_string())
}

/// An element type as files store it: in raw bytes, or in one of the typed fields.
trait Stored: Element {
    /// Elements of little-endian bytes; `None` when the bytes are not as many as `length` elements have.
    fn from_raw(raw: &[u8], length: usize) -> Option<Buffer<Self>>;

    /// Elements of the field that ONNX prescribes for the type; of elements that share bytes, at most `length`.
    fn from_fields(proto: &TensorProto, length: usize) -> Vec<Self>;

    /// Elements as little-endian bytes.
    fn to_raw(elements: &[Self]) -> Vec<u8>;
}

macro_rules! stored {
    ($($type:ty: $field:ident, $value:ident => $convert:expr;)*) => {$(
        impl Stored for $type {
            fn from_raw(raw: &[u8], length: usize) -> Option<Buffer<Self>> {
                let (chunks, rest) = raw.as_chunks::<{ size_of::<$type>() }>();
                let fits = rest.is_empty() && chunks.len() == length;
                fits.then(|| Buffer::aligned(chunks.iter().map(|chunk| <$type>::from_le_bytes(*chunk))))
            }

            fn from_fields(proto: &TensorProto, _: usize) -> Vec<Self> {
                proto.$field.iter().map(|&$value| $convert).collect()
            }

            fn to_raw(elements: &[Self]) -> Vec<u8> {
                elements.iter().flat_map(|element| element.to_le_bytes()).collect()
            }
        }
    )*};
}

stored! {
    i8: int32_data, value => value as i8;
    i16: int32_data, value => value as i16;
    i32: int32_data, value => value;
    i64: int64_data, value => value;
    u8: int32_data, value => value as u8;
    u16: int32_data, value => value as u16;
    u32: uint64_data, value => value as u32;
    u64: uint64_data, value => value;
    f16: int32_data, value => f16::from_bits(value as u16);
    bf16: int32_data, value => bf16::from_bits(value as u16);
    f32: float_data, value => value;
    f64: double_data, value => value;
}

/// Elements that share bytes, the first one in the lowest bits; a byte of which not all are needed comes last.
fn unpack<T: Small>(bytes: impl Iterator<Item = u8>, length: usize) -> Vec<T> {
    let each = (8 / T::BITS) as usize;
    let elements =
        bytes.flat_map(|byte| (0..each).map(move |place| T::from_bits(byte >> (place as u32 * T::BITS))));
    elements.take(length).collect()
}

/// Bytes of elements that share them.
fn pack<T: Small>(elements: &[T]) -> Vec<u8> {
    let byte = |shared: &[T]| {
        let shifted =
            shared.iter().enumerate().map(|(place, element)| element.bits() << (place as u32 * T::BITS));
        shifted.fold(0, |byte, bits| byte | bits)
    };
    elements.chunks((8 / T::BITS) as usize).map(byte).collect()
}

macro_rules! stored_small {
    ($($type:ty),*) => {$(
        impl Stored for $type {
            fn from_raw(raw: &[u8], length: usize) -> Option<Buffer<Self>> {
                let each = (8 / <$type as Small>::BITS) as usize;
                (raw.len() == length.div_ceil(each)).then(|| unpack(raw.iter().copied(), length).into())
            }

            fn from_fields(proto: &TensorProto, length: usize) -> Vec<Self> {
                unpack(proto.int32_data.iter().map(|&value| value as u8), length)
            }

            fn to_raw(elements: &[Self]) -> Vec<u8> {
                pack(elements)
            }
        }
    )*};
}

stored_small!(I2, U2, I4, U4, F4E2M1, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0);

impl Stored for bool {
    fn from_raw(raw: &[u8], length: usize) -> Option<Buffer<Self>> {
        (raw.len() == length).then(|| Buffer::aligned(raw.iter().map(|&byte| byte != 0)))
    }

    fn from_fields(proto: &TensorProto, _: usize) -> Vec<Self> {
        proto.int32_data.iter().map(|&value| value != 0).collect()
    }

    fn to_raw(elements: &[Self]) -> Vec<u8> {
        elements.iter().map(|&element| u8::from(element)).collect()
    }
}

impl Stored for Arc<str> {
    fn from_raw(_: &[u8], _: usize) -> Option<Buffer<Self>> {
        None
    }

    fn from_fields(proto: &TensorProto, _: usize) -> Vec<Self> {
        proto.string_data.iter().map(|bytes| Arc::from(String::from_utf8_lossy(bytes))).collect()
    }

    /// Strings have no raw form: [`write_tensor`] lists them.
    fn to_raw(_: &[Self]) -> Vec<u8> {
        Vec::new()
    }
}
