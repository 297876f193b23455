//! Merging neighbours by rank: a queue of pairs over a linked list of tokens, in `n log n` steps for a word of `n` bytes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

/// The rank and the token that two tokens make, by the two.
pub(super) type Merges = FxHashMap<(u32, u32), (u32, u32)>;

/// Merges neighbours in `tokens`, the pair of the lowest rank first and of equal ranks the leftmost one, until no pair is left
/// that merges.
pub(super) fn merge(tokens: &mut Vec<u32>, merges: &Merges) {
    let mut list = List::new(tokens);
    let mut queue = BinaryHeap::new();
    for place in 0..tokens.len() {
        queue.extend(list.pair(place, merges));
    }
    while let Some(Reverse((_, place, pair))) = queue.pop() {
        // A merge changes the pairs around it; entries of pairs that are no more are passed over.
        if list.tokens_at(place) != Some(pair) {
            continue;
        }
        list.join(place, merges[&pair].1);
        queue.extend(list.previous(place).and_then(|previous| list.pair(previous, merges)));
        queue.extend(list.pair(place, merges));
    }
    *tokens = list.into_tokens();
}

/// A pair that merges: its rank, the place of its left token, and its tokens. The queue gives the smallest first.
type Entry = Reverse<(u32, usize, (u32, u32))>;

/// Tokens in a doubly linked list, by the places that they had at first.
struct List {
    /// The token at each place; none where a merge took it away.
    tokens: Vec<Option<u32>>,
    next: Vec<usize>,
    /// The place before each place; the place itself for the first one.
    previous: Vec<usize>,
}

impl List {
    fn new(tokens: &[u32]) -> Self {
        let places = 0..tokens.len();
        List {
            tokens: tokens.iter().copied().map(Some).collect(),
            next: places.clone().map(|place| place + 1).collect(),
            previous: places.map(|place| place.saturating_sub(1)).collect(),
        }
    }

    fn previous(&self, place: usize) -> Option<usize> {
        Some(self.previous[place]).filter(|&previous| previous != place)
    }

    /// The token at a place and the one after it.
    fn tokens_at(&self, place: usize) -> Option<(u32, u32)> {
        Some((self.tokens[place]?, (*self.tokens.get(self.next[place])?)?))
    }

    /// The entry of the pair at a place, if it merges.
    fn pair(&self, place: usize, merges: &Merges) -> Option<Entry> {
        let pair = self.tokens_at(place)?;
        merges.get(&pair).map(|&(rank, _)| Reverse((rank, place, pair)))
    }

    /// Puts `token` in place of the pair at `place`.
    fn join(&mut self, place: usize, token: u32) {
        let right = self.next[place];
        let after = self.next[right];
        self.tokens[place] = Some(token);
        self.tokens[right] = None;
        self.next[place] = after;
        if let Some(previous) = self.previous.get_mut(after) {
            *previous = place;
        }
    }

    fn into_tokens(self) -> Vec<u32> {
        self.tokens.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Looks for the best pair of the whole list before each merge.
    fn merge_by_definition(tokens: &mut Vec<u32>, merges: &Merges) {
        loop {
            let ranked = tokens.windows(2).enumerate().filter_map(|(place, pair)| {
                merges.get(&(pair[0], pair[1])).map(|&(rank, token)| (rank, place, token))
            });
            let Some((_, place, token)) = ranked.min() else { return };
            tokens[place] = token;
            tokens.remove(place + 1);
        }
    }

    proptest! {
        #[test]
        fn merges_as_the_definition_does(
            tokens in prop::collection::vec(0u32..4, 0..40),
            pairs in prop::collection::vec((0u32..12, 0u32..12), 0..30),
        ) {
            // Some results are tokens that other pairs begin with, and some are tokens of the word.
            let merges: Merges =
                pairs.iter().zip(0u32..).map(|(&pair, rank)| (pair, (rank, (pair.0 * 3 + pair.1) % 12))).collect();
            let mut expected = tokens.clone();
            merge_by_definition(&mut expected, &merges);
            let mut merged = tokens;
            merge(&mut merged, &merges);
            prop_assert_eq!(merged, expected);
        }
    }

    #[test]
    fn a_long_word_takes_no_quadratic_time() {
        let merges: Merges = [((0, 0), (0, 1)), ((1, 1), (1, 2)), ((2, 2), (2, 3))].into_iter().collect();
        let mut tokens = vec![0; 1 << 20];
        merge(&mut tokens, &merges);
        assert_eq!(tokens, vec![3; 1 << 17]);
    }
}
