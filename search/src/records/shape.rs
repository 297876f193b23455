//! The shape that a kernel was tuned for.

use std::collections::BTreeMap;
use std::fmt;

/// Values of a kernel's symbolic dimensions and compile-time parameters, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    /// Dimensions, such as `M`. A schedule for one value serves another.
    pub dims: BTreeMap<String, i64>,
    /// Compile-time parameters, such as `stride`. Another value makes another computation.
    pub params: BTreeMap<String, i64>,
}

impl Shape {
    /// A shape without compile-time parameters.
    pub fn of_dims<'a>(dims: impl IntoIterator<Item = (&'a str, i64)>) -> Self {
        let dims = dims.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Shape { dims, params: BTreeMap::new() }
    }

    /// The distance to another shape: the sum over the dimensions of |ln(this / that)|, so that twice and half
    /// as large are equally far. `None` when the dimensions have other names or a parameter differs.
    ///
    /// Empty dimensions count as one, which they are closest to.
    pub fn distance(&self, other: &Shape) -> Option<f64> {
        if self.params != other.params || !self.dims.keys().eq(other.dims.keys()) {
            return None;
        }
        let ratio = |(a, b): (&i64, &i64)| ((*a).max(1) as f64 / (*b).max(1) as f64).ln().abs();
        Some(self.dims.values().zip(other.dims.values()).map(ratio).sum())
    }
}

/// `M=128, N=64; stride=2`
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: &BTreeMap<String, i64>| {
            values.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
        };
        f.write_str(&list(&self.dims))?;
        if !self.params.is_empty() {
            write!(f, "; {}", list(&self.params))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(m: i64, n: i64) -> Shape {
        Shape::of_dims([("M", m), ("N", n)])
    }

    #[test]
    fn distance_is_symmetric_in_the_logarithm() {
        let base = shape(64, 64);
        assert_eq!(base.distance(&base), Some(0.0));
        let (twice, half) = (base.distance(&shape(128, 64)), base.distance(&shape(32, 64)));
        assert!((twice.unwrap() - half.unwrap()).abs() < 1e-12, "{twice:?} {half:?}");
        assert!(base.distance(&shape(64, 65)) < base.distance(&shape(66, 64)));
        assert_eq!(shape(0, 1).distance(&shape(1, 1)), Some(0.0));
    }

    #[test]
    fn other_names_or_parameters_are_no_neighbours() {
        let mut strided = shape(4, 4);
        strided.params.insert("stride".into(), 2);
        assert_eq!(strided.distance(&shape(4, 4)), None);
        assert_eq!(shape(4, 4).distance(&Shape::of_dims([("M", 4), ("K", 4)])), None);
        assert_eq!(strided.distance(&strided.clone()), Some(0.0));
        assert_eq!(strided.to_string(), "M=4, N=4; stride=2");
    }
}
