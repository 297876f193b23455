//! Iterator maps against enumeration of their domains.

use std::collections::{BTreeMap, BTreeSet};

use super::support::{affine_tree, config, constant_ranges, evaluate, points};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use tilewright_core::ids::VarId;
use tilewright_core::index::Index;
use tilewright_core::index::iter_map::{IterMap, IterSum, MapLevel, Source, detect};
use tilewright_core::stmt::Guard;
use tilewright_core::visit::listed;

const LEVELS: [MapLevel; 3] = [MapLevel::Injective, MapLevel::Surjective, MapLevel::Bijective];

/// A nest of loops, as loop transformations leave it.
#[derive(Clone, Debug)]
struct Nest {
    loops: Vec<(VarId, Index)>,
    bindings: Vec<Index>,
    guards: Vec<Guard>,
    next: u32,
}

/// A transformation of the loops; positions are taken modulo the number of loops.
#[derive(Clone, Copy, Debug)]
enum Step {
    Split(usize, i64),
    Fuse(usize),
    Swap(usize, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0usize..8, prop_oneof![Just(2i64), Just(3), Just(4), Just(5)]).prop_map(|(at, f)| Step::Split(at, f)),
        2 => (0usize..8).prop_map(Step::Fuse),
        1 => (0usize..8, 0usize..8).prop_map(|(a, b)| Step::Swap(a, b)),
    ];
    prop::collection::vec(step, 0..6)
}

impl Nest {
    /// One loop per iterator of a block, numbered after `first`.
    fn new(extents: &[Index], first: u32) -> Self {
        let loops: Vec<(VarId, Index)> = (first..).map(VarId).zip(extents.iter().cloned()).collect();
        let bindings = loops.iter().map(|(var, _)| Index::var(*var)).collect();
        Nest { next: first + extents.len() as u32, loops, bindings, guards: Vec::new() }
    }

    fn fresh(&mut self) -> VarId {
        self.next += 1;
        VarId(self.next - 1)
    }

    fn substitute(&mut self, replacement: &[(VarId, Index)]) {
        let ranges = self.loops.iter().cloned().collect();
        let put = listed(replacement);
        for index in &mut self.bindings {
            *index = index.substitute(&put).simplify(&ranges);
        }
        for guard in &mut self.guards {
            guard.index = guard.index.substitute(&put).simplify(&ranges);
        }
    }

    fn apply(&mut self, step: Step) {
        let count = self.loops.len();
        match step {
            Step::Swap(a, b) => self.loops.swap(a % count, b % count),
            Step::Split(at, factor) => {
                let (var, extent) = self.loops.remove(at % count);
                let (outer, inner) = (self.fresh(), self.fresh());
                self.loops.insert(at % count, (inner, Index::constant(factor)));
                self.loops.insert(at % count, (outer, extent.ceil_div(factor)));
                let joined = &Index::var(outer).scale(factor) + &Index::var(inner);
                self.substitute(&[(var, joined.clone())]);
                if extent.floor_div(factor).scale(factor) != extent {
                    self.guards.push(Guard { index: joined, bound: extent });
                }
            }
            Step::Fuse(at) if count >= 2 => {
                let at = at % (count - 1);
                let (inner, inner_extent) = self.loops.remove(at + 1);
                let (outer, outer_extent) = self.loops.remove(at);
                let fused = self.fresh();
                self.loops.insert(at, (fused, outer_extent.multiply(&inner_extent)));
                let index = Index::var(fused);
                self.substitute(&[
                    (outer, index.divide(&inner_extent)),
                    (inner, index.remainder(&inner_extent)),
                ]);
            }
            Step::Fuse(_) => {}
        }
    }

    fn constant_extents(&self) -> Vec<i64> {
        self.loops.iter().map(|(_, extent)| extent.as_constant().expect("a constant extent")).collect()
    }

    /// Changes the map in one of seven ways.
    fn damage(&mut self, kind: u32, at: usize, amount: i64) {
        let count = self.bindings.len();
        match kind {
            0 => self.bindings[at % count] = self.bindings[at % count].offset(amount),
            1 => self.bindings[at % count] = self.bindings[at % count].scale(amount),
            2 => drop(self.bindings.remove(at % count)),
            3 => self.guards.clear(),
            4 => self.guards.iter_mut().for_each(|guard| guard.bound = guard.bound.offset(amount)),
            5 => self.bindings[at % count] = &self.bindings[at % count] + &self.bindings[(at + 1) % count],
            _ => {
                let (binding, divisor) = (self.bindings[at % count].clone(), amount.abs() + 1);
                self.bindings[at % count] = binding.floor_div(divisor);
                self.bindings.push(binding.modulo(divisor));
            }
        }
    }

    /// The nest for given values of the first variables, its dimensions.
    fn with_dims(&self, dims: &[i64]) -> Nest {
        let put = |var: VarId| dims.get(var.0 as usize).map(|size| Index::constant(*size));
        let set = |index: &Index| index.substitute(&put);
        Nest {
            loops: self.loops.iter().map(|(var, extent)| (*var, set(extent))).collect(),
            bindings: self.bindings.iter().map(set).collect(),
            guards: self
                .guards
                .iter()
                .map(|guard| Guard { index: set(&guard.index), bound: set(&guard.bound) })
                .collect(),
            next: self.next,
        }
    }

    /// The points of the domain as values of all variables, and their images.
    fn images(&self) -> Vec<(Vec<i64>, Vec<i64>)> {
        let mut images = Vec::new();
        for values in points(&self.constant_extents()) {
            let mut point = vec![0; self.next as usize];
            for ((var, _), value) in self.loops.iter().zip(values) {
                point[var.0 as usize] = value;
            }
            let holds = |guard: &Guard| evaluate(&guard.index, &point) < evaluate(&guard.bound, &point);
            if self.guards.iter().all(holds) {
                let image = self.bindings.iter().map(|index| evaluate(index, &point)).collect();
                images.push((point, image));
            }
        }
        images
    }
}

/// The value of a sum by the meaning of its splits.
fn sum_value(sum: &IterSum, point: &[i64]) -> i64 {
    sum.splits.iter().fold(constant(&sum.base), |value, split| {
        let source = match &split.source {
            Source::Iter(var) => point[var.0 as usize],
            Source::Fused(fused) => sum_value(fused, point),
        };
        let digit = source.div_euclid(constant(&split.lower_factor)).rem_euclid(constant(&split.extent));
        value + constant(&split.scale) * digit
    })
}

fn constant(index: &Index) -> i64 {
    index.as_constant().unwrap_or_else(|| panic!("{index:?} is not constant"))
}

/// Whether the map has the properties of its level, by enumeration.
fn check(nest: &Nest, map: &IterMap) -> Result<(), TestCaseError> {
    let images = nest.images();
    for (point, image) in &images {
        for (sum, value) in map.outputs.iter().zip(image) {
            prop_assert_eq!(sum_value(sum, point), *value, "{:?} at {:?} of {:?}", sum, point, nest);
        }
    }
    let distinct: BTreeSet<&Vec<i64>> = images.iter().map(|(_, image)| image).collect();
    if map.level != MapLevel::Surjective {
        prop_assert_eq!(distinct.len(), images.len(), "not injective: {:?}", nest);
        let outputs: Vec<Index> = (0..nest.bindings.len() as u32).map(|at| Index::var(VarId(at))).collect();
        let inverse = map.inverse(&outputs).expect("an injective map has an inverse");
        for (point, image) in &images {
            for (var, index) in &inverse {
                prop_assert_eq!(evaluate(index, image), point[var.0 as usize], "{:?} by {:?}", var, index);
            }
        }
    }
    if map.level != MapLevel::Injective {
        check_box(nest, &map.outputs, &|index| constant(index))?;
    }
    Ok(())
}

/// Whether the images are exactly the points of the box that the sums claim.
fn check_box(nest: &Nest, sums: &[IterSum], value: &dyn Fn(&Index) -> i64) -> Result<(), TestCaseError> {
    let distinct: BTreeSet<Vec<i64>> = nest.images().into_iter().map(|(_, image)| image).collect();
    let mut size = 1;
    for (at, sum) in sums.iter().enumerate() {
        let (extent, min, scale) = (value(&sum.extent).max(0), value(&sum.min), value(&sum.scale));
        size *= extent;
        let range: BTreeSet<i64> = (0..extent).map(|step| min + scale * step).collect();
        prop_assert!(distinct.iter().all(|image| range.contains(&image[at])), "{:?} of {:?}", sum, nest);
    }
    prop_assert_eq!(distinct.len() as i64, size, "not onto its box: {:?}", nest);
    Ok(())
}

fn constants(extents: &[i64]) -> Vec<Index> {
    extents.iter().map(|extent| Index::constant(*extent)).collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn transformed_loops_are_found_bijective(
        extents in prop::collection::vec(1i64..=12, 1..=3), steps in steps(),
    ) {
        let mut nest = Nest::new(&constants(&extents), 0);
        steps.iter().for_each(|step| nest.apply(*step));
        let size: i64 = nest.constant_extents().iter().product();
        prop_assume!(size <= 20_000);
        let map = detect(&nest.bindings, &nest.loops, &nest.guards, MapLevel::Bijective);
        let map = map.map_err(|error| TestCaseError::fail(format!("{error} in {nest:?}")))?;
        for (sum, extent) in map.outputs.iter().zip(&extents) {
            prop_assert!(sum.covers(&Index::constant(*extent)), "{:?} is not 0..{}", sum, extent);
        }
        check(&nest, &map)?;
    }

    #[test]
    fn transformed_loops_of_symbolic_extents_are_found_bijective(steps in steps(), dims in 1u32..=2) {
        let extents: Vec<Index> =
            (0..dims).map(|dim| Index::var(VarId(dim))).chain([Index::constant(6)]).collect();
        let mut nest = Nest::new(&extents, dims);
        // Fusing symbolic loops makes products of dimensions, which are covered by examples.
        for step in steps.into_iter().filter(|step| !matches!(step, Step::Fuse(_))) {
            nest.apply(step);
        }
        let map = detect(&nest.bindings, &nest.loops, &nest.guards, MapLevel::Bijective);
        let map = map.map_err(|error| TestCaseError::fail(format!("{error} in {nest:?}")))?;
        for (sum, extent) in map.outputs.iter().zip(&extents) {
            prop_assert!(sum.covers(extent), "{:?} is not 0..{:?}", sum, extent);
        }
    }

    #[test]
    fn what_is_claimed_of_symbolic_maps_holds(
        steps in steps(), damage in 0u32..6, at in 0usize..4, amount in -2i64..=2,
    ) {
        let extents = [Index::var(VarId(0)), Index::var(VarId(1)), Index::constant(3)];
        let mut nest = Nest::new(&extents, 2);
        steps.iter().for_each(|step| nest.apply(*step));
        nest.damage(damage, at, amount);
        for level in LEVELS {
            let Ok(map) = detect(&nest.bindings, &nest.loops, &nest.guards, level) else { continue };
            for dims in [[1, 1], [2, 3], [5, 2], [4, 4], [7, 3]] {
                let nest = nest.with_dims(&dims);
                if nest.constant_extents().iter().product::<i64>() > 5_000 {
                    continue;
                }
                let images = nest.images();
                let distinct: BTreeSet<&Vec<i64>> = images.iter().map(|(_, image)| image).collect();
                prop_assert!(level == MapLevel::Surjective || distinct.len() == images.len(), "{:?}", nest);
                if level != MapLevel::Injective {
                    check_box(&nest, &map.outputs, &|index| evaluate(index, &dims))?;
                }
            }
        }
    }

    #[test]
    fn what_is_claimed_of_arbitrary_indices_holds(
        trees in prop::collection::vec(affine_tree(3), 1..=3), extents in prop::collection::vec(1i64..=6, 3),
        guard in prop::option::of((affine_tree(3), 0i64..=12)),
    ) {
        let mut nest = Nest::new(&constants(&extents), 0);
        let ranges = constant_ranges(&extents);
        nest.bindings = trees.iter().map(|tree| tree.index().simplify(&ranges)).collect();
        nest.guards.extend(guard.map(|(tree, bound)| Guard { index: tree.index(), bound: Index::constant(bound) }));
        for level in LEVELS {
            if let Ok(map) = detect(&nest.bindings, &nest.loops, &nest.guards, level) {
                check(&nest, &map)?;
            }
        }
    }

    #[test]
    fn what_is_claimed_of_damaged_maps_holds(
        extents in prop::collection::vec(1i64..=9, 1..=3), steps in steps(), damage in 0u32..7, at in 0usize..4,
        amount in -3i64..=3,
    ) {
        let mut nest = Nest::new(&constants(&extents), 0);
        steps.iter().for_each(|step| nest.apply(*step));
        let size: i64 = nest.constant_extents().iter().product();
        prop_assume!(size <= 5_000);
        nest.damage(damage, at, amount);
        for level in LEVELS {
            if let Ok(map) = detect(&nest.bindings, &nest.loops, &nest.guards, level) {
                check(&nest, &map)?;
            }
        }
    }
}

#[test]
fn many_random_indices_are_understood() {
    // The properties above would hold of a detection that refuses everything.
    let mut understood: BTreeMap<String, u32> = BTreeMap::new();
    let mut runner = proptest::test_runner::TestRunner::new(config());
    let strategy = (prop::collection::vec(affine_tree(3), 1..=2), prop::collection::vec(2i64..=6, 3));
    for _ in 0..2000 {
        let (trees, extents) = strategy.new_tree(&mut runner).expect("a case").current();
        let nest = Nest::new(&constants(&extents), 0);
        let indices: Vec<Index> = trees.iter().map(|tree| tree.index()).collect();
        for level in LEVELS {
            if detect(&indices, &nest.loops, &[], level).is_ok() {
                *understood.entry(format!("{level:?}")).or_default() += 1;
            }
        }
    }
    assert!(understood.get("Surjective").copied().unwrap_or(0) > 100, "{understood:?}");
}
