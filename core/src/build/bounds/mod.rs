//! Proving that no access leaves its buffer.
//!
//! [`check_in_bounds`] looks at every load and store of a program at the `Blocks` level. One that the ranges of
//! the iterators and the conditions around it keep inside is left as it is. A load for which that cannot be
//! shown is checked when the kernel runs ([`ExprKind::Bounded`]). An access that certainly leaves its buffer is an error,
//! and so is a store that cannot be shown to stay inside. This is what makes compiled kernels
//! memory-safe whatever a definition says.
//!
//! Proofs come from [`Facts`]. Where they fail and the domain is small, `points` enumerates it.

mod points;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use crate::dtype::DType;
use crate::expr::{Expr, ExprKind, Indices};
use crate::ids::{BufferId, VarId};
use crate::index::{Base, Facts, Index, Ranges};
use crate::program::Program;
use crate::stmt::{Block, If, Location, Stmt, Store};

use points::Verdict;

/// An access that leaves its buffer, or a store that may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfBounds {
    /// The tensor's name.
    pub buffer: String,
    /// Which of its dimensions, from 0.
    pub dimension: usize,
    /// The size of that dimension, as printed.
    pub extent: String,
    /// Whether the element is written; otherwise it is read.
    pub writes: bool,
    /// When it happens.
    pub case: Case,
    /// Where the user wrote it.
    pub location: Option<Location>,
}

/// When an access leaves its buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Case {
    /// For all dimensions of which none is zero.
    Always,
    /// At these values of the loop variables.
    At {
        /// Loop variables with their values.
        point: Vec<(String, i64)>,
        /// The index there.
        index: i64,
    },
    /// It cannot be excluded.
    Possible,
}

impl fmt::Display for OutOfBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let access = if self.writes { "write to" } else { "read of" };
        let (dimension, extent) = (self.dimension, &self.extent);
        write!(f, "the {access} `{}` ", self.buffer)?;
        match &self.case {
            Case::Always => {
                write!(f, "leaves dimension {dimension} of size {extent}, whatever the sizes are")?
            }
            Case::At { point, index } => {
                write!(f, "uses index {index} in dimension {dimension} of size {extent}")?;
                let point: Vec<String> =
                    point.iter().map(|(name, value)| format!("{name} = {value}")).collect();
                if !point.is_empty() {
                    write!(f, ", at {}", point.join(", "))?;
                }
            }
            Case::Possible => {
                write!(f, "cannot be shown to stay inside dimension {dimension} of size {extent}")?
            }
        }
        Ok(())
    }
}

impl OutOfBounds {
    /// An alternative to write.
    pub fn help(&self) -> String {
        format!(
            "shorten the loop, enlarge `{}`, or put the access into an `if` that excludes this case",
            self.buffer
        )
    }
}

/// The accesses of a program that are refused; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfBoundsErrors {
    /// The kernel's name.
    pub kernel: String,
    /// At least one.
    pub errors: Vec<OutOfBounds>,
}

impl fmt::Display for OutOfBoundsErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}` leaves its tensors", self.kernel)?;
        for error in &self.errors {
            write!(f, "\nerror: {error}")?;
            if let Some(location) = &error.location {
                write!(f, "\n  --> {location}")?;
            }
            write!(f, "\n  = help: {}", error.help())?;
        }
        Ok(())
    }
}

impl std::error::Error for OutOfBoundsErrors {}

/// The program with run-time checks around the indices of loads that cannot be shown to stay inside.
///
/// The program is at the `Blocks` level. Bind its dimensions first ([`Program::bind_dims`]): with
/// symbolic dimensions less can be proved, and small domains cannot be enumerated.
///
/// # Errors
/// Every access that certainly leaves its buffer, and every store that cannot be shown not to.
pub fn check_in_bounds(program: &Program) -> Result<Program, OutOfBoundsErrors> {
    let mut check = Check { program, errors: Vec::new() };
    let body = check.outside_blocks(&program.body);
    if check.errors.is_empty() {
        let mut checked = program.clone();
        checked.body = body;
        Ok(checked)
    } else {
        Err(OutOfBoundsErrors { kernel: program.name.to_string(), errors: check.errors })
    }
}

struct Check<'a> {
    program: &'a Program,
    errors: Vec<OutOfBounds>,
}

/// The facts that hold at one point of a block's body.
#[derive(Clone)]
struct ProgramPoint<'a> {
    block: &'a Block,
    ranges: Ranges,
    /// Conditions on the way here, with their outcomes.
    conditions: Vec<(Expr, bool)>,
    facts: Facts,
}

impl ProgramPoint<'_> {
    fn under(&self, condition: &Expr, holds: bool) -> Self {
        let mut point = self.clone();
        point.facts.assume(condition, holds, &self.ranges);
        point.conditions.push((condition.clone(), holds));
        point
    }
}

/// The result for one index of an access.
enum Finding {
    Inside,
    Unproved,
    Outside(Case),
}

impl Check<'_> {
    fn outside_blocks(&mut self, stmt: &Stmt) -> Stmt {
        if let Stmt::Block(block) = stmt {
            return self.block(block);
        }
        let mut stmt = stmt.clone();
        for child in stmt.children_mut() {
            *child = self.outside_blocks(child);
        }
        stmt
    }

    fn block(&mut self, block: &Arc<Block>) -> Stmt {
        let ranges: Ranges = block.iters.iter().map(|iter| (iter.var, iter.extent.clone())).collect();
        if block.iters.iter().any(|iter| iter.extent.is(0)) {
            return Stmt::Block(block.clone());
        }
        let point = ProgramPoint { block, ranges, conditions: Vec::new(), facts: Facts::default() };
        let mut checked = Block::clone(block);
        checked.init = block.init.as_ref().map(|init| self.inside_block(init, &point));
        checked.body = self.inside_block(&block.body, &point);
        Stmt::Block(Arc::new(checked))
    }

    fn inside_block(&mut self, stmt: &Stmt, point: &ProgramPoint<'_>) -> Stmt {
        match stmt {
            Stmt::Seq(stmts) => Stmt::seq(stmts.iter().map(|stmt| self.inside_block(stmt, point))),
            Stmt::For(node) => {
                let mut inner = point.clone();
                inner.ranges.insert_loop(node);
                let mut node = node.clone();
                let body = self.inside_block(&node.body, &inner);
                Arc::make_mut(&mut node).body = body;
                Stmt::For(node)
            }
            Stmt::If(node) => {
                let condition = self.expr(&node.condition, point);
                let then = self.inside_block(&node.then, &point.under(&node.condition, true));
                let otherwise = node.otherwise.as_ref();
                let otherwise =
                    otherwise.map(|stmt| self.inside_block(stmt, &point.under(&node.condition, false)));
                Stmt::If(Arc::new(If { condition, then, otherwise }))
            }
            Stmt::Store(node) => {
                let value = self.expr(&node.value, point);
                let indices: Indices =
                    node.indices.iter().map(|index| self.inside_index(index, point)).collect();
                for (dimension, index) in indices.iter().enumerate() {
                    match self.judge(node.buffer, dimension, index, point) {
                        Finding::Inside => {}
                        Finding::Unproved => self.report(node.buffer, dimension, true, Case::Possible, point),
                        Finding::Outside(case) => self.report(node.buffer, dimension, true, case, point),
                    }
                }
                Stmt::Store(Arc::new(Store { buffer: node.buffer, indices, value, kind: node.kind }))
            }
            Stmt::Alloc(node) => {
                let mut node = node.clone();
                let body = self.inside_block(&node.body, point);
                Arc::make_mut(&mut node).body = body;
                Stmt::Alloc(node)
            }
            Stmt::Intrinsic(node) => {
                let mut node = node.clone();
                let body = self.inside_block(&node.body, point);
                Arc::make_mut(&mut node).body = body;
                Stmt::Intrinsic(node)
            }
            Stmt::Block(_) | Stmt::Barrier | Stmt::Copies(_) | Stmt::Shuffle(_) => stmt.clone(),
        }
    }

    fn expr(&mut self, expr: &Expr, point: &ProgramPoint<'_>) -> Expr {
        let kind = match expr.kind() {
            ExprKind::Constant(_) | ExprKind::Scalar(_) => return expr.clone(),
            ExprKind::Index(index) => ExprKind::Index(self.inside_index(index, point)),
            ExprKind::Load(buffer, indices) => ExprKind::Load(*buffer, self.load(*buffer, indices, point)),
            ExprKind::Unary(op, a) => ExprKind::Unary(*op, self.expr(a, point)),
            ExprKind::Binary(op, a, b) => ExprKind::Binary(*op, self.expr(a, point), self.expr(b, point)),
            ExprKind::MulAdd(a, b, c) => {
                ExprKind::MulAdd(self.expr(a, point), self.expr(b, point), self.expr(c, point))
            }
            ExprKind::Select(condition, a, b) => ExprKind::Select(
                self.expr(condition, point),
                self.expr(a, &point.under(condition, true)),
                self.expr(b, &point.under(condition, false)),
            ),
            ExprKind::Cast(a) => ExprKind::Cast(self.expr(a, point)),
            ExprKind::Bitcast(a) => ExprKind::Bitcast(self.expr(a, point)),
            ExprKind::Bounded(a, extent) => ExprKind::Bounded(self.expr(a, point), extent.clone()),
        };
        if kind == *expr.kind() { expr.clone() } else { Expr::new(expr.dtype(), kind) }
    }

    /// An index with the loads inside it checked.
    fn inside_index(&mut self, index: &Index, point: &ProgramPoint<'_>) -> Index {
        let mut loads = false;
        crate::visit::for_each_load_in_index(index, &mut |_, _| loads = true);
        if !loads {
            return index.clone();
        }
        let cell = std::cell::RefCell::new(self);
        index.map_bases(&|base| match base {
            Base::Var(_) | Base::Lane(_) => None,
            Base::Sum(sum) => Some(cell.borrow_mut().inside_index(sum, point)),
            Base::Value(value) => Some(Index::value(cell.borrow_mut().expr(value, point))),
        })
    }

    fn load(&mut self, buffer: BufferId, indices: &Indices, point: &ProgramPoint<'_>) -> Indices {
        let mut checked = Indices::new();
        for (dimension, index) in indices.iter().enumerate() {
            let index = self.inside_index(index, point);
            checked.push(match self.judge(buffer, dimension, &index, point) {
                Finding::Inside => index,
                Finding::Unproved => {
                    let extent = self.program.buffer(buffer).shape[dimension].clone();
                    Index::value(Expr::new(DType::I64, ExprKind::Bounded(Expr::index(index), extent)))
                }
                Finding::Outside(case) => {
                    self.report(buffer, dimension, false, case, point);
                    index
                }
            });
        }
        checked
    }

    fn judge(&self, buffer: BufferId, dimension: usize, index: &Index, point: &ProgramPoint<'_>) -> Finding {
        let Some(extent) = self.program.buffer(buffer).shape.get(dimension) else { return Finding::Unproved };
        let room = (extent - index).offset(-1);
        let proved = point.facts.prove_nonnegative(index, &point.ranges)
            && point.facts.prove_nonnegative(&room, &point.ranges);
        if proved {
            return Finding::Inside;
        }
        match points::search(index, extent, &point.conditions, &point.ranges) {
            Verdict::Inside => Finding::Inside,
            Verdict::Outside(values, index) => {
                let named = |(var, value)| (self.loop_name(var, point.block), value);
                Finding::Outside(Case::At { point: values.into_iter().map(named).collect(), index })
            }
            Verdict::Unknown if self.leaves_always(index, extent, point) => Finding::Outside(Case::Always),
            Verdict::Unknown => Finding::Unproved,
        }
    }

    /// Whether an unconditional access at an affine index lies outside at one of its extremes, for all
    /// dimensions of at least 1.
    fn leaves_always(&self, index: &Index, extent: &Index, point: &ProgramPoint<'_>) -> bool {
        let dims: Vec<VarId> = self.program.dims().map(|(var, _)| var).collect();
        let holds = |index: &Index| {
            let positive = index.substitute(&|var| dims.contains(&var).then(|| Index::var(var).offset(1)));
            positive.is_provably_nonnegative(&Ranges::new())
        };
        let iters = &point.block.iters;
        let linear = iters.iter().all(|iter| index.linear_coefficient(iter.var).is_some());
        if !point.conditions.is_empty() || !linear || !iters.iter().all(|iter| holds(&iter.extent.offset(-1)))
        {
            return false;
        }
        let above = index.upper_bound(&point.ranges).is_some_and(|upper| holds(&(&upper - extent)));
        above || index.lower_bound(&point.ranges).is_some_and(|lower| holds(&lower.scale(-1).offset(-1)))
    }

    fn report(
        &mut self,
        buffer: BufferId,
        dimension: usize,
        writes: bool,
        case: Case,
        point: &ProgramPoint<'_>,
    ) {
        let buffer = self.program.buffer(buffer);
        let error = OutOfBounds {
            buffer: buffer.name.to_string(),
            dimension,
            extent: self.describe(&buffer.shape[dimension]),
            writes,
            case,
            location: point.block.location.clone(),
        };
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    /// The name of the loop that an iterator is bound to, which is the user's.
    fn loop_name(&self, var: VarId, block: &Block) -> String {
        let iter = block.iters.iter().find(|iter| iter.var == var);
        let bound = iter.and_then(|iter| iter.binding.as_var()).unwrap_or(var);
        self.program.variable(bound).name.to_string()
    }

    fn describe(&self, extent: &Index) -> String {
        match (extent.as_constant(), extent.as_var()) {
            (Some(size), _) => size.to_string(),
            (_, Some(var)) => self.program.variable(var).name.to_string(),
            _ => "given by its shape".to_owned(),
        }
    }
}
