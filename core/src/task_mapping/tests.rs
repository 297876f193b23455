//! Laws of task mappings, on random ones.

use super::*;
use crate::tensor::Random;

fn random_elementary(random: &mut Random, dimensions: usize) -> TaskMapping {
    let shape: Vec<i64> = (0..dimensions).map(|_| 1 + random.below(4) as i64).collect();
    let mut ranks: Vec<usize> = (0..dimensions).collect();
    for place in (1..dimensions).rev() {
        ranks.swap(place, random.below(place as u64 + 1) as usize);
    }
    let distribution = if random.below(2) == 0 { Distribution::Spatial } else { Distribution::Repeat };
    Elementary::new(distribution, &shape, &ranks).expect("a sound mapping").into()
}

fn random_mapping(random: &mut Random, dimensions: usize) -> TaskMapping {
    let first = random_elementary(random, dimensions);
    (0..random.below(3))
        .fold(first, |outer, _| (&outer * &random_elementary(random, dimensions)).expect("equal dimensions"))
}

/// The tasks by the definition of composition, from the tasks of the two.
fn composed(outer: &TaskMapping, inner: &TaskMapping, worker: i64) -> Vec<Vec<i64>> {
    let shape = inner.shape();
    let mut tasks = Vec::new();
    for t in outer.tasks(worker / inner.workers()) {
        for u in inner.tasks(worker % inner.workers()) {
            tasks.push((0..shape.len()).map(|d| t[d] * shape[d] + u[d]).collect());
        }
    }
    tasks
}

#[test]
fn workers_do_each_task_once() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let dimensions = 1 + random.below(3) as usize;
        let mapping = random_mapping(&mut random, dimensions);
        if mapping.shape().iter().product::<i64>() > 1 << 12 {
            continue;
        }
        let mut all: Vec<Vec<i64>> =
            (0..mapping.workers()).flat_map(|worker| mapping.tasks(worker)).collect();
        let count = mapping.shape().iter().product::<i64>() as usize;
        assert_eq!(all.len(), count, "{mapping}");
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count, "{mapping}");
        assert!(all.iter().all(|task| task.iter().zip(mapping.shape()).all(|(at, extent)| *at < extent)));
        assert!(mapping.tasks(mapping.workers()).is_empty() && mapping.tasks(-1).is_empty());
    }
}

#[test]
fn composition_follows_its_definition_and_is_associative() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let dimensions = 1 + random.below(2) as usize;
        let [a, b, c] = [(); 3].map(|()| random_elementary(&mut random, dimensions));
        let ab = (&a * &b).expect("equal dimensions");
        for worker in 0..ab.workers() {
            assert_eq!(ab.tasks(worker), composed(&a, &b, worker), "{a} and {b}");
        }
        let (left, right) = ((&ab * &c).expect("equal"), (&a * &(&b * &c).expect("equal")).expect("equal"));
        assert_eq!(left, right);
        for worker in 0..left.workers().min(64) {
            assert_eq!(left.tasks(worker), composed(&a, &(&b * &c).expect("equal"), worker));
        }
    }
}

#[test]
fn composition_is_not_commutative() {
    let [a, b] = ["spatial(2)", "repeat(2)"].map(|text| text.parse::<TaskMapping>().expect("a mapping"));
    assert_eq!((&a * &b).expect("equal").tasks(1), [[2], [3]]);
    assert_eq!((&b * &a).expect("equal").tasks(1), [[1], [3]]);
}

#[test]
fn texts_are_read_as_they_are_printed() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let mapping = random_mapping(&mut random, 1 + seed as usize % 3);
        assert_eq!(mapping.to_string().parse(), Ok(mapping));
    }
    let column: TaskMapping = "spatial( 2 , 3, ranks=[1, 0] )*repeat(1,2)".parse().expect("a mapping");
    assert_eq!(column.to_string(), "spatial(2, 3, ranks=[1, 0]) * repeat(1, 2)");
    assert_eq!(column.tasks(1), [[1, 0], [1, 1]]);
}

#[test]
fn wrong_mappings_are_refused() {
    for (text, part) in [
        ("", "spatial"),
        ("spatial", "spatial"),
        ("local(2)", "`local`"),
        ("spatial(2", "parenthesis"),
        ("spatial(two)", "a number"),
        ("spatial(0)", "at least 1"),
        ("spatial(2, 2, ranks=[0, 0])", "each number below 2 once"),
        ("spatial(2, ranks)", "ranks=[1, 0]"),
        ("spatial(2) * repeat(2, 2)", "the same number of extents"),
        ("spatial(4294967296, 4294967296)", "below 2^63"),
        ("repeat(4294967296) * repeat(4294967296)", "below 2^63"),
    ] {
        let error = text.parse::<TaskMapping>().expect_err(text).to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn boxes_are_shared_evenly_or_covered() {
    let even = |shape: &[i64], workers| TaskMapping::even(shape, workers).map(|mapping| mapping.to_string());
    assert_eq!(even(&[8, 64], 128).as_deref(), Ok("repeat(4, 1) * spatial(2, 64)"));
    assert_eq!(even(&[6, 10], 4).as_deref(), Ok("repeat(3, 5) * spatial(2, 2)"));
    assert_eq!(even(&[7, 5], 4), Err(TaskMappingError::Uneven { shape: vec![7, 5], workers: 4 }));
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let shape: Vec<i64> = (0..1 + random.below(3)).map(|_| 1 + random.below(40) as i64).collect();
        let workers = 1 << random.below(8);
        let covering = TaskMapping::covering(&shape, workers).expect("a mapping");
        assert_eq!(covering.workers(), workers, "{shape:?}: {covering}");
        assert!(
            covering.shape().iter().zip(&shape).all(|(own, extent)| own >= extent),
            "{shape:?}: {covering}"
        );
        if let Ok(even) = TaskMapping::even(&shape, workers) {
            assert_eq!((even.shape(), even.workers()), (shape, workers));
        }
    }
}
