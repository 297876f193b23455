//! A row of the table of operators.

use std::fmt;

use crate::deduce::{self, Deduce};
use crate::ir::AttributeKind;
use crate::legalise::Legalise;
use crate::operator::{Arguments, Fault, Value};

/// The domain of operators that no file names: importing and rewriting make calls of them.
pub(crate) const OWN_DOMAIN: &str = "tilewright";

/// How many inputs or outputs there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity {
    /// The least number.
    pub least: usize,
    /// The greatest number.
    pub most: usize,
}

impl Arity {
    /// Whether the number is allowed.
    pub fn accepts(self, count: usize) -> bool {
        (self.least..=self.most).contains(&count)
    }
}

impl fmt::Display for Arity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.least, self.most) {
            (least, most) if least == most => write!(f, "{least}"),
            (least, usize::MAX) => write!(f, "at least {least}"),
            (least, most) => write!(f, "{least} to {most}"),
        }
    }
}

/// Computes the outputs of a call, naively and exactly: this is what the operator means.
pub type Evaluate = fn(&Arguments<'_>) -> Result<Vec<Value>, Fault>;

/// Computes the extents of the only result from those of the first input and the elements of the others, which `Arguments` has; the
/// first input is absent there.
pub type Extents = fn(&Arguments<'_>, &[usize]) -> Result<Vec<usize>, Fault>;

/// The order of dimensions in which a kernel computes the result of an operator, where the graph leaves it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultOrder {
    /// That of the largest operand, so that nothing is copied until an operator or the caller needs the graph's order.
    LargestOperand,
    /// That of the first operand.
    FirstOperand,
    /// The graph's: products of matrices read any order, and write rows.
    Rows,
    /// Channels innermost: vectors run along output channels, whose weights are packed once, and any width of a picture fills them.
    Channels {
        /// The input that is the weights.
        weights: usize,
        /// Their dimension that counts the output channels of a group.
        filters: usize,
    },
}

/// An operator.
pub struct Operator {
    /// The name in the text form.
    pub name: &'static str,
    /// ONNX's operator set: empty for its own.
    pub domain: &'static str,
    /// ONNX's name.
    pub onnx: &'static str,
    /// How many inputs there may be, with those that are left out in between.
    pub inputs: Arity,
    /// How many outputs there may be.
    pub outputs: Arity,
    /// Attributes by name.
    pub attributes: &'static [(&'static str, AttributeKind)],
    /// The reference evaluation.
    pub evaluate: Evaluate,
    /// The types of the outputs, before anything is computed.
    pub(crate) deduce: Deduce,
    /// The extents of the result, where deduction before sizes are known cannot follow the inputs that decide them.
    pub extents: Option<Extents>,
    /// Whether equal calls give different results. Such a call is made once for each time that the graph says so.
    pub draws: bool,
    /// The order of dimensions of the result.
    pub result_order: ResultOrder,
    /// The definition of a kernel that computes it, if it has one. Without it, calls are evaluated.
    pub(crate) legalise: Option<Legalise>,
}

impl Operator {
    /// A row with one input and one output and without attributes.
    pub(crate) const fn new(name: &'static str, onnx: &'static str, evaluate: Evaluate) -> Self {
        Operator {
            name,
            domain: "",
            onnx,
            inputs: Arity { least: 1, most: 1 },
            outputs: Arity { least: 1, most: 1 },
            attributes: &[],
            evaluate,
            deduce: deduce::unknown,
            extents: None,
            draws: false,
            result_order: ResultOrder::LargestOperand,
            legalise: None,
        }
    }

    /// The row with types of outputs.
    pub(crate) const fn deduce(mut self, deduce: Deduce) -> Self {
        self.deduce = deduce;
        self
    }

    /// The row with extents from sizes.
    pub(crate) const fn extents(mut self, extents: Extents) -> Self {
        self.extents = Some(extents);
        self
    }

    /// The row with the order of the result.
    pub(crate) const fn result_order(mut self, order: ResultOrder) -> Self {
        self.result_order = order;
        self
    }

    /// The row with the definition of a kernel.
    pub(crate) const fn legalise(mut self, legalise: Legalise) -> Self {
        self.legalise = Some(legalise);
        self
    }

    /// The row of an operator whose results are drawn at random.
    pub(crate) const fn draws(mut self) -> Self {
        self.draws = true;
        self
    }

    /// The row with another number of inputs.
    pub(crate) const fn inputs(mut self, least: usize, most: usize) -> Self {
        self.inputs = Arity { least, most };
        self
    }

    /// The row with another number of outputs.
    pub(crate) const fn outputs(mut self, least: usize, most: usize) -> Self {
        self.outputs = Arity { least, most };
        self
    }

    /// The row with attributes.
    pub(crate) const fn attributes(mut self, attributes: &'static [(&'static str, AttributeKind)]) -> Self {
        self.attributes = attributes;
        self
    }

    /// The row in another of ONNX's operator sets.
    pub(crate) const fn domain(mut self, domain: &'static str) -> Self {
        self.domain = domain;
        self
    }

    /// The kind of an attribute, if the operator has it.
    pub fn attribute(&self, name: &str) -> Option<AttributeKind> {
        self.attributes.iter().find(|(own, _)| *own == name).map(|(_, kind)| *kind)
    }
}

impl PartialEq for Operator {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Short names for the kinds of attributes, for the rows of the table.
pub mod attribute {
    pub use crate::ir::AttributeKind::{
        Element, Float, FloatOr, Floats, Int, IntOr, Ints, Tensor, TextOr, Texts,
    };
}
