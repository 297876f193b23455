//! The steps from a model of floats to one of integers.

use rustc_hash::FxHashMap;
use tilewright_graph::ir::{Function, ValueId};
use tilewright_graph::pass::optimise;
use tilewright_graph::tensor::HostTensor;

use crate::affine::{Affine, integers};
use crate::calibrate::{Sample, Tapped, observe};
use crate::error::Error;
use crate::insert::{self, Choice, Chosen};
use crate::loss::Difference;
use crate::options::Options;
use crate::product::{Product, products};
use crate::range::{Observed, Range};
use crate::report::{Layer, Left, OutputLoss, Report};

/// A quantised model.
#[derive(Clone, Debug)]
pub struct Quantised {
    /// The function: products between conversions. Its parameters and results are those of the function of floats, in the same order.
    pub function: Function,
    /// The products that were quantised, and their losses.
    pub report: Report,
}

/// Quantises the products of a function with constant weights. `samples` are inputs like those that the model will see.
///
/// # Errors
/// When there are no samples, one does not fit the function or gives numbers that are not finite, and when no product can be quantised.
pub fn quantise(function: &Function, samples: &[Sample], options: &Options) -> Result<Quantised, Error> {
    if samples.is_empty() {
        return Err(Error::NoSamples);
    }
    let function = optimise(function)?;
    let (mut products, mut left) = products(&function);
    keep(&mut products, &mut left, options)?;
    if products.is_empty() {
        return Err(none(&left));
    }
    let observed = observe(&function, &products, samples, options.method)?;
    let mut chosen = Vec::new();
    for product in &products {
        let observed = &observed[&product.input];
        match choose(product, observed, options) {
            Some(choice) => chosen.push((product, choice)),
            None => left.push(left_over(product, "no sample gives its input an element")),
        }
    }
    let ratios = correct(&function, &mut chosen, &mut left, samples, options)?;
    if chosen.is_empty() {
        return Err(none(&left));
    }
    let report = measure(&function, &chosen, samples)?;
    let layers =
        chosen.iter().zip(&ratios).zip(&report.layers).map(|(((product, choice), &own_ratio), total)| {
            let Range { low, high } = observed[&product.input].kept(options.method, options.activations);
            Layer {
                node: product.node.clone(),
                operator: product.operator,
                range: (low, high),
                scale: choice.input.scale,
                own_ratio,
                total: total.loss(),
            }
        });
    let names = function.body.results.iter().map(|&result| function.describe(result));
    let outputs = names.zip(&report.outputs).map(|(name, loss)| OutputLoss { name, loss: loss.loss() });
    let order: FxHashMap<&str, usize> =
        products.iter().map(|product| (&product.node[..], product.place)).collect();
    left.sort_by_key(|left| order.get(&left.node[..]).copied());
    let (layers, outputs) = (layers.collect(), outputs.collect());
    Ok(Quantised {
        function: report.function,
        report: Report { samples: samples.len(), layers, left, outputs },
    })
}

fn none(left: &[Left]) -> Error {
    let line = |left: &Left| format!("\n  {} ({}): {}", left.node, left.operator, left.reason);
    let lines: String = left.iter().map(line).collect();
    Error::NoProducts(if lines.is_empty() { " the model has none".to_owned() } else { lines })
}

fn left_over(product: &Product, reason: &str) -> Left {
    Left { node: product.node.clone(), operator: product.operator, reason: reason.to_owned() }
}

/// Takes out the products that the caller keeps in floats.
fn keep(products: &mut Vec<Product>, left: &mut Vec<Left>, options: &Options) -> Result<(), Error> {
    for node in &options.keep {
        if !products.iter().any(|product| product.node == *node)
            && !left.iter().any(|left| left.node == *node)
        {
            let known =
                products.iter().map(|product| format!("`{}`", product.node)).collect::<Vec<_>>().join(", ");
            return Err(Error::UnknownNode { node: node.clone(), known });
        }
    }
    products.retain(|product| {
        let is_kept = options.keep.contains(&product.node);
        if is_kept {
            left.push(left_over(product, "the caller keeps it"));
        }
        !is_kept
    });
    Ok(())
}

/// How a product is quantised, before errors are corrected.
fn choose(product: &Product, observed: &Observed, options: &Options) -> Option<Choice> {
    if observed.count == 0 {
        return None;
    }
    let input = Affine::of(observed.kept(options.method, options.activations), options.activations);
    Some(with_bias(product, input, product.bias().to_vec(), options))
}

/// A choice whose weights have scales for a bias.
fn with_bias(product: &Product, input: Affine, bias: Vec<f32>, options: &Options) -> Choice {
    // The bias of a product of matrices is added to numbers.
    let own: &[f32] = if product.operator == "matmul" { &[] } else { &bias };
    let weights = product.weights.as_slice::<f32>().expect("weights are 32-bit floats");
    let extents = (product.channels(), product.inner());
    let weights = integers(weights, extents, options.weights, input.scale, own);
    Choice { input, weights, bias }
}

/// Measures each product alone, takes out those that lose too much, and moves the mean error of each channel into the bias. Gives the
/// signal-to-noise ratio of each product that is left.
fn correct(
    function: &Function,
    chosen: &mut Vec<Chosen<'_>>,
    left: &mut Vec<Left>,
    samples: &[Sample],
    options: &Options,
) -> Result<Vec<f64>, Error> {
    let (both, values) = insert::beside(function, chosen)?;
    let mut tapped = Tapped::new(&both, &values)?;
    let mut differences = vec![Difference::default(); chosen.len()];
    for (sample, inputs) in samples.iter().enumerate() {
        let (tensors, _) = tapped.run(sample, inputs)?;
        for (((product, _), difference), pair) in
            chosen.iter().zip(&mut differences).zip(tensors.chunks_exact(2))
        {
            add_pair(difference, &pair[0], &pair[1], product.channels(), product.inner_of(pair[0].shape()));
        }
    }
    let mut ratios = Vec::new();
    let mut differences = differences.into_iter();
    chosen.retain_mut(|(product, choice)| {
        let difference = differences.next().expect("every product was measured");
        let ratio =
            if options.bias_correction { difference.corrected_ratio() } else { difference.loss().ratio };
        if options.least_ratio.is_some_and(|least| ratio < least) {
            left.push(left_over(product, &format!("its signal-to-noise ratio would be {ratio:.1} dB")));
            return false;
        }
        let means = difference.means();
        if options.bias_correction && means.iter().any(|&mean| mean != 0.0) {
            let mut bias = std::mem::take(&mut choice.bias);
            bias.resize(means.len(), 0.0);
            bias.iter_mut().zip(means).for_each(|(bias, mean)| *bias -= mean);
            *choice = with_bias(product, choice.input, bias, options);
        }
        ratios.push(ratio);
        true
    });
    Ok(ratios)
}

/// The quantised function, and how far its values are from those of floats.
struct Measured {
    function: Function,
    layers: Vec<Difference>,
    outputs: Vec<Difference>,
}

fn measure(function: &Function, chosen: &[Chosen<'_>], samples: &[Sample]) -> Result<Measured, Error> {
    let (quantised, values) = insert::replace(function, chosen)?;
    let results: Vec<ValueId> = chosen.iter().map(|(product, _)| product.result()).collect();
    let (mut floats, mut integers) = (Tapped::new(function, &results)?, Tapped::new(&quantised, &values)?);
    let mut layers = vec![Difference::default(); chosen.len()];
    let mut outputs = vec![Difference::default(); function.body.results.len()];
    for (sample, inputs) in samples.iter().enumerate() {
        let (exact, exact_outputs) = floats.run(sample, inputs)?;
        let (found, found_outputs) = integers.run(sample, inputs)?;
        let pairs = layers.iter_mut().chain(&mut outputs);
        let tensors = exact.iter().chain(&exact_outputs).zip(found.iter().chain(&found_outputs));
        for (difference, (exact, found)) in pairs.zip(tensors) {
            add_pair(difference, exact, found, 1, 1);
        }
    }
    Ok(Measured { function: quantised, layers, outputs })
}

/// Adds two tensors of floats; others, and those whose shape depends on the numbers, are not compared.
fn add_pair(
    difference: &mut Difference,
    exact: &HostTensor,
    found: &HostTensor,
    channels: usize,
    inner: usize,
) {
    if let (Some(x), Some(y)) = (exact.as_slice::<f32>(), found.as_slice::<f32>())
        && exact.shape() == found.shape()
    {
        difference.add(x, y, channels, inner);
    }
}
