//! Normalisations as exporters write them.

use super::*;

/// A graph of a tensor of rows of six numbers.
struct Rows {
    graph: GraphBuilder,
    x: ValueId,
}

impl Rows {
    fn new() -> Self {
        let mut graph = GraphBuilder::new("normalise");
        let x = parameter(&mut graph, &[SymInt::symbol("N"), 3.into(), 6.into()]);
        Rows { graph, x }
    }

    fn call(&mut self, name: &str, inputs: &[ValueId]) -> ValueId {
        self.graph.call(name, inputs, Attributes::none()).unwrap()
    }

    fn number(&mut self, number: f32) -> ValueId {
        self.graph.constant(HostTensor::scalar(number))
    }

    fn mean(&mut self, value: ValueId, axes: &[i64]) -> ValueId {
        let axes = self.graph.constant(HostTensor::vector(axes.to_vec()));
        self.call("reduce_mean", &[value, axes])
    }

    /// The root of the mean of squares and a small number.
    fn root(&mut self, squares: ValueId, axes: &[i64]) -> ValueId {
        let (variance, epsilon) = (self.mean(squares, axes), self.number(1e-6));
        let sum = self.call("add", &[variance, epsilon]);
        self.call("sqrt", &[sum])
    }

    fn squares(&mut self, value: ValueId) -> ValueId {
        let two = self.number(2.0);
        self.call("pow", &[value, two])
    }

    /// The names of what a result takes after all passes. The optimised function computes the same.
    fn names(self, result: ValueId) -> Vec<&'static str> {
        let function = self.graph.finish(vec![result]).unwrap();
        names(&optimised(&function, &numbers(&[2, 3, 6])))
    }
}

fn weights() -> HostTensor {
    HostTensor::vector(vec![0.5f32, -1.0, 2.0, 0.25, 3.0, 1.0])
}

#[test]
fn a_layer_normalisation_has_its_scale_and_offset() {
    let mut rows = Rows::new();
    let means = rows.mean(rows.x, &[-1]);
    let distances = rows.call("sub", &[rows.x, means]);
    let squares = rows.squares(distances);
    let root = rows.root(squares, &[-1]);
    let quotient = rows.call("div", &[distances, root]);
    let (scale, offset) = (rows.graph.constant(weights()), rows.graph.constant(weights()));
    let scaled = rows.call("mul", &[scale, quotient]);
    let result = rows.call("add", &[scaled, offset]);
    assert_eq!(rows.names(result), ["layer_normalization"]);
}

#[test]
fn two_innermost_dimensions_are_normalised_together() {
    let mut rows = Rows::new();
    let means = rows.mean(rows.x, &[2, 1]);
    let distances = rows.call("sub", &[rows.x, means]);
    let squares = rows.call("mul", &[distances, distances]);
    let root = rows.root(squares, &[-2, -1]);
    let result = rows.call("div", &[distances, root]);
    assert_eq!(rows.names(result), ["layer_normalization"]);
}

#[test]
fn a_normalisation_by_the_root_mean_square_multiplies_by_the_reciprocal() {
    for is_quotient in [false, true] {
        let mut rows = Rows::new();
        let squares = rows.squares(rows.x);
        let root = rows.root(squares, &[2]);
        let inverse = if is_quotient {
            let one = rows.number(1.0);
            rows.call("div", &[one, root])
        } else {
            rows.call("reciprocal", &[root])
        };
        let normalised = rows.call("mul", &[rows.x, inverse]);
        let scale = rows.graph.constant(weights());
        let scaled = rows.call("mul", &[normalised, scale]);
        let result = rows.call("add", &[scaled, scale]);
        assert_eq!(rows.names(result), ["rms_normalization", "add"]);
    }
}

#[test]
fn other_quotients_stay() {
    // The mean of another dimension.
    let mut rows = Rows::new();
    let squares = rows.squares(rows.x);
    let root = rows.root(squares, &[1]);
    let result = rows.call("div", &[rows.x, root]);
    assert!(rows.names(result).contains(&"div"));
    // The squares of another value.
    let mut rows = Rows::new();
    let other = rows.call("abs", &[rows.x]);
    let squares = rows.squares(other);
    let root = rows.root(squares, &[2]);
    let result = rows.call("div", &[rows.x, root]);
    assert!(rows.names(result).contains(&"div"));
    // A root that is used elsewhere, too.
    let mut rows = Rows::new();
    let squares = rows.squares(rows.x);
    let root = rows.root(squares, &[2]);
    let quotient = rows.call("div", &[rows.x, root]);
    let result = rows.call("add", &[quotient, root]);
    assert!(rows.names(result).contains(&"div"));
}
