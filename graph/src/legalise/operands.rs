//! The inputs and attributes of one call.

use crate::ir::{Attribute, AttributeKind, Call, ValueId};
use crate::legalise::emitter::{Emitter, Tensor};
use crate::legalise::{Decisions, Fusion, Unsupported, unsupported};
use crate::operator::{Arguments, Value, axis};
use crate::symbolic::SymInt;
use crate::tensor::{ElementType, HostTensor};

/// The inputs and attributes of one call. Attributes that are not given have the defaults of the table.
pub(crate) struct Operands<'a> {
    call: &'a Call,
    /// How many outputs are used.
    pub(super) outputs: usize,
    fusion: &'a Fusion<'a>,
    decisions: Decisions,
}

impl<'a> Operands<'a> {
    pub(super) fn of(call: &'a Call, outputs: usize, fusion: &'a Fusion<'a>, decisions: Decisions) -> Self {
        Operands { call, outputs, fusion, decisions }
    }

    /// The operator's name.
    pub(super) fn name(&self) -> &'static str {
        self.call.operator.name
    }

    /// The number of inputs, with those that are left out.
    pub(super) fn len(&self) -> usize {
        self.call.inputs.len()
    }

    fn id(&self, place: usize) -> Option<ValueId> {
        self.call.inputs.get(place).copied().flatten()
    }

    /// An input, if it is given.
    pub(super) fn optional(
        &self,
        emitter: &mut Emitter,
        place: usize,
    ) -> Result<Option<Tensor>, Unsupported> {
        self.id(place).map(|value| emitter.tensor(value)).transpose()
    }

    /// An input.
    pub(super) fn tensor(&self, emitter: &mut Emitter, place: usize) -> Result<Tensor, Unsupported> {
        match self.optional(emitter, place)? {
            Some(tensor) => Ok(tensor),
            None => Err(Unsupported::Fault(format!("input {place} is missing"))),
        }
    }

    /// As [`Operands::optional`], and nothing is computed ahead of calls from the input, see [`Emitter::keep_packed`].
    pub(super) fn packed(&self, emitter: &mut Emitter, place: usize) -> Result<Option<Tensor>, Unsupported> {
        self.id(place).into_iter().for_each(|value| emitter.keep_packed(value));
        self.optional(emitter, place)
    }

    /// The elements of an input, if it is given.
    ///
    /// # Errors
    /// When they are not known before the program runs.
    pub(super) fn contents(&self, place: usize) -> Result<Option<&'a HostTensor>, Unsupported> {
        let Some(value) = self.id(place) else { return Ok(None) };
        let signature = self.fusion.inputs.get(&value);
        match signature.and_then(|signature| Some((signature, signature.contents.as_ref()?))) {
            Some((signature, contents)) => {
                signature.note_contents(&self.decisions);
                contents.load().map_err(|error| Unsupported::Fault(error.to_string()))?;
                Ok(Some(contents))
            }
            None => unsupported!("input {place} of {} is not known before it runs", self.name()),
        }
    }

    /// The elements of an input as integers over the dimensions of the program, if it is given.
    ///
    /// # Errors
    /// As [`Operands::contents`].
    pub(super) fn optional_symbols(&self, place: usize) -> Result<Option<Vec<SymInt>>, Unsupported> {
        let signature = self.id(place).and_then(|value| self.fusion.inputs.get(&value));
        match signature.and_then(|signature| signature.integers.clone()) {
            Some(integers) => Ok(Some(integers)),
            None => Ok(self.optional_integers(place)?.map(|all| all.into_iter().map(SymInt::from).collect())),
        }
    }

    /// The elements of an input as integers over the dimensions of the program.
    ///
    /// # Errors
    /// As [`Operands::contents`], and when the input is missing.
    pub(super) fn symbols(&self, place: usize) -> Result<Vec<SymInt>, Unsupported> {
        let symbols = self.optional_symbols(place)?;
        symbols.ok_or_else(|| Unsupported::Fault(format!("input {place} is missing")))
    }

    /// An input whose elements are known, as an evaluation reads it.
    pub(super) fn value(&self, place: usize) -> Result<Option<Value>, Unsupported> {
        Ok(self.contents(place)?.map(|contents| Value::Tensor(contents.clone())))
    }

    /// Whether an input is left out, or known to have zeros alone.
    pub(super) fn is_zero(&self, place: usize) -> bool {
        let Some(value) = self.id(place) else { return true };
        let signature = self.fusion.inputs.get(&value);
        signature.inspect(|signature| signature.note_contents(&self.decisions));
        let contents = signature.and_then(|signature| signature.contents.as_ref());
        let contents = contents.filter(|contents| contents.load().is_ok());
        let numbers = contents.and_then(|contents| contents.cast(ElementType::F64).ok());
        numbers.is_some_and(|numbers| {
            numbers.as_slice::<f64>().is_some_and(|numbers| numbers.iter().all(|&number| number == 0.0))
        })
    }

    /// Whether the elements of an input are known before the program runs.
    pub(super) fn is_known(&self, place: usize) -> bool {
        self.contents(place).is_ok_and(|contents| contents.is_some())
    }

    /// Whether all elements of an input are known to be integers of at most some size.
    pub(super) fn is_at_most(&self, place: usize, most: i64) -> bool {
        let known = self.optional_integers(place).ok().flatten();
        known.is_some_and(|numbers| numbers.iter().all(|number| number.saturating_abs() <= most))
    }

    /// Whether the operator has an attribute.
    pub(super) fn has(&self, name: &str) -> bool {
        self.call.operator.attribute(name).is_some()
    }

    /// The elements of an input as integers, if it is given.
    pub(super) fn optional_integers(&self, place: usize) -> Result<Option<Vec<i64>>, Unsupported> {
        let Some(contents) = self.contents(place)? else { return Ok(None) };
        let cast = contents.cast(ElementType::I64).map_err(|error| Unsupported::Fault(error.to_string()))?;
        Ok(cast.as_slice::<i64>().map(<[i64]>::to_vec))
    }

    /// The elements of an input as integers.
    pub(super) fn integers(&self, place: usize) -> Result<Vec<i64>, Unsupported> {
        let integers = self.optional_integers(place)?;
        integers.ok_or_else(|| Unsupported::Fault(format!("input {place} is missing")))
    }

    /// The attributes, as an evaluation reads them. It has no inputs.
    pub(super) fn attributes(&self) -> Arguments<'a> {
        let Call { operator, attributes, .. } = self.call;
        Arguments { operator, attributes, inputs: &[], outputs: self.outputs }
    }

    /// An attribute that names a dimension of a tensor.
    pub(super) fn axis(&self, name: &str, rank: usize) -> Result<usize, Unsupported> {
        Ok(axis(self.attributes().int_or_default(name), rank)?)
    }

    /// A truth value.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.attributes().flag(name)
    }

    /// A number.
    pub(super) fn float(&self, name: &str) -> f64 {
        self.attributes().float_or_default(name)
    }

    /// A word.
    pub(super) fn text(&self, name: &str) -> &'a str {
        match (self.call.attributes.get(name), self.call.operator.attribute(name)) {
            (Some(Attribute::Text(value)), _) => value,
            (_, Some(AttributeKind::TextOr(value))) => value,
            _ => "",
        }
    }

    /// Integers, if they are given.
    pub(super) fn ints(&self, name: &str) -> Option<&'a [i64]> {
        self.attributes().ints(name)
    }
}
