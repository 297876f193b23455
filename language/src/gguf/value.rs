//! The metadata of a file: values by key.

use crate::error::Error;
use crate::gguf::cursor::Cursor;

/// A value of the metadata.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An integer without sign.
    Unsigned(u64),
    /// An integer with sign.
    Signed(i64),
    /// A float of 32 or 64 bits.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A text.
    Text(String),
    /// Values of one type.
    Array(Vec<Value>),
}

/// How deep arrays of arrays may be.
const MOST_NESTED: usize = 4;

impl Value {
    /// Reads a value of a type of the format.
    pub(super) fn read(cursor: &mut Cursor<'_>, kind: u32, depth: usize) -> Result<Self, Error> {
        Ok(match kind {
            0 => Value::Unsigned(u8::from_le_bytes(cursor.array()?).into()),
            1 => Value::Signed(i8::from_le_bytes(cursor.array()?).into()),
            2 => Value::Unsigned(u16::from_le_bytes(cursor.array()?).into()),
            3 => Value::Signed(i16::from_le_bytes(cursor.array()?).into()),
            4 => Value::Unsigned(cursor.u32()?.into()),
            5 => Value::Signed(i32::from_le_bytes(cursor.array()?).into()),
            6 => Value::Float(f32::from_le_bytes(cursor.array()?).into()),
            7 => Value::Bool(boolean(cursor)?),
            8 => Value::Text(cursor.text()?),
            9 => Value::Array(array(cursor, depth)?),
            10 => Value::Unsigned(cursor.u64()?),
            11 => Value::Signed(i64::from_le_bytes(cursor.array()?)),
            12 => Value::Float(f64::from_le_bytes(cursor.array()?)),
            other => {
                return Err(Error::Format(format!(
                    "metadata at byte {} has type {other}; types 0 to 12 are known",
                    cursor.place()
                )));
            }
        })
    }

    /// The value as an integer that is not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Value::Unsigned(value) => Some(value),
            Value::Signed(value) => u64::try_from(value).ok(),
            _ => None,
        }
    }

    /// The value as a float.
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Value::Float(value) => Some(value),
            Value::Unsigned(value) => Some(value as f64),
            Value::Signed(value) => Some(value as f64),
            _ => None,
        }
    }

    /// The value as a text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value as a truth value.
    pub fn as_bool(&self) -> Option<bool> {
        match *self {
            Value::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// The elements of an array.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(values) => Some(values),
            _ => None,
        }
    }
}

fn boolean(cursor: &mut Cursor<'_>) -> Result<bool, Error> {
    match cursor.array::<1>()? {
        [0] => Ok(false),
        [1] => Ok(true),
        [other] => Err(Error::Format(format!("{other} at byte {} is no truth value", cursor.place() - 1))),
    }
}

fn array(cursor: &mut Cursor<'_>, depth: usize) -> Result<Vec<Value>, Error> {
    if depth >= MOST_NESTED {
        return Err(Error::Format(format!("arrays at byte {} are nested too deeply", cursor.place())));
    }
    let kind = cursor.u32()?;
    // An array or a text has at least its length.
    let least = match kind {
        8 => 8,
        9 => 12,
        2 | 3 => 2,
        4..=6 => 4,
        10..=12 => 8,
        _ => 1,
    };
    let count = cursor.count("elements", least)?;
    (0..count).map(|_| Value::read(cursor, kind, depth + 1)).collect()
}
