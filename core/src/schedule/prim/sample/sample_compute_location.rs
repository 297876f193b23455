//! `sample_compute_location`

use std::sync::Arc;

use crate::analysis::block::complete_store;
use crate::analysis::scope::{consumers, loops_around};
use crate::expr::ExprKind;
use crate::ids::LoopId;
use crate::intrinsic::computes_tile;
use crate::program::Program;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::inline::check_inline;
use crate::schedule::check::location::check_compute_at;
use crate::schedule::find::require_block;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Decision, LoopRv, Rng, Schedule, ScheduleError, Value};
use crate::stmt::{Block, Stmt};

/// Draws a loop at which a block can be computed: one of those around all of its consumers, or none.
///
/// The result stands for a loop; [`LoopId::ROOT`] means "stay". A given decision that is no longer
/// possible falls back to the nearest possible location further out, then to staying. Inlining ([`LoopId::INLINE`],
/// `@-2`) is drawn for padding alone, which costs little where it is inlined: about all else a rule decides, since what inlining
/// gains there does not depend on the place. A given decision may choose it.
///
/// ```text
/// before
/// kernel chain(in a: f32[8], out c: f32[8]) {
///   buffer b: f32[8] global
///   for i in 0..8 {
///     block b(v: spatial 8 = i) {
///       b[v] = a[v] + 1.0
///     }
///   }
///   for i in 0..8 {
///     block c(v: spatial 8 = i) {
///       c[v] = b[v] * 2.0
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// %1 = sample_compute_location %0 !decision @0
/// compute_at %0, %1
/// after
/// kernel chain(in a: f32[8], out c: f32[8]) {
///   buffer b: f32[8] global
///   for i in 0..8 {
///     block b(v: spatial 8 = i) {
///       b[v] = a[v] + 1.0
///     }
///     block c(v_1: spatial 8 = i) {
///       c[v_1] = b[v_1] * 2.0
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleComputeLocation {
    /// The block.
    pub block: BlockRv,
}

impl Primitive for SampleComputeLocation {
    const NAME: &'static str = "sample_compute_location";
    const PURE: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let block = require_block(context.program, context.values.block(self.block)?)?;
        let location = match context.decision {
            Some(Decision::Location(wanted)) => nearest_location(context.program, block, *wanted),
            Some(_) => return Err(ScheduleError::BadDecision("sample_compute_location takes `@number`")),
            None => {
                let candidates = compute_locations(context.program, block);
                draw(&candidates, context.rng)
            }
        };
        *context.decision = Some(Decision::Location(location.0));
        Ok(Outputs::from_slice(&[Value::Loop(location.1)]))
    }
}

/// One of the possible locations. Inlining, which is possible for few blocks and often the best location then, is drawn each third
/// time; the others equally often.
fn draw(candidates: &[Location], rng: &mut Rng) -> Location {
    match candidates.split_last() {
        Some((&INLINE, _)) if rng.below(INLINED) == 0 => INLINE,
        Some((&INLINE, others)) => others[rng.below(others.len())],
        _ => candidates[rng.below(candidates.len())],
    }
}

/// A location of a block: a number and the loop it stands for.
type Location = (i64, LoopId);

/// The block's own place.
const STAY: Location = (-1, LoopId::ROOT);

impl Decision {
    /// The compute location that leaves a block in its place.
    pub const STAY: Decision = Decision::Location(STAY.0);

    /// The compute location that inlines a block.
    pub const INLINE: Decision = Decision::Location(INLINE.0);
}

/// The possible locations with their numbers: staying (-1), then loops around all consumers, outermost first, and for padding
/// their bodies.
pub(crate) fn compute_locations(program: &Program, block: &Block) -> Vec<Location> {
    let is_possible = |location: &Location| check_compute_at(program, block, location.1).is_ok();
    let inlines = is_padding(block) && can_inline(program, block);
    std::iter::once(STAY)
        .chain(shared_loops(program, block).into_iter().filter(is_possible))
        .chain(inlines.then_some(INLINE))
        .collect()
}

/// Whether a block can be inlined, and all its consumers remain what they are marked as: no instruction reads a tile under a condition.
fn can_inline(program: &Program, block: &Block) -> bool {
    let is_tile =
        |consumer: &&Arc<Block>| matches!(&consumer.body, Stmt::Intrinsic(marked) if computes_tile(marked));
    let is_copy =
        || complete_store(block).is_some_and(|store| matches!(store.value.kind(), ExprKind::Load(..)));
    check_inline(program, block).is_ok() && (is_copy() || !consumers(program, block).iter().any(is_tile))
}

/// Whether a block copies where a condition holds, and is constant elsewhere.
fn is_padding(block: &Block) -> bool {
    complete_store(block).is_some_and(|store| match store.value.kind() {
        ExprKind::Select(_, value, constant) => {
            matches!(value.kind(), ExprKind::Load(..)) && constant.as_constant().is_some()
        }
        _ => false,
    })
}

/// One draw in this many inlines a block that can be inlined.
const INLINED: usize = 3;

/// The consumers' bodies.
const INLINE: Location = (-2, LoopId::INLINE);

/// The possible location of this number, or the nearest further out. Whether others are possible is not asked.
fn nearest_location(program: &Program, block: &Block, wanted: i64) -> Location {
    if wanted == INLINE.0 && can_inline(program, block) {
        return INLINE;
    }
    let mut further_out =
        shared_loops(program, block).into_iter().rev().filter(|(number, _)| *number <= wanted);
    further_out.find(|location| check_compute_at(program, block, location.1).is_ok()).unwrap_or(STAY)
}

/// The loops around all consumers of a block, outermost first.
fn shared_loops(program: &Program, block: &Block) -> Vec<Location> {
    let paths: Vec<_> = consumers(program, block)
        .iter()
        .filter_map(|consumer| loops_around(&program.body, consumer.id))
        .collect();
    let Some((first, others)) = paths.split_first() else { return Vec::new() };
    let is_shared = |(number, target): &(usize, LoopId)| {
        others.iter().all(|path| path.get(*number).is_some_and(|node| node.id == *target))
    };
    let loops = first.iter().map(|node| node.id).enumerate().take_while(is_shared);
    loops.map(|(number, target)| (number as i64, target)).collect()
}

impl Schedule {
    /// Draws a loop at which a block can be computed. See [`SampleComputeLocation`].
    ///
    /// # Errors
    /// When the block is gone.
    pub fn sample_compute_location(&mut self, block: BlockRv) -> Result<LoopRv, ScheduleError> {
        self.push_one(SampleComputeLocation { block }).map(LoopRv)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::scope::blocks;

    /// A product of rows that are padded by one, in which an instruction computes as many rows at once.
    fn product(rows: usize) -> Program {
        let text = format!(
            "kernel product(in x: u8[15, 64], in w: i8[16, 16, 4], inout y: i32[16, 16]) {{
  buffer p: u8[16, 64] global
  for i in 0..16 {{
    for k in 0..64 {{
      block p(vi: spatial 16 = i, vk: spatial 64 = k) {{ p[vi, vk] = select(index(vi) < 15, x[vi, vk], 0u8) }}
    }}
  }}
  for m in 0..{} {{
    block y(vm: spatial {} = m) {{
      intrinsic dot {{
        for i in 0..{rows} {{
          for j in 0..16 {{
            for k in 0..16 {{
              for r in 0..4 {{
                y[vm*{rows} + i, j] = y[vm*{rows} + i, j] + p[vm*{rows} + i, k*4 + r] as i32 * w[k, j, r] as i32
              }}
            }}
          }}
        }}
      }}
    }}
  }}
}}",
            16 / rows,
            16 / rows,
        );
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn padding_is_not_inlined_into_tiles() {
        for (rows, inlines) in [(1, true), (16, false)] {
            let program = product(rows);
            let padding = blocks(&program.body)[0];
            assert_eq!(compute_locations(&program, padding).contains(&INLINE), inlines, "{rows}");
            let wanted = nearest_location(&program, padding, INLINE.0);
            assert_eq!(wanted, if inlines { INLINE } else { STAY }, "{rows}");
        }
    }
}
