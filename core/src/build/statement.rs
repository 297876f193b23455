//! The definition as a list of guarded assignments, each with all the loops around it.

use super::error::{DefinitionError, SourceLocation};
use super::order::recurrence::Recurrence;
use super::record::recording::Role;
use super::record::value::Clock;
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, ExprKind, Indices};
use crate::ids::{BufferId, VarId};
use crate::index::{Index, Ranges};

/// A definition between recording and program.
///
/// Variables are numbered dimensions first, then run-time scalars, then loops. A buffer in an expression
/// is the number of an entry in `reads`: a tensor at a time.
pub(super) struct Kernel {
    pub(super) targets: Vec<Target>,
    /// For each target declared in the definition, one loop per dimension over all of it.
    pub(super) whole: Vec<Vec<VarId>>,
    pub(super) loops: Vec<LoopForm>,
    /// The variable of the first loop.
    pub(super) first_loop: u32,
    /// The user's names of dimensions and run-time scalars, by variable.
    pub(super) names: Vec<String>,
    /// Extents of the loops.
    pub(super) ranges: Ranges,
    pub(super) reads: Vec<(usize, Clock)>,
    pub(super) statements: Vec<Statement>,
    pub(super) errors: Vec<DefinitionError>,
}

/// A tensor, an accumulator or a `let` that has become a buffer.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) name: String,
    pub(super) dtype: DType,
    /// The loops around the declaration: one dimension each, before the user's own.
    pub(super) prefix: Vec<VarId>,
    /// Extents of the prefix, then of the user's dimensions.
    pub(super) shape: Vec<Index>,
    pub(super) role: Role,
    pub(super) location: Option<SourceLocation>,
}

/// A loop over `0..extent`, with the user's variable as a function of it.
#[derive(Clone, Debug)]
pub(super) struct LoopForm {
    pub(super) name: String,
    pub(super) var: VarId,
    pub(super) extent: Index,
    /// The user's variable.
    pub(super) value: Index,
    /// The conditions under which the iteration is one of the user's.
    pub(super) conditions: Vec<Expr>,
}

/// `if conditions { target[indices] = … }` inside loops.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    /// Outermost first.
    pub(super) loops: Vec<VarId>,
    /// For each loop, the recurrence that executes the statement in order, if there is one.
    pub(super) recurrences: Vec<Option<Recurrence>>,
    /// Outermost first; one may rely on those before it.
    pub(super) conditions: Vec<Expr>,
    pub(super) target: usize,
    pub(super) indices: Indices,
    pub(super) effect: Effect,
    pub(super) clock: Clock,
    /// Whether this gives a tensor its initial value.
    pub(super) initial: bool,
    pub(super) location: Option<SourceLocation>,
}

/// The effect of an assignment on its element.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Effect {
    /// `element = value`
    Set(Expr),
    /// `element = element op value`, with an operator whose order does not matter.
    Combine(BinaryOp, Expr),
    /// `element = a * b + element`, rounded once.
    MulAdd(Expr, Expr),
}

impl Effect {
    /// The operator that joins contributions of several iterations; `None` when they replace each other.
    pub(super) fn operator(&self) -> Option<BinaryOp> {
        match self {
            Effect::Set(_) => None,
            Effect::Combine(op, _) => Some(*op),
            Effect::MulAdd(..) => Some(BinaryOp::Add),
        }
    }

    /// The new value of the element, given the old one.
    pub(super) fn value(&self, old: Expr) -> Expr {
        match self {
            Effect::Set(value) => value.clone(),
            Effect::Combine(op, value) => Expr::binary(*op, old, value.clone()),
            Effect::MulAdd(a, b) => Expr::mul_add(a.clone(), b.clone(), old),
        }
    }

    /// The expressions, in order.
    pub(super) fn exprs(&self) -> Vec<&Expr> {
        match self {
            Effect::Set(value) | Effect::Combine(_, value) => vec![value],
            Effect::MulAdd(a, b) => vec![a, b],
        }
    }

    /// The same effect with other expressions.
    pub(super) fn map(&self, mut map: impl FnMut(&Expr) -> Expr) -> Effect {
        match self {
            Effect::Set(value) => Effect::Set(map(value)),
            Effect::Combine(op, value) => Effect::Combine(*op, map(value)),
            Effect::MulAdd(a, b) => Effect::MulAdd(map(a), map(b)),
        }
    }

    /// An accumulation that contributes nothing where the condition fails.
    pub(super) fn contribute_if(&self, condition: &Expr) -> Effect {
        let choose =
            |value: &Expr, otherwise: Expr| Expr::select(condition.clone(), value.clone(), otherwise);
        match self {
            Effect::Set(value) => Effect::Set(value.clone()),
            Effect::Combine(op, value) => Effect::Combine(*op, choose(value, identity(*op, value.dtype()))),
            Effect::MulAdd(a, b) => {
                Effect::MulAdd(choose(a, Expr::zero(a.dtype())), choose(b, Expr::zero(b.dtype())))
            }
        }
    }
}

/// The value that changes nothing when it is joined to another one.
pub(super) fn identity(op: BinaryOp, dtype: DType) -> Expr {
    let (least, greatest) =
        dtype.int_range().map_or((0, 0), |(least, greatest)| (least as i64, greatest as i64));
    match op {
        BinaryOp::Mul => Expr::int(dtype, 1),
        BinaryOp::Min | BinaryOp::Minimum if dtype.is_float() => Expr::float(dtype, f64::INFINITY),
        BinaryOp::Max | BinaryOp::Maximum if dtype.is_float() => Expr::float(dtype, f64::NEG_INFINITY),
        BinaryOp::Min => Expr::int(dtype, greatest),
        BinaryOp::Max => Expr::int(dtype, least),
        BinaryOp::And => Expr::int(dtype, dtype.wrap(-1)),
        _ => Expr::int(dtype, 0),
    }
}

impl Kernel {
    /// The loop of a variable, if it is a loop's.
    pub(super) fn loop_of(&self, var: VarId) -> Option<&LoopForm> {
        self.loops.get(var.0.checked_sub(self.first_loop)? as usize)
    }

    /// The extent of a loop.
    pub(super) fn extent(&self, var: VarId) -> &Index {
        &self.loops[(var.0 - self.first_loop) as usize].extent
    }

    /// The element that a statement writes, as it was just before.
    pub(super) fn is_own_read(&self, statement: &Statement, expr: &Expr) -> bool {
        match expr.kind() {
            ExprKind::Load(read, indices) => {
                self.tensor_read(*read) == statement.target && *indices == statement.indices
            }
            _ => false,
        }
    }

    /// The tensor behind a buffer in an expression.
    pub(super) fn tensor_read(&self, read: BufferId) -> usize {
        self.reads[read.0 as usize].0
    }
}
