//! Reproducible random arguments for a kernel.
//!
//! Floats are uniform in [-1, 1), or in [0, 1) when a definition has no value for negative ones. A tensor whose
//! elements are used as indices holds indices that are in range.

use tilewright_core::analysis::block::loads_in;
use tilewright_core::dtype::DType;
use tilewright_core::expr::{Constant, Expr, ExprKind};
use tilewright_core::ids::BufferId;
use tilewright_core::index::{Base, Index};
use tilewright_core::program::{Access, Program};
use tilewright_core::stmt::Stmt;
use tilewright_core::tensor::{AnyTensor, Random, ShapeError};
use tilewright_core::visit::for_each_stmt;

/// The signs of the random floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Negative ones and others.
    Any,
    /// Numbers of at least 0.
    Positive,
}

/// The arguments of a call.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// The run-time scalars, in order.
    pub scalars: Vec<Constant>,
    /// The tensors, in order; results have elements too, which no kernel may read.
    pub tensors: Vec<AnyTensor>,
}

impl Inputs {
    /// Random arguments for a program whose dimensions are bound. One seed gives one set of arguments.
    pub fn random(program: &Program, seed: u64, sign: Sign) -> Result<Self, ShapeError> {
        let mut seeds = Random::new(seed);
        let scalars = program.scalar_params().map(|(_, dtype)| random_scalar(dtype, &mut seeds)).collect();
        let mut tensors = Vec::new();
        for (id, access) in program.buffer_params() {
            let buffer = program.buffer(id);
            let shape = shape_of(program, id);
            let seed = seeds.bits();
            let mut tensor = match index_bound(program, id) {
                Some(bound) => AnyTensor::random_indices(buffer.dtype, &shape, bound, seed)?,
                None => AnyTensor::random(buffer.dtype, &shape, seed)?,
            };
            if access == Access::Output && program.strides(id).is_none() {
                poison(&mut tensor);
            } else if sign == Sign::Positive && buffer.dtype.is_float() {
                let values: Vec<f64> = tensor.to_f64_vec().into_iter().map(f64::abs).collect();
                tensor = AnyTensor::from_f64s(buffer.dtype, &values, &shape)?;
            }
            tensors.push(tensor);
        }
        Ok(Inputs { scalars, tensors })
    }
}

/// The extents of the tensor that is passed for a parameter whose dimensions are bound. One with strides is passed as the row of all elements
/// from its first to its last one.
fn shape_of(program: &Program, id: BufferId) -> Vec<usize> {
    let extent = |index: &Index| index.as_constant().and_then(|extent| usize::try_from(extent).ok());
    let shape: Vec<usize> = program.buffer(id).shape.iter().map(|index| extent(index).unwrap_or(0)).collect();
    if program.strides(id).is_none() || shape.contains(&0) {
        return shape;
    }
    vec![extent(&program.memory_len(id)).unwrap_or(0)]
}

/// Scalars are mostly factors, thresholds and small counts: of moderate size and never 0.
fn random_scalar(dtype: DType, random: &mut Random) -> Constant {
    if dtype.is_float() {
        // A multiple of 1/64 in [0.5, 1.5): exact in every type.
        return Constant::float(0.5 + random.below(64) as f64 / 64.0);
    }
    if dtype == DType::Bool { Constant::Int(1) } else { Constant::Int(1 + random.below(4) as i64) }
}

/// Fills a result with values that no result has, so that unwritten elements are noticed.
pub(crate) fn poison(tensor: &mut AnyTensor) {
    // All ones are a NaN in every float type; 1 is a value of every other type.
    let byte = if tensor.dtype().is_float() { 0xff } else { 1 };
    tensor.bytes_mut().fill(byte);
}

/// The exclusive bound of a tensor's elements as indices; `None` when they are not used as such.
fn index_bound(program: &Program, tensor: BufferId) -> Option<u64> {
    if program.buffer(tensor).dtype.is_float() {
        return None;
    }
    let mut bound: Option<u64> = None;
    let mut consider = |value: &Expr, extent: &Index| {
        let mut loads = Vec::new();
        loads_in(value, &mut loads);
        let extent = extent.as_constant().and_then(|extent| u64::try_from(extent).ok());
        if let (true, Some(extent)) = (loads.iter().any(|load| load.buffer == tensor), extent) {
            bound = Some(bound.map_or(extent, |bound| bound.min(extent)));
        }
    };
    for_each_stmt(&program.body, &mut |stmt| match stmt {
        Stmt::Store(node) => {
            node.indices.iter().for_each(|index| bounded_in_index(index, &mut consider));
            bounded_in(&node.value, &mut consider);
        }
        Stmt::If(node) => bounded_in(&node.condition, &mut consider),
        _ => {}
    });
    bound
}

/// Calls `visit` with every value that must lie below an extent, and the extent, also those inside indices.
fn bounded_in(expr: &Expr, visit: &mut dyn FnMut(&Expr, &Index)) {
    match expr.kind() {
        ExprKind::Bounded(value, extent) => visit(value, extent),
        ExprKind::Load(_, indices) => indices.iter().for_each(|index| bounded_in_index(index, visit)),
        ExprKind::Index(index) => bounded_in_index(index, visit),
        _ => {}
    }
    expr.operands().into_iter().for_each(|operand| bounded_in(operand, visit));
}

fn bounded_in_index(index: &Index, visit: &mut dyn FnMut(&Expr, &Index)) {
    for term in index.terms() {
        match &term.digit.base {
            Base::Value(value) => bounded_in(value, visit),
            Base::Sum(sum) => bounded_in_index(sum, visit),
            Base::Var(_) | Base::Lane(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An embedding look-up.
    fn gather() -> Program {
        let text = "kernel gather(s: f32, in table: f32[5, 2], in ids: i32[64], out y: f32[64, 2]) {
  for i in 0..64 {
    for j in 0..2 {
      block y(vi: spatial 64 = i, vj: spatial 2 = j) {
        y[vi, vj] = s * table[bounded(ids[vi] as i64, 0..5), vj]
      }
    }
  }
}
";
        text.parse().expect("the text is a program")
    }

    #[test]
    fn indices_are_in_range_and_results_are_poisoned() {
        let inputs = Inputs::random(&gather(), 7, Sign::Any).expect("it fits");
        assert!(inputs.tensors[1].to_f64_vec().iter().all(|index| (0.0..5.0).contains(index)));
        assert!(inputs.tensors[2].to_f64_vec().iter().all(|value| value.is_nan()));
        assert!(inputs.tensors[0].to_f64_vec().iter().any(|&value| value < 0.0));
        assert!((0.5..1.5).contains(&inputs.scalars[0].as_f64()));
    }

    #[test]
    fn a_seed_decides_and_signs_can_be_dropped() {
        let random = |seed, sign| Inputs::random(&gather(), seed, sign).expect("it fits").tensors;
        assert_eq!(random(1, Sign::Any)[..2], random(1, Sign::Any)[..2]);
        assert_ne!(random(1, Sign::Any)[0], random(2, Sign::Any)[0]);
        let positive = random(1, Sign::Positive);
        assert!(positive[0].to_f64_vec().iter().all(|&value| value >= 0.0));
        assert_eq!(positive[1], random(1, Sign::Any)[1]);
    }
}
