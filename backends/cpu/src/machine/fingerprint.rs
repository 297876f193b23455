//! The text form of a [`Machine`]: `x86_64;avx2;fma;l1=48K;l2=2M;l3=0;line=64;cores=2`.
//!
//! First the architecture, then its features in the order of their declaration, then numbers. All numbers are
//! always present and in this order, so that equal machines have equal texts. The brand is left out: it is
//! for people, and virtual machines make it up.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::{FeatureSet, Machine, UnknownFeature};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Why a text is no fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FingerprintError {
    /// A field is absent or out of order, or there is one too many.
    #[error(
        "`{text}` is no machine fingerprint: expected {expected}; \
         the form is `ARCHITECTURE;FEATURE;FEATURE;l1=SIZE;l2=SIZE;l3=SIZE;line=SIZE;cores=COUNT`"
    )]
    Field {
        /// The whole text.
        text: String,
        /// The field that was expected.
        expected: &'static str,
    },
    /// A field's value is no number of the right form.
    #[error(
        "`{value}` is no value for `{field}` of a machine fingerprint: \
         expected a number, for sizes also with K or M"
    )]
    Number {
        /// The field's name.
        field: &'static str,
        /// The value as it was given.
        value: String,
    },
    /// A feature is not known here: the text comes from a later version.
    #[error(transparent)]
    Feature(#[from] UnknownFeature),
}

/// A size in bytes, written with the largest unit that divides it.
struct Size(usize);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0"),
            bytes if bytes.is_multiple_of(MIB) => write!(f, "{}M", bytes / MIB),
            bytes if bytes.is_multiple_of(KIB) => write!(f, "{}K", bytes / KIB),
            bytes => write!(f, "{bytes}"),
        }
    }
}

/// Reads a size in bytes with an optional unit, as Linux writes those of caches too.
pub(super) fn parse_size(text: &str) -> Option<usize> {
    let (digits, unit) = match text.strip_suffix('M') {
        Some(digits) => (digits, MIB),
        None => text.strip_suffix('K').map_or((text, 1), |digits| (digits, KIB)),
    };
    parse_count(digits)?.checked_mul(unit)
}

/// Digits only: `usize::from_str` would also accept a plus sign.
fn parse_count(text: &str) -> Option<usize> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// The fingerprint.
impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.architecture)?;
        for feature in self.features.iter() {
            write!(f, ";{feature}")?;
        }
        let [l1, l2, l3, line] = [self.l1_bytes, self.l2_bytes, self.l3_bytes, self.line_bytes].map(Size);
        write!(f, ";l1={l1};l2={l2};l3={l3};line={line};cores={}", self.cores)
    }
}

/// Reads a fingerprint; the brand stays empty.
impl FromStr for Machine {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let missing = |expected| FingerprintError::Field { text: text.to_owned(), expected };
        let mut fields = text.split(';').peekable();
        let architecture =
            fields.next().filter(|name| is_name(name)).ok_or_else(|| missing("an architecture"))?;
        let mut features = FeatureSet::EMPTY;
        while let Some(name) = fields.next_if(|field| !field.contains('=')) {
            features.insert(name.parse()?);
        }
        let mut number = |field: &'static str, parse: fn(&str) -> Option<usize>| {
            let value = fields.next().and_then(|part| part.strip_prefix(field)?.strip_prefix('='));
            let value = value.ok_or_else(|| missing(field))?;
            parse(value).ok_or_else(|| FingerprintError::Number { field, value: value.to_owned() })
        };
        let machine = Self {
            architecture: architecture.to_owned(),
            brand: String::new(),
            features,
            l1_bytes: number("l1", parse_size)?,
            l2_bytes: number("l2", parse_size)?,
            l3_bytes: number("l3", parse_size)?,
            line_bytes: number("line", parse_size)?,
            cores: number("cores", parse_count)?,
        };
        if fields.next().is_some() {
            return Err(missing("no further field"));
        }
        Ok(machine)
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_read_back() {
        for text in [
            "x86_64;sse4.1;avx2;fma;l1=48K;l2=2M;l3=480M;line=64;cores=2",
            "aarch64;neon;dotprod;l1=128K;l2=12M;l3=0;line=128;cores=8",
            "riscv64;l1=32K;l2=512K;l3=1000;line=64;cores=1",
        ] {
            assert_eq!(text.parse::<Machine>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn the_hosts_fingerprint_reads_back() {
        let host = Machine::host().expect("the tests run without an override");
        let again: Machine = host.to_string().parse().unwrap();
        assert_eq!(again, Machine { brand: String::new(), ..host.clone() });
    }

    #[test]
    fn bad_fingerprints_name_the_fault() {
        for (text, fault) in [
            ("", "expected an architecture"),
            ("x86 64;;", "expected an architecture"),
            ("x86_64", "expected l1"),
            ("x86_64;mmx4", "unknown CPU feature `mmx4`"),
            ("x86_64;fma;l2=2M", "expected l1"),
            ("x86_64;fma;l1=48K", "expected l2"),
            ("x86_64;fma;l1=48k;l2=2M;l3=0;line=64;cores=2", "`48k` is no value for `l1`"),
            ("x86_64;fma;l1=;l2=2M;l3=0;line=64;cores=2", "`` is no value for `l1`"),
            ("x86_64;fma;l1=+4;l2=2M;l3=0;line=64;cores=2", "`+4` is no value for `l1`"),
            ("x86_64;fma;l1=48K;l2=99999999999999999M;l3=0;line=64;cores=2", "is no value for `l2`"),
            ("x86_64;fma;l1=48K;l2=2M;l3=0;line=64;cores=2K", "`2K` is no value for `cores`"),
            ("x86_64;fma;l1=48K;l2=2M;l3=0;line=64;cores=2;x", "expected no further field"),
        ] {
            let error = text.parse::<Machine>().unwrap_err().to_string();
            assert!(error.contains(fault), "{text:?}: {error}");
        }
    }
}
