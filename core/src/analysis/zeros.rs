//! Elements of intermediates that are known to be zero: the padding of a tensor that is stored with its padding.
//!
//! Every store that may write something else than zero gives conditions on the element's index; those that all such stores have hold for
//! each element that differs from zero, whenever it was stored. They mention nothing that changes while the intermediate lives.

use crate::analysis::block::{complete_store, writes};
use crate::analysis::condition::difference;
use crate::expr::{BinaryOp, Constant, Expr, ExprKind};
use crate::ids::BufferId;
use crate::index::{Index, Ranges, Term};
use crate::program::Program;
use crate::stmt::{Block, Stmt, Store};

/// `factor * index[dimension] + rest` is negative for each element that differs from zero.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Inside {
    dimension: usize,
    factor: i64,
    rest: Index,
}

/// Conditions outside of which the elements of some intermediates are zero.
#[derive(Clone, Debug, Default)]
pub struct ZeroElements {
    known: Vec<(BufferId, Vec<Inside>)>,
}

impl ZeroElements {
    /// The zeros of intermediates that one of some blocks stores alone.
    pub fn of_blocks<'a>(program: &Program, blocks: impl Iterator<Item = &'a Block> + Clone) -> Self {
        let mut zeros = ZeroElements::default();
        for block in blocks.clone() {
            let [buffer] = writes(block)[..] else { continue };
            let is_only = blocks.clone().filter(|other| writes(other).contains(&buffer)).count() == 1;
            if is_only && program.access(buffer).is_none() && complete_store(block).is_some() {
                zeros.learn_from_block(program, buffer, block);
            }
        }
        zeros
    }

    /// Learns about an intermediate from the statement that it lives in.
    pub fn learn(&mut self, program: &Program, buffer: BufferId, lifetime: &Stmt) {
        let mut writes = Writes { program, buffer, inner: Ranges::new(), guards: Vec::new(), common: None };
        if writes.visit(lifetime).is_some() {
            self.known.push((buffer, writes.common.unwrap_or_default()));
        }
    }

    /// Learns about the intermediate that one block alone stores.
    pub fn learn_from_block(&mut self, program: &Program, buffer: BufferId, block: &Block) {
        let inner = block.iters.iter().map(|iter| (iter.var, iter.extent.clone())).collect();
        let mut writes = Writes { program, buffer, inner, guards: Vec::new(), common: None };
        let parts = [Some(&block.body), block.init.as_ref()];
        if parts.into_iter().flatten().all(|part| writes.visit(part).is_some()) {
            self.known.push((buffer, writes.common.unwrap_or_default()));
        }
    }

    /// Forgets what was learnt about an intermediate.
    pub fn forget(&mut self, buffer: BufferId) {
        self.known.retain(|(known, _)| *known != buffer);
    }

    /// The differences that are negative wherever an element differs from zero.
    pub(super) fn conditions<'a>(
        &'a self,
        buffer: BufferId,
        indices: &'a [Index],
    ) -> impl Iterator<Item = Index> + 'a {
        let of_buffer = self.known.iter().filter(move |(known, _)| *known == buffer);
        of_buffer.flat_map(|(_, inside)| inside).filter_map(move |Inside { dimension, factor, rest }| {
            Some(&indices.get(*dimension)?.scale(*factor) + rest)
        })
    }
}

/// The stores to an intermediate.
struct Writes<'p> {
    program: &'p Program,
    buffer: BufferId,
    /// The loops inside the lifetime, around the current statement.
    inner: Ranges,
    /// The differences of the guards around it.
    guards: Vec<Index>,
    /// The conditions that hold for all stores so far; `None` before the first one.
    common: Option<Vec<Inside>>,
}

impl Writes<'_> {
    /// `None` when nothing is known of a store.
    fn visit(&mut self, stmt: &Stmt) -> Option<()> {
        match stmt {
            Stmt::Store(store) if store.buffer == self.buffer => {
                self.add(store);
                Some(())
            }
            Stmt::For(node) => {
                self.inner.insert_loop(node);
                let known = self.visit(&node.body);
                self.inner.remove(node.var);
                known
            }
            Stmt::If(node) => {
                let before = self.guards.len();
                conjuncts(&node.condition, &mut self.guards);
                let known = self.visit(&node.then);
                self.guards.truncate(before);
                known.and_then(|()| node.otherwise.iter().try_for_each(|otherwise| self.visit(otherwise)))
            }
            // Their iterators have values that their bodies do not show.
            Stmt::Block(_) => stmt.each_child().all(|child| !self.writes(child)).then_some(()),
            _ => stmt.each_child().try_for_each(|child| self.visit(child)),
        }
    }

    fn writes(&self, stmt: &Stmt) -> bool {
        matches!(stmt, Stmt::Store(store) if store.buffer == self.buffer)
            || stmt.each_child().any(|child| self.writes(child))
    }

    fn add(&mut self, store: &Store) {
        let mut conditions = self.guards.clone();
        let mut value = &store.value;
        while let ExprKind::Select(condition, then, otherwise) = value.kind() {
            if !is_zero(otherwise) {
                break;
            }
            conjuncts(condition, &mut conditions);
            value = then;
        }
        if is_zero(value) {
            return;
        }
        let around = conditions.iter().filter(|condition| !self.mentions_inner(condition));
        let mut found: Vec<Inside> =
            around.map(|condition| Inside { dimension: 0, factor: 0, rest: condition.clone() }).collect();
        for dimension in 0..store.indices.len() {
            let of_guards = conditions.iter().filter_map(|condition| self.on(condition, store, dimension));
            found.extend(of_guards.chain(self.bounds(store, dimension)));
        }
        match &mut self.common {
            Some(common) => common.retain(|inside| found.contains(inside)),
            None => self.common = Some(found),
        }
    }

    /// A condition on the loops around a store, as one on an index of the element.
    fn on(&self, condition: &Index, store: &Store, dimension: usize) -> Option<Inside> {
        let index = &store.indices[dimension];
        let is_inner = |term: &Term| self.mentions_inner(&Index::digit(term.digit.clone()));
        let moving = index.terms().iter().find(|term| is_inner(term))?;
        let same = condition.terms().iter().find(|term| term.digit == moving.digit)?;
        let factor = same.coefficient / moving.coefficient;
        let rest = condition - &index.scale(factor);
        (factor != 0 && !self.mentions_inner(&rest)).then_some(Inside { dimension, factor, rest })
    }

    /// The bounds of an index of a store, where they leave out elements of the intermediate.
    fn bounds(&self, store: &Store, dimension: usize) -> impl Iterator<Item = Inside> + use<> {
        let index = &store.indices[dimension];
        let last = self.program.buffer(self.buffer).shape[dimension].offset(-1);
        let (low, high) = (index.lower_bound(&self.inner), index.upper_bound(&self.inner));
        let low = low.filter(|low| !low.is(0)).map(|low| (-1, low.offset(-1)));
        let high = high.filter(|high| *high != last).map(|high| (1, high.scale(-1).offset(-1)));
        low.into_iter().chain(high).map(move |(factor, rest)| Inside { dimension, factor, rest })
    }

    fn mentions_inner(&self, index: &Index) -> bool {
        let mut found = false;
        index.for_each_var(&mut |var| found |= self.inner.contains(var));
        found
    }
}

/// Appends the differences of the comparisons that all have to hold for a condition.
fn conjuncts(condition: &Expr, found: &mut Vec<Index>) {
    match condition.kind() {
        ExprKind::Binary(BinaryOp::And, a, b) => {
            conjuncts(a, found);
            conjuncts(b, found);
        }
        _ => found.extend(difference(condition)),
    }
}

/// Whether a value is the number zero.
pub(super) fn is_zero(value: &Expr) -> bool {
    match value.kind() {
        ExprKind::Constant(Constant::Int(value)) => *value == 0,
        ExprKind::Constant(constant) => constant.as_f64() == 0.0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The conditions on `t[p, q]` that are known in a program in which `t` is stored by some statements.
    fn known(stores: &str) -> Vec<String> {
        let text = format!(
            "kernel k(in x: f32[16, 16], in n: i64[16], out y: f32[16, 16]) {{
               buffer t: f32[18, 18] global
               for o in 0..4 {{ alloc t {{ {stores} for p in 0..16 {{ for q in 0..16 {{ y[p, q] = t[p, q] }} }} }} }}
             }}"
        );
        let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
        let Stmt::For(outer) = &program.body else { panic!("a loop") };
        let Stmt::Alloc(alloc) = &outer.body else { panic!("an allocation") };
        let mut zeros = ZeroElements::default();
        zeros.learn(&program, alloc.buffer, &alloc.body);
        let place = [Index::constant(100), Index::constant(1000)];
        let mut found: Vec<String> =
            zeros.conditions(alloc.buffer, &place).map(|condition| format!("{condition:?}")).collect();
        found.sort();
        found.dedup();
        found
    }

    fn count(stores: &str) -> usize {
        known(stores).len()
    }

    #[test]
    fn a_selected_zero_is_known() {
        let padded = "for a in 0..18 { for b in 0..18 { t[a, b] = \
                      select((index(a) >= 1) & (index(a) < 17) & (index(b) >= 2), x[a, b], 0.0) } }";
        assert_eq!(count(padded), 3);
    }

    #[test]
    fn a_copy_that_was_cut_at_its_padding_is_known_by_its_bounds() {
        let cut = "for a in 0..18 { for b in 0..18 { t[a, b] = 0.0 } } \
                   for c in 0..16 { for d in 0..18 { t[c + 1, d] = x[c, d] } }";
        assert_eq!(count(cut), 2);
    }

    #[test]
    fn only_conditions_of_all_stores_are_known() {
        let one = "for a in 0..18 { for b in 0..18 { t[a, b] = select(index(a) >= 1, x[a, b], 0.0) } }";
        let other = "for c in 0..18 { for d in 0..18 { t[c, d] = select(index(d) >= 1, x[c, d], 0.0) } }";
        assert_eq!((count(one), count(other)), (1, 1));
        assert_eq!(count(&format!("{one} {other}")), 0);
    }

    #[test]
    fn conditions_on_what_changes_meanwhile_are_unknown() {
        let by_loop = "for l in 0..3 { for a in 0..18 { for b in 0..18 { \
                       t[a, b] = select(index(a + l) >= 2, x[a, b], 0.0) } } }";
        assert_eq!(count(by_loop), 0, "the loop is inside the lifetime");
        let by_place =
            "for a in 0..18 { for b in 0..18 { t[a, b] = select(index(a + o) >= 2, x[a, b], 0.0) } }";
        assert_eq!(count(by_place), 1, "the loop is outside");
        let around = "if index(o) < 2 { for a in 0..18 { for b in 0..18 { t[a, b] = x[a, b] } } }";
        assert_eq!(count(around), 1, "nothing else is stored");
        let by_data = "for a in 0..18 { for b in 0..18 { t[a, b] = select(x[a, b] > 0.0, x[a, b], 0.0) } }";
        assert_eq!(count(by_data), 0);
        let one = "for a in 0..18 { for b in 0..18 { t[a, b] = select(index(a) >= 1, x[a, b], 1.0) } }";
        assert_eq!(count(one), 0, "it is not zero");
    }
}
