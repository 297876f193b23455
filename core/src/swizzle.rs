//! Rows in shared memory whose pieces are exchanged, so that a column of pieces lies in different banks.
//!
//! Shared memory has 32 banks of four bytes. The lanes of a warp that load fragments of tensor cores access pieces of 16 bytes in eight
//! rows at once; where rows are a multiple of 128 bytes apart, these pieces lie in the same four banks. Padding moves the rows apart. A
//! swizzled buffer is as large as a dense one: the number of a piece in its 128 bytes is combined with the number of the row by an
//! exclusive or.
//!
//! ```text
//! rows of 128 bytes, pieces by their numbers:      0 1 2 3 4 5 6 7
//!                                                  1 0 3 2 5 4 7 6
//!                                                  2 3 0 1 6 7 4 5
//!                                                  …
//! ```
//!
//! Each of eight rows is exchanged in its own way. Shorter rows share 128 bytes, in which the pieces of a column are apart
//! anyway, and the number of these 128 bytes takes the place of the row's. A layout has no meaning: a program computes the same without it,
//! and a code generator may ignore it.

/// The bytes of a piece, as a power of two: as many as a lane accesses at once.
const PIECE_BITS: u32 = 4;
/// The bytes of all banks, as a power of two.
const LINE_BITS: u32 = 7;

/// The layout of an intermediate whose rows, which are its last dimension, have their pieces exchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Swizzle {
    /// The elements of a row, where the buffer has one dimension; 0 where the last dimension says it.
    pub row: i64,
}

/// Which bits of the place of a byte change: `count` bits from those of the piece on, by as many from `from` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Exchange {
    /// The lowest of the bits that say how pieces are exchanged.
    pub from: u32,
    /// How many bits change.
    pub count: u32,
}

impl Swizzle {
    /// The largest row in elements: all shared memory of any GPU.
    pub const MAX_ROW: i64 = 1 << 20;

    /// The exchange in rows of elements of some bytes; `None` where pieces of a column are apart without it, and where rows have no whole
    /// pieces.
    pub fn exchange(self, bytes: i64) -> Option<Exchange> {
        let row = self.row.checked_mul(bytes).filter(|row| *row > 0)?;
        let multiple = row.trailing_zeros();
        let count = multiple.saturating_sub(PIECE_BITS).min(LINE_BITS - PIECE_BITS);
        (count > 0).then(|| Exchange { from: multiple.max(LINE_BITS), count })
    }
}

impl Exchange {
    /// Where a byte of a dense buffer lies. Each place is that of one byte, as bits change by higher ones alone.
    pub fn place(self, byte: i64) -> i64 {
        byte ^ (byte >> self.distance() & self.mask())
    }

    /// The distance of the bits that change from those by which they change.
    pub fn distance(self) -> u32 {
        self.from - PIECE_BITS
    }

    /// The bits that change.
    pub fn mask(self) -> i64 {
        ((1 << self.count) - 1) << PIECE_BITS
    }

    /// The distance of bytes, in bytes, after which pieces are exchanged in the same way again.
    pub fn period(self) -> i64 {
        1 << (self.from + self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of the tiles that fragments are loaded from, in bytes.
    const ROWS: [i64; 9] = [16, 32, 64, 96, 128, 192, 256, 384, 512];

    #[test]
    fn every_place_is_that_of_one_byte() {
        for row in ROWS {
            let len = 16 * row;
            let exchange = Swizzle { row }.exchange(1);
            let mut places: Vec<i64> =
                (0..len).map(|byte| exchange.map_or(byte, |found| found.place(byte))).collect();
            places.sort_unstable();
            assert!(places.into_iter().eq(0..len), "{row}");
        }
    }

    #[test]
    fn pieces_of_a_column_lie_in_different_banks() {
        for row in ROWS {
            let exchange = Swizzle { row: row / 2 }.exchange(2);
            for column in (0..row).step_by(16) {
                for first in [0, 8] {
                    let place = |byte| exchange.map_or(byte, |found| found.place(byte));
                    let mut banks: Vec<i64> =
                        (first..first + 8).map(|number| place(number * row + column) % 128 / 16).collect();
                    banks.sort_unstable();
                    assert_eq!(banks, [0, 1, 2, 3, 4, 5, 6, 7], "rows of {row}, from {first}, {column}");
                }
            }
        }
    }

    #[test]
    fn pieces_stay_whole_and_the_pattern_repeats() {
        for row in ROWS {
            let Some(exchange) = Swizzle { row }.exchange(1) else { continue };
            for byte in 0..16 * row {
                assert_eq!(exchange.place(byte) % 16, byte % 16);
                assert_eq!(
                    exchange.place(byte + exchange.period()),
                    exchange.place(byte) + exchange.period()
                );
            }
        }
        assert_eq!(Swizzle { row: 24 }.exchange(1), None, "no whole pieces");
        assert_eq!(Swizzle { row: 0 }.exchange(2), None);
    }
}
