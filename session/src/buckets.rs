//! Buckets: the sizes of named extents for which a model is tuned. Sizes between two of them share code.
//!
//! An extent of an input, such as the length of a sequence, has a name in the model. The dimensions of kernels are expressions of such names, and
//! their bounds are the values that these have at the bounds of the names. Kernels do the rest: see [`Kernel::set_buckets`].
//!
//! [`Kernel::set_buckets`]: tilewright_runtime::kernel::Kernel::set_buckets

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use tilewright_graph::symbolic::{SymInt, Symbol};

use crate::error::Error;
use crate::model::Port;

/// The most bounds of a dimension, and the most combinations of the bounds of all names.
const MOST_BOUNDS: usize = 64;

/// A named extent and its bounds: `S=16,64,512`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The name that inputs of the model have for the extent.
    pub name: String,
    /// The sizes, ascending.
    pub bounds: Vec<usize>,
}

impl FromStr for Bucket {
    type Err = String;

    /// Reads `S=16,64,512`. The sizes are those of [`sizes`].
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, list) = text.rsplit_once('=').ok_or("expected NAME=SIZES, for instance S=16,64,512")?;
        Ok(Bucket { name: name.to_owned(), bounds: sizes(list)? })
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bounds: Vec<String> = self.bounds.iter().map(usize::to_string).collect();
        write!(f, "{}={}", self.name, bounds.join(","))
    }
}

/// Reads sizes, and gives them in ascending order: `8`; a list, `16,64,512`; a range, `1..32`, of which the ends and all powers of two
/// between them count; or all multiples of a number in a range, `32..640/32`.
///
/// # Errors
/// When a part of the text is no number above zero, or a range is empty or has too many multiples.
pub fn sizes(text: &str) -> Result<Vec<usize>, String> {
    let mut all = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            Some((first, rest)) => range(part, first, rest, &mut all)?,
            None => all.push(size(part)?),
        }
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

fn range(text: &str, first: &str, rest: &str, all: &mut Vec<usize>) -> Result<(), String> {
    /// More sizes than this are a mistake.
    const MOST_SIZES: usize = 1 << 12;
    let (last, step) = match rest.split_once('/') {
        Some((last, step)) => (last, Some(size(step)?)),
        None => (rest, None),
    };
    let (first, last) = (size(first)?, size(last)?);
    if first > last {
        return Err(format!("the range {text} is empty"));
    }
    match step {
        Some(step) => {
            let (low, high) = (first.div_ceil(step), last / step);
            if high.saturating_sub(low) > MOST_SIZES {
                return Err(format!("the range {text} has more than {MOST_SIZES} sizes"));
            }
            all.extend((low..=high).map(|multiple| multiple * step));
        }
        None => {
            all.extend([first, last]);
            let powers = (0..usize::BITS).map(|power| 1usize << power);
            all.extend(powers.filter(|&power| first < power && power < last));
        }
    }
    Ok(())
}

fn size(text: &str) -> Result<usize, String> {
    let number = text.trim().parse::<usize>().ok().filter(|&number| number > 0);
    number.ok_or_else(|| format!("`{text}` is no size; expected a number above zero"))
}

/// The buckets of a model.
#[derive(Debug, Default)]
pub(crate) struct Buckets(BTreeMap<String, Vec<usize>>);

impl Buckets {
    /// Buckets for extents that inputs have.
    pub(crate) fn new(buckets: &[Bucket], inputs: &[Port]) -> Result<Self, Error> {
        let mut named = Vec::new();
        for extent in inputs.iter().filter_map(|port| port.ty.extents()).flatten() {
            extent.for_each_symbol(&mut |symbol| named.push(symbol.name().to_owned()));
        }
        named.sort();
        named.dedup();
        let mut own = BTreeMap::new();
        for Bucket { name, bounds } in buckets {
            let refuse = |reason: String| Error::Bucket { name: name.clone(), reason };
            if !named.contains(name) {
                let known = named.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                let known = if known.is_empty() { "none".to_owned() } else { known };
                return Err(refuse(format!(
                    "no input has an extent of this name; named extents are {known}"
                )));
            }
            let mut bounds = bounds.clone();
            bounds.sort_unstable();
            bounds.dedup();
            if bounds.first().is_none_or(|&first| first == 0) {
                return Err(refuse("bounds are sizes above zero, and there is at least one".to_owned()));
            }
            if own.insert(name.clone(), bounds).is_some() {
                return Err(refuse("it is given twice".to_owned()));
            }
        }
        let combinations =
            own.values().try_fold(1usize, |count, bounds: &Vec<usize>| count.checked_mul(bounds.len()));
        match own.keys().next() {
            Some(name) if combinations.is_none_or(|count| count > MOST_BOUNDS) => {
                let reason =
                    format!("there are more than {MOST_BOUNDS} combinations of the bounds of all names");
                Err(Error::Bucket { name: name.clone(), reason })
            }
            _ => Ok(Buckets(own)),
        }
    }

    /// Each name with its bounds.
    pub(crate) fn list(&self) -> Vec<Bucket> {
        let list = self.0.iter();
        list.map(|(name, bounds)| Bucket { name: name.clone(), bounds: bounds.clone() }).collect()
    }

    /// The bounds of dimensions, each with its position, where buckets decide all of its names.
    pub(crate) fn bounds(&self, dims: &[SymInt]) -> Vec<(usize, Vec<i64>)> {
        let dims = dims.iter().enumerate();
        dims.filter_map(|(position, dim)| Some((position, self.values(dim)?))).collect()
    }

    /// The values of an expression at all bounds of its names.
    fn values(&self, expression: &SymInt) -> Option<Vec<i64>> {
        let mut names: Vec<Symbol> = Vec::new();
        expression.for_each_symbol(&mut |symbol| {
            if !names.contains(symbol) {
                names.push(symbol.clone());
            }
        });
        let mut all: Vec<Vec<i64>> = vec![Vec::new()];
        for name in &names {
            let bounds = self.0.get(name.name())?;
            let longer = all.iter().flat_map(|known| {
                bounds.iter().map(|&bound| known.iter().copied().chain([bound as i64]).collect())
            });
            all = longer.collect();
        }
        let value = |sizes: &Vec<i64>| {
            let size = |symbol: &Symbol| Some(sizes[names.iter().position(|name| name == symbol)?]);
            expression.evaluate(&size).filter(|&value| value > 0)
        };
        let mut values = all.iter().map(value).collect::<Option<Vec<i64>>>()?;
        values.sort_unstable();
        values.dedup();
        (!names.is_empty()).then_some(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_graph::ir::{Shape, Type};
    use tilewright_graph::tensor::ElementType;

    #[test]
    fn sizes_are_lists_ranges_and_multiples() {
        assert_eq!(sizes("8"), Ok(vec![8]));
        assert_eq!(sizes("64,16,16, 512"), Ok(vec![16, 64, 512]));
        assert_eq!(sizes("1..6"), Ok(vec![1, 2, 4, 6]));
        assert_eq!(sizes("3..3"), Ok(vec![3]));
        assert_eq!(sizes("30..100/32,7"), Ok(vec![7, 32, 64, 96]));
        for wrong in ["", "0", "4..2", "1..", "a", "1,,2", "1..8/0", "1..99999999/1"] {
            assert!(sizes(wrong).is_err(), "{wrong}");
        }
        let bucket: Bucket = "S=512,16..64".parse().unwrap();
        assert_eq!(bucket.to_string(), "S=16,32,64,512");
        assert_eq!(bucket.to_string().parse(), Ok(bucket));
    }

    #[test]
    fn bounds_of_dimensions_follow_from_those_of_names() {
        let (b, s, t) = (SymInt::symbol("B"), SymInt::symbol("S"), SymInt::symbol("T"));
        let ty =
            Type::tensor(ElementType::F32, Shape::Known(vec![b.clone(), s.clone(), t.clone(), 8.into()]));
        let inputs = [Port { name: "x".to_owned(), ty }];
        let given = |texts: &[&str]| {
            let buckets: Vec<Bucket> = texts.iter().map(|text| text.parse().unwrap()).collect();
            Buckets::new(&buckets, &inputs)
        };
        let buckets = given(&["B=1,2", "S=16,64"]).unwrap();
        let dims = [&b * &s, t.clone(), &s + &SymInt::from(1), 8.into(), &b * &t];
        assert_eq!(buckets.bounds(&dims), [(0, vec![16, 32, 64, 128]), (2, vec![17, 65])]);
        assert_eq!(Buckets::default().bounds(&dims), []);
        let refused = |texts: &[&str]| given(texts).map(drop).unwrap_err().to_string();
        assert!(refused(&["Z=1"]).contains("named extents are `B`, `S`, `T`"));
        assert!(refused(&["B=1", "B=2"]).contains("twice"));
        assert!(refused(&["B=1..9/1", "S=1..8/1"]).contains("more than 64"));
        let none = Buckets::new(&[Bucket { name: "B".to_owned(), bounds: Vec::new() }], &inputs);
        assert!(none.map(drop).unwrap_err().to_string().contains("at least one"));
    }
}
