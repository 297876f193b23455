//! The accesses of a block, and its kind.

use smallvec::SmallVec;

use crate::expr::{BinaryOp, Expr, ExprKind, Indices};
use crate::ids::{BufferId, VarId};
use crate::index::Index;
use crate::stmt::{Block, IterKind, Stmt, Store};
use crate::visit::{for_each_load, for_each_load_in_index, for_each_stmt};

/// One place where a block touches a buffer.
#[derive(Clone, Copy, Debug)]
pub struct BufferAccess<'a> {
    /// The buffer.
    pub buffer: BufferId,
    /// The indices, in terms of the block's iterators.
    pub indices: &'a Indices,
}

/// A few buffers, each once.
pub type BufferList = SmallVec<[BufferId; 4]>;

/// Every load in a statement, in order of appearance, also those inside indices.
pub fn loads(stmt: &Stmt) -> Vec<BufferAccess<'_>> {
    let mut found = Vec::new();
    for_each_load_in_stmt(stmt, &mut |access| found.push(access));
    found
}

/// Calls `visit` with every load in a statement, in order of appearance, also those inside indices.
pub fn for_each_load_in_stmt<'a, F: FnMut(BufferAccess<'a>)>(stmt: &'a Stmt, visit: &mut F) {
    let mut visit = |buffer, indices| visit(BufferAccess { buffer, indices });
    for_each_stmt(stmt, &mut |node| match node {
        Stmt::Store(store) => {
            store.indices.iter().for_each(|index| for_each_load_in_index(index, &mut visit));
            for_each_load(&store.value, &mut visit);
        }
        Stmt::If(node) => for_each_load(&node.condition, &mut visit),
        _ => {}
    });
}

/// Appends every load in an expression, also those inside indices.
pub fn loads_in<'a>(expr: &'a Expr, found: &mut Vec<BufferAccess<'a>>) {
    for_each_load(expr, &mut |buffer, indices| found.push(BufferAccess { buffer, indices }));
}

/// Every store in a statement, in order of appearance.
pub fn stores(stmt: &Stmt) -> Vec<&Store> {
    let mut found = Vec::new();
    for_each_stmt(stmt, &mut |node| {
        if let Stmt::Store(store) = node {
            found.push(&**store);
        }
    });
    found
}

/// Every load of a block, those of the body first, then those of the initial value.
pub fn all_loads(block: &Block) -> Vec<BufferAccess<'_>> {
    let mut found = loads(&block.body);
    found.extend(block.init.iter().flat_map(loads));
    found
}

/// The buffers that the block reads, each once, in order of appearance. The element that a
/// reduction updates counts only when the block has no initial value.
pub fn reads(block: &Block) -> BufferList {
    let own = block.init.as_ref().and_then(|_| single_store(block)).map(|store| store.buffer);
    let mut buffers = BufferList::new();
    for part in std::iter::once(&block.body).chain(&block.init) {
        for_each_load_in_stmt(part, &mut |access| {
            if Some(access.buffer) != own && !buffers.contains(&access.buffer) {
                buffers.push(access.buffer);
            }
        });
    }
    buffers
}

/// The buffers that the block writes, each once, in order of appearance.
pub fn writes(block: &Block) -> BufferList {
    let mut buffers = BufferList::new();
    for part in block.init.iter().chain([&block.body]) {
        for_each_stmt(part, &mut |node| match node {
            Stmt::Store(store) if !buffers.contains(&store.buffer) => buffers.push(store.buffer),
            _ => {}
        });
    }
    buffers
}

/// The store, when the body is one unconditional store.
pub fn single_store(block: &Block) -> Option<&Store> {
    match &block.body {
        Stmt::Store(store) => Some(store),
        _ => None,
    }
}

/// Whether every iterator is spatial.
pub fn is_spatial(block: &Block) -> bool {
    block.iters.iter().all(|iter| iter.kind == IterKind::Spatial)
}

/// Whether points of the block follow each other in order.
pub fn is_ordered(block: &Block) -> bool {
    block.iters.iter().any(|iter| iter.kind == IterKind::Ordered)
}

/// Whether a loop executes points of the block that follow each other in order.
pub fn is_ordered_by(block: &Block, var: VarId) -> bool {
    block.iters.iter().any(|iter| iter.kind == IterKind::Ordered && iter.binding.mentions(var))
}

/// The store of a complete block: spatial iterators only, one unconditional store that does not read
/// its own buffer, and no initial value.
pub fn complete_store(block: &Block) -> Option<&Store> {
    let store = single_store(block)?;
    let reads_itself = loads(&block.body).iter().any(|access| access.buffer == store.buffer);
    (is_spatial(block) && block.init.is_none() && !reads_itself).then_some(store)
}

/// A commutative, associative way of combining values, with a neutral element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reducer {
    /// `+`, neutral 0.
    Sum,
    /// `*`, neutral 1.
    Product,
    /// `max`, neutral the smallest value.
    Max,
    /// `min`, neutral the largest value.
    Min,
    /// `maximum`, neutral negative infinity.
    Maximum,
    /// `minimum`, neutral infinity.
    Minimum,
}

impl Reducer {
    /// The operator.
    pub fn op(self) -> BinaryOp {
        match self {
            Reducer::Sum => BinaryOp::Add,
            Reducer::Product => BinaryOp::Mul,
            Reducer::Max => BinaryOp::Max,
            Reducer::Min => BinaryOp::Min,
            Reducer::Maximum => BinaryOp::Maximum,
            Reducer::Minimum => BinaryOp::Minimum,
        }
    }

    /// The neutral element.
    pub fn neutral(self, dtype: crate::dtype::DType) -> Expr {
        let (lowest, highest) = match dtype.int_range() {
            Some((least, greatest)) => (Expr::int(dtype, least as i64), Expr::int(dtype, greatest as i64)),
            None => (Expr::float(dtype, f64::NEG_INFINITY), Expr::float(dtype, f64::INFINITY)),
        };
        match self {
            Reducer::Sum => Expr::zero(dtype),
            Reducer::Product => Expr::int(dtype, 1),
            Reducer::Max | Reducer::Maximum => lowest,
            Reducer::Min | Reducer::Minimum => highest,
        }
    }
}

/// A block whose body is `buffer[indices] = buffer[indices] op value`.
#[derive(Clone, Debug)]
pub struct Reduction<'a> {
    /// The store of the body.
    pub store: &'a Store,
    /// How values are combined.
    pub reducer: Reducer,
    /// The value that is combined with the element.
    pub value: &'a Expr,
}

/// The reduction that a block's body performs, whether or not it has an initial value.
pub fn reduction(block: &Block) -> Option<Reduction<'_>> {
    reduction_of(single_store(block)?)
}

/// The reduction that a store performs.
pub fn reduction_of(store: &Store) -> Option<Reduction<'_>> {
    let is_element = |expr: &Expr| matches!(expr.kind(), ExprKind::Load(buffer, indices) if *buffer == store.buffer && *indices == store.indices);
    let (reducer, value) = match store.value.kind() {
        ExprKind::Binary(op, left, right) => {
            let reducer = match op {
                BinaryOp::Add => Reducer::Sum,
                BinaryOp::Mul => Reducer::Product,
                BinaryOp::Max => Reducer::Max,
                BinaryOp::Min => Reducer::Min,
                BinaryOp::Maximum => Reducer::Maximum,
                BinaryOp::Minimum => Reducer::Minimum,
                _ => return None,
            };
            if is_element(left) {
                (reducer, right)
            } else if is_element(right) {
                (reducer, left)
            } else {
                return None;
            }
        }
        _ => return None,
    };
    let mut inside = Vec::new();
    loads_in(value, &mut inside);
    let reads_itself = inside.iter().any(|access| access.buffer == store.buffer);
    (!reads_itself).then_some(Reduction { store, reducer, value })
}

/// The reduction that a store performs, where the element that it updates is all that it reads of the buffer: the indices read none either.
pub fn lone_update(store: &Store) -> Option<Reduction<'_>> {
    let mut reads_itself = false;
    for index in &store.indices {
        for_each_load_in_index(index, &mut |buffer, _| reads_itself |= buffer == store.buffer);
    }
    reduction_of(store).filter(|_| !reads_itself)
}

/// Whether the block does nothing but combine values with elements, without an initial value.
pub fn is_update(block: &Block) -> bool {
    block.init.is_none() && reduction(block).is_some()
}

/// Whether the block's points update elements in one step each, in any order and at the same time.
pub fn updates_atomically(block: &Block) -> bool {
    let stores = stores(&block.body);
    block.init.is_none() && !stores.is_empty() && stores.iter().all(|store| store.is_atomic())
}

/// Whether the block is a reduction of at least one iterator with an initial value of the element that it updates. One with
/// ordered iterators counts as none: it is part of a recurrence.
pub fn is_reduction(block: &Block) -> bool {
    !is_ordered(block) && sets_out_to_reduce(block)
}

/// As [`is_reduction`], also inside of a recurrence.
pub fn sets_out_to_reduce(block: &Block) -> bool {
    let begins_there = |store: &Store| matches!(&block.init, Some(Stmt::Store(init)) if init.buffer == store.buffer && init.indices == store.indices);
    reduces(block) && reduction(block).is_some_and(|found| begins_there(found.store))
}

/// Whether the block is a reduction with an initial value and at least one reduction iterator, possibly one of
/// whole tiles: every store of the body combines an element with a value.
pub fn is_tiled_reduction(block: &Block) -> bool {
    let stores = stores(&block.body);
    let combines = |store: &&Store| reduction_of(store).is_some();
    block.init.is_some() && reduces(block) && !stores.is_empty() && stores.iter().all(combines)
}

fn reduces(block: &Block) -> bool {
    block.iters.iter().any(|iter| iter.kind == IterKind::Reduce)
}

/// For each index, the iterator it equals and the constant added to it, when every index is
/// `iterator + constant` with distinct iterators, or a plain constant (`None`).
pub fn shifted_iters(indices: &[Index]) -> Option<Vec<(Option<VarId>, i64)>> {
    let mut seen = Vec::new();
    indices
        .iter()
        .map(|index| {
            if let Some(constant) = index.as_constant() {
                return Some((None, constant));
            }
            let var = index.offset(-index.constant_part()).as_var()?;
            if seen.contains(&var) {
                return None;
            }
            seen.push(var);
            Some((Some(var), index.constant_part()))
        })
        .collect()
}

/// Whether a store, over the block's whole domain, writes every element of its buffer: each index is a
/// distinct iterator whose extent is that of the dimension.
pub fn covers_buffer(block: &Block, store: &Store, shape: &[Index]) -> bool {
    let Some(shifted) = shifted_iters(&store.indices) else { return false };
    shifted.into_iter().zip(shape).all(|((var, shift), dimension)| match var {
        None => shift == 0 && dimension.is(1),
        Some(var) => {
            shift == 0 && block.iters.iter().any(|iter| iter.var == var && iter.extent == *dimension)
        }
    })
}
