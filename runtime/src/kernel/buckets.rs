//! Buckets: sizes of a dimension for which a kernel is tuned, each of which serves all smaller ones down to the next.
//!
//! Where a dimension takes many values, such as the length of a sequence, tuning each is out of the question. With
//! buckets `1, 16, 128` a call with 100 runs code with that dimension symbolic, scheduled as for 128, whose tiles are guarded
//! at their end. It is compiled once for the bucket, not for each size.

use smallvec::SmallVec;
use tilewright_core::tensor::checked_len;

use super::Kernel;
use crate::error::Error;
use crate::settings;

/// The bounds of bucketed dimensions, by their positions among all dimensions, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Buckets(Vec<(usize, Vec<i64>)>);

impl Buckets {
    /// Buckets of no dimension.
    pub(super) const fn none() -> Self {
        Buckets(Vec::new())
    }

    /// The dimensions with bucketed ones raised to the bound of their bucket. `None` where nothing is to be raised, where
    /// a size is beyond the last bound, and where a dimension is empty.
    pub(super) fn raise(&self, dims: &[i64]) -> Option<Vec<i64>> {
        let mut raised = dims.to_vec();
        for (position, bounds) in &self.0 {
            let bound = bounds.iter().find(|bound| **bound >= dims[*position])?;
            raised[*position] = *bound;
        }
        (raised != dims && !dims.contains(&0)).then_some(raised)
    }

    /// The positions of bucketed dimensions.
    pub(super) fn positions(&self) -> SmallVec<[usize; 4]> {
        self.0.iter().map(|(position, _)| *position).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Kernel {
    /// Sets for which sizes of some dimensions the kernel is tuned: a call with another size runs the schedule of the
    /// next greater one, with guards, in code that is shared by all sizes of the bucket. Sizes beyond the last bound, and
    /// exact ones, are treated as if there were no buckets. This replaces earlier buckets; no dimensions, no buckets.
    ///
    /// Every kernel of the process is compiled anew at its next call, so that this is best set before the first.
    ///
    /// ```ignore
    /// matmul::kernel().set_buckets(&[("M", &[1, 16, 128])])?;
    /// let c = matmul(&a, &b)?; // with 100 rows: runs what is scheduled for 128
    /// ```
    ///
    /// # Errors
    /// [`Error::DimensionNames`] when there is no such dimension, it is a `usize` argument, is named twice, or has no
    /// bounds, and when a bound is below 1 or greater than what any tensor can have.
    pub fn set_buckets(&self, buckets: &[(&str, &[i64])]) -> Result<(), Error> {
        if self.state()?.replace_buckets(self.checked(buckets)?) {
            settings::start_generation();
        }
        Ok(())
    }

    /// A new kernel with buckets, which are those of [`Kernel::set_buckets`]. No other kernel is compiled anew.
    ///
    /// # Errors
    /// As [`Kernel::set_buckets`].
    pub fn with_buckets(self, buckets: &[(&str, &[i64])]) -> Result<Self, Error> {
        let buckets = self.checked(buckets)?;
        self.state()?.replace_buckets(buckets);
        Ok(self)
    }

    fn checked(&self, buckets: &[(&str, &[i64])]) -> Result<Buckets, Error> {
        let names = self.dims();
        let names = &names[..self.origin.symbols()];
        let wrong = |problem: String| {
            let expected = if names.is_empty() { "no dimensions".to_owned() } else { names.join(", ") };
            Error::DimensionNames { kernel: self.name().to_owned(), expected, problem }
        };
        let mut known: Vec<(usize, Vec<i64>)> = Vec::new();
        for (name, bounds) in buckets {
            let position = names.iter().position(|known| known == name);
            let position = position.ok_or_else(|| wrong(format!("`{name}` can have no buckets")))?;
            if known.iter().any(|(other, _)| *other == position) {
                return Err(wrong(format!("`{name}` is given twice")));
            }
            if let Some(bound) = bounds.iter().find(|bound| **bound < 1) {
                return Err(wrong(format!("{bound} is no bound of `{name}`")));
            }
            if bounds.is_empty() {
                return Err(wrong(format!("`{name}` has no bounds; leave it out where it has no buckets")));
            }
            if let Some(bound) = bounds.iter().find(|bound| !self.can_have(position, **bound)) {
                return Err(wrong(format!("{bound} is no bound of `{name}`: no tensor can be that large")));
            }
            let mut bounds = bounds.to_vec();
            bounds.sort_unstable();
            bounds.dedup();
            known.push((position, bounds));
        }
        known.sort();
        Ok(Buckets(known))
    }

    /// Whether the tensors with this dimension fit into memory of any size, as far as it can be determined without the others.
    fn can_have(&self, position: usize, bound: i64) -> bool {
        let shapes = self.origin.shapes_with(position, bound);
        shapes.iter().all(|(shape, element_bytes)| checked_len(shape, *element_bytes).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_raised_to_the_next_bound() {
        let buckets = Buckets(vec![(0, vec![1, 16, 128])]);
        let raised = |size: i64| buckets.raise(&[size, 7]).map(|dims| dims[0]);
        assert_eq!(
            [raised(2), raised(15), raised(17), raised(127)],
            [Some(16), Some(16), Some(128), Some(128)]
        );
        assert_eq!([raised(0), raised(1), raised(16), raised(128), raised(129)], [None; 5]);
        assert_eq!(buckets.raise(&[5, 0]), None);
        assert_eq!(Buckets::default().raise(&[5, 7]), None);
    }
}
