//! Running a function on samples, and what is observed there.

use rustc_hash::FxHashMap;
use tilewright_graph::ir::{Function, ValueId};
use tilewright_graph::tensor::HostTensor;
use tilewright_session::{Model, Session};

use crate::error::Error;
use crate::options::Method;
use crate::product::Product;
use crate::range::{Histogram, Observed, Range};

/// One set of inputs of a model: tensors with the names of inputs.
pub type Sample = Vec<(String, HostTensor)>;

/// A function that gives values of its body besides its results, ready to run.
pub(crate) struct Tapped {
    session: Session,
    /// How many results the function has without them.
    results: usize,
}

impl Tapped {
    /// The function with more results.
    pub(crate) fn new(function: &Function, values: &[ValueId]) -> Result<Self, Error> {
        let mut tapped = function.clone();
        tapped.body.results.extend(values);
        let model = Model::from_function(&tapped).map_err(|error| Error::Session(Box::new(error)))?;
        Ok(Tapped { session: Session::new(&model), results: function.body.results.len() })
    }

    /// The tapped values for a sample, then the function's own results.
    pub(crate) fn run(
        &mut self,
        sample: usize,
        inputs: &Sample,
    ) -> Result<(Vec<HostTensor>, Vec<HostTensor>), Error> {
        let inputs: Vec<(&str, &HostTensor)> =
            inputs.iter().map(|(name, tensor)| (&name[..], tensor)).collect();
        let outputs =
            self.session.run(&inputs).map_err(|source| Error::Run { sample, source: Box::new(source) })?;
        let mut own: Vec<HostTensor> = outputs.iter().map(|(_, tensor)| tensor.clone()).collect();
        let tapped = own.split_off(self.results);
        Ok((tapped, own))
    }
}

/// The numbers that reach the products of a function, by the value that holds them.
pub(crate) fn observe(
    function: &Function,
    products: &[Product],
    samples: &[Sample],
    method: Method,
) -> Result<FxHashMap<ValueId, Observed>, Error> {
    let mut values: Vec<ValueId> = products.iter().map(|product| product.input).collect();
    values.sort_unstable();
    values.dedup();
    let mut tapped = Tapped::new(function, &values)?;
    let mut observed: Vec<Observed> =
        values.iter().map(|_| Observed { range: Range::ZERO, count: 0, histogram: None }).collect();
    for (sample, inputs) in samples.iter().enumerate() {
        let (tensors, _) = tapped.run(sample, inputs)?;
        for ((&value, observed), tensor) in values.iter().zip(&mut observed).zip(&tensors) {
            let numbers = tensor.as_slice::<f32>().unwrap_or_default();
            if let Some(&number) = numbers.iter().find(|number| !number.is_finite()) {
                let reader = products.iter().find(|product| product.input == value);
                let node = reader.map_or_else(String::new, |product| product.node.clone());
                return Err(Error::NotFinite { sample, value: function.describe(value), node, number });
            }
            observed.range = numbers.iter().fold(observed.range, |range, &number| range.with(number));
            observed.count += numbers.len() as u64;
        }
    }
    if method != Method::MinMax {
        // The bins of a histogram need the extremes first.
        for observed in &mut observed {
            observed.histogram = Some(Histogram::new(observed.range.reach()));
        }
        for (sample, inputs) in samples.iter().enumerate() {
            let (tensors, _) = tapped.run(sample, inputs)?;
            for (observed, tensor) in observed.iter_mut().zip(&tensors) {
                let histogram = observed.histogram.as_mut().expect("every value has a histogram");
                tensor.as_slice::<f32>().unwrap_or_default().iter().for_each(|&number| histogram.add(number));
            }
        }
    }
    Ok(values.into_iter().zip(observed).collect())
}
