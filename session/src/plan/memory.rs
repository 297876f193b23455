//! Where intermediates lie in the arena.
//!
//! Buffers that live at the same time must not overlap. Finding the smallest arena is NP-hard; placing the buffers greedily in
//! a few orders comes close to the lower bound, the largest sum of what lives at one time (Pisarchyk and Lee 2020, "Efficient
//! Memory Management for Deep Neural Net Inference").

/// The alignment of each buffer, in bytes: a cache line and the widest vector register.
pub(crate) const ALIGNMENT: usize = 64;

/// A buffer that is needed for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lifetime {
    /// In bytes.
    pub(crate) size: usize,
    /// The step that writes it.
    pub(crate) birth: usize,
    /// The last step that reads it.
    pub(crate) death: usize,
}

impl Lifetime {
    fn meets(&self, other: &Lifetime) -> bool {
        self.birth <= other.death && other.birth <= self.death
    }

    /// The size with which neighbours stay aligned.
    fn padded(&self) -> usize {
        self.size.next_multiple_of(ALIGNMENT)
    }
}

/// A place for each buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arena {
    /// Where each buffer begins, in bytes.
    pub(crate) offsets: Vec<usize>,
    /// The size of the arena.
    pub(crate) size: usize,
    /// No arena can be smaller.
    pub(crate) lower_bound: usize,
}

/// Which buffers are placed first: those of the greatest key.
type SortKey = fn(&Lifetime) -> (usize, usize);

/// Places buffers: the best of several greedy orders.
pub(crate) fn assign(buffers: &[Lifetime]) -> Arena {
    let by_size: SortKey = |buffer| (buffer.padded(), buffer.death - buffer.birth);
    let by_area: SortKey = |buffer| (buffer.padded() * (buffer.death - buffer.birth + 1), buffer.padded());
    let by_time: SortKey = |buffer| (buffer.death - buffer.birth, buffer.padded());
    let lower_bound = lower_bound(buffers);
    let mut best: Option<Arena> = None;
    for order in [by_size, by_area, by_time] {
        let (offsets, size) = place(buffers, order);
        if best.as_ref().is_none_or(|best| size < best.size) {
            best = Some(Arena { offsets, size, lower_bound });
        }
        if size == lower_bound {
            break;
        }
    }
    best.expect("there is an order")
}

/// Places the buffers one after the other, those of the greatest key first, each in the smallest gap that it fits.
fn place(buffers: &[Lifetime], key: SortKey) -> (Vec<usize>, usize) {
    let mut order: Vec<usize> = (0..buffers.len()).collect();
    order.sort_by_key(|&buffer| std::cmp::Reverse(key(&buffers[buffer])));
    let mut offsets = vec![0usize; buffers.len()];
    // The buffers that are placed, by their offsets.
    let mut placed: Vec<usize> = Vec::new();
    let mut size = 0;
    for buffer in order {
        let own = &buffers[buffer];
        let (mut end, mut chosen): (usize, Option<(usize, usize)>) = (0, None);
        for &other in placed.iter().filter(|&&other| buffers[other].meets(own)) {
            let gap = offsets[other].saturating_sub(end);
            if gap >= own.padded() && chosen.is_none_or(|(smallest, _)| gap < smallest) {
                chosen = Some((gap, end));
            }
            end = end.max(offsets[other] + buffers[other].padded());
        }
        offsets[buffer] = chosen.map_or(end, |(_, offset)| offset);
        size = size.max(offsets[buffer] + own.padded());
        let position = placed.partition_point(|&other| offsets[other] <= offsets[buffer]);
        placed.insert(position, buffer);
    }
    (offsets, size)
}

/// The largest sum of what lives at one time.
fn lower_bound(buffers: &[Lifetime]) -> usize {
    let mut changes: Vec<(usize, bool, usize)> = Vec::new();
    for buffer in buffers {
        changes.push((buffer.birth, true, buffer.padded()));
        changes.push((buffer.death + 1, false, buffer.padded()));
    }
    // At the same time, ends come before beginnings.
    changes.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (_, begins, size) in changes {
        if begins {
            now += size;
            most = most.max(now);
        } else {
            now -= size;
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(buffers: &[Lifetime]) -> Arena {
        let arena = assign(buffers);
        assert!(arena.size >= arena.lower_bound);
        for (first, a) in buffers.iter().enumerate() {
            assert_eq!(arena.offsets[first] % ALIGNMENT, 0);
            assert!(arena.offsets[first] + a.size <= arena.size);
            for (second, b) in buffers.iter().enumerate().filter(|(second, _)| *second > first) {
                let apart = arena.offsets[first] + a.size <= arena.offsets[second]
                    || arena.offsets[second] + b.size <= arena.offsets[first];
                assert!(
                    apart || !a.meets(b),
                    "{a:?} at {} and {b:?} at {}",
                    arena.offsets[first],
                    arena.offsets[second]
                );
            }
        }
        arena
    }

    #[test]
    fn a_chain_needs_two_buffers() {
        let chain: Vec<Lifetime> =
            (0..10).map(|step| Lifetime { size: 1000, birth: step, death: step + 1 }).collect();
        let arena = check(&chain);
        assert_eq!((arena.size, arena.lower_bound), (2048, 2048));
        assert_eq!(check(&[]).size, 0);
    }

    #[test]
    fn buffers_that_live_together_do_not_overlap() {
        let mut state = 1u64;
        let mut draw = |bound: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % bound
        };
        for _ in 0..200 {
            let buffers: Vec<Lifetime> = (0..draw(40))
                .map(|_| {
                    let birth = draw(30);
                    Lifetime { size: draw(5000), birth, death: birth + draw(8) }
                })
                .collect();
            let arena = check(&buffers);
            assert!(arena.size <= 2 * arena.lower_bound.max(ALIGNMENT), "{arena:?}");
        }
    }
}
