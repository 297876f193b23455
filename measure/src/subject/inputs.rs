//! Reproducible random arguments for a kernel.
//!
//! Floats are uniform in [-1, 1), or in [0, 1) when a definition has no value for negative ones. A tensor whose
//! elements are used as indices holds indices that are in range. The weights of a recurrence are smaller: those of a sum of `R`
//! products lie within `±1/√R`, as recurrent layers are initialised (LeCun and others, "Efficient BackProp", 1998, §4.6). With larger ones,
//! rounding errors grow from step to step, so that right results differ from each other.

use rustc_hash::FxHashMap;
use tilewright_core::analysis::block::{is_ordered, loads_in};
use tilewright_core::analysis::scope::blocks;
use tilewright_core::dtype::DType;
use tilewright_core::expr::{Constant, Expr, ExprKind};
use tilewright_core::ids::BufferId;
use tilewright_core::index::{Base, Index};
use tilewright_core::program::{Access, Program};
use tilewright_core::stmt::{Block, IterKind, Stmt};
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
        let weights = weights_of_recurrences(program);
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
                tensor = changed(&tensor, &shape, f64::abs)?;
            }
            if let Some(scale) = weights.get(&id).filter(|_| access != Access::Output) {
                tensor = changed(&tensor, &shape, |value| value * scale)?;
            }
            tensors.push(tensor);
        }
        Ok(Inputs { scalars, tensors })
    }
}

fn changed(
    tensor: &AnyTensor,
    shape: &[usize],
    change: impl Fn(f64) -> f64,
) -> Result<AnyTensor, ShapeError> {
    let values: Vec<f64> = tensor.to_f64_vec().into_iter().map(change).collect();
    AnyTensor::from_f64s(tensor.dtype(), &values, shape)
}

/// The tensors whose products with others a recurrence adds up, and the greatest magnitude of their elements, a power of two. Of the factors of a sum, it is
/// the one with the most elements.
fn weights_of_recurrences(program: &Program) -> FxHashMap<BufferId, f64> {
    let blocks = blocks(&program.body);
    let mut scales = FxHashMap::default();
    if !blocks.iter().any(|block| is_ordered(block)) {
        return scales;
    }
    let elements = |buffer: BufferId| shape_of(program, buffer).into_iter().product::<usize>();
    for block in blocks.into_iter().filter(|block| reduced_points(block) > 1.0) {
        let terms = reduced_points(block);
        let Stmt::Store(store) = &block.body else { continue };
        let mut loads = Vec::new();
        loads_in(&store.value, &mut loads);
        let factors = loads.iter().map(|load| load.buffer).filter(|&buffer| buffer != store.buffer);
        let factors: Vec<BufferId> = factors.filter(|&own| program.buffer(own).dtype.is_float()).collect();
        let given = factors.iter().copied().filter(|&own| program.access(own).is_some());
        if let Some(weights) = given.max_by_key(|&own| elements(own)).filter(|_| factors.len() > 1) {
            let scale = 2f64.powi(-((terms.sqrt().log2().ceil()) as i32));
            let known = scales.entry(weights).or_insert(scale);
            *known = scale.min(*known);
        }
    }
    scales
}

/// How many points a block reduces to one.
fn reduced_points(block: &Block) -> f64 {
    let reduced = block.iters.iter().filter(|iter| iter.kind == IterKind::Reduce);
    reduced.map(|iter| iter.extent.as_constant().unwrap_or(1).max(1) as f64).product()
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
    fn weights_of_recurrences_are_small() {
        let text = "kernel states(in x: f32[20, 64], in w: f32[64, 64], out y: f32[20, 64]) {
  buffer state: f32[64] global
  buffer sum: f32[20, 64] global
  for i in 0..64 {
    block state(vi: spatial 64 = i) {
      state[vi] = 0.0
    }
  }
  for t in 0..20 {
    for i in 0..64 {
      for k in 0..64 {
        block sum(vt: ordered 20 = t, vi: spatial 64 = i, vk: reduce 64 = k) {
          init {
            sum[vt, vi] = 0.0
          }
          sum[vt, vi] = sum[vt, vi] + w[vi, vk] * state[vk]
        }
      }
    }
    for i in 0..64 {
      block next(vt: ordered 20 = t, vi: spatial 64 = i) {
        state[vi] = tanh(sum[vt, vi] + x[vt, vi])
      }
    }
    for i in 0..64 {
      block y(vt: ordered 20 = t, vi: spatial 64 = i) {
        y[vt, vi] = state[vi]
      }
    }
  }
}
";
        let program: Program = text.parse().expect("the text is a program");
        let inputs = Inputs::random(&program, 7, Sign::Any).expect("it fits");
        let greatest = |tensor: &AnyTensor| tensor.to_f64_vec().into_iter().map(f64::abs).fold(0.0, f64::max);
        assert!(greatest(&inputs.tensors[0]) > 0.5, "an input is no weight");
        assert!((0.1..=0.125).contains(&greatest(&inputs.tensors[1])), "1/8 is 1 over the root of 64");
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
