//! `pad_einsum`

use std::sync::Arc;

use crate::analysis::block::{Reducer, is_reduction, loads_in, reduction};
use crate::analysis::coverage::is_wholly_written;
use crate::expr::{BinaryOp, Expr, ExprKind, Indices};
use crate::ids::{BufferId, VarId};
use crate::index::{Index, Ranges};
use crate::program::{Buffer, Program, Scope, VariableKind};
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::buffer::{check_finished, check_sole_writer};
use crate::schedule::check::domain::check_loops;
use crate::schedule::edit::{edit_block_stmt, edit_loop, fresh_block_name, fresh_loop, insert_statement, nest, redirect_stores_to, replace_loads};
use crate::schedule::find::require_block;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError};
use crate::stmt::{Annotations, Block, Iter, IterKind, Stmt, Symbol};

/// Makes the extents of a sum of products multiples of given numbers: operands are copied with zeros beyond their
/// elements, and only the elements of the original result are copied from the padded one.
///
/// An index of an operand may be a sum of multiples of iterators, as those of a convolution's image are. Its dimension then
/// grows to the range of the padded iterators. Any other index must stay within its dimension.
///
/// ```text
/// before
/// kernel product(in a: f32[5, 6], in b: f32[6], out c: f32[5]) {
///   for i in 0..5 {
///     for k in 0..6 {
///       block c(vi: spatial 5 = i, vk: reduce 6 = k) {
///         init {
///           c[vi] = 0.0
///         }
///         c[vi] = c[vi] + a[vi, vk] * b[vk]
///       }
///     }
///   }
/// }
/// apply
/// %0 = get_block "c"
/// pad_einsum %0, [4, 4]
/// after
/// kernel product(in a: f32[5, 6], in b: f32[6], out c: f32[5]) {
///   buffer a_pad: f32[8, 8] global
///   buffer b_pad: f32[8] global
///   buffer c_pad: f32[8] global
///   for a0 in 0..8 {
///     for a1 in 0..8 {
///       block a_pad(v0: spatial 8 = a0, v1: spatial 8 = a1) {
///         a_pad[v0, v1] = select((v0 < index(5)) & (v1 < index(6)), a[v0, v1], 0.0)
///       }
///     }
///   }
///   for a0_1 in 0..8 {
///     block b_pad(v0_1: spatial 8 = a0_1) {
///       b_pad[v0_1] = select(v0_1 < index(6), b[v0_1], 0.0)
///     }
///   }
///   for vi in 0..8 {
///     for vk in 0..8 {
///       block c(vi_1: spatial 8 = vi, vk_1: reduce 8 = vk) {
///         init {
///           c_pad[vi_1] = 0.0
///         }
///         c_pad[vi_1] = c_pad[vi_1] + a_pad[vi_1, vk_1] * b_pad[vk_1]
///       }
///     }
///   }
///   for a0_2 in 0..5 {
///     block c_crop(v0_2: spatial 5 = a0_2) {
///       c[v0_2] = c_pad[v0_2]
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PadEinsum {
    /// The block, alone in its loops.
    pub block: BlockRv,
    /// For each iterator, what its extent becomes a multiple of.
    pub padding: Vec<i64>,
}

/// The largest padding; a bound for hostile traces.
const MAX_PADDING: i64 = 1 << 16;

impl Primitive for PadEinsum {
    const NAME: &'static str = "pad_einsum";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Numbers(&mut self.padding))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let program = &mut *context.program;
        let block = require_block(program, id)?.clone();
        let is_moderate = |padding: &i64| (1..=MAX_PADDING).contains(padding);
        if self.padding.len() != block.iters.len() || !self.padding.iter().all(is_moderate) {
            return Err(ScheduleError::BadPadding(id));
        }
        let outermost = check_loops(program, &block)?;
        let einsum = einsum_of(program, &block)?;
        let extents: Vec<Index> = block
            .iters
            .iter()
            .zip(&self.padding)
            .map(|(iter, padding)| iter.extent.ceil_div(*padding).scale(*padding))
            .collect();
        let is_padded = |position: usize| extents[position] != block.iters[position].extent;
        if !(0..extents.len()).any(is_padded) {
            return Ok(Outputs::new());
        }
        einsum.check_zeros(&block, &is_padded)?;
        let shape_of = |operand: &Operand| operand.padded_shape(program, &block, &extents);
        let shapes = einsum.operands.iter().map(shape_of).collect::<Option<Vec<_>>>();
        let shapes = shapes.ok_or(ScheduleError::NotEinsum(id))?;
        einsum.check_written(program, &block, &shapes)?;

        let mut made = in_padded_loops(program, &block, &extents);
        let mut before = Vec::new();
        for (operand, shape) in einsum.operands.iter().zip(&shapes) {
            let own = operand.shape(program, &block);
            if own != *shape {
                before.push(pad_operand(program, operand, &own, shape, &mut made));
            }
        }
        let cropped = &einsum.target;
        let after = (cropped.padded_shape(program, &block, &extents))
            .filter(|shape| *shape != cropped.shape(program, &block))
            .map(|shape| crop_result(program, &block, cropped, shape, &mut made));
        let mut replace = |stmt: &mut Stmt| *stmt = made.clone();
        match outermost {
            Some(outermost) => edit_loop(&mut program.body, outermost, &mut replace),
            None => edit_block_stmt(&mut program.body, id, &mut replace),
        };
        let count = before.len();
        for stmt in before.into_iter().rev() {
            insert_statement(&mut program.body, einsum.position, stmt);
        }
        if let Some(after) = after {
            insert_statement(&mut program.body, einsum.position + count + 1, after);
        }
        Ok(Outputs::new())
    }
}

/// A buffer that is accessed at iterators, sums of their multiples, or places that padding does not move out of it.
struct Operand {
    buffer: BufferId,
    indices: Indices,
    /// For each dimension the position of the iterator that is its index, unless it is something else. They are distinct.
    iters: Vec<Option<usize>>,
}

struct Einsum {
    operands: Vec<Operand>,
    target: Operand,
    /// The position of the block's nest in the program.
    position: usize,
}

fn einsum_of(program: &Program, block: &Block) -> Result<Einsum, ScheduleError> {
    let refusal = ScheduleError::NotEinsum(block.id);
    let found = reduction(block).filter(|_| is_reduction(block)).ok_or(refusal)?;
    let Some(Stmt::Store(init)) = &block.init else { return Err(refusal) };
    let starts_at_zero = init.indices == found.store.indices && init.value == Expr::zero(init.value.dtype());
    if found.reducer != Reducer::Sum || !starts_at_zero {
        return Err(refusal);
    }
    let target = operand_of(block, found.store.buffer, &found.store.indices).ok_or(refusal)?;
    if target.iters.contains(&None) {
        return Err(refusal);
    }
    let mut operands = Vec::new();
    factors(block, found.value, &mut operands).ok_or(refusal)?;
    let position = check_sole_writer(program, block, target.buffer)?;
    for operand in &operands {
        check_finished(program, block, operand.buffer)?;
    }
    Ok(Einsum { operands, target, position })
}

/// The loads that a product is made of, each place once; `None` when it is something else.
fn factors(block: &Block, value: &Expr, operands: &mut Vec<Operand>) -> Option<()> {
    match value.kind() {
        ExprKind::Binary(BinaryOp::Mul, a, b) => {
            factors(block, a, operands)?;
            factors(block, b, operands)
        }
        ExprKind::Cast(inner) => factors(block, inner, operands),
        ExprKind::Load(buffer, indices) => {
            // Behind the end there is nothing that could say where to read.
            if indices.iter().any(depends_on_data) {
                return None;
            }
            let operand = operand_of(block, *buffer, indices)?;
            if !operands.iter().any(|other| other.buffer == *buffer && other.indices == *indices) {
                operands.push(operand);
            }
            Some(())
        }
        _ => None,
    }
}

fn depends_on_data(index: &Index) -> bool {
    let (value, mut found) = (Expr::index(index.clone()), Vec::new());
    loads_in(&value, &mut found);
    !found.is_empty()
}

fn operand_of(block: &Block, buffer: BufferId, indices: &Indices) -> Option<Operand> {
    let mut iters = Vec::new();
    for index in indices {
        let position = index.as_var().and_then(|var| block.iters.iter().position(|iter| iter.var == var));
        match position {
            Some(_) if iters.contains(&position) => return None,
            _ => iters.push(position),
        }
    }
    Some(Operand { buffer, indices: indices.clone(), iters })
}

/// Whether an index is a sum of multiples of a block's iterators and of a number, none of them negative.
fn is_sum_of_iters(block: &Block, index: &Index) -> bool {
    let is_iter = |var: VarId| block.iters.iter().any(|iter| iter.var == var);
    let mut grows = index.constant_part() >= 0;
    index.for_each_var(&mut |var| {
        grows &= is_iter(var) && index.linear_coefficient(var).is_some_and(|coefficient| coefficient >= 0);
    });
    grows
}

impl Operand {
    /// The extents of the padded operand. A dimension whose index is a sum holds all that is reached.
    fn padded_shape(&self, program: &Program, block: &Block, extents: &[Index]) -> Option<Vec<Index>> {
        let mut ranges = Ranges::new();
        for (iter, extent) in block.iters.iter().zip(extents) {
            ranges.insert(iter.var, extent.clone());
        }
        let shape = &program.buffer(self.buffer).shape;
        let dimensions = self.iters.iter().zip(&self.indices).zip(shape);
        dimensions
            .map(|((position, index), extent)| match position {
                Some(position) => Some(extents[*position].clone()),
                None if index.is_provably_less(extent, &ranges)
                    && (is_sum_of_iters(block, index) || index.is_provably_nonnegative(&ranges)) =>
                {
                    Some(extent.clone())
                }
                None if !is_sum_of_iters(block, index) => None,
                None => {
                    let reached = index.interval(&ranges).max;
                    let is_known = extent.as_constant().is_some() && reached < i64::from(i32::MAX);
                    is_known.then(|| Index::constant(reached + 1))
                }
            })
            .collect()
    }

    /// The extents without padding.
    fn shape(&self, program: &Program, block: &Block) -> Vec<Index> {
        let shape = &program.buffer(self.buffer).shape;
        let dimensions = self.iters.iter().zip(shape);
        dimensions
            .map(|(position, extent)| match position {
                Some(position) => block.iters[*position].extent.clone(),
                None => extent.clone(),
            })
            .collect()
    }
}

impl Einsum {
    /// Checks that the copied elements of operands have been written: where an index is a sum, these are more than the block reads.
    fn check_written(
        &self,
        program: &Program,
        block: &Block,
        shapes: &[Vec<Index>],
    ) -> Result<(), ScheduleError> {
        let is_copied = |operand: &Operand, shape: &Vec<Index>| operand.shape(program, block) != *shape;
        let unwritten = self.operands.iter().zip(shapes).find(|(operand, shape)| {
            operand.iters.contains(&None)
                && is_copied(operand, shape)
                && !is_wholly_written(program, operand.buffer)
        });
        match unwritten {
            Some((operand, _)) => {
                Err(ScheduleError::PartlyWritten { block: block.id, buffer: operand.buffer })
            }
            None => Ok(()),
        }
    }

    /// Checks that points beyond the end add zero: some factor is zero, and no other one may be infinite.
    fn check_zeros(&self, block: &Block, is_padded: &dyn Fn(usize) -> bool) -> Result<(), ScheduleError> {
        let is_float = match &block.body {
            Stmt::Store(store) => store.value.dtype().is_float(),
            _ => false,
        };
        for (position, iter) in block.iters.iter().enumerate() {
            if iter.kind == IterKind::Spatial || !is_padded(position) {
                continue;
            }
            let mut with = self.operands.iter().map(|operand| operand.iters.contains(&Some(position)));
            let is_zero = if is_float {
                !self.operands.is_empty() && with.all(|with| with)
            } else {
                with.any(|with| with)
            };
            if !is_zero {
                return Err(ScheduleError::NotEinsum(block.id));
            }
        }
        Ok(())
    }
}

/// The block over its padded domain, in loops of its own.
fn in_padded_loops(program: &mut Program, block: &Block, extents: &[Index]) -> Stmt {
    let mut made = Block { guards: Vec::new(), ..block.clone() };
    let mut loops = Vec::new();
    for (iter, extent) in made.iters.iter_mut().zip(extents) {
        let name: Symbol = program.variable(iter.var).name.clone();
        let node = fresh_loop(program, &name, extent.clone());
        iter.extent = extent.clone();
        iter.binding = Index::var(node.var);
        loops.push(node);
    }
    nest(loops, Stmt::Block(Arc::new(made)))
}

/// Lets the block read a copy of an operand with zeros behind its elements; the answer is the nest that makes it.
fn pad_operand(
    program: &mut Program,
    operand: &Operand,
    own: &[Index],
    shape: &[Index],
    made: &mut Stmt,
) -> Stmt {
    let original = program.buffer(operand.buffer).clone();
    let dtype = original.dtype;
    let name = format!("{}_pad", original.name);
    let copy = program.add_buffer(Buffer {
        name: name.as_str().into(),
        dtype,
        shape: shape.to_vec(),
        scope: Scope::Global,
    });
    replace_loads(made, operand.buffer, &|indices| {
        let target = if *indices == operand.indices { copy } else { operand.buffer };
        Expr::load(dtype, target, indices.iter().cloned())
    });
    let source = operand.buffer;
    element_nest(program, &name, shape, &|point| {
        let element = Expr::load(dtype, source, point.iter().cloned());
        let inside = own.iter().zip(shape).zip(point).filter_map(|((extent, padded), index)| {
            let less = || Expr::binary(BinaryOp::Lt, Expr::index(index.clone()), Expr::index(extent.clone()));
            (extent != padded).then(less)
        });
        let condition = inside.reduce(|a, b| Expr::binary(BinaryOp::And, a, b));
        let value = match condition {
            Some(condition) => Expr::select(condition, element, Expr::zero(dtype)),
            None => element,
        };
        Stmt::store(copy, point.iter().cloned(), value)
    })
}

/// Lets the block write a larger buffer; the answer is the nest that copies what was asked for.
fn crop_result(
    program: &mut Program,
    block: &Block,
    target: &Operand,
    shape: Vec<Index>,
    made: &mut Stmt,
) -> Stmt {
    let original = program.buffer(target.buffer).clone();
    let dtype = original.dtype;
    let name: Symbol = format!("{}_pad", original.name).into();
    let padded = program.add_buffer(Buffer { name, dtype, shape, scope: Scope::Global });
    replace_loads(made, target.buffer, &|indices| Expr::load(dtype, padded, indices.iter().cloned()));
    redirect_stores_to(made, target.buffer, padded);
    let shape = target.shape(program, block);
    let (from, to) = (padded, target.buffer);
    element_nest(program, &format!("{}_crop", original.name), &shape, &|point| {
        let value = Expr::load(dtype, from, point.iter().cloned());
        Stmt::store(to, point.iter().cloned(), value)
    })
}

/// A block in loops of its own that executes a statement at each point of a box.
fn element_nest(
    program: &mut Program,
    name: &str,
    shape: &[Index],
    body_at: &dyn Fn(&[Index]) -> Stmt,
) -> Stmt {
    let (mut loops, mut iters) = (Vec::new(), Vec::new());
    for (axis, extent) in shape.iter().enumerate() {
        let node = fresh_loop(program, &format!("a{axis}").into(), extent.clone());
        let var: VarId = program.add_variable(format!("v{axis}"), VariableKind::Iter);
        let (kind, binding) = (IterKind::Spatial, Index::var(node.var));
        iters.push(Iter { var, extent: extent.clone(), kind, binding });
        loops.push(node);
    }
    let point: Vec<Index> = iters.iter().map(|iter| Index::var(iter.var)).collect();
    let made = Block {
        id: program.fresh_block(),
        name: fresh_block_name(program, name),
        iters,
        guards: Vec::new(),
        init: None,
        body: body_at(&point),
        annotations: Annotations::new(),
        location: None,
    };
    nest(loops, Stmt::Block(Arc::new(made)))
}

impl Schedule {
    /// Makes the extents of a sum of products multiples of given numbers. See [`PadEinsum`].
    ///
    /// # Errors
    /// [`BadPadding`](ScheduleError::BadPadding): not one number of moderate size for each iterator.
    /// [`NotEinsum`](ScheduleError::NotEinsum): the block is no such sum, or padded points would not add zero.
    /// [`PartlyWritten`](ScheduleError::PartlyWritten): elements of an operand that is to be copied may not be there. Besides,
    /// when the block is not alone in its loops, is not the only writer, or reads a buffer that is not finished before.
    pub fn pad_einsum(&mut self, block: BlockRv, padding: &[i64]) -> Result<(), ScheduleError> {
        self.push(PadEinsum { block, padding: padding.to_vec() }, None).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::interp;
    use crate::target::Target;
    use crate::tensor::AnyTensor;

    const CONVOLUTION: &str = "kernel conv(in x: u8[12, 3], in w: i8[3, 3, 5], out y: i32[5, 5]) {
      for h in 0..5 { for o in 0..5 { for r in 0..3 { for c in 0..3 {
        block y(vh: spatial 5 = h, vo: spatial 5 = o, vr: reduce 3 = r, vc: reduce 3 = c) {
          init { y[vh, vo] = 0i32 }
          y[vh, vo] = y[vh, vo] + x[2*vh + vr + 1, vc] as i32 * w[vr, vc, vo] as i32
        }
      } } } }
    }";

    fn padded(text: &str, block: &str, padding: &[i64]) -> Result<Program, ScheduleError> {
        let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
        let mut schedule = Schedule::new(program, Arc::new(Target::generic_cpu()), 0);
        let block = schedule.get_block(block)?;
        schedule.pad_einsum(block, padding)?;
        Ok(schedule.program().clone())
    }

    fn result(program: &Program) -> Vec<AnyTensor> {
        let shapes = program.buffer_params().map(|(buffer, _)| program.buffer(buffer));
        let mut tensors: Vec<AnyTensor> = shapes
            .enumerate()
            .map(|(seed, buffer)| {
                let extents: Vec<usize> =
                    buffer.shape.iter().map(|extent| extent.as_constant().unwrap() as usize).collect();
                AnyTensor::random(buffer.dtype, &extents, seed as u64).unwrap()
            })
            .collect();
        interp::run(program, &[], &[], &mut tensors).unwrap_or_else(|error| panic!("{error}\n{program}"));
        tensors
    }

    #[test]
    fn images_grow_by_what_padded_iterators_reach() {
        let expected = result(&CONVOLUTION.parse().unwrap());
        for padding in [[1, 1, 1, 4], [16, 8, 1, 4], [4, 16, 1, 1], [1, 1, 4, 1], [16, 16, 4, 64]] {
            let program = padded(CONVOLUTION, "y", &padding).unwrap();
            let found = result(&program);
            assert!(found.iter().zip(&expected).all(|(a, b)| a.bytes() == b.bytes()), "{program}");
        }
    }

    #[test]
    fn nothing_is_zero_behind_an_iterator_inside_a_sum() {
        let text = "kernel sum(in x: i32[9, 4], out y: i32[4]) {
          for i in 0..4 { for k in 0..7 {
            block y(vi: spatial 4 = i, vk: reduce 7 = k) {
              init { y[vi] = 0i32 }
              y[vi] = y[vi] + x[vk + 2, vi]
            }
          } }
        }";
        assert!(matches!(padded(text, "y", &[1, 4]), Err(ScheduleError::NotEinsum(_))));
        assert!(padded(text, "y", &[8, 1]).is_ok());
        let inverse = CONVOLUTION.replace("2*vh + vr + 1", "9 - 2*vh + vr");
        assert!(matches!(padded(&inverse, "y", &[8, 1, 1, 1]), Err(ScheduleError::NotEinsum(_))));
    }

    #[test]
    fn what_was_never_written_is_not_copied() {
        let text = "kernel gaps(in x: i32[8], in w: i32[3], out y: i32[5]) {
          buffer p: i32[16] global
          for i in 0..8 { block p(v: spatial 8 = i) { p[2*v] = x[v] } }
          for i in 0..5 { for k in 0..3 {
            block y(vi: spatial 5 = i, vk: reduce 3 = k) {
              init { y[vi] = 0i32 }
              y[vi] = y[vi] + p[2*vi + 2*vk] * w[vk]
            }
          } }
        }";
        assert!(matches!(padded(text, "y", &[4, 1]), Err(ScheduleError::PartlyWritten { .. })));
        let whole = text
            .replace("p[2*v] = x[v]", "p[v] = x[v/2]")
            .replace("8 { block p(v: spatial 8", "16 { block p(v: spatial 16");
        let program = padded(&whole, "y", &[4, 1]).unwrap();
        assert_eq!(result(&program)[2].bytes(), result(&whole.parse().unwrap())[2].bytes());
    }
}
