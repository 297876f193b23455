//! Calls ahead of those that count: every kernel that sizes within the buckets need is there afterwards.

use tilewright_graph::symbolic::Symbol;
use tilewright_graph::tensor::{ElementType, HostTensor, count};
use tilewright_runtime::background;

use crate::buckets::Bucket;
use crate::error::Error;
use crate::model::Port;
use crate::session::Session;

/// An input with made-up elements: numbers between -1 and 1, or ones, which are valid as indices, lengths, masks and conditions alike.
///
/// # Errors
/// When the elements do not fit into memory, or are of a type without numbers.
pub fn stand_in(port: &Port, shape: &[usize]) -> Result<HostTensor, Error> {
    let element = port.ty.element().unwrap_or(ElementType::F32);
    let length = count(shape)?;
    let number = |place: usize| match element.is_float() {
        true => ((place.wrapping_mul(2_654_435_761) >> 8) % 2001) as f64 / 1000.0 - 1.0,
        false => 1.0,
    };
    let numbers = HostTensor::new(shape, (0..length).map(number).collect())?;
    numbers
        .cast(element)
        .map_err(|error| Error::StandIn { name: port.name.clone(), reason: error.to_string() })
}

impl Session {
    /// Runs the model with made-up inputs at the bounds of its [buckets](crate::Model::with_buckets) and between them, so that later calls with sizes up to
    /// the greatest bounds find their kernels, and weights laid out for them. Gives the number of calls. The first call of each size makes a plan, and compiles
    /// no kernel.
    ///
    /// # Errors
    /// When an input has a named extent without a bucket, or one without a name, and the errors of [`Session::run`].
    pub fn warm_up(&mut self) -> Result<usize, Error> {
        let buckets = self.model().buckets();
        let inputs = self.model().info().inputs.clone();
        let mut calls: Vec<Vec<usize>> = combinations(&buckets, |bucket, place| bucket.bounds[place]);
        calls.extend(combinations(&buckets, size_between));
        calls.sort_unstable();
        calls.dedup();
        for sizes in &calls {
            let size = |symbol: &Symbol| {
                let place = buckets.iter().position(|bucket| bucket.name == symbol.name())?;
                Some(sizes[place] as i64)
            };
            let tensors = inputs.iter().map(|port| stand_in(port, &shape(port, &size)?));
            let tensors = tensors.collect::<Result<Vec<_>, Error>>()?;
            let named: Vec<(&str, &HostTensor)> =
                inputs.iter().zip(&tensors).map(|(port, tensor)| (&*port.name, tensor)).collect();
            self.run(&named)?;
        }
        background::finish();
        Ok(calls.len())
    }
}

/// A size that runs the code of a bucket: one below the bound, unless that is a bound as well.
fn size_between(bucket: &Bucket, place: usize) -> usize {
    let bound = bucket.bounds[place];
    let previous = place.checked_sub(1).map_or(0, |place| bucket.bounds[place]);
    if bound - 1 > previous { bound - 1 } else { bound }
}

/// Sizes of all names, for each combination of bounds.
fn combinations(buckets: &[Bucket], size: impl Fn(&Bucket, usize) -> usize) -> Vec<Vec<usize>> {
    buckets.iter().fold(vec![Vec::new()], |all, bucket| {
        let longer = |known: &Vec<usize>| {
            let sizes = (0..bucket.bounds.len()).map(|place| size(bucket, place));
            sizes.map(|size| known.iter().copied().chain([size]).collect()).collect::<Vec<_>>()
        };
        all.iter().flat_map(longer).collect()
    })
}

/// The shape of an input for sizes of names.
fn shape(port: &Port, size: &dyn Fn(&Symbol) -> Option<i64>) -> Result<Vec<usize>, Error> {
    let refuse = || Error::StandIn {
        name: port.name.clone(),
        reason: format!("it is {}: each extent that is no number needs a name with a bucket", port.ty),
    };
    let extents = port.ty.extents().ok_or_else(refuse)?;
    let extent = |extent: &tilewright_graph::symbolic::SymInt| {
        let size = extent.evaluate(size).and_then(|size| usize::try_from(size).ok());
        size.ok_or_else(refuse)
    };
    extents.iter().map(extent).collect()
}
