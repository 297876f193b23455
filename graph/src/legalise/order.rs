//! Orders of dimensions in memory.

use smallvec::SmallVec;

/// The order in which a tensor's dimensions lie in memory, outermost first. Operators number dimensions as the graph does;
/// only accesses to memory follow the order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Order(SmallVec<[u8; 6]>);

impl Order {
    /// The order of the graph: the first dimension outermost.
    ///
    /// # Panics
    /// For more than 256 dimensions.
    pub fn given(rank: usize) -> Self {
        Order(
            (0..rank)
                .map(|dimension| u8::try_from(dimension).expect("tensors have few dimensions"))
                .collect(),
        )
    }

    /// Batch, spatial dimensions, channels, for tensors that the graph knows as batch, channels, spatial dimensions.
    pub fn channels_last(rank: usize) -> Self {
        let Order(mut order) = Self::given(rank);
        if rank > 2 {
            order[1..].rotate_left(1);
        }
        Order(order)
    }

    /// These dimensions, outermost first: each once.
    pub fn of(dimensions: &[usize]) -> Self {
        Order(dimensions.iter().map(|&dimension| dimension as u8).collect())
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// Whether it is the order of the graph.
    pub fn is_given(&self) -> bool {
        self.dimensions().eq(0..self.rank())
    }

    /// The dimensions, outermost first.
    pub fn dimensions(&self) -> impl Iterator<Item = usize> {
        self.0.iter().map(|&dimension| usize::from(dimension))
    }

    /// The innermost dimension.
    pub fn innermost(&self) -> Option<usize> {
        self.0.last().map(|&dimension| usize::from(dimension))
    }

    /// The order of the same memory when dimension `perm[d]` is numbered `d`.
    pub fn renumbered(&self, perm: &[usize]) -> Self {
        let number = |dimension: usize| perm.iter().position(|&old| old == dimension).expect("a permutation");
        Order(self.dimensions().map(|dimension| number(dimension) as u8).collect())
    }

    /// The order of the graph where the elements lie as in that order, because the dimensions that differ have extent 1.
    pub fn simplified(self, shape: &[usize]) -> Self {
        let long: Vec<usize> = self.dimensions().filter(|&dimension| shape[dimension] != 1).collect();
        if long.is_sorted() { Self::given(self.rank()) } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One value for each dimension, in the order of memory.
    fn in_memory<T: Clone>(order: &Order, values: &[T]) -> Vec<T> {
        order.dimensions().map(|dimension| values[dimension].clone()).collect()
    }

    #[test]
    fn orders_of_four_dimensions() {
        let order = Order::channels_last(4);
        assert_eq!(in_memory(&order, &["n", "c", "h", "w"]), ["n", "h", "w", "c"]);
        assert_eq!((order.innermost(), order.is_given()), (Some(1), false));
        // A transposition to channels last makes this memory the graph's order.
        assert!(order.renumbered(&[0, 2, 3, 1]).is_given());
        assert_eq!(in_memory(&Order::given(3).renumbered(&[2, 0, 1]), &["a", "b", "c"]), ["b", "c", "a"]);
        assert!(order.clone().simplified(&[2, 3, 1, 1]).is_given());
        assert!(order.clone().simplified(&[2, 1, 5, 7]).is_given());
        assert_eq!(order.clone().simplified(&[2, 3, 1, 7]), order);
        assert!(Order::channels_last(2).is_given() && Order::given(0).is_given());
    }
}
