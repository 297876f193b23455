//! Whether a statement is what an intrinsic computes.
//!
//! Both are loops around one store. They are the same when the loops can be paired so that the stored values
//! have the same form, up to the order of operands of commutative operators, and each access is to the elements
//! that the description's parameter has, at the distances that its shape demands.

use rustc_hash::FxHashMap;

use crate::expr::{BinaryOp, Expr, ExprKind, Indices};
use crate::ids::{BufferId, VarId};
use crate::index::{Index, Ranges};
use crate::intrinsic::TensorIntrinsic;
use crate::program::Program;
use crate::stmt::{Stmt, Store};

/// How a statement is an intrinsic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The operands, in the order of the description's tensor parameters.
    pub operands: Vec<Operand>,
    /// The values of the description's dimensions, in their order; `None` for one that no operand uses.
    pub dims: Vec<Option<Index>>,
}

/// The elements that stand for a tensor parameter of a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// The buffer they are in.
    pub buffer: BufferId,
    /// The position of the first one in the buffer's elements, row-major.
    pub first: Index,
    /// For each dimension of the parameter, the distance of neighbours, in elements.
    pub strides: Vec<Index>,
}

/// More loops than any description has; a bound for the pairings tried.
const MAX_LOOPS: usize = 6;

impl TensorIntrinsic {
    /// The operands, when a statement of `program` computes what the intrinsic computes.
    pub fn matches(&self, program: &Program, stmt: &Stmt) -> Option<Match> {
        let (loops, store) = nest_of(stmt)?;
        if loops.len() != self.loops.len() || loops.len() > MAX_LOOPS {
            return None;
        }
        let mut ranges = Ranges::new();
        for (var, extent) in &loops {
            ranges.insert(*var, Index::constant(*extent));
        }
        let mut search = Search { intrinsic: self, program, store, loops: &loops, ranges, pairs: Vec::new() };
        search.pair_loops()
    }
}

/// Perfectly nested loops of constant extents around one store.
fn nest_of(stmt: &Stmt) -> Option<(Vec<(VarId, i64)>, &Store)> {
    let mut loops = Vec::new();
    let mut current = stmt;
    loop {
        match current {
            Stmt::For(node) => {
                loops.push((node.var, node.extent.as_constant()?));
                current = &node.body;
            }
            Stmt::Intrinsic(node) => current = &node.body,
            Stmt::Store(store) => return Some((loops, store)),
            _ => return None,
        }
    }
}

struct Search<'a> {
    intrinsic: &'a TensorIntrinsic,
    program: &'a Program,
    store: &'a Store,
    loops: &'a [(VarId, i64)],
    ranges: Ranges,
    /// The loop that each of the description's iterators is, outermost first.
    pairs: Vec<(VarId, VarId)>,
}

/// The values found so far for the description's parameters and dimensions.
#[derive(Clone, Default)]
struct Bound {
    operands: FxHashMap<BufferId, Operand>,
    dims: FxHashMap<VarId, Index>,
}

impl Search<'_> {
    fn pair_loops(&mut self) -> Option<Match> {
        let Some((iter, extent)) = self.intrinsic.loops.get(self.pairs.len()).copied() else {
            return self.match_store();
        };
        for (var, own) in self.loops {
            if *own != extent || self.pairs.iter().any(|(_, taken)| taken == var) {
                continue;
            }
            self.pairs.push((iter, *var));
            let found = self.pair_loops();
            self.pairs.pop();
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn match_store(&self) -> Option<Match> {
        let wanted = &self.intrinsic.store;
        let bound = self.access(
            (wanted.buffer, &wanted.indices),
            (self.store.buffer, &self.store.indices),
            Bound::default(),
        )?;
        let bound = self.value(&wanted.value, &self.store.value, bound)?;
        // The instruction reads all of its operands before it writes.
        let written = &bound.operands.get(&wanted.buffer)?.buffer;
        let is_apart =
            |(param, operand): (&BufferId, &Operand)| *param == wanted.buffer || operand.buffer != *written;
        if !bound.operands.iter().all(is_apart) {
            return None;
        }
        let description = &self.intrinsic.description;
        let operands = description
            .buffer_params()
            .map(|(param, _)| bound.operands.get(&param).cloned())
            .collect::<Option<_>>()?;
        let dims = description.dims().map(|(var, _)| bound.dims.get(&var).cloned()).collect();
        Some(Match { operands, dims })
    }

    fn value(&self, wanted: &Expr, found: &Expr, bound: Bound) -> Option<Bound> {
        if wanted.dtype() != found.dtype() {
            return None;
        }
        match (wanted.kind(), found.kind()) {
            (ExprKind::Load(param, indices), ExprKind::Load(buffer, own)) => {
                self.access((*param, indices), (*buffer, own), bound)
            }
            (ExprKind::Constant(a), ExprKind::Constant(b)) => (a == b).then_some(bound),
            (ExprKind::Unary(a, x), ExprKind::Unary(b, y)) if a == b => self.value(x, y, bound),
            (ExprKind::Cast(x), ExprKind::Cast(y)) | (ExprKind::Bitcast(x), ExprKind::Bitcast(y)) => {
                self.value(x, y, bound)
            }
            (ExprKind::Binary(a, x0, x1), ExprKind::Binary(b, y0, y1)) if a == b => {
                let in_order = self.value(x0, y0, bound.clone()).and_then(|bound| self.value(x1, y1, bound));
                if in_order.is_some() || !is_commutative(*a) {
                    return in_order;
                }
                self.value(x0, y1, bound).and_then(|bound| self.value(x1, y0, bound))
            }
            (ExprKind::MulAdd(x0, x1, x2), ExprKind::MulAdd(y0, y1, y2))
            | (ExprKind::Select(x0, x1, x2), ExprKind::Select(y0, y1, y2)) => {
                let bound = self.value(x0, y0, bound)?;
                let bound = self.value(x1, y1, bound)?;
                self.value(x2, y2, bound)
            }
            _ => None,
        }
    }

    /// Lets a parameter stand for the elements that an access goes through.
    fn access(
        &self,
        (param, wanted): (BufferId, &Indices),
        (buffer, indices): (BufferId, &Indices),
        mut bound: Bound,
    ) -> Option<Bound> {
        let description = &self.intrinsic.description;
        if description.buffer(param).dtype != self.program.buffer(buffer).dtype {
            return None;
        }
        let position = self.program.place(buffer, indices).simplify(&self.ranges);
        let var_of = |iter: &Index| {
            let iter = iter.as_var()?;
            self.pairs.iter().find(|(wanted, _)| *wanted == iter).map(|(_, var)| *var)
        };
        let vars: Vec<VarId> = wanted.iter().map(var_of).collect::<Option<_>>()?;
        let (first, strides) = self.linear(&position, &vars)?;
        let shape = &description.buffer(param).shape;
        let mut distance = Distance { factor: 1, dim: None };
        for (extent, stride) in shape.iter().zip(&strides).rev() {
            if !distance.is_that_of(stride, &mut bound.dims) {
                return None;
            }
            distance = distance.times(extent)?;
        }
        let operand = Operand { buffer, first, strides };
        let known = bound.operands.entry(param).or_insert_with(|| operand.clone());
        (*known == operand).then_some(bound)
    }

    /// The first element and the distance along each of `vars`, when a position depends on no other loop and
    /// linearly on these.
    fn linear(&self, position: &Index, vars: &[VarId]) -> Option<(Index, Vec<Index>)> {
        let is_loop = |var: VarId| self.loops.iter().any(|(own, _)| *own == var);
        let first = position.substitute(&|var| is_loop(var).then(|| Index::constant(0)));
        let mut rebuilt = first.clone();
        let mut strides = Vec::new();
        for var in vars {
            let next = position.substitute(&|other| match other == *var {
                true => Some(Index::constant(1)),
                false => is_loop(other).then(|| Index::constant(0)),
            });
            let stride = &next - &first;
            rebuilt = &rebuilt + &Index::var(*var).multiply(&stride);
            strides.push(stride);
        }
        (rebuilt == *position).then_some((first, strides))
    }
}

/// The distance of neighbours along a dimension of a parameter: a number, or a multiple of a dimension of the
/// description, which may be anything.
#[derive(Clone, Copy)]
struct Distance {
    factor: i64,
    dim: Option<VarId>,
}

impl Distance {
    /// Whether this is `stride`; a dimension that stands for nothing yet stands for what it then has to.
    fn is_that_of(self, stride: &Index, dims: &mut FxHashMap<VarId, Index>) -> bool {
        let Some(dim) = self.dim else { return stride.is(self.factor) };
        let quotient = stride.floor_div(self.factor);
        quotient.scale(self.factor) == *stride
            && *dims.entry(dim).or_insert_with(|| quotient.clone()) == quotient
    }

    /// The distance times `extent`; `None` when the product is not of this form.
    fn times(self, extent: &Index) -> Option<Self> {
        match (extent.as_constant(), extent.as_var(), self.dim) {
            (Some(extent), _, _) => Some(Distance { factor: self.factor.checked_mul(extent)?, ..self }),
            (None, Some(dim), None) => Some(Distance { dim: Some(dim), ..self }),
            _ => None,
        }
    }
}

pub(super) fn is_commutative(op: BinaryOp) -> bool {
    use BinaryOp as Op;
    matches!(op, Op::Add | Op::Mul | Op::Min | Op::Max | Op::Eq | Op::Ne | Op::And | Op::Or | Op::Xor)
}
