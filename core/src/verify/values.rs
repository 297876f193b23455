//! Indices and value expressions: the variables they may mention, their types and their reach.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use crate::dtype::DType;
use crate::expr::{Expr, ExprKind};
use crate::ids::{BufferId, VarId};
use crate::index::{Base, Digit, Index, NO_MODULUS};
use crate::program::{Param, VariableKind};
use crate::render::Entity;
use crate::verify::Level;
use crate::verify::range::exact_range;
use crate::verify::statements::Walk;
use crate::verify::types::type_error;

/// The variables that an expression may mention, besides the dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visible {
    /// None.
    Dims,
    /// Every loop around.
    Around,
    /// Inside a block its iterators and loops; elsewhere as `Around`.
    Inside,
}

/// The statement that is being checked, and the values found in it so far.
#[derive(Debug)]
pub(super) struct Use {
    pub(super) entity: Entity,
    /// Its name in messages, with an article.
    what: &'static str,
    visible: Visible,
    pub(super) loads_allowed: bool,
    /// The numbers of lanes that occur.
    pub(super) lanes: BTreeSet<u32>,
    /// The nodes that were checked, by address, and whether under a condition: expanded functions share theirs heavily.
    checked: FxHashSet<(usize, bool)>,
}

impl Use {
    /// Loads are allowed and no lane was found yet.
    pub(super) fn new(visible: Visible, entity: Entity, what: &'static str) -> Self {
        Use {
            entity,
            what,
            visible,
            loads_allowed: true,
            lanes: BTreeSet::new(),
            checked: FxHashSet::default(),
        }
    }
}

impl Walk<'_, '_> {
    pub(super) fn index(&mut self, index: &Index, place: &mut Use) {
        for term in index.terms() {
            let Digit { base, divisor, modulus } = &term.digit;
            if *divisor < 1 || (*modulus != NO_MODULUS && *modulus < 2) {
                let message = format!("{} has a digit `/ {divisor} % {modulus}`", place.what);
                self.report.error(place.entity, message);
            }
            match base {
                Base::Var(var) => self.variable(*var, place),
                Base::Lane(lanes) => {
                    place.lanes.insert(*lanes);
                }
                Base::Sum(sum) => self.index(sum, place),
                Base::Value(value) => {
                    if value.dtype() != DType::I64 {
                        let message = format!("a value inside an index must be i64, not {}", value.dtype());
                        self.report.error(place.entity, message);
                    }
                    self.expr(value, place);
                }
            }
        }
    }

    fn variable(&mut self, var: VarId, place: &Use) {
        if self.dims.contains(&var) || self.is_visible(var, place.visible) {
            return;
        }
        let name = self.report.variable(var);
        let known = self.report.knows_variable(var);
        let around = self.variables.iter().any(|enclosing| enclosing.var == var);
        let message = match place.visible {
            _ if known && self.report.program.variable(var).kind == VariableKind::Scalar => {
                format!("scalar `{name}` is used as an index variable")
            }
            _ if !around => format!("{} mentions `{name}` outside of its scope", place.what),
            Visible::Dims => format!("{} mentions `{name}`, but may mention dimensions only", place.what),
            _ => format!("{} mentions loop `{name}` around its block; use an iterator", place.what),
        };
        self.report.error(place.entity, message);
    }

    fn is_visible(&self, var: VarId, visible: Visible) -> bool {
        let from = match visible {
            Visible::Dims => return false,
            Visible::Around => 0,
            Visible::Inside => self.first_visible,
        };
        self.variables[from..].iter().any(|enclosing| enclosing.var == var)
    }

    pub(super) fn expr(&mut self, expr: &Expr, place: &mut Use) {
        if !place.checked.insert((expr.address(), self.conditions > 0)) {
            return;
        }
        if let Some(message) = type_error(expr) {
            self.report.error(place.entity, message);
        }
        if self.level == Level::Flat && expr.dtype().is_storage_only() {
            let message = format!("a value is of type {}; level `flat` has bytes instead", expr.dtype());
            self.report.error(place.entity, message);
        }
        match expr.kind() {
            ExprKind::Scalar(var) => self.scalar(*var, expr.dtype(), place),
            ExprKind::Index(index) => self.index(index, place),
            ExprKind::Load(buffer, indices) => self.load(*buffer, indices, expr.dtype(), place),
            ExprKind::Select(condition, then, otherwise) => {
                self.expr(condition, place);
                self.conditions += 1;
                self.expr(then, place);
                self.expr(otherwise, place);
                self.conditions -= 1;
            }
            ExprKind::Bounded(value, extent) => {
                self.expr(value, place);
                let before = place.lanes.clone();
                self.index(extent, place);
                if place.lanes != before {
                    self.report.error(place.entity, "the extent of `bounded` cannot be a vector".to_owned());
                }
            }
            _ => expr.operands().into_iter().for_each(|operand| self.expr(operand, place)),
        }
    }

    fn scalar(&mut self, var: VarId, dtype: DType, place: &Use) {
        let declared = self.report.program.params.iter().find_map(|param| match param {
            Param::Scalar(scalar, dtype) if *scalar == var => Some(*dtype),
            _ => None,
        });
        if declared != Some(dtype) {
            let name = self.report.variable(var);
            let message = match declared {
                None => format!("`{name}` is used as a scalar, but is no scalar parameter"),
                Some(declared) => format!("scalar `{name}` is {declared}, but is used as {dtype}"),
            };
            self.report.error(place.entity, message);
        }
    }

    fn load(&mut self, buffer: BufferId, indices: &[Index], dtype: DType, place: &mut Use) {
        if !place.loads_allowed {
            let name = self.report.buffer(buffer);
            self.report.error(place.entity, format!("{} loads from `{name}`", place.what));
        }
        self.access(buffer, indices, dtype, place);
        self.note_load(buffer, place.entity);
    }

    /// Checks the indices and the type of a load or store.
    pub(super) fn access(&mut self, buffer: BufferId, indices: &[Index], dtype: DType, place: &mut Use) {
        indices.iter().for_each(|index| self.index(index, place));
        if !self.report.knows_buffer(buffer) {
            return self.report.error(place.entity, format!("the program has no buffer {buffer:?}"));
        }
        self.check_allocated(buffer, place.entity);
        let declared = self.report.program.buffer(buffer);
        if declared.dtype != dtype {
            let name = self.report.buffer(buffer);
            let message = format!("`{name}` holds {}, but is accessed as {dtype}", declared.dtype);
            self.report.error(place.entity, message);
        }
        if declared.shape.len() != indices.len() {
            let (name, rank) = (self.report.buffer(buffer), declared.shape.len());
            let message =
                format!("`{name}` is of rank {rank}, but its number of indices is {}", indices.len());
            return self.report.error(place.entity, message);
        }
        if self.conditions == 0 {
            for (dimension, (index, extent)) in indices.iter().zip(&declared.shape).enumerate() {
                self.reach(buffer, dimension, index, extent, place.entity);
            }
        }
    }

    /// Checks that an index that is certainly evaluated over a known range stays inside a known extent.
    fn reach(&mut self, buffer: BufferId, dimension: usize, index: &Index, extent: &Index, entity: Entity) {
        let constant_extent = |var: VarId| {
            let around = self.variables[self.first_visible..].iter().rev();
            around.into_iter().find(|enclosing| enclosing.var == var)?.extent
        };
        // Code under a loop without iterations reaches nothing.
        let never_runs = self.variables.iter().any(|enclosing| enclosing.extent == Some(0));
        let (Some(extent), Some((low, high))) = (extent.as_constant(), exact_range(index, &constant_extent))
        else {
            return;
        };
        if !never_runs && (low < 0 || high >= i128::from(extent)) {
            let name = self.report.buffer(buffer);
            let reach =
                if low == high { format!("is {low}") } else { format!("reaches from {low} to {high}") };
            let message = format!("index {dimension} of `{name}` {reach}, outside of 0..{extent}");
            self.report.error(entity, message);
        }
    }
}
