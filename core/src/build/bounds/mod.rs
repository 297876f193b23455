//! Proving that no access leaves its buffer.
//!
//! [`check_in_bounds`] looks at every load and store of a program at the `Blocks` level. One that the ranges of
//! the iterators and the conditions around it keep inside is left as it is. A load for which that cannot be
//! shown is checked when the kernel runs ([`ExprKind::Bounded`]). What certainly leaves its buffer is an error,
//! and so is a store that cannot be shown to stay inside. This is what makes compiled kernels
//! memory-safe whatever a definition says.
//!
//! Proofs come from [`Facts`]; what they leave open is decided by enumeration in `points` where the domain is small.

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
    /// Whatever the dimensions are, if none of them is zero.
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
    /// What to write instead.
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

/// What is known at one place of a block.
#[derive(Clone)]
struct Place<'a> {
    block: &'a Block,
    ranges: Ranges,
    /// Conditions on the way here, with their outcomes.
    conditions: Vec<(Expr, bool)>,
    facts: Facts,
}

impl Place<'_> {
    fn under(&self, condition: &Expr, holds: bool) -> Self {
        let mut place = self.clone();
        place.facts.assume(condition, holds, &self.ranges);
        place.conditions.push((condition.clone(), holds));
        place
    }
}

/// What is known of one index of an access.
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
        let place = Place { block, ranges, conditions: Vec::new(), facts: Facts::default() };
        let mut checked = Block::clone(block);
        checked.init = block.init.as_ref().map(|init| self.inside_block(init, &place));
        checked.body = self.inside_block(&block.body, &place);
        Stmt::Block(Arc::new(checked))
    }

    fn inside_block(&mut self, stmt: &Stmt, place: &Place<'_>) -> Stmt {
        match stmt {
            Stmt::Seq(stmts) => Stmt::seq(stmts.iter().map(|stmt| self.inside_block(stmt, place))),
            Stmt::For(node) => {
                let mut inner = place.clone();
                inner.ranges.insert_loop(node);
                let mut node = node.clone();
                let body = self.inside_block(&node.body, &inner);
                Arc::make_mut(&mut node).body = body;
                Stmt::For(node)
            }
            Stmt::If(node) => {
                let condition = self.expr(&node.condition, place);
                let then = self.inside_block(&node.then, &place.under(&node.condition, true));
                let otherwise = node.otherwise.as_ref();
                let otherwise =
                    otherwise.map(|stmt| self.inside_block(stmt, &place.under(&node.condition, false)));
                Stmt::If(Arc::new(If { condition, then, otherwise }))
            }
            Stmt::Store(node) => {
                let value = self.expr(&node.value, place);
                let indices: Indices =
                    node.indices.iter().map(|index| self.inside_index(index, place)).collect();
                for (dimension, index) in indices.iter().enumerate() {
                    match self.judge(node.buffer, dimension, index, place) {
                        Finding::Inside => {}
                        Finding::Unproved => self.report(node.buffer, dimension, true, Case::Possible, place),
                        Finding::Outside(case) => self.report(node.buffer, dimension, true, case, place),
                    }
                }
                Stmt::Store(Arc::new(Store { buffer: node.buffer, indices, value }))
            }
            Stmt::Alloc(node) => {
                let mut node = node.clone();
                let body = self.inside_block(&node.body, place);
                Arc::make_mut(&mut node).body = body;
                Stmt::Alloc(node)
            }
            Stmt::Intrinsic(node) => {
                let mut node = node.clone();
                let body = self.inside_block(&node.body, place);
                Arc::make_mut(&mut node).body = body;
                Stmt::Intrinsic(node)
            }
            Stmt::Block(_) => stmt.clone(),
        }
    }

    fn expr(&mut self, expr: &Expr, place: &Place<'_>) -> Expr {
        let kind = match expr.kind() {
            ExprKind::Constant(_) | ExprKind::Scalar(_) => return expr.clone(),
            ExprKind::Index(index) => ExprKind::Index(self.inside_index(index, place)),
            ExprKind::Load(buffer, indices) => ExprKind::Load(*buffer, self.load(*buffer, indices, place)),
            ExprKind::Unary(op, a) => ExprKind::Unary(*op, self.expr(a, place)),
            ExprKind::Binary(op, a, b) => ExprKind::Binary(*op, self.expr(a, place), self.expr(b, place)),
            ExprKind::MulAdd(a, b, c) => {
                ExprKind::MulAdd(self.expr(a, place), self.expr(b, place), self.expr(c, place))
            }
            ExprKind::Select(condition, a, b) => ExprKind::Select(
                self.expr(condition, place),
                self.expr(a, &place.under(condition, true)),
                self.expr(b, &place.under(condition, false)),
            ),
            ExprKind::Cast(a) => ExprKind::Cast(self.expr(a, place)),
            ExprKind::Bitcast(a) => ExprKind::Bitcast(self.expr(a, place)),
            ExprKind::Bounded(a, extent) => ExprKind::Bounded(self.expr(a, place), extent.clone()),
        };
        if kind == *expr.kind() { expr.clone() } else { Expr::new(expr.dtype(), kind) }
    }

    /// An index with the loads inside it checked.
    fn inside_index(&mut self, index: &Index, place: &Place<'_>) -> Index {
        let mut loads = false;
        crate::visit::for_each_load_in_index(index, &mut |_, _| loads = true);
        if !loads {
            return index.clone();
        }
        let cell = std::cell::RefCell::new(self);
        index.map_bases(&|base| match base {
            Base::Var(_) | Base::Lane(_) => None,
            Base::Sum(sum) => Some(cell.borrow_mut().inside_index(sum, place)),
            Base::Value(value) => Some(Index::value(cell.borrow_mut().expr(value, place))),
        })
    }

    fn load(&mut self, buffer: BufferId, indices: &Indices, place: &Place<'_>) -> Indices {
        let mut checked = Indices::new();
        for (dimension, index) in indices.iter().enumerate() {
            let index = self.inside_index(index, place);
            checked.push(match self.judge(buffer, dimension, &index, place) {
                Finding::Inside => index,
                Finding::Unproved => {
                    let extent = self.program.buffer(buffer).shape[dimension].clone();
                    Index::value(Expr::new(DType::I64, ExprKind::Bounded(Expr::index(index), extent)))
                }
                Finding::Outside(case) => {
                    self.report(buffer, dimension, false, case, place);
                    index
                }
            });
        }
        checked
    }

    fn judge(&self, buffer: BufferId, dimension: usize, index: &Index, place: &Place<'_>) -> Finding {
        let Some(extent) = self.program.buffer(buffer).shape.get(dimension) else { return Finding::Unproved };
        let room = (extent - index).offset(-1);
        let proved = place.facts.prove_nonnegative(index, &place.ranges)
            && place.facts.prove_nonnegative(&room, &place.ranges);
        if proved {
            return Finding::Inside;
        }
        match points::search(index, extent, &place.conditions, &place.ranges) {
            Verdict::Inside => Finding::Inside,
            Verdict::Outside(point, index) => {
                let named = |(var, value)| (self.loop_name(var, place.block), value);
                Finding::Outside(Case::At { point: point.into_iter().map(named).collect(), index })
            }
            Verdict::Unknown if self.leaves_always(index, extent, place) => Finding::Outside(Case::Always),
            Verdict::Unknown => Finding::Unproved,
        }
    }

    /// Whether an unconditional access at an affine index lies outside at one of its extremes, for all
    /// dimensions of at least 1.
    fn leaves_always(&self, index: &Index, extent: &Index, place: &Place<'_>) -> bool {
        let dims: Vec<VarId> = self.program.dims().map(|(var, _)| var).collect();
        let holds = |index: &Index| {
            let positive = index.substitute(&|var| dims.contains(&var).then(|| Index::var(var).offset(1)));
            positive.is_provably_nonnegative(&Ranges::new())
        };
        let iters = &place.block.iters;
        let linear = iters.iter().all(|iter| index.linear_coefficient(iter.var).is_some());
        if !place.conditions.is_empty() || !linear || !iters.iter().all(|iter| holds(&iter.extent.offset(-1)))
        {
            return false;
        }
        let above = index.upper_bound(&place.ranges).is_some_and(|upper| holds(&(&upper - extent)));
        above || index.lower_bound(&place.ranges).is_some_and(|lower| holds(&lower.scale(-1).offset(-1)))
    }

    fn report(&mut self, buffer: BufferId, dimension: usize, writes: bool, case: Case, place: &Place<'_>) {
        let buffer = self.program.buffer(buffer);
        let error = OutOfBounds {
            buffer: buffer.name.to_string(),
            dimension,
            extent: self.describe(&buffer.shape[dimension]),
            writes,
            case,
            location: place.block.location.clone(),
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
