//! Counts of arithmetic in a block's body.

use tilewright_core::analysis::block::{loads_in, stores};
use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, Cost, Expr, ExprKind};
use tilewright_core::ids::VarId;
use tilewright_core::index::{Index, Ranges, Term};
use tilewright_core::stmt::Block;
use tilewright_core::visit::{for_each_root_expr, for_each_var};

/// Operations for one point of a block's domain.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Arithmetic {
    /// Float additions, subtractions and multiplications.
    pub simple: f64,
    /// Float divisions and square roots.
    pub division: f64,
    /// Transcendental functions.
    pub transcendental: f64,
    /// Minima, maxima, comparisons and selections.
    pub comparison: f64,
    /// Integer operations, but those of conditions.
    pub integer: f64,
    /// Conversions, weighted by their instructions.
    pub conversion: f64,
    /// Loads.
    pub loads: f64,
    /// Stores.
    pub stores: f64,
    /// Loads under a condition that may differ between lanes, or at an address that depends on data.
    pub conditional: f64,
    /// Loads under a uniform condition, such as padding. The condition peels the boundary of a loop or selects between two addresses,
    /// so that it does not count as a comparison.
    pub uniform: f64,
}

/// The largest share of vectors in which a condition may fail that costs nothing.
const MOST_FAILING: f64 = 0.25;

/// The condition around a load.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    None,
    /// The same for all lanes.
    Uniform,
    /// May differ between lanes.
    OfLanes,
}

/// The instructions of a conversion: a float is brought into the range of the integers first.
fn conversion_cost(from: DType, to: DType) -> f64 {
    if from.is_float() && !to.is_float() { 3.0 } else { 1.0 }
}

/// The iterators of a block.
struct Domain<'a> {
    /// Those that differ between lanes.
    lanes: &'a [VarId],
    /// The extents of all.
    ranges: Ranges,
}

impl Arithmetic {
    /// Counts the operations of a block's body. The block's iterators in `lanes` differ between lanes.
    pub(crate) fn of(block: &Block, lanes: &[VarId]) -> Self {
        let mut counts = Arithmetic { stores: stores(&block.body).len() as f64, ..Arithmetic::default() };
        let ranges = block.iters.iter().map(|iter| (iter.var, iter.extent.clone())).collect();
        let domain = Domain { lanes, ranges };
        for_each_root_expr(&block.body, &mut |expr| counts.add(expr, &domain, Condition::None));
        counts
    }

    /// All operations but loads and stores, weighted by their cost in float additions.
    pub(super) fn operations(&self) -> f64 {
        let floats = self.simple + 8.0 * self.division + 20.0 * self.transcendental + self.comparison;
        floats + self.conversion + self.integer
    }

    fn add(&mut self, expr: &Expr, domain: &Domain<'_>, condition: Condition) {
        match expr.kind() {
            ExprKind::Constant(_) | ExprKind::Scalar(_) | ExprKind::Index(_) => {}
            ExprKind::Load(..) => {
                self.loads += 1.0;
                match condition {
                    Condition::None => {}
                    Condition::Uniform => self.uniform += 1.0,
                    Condition::OfLanes => self.conditional += 1.0,
                }
            }
            ExprKind::Unary(op, _) => self.add_operator(op.cost(), expr.dtype()),
            ExprKind::Binary(op, left, _) => self.add_operator(op.cost(), left.dtype()),
            ExprKind::MulAdd(..) => self.simple += 2.0,
            ExprKind::Select(question, then, otherwise) => {
                let kind = domain.kind(question);
                let is_of_data = kind != Condition::None && reads_data(question);
                if is_of_data || kind == Condition::OfLanes {
                    // No loop is cut by data, nor between lanes: they are compared each time.
                    self.comparison += 1.0;
                    self.add(question, domain, condition);
                }
                let inner = match kind {
                    Condition::None => condition,
                    // All lanes compute both values: data decide between them, not where elements lie.
                    Condition::OfLanes if is_of_data => condition,
                    Condition::Uniform if condition == Condition::None => Condition::Uniform,
                    Condition::Uniform => condition,
                    Condition::OfLanes => Condition::OfLanes,
                };
                self.add(then, domain, inner);
                self.add(otherwise, domain, inner);
                return;
            }
            ExprKind::Cast(operand) => self.conversion += conversion_cost(operand.dtype(), expr.dtype()),
            ExprKind::Bitcast(_) => self.conversion += 1.0,
            ExprKind::Bounded(..) => self.conditional += 1.0,
        }
        for operand in expr.operands() {
            self.add(operand, domain, condition);
        }
    }

    /// One operator on operands of a type.
    fn add_operator(&mut self, cost: Cost, operands: DType) {
        match cost {
            Cost::Comparison => self.comparison += 1.0,
            _ if operands == DType::Bool => {}
            _ if !operands.is_float() => self.integer += 1.0,
            Cost::Simple => self.simple += 1.0,
            Cost::Division(count) => self.division += f64::from(count),
            Cost::Transcendental(count) => self.transcendental += f64::from(count),
        }
    }
}

impl Domain<'_> {
    /// The kind of a condition. One that holds for most vectors as a whole counts as none: loops are cut where it ceases to.
    fn kind(&self, condition: &Expr) -> Condition {
        if is_uniform(condition, self.lanes) {
            Condition::Uniform
        } else if self.holds_for_most_vectors(condition) {
            Condition::None
        } else {
            Condition::OfLanes
        }
    }

    /// Whether a condition is a comparison of indices that fails in few vectors, such as the last one of a row.
    fn holds_for_most_vectors(&self, condition: &Expr) -> bool {
        let ExprKind::Binary(BinaryOp::Lt, left, right) = condition.kind() else { return false };
        let (ExprKind::Index(left), ExprKind::Index(right)) = (left.kind(), right.kind()) else {
            return false;
        };
        let difference = left - right;
        let is_of_lanes = |term: &&Term| {
            self.lanes.iter().any(|lane| Index::from_terms([(*term).clone()], 0).mentions(*lane))
        };
        let lanes = Index::from_terms(difference.terms().iter().filter(is_of_lanes).cloned(), 0);
        let between = lanes.interval(&self.ranges);
        let vectors = (&difference - &lanes).interval(&self.ranges);
        if !between.is_bounded() || !vectors.is_bounded() {
            return false;
        }
        // The differences in the last lane range between these.
        let (first, last) =
            (vectors.min.saturating_add(between.max), vectors.max.saturating_add(between.max));
        let fails = last.saturating_add(1).max(0) as f64 / (last.saturating_sub(first).max(1)) as f64;
        first < 0 && fails <= MOST_FAILING
    }
}

/// Whether a condition is the same for all lanes: it has no iterator that differs between lanes.
fn is_uniform(condition: &Expr, lanes: &[VarId]) -> bool {
    let mut differs = false;
    for_each_var(condition, &mut |var| differs |= lanes.contains(&var));
    !differs
}

/// Whether a condition depends on the elements of a tensor.
fn reads_data(condition: &Expr) -> bool {
    let mut loads = Vec::new();
    loads_in(condition, &mut loads);
    !loads.is_empty()
}
