//! The values of an index for each thread of a block.

use crate::ids::VarId;
use crate::index::{Index, Interval, Ranges, Term};

use super::conflict::Axes;

/// An index as a sum of terms of the thread's numbers, of terms without them, and of terms that mix them with other variables. Only the
/// last ones need a substitution for each thread.
pub(super) struct Values<'a> {
    axes: &'a Axes,
    of_thread: Index,
    rest: Interval,
    mixed: Option<Index>,
    free: &'a Ranges,
}

impl<'a> Values<'a> {
    /// Splits an index whose other variables run over `free`.
    pub(super) fn new(axes: &'a Axes, index: &Index, free: &'a Ranges) -> Self {
        let (mut of_thread, mut rest, mut mixed): (Vec<Term>, Vec<Term>, Vec<Term>) = Default::default();
        for term in index.terms() {
            let (mut has_threads, mut has_others) = (false, false);
            let digit = Index::digit(term.digit.clone());
            digit.for_each_var(&mut |var| {
                *(if axes.holds(var) { &mut has_threads } else { &mut has_others }) = true
            });
            let is_decided = has_threads && !has_others && digit.evaluate(&|_| Some(0)).is_some();
            let part = match has_threads {
                true if is_decided => &mut of_thread,
                true => &mut mixed,
                false => &mut rest,
            };
            part.push(term.clone());
        }
        Values {
            axes,
            of_thread: Index::from_terms(of_thread, index.constant_part()),
            rest: Index::from_terms(rest, 0).interval(free),
            mixed: (!mixed.is_empty()).then(|| Index::from_terms(mixed, 0)),
            free,
        }
    }

    /// The values for the thread with given numbers.
    pub(super) fn at(&self, thread: &[i64]) -> Interval {
        let number = |var: VarId| self.axes.number(var, thread);
        let own = self.of_thread.evaluate(&number).map_or(Interval::UNBOUNDED, Interval::constant);
        let mixed = self
            .mixed
            .as_ref()
            .map(|mixed| mixed.substitute(&|var| number(var).map(Index::constant)).interval(self.free));
        own + self.rest + mixed.unwrap_or(Interval::constant(0))
    }
}
