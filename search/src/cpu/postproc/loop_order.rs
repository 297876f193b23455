//! The order in which loops read an operand, as a layout of it.

use std::cmp::Reverse;
use std::sync::Arc;

use tilewright_core::analysis::block::{BufferAccess, reduction};
use tilewright_core::analysis::scope::ranges_of;
use tilewright_core::ids::VarId;
use tilewright_core::index::Index;
use tilewright_core::index::map::IndexMap;
use tilewright_core::program::Program;
use tilewright_core::stmt::{Block, For, Stmt};

/// One loop's part in an index: `index / divisor % extent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoopDigit {
    /// The position of the index in the access.
    dimension: usize,
    divisor: i64,
    /// The extent of the loop.
    pub(super) extent: i64,
    /// The depth of the loop, from 0.
    depth: usize,
    /// Whether it is the slowest digit of its dimension: it then has no modulus, and includes the loops further outside.
    is_slowest: bool,
}

impl LoopDigit {
    /// A whole dimension that comes first.
    fn outermost(dimension: usize) -> Self {
        LoopDigit { dimension, divisor: 1, extent: 1, depth: 0, is_slowest: true }
    }
}

/// The digits of an access, in loop order, except that the vectorizable loop comes last.
#[derive(Clone, Debug)]
pub(super) struct LoopOrder {
    pub(super) digits: Vec<LoopDigit>,
}

impl LoopOrder {
    /// The order in which the loops of `path` from `first_depth` on, and an intrinsic inside them, step through an access
    /// of a block; `None` when they do so in no regular order.
    pub(super) fn of(
        program: &Program,
        block: &Block,
        path: &[&Arc<For>],
        access: &BufferAccess<'_>,
        first_depth: usize,
    ) -> Option<Self> {
        let inside = loops_of_intrinsic(block);
        let ranges = ranges_of(inside.iter().copied());
        let all: Vec<&Arc<For>> = path.iter().copied().chain(inside).collect();
        let mut digits = Vec::new();
        let mut seen = Vec::new();
        for (dimension, index) in access.indices.iter().enumerate() {
            let size = program.buffer(access.buffer).shape[dimension].as_constant()?;
            let index = index.simplify(&ranges);
            // A part of an operand begins at an offset, which changes no order.
            let from_start = index.offset(-index.constant_part());
            // Nothing steps through a dimension at one place, such as the taps of a pointwise convolution.
            if from_start.is(0) {
                digits.extend((size > 1).then_some(LoopDigit::outermost(dimension)));
                continue;
            }
            let var = from_start.as_var().filter(|var| !seen.contains(var))?;
            seen.push(var);
            let own = block.iters.iter().find(|iter| iter.var == var);
            let binding = own.map_or_else(|| Index::var(var), |iter| iter.binding.clone());
            digits.extend(digits_of(&binding, &all, first_depth, dimension, size)?);
        }
        // Inside, the order is that in which the instruction takes its operand's dimensions, whatever its loops are.
        digits.sort_by_key(|digit| match digit.depth < path.len() {
            true => (digit.depth, 0, Reverse(0)),
            false => (path.len(), digit.dimension, Reverse(digit.divisor)),
        });
        if let Some(lane) = vector_depth(block, path) {
            digits.sort_by_key(|digit| digit.depth == lane && digit.extent > 1);
        }
        Some(LoopOrder { digits })
    }

    /// How many values of a dimension the loops step over.
    pub(super) fn reach(&self, dimension: usize) -> i64 {
        self.slowest_first(dimension).iter().map(|digit| digit.extent).product()
    }

    /// The digits of a dimension, the slowest first.
    pub(super) fn slowest_first(&self, dimension: usize) -> Vec<LoopDigit> {
        let mut digits: Vec<LoopDigit> =
            self.digits.iter().filter(|digit| digit.dimension == dimension).copied().collect();
        digits.sort_by_key(|digit| std::cmp::Reverse(digit.divisor));
        digits
    }

    /// The layout that stores an operand of these sizes in this order; `None` when it is stored so already.
    pub(super) fn map(&self, sizes: &[Index]) -> Option<IndexMap> {
        let merged = merge(&self.digits);
        let outputs = merged.iter().map(output).collect();
        let stepped = (0..sizes.len()).filter(|&dimension| !sizes[dimension].is(1));
        let is_in_order = merged.iter().map(|digit| digit.dimension).eq(stepped);
        if is_in_order { None } else { IndexMap::new(sizes.len() as u32, outputs) }
    }
}

/// The loops of a block's tensor intrinsic, outermost first.
fn loops_of_intrinsic(block: &Block) -> Vec<&Arc<For>> {
    let Stmt::Intrinsic(node) = &block.body else { return Vec::new() };
    let (mut loops, mut stmt) = (Vec::new(), &node.body);
    while let Stmt::For(node) = stmt {
        loops.push(node);
        stmt = &node.body;
    }
    loops
}

/// The loops that make up an index of a dimension of some size, as digits: each steps over all that the faster ones reach, and those
/// outside of `first_depth` over all that the others reach.
fn digits_of(
    binding: &Index,
    path: &[&Arc<For>],
    first_depth: usize,
    dimension: usize,
    size: i64,
) -> Option<Vec<LoopDigit>> {
    let (mut digits, mut strides_outside) = (Vec::new(), Vec::new());
    for (depth, node) in path.iter().enumerate() {
        if !binding.mentions(node.var) {
            continue;
        }
        let (divisor, extent) = (binding.linear_coefficient(node.var)?, node.extent.as_constant()?);
        match depth < first_depth {
            true => strides_outside.push(divisor),
            false => digits.push(LoopDigit { dimension, divisor, extent, depth, is_slowest: false }),
        }
    }
    digits.sort_by_key(|digit| (digit.divisor, digit.extent));
    let mut reach = 1i64;
    for digit in &digits {
        if digit.divisor != reach && digit.extent != 1 {
            return None;
        }
        reach = reach.checked_mul(digit.extent)?;
    }
    digits.retain(|digit| digit.extent != 1);
    if binding.constant_part() != 0 || strides_outside.iter().any(|stride| stride % reach != 0) {
        return None;
    }
    match digits.last_mut() {
        Some(slowest) => slowest.is_slowest = true,
        // A dimension comes first that only loops outside step over, or none.
        None if size > 1 => digits.push(LoopDigit::outermost(dimension)),
        None => {}
    }
    Some(digits)
}

/// The depth of the innermost loop along the last dimension of the block's output: the vectorizable loop.
fn vector_depth(block: &Block, path: &[&Arc<For>]) -> Option<usize> {
    let var: VarId = reduction(block)?.store.indices.last()?.as_var()?;
    let binding = &block.iters.iter().find(|iter| iter.var == var)?.binding;
    path.iter().rposition(|node| binding.mentions(node.var) && !node.extent.is(1))
}

/// Merges neighbouring digits that continue each other.
fn merge(digits: &[LoopDigit]) -> Vec<LoopDigit> {
    let mut merged: Vec<LoopDigit> = Vec::new();
    for &digit in digits {
        match merged.last_mut() {
            Some(outer)
                if outer.dimension == digit.dimension && outer.divisor == digit.divisor * digit.extent =>
            {
                (outer.divisor, outer.extent) = (digit.divisor, outer.extent * digit.extent);
            }
            _ => merged.push(digit),
        }
    }
    merged
}

fn output(digit: &LoopDigit) -> Index {
    let quotient = Index::var(VarId(digit.dimension as u32)).floor_div(digit.divisor);
    if digit.is_slowest { quotient } else { quotient.modulo(digit.extent) }
}
