//! The choices of a caller.

use std::fmt;
use std::str::FromStr;

/// How a model is quantised.
#[derive(Clone, Debug)]
pub struct Options {
    /// How the range of an activation follows from the numbers that calibration observes.
    pub method: Method,
    /// How activations become bytes.
    pub activations: Activations,
    /// How many scales weights have.
    pub weights: Weights,
    /// Whether biases take up the mean error of each channel.
    pub bias_correction: bool,
    /// Nodes that stay in floats.
    pub keep: Vec<String>,
    /// Products whose own signal-to-noise ratio is lower stay in floats. In decibels.
    pub least_ratio: Option<f64>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            method: Method::MinMax,
            activations: Activations::Asymmetric,
            weights: Weights::PerChannel,
            bias_correction: true,
            keep: Vec::new(),
            least_ratio: None,
        }
    }
}

/// How the range of an activation follows from the numbers that calibration observes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// From the smallest to the largest number.
    MinMax,
    /// As many percent of the numbers, with equally many left out at both ends.
    Percentile(f64),
    /// The range whose 8-bit form differs least in distribution (Migacz, "8-bit Inference with TensorRT", GTC 2017).
    Entropy,
}

impl Method {
    /// The percentile that is used where none is given.
    pub const PERCENTILE: f64 = 99.99;
}

/// How activations become bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activations {
    /// Unsigned bytes with a zero point, so that the whole range is used.
    Asymmetric,
    /// Signed bytes around zero.
    Symmetric,
}

/// How many scales weights have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// One for each output channel.
    PerChannel,
    /// One for all.
    PerTensor,
}

/// A word that names no option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is none of {known}")]
pub struct UnknownOption {
    /// The word.
    pub word: String,
    /// The words that are known.
    pub known: &'static str,
}

impl FromStr for Method {
    type Err = UnknownOption;

    /// `min-max`, `entropy`, `percentile`, or `percentile:99.9`.
    fn from_str(word: &str) -> Result<Self, UnknownOption> {
        let unknown = || UnknownOption {
            word: word.to_owned(),
            known: "`min-max`, `entropy`, `percentile`, and `percentile:P` with P above 0 and up to 100",
        };
        match word.split_once(':') {
            None if word == "min-max" => Ok(Method::MinMax),
            None if word == "entropy" => Ok(Method::Entropy),
            None if word == "percentile" => Ok(Method::Percentile(Method::PERCENTILE)),
            Some(("percentile", number)) => {
                let percent = number.parse().ok().filter(|&percent: &f64| percent > 0.0 && percent <= 100.0);
                percent.map(Method::Percentile).ok_or_else(unknown)
            }
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Method::MinMax => f.write_str("min-max"),
            Method::Percentile(percent) => write!(f, "percentile:{percent}"),
            Method::Entropy => f.write_str("entropy"),
        }
    }
}

impl FromStr for Activations {
    type Err = UnknownOption;

    fn from_str(word: &str) -> Result<Self, UnknownOption> {
        match word {
            "asymmetric" => Ok(Activations::Asymmetric),
            "symmetric" => Ok(Activations::Symmetric),
            _ => Err(UnknownOption { word: word.to_owned(), known: "`asymmetric` and `symmetric`" }),
        }
    }
}

impl FromStr for Weights {
    type Err = UnknownOption;

    fn from_str(word: &str) -> Result<Self, UnknownOption> {
        match word {
            "per-channel" => Ok(Weights::PerChannel),
            "per-tensor" => Ok(Weights::PerTensor),
            _ => Err(UnknownOption { word: word.to_owned(), known: "`per-channel` and `per-tensor`" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_read_as_they_are_written() {
        for method in [Method::MinMax, Method::Entropy, Method::Percentile(99.5)] {
            assert_eq!(method.to_string().parse(), Ok(method));
        }
        assert_eq!("percentile".parse(), Ok(Method::Percentile(Method::PERCENTILE)));
        for wrong in ["percentile:0", "percentile:101", "percentile:nan", "percentile:", "max", "entropy:3"] {
            assert!(wrong.parse::<Method>().is_err(), "{wrong}");
        }
    }
}
