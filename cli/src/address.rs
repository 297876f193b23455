//! The names of records on the command line.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use tilewright::search::records::Shape;

/// Values of dimensions and `usize` arguments by name: `M=128,N=64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dims(BTreeMap<String, i64>);

/// A record: `PATH:KERNEL:SHAPE#TRIAL`, of which `:SHAPE` and `#TRIAL` may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) path: PathBuf,
    pub(crate) kernel: String,
    pub(crate) shape: Option<Dims>,
    pub(crate) trial: Option<u64>,
}

impl Dims {
    /// Whether these are the dimensions and parameters of a shape.
    pub(crate) fn is(&self, shape: &Shape) -> bool {
        let count = shape.dims.len() + shape.params.len();
        self.0.len() == count
            && shape.dims.iter().chain(&shape.params).all(|(name, value)| self.0.get(name) == Some(value))
    }
}

impl fmt::Display for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        f.write_str(&texts.join(","))
    }
}

impl FromStr for Dims {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut dims = BTreeMap::new();
        // The form in which `list` prints a shape is accepted, too.
        for part in text.split([',', ';']).map(str::trim).filter(|part| !part.is_empty()) {
            let value = part.split_once('=').and_then(|(name, value)| {
                Some((name.trim().to_owned(), value.trim().parse::<i64>().ok().filter(|value| *value >= 0)?))
            });
            let (name, value) =
                value.ok_or_else(|| format!("`{part}` is no dimension: the form is `M=128,N=64`"))?;
            if dims.insert(name.clone(), value).is_some() {
                return Err(format!("`{name}` is given twice"));
            }
        }
        Ok(Dims(dims))
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || format!("`{text}` names no record: the form is `PATH:KERNEL:SHAPE#TRIAL`");
        let (rest, trial) = match text.rsplit_once('#') {
            Some((rest, trial)) => (rest, Some(trial.parse().map_err(|_| form())?)),
            None => (text, None),
        };
        // Parsed from the right, since a path may have colons of its own.
        let (rest, last) = rest.rsplit_once(':').ok_or_else(form)?;
        let (path, kernel, shape) = match last.contains('=') {
            false => (rest, last, None),
            true => {
                let (path, kernel) = rest.rsplit_once(':').ok_or_else(form)?;
                (path, kernel, Some(last.parse()?))
            }
        };
        if path.is_empty() || kernel.is_empty() {
            return Err(form());
        }
        Ok(Address { path: path.into(), kernel: kernel.to_owned(), shape, trial })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_from_the_right() {
        let read = |text: &str| text.parse::<Address>().map(|found| (found.path, found.kernel, found.trial));
        let expected = |path: &str, kernel: &str, trial| Ok((PathBuf::from(path), kernel.to_owned(), trial));
        assert_eq!(read("tuned:matmul"), expected("tuned", "matmul", None));
        assert_eq!(read("a:b/c.jsonl:matmul:M=1,N=2#17"), expected("a:b/c.jsonl", "matmul", Some(17)));
        assert_eq!(read("d#1/c.jsonl:matmul#2"), expected("d#1/c.jsonl", "matmul", Some(2)));
        for text in ["", "matmul", ":matmul", "tuned:", "tuned:matmul#x", "matmul:M=1", "t:k:M=", "t:k:M=-1"]
        {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn dimensions_are_those_of_a_shape_in_any_order() {
        let mut shape = Shape::of_dims([("M", 8), ("N", 4)]);
        shape.params.insert("stride".to_owned(), 2);
        let is = |text: &str| text.parse::<Dims>().expect("dimensions").is(&shape);
        assert!(is("stride=2,N=4,M=8") && is("M=8, N=4; stride=2"));
        assert!(!is("M=8,N=4") && !is("M=8,N=4,stride=1") && !is("M=8,N=4,stride=2,K=1"));
        assert_eq!("M=8,M=8".parse::<Dims>(), Err("`M` is given twice".to_owned()));
        assert!("M8".parse::<Dims>().unwrap_err().contains("the form is `M=128,N=64`"));
    }
}
