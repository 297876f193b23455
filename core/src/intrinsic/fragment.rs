//! Which lane of a warp holds which element of a tile.
//!
//! A layout is a permutation of bits: each bit of an element's row and column is a bit of the number of the lane that holds it,
//! or of its number among the elements of that lane, its *slot*. In the accumulators of `mma.sync.m16n8k16`, lane 5 holds the
//! elements at rows 1 and 9, columns 2 and 3:
//!
//! ```text
//! lane c1 c2 r0 r1 r2 slot c0 r3
//! ```
//!
//! Bits are listed from the lowest one on. Tiles of more warps, such as those of `wgmma`, are layouts with more bits of the lane.

use std::fmt;
use std::str::FromStr;

use crate::index::Index;

/// A bit of the place of an element in its tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TileBit {
    /// A bit of the row's number.
    Row(u32),
    /// A bit of the column's number.
    Column(u32),
}

/// A permutation of bits: lanes and slots for the elements of a tile.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FragmentLayout {
    lane: Vec<TileBit>,
    slot: Vec<TileBit>,
}

/// A text that is no layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no layout of a fragment: `lane`, bits such as `r0` and `c2`, `slot` and more bits, each bit once, are expected"
)]
pub struct LayoutError(String);

impl FragmentLayout {
    /// A layout whose lanes and slots have some bits, from the lowest one on.
    ///
    /// # Errors
    /// When a bit is missing or occurs twice.
    pub fn new(lane: Vec<TileBit>, slot: Vec<TileBit>) -> Result<Self, LayoutError> {
        let layout = FragmentLayout { lane, slot };
        let numbers = |of: fn(&TileBit) -> Option<u32>| {
            let mut found: Vec<u32> = layout.lane.iter().chain(&layout.slot).filter_map(of).collect();
            found.sort_unstable();
            found.into_iter().enumerate().all(|(place, number)| place as u32 == number)
        };
        let is_whole = numbers(|bit| if let TileBit::Row(number) = bit { Some(*number) } else { None })
            && numbers(|bit| if let TileBit::Column(number) = bit { Some(*number) } else { None });
        if is_whole { Ok(layout) } else { Err(LayoutError(layout.to_string())) }
    }

    /// The rows of a tile.
    pub fn rows(&self) -> i64 {
        1 << self.bits().filter(|bit| matches!(bit, TileBit::Row(_))).count()
    }

    /// The columns of a tile.
    pub fn columns(&self) -> i64 {
        1 << self.bits().filter(|bit| matches!(bit, TileBit::Column(_))).count()
    }

    /// The lanes that hold a tile.
    pub fn lanes(&self) -> i64 {
        1 << self.lane.len()
    }

    /// The elements that a lane holds.
    pub fn slots(&self) -> i64 {
        1 << self.slot.len()
    }

    /// The bits of the lane's number, from the lowest one on.
    pub fn lane_bits(&self) -> &[TileBit] {
        &self.lane
    }

    /// The bits of the slot's number, from the lowest one on.
    pub fn slot_bits(&self) -> &[TileBit] {
        &self.slot
    }

    fn bits(&self) -> impl Iterator<Item = &TileBit> {
        self.lane.iter().chain(&self.slot)
    }

    /// The lane that holds an element, and its slot there.
    pub fn place_of(&self, row: i64, column: i64) -> (i64, i64) {
        let number = |bits: &[TileBit]| {
            let value = |bit: &TileBit| match bit {
                TileBit::Row(number) => row >> number & 1,
                TileBit::Column(number) => column >> number & 1,
            };
            bits.iter().enumerate().fold(0, |number, (place, bit)| number | value(bit) << place)
        };
        (number(&self.lane), number(&self.slot))
    }

    /// The row and the column of the element in a slot of a lane.
    pub fn element_of(&self, lane: i64, slot: i64) -> (i64, i64) {
        let (mut row, mut column) = (0, 0);
        for (bits, number) in [(&self.lane, lane), (&self.slot, slot)] {
            for (place, bit) in bits.iter().enumerate() {
                match bit {
                    TileBit::Row(own) => row |= (number >> place & 1) << own,
                    TileBit::Column(own) => column |= (number >> place & 1) << own,
                }
            }
        }
        (row, column)
    }

    /// As [`element_of`](Self::element_of), as indices of a lane's number, in `0..lanes()`.
    pub fn element_in_lane(&self, lane: &Index, slot: i64) -> (Index, Index) {
        let (row, column) = self.element_of(0, slot);
        let (mut row, mut column) = (Index::constant(row), Index::constant(column));
        let mut place = 0;
        while place < self.lane.len() {
            let length = self.run_at(place);
            let mut digit = lane.floor_div(1 << place);
            if place + length < self.lane.len() {
                digit = digit.modulo(1 << length);
            }
            match self.lane[place] {
                TileBit::Row(own) => row = row.add_scaled(&digit, 1 << own),
                TileBit::Column(own) => column = column.add_scaled(&digit, 1 << own),
            }
            place += length;
        }
        (row, column)
    }

    /// How many bits of the lane's number follow each other in the element's place, too.
    fn run_at(&self, place: usize) -> usize {
        let follows = |first: TileBit, distance: u32, bit: TileBit| match (first, bit) {
            (TileBit::Row(a), TileBit::Row(b)) | (TileBit::Column(a), TileBit::Column(b)) => {
                a + distance == b
            }
            _ => false,
        };
        let first = self.lane[place];
        (0..).zip(&self.lane[place..]).take_while(|(distance, bit)| follows(first, *distance, **bit)).count()
    }
}

impl FromStr for FragmentLayout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let error = || LayoutError(text.to_owned());
        let bit = |word: &str| {
            let number: u32 = word.get(1..)?.parse().ok().filter(|number| *number < 16)?;
            match word.as_bytes()[0] {
                b'r' => Some(TileBit::Row(number)),
                b'c' => Some(TileBit::Column(number)),
                _ => None,
            }
        };
        let rest = text.trim().strip_prefix("lane").ok_or_else(error)?;
        let (lane, slot) = rest.split_once("slot").ok_or_else(error)?;
        let bits =
            |text: &str| text.split_whitespace().map(bit).collect::<Option<Vec<_>>>().ok_or_else(error);
        FragmentLayout::new(bits(lane)?, bits(slot)?)
    }
}

impl fmt::Display for FragmentLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut write = |name: &str, bits: &[TileBit]| {
            f.write_str(name)?;
            bits.iter().try_for_each(|bit| match bit {
                TileBit::Row(number) => write!(f, " r{number}"),
                TileBit::Column(number) => write!(f, " c{number}"),
            })
        };
        write("lane", &self.lane)?;
        write(" slot", &self.slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::VarId;

    const LAYOUTS: [&str; 4] = [
        "lane c1 c2 r0 r1 r2 slot c0 r3",
        "lane c1 c2 r0 r1 r2 slot c0 r3 c3",
        "lane r1 r2 c0 c1 c2 slot r0 r3",
        "lane c2 c3 r0 r1 r2 slot c0 c1 r3 c4",
    ];

    #[test]
    fn each_element_has_one_place() {
        for text in LAYOUTS {
            let layout: FragmentLayout = text.parse().unwrap();
            assert_eq!(layout.to_string(), text);
            assert_eq!(layout.lanes() * layout.slots(), layout.rows() * layout.columns());
            let mut places = Vec::new();
            for row in 0..layout.rows() {
                for column in 0..layout.columns() {
                    let (lane, slot) = layout.place_of(row, column);
                    assert_eq!(layout.element_of(lane, slot), (row, column), "{text}");
                    places.push((lane, slot));
                }
            }
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len() as i64, layout.rows() * layout.columns());
        }
    }

    #[test]
    fn indices_of_a_lane_are_its_elements() {
        let var = VarId(0);
        for text in LAYOUTS {
            let layout: FragmentLayout = text.parse().unwrap();
            for lane in 0..layout.lanes() {
                for slot in 0..layout.slots() {
                    let (row, column) = layout.element_in_lane(&Index::var(var), slot);
                    let at = |index: Index| index.evaluate(&|_| Some(lane));
                    let (expected_row, expected_column) = layout.element_of(lane, slot);
                    assert_eq!((at(row), at(column)), (Some(expected_row), Some(expected_column)), "{text}");
                }
            }
        }
    }

    #[test]
    fn wrong_texts_are_refused() {
        for text in
            ["", "lane r0", "lane r0 slot r0", "lane r1 slot c0", "lane x0 slot c0", "lane r0 slot c99"]
        {
            assert!(text.parse::<FragmentLayout>().is_err(), "{text}");
        }
    }
}
