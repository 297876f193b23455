//! Inlining of element-wise blocks into their consumers.

use tilewright_core::analysis::block::{complete_store, loads, loads_in, reads};
use tilewright_core::analysis::constant::constant_blocks;
use tilewright_core::analysis::scope::{consumers, writes_parameter};
use tilewright_core::annotation::INLINE_RULE;
use tilewright_core::expr::{Cost, ExprKind};
use tilewright_core::index::{Base, Index};
use tilewright_core::program::Program;
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_core::stmt::{Block, Iter, Store};
use tilewright_core::target::TargetKind;
use tilewright_core::visit::for_each_expr;
use tilewright_macros::schedule_rule;

use crate::space::rule::{RuleExtension, RuleOutcome, RuleResult};
use crate::space::rules::block::{block_of, points};

/// Inlines an element-wise block into its consumers when that saves a buffer and repeats no expensive work.
///
/// A block is inlined when it reads its inputs in the order of its iterators (so that accesses stay contiguous) and computes nothing
/// expensive that its consumers would then repeat, such as a division for each product that an element is a factor of. On CPUs, all
/// arithmetic of floats for factors is left to `random_compute_location`, which draws the loop in which it is computed. A
/// tensor of one value is always inlined. For a block that depends on constant parameters alone, the rule also offers to keep it, so that
/// it runs once, ahead of calls. A block annotated `inline_rule = "disable"` is left alone.
#[schedule_rule(target = "any", after = "inline_constant_scalars", before = "add_rfactor")]
pub fn auto_inline(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    let is_disabled = INLINE_RULE.is_in(&found.annotations);
    let Some(store) = complete_store(&found) else { return schedule.unchanged() };
    if is_disabled || writes_parameter(schedule.program(), &found) {
        return schedule.unchanged();
    }
    let is_one_value = reads(&found).is_empty();
    let repeats =
        consumers(schedule.program(), &found).iter().map(|reader| repetitions(&found, reader)).sum::<usize>();
    let is_located = schedule.target().kind() == TargetKind::Cpu && computes_floats(store);
    let repeats_arithmetic = (is_located || divides(store)) && is_factor(schedule.program(), &found, store);
    let is_cheap = (!is_expensive(store) || repeats <= 1) && !repeats_arithmetic;
    let is_worth_it = is_one_value || (is_cheap && keeps_order(&found, store));
    if !is_worth_it {
        return schedule.unchanged();
    }
    let program = schedule.program();
    let ahead = constant_blocks(program);
    let is_kept = ahead.contains(&found.id)
        && consumers(program, &found).iter().any(|reader| !ahead.contains(&reader.id));
    let computed_ahead = is_kept.then(|| schedule.fork());
    schedule.compute_inline(block)?;
    match computed_ahead {
        Some(kept) => Ok(RuleOutcome::Variants(vec![schedule.clone(), kept])),
        None => schedule.changed(),
    }
}

/// Whether the value contains a function that takes many instructions, or loads that depend on data or on a
/// condition, as padding does.
fn is_expensive(store: &Store) -> bool {
    let mut expensive = false;
    for_each_expr(&store.value, &mut |node| {
        expensive |= match node.kind() {
            ExprKind::Select(_, then, otherwise) => [then, otherwise].iter().any(|branch| {
                let mut found = Vec::new();
                loads_in(branch, &mut found);
                !found.is_empty()
            }),
            ExprKind::Unary(op, _) => op.cost().is_expensive(),
            ExprKind::Binary(op, ..) => op.is_function(),
            ExprKind::Bounded(..) => true,
            _ => false,
        };
    });
    expensive
}

/// Whether a value takes arithmetic of floats.
fn computes_floats(store: &Store) -> bool {
    let mut computes = false;
    for_each_expr(&store.value, &mut |node| {
        let is_arithmetic =
            matches!(node.kind(), ExprKind::Unary(..) | ExprKind::Binary(..) | ExprKind::Select(..));
        computes |= is_arithmetic && node.dtype().is_float();
    });
    computes
}

/// Whether a value is a quotient or has one in it, such as a byte that stands for a number.
fn divides(store: &Store) -> bool {
    let mut divides = false;
    for_each_expr(&store.value, &mut |node| {
        divides |= matches!(node.kind(), ExprKind::Binary(op, ..) if matches!(op.cost(), Cost::Division(_)));
    });
    divides
}

/// Whether a consumer evaluates elements again and again, as factors of products.
fn is_factor(program: &Program, block: &Block, store: &Store) -> bool {
    let repeats = |reader: &Block| {
        let loads = loads(&reader.body);
        let mut own = loads.iter().filter(|access| access.buffer == store.buffer);
        own.any(|access| is_evaluated_again(block, reader, access.indices))
    };
    consumers(program, block).into_iter().any(|reader| repeats(reader))
}

/// How often a consumer evaluates each element: once per load, or many times when it has iterators that the
/// block's element does not depend on, or windows that overlap.
fn repetitions(block: &Block, reader: &Block) -> usize {
    let Some(store) = complete_store(block) else { return 2 };
    loads(&reader.body)
        .iter()
        .filter(|access| access.buffer == store.buffer)
        .map(|access| if is_evaluated_again(block, reader, access.indices) { 2 } else { 1 })
        .sum()
}

/// Whether a consumer that loads a block's elements from these places loads an element many times.
fn is_evaluated_again(block: &Block, reader: &Block, indices: &[Index]) -> bool {
    let is_free = |iter: &Iter| !iter.extent.is(1) && !indices.iter().any(|index| index.mentions(iter.var));
    let overlaps = points(reader).zip(points(block)).is_some_and(|(reads, elements)| reads > elements);
    reader.iters.iter().any(is_free) || overlaps
}

/// Whether each read uses the block's iterators in the order in which it writes them, so that an
/// innermost loop over the output stays innermost on the input.
fn keeps_order(block: &Block, store: &Store) -> bool {
    let order: Vec<_> = store.indices.iter().filter_map(Index::as_var).collect();
    loads(&block.body).iter().all(|access| {
        let mut last = None;
        access.indices.iter().flat_map(|index| index.terms()).all(|term| match &term.digit.base {
            Base::Var(var) => {
                let place = order.iter().position(|other| other == var);
                let is_ordered = place >= last;
                last = place.or(last);
                is_ordered
            }
            _ => false,
        })
    })
}
