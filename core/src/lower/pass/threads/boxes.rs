//! Whether boxes of two lists meet, without a look at each pair.

use smallvec::SmallVec;

use crate::index::Interval;

/// An interval for each dimension.
pub(super) type Region = SmallVec<[Interval; 6]>;

/// Whether a box of the first list and one of the second list have a point in common, where their positions are a pair that `counts`.
/// All boxes have the same number of dimensions.
///
/// The boxes of the second list are sorted along the dimension that keeps most of them apart. The boxes that can meet a given box
/// are then neighbours in the list.
pub(super) fn meet(a: &[Region], b: &[Region], counts: impl Fn(usize, usize) -> bool) -> bool {
    let dimension =
        (0..b.first().map_or(0, |first| first.len())).max_by_key(|dimension| spread(b, *dimension));
    let Some(dimension) = dimension else {
        return (0..a.len()).any(|a| (0..b.len()).any(|b| counts(a, b)));
    };
    let mut order: Vec<usize> = (0..b.len()).collect();
    order.sort_by_key(|position| b[*position][dimension].min);
    let longest = b.iter().map(|own| length(own[dimension])).max().unwrap_or(0);
    a.iter().enumerate().any(|(position, own)| {
        let along = own[dimension];
        // Boxes that begin before this end before `along` begins.
        let earliest = i128::from(along.min) - longest;
        let first = order.partition_point(|other| i128::from(b[*other][dimension].min) < earliest);
        let behind = order.partition_point(|other| b[*other][dimension].min <= along.max);
        order[first..behind.max(first)].iter().any(|other| meets(own, &b[*other]) && counts(position, *other))
    })
}

fn meets(a: &[Interval], b: &[Interval]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.min <= b.max && b.min <= a.max)
}

/// The length of an interval; bounds that are unknown are the least and the greatest integer.
fn length(interval: Interval) -> i128 {
    i128::from(interval.max) - i128::from(interval.min)
}

/// How far boxes are apart along a dimension, in lengths of the longest.
fn spread(boxes: &[Region], dimension: usize) -> i128 {
    let along = || boxes.iter().map(|own| own[dimension]);
    let (first, last) = (along().map(|own| own.min).min(), along().map(|own| own.min).max());
    let longest = along().map(length).max().unwrap_or(0);
    match (first, last) {
        (Some(first), Some(last)) => (i128::from(last) - i128::from(first)) / (longest + 1).max(1),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from a linear congruential generator (Knuth, The Art of Computer Programming, volume 2, 3.3.4).
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: i64) -> i64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as i64 % limit
        }

        fn boxes(&mut self, dimensions: usize, room: i64) -> Vec<Region> {
            let count = self.below(12);
            let mut interval = || {
                let min = self.below(room) - room / 2;
                Interval { min, max: min + self.below(4) }
            };
            (0..count).map(|_| (0..dimensions).map(|_| interval()).collect()).collect()
        }
    }

    #[test]
    fn the_answer_is_that_of_all_pairs() {
        let mut random = Random(3);
        let mut answers = [0; 2];
        for case in 0..2000 {
            let (dimensions, room) = (case % 3, 8 << (case % 4));
            let (a, b) = (random.boxes(dimensions, room), random.boxes(dimensions, room));
            let counts = |a: usize, b: usize| a != b;
            let pairs = || (0..a.len()).flat_map(|x| (0..b.len()).map(move |y| (x, y)));
            let expected = pairs().any(|(x, y)| counts(x, y) && meets(&a[x], &b[y]));
            assert_eq!(meet(&a, &b, counts), expected, "{a:?} {b:?}");
            answers[usize::from(expected)] += 1;
        }
        assert!(answers.into_iter().all(|count| count > 200), "{answers:?}");
    }

    #[test]
    fn bounds_that_are_unknown_meet_everything() {
        let unknown = [Region::from_slice(&[Interval { min: i64::MIN, max: i64::MAX }])];
        let known = [Region::from_slice(&[Interval { min: 5, max: 5 }])];
        assert!(meet(&unknown, &known, |_, _| true));
        assert!(meet(&known, &unknown, |_, _| true));
    }
}
