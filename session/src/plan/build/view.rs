//! Where the elements of a value lie in memory that it shares with others.

use std::ops::Range;

use tilewright_graph::legalise::Order;
use tilewright_graph::symbolic::SymInt;

/// The places of a value's elements in a memory: neighbours along a dimension are equally far apart.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct View {
    /// The place of the first element, in elements.
    start: usize,
    /// The distance of neighbours along each dimension, in elements.
    distances: Vec<usize>,
    /// The same distances over the sizes that the graph knows by name.
    named: Option<Vec<SymInt>>,
}

impl View {
    /// All elements of a dense tensor.
    pub(super) fn whole(shape: &[usize], named: Option<&[SymInt]>, order: &Order) -> Self {
        let named = named.filter(|named| named.len() == shape.len());
        View {
            start: 0,
            distances: dense_distances(shape, order, 1, |all, extent| all * extent),
            named: named.map(|named| dense_distances(named, order, 1.into(), |all, extent| all * extent)),
        }
    }

    /// Every `step`-th element along a dimension, from the `first` on.
    pub(super) fn part(&self, dimension: usize, first: usize, step: usize) -> Self {
        let mut part = self.clone();
        part.start += first * self.distances[dimension];
        part.distances[dimension] *= step;
        if let Some(named) = &mut part.named {
            named[dimension] = named[dimension].scale(step as i64);
        }
        part
    }

    /// The same elements without a dimension, which has one place.
    pub(super) fn without(mut self, dimension: usize) -> Self {
        self.distances.remove(dimension);
        self.named.iter_mut().for_each(|named| drop(named.remove(dimension)));
        self
    }

    /// The same elements with dimension `perm[d]` numbered `d`.
    pub(super) fn renumbered(&self, perm: &[usize]) -> Self {
        View {
            start: self.start,
            distances: perm.iter().map(|&dimension| self.distances[dimension]).collect(),
            named: (self.named.as_ref())
                .map(|named| perm.iter().map(|&dimension| named[dimension].clone()).collect()),
        }
    }

    /// The same elements in another shape, where each of its dimensions has neighbours at one distance. `named` are the extents of
    /// that shape as the graph knows them.
    pub(super) fn reshaped(&self, from: &[usize], to: &[usize], named: Option<&[SymInt]>) -> Option<Self> {
        let named = named.filter(|named| named.len() == to.len()).zip(self.named.as_ref());
        let mut distances = vec![1; to.len()];
        let mut names = vec![SymInt::from(1); to.len()];
        let long: Vec<usize> = (0..from.len()).filter(|&dimension| from[dimension] != 1).collect();
        let (mut rest, mut next) = (&long[..], 0);
        while let Some(&first) = rest.first() {
            // The fewest dimensions, from here on, that have as many elements on both sides.
            let (mut taken, mut elements) = (1, from[first]);
            let (begin, mut others) = (next, 1);
            while elements != others || next == begin {
                if others < elements || next == begin {
                    others *= *to.get(next)?;
                    next += 1;
                } else {
                    elements *= from[*rest.get(taken)?];
                    taken += 1;
                }
            }
            let is_chain = rest[..taken]
                .windows(2)
                .all(|pair| self.distances[pair[0]] == self.distances[pair[1]] * from[pair[1]]);
            if !is_chain {
                return None;
            }
            let last = rest[taken - 1];
            let mut distance = self.distances[last];
            let mut name = named.map(|(_, own)| own[last].clone());
            for dimension in (begin..next).rev() {
                distances[dimension] = distance;
                distance *= to[dimension];
                if let (Some((extents, _)), Some(name)) = (named, &mut name) {
                    names[dimension] = name.clone();
                    *name = &*name * &extents[dimension];
                }
            }
            rest = &rest[taken..];
        }
        if to[next..].iter().any(|&extent| extent != 1) {
            return None;
        }
        Some(View { start: self.start, distances, named: named.map(|_| names) })
    }

    /// The order in which dimensions lie in memory.
    pub(super) fn order(&self, shape: &[usize]) -> Order {
        let mut dimensions: Vec<usize> = (0..shape.len()).collect();
        dimensions.sort_by_key(|&dimension| match shape[dimension] {
            1 => (0, 0),
            _ => (1, usize::MAX - self.distances[dimension]),
        });
        Order::of(&dimensions).simplified(shape)
    }

    /// Whether the elements fill their part of the memory, in an order of dimensions.
    pub(super) fn is_dense(&self, shape: &[usize], order: &Order) -> bool {
        let dense = View::whole(shape, None, order);
        (0..shape.len()).all(|place| shape[place] == 1 || self.distances[place] == dense.distances[place])
    }

    /// The part of the memory from the first element to the last one, in elements.
    pub(super) fn range(&self, shape: &[usize]) -> Range<usize> {
        let reach = |(extent, distance): (&usize, &usize)| (extent - 1) * distance;
        self.start..self.start + 1 + shape.iter().zip(&self.distances).map(reach).sum::<usize>()
    }

    /// Whether the elements of a shape lie where another view has them.
    pub(super) fn is_at(&self, other: &View, shape: &[usize]) -> bool {
        let is_alike = |place: usize| shape[place] == 1 || self.distances[place] == other.distances[place];
        self.start == other.start
            && self.distances.len() == other.distances.len()
            && (0..shape.len().min(self.distances.len())).all(is_alike)
    }

    /// The place of the first element, in elements.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// The distance of neighbours along each dimension, in elements, and the same as the graph knows them.
    pub(super) fn strides(&self) -> (Vec<usize>, Option<Vec<SymInt>>) {
        (self.distances.clone(), self.named.clone())
    }
}

/// The distance of neighbours along each dimension of a dense tensor.
fn dense_distances<T: Clone>(extents: &[T], order: &Order, one: T, multiply: impl Fn(&T, &T) -> T) -> Vec<T> {
    let (mut distances, mut all) = (vec![one.clone(); extents.len()], one);
    let outward: Vec<usize> = order.dimensions().collect();
    for &dimension in outward.iter().rev() {
        distances[dimension] = all.clone();
        all = multiply(&all, &extents[dimension]);
    }
    distances
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of all elements, in the order of the shape.
    fn places(view: &View, shape: &[usize]) -> Vec<usize> {
        let mut places = vec![view.start];
        for (&extent, &distance) in shape.iter().zip(&view.distances) {
            places =
                places.iter().flat_map(|place| (0..extent).map(move |at| place + at * distance)).collect();
        }
        places
    }

    #[test]
    fn reshapes_of_views_keep_the_places() {
        let mut state = 7u64;
        let mut draw = |bound: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % bound
        };
        let (mut found, mut refused) = (0, 0);
        for _ in 0..4000 {
            let whole: Vec<usize> = (0..1 + draw(4)).map(|_| [1, 2, 3, 4, 6][draw(5)]).collect();
            let orders: [Order; 2] = [Order::given(whole.len()), Order::channels_last(whole.len())];
            let mut view = View::whole(&whole, None, &orders[draw(2)]);
            let mut shape = whole;
            for (dimension, extent) in shape.iter_mut().enumerate() {
                if draw(3) == 0 {
                    let (first, step) = (draw(*extent), 1 + draw(2));
                    view = view.part(dimension, first, step);
                    *extent = (*extent - first).div_ceil(step);
                }
            }
            // A shape with as many elements: factors of the old extents, in groups.
            let mut to = vec![1];
            for factor in shape.iter().flat_map(|&extent| match extent {
                4 => vec![2, 2],
                6 => vec![3, 2],
                other => vec![other],
            }) {
                if draw(2) == 0 {
                    to.push(factor);
                } else {
                    *to.last_mut().expect("it has one") *= factor;
                }
            }
            match view.reshaped(&shape, &to, None) {
                Some(other) => {
                    assert_eq!(places(&other, &to), places(&view, &shape), "{shape:?} as {to:?}");
                    let all = places(&other, &to);
                    assert_eq!(other.range(&to), all[0]..all.iter().max().unwrap() + 1);
                    found += 1;
                }
                None => refused += 1,
            }
        }
        assert!(found > 1000 && refused > 100, "{found} views, {refused} refused");
    }

    #[test]
    fn orders_of_views() {
        let shape = [2, 6, 5, 7];
        let pixels = View::whole(&shape, None, &Order::channels_last(4));
        assert_eq!(pixels.order(&shape), Order::channels_last(4));
        let (flat, halves) = ([2, 6, 35], [2, 2, 3, 5, 7]);
        let rows = pixels.reshaped(&shape, &flat, None).unwrap();
        assert!(rows.is_dense(&flat, &rows.order(&flat)));
        let split = pixels.part(1, 0, 1).reshaped(&shape, &halves, None).unwrap();
        assert!(split.is_dense(&halves, &split.order(&halves)));
        let half = [2, 3, 5, 7];
        let part = pixels.part(1, 3, 1);
        assert_eq!(
            (part.order(&half), part.is_dense(&half, &part.order(&half))),
            (Order::channels_last(4), false)
        );
        assert_eq!(part.range(&half), 3..2 * 6 * 35);
        let first = View::whole(&[3, 4, 5], None, &Order::given(3)).part(0, 1, 1);
        assert!(first.is_dense(&[1, 4, 5], &Order::given(3)));
        assert_eq!(first.without(0).range(&[4, 5]), 20..40);
    }

    #[test]
    fn names_follow_the_sizes() {
        let [batch, words] = ["B", "S"].map(SymInt::symbol);
        let extents = [batch, words.clone(), 12.into()];
        let view = View::whole(&[2, 5, 12], Some(&extents), &Order::given(3)).part(2, 4, 1);
        let heads = [extents[0].clone(), words.clone(), 2.into(), 2.into()];
        let split = view.reshaped(&[2, 5, 4], &[2, 5, 2, 2], Some(&heads)).unwrap();
        let (distances, named) = split.strides();
        assert_eq!(distances, [60, 12, 2, 1]);
        assert_eq!(named.unwrap(), [words.scale(12), 12.into(), 2.into(), 1.into()]);
    }
}
