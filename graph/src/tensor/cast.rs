//! Conversion of elements from one type to another, as ONNX's operator Cast defines it.

use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use crate::tensor::small::Small;
use crate::tensor::{Element, ElementType, Elements, HostTensor, Number, with_number, with_small};

impl HostTensor {
    /// The elements converted to another type.
    ///
    /// Floats become integers by truncation towards zero; what is out of range wraps as x86's conversions do, so that all
    /// machines agree: by way of `i32` for types of up to 32 bits, where what does not fit is −2³¹, and by way of `i64`
    /// otherwise. Everything but zero is true. Numbers become strings in the shortest form that reads back.
    ///
    /// # Errors
    /// When a string is no number.
    pub fn cast(&self, to: ElementType) -> Result<HostTensor, CastError> {
        self.cast_with(to, true)
    }

    /// As [`HostTensor::cast`]; `saturate` says whether numbers beyond the range of a float of a few bits become its largest one, and
    /// infinities or NaN otherwise. Integers of a few bits take the lowest bits of the integer.
    ///
    /// # Errors
    /// As [`HostTensor::cast`].
    pub fn cast_with(&self, to: ElementType, saturate: bool) -> Result<HostTensor, CastError> {
        if self.element() == to {
            return Ok(self.clone());
        }
        let elements = match (&self.elements, to) {
            (Elements::String(values), to) => parse_all(values, to)?,
            (_, ElementType::String) => Elements::String(Arc::new(self.format_all().into())),
            (_, to) if to.small_bits().is_some() => self.shrink(to, saturate),
            (_, to) => convert_all(&self.elements, self.element(), self.len(), to),
        };
        Ok(HostTensor { shape: self.shape.clone(), elements })
    }

    /// Numbers and truth values as elements of a few bits.
    fn shrink(&self, to: ElementType, saturate: bool) -> Elements {
        let (from, all) = (self.element(), 0..self.len());
        with_small!(to, T => if to.is_float() {
            let mut numbers = Vec::with_capacity(self.len());
            read_reals(&self.elements, from, all, &mut numbers);
            wrap_all(numbers.into_iter().map(|number| <T as Small>::from_f64(number, saturate)))
        } else {
            let mut integers = Vec::with_capacity(self.len());
            read_integers(&self.elements, from, all, to, &mut integers);
            wrap_all(integers.into_iter().map(<T as Small>::from_integer))
        }, else unreachable!("the type has few bits"))
    }

    /// Each element as text.
    fn format_all(&self) -> Vec<Arc<str>> {
        fn shortest<T: std::fmt::Debug>(values: &[T]) -> Vec<Arc<str>> {
            values.iter().map(|value| Arc::from(format!("{value:?}"))).collect()
        }
        match &self.elements {
            Elements::String(values) => values.to_vec(),
            Elements::F32(values) => {
                values.iter().map(|&value| number_text(f64::from(value), value)).collect()
            }
            Elements::F64(values) => values.iter().map(|&value| number_text(value, value)).collect(),
            Elements::Bool(values) => {
                values.iter().map(|&value| Arc::from(if value { "1" } else { "0" })).collect()
            }
            other => crate::tensor::with_elements!(other, values => shortest(values)),
        }
    }
}

/// Text of a float: `NaN`, `INF` and `-INF` as ONNX spells them.
fn number_text(value: f64, original: impl std::fmt::Display) -> Arc<str> {
    match value {
        value if value.is_nan() => Arc::from("NaN"),
        f64::INFINITY => Arc::from("INF"),
        f64::NEG_INFINITY => Arc::from("-INF"),
        _ => Arc::from(original.to_string()),
    }
}

fn wrap_all<T: Element>(values: impl Iterator<Item = T>) -> Elements {
    T::wrap(values.collect::<Vec<T>>().into())
}

/// Strings as numbers.
fn parse_all(values: &[Arc<str>], to: ElementType) -> Result<Elements, CastError> {
    fn parse<P: FromStr>(values: &[Arc<str>], to: ElementType) -> Result<Vec<P>, CastError> {
        let refuse = |text: &Arc<str>| CastError::NoNumber { text: text.to_string(), to };
        values.iter().map(|text| text.trim().parse().map_err(|_| refuse(text))).collect()
    }
    if to.is_integer() {
        let whole = parse::<i128>(values, to)?;
        let whole = whole.iter().map(|&value| value as i64);
        return Ok(with_small!(to, T => wrap_all(whole.map(<T as Small>::from_integer)), else
            with_number!(to, T => wrap_all(whole.map(T::from_integer)),
                else unreachable!("an integer type is a number"))));
    }
    let numbers = parse::<f64>(values, to)?;
    if to.small_bits().is_some() {
        return Ok(
            with_small!(to, T => wrap_all(numbers.iter().map(|&value| <T as Small>::from_f64(value, true))),
            else unreachable!("the type has few bits")),
        );
    }
    Ok(with_number!(to, T => wrap_all(numbers.iter().map(|&value| T::from_f64(value))),
        else wrap_all(numbers.iter().map(|&value| value != 0.0))))
}

/// Numbers and truth values as another type that is not `string`; see [`HostTensor::cast`]. They pass through `f64` or
/// `i64`, so that the compiler makes code for each type, not for each pair of types.
fn convert_all(elements: &Elements, from: ElementType, count: usize, to: ElementType) -> Elements {
    let reals = |range: Range<usize>, into: &mut Vec<f64>| read_reals(elements, from, range, into);
    let integers = |range: Range<usize>, into: &mut Vec<i64>| read_integers(elements, from, range, to, into);
    match to {
        ElementType::Bool => collect(count, &reals, |value| value != 0.0),
        to if to.is_integer() => with_number!(to, T => collect(count, &integers, T::from_integer),
            else unreachable!("an integer type is a number")),
        to => with_number!(to, T => collect(count, &reals, T::from_f64),
            else unreachable!("no tensor is cast to strings here")),
    }
}

/// The number of elements that are converted at a time: their intermediate values stay in the first-level cache.
const CHUNK: usize = 1024;

/// Appends intermediate values of a range of elements.
type Read<'r, V> = &'r dyn Fn(Range<usize>, &mut Vec<V>);

fn collect<V: Copy, T: Element>(count: usize, read: Read<'_, V>, make: fn(V) -> T) -> Elements {
    let (mut made, mut chunk) = (Vec::with_capacity(count), Vec::with_capacity(CHUNK.min(count)));
    for start in (0..count).step_by(CHUNK) {
        chunk.clear();
        read(start..count.min(start + CHUNK), &mut chunk);
        made.extend(chunk.iter().map(|&value| make(value)));
    }
    T::wrap(made.into())
}

fn read_reals(elements: &Elements, from: ElementType, range: Range<usize>, into: &mut Vec<f64>) {
    if let Elements::Bool(flags) = elements {
        return into.extend(flags[range].iter().map(|&flag| f64::from(u8::from(flag))));
    }
    with_small!(from, S => into.extend(typed::<S>(elements)[range].iter().map(|value| Small::to_f64(*value))), else
        with_number!(from, S => into.extend(typed::<S>(elements)[range].iter().map(|value| value.to_f64())),
            else unreachable!("strings are parsed elsewhere")));
}

/// Integers as they are, and floats truncated for the type `to`.
fn read_integers(
    elements: &Elements,
    from: ElementType,
    range: Range<usize>,
    to: ElementType,
    into: &mut Vec<i64>,
) {
    if let Elements::Bool(flags) = elements {
        return into.extend(flags[range].iter().map(|&flag| i64::from(flag)));
    }
    if from.is_float() || from.small_bits().is_some() {
        let mut reals = Vec::with_capacity(range.len());
        read_reals(elements, from, range, &mut reals);
        return into.extend(reals.into_iter().map(|value| truncate(value, to)));
    }
    with_number!(from, S => into.extend(typed::<S>(elements)[range].iter().map(|value| value.to_integer())),
        else unreachable!("strings are parsed elsewhere"));
}

/// Elements of a type that was looked up before.
fn typed<S: Element>(elements: &Elements) -> &[S] {
    S::view(elements).expect("the type is that of the elements")
}

/// A float as an integer that is to be wrapped to type `to`.
fn truncate(value: f64, to: ElementType) -> i64 {
    match to {
        ElementType::U64 if value >= 9_223_372_036_854_775_808.0 => (value as u64) as i64,
        ElementType::I64 | ElementType::U64 | ElementType::U32 => {
            let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value);
            if fits { value as i64 } else { i64::MIN }
        }
        _ => {
            let whole = value.trunc();
            let fits = whole >= f64::from(i32::MIN) && whole <= f64::from(i32::MAX);
            if fits { whole as i64 } else { i64::from(i32::MIN) }
        }
    }
}

/// Why elements cannot be converted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CastError {
    /// A string is no number.
    #[error("`{text}` cannot be read as a number of type {to}")]
    NoNumber {
        /// The string.
        text: String,
        /// The type asked for.
        to: ElementType,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cast_f32<T: Element>(values: &[f32]) -> Vec<T> {
        HostTensor::vector(values.to_vec()).cast(T::TYPE).unwrap().as_slice::<T>().unwrap().to_vec()
    }

    #[test]
    fn floats_out_of_range_wrap_as_on_x86() {
        assert_eq!(cast_f32::<i32>(&[3e9, -3e9, f32::NAN, -2.9]), [i32::MIN, i32::MIN, i32::MIN, -2]);
        assert_eq!(cast_f32::<u8>(&[300.0, -1.0, 256.5, -2.9]), [44, 255, 0, 254]);
        assert_eq!(cast_f32::<u64>(&[9_223_372_036_854_775_808.0]), [1 << 63]);
        assert_eq!(cast_f32::<bool>(&[0.0, -0.5]), [false, true]);
    }

    #[test]
    fn long_tensors_are_converted_whole() {
        let count = 2 * CHUNK + 7;
        let values = HostTensor::vector((0..count as i32).map(|value| value - 1000).collect::<Vec<_>>());
        let back = values.cast(ElementType::F64).unwrap().cast(ElementType::I32).unwrap();
        assert_eq!(back.as_slice::<i32>(), values.as_slice::<i32>());
        let narrow = values.cast(ElementType::U16).unwrap();
        assert_eq!(narrow.as_slice::<u16>().unwrap()[count - 1], (count - 1001) as u16);
        assert_eq!(narrow.as_slice::<u16>().unwrap()[0], 1000u16.wrapping_neg());
    }

    #[test]
    fn large_integers_stay_exact() {
        let values = HostTensor::vector(vec![u64::MAX, 1 << 60]);
        let cast = values.cast(ElementType::I64).unwrap();
        assert_eq!(cast.as_slice::<i64>().unwrap(), [-1, 1 << 60]);
    }

    #[test]
    fn strings_are_numbers_or_errors() {
        let texts = HostTensor::vector::<Arc<str>>(vec!["3.5".into(), "-INF".into(), "x".into()]);
        let error = texts.cast(ElementType::F32).unwrap_err();
        assert_eq!(error.to_string(), "`x` cannot be read as a number of type f32");
        let text = HostTensor::vector(vec![1.5f32, f32::INFINITY]).cast(ElementType::String).unwrap();
        assert_eq!(&*text.as_slice::<Arc<str>>().unwrap()[1], "INF");
    }
}
