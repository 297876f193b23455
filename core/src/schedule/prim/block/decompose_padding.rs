//! `decompose_padding`

use std::sync::Arc;

use crate::analysis::block::complete_store;
use crate::analysis::region::Span;
use crate::analysis::scope::writers;
use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::ids::VarId;
use crate::index::map::is_affine;
use crate::index::{Index, Ranges};
use crate::program::{Program, VariableKind};
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::domain::check_loops;
use crate::schedule::edit::{edit_block_stmt, edit_loop, flatten_sequences, fresh_block_name, fresh_loop, nest};
use crate::schedule::find::require_block;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError, Value};
use crate::stmt::{Annotations, Block, Iter, IterKind, Stmt, Store, Symbol};
use crate::visit::{listed, substitute_expr};

/// Splits a padding block in two: a new block fills the whole buffer with the constant, and the block itself then
/// writes only the elements for which its condition holds, without a select.
///
/// ```text
/// before
/// kernel padded(in a: f32[6], out p: f32[9]) {
///   for i in 0..9 {
///     block p(v: spatial 9 = i) {
///       p[v] = select((index(v) >= 2) & (index(v) < 8), a[v - 2], 0.0)
///     }
///   }
/// }
/// apply
/// %0 = get_block "p"
/// %1 = decompose_padding %0
/// after
/// kernel padded(in a: f32[6], out p: f32[9]) {
///   for v in 0..9 {
///     block p_fill(v_1: spatial 9 = v) {
///       p[v_1] = 0.0
///     }
///   }
///   for v_2 in 0..6 {
///     block p(v_3: spatial 6 = v_2) {
///       p[v_3 + 2] = a[v_3]
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DecomposePadding {
    /// The block, alone in its loops.
    pub block: BlockRv,
}

impl Primitive for DecomposePadding {
    const NAME: &'static str = "decompose_padding";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let block = require_block(context.program, id)?.clone();
        let outermost = check_loops(context.program, &block)?;
        let padding = padding_of(context.program, &block)?;

        let program = &mut *context.program;
        let name = fresh_block_name(program, &format!("{}_fill", block.name));
        let fill_id = program.fresh_block();
        let whole = |iter: &Iter| Span { min: Index::constant(0), extent: iter.extent.clone() };
        let spans: Vec<Span> = block.iters.iter().map(whole).collect();
        let fill = Block { id: fill_id, name, annotations: Annotations::new(), ..Block::clone(&block) };
        let fill = nest_over(program, &fill, &spans, &padding.store, &padding.constant);
        let copy = nest_over(program, &block, &padding.spans, &padding.store, &padding.value);
        let made = Stmt::seq([fill, copy]);
        let mut replace = |stmt: &mut Stmt| *stmt = made.clone();
        match outermost {
            Some(outermost) => edit_loop(&mut program.body, outermost, &mut replace),
            None => edit_block_stmt(&mut program.body, id, &mut replace),
        };
        flatten_sequences(&mut program.body);
        Ok(Outputs::from_slice(&[Value::Block(fill_id)]))
    }
}

/// A padding block, taken apart.
struct Padding {
    store: Store,
    /// For each iterator, where the condition holds.
    spans: Vec<Span>,
    value: Expr,
    constant: Expr,
}

fn padding_of(program: &Program, block: &Block) -> Result<Padding, ScheduleError> {
    let refusal = ScheduleError::NotPadding(block.id);
    let store = complete_store(block).ok_or(refusal)?;
    let [_] = writers(program, store.buffer)[..] else { return Err(ScheduleError::SeveralWriters(block.id)) };
    let ExprKind::Select(condition, value, constant) = store.value.kind() else { return Err(refusal) };
    if constant.as_constant().is_none() {
        return Err(refusal);
    }
    let mut ranges = Ranges::new();
    for iter in &block.iters {
        ranges.insert(iter.var, iter.extent.clone());
    }
    // Per iterator, the first value and the one behind the last.
    let mut bounds: Vec<(Index, Index)> =
        block.iters.iter().map(|iter| (Index::constant(0), iter.extent.clone())).collect();
    let mut conditions = vec![condition];
    while let Some(condition) = conditions.pop() {
        if let ExprKind::Binary(BinaryOp::And, a, b) = condition.kind() {
            conditions.extend([a, b]);
            continue;
        }
        let bound = bound_of(condition, block).ok_or(refusal)?;
        let (first, end) = &mut bounds[bound.iter];
        let slot = if bound.is_lower { first } else { end };
        // The narrower of the two bounds, when one of them provably is.
        let (narrows, widens) = match bound.is_lower {
            true => (
                slot.is_provably_at_most(&bound.value, &ranges),
                bound.value.is_provably_at_most(slot, &ranges),
            ),
            false => (
                bound.value.is_provably_at_most(slot, &ranges),
                slot.is_provably_at_most(&bound.value, &ranges),
            ),
        };
        match (narrows, widens) {
            (true, _) => *slot = bound.value,
            (false, true) => {}
            (false, false) => return Err(refusal),
        }
    }
    let spans = bounds.into_iter().map(|(first, end)| {
        let extent = (&end - &first).simplify(&ranges);
        extent.is_provably_nonnegative(&ranges).then_some(Span { min: first, extent })
    });
    let spans = spans.collect::<Option<Vec<Span>>>().ok_or(refusal)?;
    Ok(Padding { store: store.clone(), spans, value: value.clone(), constant: constant.clone() })
}

/// `iterator >= value` or `iterator < value`.
struct Bound {
    iter: usize,
    is_lower: bool,
    value: Index,
}

/// The bound that a comparison of an iterator with something fixed is.
fn bound_of(condition: &Expr, block: &Block) -> Option<Bound> {
    let ExprKind::Binary(op, left, right) = condition.kind() else { return None };
    let index = |expr: &Expr| match expr.kind() {
        ExprKind::Index(index) => Some(index.clone()),
        _ => expr.as_constant().and_then(|constant| match constant {
            crate::expr::Constant::Int(value) => Some(Index::constant(value)),
            crate::expr::Constant::Float(_) => None,
        }),
    };
    // left < right, or left <= right.
    let (low, high, is_strict) = match op {
        BinaryOp::Lt => (index(left)?, index(right)?, true),
        BinaryOp::Le => (index(left)?, index(right)?, false),
        BinaryOp::Gt => (index(right)?, index(left)?, true),
        BinaryOp::Ge => (index(right)?, index(left)?, false),
        _ => return None,
    };
    // 0 <= difference.
    let difference = &(&high - &low) - &Index::constant(i64::from(is_strict));
    let mut iters = (0..block.iters.len()).filter(|position| difference.mentions(block.iters[*position].var));
    let (Some(iter), None) = (iters.next(), iters.next()) else { return None };
    let var: VarId = block.iters[iter].var;
    let coefficient = difference.linear_coefficient(var)?;
    let rest = &difference - &Index::var(var).scale(coefficient);
    // Sizes are made of dimensions.
    if rest.mentions(var) || !is_affine(&rest) {
        return None;
    }
    match coefficient {
        1 => Some(Bound { iter, is_lower: true, value: rest.scale(-1) }),
        -1 => Some(Bound { iter, is_lower: false, value: rest.offset(1) }),
        _ => None,
    }
}

/// A block like `block` in loops of its own that stores a value over a part of its domain.
fn nest_over(program: &mut Program, block: &Block, spans: &[Span], store: &Store, value: &Expr) -> Stmt {
    let (mut loops, mut iters, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for (iter, span) in block.iters.iter().zip(spans) {
        let name: Symbol = program.variable(iter.var).name.clone();
        let node = fresh_loop(program, &name, span.extent.clone());
        let var = program.add_variable(name, VariableKind::Iter);
        values.push((iter.var, &span.min + &Index::var(var)));
        let extent = span.extent.clone();
        iters.push(Iter { var, extent, kind: IterKind::Spatial, binding: Index::var(node.var) });
        loops.push(node);
    }
    let value_of = listed(&values);
    let indices: Vec<Index> = store.indices.iter().map(|index| index.substitute(&value_of)).collect();
    let body = Stmt::store(store.buffer, indices, substitute_expr(value, &value_of));
    let made = Block { iters, guards: Vec::new(), init: None, body, ..block.clone() };
    nest(loops, Stmt::Block(Arc::new(made)))
}

impl Schedule {
    /// Takes a padding block apart, and gives the block that fills. See [`DecomposePadding`].
    ///
    /// # Errors
    /// When the block is no padding alone in its loops.
    pub fn decompose_padding(&mut self, block: BlockRv) -> Result<BlockRv, ScheduleError> {
        self.push_one(DecomposePadding { block }).map(BlockRv)
    }
}
