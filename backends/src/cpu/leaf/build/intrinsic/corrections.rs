//! Corrections of sums that are made when a loop is over.
//!
//! Products of two signed or two unsigned operands are computed with an offset, and the sum of one operand says by how much the result is then too
//! large. Where a loop adds to vectors in registers by such products alone, that sum is kept in a variable beside them
//! while the loop runs. Vectors with the same operands, the rows of a tile, share the variable.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_core::ids::BufferId;
use tilewright_core::index::Index;
use tilewright_core::intrinsic::Operand;
use tilewright_core::stmt::Stmt;

use super::super::{Builder, Outcome};
use super::{matched, offset_product};
use crate::cpu::leaf::encode::VectorOp;
use crate::cpu::leaf::ir::{self, Class, Constant, Inst, Op, Reg, Width};
use crate::cpu::translate::access::for_each_access;

/// A vector in registers: the intermediate, and the first element.
type Place = (BufferId, i64);

/// Where a product's second operand begins: the buffer, and the first element.
type Bytes = (BufferId, Index);

/// How a vector is corrected when the loop is over.
#[derive(Clone, Copy, Debug)]
pub(in crate::cpu::leaf::build) struct Correction {
    /// The variable that is taken away.
    pub(super) sum: Reg,
    /// Whether the statements for this vector add to the variable; for others that share it they must not.
    pub(super) is_made_here: bool,
}

/// What such products in a loop update.
#[derive(Default)]
struct Survey {
    /// For each vector its width and the second operands of its products, in order.
    vectors: Vec<(Place, Width, Vec<Bytes>)>,
    /// The intermediates that anything else accesses.
    others: FxHashSet<BufferId>,
}

impl Builder<'_> {
    /// Makes variables for the corrections of what a loop updates; they have to be [applied](Self::correct) after it.
    pub(in crate::cpu::leaf::build) fn defer_corrections(&mut self, body: &Stmt) -> Vec<Place> {
        if self.has_own_instruction()
            || self.limits.corrects_at_once
            || self.tiles.is_empty()
            || !self.corrections.is_empty()
        {
            return Vec::new();
        }
        let mut survey = Survey::default();
        self.survey_products(body, &mut survey);
        survey.vectors.retain(|((buffer, _), ..)| !survey.others.contains(buffer));
        let mut sums: FxHashMap<(Width, Vec<Bytes>), Reg> = FxHashMap::default();
        let mut places = Vec::new();
        for (place, width, operands) in survey.vectors {
            let known = sums.get(&(width, operands.clone())).copied();
            let sum = known
                .unwrap_or_else(|| self.emit(Class::Vector, Op::Constant(Constant::Same(0, 4)), width, []));
            sums.insert((width, operands), sum);
            self.corrections.insert(place, Correction { sum, is_made_here: known.is_none() });
            places.push(place);
        }
        places
    }

    fn survey_products(&self, stmt: &Stmt, survey: &mut Survey) {
        match stmt {
            Stmt::Intrinsic(node) if offset_product::RULES.iter().any(|rule| rule.name == &*node.name) => {
                let Ok((rule, found)) = matched(self, stmt) else { return };
                let ([_, vector, sums], super::Sums::Vector { elements, .. }) =
                    (&found.operands[..], &rule.sums)
                else {
                    return;
                };
                let Some(place) = self.place_of_sums(sums) else { return };
                let operand = (vector.buffer, self.resolve(&vector.first));
                match survey.vectors.iter_mut().find(|(known, ..)| *known == place) {
                    Some((.., operands)) => operands.push(operand),
                    None => survey.vectors.push((place, Width::of_bytes(4 * elements), vec![operand])),
                }
            }
            Stmt::Store(_) | Stmt::Intrinsic(_) => for_each_access(stmt, &mut |access| {
                survey.others.insert(access.buffer);
            }),
            _ => stmt.children().into_iter().for_each(|child| self.survey_products(child, survey)),
        }
    }

    fn place_of_sums(&self, sums: &Operand) -> Option<Place> {
        let start = self.resolve(&sums.first).as_constant()?;
        self.in_tile(sums.buffer).then_some((sums.buffer, start))
    }

    /// The correction of a vector that is made later, if it is.
    pub(super) fn correction_of(&self, sums: &Operand) -> Option<Correction> {
        self.corrections.get(&self.place_of_sums(sums)?).copied()
    }

    /// Takes the corrections away from what a loop has updated.
    pub(in crate::cpu::leaf::build) fn correct(&mut self, places: Vec<Place>) -> Outcome<()> {
        for place in places {
            let Some(Correction { sum, .. }) = self.corrections.remove(&place) else { continue };
            let (variable, width) = self.whole_segment(place.0, &Index::constant(place.1))?;
            let args = [variable, sum].map(ir::Operand::Reg);
            self.push(Inst::new(Op::Vector(VectorOp::Sub32), width, Some(variable), args));
        }
        Ok(())
    }
}
