//! Promotes elements that several statements in a row update, such as the accumulators of a tile whose reduction is written out.
//!
//! ```text
//! c[i] = 0  c[i] = c[i] + a[0]  c[i] = c[i] + a[1]
//! alloc t { t[0] = 0  t[0] = t[0] + a[0]  t[0] = t[0] + a[1]  c[i] = t[0] }
//! ```

use rustc_hash::FxHashMap;

use crate::access::rewrite_accesses;
use crate::expr::Indices;
use crate::ids::BufferId;
use crate::lower::pass::to_flat::promote_updates::survey::{Element, First, Survey};
use crate::lower::pass::to_flat::promote_updates::{Places, Promotion, Register, allocated};
use crate::stmt::Stmt;

impl Promotion<'_> {
    /// Keeps the elements that rows of stores in a sequence update in registers.
    pub(super) fn lines(&mut self, stmts: &mut Vec<Stmt>) {
        let mut start = 0;
        while start < stmts.len() {
            let length = stmts[start..].iter().take_while(|stmt| matches!(stmt, Stmt::Store(_))).count();
            let line = start..start + length;
            if let Some(kept) = self.line(&stmts[line.clone()]) {
                stmts.splice(line, [kept]);
                start += 1;
            } else {
                start = line.end + 1;
            }
        }
    }

    /// The stores with the updated elements in registers; `None` when they stay as they are.
    fn line(&mut self, line: &[Stmt]) -> Option<Stmt> {
        let mut wanted = stored_again(line);
        wanted.retain(|buffer| !self.in_registers.contains(buffer));
        if wanted.is_empty() {
            return None;
        }
        let mut survey = Survey::of(wanted, Vec::new(), self.ranges.clone());
        line.iter().for_each(|stmt| survey.stmt(stmt, true));
        let kept = survey.kept(|element| element.stores > 1 && element.first != First::ConditionalLoad);
        let registers = self.places_of(&kept);
        if registers.is_empty() {
            return None;
        }
        let places = Places::of(&registers);
        let mut members = line.to_vec();
        for member in &mut members {
            rewrite_accesses(member, &|buffer, indices| places.of_access(buffer, indices));
        }
        let has_value = |(_, element): &(&Register, &&Element)| element.first == First::Load;
        let fill = registers.iter().zip(&kept).filter(has_value).map(|(register, _)| self.fill(register));
        let empty = registers.iter().map(|register| self.empty(register));
        Some(allocated(&registers, Stmt::seq(fill.chain(members).chain(empty))))
    }
}

/// The buffers of which some element is stored to more than once.
fn stored_again(line: &[Stmt]) -> Vec<BufferId> {
    let mut counts: FxHashMap<(BufferId, &Indices), usize> = FxHashMap::default();
    let mut buffers = Vec::new();
    for stmt in line {
        let Stmt::Store(store) = stmt else { continue };
        let count = counts.entry((store.buffer, &store.indices)).or_default();
        *count += 1;
        if *count > 1 && !buffers.contains(&store.buffer) {
            buffers.push(store.buffer);
        }
    }
    buffers
}
