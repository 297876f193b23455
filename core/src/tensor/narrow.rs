//! Elements of [storage types](DType::is_storage_only), as codes: the bits of one element.
//!
//! Every value of these types is an `f32`, so that conversions go through `f32`.

use std::sync::LazyLock;

use crate::dtype::DType;

/// The bits of a code without its sign, of floats of 8 bits.
const MAGNITUDE: u8 = 0x7F;

/// The number that a code stands for.
///
/// # Panics
/// When the type is no storage type.
pub(crate) fn decode(dtype: DType, code: u8) -> f32 {
    match dtype {
        DType::Float8E4M3FN => decode_float(code, FORMAT_E4M3FN),
        DType::Float8E5M2 => decode_float(code, FORMAT_E5M2),
        DType::Int4 | DType::UInt4 => dtype.wrap(i64::from(code)) as f32,
        computed => unreachable!("{computed} is no storage type"),
    }
}

/// The code of the element that a number becomes: for floats of 8 bits the nearest one, ties to even, and the greatest magnitude
/// beyond; for integers as Rust's `as` does, truncated and saturated.
///
/// # Panics
/// When the type is no storage type.
pub(crate) fn encode(dtype: DType, value: f32) -> u8 {
    match dtype {
        DType::Float8E4M3FN => encode_float(value, &MAGNITUDES_E4M3FN),
        DType::Float8E5M2 => encode_float(value, &MAGNITUDES_E5M2),
        DType::Int4 => (value as i64).clamp(-8, 7) as u8 & 0xF,
        DType::UInt4 => (value as i64).clamp(0, 15) as u8,
        computed => unreachable!("{computed} is no storage type"),
    }
}

/// The code of the element at a position.
pub(crate) fn read(dtype: DType, bytes: &[u8], position: usize) -> u8 {
    if dtype.is_packed() { bytes[position / 2] >> (4 * (position % 2)) & 0xF } else { bytes[position] }
}

/// Sets the element at a position to a code.
pub(crate) fn write(dtype: DType, bytes: &mut [u8], position: usize, code: u8) {
    if dtype.is_packed() {
        let (byte, shift) = (&mut bytes[position / 2], 4 * (position % 2));
        *byte = *byte & !(0xF << shift) | (code & 0xF) << shift;
    } else {
        bytes[position] = code;
    }
}

/// How a float of 8 bits is laid out.
#[derive(Clone, Copy)]
struct Format {
    fraction_bits: u32,
    bias: i32,
    /// The greatest magnitude that is a finite number.
    greatest: u8,
    has_infinity: bool,
}

const FORMAT_E4M3FN: Format = Format { fraction_bits: 3, bias: 7, greatest: 0x7E, has_infinity: false };
const FORMAT_E5M2: Format = Format { fraction_bits: 2, bias: 15, greatest: 0x7B, has_infinity: true };

fn decode_float(code: u8, format: Format) -> f32 {
    let magnitude = code & MAGNITUDE;
    let size = if magnitude > format.greatest {
        if format.has_infinity && magnitude == format.greatest + 1 { f32::INFINITY } else { f32::NAN }
    } else {
        let exponent = i32::from(magnitude >> format.fraction_bits);
        let fraction =
            f32::from(magnitude & ((1 << format.fraction_bits) - 1)) / (1 << format.fraction_bits) as f32;
        // Without an exponent, a number has no leading 1, and the scale of the least exponent.
        let (leading, scale) = if exponent == 0 { (0.0, 1) } else { (1.0, exponent) };
        (leading + fraction) * 2f32.powi(scale - format.bias)
    };
    if code > MAGNITUDE { -size } else { size }
}

/// The finite magnitudes of a format, in the order of their codes, which is that of their values.
fn magnitudes(format: Format) -> Vec<f32> {
    (0..=format.greatest).map(|code| decode_float(code, format)).collect()
}

static MAGNITUDES_E4M3FN: LazyLock<Vec<f32>> = LazyLock::new(|| magnitudes(FORMAT_E4M3FN));
static MAGNITUDES_E5M2: LazyLock<Vec<f32>> = LazyLock::new(|| magnitudes(FORMAT_E5M2));

fn encode_float(value: f32, magnitudes: &[f32]) -> u8 {
    let sign = if value.is_sign_negative() { 0x80 } else { 0 };
    if value.is_nan() {
        return MAGNITUDE | sign;
    }
    let size = value.abs();
    let above = magnitudes.partition_point(|magnitude| *magnitude < size);
    let nearest = match (above.checked_sub(1), magnitudes.get(above)) {
        (_, None) => magnitudes.len() - 1,
        (None, _) => 0,
        (Some(below), Some(greater)) => {
            // Exact: both differences need fewer bits than an `f32` has.
            let (down, up) = (size - magnitudes[below], greater - size);
            if down < up || (down == up && below % 2 == 0) { below } else { above }
        }
    };
    nearest as u8 | sign
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOATS: [DType; 2] = [DType::Float8E4M3FN, DType::Float8E5M2];

    /// The 256 values of `ml_dtypes` 0.6, a line for each type: the bits of an `f32`, in the order of the codes.
    const TABLE: &str = include_str!("narrow.txt");

    #[test]
    fn codes_have_the_published_values() {
        for (dtype, line) in FLOATS.into_iter().zip(TABLE.lines()) {
            let expected: Vec<u32> =
                line.split_whitespace().map(|bits| u32::from_str_radix(bits, 16).unwrap()).collect();
            assert_eq!(expected.len(), 256);
            for (code, expected) in (0..=u8::MAX).zip(expected.into_iter().map(f32::from_bits)) {
                let found = decode(dtype, code);
                let is_same = found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan());
                assert!(is_same, "{dtype} {code:#04x}: {found} instead of {expected}");
            }
        }
    }

    #[test]
    fn every_value_comes_back() {
        for dtype in FLOATS {
            for code in 0..=u8::MAX {
                let value = decode(dtype, code);
                let expected = match value {
                    value if value.is_nan() => code | MAGNITUDE,
                    // Conversions saturate, so that an infinity is not kept.
                    value if value.is_infinite() => code - 1,
                    _ => code,
                };
                assert_eq!(encode(dtype, value), expected, "{dtype} {code:#04x}");
            }
        }
        for (dtype, range) in [(DType::Int4, -8..=7), (DType::UInt4, 0..=15)] {
            for value in range {
                assert_eq!(decode(dtype, encode(dtype, value as f32)), value as f32, "{dtype}");
            }
        }
    }

    #[test]
    fn ties_go_to_even_codes_and_neighbours_to_the_nearest() {
        for (dtype, greatest) in [(DType::Float8E4M3FN, 0x7E), (DType::Float8E5M2, 0x7B)] {
            for code in 0..greatest {
                let (low, high) = (decode(dtype, code), decode(dtype, code + 1));
                let middle = low + (high - low) / 2.0;
                let even = if code % 2 == 0 { code } else { code + 1 };
                assert_eq!(encode(dtype, middle), even, "{dtype} between {low} and {high}");
                assert_eq!(encode(dtype, middle.next_down()), code, "{dtype} below {middle}");
                assert_eq!(encode(dtype, -middle.next_up()), (code + 1) | 0x80, "{dtype} above {middle}");
            }
        }
    }

    /// The table of ONNX's operator Cast for `saturate = 1`.
    #[test]
    fn numbers_out_of_range_saturate() {
        for (dtype, greatest) in [(DType::Float8E4M3FN, 448.0), (DType::Float8E5M2, 57344.0)] {
            for value in [greatest * 1.01, 1e30, f32::INFINITY] {
                assert_eq!(decode(dtype, encode(dtype, value)), greatest, "{dtype} of {value}");
                assert_eq!(decode(dtype, encode(dtype, -value)), -greatest, "{dtype} of -{value}");
            }
            assert!(decode(dtype, encode(dtype, f32::NAN)).is_nan(), "{dtype}");
            assert_eq!(encode(dtype, -0.0), 0x80, "{dtype}");
        }
        assert_eq!(
            (encode(DType::Int4, 9.0), encode(DType::Int4, -9.0), encode(DType::UInt4, -1.0)),
            (7, 8, 0)
        );
    }

    #[test]
    fn two_elements_lie_in_a_byte_the_first_in_the_lower_half() {
        let mut bytes = [0; 2];
        for (position, code) in [1, 2, 3].into_iter().enumerate() {
            write(DType::UInt4, &mut bytes, position, code);
        }
        assert_eq!(bytes, [0x21, 0x03]);
        write(DType::UInt4, &mut bytes, 0, 15);
        assert_eq!([0, 1, 2].map(|position| read(DType::UInt4, &bytes, position)), [15, 2, 3]);
    }
}
