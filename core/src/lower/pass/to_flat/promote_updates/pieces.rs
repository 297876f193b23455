//! Stores of constants that are wider than the updates behind them: zeros that are stored as one vector, for instructions that each update a
//! part of it. As parts, they are the first values of the elements that these instructions update.
//!
//! ```text
//! c[lane<16>] = 0  update c[lane<8>]  update c[lane<8> + 8]
//! c[lane<8>] = 0  c[lane<8> + 8] = 0  update c[lane<8>]  update c[lane<8> + 8]
//! ```

use rustc_hash::FxHashMap;

use crate::expr::{ExprKind, Indices};
use crate::ids::BufferId;
use crate::index::{Base, Index};
use crate::lower::pass::to_flat::promote_updates::lines::for_each_store;
use crate::lower::util::marked::in_lanes;
use crate::stmt::{Stmt, Store};

/// The statements of a row, with stores of constants in pieces as wide as the vectors that marked statements store to the same buffer.
pub(super) fn in_pieces(line: &[Stmt]) -> Vec<Stmt> {
    let mut widths: FxHashMap<BufferId, u32> = FxHashMap::default();
    for stmt in line {
        let Stmt::Intrinsic(node) = stmt else { continue };
        for_each_store(&in_lanes(node), &mut |store| {
            let width = widths.entry(store.buffer).or_insert(u32::MAX);
            *width = (*width).min(lanes(&store.indices));
        });
    }
    let pieces = |stmt: &Stmt| match stmt {
        Stmt::Store(store) => widths.get(&store.buffer).and_then(|&width| pieces(store, width)),
        _ => None,
    };
    line.iter().flat_map(|stmt| pieces(stmt).unwrap_or_else(|| vec![stmt.clone()])).collect()
}

/// A store of a constant as stores of `width` lanes each; `None` where it is no such store, or not wider.
fn pieces(store: &Store, width: u32) -> Option<Vec<Stmt>> {
    let all = lanes(&store.indices);
    if !matches!(store.value.kind(), ExprKind::Constant(_)) || all <= width || !all.is_multiple_of(width) {
        return None;
    }
    let piece = |number: u32| {
        let start = i64::from(number * width);
        let indices = store.indices.iter().map(|index| part(index, width, start)).collect::<Option<Vec<_>>>();
        Some(Stmt::store(store.buffer, indices?, store.value.clone()))
    };
    (0..all / width).map(piece).collect()
}

fn lanes(indices: &Indices) -> u32 {
    indices.iter().map(Index::lanes).max().unwrap_or(1)
}

/// An index in `width` of its lanes, from `start` on; `None` where it is no sum with multiples of the lane's number.
fn part(index: &Index, width: u32, start: i64) -> Option<Index> {
    let mut sum = Index::constant(index.constant_part());
    for term in index.terms() {
        let digit = Index::digit(term.digit.clone());
        let digit = match term.digit.base {
            Base::Lane(_) if term.digit.is_whole() => Index::lane(width).offset(start),
            _ if digit.lanes() > 1 => return None,
            _ => digit,
        };
        sum = &sum + &digit.scale(term.coefficient);
    }
    Some(sum)
}
