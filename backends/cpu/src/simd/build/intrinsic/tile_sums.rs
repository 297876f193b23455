//! Sums of products of tiles, in tile registers while a loop runs.
//!
//! Sums whose addresses are the same in all iterations of a loop are loaded before it and stored behind it. Loops inside that
//! move from sum to sum, such as those over the rows and columns of tiles, are unrolled. Where statements before the loop only
//! clear the elements of the sums, the registers are cleared instead, and the statements are left out.
//!
//! Products that follow each other without such a loop share the registers of their sums, too.

use rustc_hash::FxHashSet;
use tilewright_core::expr::{Expr, ExprKind};
use tilewright_core::ids::VarId;
use tilewright_core::index::Index;
use tilewright_core::intrinsic::Operand;
use tilewright_core::stmt::{For, Stmt};

use crate::flat::access::{for_each_access, for_each_load};
use crate::simd::build::intrinsic::{ROWS, holds_tiles};
use crate::simd::build::stmt::registers::single;
use crate::simd::build::{Binding, Builder, Outcome};
use crate::simd::ir::Reg;

/// The most tiles of sums: with fewer than two registers for operands no product can be made.
const MOST_SUMS: usize = 6;
/// The columns of a tile of sums.
const COLUMNS: i64 = 16;

/// A tile of sums, and the register that it is in.
pub(in crate::simd::build) struct Sum {
    place: Operand,
    register: Reg,
}

impl Builder<'_> {
    /// The register of the sums at a place, while a loop runs around them.
    pub(in crate::simd::build) fn sum_at(&self, place: &Operand) -> Option<Reg> {
        self.sums.iter().find(|sum| sum.place == *place).map(|sum| sum.register)
    }

    /// Whether some sums are in registers.
    pub(in crate::simd::build) fn holds_sums(&self) -> bool {
        !self.sums.is_empty()
    }

    /// Builds a loop with the sums inside in registers; false when it is not a loop around sums at fixed addresses.
    pub(in crate::simd::build) fn repeat_with_sums(&mut self, node: &For, before: &[Stmt]) -> Outcome<bool> {
        if !self.limits.tiles || self.holds_sums() || !holds_tiles(&node.body) {
            return Ok(false);
        }
        let Some(places) = self.places_of_sums(node) else { return Ok(false) };
        let is_clear = !before.is_empty();
        if is_clear && !self.clears(before, &places) {
            return Ok(false);
        }
        for place in places {
            let register = if is_clear { self.tile_of_zeros() } else { self.tile_from(&place)? };
            self.sums.push(Sum { place, register });
        }
        self.repeat(node)?;
        self.store_sums()?;
        Ok(true)
    }

    /// Builds a loop at the end of some statements that clear its sums, with the sums in registers. Returns the
    /// number of statements built, 0 when they have another form.
    pub(in crate::simd::build) fn cleared_sums(&mut self, stmts: &[Stmt]) -> Outcome<usize> {
        if !self.limits.tiles || self.holds_sums() {
            return Ok(0);
        }
        let Some(position) = stmts.iter().position(holds_tiles) else { return Ok(0) };
        match &stmts[position] {
            Stmt::For(node) if position > 0 && self.repeat_with_sums(node, &stmts[..position])? => {
                Ok(position + 1)
            }
            _ => Ok(0),
        }
    }

    /// Builds the products at the beginning of some statements, as many as have few sums, with the sums in registers. Returns their number.
    pub(in crate::simd::build) fn products_with_sums(&mut self, stmts: &[Stmt]) -> Outcome<usize> {
        if !self.limits.tiles || self.holds_sums() {
            return Ok(0);
        }
        let mut places: Vec<Operand> = Vec::new();
        let mut count = 0;
        for stmt in stmts {
            let Some([a, b, sums]) = self.tile_operands(stmt) else { break };
            let sums = self.resolved(&sums);
            let is_new = !places.contains(&sums);
            let buffers = places.iter().chain([&sums]).map(|place| place.buffer);
            let reads_sums = buffers.into_iter().any(|buffer| [a.buffer, b.buffer].contains(&buffer));
            let fits = places.len() < MOST_SUMS
                && self.is_provably_inside(&sums)
                && places.iter().all(|other| are_apart(other, &sums));
            if reads_sums || (is_new && !fits) {
                break;
            }
            if is_new {
                places.push(sums);
            }
            count += 1;
        }
        // Sums of one product each pass through registers one after the other.
        if count <= places.len() {
            return Ok(0);
        }
        for place in places {
            let register = self.tile_from(&place)?;
            self.sums.push(Sum { place, register });
        }
        stmts[..count].iter().try_for_each(|stmt| self.stmt(stmt))?;
        self.store_sums()?;
        Ok(count)
    }

    /// Writes the sums that are in registers.
    fn store_sums(&mut self) -> Outcome<()> {
        std::mem::take(&mut self.sums).into_iter().try_for_each(|sum| self.tile_to(&sum.place, sum.register))
    }

    /// Unrolls a loop that moves from sum to sum; false when it is another loop.
    pub(in crate::simd::build) fn unroll(&mut self, node: &For) -> Outcome<bool> {
        if !self.holds_sums() {
            return Ok(false);
        }
        let Some(extent) = self.extent_over_sums(node) else { return Ok(false) };
        for value in 0..extent {
            self.variables.insert(node.var, Binding::Constant(value));
            let result = self.stmt(&node.body);
            self.variables.remove(&node.var);
            result?;
        }
        Ok(true)
    }

    /// The places of the sums inside a loop, when all of them can be in registers while it runs.
    fn places_of_sums(&mut self, node: &For) -> Option<Vec<Operand>> {
        let mut places = Vec::new();
        let mut inside = Vec::new();
        self.survey_sums_in(node, &mut inside, &mut places)?;
        let is_possible = (1..=MOST_SUMS).contains(&places.len())
            && places.iter().all(|place| self.is_provably_inside(place))
            && (1..places.len()).all(|end| places[..end].iter().all(|other| are_apart(other, &places[end])))
            && !self.is_touched_elsewhere(&node.body, &places);
        is_possible.then_some(places)
    }

    fn survey_sums_in(
        &mut self,
        node: &For,
        inside: &mut Vec<VarId>,
        places: &mut Vec<Operand>,
    ) -> Option<()> {
        inside.push(node.var);
        let extent = self.resolve(&node.extent);
        self.ranges.insert(node.var, extent);
        let result = self.survey_sums(&node.body, inside, places);
        self.ranges.remove(node.var);
        inside.pop();
        result
    }

    /// Collects the places of the sums in a statement; `None` when one of them depends on the loops `inside`, or is not
    /// always reached.
    fn survey_sums(&mut self, stmt: &Stmt, inside: &mut Vec<VarId>, places: &mut Vec<Operand>) -> Option<()> {
        if !holds_tiles(stmt) {
            return Some(());
        }
        match stmt {
            Stmt::Seq(stmts) => stmts.iter().try_for_each(|stmt| self.survey_sums(stmt, inside, places)),
            Stmt::For(node) => match self.extent_over_sums(node) {
                Some(extent) => (0..extent).try_for_each(|value| {
                    self.variables.insert(node.var, Binding::Constant(value));
                    let result = self.survey_sums(&node.body, inside, places);
                    self.variables.remove(&node.var);
                    result
                }),
                None => self.survey_sums_in(node, inside, places),
            },
            Stmt::Alloc(node) => {
                self.survey_sums(&node.body, inside, places)?;
                places.iter().all(|place| place.buffer != node.buffer).then_some(())
            }
            Stmt::Intrinsic(_) => {
                let [.., sums] = self.tile_operands(stmt)?;
                let place = self.resolved(&sums);
                let moves = |index: &Index| inside.iter().any(|var| index.mentions(*var));
                if moves(&place.first) || place.strides.iter().any(moves) {
                    return None;
                }
                if !places.contains(&place) {
                    places.push(place);
                }
                (places.len() <= MOST_SUMS).then_some(())
            }
            _ => None,
        }
    }

    /// The number of iterations of a loop that moves from sum to sum.
    fn extent_over_sums(&self, node: &For) -> Option<i64> {
        let extent = self.resolve(&node.extent).as_constant()?;
        let is_small = (1..=MOST_SUMS as i64).contains(&extent);
        (is_small && self.moves_sums(&node.body, node)).then_some(extent)
    }

    fn moves_sums(&self, stmt: &Stmt, around: &For) -> bool {
        match self.tile_operands(stmt) {
            Some([.., sums]) => sums.first.mentions(around.var),
            None => stmt.children().into_iter().any(|child| self.moves_sums(child, around)),
        }
    }

    fn is_provably_inside(&self, place: &Operand) -> bool {
        let ends = self.ends_of(place);
        ends.is_ok_and(|ends| ends.iter().all(|index| self.is_inside(place.buffer, index)))
    }

    /// Whether a statement accesses the buffers of sums other than by adding to these.
    fn is_touched_elsewhere(&self, stmt: &Stmt, places: &[Operand]) -> bool {
        let is_own = |buffer| places.iter().any(|place| place.buffer == buffer);
        if let Some([a, b, _]) = self.tile_operands(stmt) {
            return is_own(a.buffer) || is_own(b.buffer);
        }
        let mut is_touched = false;
        if holds_tiles(stmt) && !matches!(stmt, Stmt::Intrinsic(_)) {
            if let Stmt::For(node) = stmt {
                let extent = Expr::index(node.extent.clone());
                for_each_load(&extent, &mut |access| is_touched |= is_own(access.buffer));
            }
            return is_touched
                || stmt.children().into_iter().any(|child| self.is_touched_elsewhere(child, places));
        }
        for_each_access(stmt, &mut |access| is_touched |= is_own(access.buffer));
        is_touched
    }

    /// Whether statements clear exactly the elements of all tiles, and do nothing else.
    fn clears(&mut self, stmts: &[Stmt], places: &[Operand]) -> bool {
        let Some(base) = places.first() else { return false };
        let mut wanted = FxHashSet::default();
        for place in places {
            let start = (&place.first - &base.first).as_constant();
            let (Some(start), Some(distance), true) =
                (start, place.strides[0].as_constant(), place.buffer == base.buffer)
            else {
                return false;
            };
            let rows = (0..ROWS).map(|row| start + row * distance);
            wanted.extend(rows.flat_map(|row| (0..COLUMNS).map(move |column| row + column)));
        }
        let mut cleared = FxHashSet::default();
        let clears = stmts.iter().all(|stmt| self.cleared_by(stmt, base, &wanted, &mut cleared).is_some());
        clears && cleared == wanted
    }

    /// Collects what a statement clears, relative to the beginning of a tile; `None` when it does anything else.
    fn cleared_by(
        &mut self,
        stmt: &Stmt,
        base: &Operand,
        wanted: &FxHashSet<i64>,
        cleared: &mut FxHashSet<i64>,
    ) -> Option<()> {
        match stmt {
            Stmt::Seq(stmts) => {
                stmts.iter().try_for_each(|stmt| self.cleared_by(stmt, base, wanted, cleared))
            }
            Stmt::For(node) => {
                let extent = self.resolve(&node.extent).as_constant()?;
                for value in 0..extent {
                    self.variables.insert(node.var, Binding::Constant(value));
                    let result = self.cleared_by(&node.body, base, wanted, cleared);
                    self.variables.remove(&node.var);
                    result?;
                }
                Some(())
            }
            Stmt::Store(store) => {
                let ExprKind::Constant(value) = store.value.kind() else { return None };
                let is_zero = value.as_f64() == 0.0 && !value.as_f64().is_sign_negative();
                if store.buffer != base.buffer || !is_zero {
                    return None;
                }
                let (scalar, offsets) = self.lane_offsets(&single(&store.indices)?)?;
                let start = (&scalar - &base.first).as_constant()?;
                for offset in offsets {
                    cleared.insert(wanted.get(&(start + offset)).copied()?);
                }
                Some(())
            }
            _ => None,
        }
    }
}

/// Whether two tiles certainly have no element in common.
fn are_apart(a: &Operand, b: &Operand) -> bool {
    if a.buffer != b.buffer {
        return true;
    }
    let difference = (&b.first - &a.first).as_constant();
    let (Some(difference), Some(distance), true) =
        (difference, a.strides[0].as_constant(), a.strides == b.strides)
    else {
        return false;
    };
    (1 - ROWS..ROWS).all(|row| (difference - row * distance).abs() >= COLUMNS)
}
