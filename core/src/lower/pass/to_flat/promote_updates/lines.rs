//! Promotes elements that several statements in a row update, such as the accumulators of a tile whose reduction is written out.
//! The statements are stores, or marked statements that each thread executes by itself.
//!
//! ```text
//! c[i] = 0  c[i] = c[i] + a[0]  c[i] = c[i] + a[1]
//! alloc t { t[0] = 0  t[0] = t[0] + a[0]  t[0] = t[0] + a[1]  c[i] = t[0] }
//! ```

use rustc_hash::FxHashMap;

use crate::expr::Indices;
use crate::ids::BufferId;
use crate::intrinsic::BY_WARP;
use crate::lower::pass::to_flat::promote_updates::pieces::in_pieces;
use crate::lower::pass::to_flat::promote_updates::survey::{Element, First, Survey};
use crate::lower::pass::to_flat::promote_updates::{Places, Promotion, Register, allocated};
use crate::lower::util::marked::in_lanes;
use crate::program::Scope;
use crate::stmt::{Stmt, Store};

impl Promotion<'_> {
    /// Keeps the elements that rows of statements in a sequence update in registers.
    pub(super) fn lines(&mut self, stmts: &mut Vec<Stmt>) {
        let mut start = 0;
        while start < stmts.len() {
            let length = stmts[start..].iter().take_while(|stmt| is_member(stmt)).count();
            let line = start..start + length;
            if let Some(kept) = self.line(&stmts[line.clone()]) {
                stmts.splice(line, [kept]);
                start += 1;
            } else {
                start = line.end + 1;
            }
        }
    }

    /// The statements with the updated elements in registers; `None` when they stay as they are.
    fn line(&mut self, line: &[Stmt]) -> Option<Stmt> {
        let mut members = in_pieces(line);
        let mut wanted = stored_again(&members);
        wanted.retain(|buffer| !self.in_registers.contains(buffer));
        wanted.retain(|buffer| self.program.buffer(*buffer).scope != Scope::Fragment);
        if wanted.is_empty() {
            return None;
        }
        let mut survey = Survey::of(wanted, Vec::new(), self.ranges.clone());
        members.iter().for_each(|stmt| survey.stmt(stmt, true));
        let is_worth = |element: &Element| element.stores > 1 && element.first != First::ConditionalLoad;
        let kept = survey.kept(is_worth, |buffer| self.register_bytes(buffer));
        let registers = self.places_of(&kept);
        if registers.is_empty() {
            return None;
        }
        let places = Places::of(&registers);
        members.iter_mut().for_each(|member| places.replace_in(member));
        let has_value = |(_, element): &(&Register, &&Element)| element.first == First::Load;
        let fill = registers.iter().zip(&kept).filter(has_value).map(|(register, _)| self.fill(register));
        let empty = registers.iter().map(|register| self.empty(register));
        Some(allocated(&registers, Stmt::seq(fill.chain(members).chain(empty))))
    }
}

/// Whether a statement can be one of a row.
fn is_member(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Store(_) => true,
        Stmt::Intrinsic(node) => &*node.name != BY_WARP,
        _ => false,
    }
}

/// The buffers of which some element is stored to more than once.
fn stored_again(line: &[Stmt]) -> Vec<BufferId> {
    let mut counts: FxHashMap<(BufferId, Indices), usize> = FxHashMap::default();
    let mut buffers = Vec::new();
    let mut count = |store: &Store| {
        let count = counts.entry((store.buffer, store.indices.clone())).or_default();
        *count += 1;
        if *count > 1 && !buffers.contains(&store.buffer) {
            buffers.push(store.buffer);
        }
    };
    for stmt in line {
        match stmt {
            Stmt::Intrinsic(node) => for_each_store(&in_lanes(node), &mut count),
            _ => for_each_store(stmt, &mut count),
        }
    }
    buffers
}

pub(super) fn for_each_store(stmt: &Stmt, visit: &mut impl FnMut(&Store)) {
    match stmt {
        Stmt::Store(store) => visit(store),
        _ => stmt.each_child().for_each(|child| for_each_store(child, visit)),
    }
}
