//! The report: products that were quantised, products that were not, and the losses.

use std::fmt;

use serde::Serialize;

use crate::loss::Loss;

/// The report of a quantised model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// How many samples calibrated it.
    pub samples: usize,
    /// The products on integers, in order.
    pub layers: Vec<Layer>,
    /// The products that stay in floats, in order.
    pub left: Vec<Left>,
    /// The outputs of the model.
    pub outputs: Vec<OutputLoss>,
}

/// A product on integers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Layer {
    /// The node that it comes from.
    pub node: String,
    /// The operator.
    pub operator: &'static str,
    /// The range of its input that bytes stand for.
    pub range: (f32, f32),
    /// The width of a step of these bytes.
    pub scale: f32,
    /// The signal-to-noise ratio of this product alone, with an input of floats. In decibels; infinite where nothing is lost, which JSON has as `null`.
    pub own_ratio: f64,
    /// Its result beside that in the model of floats, with all products before it quantised.
    pub total: Loss,
}

/// A product that stays in floats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Left {
    /// The node that it comes from.
    pub node: String,
    /// The operator.
    pub operator: &'static str,
    /// Why.
    pub reason: String,
}

/// An output of the model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OutputLoss {
    /// Its name.
    pub name: String,
    /// It beside that of the model of floats.
    pub loss: Loss,
}

impl fmt::Display for Report {
    /// A table, a line for each product and output.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} products on integers, {} in floats; {} calibration samples",
            self.layers.len(),
            self.left.len(),
            self.samples
        )?;
        writeln!(
            f,
            "{:>8}  {:>8}  {:>9}  {:>22}  product",
            "own dB", "total dB", "cosine", "range of the input"
        )?;
        for layer in &self.layers {
            let range = format!("{:.4} … {:.4}", layer.range.0, layer.range.1);
            let Loss { ratio, cosine } = layer.total;
            writeln!(
                f,
                "{:8.1}  {ratio:8.1}  {cosine:9.6}  {range:>22}  {} ({})",
                layer.own_ratio, layer.node, layer.operator
            )?;
        }
        for OutputLoss { name, loss: Loss { ratio, cosine } } in &self.outputs {
            writeln!(f, "{:>8}  {ratio:8.1}  {cosine:9.6}  {:>22}  output `{name}`", "", "")?;
        }
        for Left { node, operator, reason } in &self.left {
            writeln!(f, "{node} ({operator}) stays in floats: {reason}")?;
        }
        Ok(())
    }
}
