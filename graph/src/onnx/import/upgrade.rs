//! Nodes of any version in the form of the newest.
//!
//! Over the years, attributes became inputs, defaults changed and operators were renamed. This file expresses a node of an old version
//! as calls to the operators of the table.

use crate::build::GraphBuilder;
use crate::ir::{Attribute, Attributes, ValueId};
use crate::onnx::import::{meaning, quantised};
use crate::operator;
use crate::symbolic::SymInt;
use crate::tensor::{ElementType, HostTensor};

/// Why a node cannot be translated.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refusal(pub(super) String);

/// A node to be translated.
pub(super) struct Node<'n> {
    pub(super) domain: &'n str,
    pub(super) operator: &'n str,
    /// The version of ONNX's operator set that the node is written in.
    pub(super) version: i64,
    pub(super) inputs: Vec<Option<ValueId>>,
    pub(super) attributes: Attributes,
    /// Whether each output has a name, so that something may read it.
    pub(super) used: Vec<bool>,
}

/// The greatest extent that translations compute with, so that sums and products of two do not overflow.
pub(super) const GREATEST_EXTENT: i64 = i32::MAX as i64;

/// An extent that is a number. One that no tensor has counts as unknown.
pub(super) fn known_extent(extent: &SymInt) -> Option<i64> {
    extent.as_constant().filter(|&extent| extent <= GREATEST_EXTENT)
}

impl Node<'_> {
    /// An attribute that is an integer, if it is given.
    pub(super) fn int(&mut self, name: &str) -> Result<Option<i64>, Refusal> {
        match self.attributes.take(name) {
            None => Ok(None),
            Some(Attribute::Int(value)) => Ok(Some(value)),
            Some(_) => Err(Refusal(format!("attribute {name} must be an integer"))),
        }
    }

    /// An attribute that counts elements or dimensions, if it is given. A greater count than [`GREATEST_EXTENT`] is taken for that.
    pub(super) fn count(&mut self, name: &str) -> Result<Option<i64>, Refusal> {
        Ok(self.int(name)?.map(|count| count.clamp(-GREATEST_EXTENT, GREATEST_EXTENT)))
    }
}

/// The newest name of an operator that was renamed, or has another name in files of ONNX Runtime.
pub(super) fn renamed(operator: &str) -> Option<&'static str> {
    match operator {
        "Upsample" => Some("Resize"),
        "Scatter" => Some("ScatterElements"),
        // ONNX Runtime puts its own name into ONNX's operator set.
        "SimplifiedLayerNormalization" => Some("RMSNormalization"),
        _ => None,
    }
}

/// Attributes that became inputs: operator, the version since which they are, and the attribute of each input, the first
/// of which stands at the given place.
const BECAME_INPUTS: &[(&str, i64, usize, &[&str])] = &[
    ("Squeeze", 13, 1, &["axes"]),
    ("Unsqueeze", 13, 1, &["axes"]),
    ("ReduceSum", 13, 1, &["axes"]),
    ("ReduceL1", 18, 1, &["axes"]),
    ("ReduceL2", 18, 1, &["axes"]),
    ("ReduceLogSum", 18, 1, &["axes"]),
    ("ReduceLogSumExp", 18, 1, &["axes"]),
    ("ReduceMax", 18, 1, &["axes"]),
    ("ReduceMean", 18, 1, &["axes"]),
    ("ReduceMin", 18, 1, &["axes"]),
    ("ReduceProd", 18, 1, &["axes"]),
    ("ReduceSumSquare", 18, 1, &["axes"]),
    ("Slice", 10, 1, &["starts", "ends", "axes"]),
    ("TopK", 10, 1, &["k"]),
    ("Clip", 11, 1, &["min", "max"]),
    ("Pad", 11, 1, &["pads", "value"]),
    ("Dropout", 12, 1, &["ratio"]),
    ("Split", 13, 1, &["split"]),
    ("Upsample", 9, 1, &["scales"]),
    ("DFT", 20, 2, &["axis"]),
];

/// Attributes of old versions whose only supported value is what the newest version does anyway.
const SETTLED: &[(&str, &str, i64)] = &[("BatchNormalization", "spatial", 1)];

impl Node<'_> {
    /// Adds the calls that the node means.
    pub(super) fn translate(mut self, builder: &mut GraphBuilder) -> Result<Vec<ValueId>, Refusal> {
        if self.domain.is_empty() {
            if self.operator == "Constant" {
                return self.constant(builder);
            }
            self.settle()?;
            self.attributes_to_inputs(builder)?;
            match self.operator {
                "Softmax" | "LogSoftmax" | "Hardmax" if self.version < 13 => {
                    return self.flattened_softmax(builder);
                }
                "Upsample" => self.upsample(),
                "Resize" if self.version < 11 => self.upsample(),
                "TopK" if self.version < 11 => self.set_default("largest", Attribute::Int(1)),
                _ => {}
            }
        }
        if quantised::is_known(self.domain, self.operator) {
            return quantised::translate(self, builder);
        }
        if let Some(translate) = meaning::find(self.domain, self.operator) {
            return meaning::translate(self, builder, translate);
        }
        self.call(builder)
    }

    fn call(self, builder: &mut GraphBuilder) -> Result<Vec<ValueId>, Refusal> {
        let name = renamed(self.operator).filter(|_| self.domain.is_empty()).unwrap_or(self.operator);
        let Some(operator) = operator::find_onnx(self.domain, name) else {
            return Err(Refusal(format!("the operator {name} is not known")));
        };
        // `split` cuts into as many parts as it has outputs, also such as have no name.
        let outputs = match operator.outputs.most {
            usize::MAX => self.used.len(),
            _ => self
                .used
                .iter()
                .rposition(|&used| used)
                .map_or(0, |last| last + 1)
                .max(operator.outputs.least),
        };
        Ok(builder.call_operator(operator.name, self.inputs, self.attributes, outputs.max(1))?)
    }

    fn set_default(&mut self, name: &str, value: Attribute) {
        if self.attributes.get(name).is_none() {
            self.attributes.set(name, value);
        }
    }

    /// Removes attributes that the newest version has no more.
    fn settle(&mut self) -> Result<(), Refusal> {
        for &(operator, name, supported) in SETTLED {
            let given = if operator == self.operator { self.attributes.take(name) } else { None };
            if given.is_some_and(|value| value != Attribute::Int(supported)) {
                return Err(Refusal(format!("attribute {name} must be {supported}")));
            }
        }
        Ok(())
    }

    /// Makes constants of attributes that became inputs.
    fn attributes_to_inputs(&mut self, builder: &mut GraphBuilder) -> Result<(), Refusal> {
        let Some(&(_, _, first, names)) = BECAME_INPUTS
            .iter()
            .find(|(operator, since, ..)| *operator == self.operator && self.version < *since)
        else {
            return Ok(());
        };
        for (place, name) in names.iter().enumerate() {
            let Some(value) = self.attributes.take(name) else { continue };
            let tensor = match value {
                Attribute::Ints(values) => HostTensor::vector(values),
                Attribute::Int(value) => HostTensor::scalar(value),
                Attribute::Floats(values) => HostTensor::vector(values),
                Attribute::Float(value) => self.as_element_of_input(builder, value)?,
                other => return Err(Refusal(format!("attribute {name} cannot be {other:?}"))),
            };
            self.inputs.resize(self.inputs.len().max(first + place + 1), None);
            self.inputs[first + place] = Some(builder.constant(tensor));
        }
        Ok(())
    }

    /// A number with the element type of the first input, as bounds and fill values must have.
    fn as_element_of_input(&self, builder: &GraphBuilder, value: f32) -> Result<HostTensor, Refusal> {
        let element = self.inputs.first().copied().flatten().and_then(|input| builder.ty(input).element());
        let scalar = HostTensor::scalar(value);
        scalar.cast(element.unwrap_or(ElementType::F32)).map_err(|error| Refusal(error.to_string()))
    }

    /// The values of a node that is a constant.
    fn constant(self, builder: &mut GraphBuilder) -> Result<Vec<ValueId>, Refusal> {
        let Some((name, value)) = self.attributes.iter().next() else {
            return Err(Refusal("a constant without a value".to_owned()));
        };
        let tensor = match value {
            Attribute::Tensor(tensor) => tensor.clone(),
            Attribute::Int(value) => HostTensor::scalar(*value),
            Attribute::Float(value) => HostTensor::scalar(*value),
            Attribute::Ints(values) => HostTensor::vector(values.clone()),
            Attribute::Floats(values) => HostTensor::vector(values.clone()),
            Attribute::Text(value) => HostTensor::scalar(value.clone()),
            Attribute::Texts(values) => HostTensor::vector(values.clone()),
            Attribute::Element(_) => return Err(Refusal(format!("attribute {name} is no value"))),
        };
        Ok(vec![builder.constant(tensor)])
    }

    /// Before version 13, softmax went over all dimensions from `axis` on, taken as one.
    fn flattened_softmax(mut self, builder: &mut GraphBuilder) -> Result<Vec<ValueId>, Refusal> {
        self.set_default("axis", Attribute::Int(1));
        let Some(&Some(x)) = self.inputs.first() else {
            return Err(Refusal("the input is missing".to_owned()));
        };
        let Some(Attribute::Int(axis)) = self.attributes.get("axis").cloned() else {
            return Err(Refusal("attribute axis must be an integer".to_owned()));
        };
        let rank = builder.ty(x).extents().map(|extents| extents.len() as i64);
        if axis == -1 || rank.is_some_and(|rank| axis == rank - 1) {
            return self.call(builder);
        }
        let shape = builder.call("shape", &[x], Attributes::none())?;
        let flat = builder.call("flatten", &[x], Attributes::none().with("axis", Attribute::Int(axis)))?;
        self.inputs[0] = Some(flat);
        self.attributes.set("axis", Attribute::Int(-1));
        let results = self.call(builder)?;
        let allow_zero = Attributes::none().with("allowzero", Attribute::Int(1));
        Ok(vec![builder.call("reshape", &[results[0], shape], allow_zero)?])
    }

    /// The first versions of Resize, and Upsample before it: scales only, without an offset of half a pixel.
    fn upsample(&mut self) {
        let scales = self.inputs.get(1).copied().flatten();
        self.inputs.truncate(1);
        self.inputs.extend([None, scales]);
        self.set_default("coordinate_transformation_mode", Attribute::Text("asymmetric".into()));
        self.set_default("nearest_mode", Attribute::Text("floor".into()));
    }
}
