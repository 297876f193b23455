//! Groups of a body that are executed together.
//!
//! A body is one part as long as an engine can execute it at once. Where it cannot, because some groups decide while they run or
//! give results of unknown size, these become parts of their own, and all others gather into as few parts as their operands allow:
//! groups have no effects, so that they may change places.

use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::fuse::Group;
use crate::ir::{Binding, Body, ValueId};

/// Groups of one body that are executed together.
#[derive(Clone, Debug)]
pub struct Part {
    /// No other part of this process has this number.
    pub number: u64,
    /// Their places among the groups of the body, in order.
    pub groups: Vec<usize>,
    /// The values from outside that they read, in inner bodies too.
    pub inputs: Vec<ValueId>,
    /// The values that they bind and others read.
    pub outputs: Vec<ValueId>,
    /// Whether this is one group that no engine executes as a part.
    pub is_alone: bool,
}

impl Part {
    /// A whole body.
    pub fn whole(body: &Body, groups: &[Group]) -> Self {
        Part::of(body, groups, (0..groups.len()).collect(), false)
    }

    fn of(body: &Body, groups: &[Group], places: Vec<usize>, is_alone: bool) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let bindings = places.iter().flat_map(|&place| &groups[place].bindings).copied();
        let own: FxHashSet<usize> = bindings.clone().collect();
        let (mut inputs, mut seen) = (Vec::new(), FxHashSet::default());
        let mut bound = FxHashSet::default();
        bindings.clone().for_each(|place| bind(&body.bindings[place], &mut bound));
        let mut read_elsewhere: FxHashSet<ValueId> = body.results.iter().copied().collect();
        for (place, binding) in body.bindings.iter().enumerate() {
            for_each_use(binding, &mut |value| {
                if !own.contains(&place) {
                    read_elsewhere.insert(value);
                } else if !bound.contains(&value) && seen.insert(value) {
                    inputs.push(value);
                }
            });
        }
        let outputs = bindings.flat_map(|place| body.bindings[place].outputs.iter().copied());
        let outputs = outputs.filter(|output| read_elsewhere.contains(output)).collect();
        Part { number: NUMBER.fetch_add(1, Ordering::Relaxed), groups: places, inputs, outputs, is_alone }
    }

    /// The parts that take the place of this one when some of its groups have to be alone, in an order in which they can run.
    pub fn split(&self, body: &Body, groups: &[Group], alone: &[usize]) -> Vec<Part> {
        let bindings = |place: usize| groups[place].bindings.iter().map(|&binding| &body.bindings[binding]);
        let mut producers: FxHashMap<ValueId, usize> = FxHashMap::default();
        for &place in &self.groups {
            bindings(place).for_each(|binding| {
                producers.extend(binding.outputs.iter().map(|&output| (output, place)));
            });
        }
        let mut done: FxHashSet<usize> = FxHashSet::default();
        let is_ready = |place: usize, done: &FxHashSet<usize>| {
            let mut ready = true;
            bindings(place).for_each(|binding| {
                for_each_use(binding, &mut |value| {
                    let producer = producers.get(&value);
                    ready &= producer.is_none_or(|producer| *producer == place || done.contains(producer));
                });
            });
            ready
        };
        let (mut lonely, mut others): (Vec<usize>, Vec<usize>) =
            self.groups.iter().copied().partition(|place| alone.contains(place));
        let mut parts = Vec::new();
        while !lonely.is_empty() || !others.is_empty() {
            let before = done.len();
            let mut wave = Vec::new();
            others.retain(|&place| {
                let ready = is_ready(place, &done);
                if ready {
                    done.insert(place);
                    wave.push(place);
                }
                !ready
            });
            if !wave.is_empty() {
                parts.push(Part::of(body, groups, wave, false));
            }
            lonely.retain(|&place| {
                let ready = is_ready(place, &done);
                if ready {
                    done.insert(place);
                    parts.push(Part::of(body, groups, vec![place], true));
                }
                !ready
            });
            assert!(done.len() > before, "values are bound before they are used");
        }
        parts
    }
}

/// Calls `visit` with all values that a binding reads, in inner bodies too.
fn for_each_use(binding: &Binding, visit: &mut impl FnMut(ValueId)) {
    binding.operation.for_each_input(visit);
    binding.operation.bodies().into_iter().for_each(|inner| inner.for_each_use(&mut *visit));
}

/// Adds all values that a binding binds, in inner bodies too.
fn bind(binding: &Binding, bound: &mut FxHashSet<ValueId>) {
    bound.extend(binding.outputs.iter().copied());
    for inner in binding.operation.bodies() {
        bound.extend(inner.parameters.iter().copied());
        inner.bindings.iter().for_each(|binding| bind(binding, bound));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::GraphBuilder;
    use crate::fuse::groups;
    use crate::ir::{Attributes, Type};
    use crate::tensor::ElementType;

    #[test]
    fn groups_around_a_lonely_one_gather_before_and_behind_it() {
        let mut graph = GraphBuilder::new("main");
        let x = graph.parameter("x", Type::fixed(ElementType::F32, &[4, 4]));
        let mut call = |name: &str, inputs: &[ValueId]| graph.call(name, inputs, Attributes::none()).unwrap();
        let first = call("softmax", &[x]);
        let places = call("non_zero", &[first]);
        let other = call("matmul", &[x, first]);
        let counted = call("shape", &[places]);
        let last = call("matmul", &[other, x]);
        let function = graph.finish(vec![counted, last]).unwrap();
        let groups = groups(&function, &function.body);
        let whole = Part::whole(&function.body, &groups);
        let parts = whole.split(&function.body, &groups, &[1]);
        let found: Vec<(&[usize], bool)> =
            parts.iter().map(|part| (&part.groups[..], part.is_alone)).collect();
        assert_eq!(found, [(&[0, 2, 4][..], false), (&[1][..], true), (&[3][..], false)]);
        assert_eq!(parts[0].outputs, [first, last]);
        assert_eq!(parts[1].inputs, [first]);
        assert!(parts.iter().all(|part| part.number != whole.number));
    }
}
