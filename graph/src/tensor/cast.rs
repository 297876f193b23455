//! Conversion of elements from one type to another, as ONNX's operator Cast defines it.

use std::str::FromStr;
use std::sync::Arc;

use crate::tensor::{ElementType, Elements, HostTensor, Number, TensorError, with_number};

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
        if self.element() == to {
            return Ok(self.clone());
        }
        let elements = match (&self.elements, to) {
            (Elements::String(values), to) => parse_all(values, to)?,
            (_, ElementType::String) => Elements::String(Arc::new(self.format_all())),
            (Elements::Bool(values), to) => {
                let cast = |value: &bool| f64::from(u8::from(*value));
                with_number!(to, T => wrap_all(values.iter().map(|value| T::from_f64(cast(value)))),
                    else unreachable!("strings and equal types are above"))
            }
            (_, to) => with_number!(self.element(), S => {
                let values = self.expect::<S>()?;
                match to {
                    ElementType::Bool => wrap_all(values.iter().map(|value| value.to_f64() != 0.0)),
                    to => with_number!(to, T => wrap_all(values.iter().map(|&value| convert::<S, T>(value))),
                        else unreachable!("strings and truth values are above")),
                }
            }, else unreachable!("strings and truth values are above")),
        };
        Ok(HostTensor { shape: self.shape.clone(), elements })
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

fn wrap_all<T: crate::tensor::Element>(values: impl Iterator<Item = T>) -> Elements {
    T::wrap(values.collect())
}

/// Strings as numbers.
fn parse_all(values: &[Arc<str>], to: ElementType) -> Result<Elements, CastError> {
    fn parse<P: FromStr>(values: &[Arc<str>], to: ElementType) -> Result<Vec<P>, CastError> {
        let refuse = |text: &Arc<str>| CastError::NoNumber { text: text.to_string(), to };
        values.iter().map(|text| text.trim().parse().map_err(|_| refuse(text))).collect()
    }
    if to.is_integer() {
        let whole = parse::<i128>(values, to)?;
        return Ok(with_number!(to, T => wrap_all(whole.iter().map(|&value| T::from_integer(value as i64))),
            else unreachable!("an integer type is a number")));
    }
    let numbers = parse::<f64>(values, to)?;
    Ok(with_number!(to, T => wrap_all(numbers.iter().map(|&value| T::from_f64(value))),
        else wrap_all(numbers.iter().map(|&value| value != 0.0))))
}

/// One number as another type; see [`HostTensor::cast`].
fn convert<S: Number, T: Number>(value: S) -> T {
    match (S::IS_FLOAT, T::IS_FLOAT) {
        (_, true) => T::from_f64(value.to_f64()),
        (true, false) => T::from_integer(truncate(value.to_f64(), T::TYPE)),
        (false, false) => T::from_integer(value.to_integer()),
    }
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
    /// The elements are not what they were taken for.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cast_f32<T: crate::tensor::Element>(values: &[f32]) -> Vec<T> {
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
