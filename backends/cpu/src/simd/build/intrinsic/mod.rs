//! Tensor intrinsics as instructions.
//!
//! The marked statement is matched against the intrinsic's description once more, so that a wrong mark cannot make a
//! wrong result, and the rule of that name emits it. A statement whose intrinsic has no rule here, or whose
//! instructions the machine lacks, is no leaf; its body is executed.
//!
//! An intrinsic is one file with its [rules](Rule), and a line in `RULES`.

mod bf16_product;
mod dot_product;
mod nibble_product;
mod offset_product;
mod operand;
mod pair_product;
mod tile_product;
pub(in crate::simd::build) mod tile_sums;

pub(super) use tile_product::ROWS;

use tilewright_core::ids::BufferId;
use tilewright_core::intrinsic::{Match, Operand};
use tilewright_core::stmt::{Stmt, Symbol};

use crate::intrinsics::known;
use crate::machine::FeatureSet;
use crate::simd::build::stmt::registers::{ElementRange, ElementRanges};
use crate::simd::build::{Builder, Outcome};
use crate::simd::{Refusal, VectorExtension};

/// The emission rule of an intrinsic.
pub(super) struct Rule {
    /// The intrinsic's name.
    name: &'static str,
    /// Whether leaves of an extension can hold the instructions on a machine with such features.
    is_available: fn(VectorExtension, FeatureSet) -> bool,
    sums: Sums,
    emit: fn(&mut Builder<'_>, &Match) -> Outcome<()>,
}

/// The registers that may hold the elements that an intrinsic updates.
pub(super) enum Sums {
    /// A vector register: the operand's position among the description's parameters, and the number of its elements, which are
    /// contiguous.
    Vector { operand: usize, elements: u32 },
    /// A tile register while loops run, and memory outside of them.
    Tile,
}

/// The rules of all intrinsics, in descending order of the work of one instruction.
const RULES: &[&[Rule]] = &[
    tile_product::RULES,
    nibble_product::RULES,
    dot_product::RULES,
    offset_product::RULES,
    bf16_product::RULES,
];

fn rules() -> impl Iterator<Item = &'static Rule> {
    RULES.iter().copied().flatten()
}

/// The names of the intrinsics that leaves of an extension can hold.
pub(in crate::simd) fn names(extension: VectorExtension, features: FeatureSet) -> Vec<Symbol> {
    rules().filter(|rule| (rule.is_available)(extension, features)).map(|rule| rule.name.into()).collect()
}

/// Why an intrinsic cannot be emitted, if it cannot.
pub(in crate::simd) fn refusal(
    name: &str,
    extension: VectorExtension,
    features: FeatureSet,
) -> Option<Refusal> {
    let is_emitted = rules().any(|rule| rule.name == name && (rule.is_available)(extension, features));
    (!is_emitted)
        .then(|| Refusal::Intrinsic(known().get(name).map_or("an unknown one", |known| known.name())))
}

/// Whether a product of tiles is marked anywhere in a statement.
pub(in crate::simd) fn holds_tiles(stmt: &Stmt) -> bool {
    let is_tile = |name: &str| tile_product::RULES.iter().any(|rule| rule.name == name);
    matches!(stmt, Stmt::Intrinsic(node) if is_tile(&node.name))
        || stmt.children().into_iter().any(holds_tiles)
}

/// The rule for a marked statement, and its operands.
fn matched(builder: &Builder<'_>, stmt: &Stmt) -> Outcome<(&'static Rule, Match)> {
    let Stmt::Intrinsic(node) = stmt else { return Err(Refusal::Statement) };
    if let Some(refusal) = refusal(&node.name, builder.extension, builder.around.features) {
        return Err(refusal);
    }
    let rule = rules().find(|rule| rule.name == &*node.name);
    let found = known().get(&node.name).and_then(|intrinsic| intrinsic.matches(builder.program, stmt));
    rule.zip(found).ok_or(Refusal::Mark)
}

impl Builder<'_> {
    /// Builds a marked statement.
    pub(super) fn intrinsic(&mut self, stmt: &Stmt) -> Outcome<()> {
        let (rule, found) = matched(self, stmt)?;
        if let (Sums::Tile, false, Stmt::Intrinsic(node)) = (&rule.sums, self.limits.tiles, stmt) {
            return self.stmt(&node.body);
        }
        self.new_statement();
        (rule.emit)(self, &found)?;
        self.new_statement();
        Ok(())
    }

    /// Collects the places of a buffer that a marked statement updates; false when it accesses the buffer in another
    /// way, or at places that are not constant.
    pub(super) fn intrinsic_ranges(&self, stmt: &Stmt, buffer: BufferId, found: &mut ElementRanges) -> bool {
        let Ok((rule, matched)) = matched(self, stmt) else { return false };
        let own = |operand: &(usize, &Operand)| operand.1.buffer == buffer;
        for (number, operand) in matched.operands.iter().enumerate().filter(own) {
            let start = operand.first.as_constant().and_then(|start| u32::try_from(start).ok());
            match (start, &rule.sums) {
                (Some(start), Sums::Vector { operand, elements }) if number == *operand => {
                    found.push(ElementRange { start, lanes: *elements, is_part: false });
                }
                _ => return false,
            }
        }
        true
    }

    /// The operands of a marked product of tiles; `None` for any other statement.
    pub(super) fn tile_operands(&self, stmt: &Stmt) -> Option<[Operand; 3]> {
        let (Rule { sums: Sums::Tile, .. }, found) = matched(self, stmt).ok()? else { return None };
        found.operands.try_into().ok()
    }
}
