//! Loops in the form `0..extent`, with rectangular extents.

use super::expressions::Elaboration;
use crate::build::record::recording::{Loop, Recording};
use crate::build::record::value::{Value, ValueKind};
use crate::build::statement::LoopForm;
use crate::expr::{BinaryOp, Expr};
use crate::ids::VarId;
use crate::index::{Index, Ranges};

/// Settles the form of every loop, outer loops first.
///
/// `for i in (start..end).step_by(s)` runs `i' in 0..ceil((end - start) / s)` with `i = start + s·i'`. When a bound
/// depends on outer loops, the loop runs over the hull of all its ranges, under a condition.
pub(in crate::build) fn normalise_loops(
    recording: &Recording,
    buffers: &[Option<usize>],
    elaboration: &mut Elaboration<'_>,
) {
    let mut shapes: Option<Vec<Index>> = None;
    let mut ranges = Ranges::new();
    for (number, node) in recording.loops.iter().enumerate() {
        elaboration.location = Some(node.location);
        // Shapes of parameters and outputs are known not to be negative.
        let shapes = shapes.get_or_insert_with(|| {
            let outside = recording.tensors.iter().filter(|tensor| tensor.loops.is_empty());
            outside.flat_map(|tensor| &tensor.shape).map(|value| elaboration.index(value, None)).collect()
        });
        let var = elaboration.loop_var(number);
        let form = match bounds(node, recording, buffers, elaboration) {
            Some((start, end)) => {
                let facts = LoopFacts { ranges: &ranges, shapes, first_loop: elaboration.loop_var(0) };
                facts.form(node, var, &start, &end)
            }
            None => None,
        };
        let form = form.unwrap_or_else(|| {
            elaboration.error(
                format!("the bounds of loop `{}` are not a function of dimensions and loop variables with a known largest value", node.name),
                "loop over the largest range and put the varying part into an `if`",
            );
            LoopForm { name: node.name.clone(), var, extent: Index::constant(1), value: Index::var(var), conditions: Vec::new() }
        });
        ranges.insert(var, form.extent.clone());
        elaboration.loops.push(form);
    }
}

/// Start and end as indices; `None` when they depend on data.
fn bounds(
    node: &Loop,
    recording: &Recording,
    buffers: &[Option<usize>],
    elaboration: &Elaboration<'_>,
) -> Option<(Index, Index)> {
    let known = |value: &Value| depends_only_on_indices(value, recording, buffers);
    (node.step >= 1 && known(&node.start) && known(&node.end))
        .then(|| (elaboration.index(&node.start, None), elaboration.index(&node.end, None)))
}

fn depends_only_on_indices(value: &Value, recording: &Recording, buffers: &[Option<usize>]) -> bool {
    match value.kind() {
        ValueKind::Load(..) | ValueKind::Scalar(..) => false,
        ValueKind::Bound(number) => {
            buffers[*number].is_none()
                && depends_only_on_indices(&recording.bindings[*number].value, recording, buffers)
        }
        _ => value.operands().into_iter().all(|operand| depends_only_on_indices(operand, recording, buffers)),
    }
}

/// The facts that are known when a loop is normalised.
struct LoopFacts<'a> {
    /// The loops around it and before it.
    ranges: &'a Ranges,
    /// Extents that are not negative.
    shapes: &'a [Index],
    first_loop: VarId,
}

impl LoopFacts<'_> {
    fn form(&self, node: &Loop, var: VarId, start: &Index, end: &Index) -> Option<LoopForm> {
        let form = |extent: Index, value: Index, conditions: Vec<Expr>| {
            Some(LoopForm { name: node.name.clone(), var, extent: self.clamp(extent), value, conditions })
        };
        let length = end - start;
        if !self.varies(start) && !self.varies(end) {
            let value = Index::var(var).scale(node.step);
            return form(length.ceil_div(node.step), start + &value, Vec::new());
        }
        if node.step == 1 {
            let (first, last) = (start.lower_bound(self.ranges)?, end.upper_bound(self.ranges)?);
            let value = first.add_scaled(&Index::var(var), 1);
            let mut conditions = Vec::new();
            if *start != first {
                conditions.push(compare(BinaryOp::Ge, &value, start));
            }
            if *end != last {
                conditions.push(compare(BinaryOp::Lt, &value, end));
            }
            return form(&last - &first, value, conditions);
        }
        let value = start.add_scaled(&Index::var(var), node.step);
        let longest = length.upper_bound(self.ranges)?;
        let conditions = vec![compare(BinaryOp::Lt, &value, end)];
        form(longest.ceil_div(node.step), value, conditions)
    }

    /// Whether an index depends on a loop.
    fn varies(&self, index: &Index) -> bool {
        let mut found = false;
        index.for_each_var(&mut |var| found |= var >= self.first_loop);
        found
    }

    /// The extent, or zero when it is negative.
    fn clamp(&self, extent: Index) -> Index {
        if self.shapes.contains(&extent) || extent.is_provably_nonnegative(&Ranges::new()) {
            extent
        } else {
            extent.maximum(&Index::constant(0))
        }
    }
}

fn compare(op: BinaryOp, a: &Index, b: &Index) -> Expr {
    Expr::binary(op, Expr::index(a.clone()), Expr::index(b.clone()))
}
