//! Plans for copies: how vector instructions bring bytes from several addresses into an order.
//!
//! Three steps: pieces of memory are packed into source vectors; 32-bit groups are moved to the 128-bit part of a result in
//! which their bytes are wanted; and bytes are shuffled inside those parts. A copy that needs more steps has no plan.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The bytes of a group that moves as a whole.
const GROUP: usize = 4;
/// The bytes of a part of a vector inside which bytes are shuffled.
const PART: usize = 16;
/// The most source vectors: each takes a register, and the choice between two takes a mask.
const MOST_VECTORS: usize = 4;
/// The selector of a byte without a source: its highest bit makes the instruction write zero.
const ABSENT: u8 = 0x80;

/// Consecutive bytes of memory that one instruction loads, and their position in a source vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The address of the first byte, relative to that of the scalar part of the index.
    pub(super) from: i64,
    /// A power of two.
    pub(super) bytes: usize,
    /// The source vector.
    pub(super) vector: usize,
    /// The position of the first byte in it, a multiple of the number of bytes.
    pub(super) slot: usize,
}

/// Groups that a result takes from one source vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) vector: usize,
    /// For each group of the result, its position in the vector; none when no group moves.
    pub(super) places: Option<Vec<u32>>,
    /// The groups of the result that are taken from this vector, a bit each.
    pub(super) wanted: u32,
}

/// The shuffle that makes a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shuffle {
    /// The first of its bytes among those of the copy.
    pub(super) start: usize,
    /// The number of its bytes, a power of two.
    pub(super) bytes: usize,
    /// The bytes of the vectors in the computation.
    pub(super) width: usize,
    pub(super) choices: Vec<Choice>,
    /// For each byte its position in its part before the shuffle; none when no byte moves.
    pub(super) order: Option<Vec<u8>>,
    /// The bytes without a source.
    pub(super) absent: Vec<bool>,
}

/// A plan for a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShufflePlan {
    pub(super) vectors: usize,
    /// In order of source vectors and slots.
    pub(super) pieces: Vec<Piece>,
    pub(super) shuffles: Vec<Shuffle>,
}

/// A group of a source vector.
type Source = (usize, usize);

impl ShufflePlan {
    /// The plan for lanes of `size` bytes from these addresses (`None` for a lane without a source), with vectors of `vector` bytes.
    pub(super) fn of(
        lanes: impl Iterator<Item = Option<i64>>,
        size: usize,
        vector_bytes: usize,
    ) -> Option<ShufflePlan> {
        let bytes: Vec<Option<i64>> = lanes
            .flat_map(|lane| (0..size as i64).map(move |byte| lane.map(|address| address + byte)))
            .collect();
        if !bytes.len().is_multiple_of(GROUP) {
            return None;
        }
        let pieces = pieces_of(&bytes, vector_bytes)?;
        let mut slots: FxHashMap<i64, (usize, usize)> = FxHashMap::default();
        for piece in &pieces {
            for byte in 0..piece.bytes {
                slots.entry(piece.from + byte as i64).or_insert((piece.vector, piece.slot + byte));
            }
        }
        let mut shuffles = Vec::new();
        let mut start = 0;
        while start < bytes.len() {
            let length = power_below(bytes.len() - start).min(vector_bytes);
            let sources: Vec<Option<(usize, usize)>> = bytes[start..start + length]
                .iter()
                .map(|byte| byte.and_then(|address| slots.get(&address).copied()))
                .collect();
            shuffles.push(shuffle_of(start, &sources, vector_bytes)?);
            start += length;
        }
        let vectors = pieces.last().map_or(0, |piece| piece.vector + 1);
        Some(ShufflePlan { vectors, pieces, shuffles })
    }
}

/// The largest power of two that is not larger than a number.
fn power_below(number: usize) -> usize {
    (number + 1).next_power_of_two() / 2
}

/// Pieces that together hold every address.
fn pieces_of(bytes: &[Option<i64>], vector_bytes: usize) -> Option<Vec<Piece>> {
    let mut addresses: Vec<i64> = bytes.iter().copied().flatten().collect();
    addresses.sort_unstable();
    addresses.dedup();
    let mut pieces = Vec::new();
    let mut end = 0;
    for run in addresses.chunk_by(|a, b| a + 1 == *b) {
        if run.len() < GROUP {
            return None;
        }
        let mut done = 0;
        while done < run.len() {
            // The last bytes of a run that fill no group are read together with bytes before them.
            let first = done.min(run.len() - GROUP);
            let length = power_below(run.len() - first).min(vector_bytes);
            end = usize::next_multiple_of(end, length);
            pieces.push(Piece {
                from: run[first],
                bytes: length,
                vector: end / vector_bytes,
                slot: end % vector_bytes,
            });
            end += length;
            done = first + length;
        }
    }
    (end <= MOST_VECTORS * vector_bytes).then_some(pieces)
}

fn shuffle_of(start: usize, sources: &[Option<(usize, usize)>], vector_bytes: usize) -> Option<Shuffle> {
    let bytes = sources.len();
    let mut order = vec![ABSENT; vector_bytes];
    let mut choices: Vec<Choice> = Vec::new();
    for (part, own) in sources.chunks(PART).enumerate() {
        let places = places_in_part(part, own)?;
        for (place, source) in places.iter().enumerate() {
            let Some((vector, group)) = source else { continue };
            let into = part * PART / GROUP + place;
            let position = choices.iter().position(|choice| choice.vector == *vector).unwrap_or_else(|| {
                let places = Some((0..(vector_bytes / GROUP) as u32).collect());
                choices.push(Choice { vector: *vector, places, wanted: 0 });
                choices.len() - 1
            });
            choices[position].wanted |= 1 << into;
            if let Some(places) = &mut choices[position].places {
                places[into] = *group as u32;
            }
        }
        for (byte, source) in own.iter().enumerate() {
            let Some((vector, slot)) = source else { continue };
            let wanted = Some((*vector, slot / GROUP));
            let place = places.iter().position(|source| *source == wanted)?;
            order[part * PART + byte] = (place * GROUP + slot % GROUP) as u8;
        }
    }
    let mut width = bytes.max(PART);
    for choice in &mut choices {
        let places = choice.places.take_if(|places| places.iter().zip(0..).all(|(place, own)| *place == own));
        let farthest = choice.places.as_ref().map_or(0, |places| {
            let wanted = (0..u32::BITS).filter(|group| choice.wanted & (1 << group) != 0);
            wanted.map(|group| (places[group as usize] as usize + 1) * GROUP).max().unwrap_or(0).max(2 * PART)
        });
        debug_assert!(places.is_none() || farthest == 0);
        width = width.max(farthest.next_power_of_two());
    }
    let absent: Vec<bool> = sources.iter().map(Option::is_none).collect();
    let stays = order[..bytes].iter().enumerate().all(|(byte, place)| usize::from(*place) == byte % PART);
    Some(Shuffle { start, bytes, width, choices, order: (!stays).then_some(order), absent })
}

/// For each group of a part of the result, its source group before bytes are shuffled; `None` when there are too many.
fn places_in_part(part: usize, bytes: &[Option<(usize, usize)>]) -> Option<SmallVec<[Option<Source>; 4]>> {
    let mut wanted: SmallVec<[Source; 4]> = SmallVec::new();
    for (vector, slot) in bytes.iter().flatten() {
        let source = (*vector, slot / GROUP);
        if !wanted.contains(&source) {
            wanted.push(source);
        }
    }
    const GROUPS: usize = PART / GROUP;
    if wanted.len() > GROUPS {
        return None;
    }
    let mut places: SmallVec<[Option<Source>; 4]> = SmallVec::from_elem(None, GROUPS);
    let stay = wanted.iter().all(|(vector, group)| group / GROUPS == part && *vector == wanted[0].0);
    for (position, source) in wanted.iter().enumerate() {
        places[if stay { source.1 % GROUPS } else { position }] = Some(*source);
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of a plan when byte `a` of memory is `a % 251 + 1`, and a byte that is not copied is 0.
    fn executed(plan: &ShufflePlan, bytes: usize, vector_bytes: usize) -> Vec<u8> {
        let mut vectors = vec![vec![0xEE; vector_bytes]; plan.vectors];
        for piece in &plan.pieces {
            assert_eq!(piece.slot % piece.bytes, 0);
            for byte in 0..piece.bytes {
                vectors[piece.vector][piece.slot + byte] = memory(piece.from + byte as i64);
            }
        }
        let mut result = vec![0xDD; bytes];
        for shuffle in &plan.shuffles {
            assert!(shuffle.width <= vector_bytes);
            let mut value = vec![0; vector_bytes];
            for choice in &shuffle.choices {
                for group in (0..shuffle.width / GROUP).filter(|group| choice.wanted & (1 << group) != 0) {
                    let place = choice.places.as_ref().map_or(group, |places| places[group] as usize);
                    let own = &vectors[choice.vector][place * GROUP..][..GROUP];
                    value[group * GROUP..][..GROUP].copy_from_slice(own);
                }
            }
            for byte in 0..shuffle.bytes {
                let place = shuffle.order.as_ref().map_or((byte % PART) as u8, |order| order[byte]);
                let own = value[byte / PART * PART + usize::from(place) % PART];
                result[shuffle.start + byte] = if place & ABSENT == 0 { own } else { 0 };
            }
        }
        result
    }

    fn memory(address: i64) -> u8 {
        (address.rem_euclid(251) + 1) as u8
    }

    fn is_right(lanes: &[Option<i64>], size: usize, vector_bytes: usize) -> bool {
        let Some(plan) = ShufflePlan::of(lanes.iter().copied(), size, vector_bytes) else { return false };
        let expected: Vec<u8> = lanes
            .iter()
            .flat_map(|lane| (0..size as i64).map(move |byte| lane.map_or(0, |lane| memory(lane + byte))))
            .collect();
        assert_eq!(executed(&plan, expected.len(), vector_bytes), expected, "{plan:?}");
        let mut read: Vec<i64> =
            plan.pieces.iter().flat_map(|piece| piece.from..piece.from + piece.bytes as i64).collect();
        read.sort_unstable();
        let wanted =
            |address: &i64| lanes.iter().flatten().any(|lane| (*lane..*lane + size as i64).contains(address));
        assert!(read.iter().all(wanted), "no other byte is read: {plan:?}");
        true
    }

    #[test]
    fn rows_are_interleaved_and_columns_transposed() {
        for vector_bytes in [32, 64] {
            for size in [1, 2] {
                let group = 4 / size as i64;
                for columns in [4, 8, 16, 32] {
                    let lanes = |index: &dyn Fn(i64, i64) -> i64| -> Vec<Option<i64>> {
                        let all = (0..columns).flat_map(|column| (0..group).map(move |row| (row, column)));
                        all.map(|(row, column)| Some(index(row, column) * size as i64)).collect()
                    };
                    assert!(is_right(&lanes(&|row, column| row * 1000 + column), size, vector_bytes));
                    assert!(is_right(&lanes(&|row, column| column * 1000 + row), size, vector_bytes));
                    assert!(is_right(&lanes(&|row, column| column * group + row), size, vector_bytes));
                }
            }
        }
    }

    #[test]
    fn several_groups_are_transposed_at_once() {
        // 16 rows of 16 bytes: four results of the first, second, third and fourth four bytes of each.
        let lanes: Vec<Option<i64>> =
            (0..256).map(|lane| Some(lane / 4 % 16 * 999 + lane / 64 * 4 + lane % 4)).collect();
        assert!(is_right(&lanes, 1, 64));
        let plan = ShufflePlan::of(lanes.into_iter(), 1, 64).unwrap();
        assert_eq!((plan.vectors, plan.pieces.len(), plan.shuffles.len()), (4, 16, 4));
        let lanes: Vec<Option<i64>> =
            (0..64).map(|lane| Some(lane / 4 % 8 * 999 + lane / 32 * 4 + lane % 4)).collect();
        assert!(is_right(&lanes, 1, 32));
    }

    #[test]
    fn what_comes_from_nowhere_is_zero() {
        let lanes: Vec<Option<i64>> =
            (0..64).map(|lane| (lane % 4 < 3).then_some(lane / 4 * 3 + lane % 4)).collect();
        assert!(is_right(&lanes, 1, 64));
        assert!(is_right(&lanes[..32], 1, 32));
        assert!(is_right(&[None; 8], 1, 32));
        assert!(is_right(&[None; 6], 2, 64));
    }

    #[test]
    fn contiguous_bytes_of_any_number_of_groups() {
        for lanes in (4..=256).step_by(4) {
            let own: Vec<Option<i64>> = (0..lanes).map(|lane| Some(lane + 7)).collect();
            assert_eq!(is_right(&own, 1, 64), lanes <= 256, "{lanes}");
            assert_eq!(is_right(&own, 1, 32), lanes <= 128, "{lanes}");
        }
        let reversed: Vec<Option<i64>> = (0..16).map(|lane| Some(15 - lane)).collect();
        assert!(is_right(&reversed, 1, 32));
    }

    #[test]
    fn scattered_bytes_and_too_many_groups_are_no_plan() {
        let scattered: Vec<Option<i64>> = (0..8).map(|lane| Some(lane * 3)).collect();
        assert!(!is_right(&scattered, 1, 64));
        // Sixteen rows are interleaved: sixteen groups for sixteen bytes.
        let lanes: Vec<Option<i64>> = (0..64).map(|lane| Some(lane % 16 * 100 + lane / 16)).collect();
        assert!(!is_right(&lanes, 1, 64));
        assert!(!is_right(&[Some(0), Some(1), Some(2)], 1, 64));
    }
}
