//! Sizes that become known while a function runs.

use rustc_hash::FxHashMap;

use crate::ir::{Shape, Type};
use crate::operator::Value;
use crate::symbolic::{SymInt, Symbol};

/// The values of symbols.
#[derive(Debug, Default)]
pub(super) struct Symbols(FxHashMap<Symbol, i64>);

impl Symbols {
    /// The value of an integer, if all of its symbols are known.
    pub(super) fn evaluate(&self, value: &SymInt) -> Option<i64> {
        value.evaluate(&|symbol| self.0.get(symbol).copied())
    }

    /// Compares a value with its type. A symbol without a value gets the extent that is found.
    pub(super) fn bind(&mut self, ty: &Type, value: &Value) -> Result<(), String> {
        match (ty, value) {
            (Type::Unknown, _) => Ok(()),
            (Type::Tensor(ty), Value::Tensor(tensor)) => {
                if let Some(expected) = ty.element.filter(|&element| element != tensor.element()) {
                    return Err(format!("expected elements of type {expected}, found {}", tensor.element()));
                }
                match &ty.shape {
                    Shape::Unknown => Ok(()),
                    Shape::Known(extents) => self.match_shape(extents, value),
                }
            }
            (Type::Tuple(types), Value::Tuple(parts)) if types.len() == parts.len() => {
                types.iter().zip(parts).try_for_each(|(ty, part)| self.bind(ty, part))
            }
            (Type::Sequence(ty), Value::Sequence(parts)) => {
                // Tensors of one sequence may have different shapes: only their kind is compared.
                let wrong = parts.iter().find(|part| {
                    matches!((&**ty, part), (Type::Tensor(ty), Value::Tensor(part))
                        if ty.element.is_some_and(|element| element != part.element()))
                });
                wrong.map_or(Ok(()), |_| Err(format!("expected a sequence of {ty}")))
            }
            (Type::Optional(ty), Value::Optional(part)) => {
                part.as_ref().map_or(Ok(()), |part| self.bind(ty, part))
            }
            _ => Err(format!("expected {ty}, found another kind of value")),
        }
    }

    /// Compares the shape of a tensor with extents.
    pub(super) fn match_shape(&mut self, extents: &[SymInt], value: &Value) -> Result<(), String> {
        let shape = value.as_tensor().ok_or("only a tensor has a shape")?.shape();
        let refuse = |reason: &str| {
            let expected = Shape::Known(extents.to_vec());
            Err(format!("expected shape {expected}, found {shape:?}{reason}"))
        };
        if shape.len() != extents.len() {
            return refuse("");
        }
        for (extent, &found) in extents.iter().zip(shape) {
            match self.evaluate(extent) {
                Some(expected) if usize::try_from(expected) == Ok(found) => {}
                Some(expected) => return refuse(&format!(": {extent} is {expected} here")),
                None => {
                    if let Some(symbol) = extent.as_symbol() {
                        self.0.insert(symbol.clone(), found as i64);
                    }
                }
            }
        }
        Ok(())
    }
}
