//! Addresses of the lanes of a warp: the sectors of memory that they touch, and the passes over the banks of shared memory.

use smallvec::SmallVec;
use tilewright_core::expr::Indices;
use tilewright_core::ids::VarId;
use tilewright_core::thread_axis::WARP;

use super::place::Place;

/// A sector of memory, in bytes: the unit of transfers (CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory").
const SECTOR: i64 = 32;
/// Bytes of a bank of shared memory, and the number of banks (CUDA C++ Programming Guide, "Shared Memory").
pub(super) const BANK: i64 = 4;
const BANKS: i64 = 32;
/// The most bytes of one access.
pub(super) const WIDEST: i64 = 16;

/// The place of an element in memory, in elements.
pub(super) fn address(
    indices: &Indices,
    strides: &[i64],
    values: &dyn Fn(VarId) -> Option<i64>,
) -> Option<i64> {
    indices.iter().zip(strides).try_fold(0_i64, |place, (index, stride)| {
        place.checked_add(index.evaluate(values)?.checked_mul(*stride)?)
    })
}

/// The distance in memory, in elements, of the elements that a loop chooses one after the other.
pub(crate) fn stride_of(indices: &Indices, strides: &[i64], var: VarId) -> Option<i64> {
    let at = |value| address(indices, strides, &|other| Some(if other == var { value } else { 0 }));
    at(1).zip(at(0)).map(|(one, zero)| one - zero)
}

/// The places that some lanes access, in bytes, for elements of `bytes` bytes. Where data chooses the element, they are far apart.
pub(super) fn addresses(
    indices: &Indices,
    at: &Place,
    bytes: i64,
    lanes: i64,
    value: &dyn Fn(i64, VarId) -> i64,
) -> SmallVec<[i64; 32]> {
    (0..lanes)
        .map(|lane| {
            let place = address(indices, &at.strides, &|var| Some(value(lane, var))).unwrap_or(lane << 10);
            let byte = place.saturating_mul(bytes);
            at.exchange.map_or(byte, |exchange| exchange.place(byte))
        })
        .collect()
}

/// The number of distinct sectors, and the share of them that as many bytes beside each other would touch.
pub(super) fn sectors(addresses: &[i64], bytes: i64) -> (f64, f64) {
    let mut sorted: SmallVec<[i64; 32]> = addresses.into();
    sorted.sort_unstable();
    let (mut touched, mut used) = (0, 0);
    let (mut next_sector, mut next_byte) = (i64::MIN, i64::MIN);
    for begin in sorted {
        let end = begin + bytes.max(1);
        used += (end - begin.max(next_byte)).max(0);
        next_byte = next_byte.max(end);
        let (first, last) = (begin.div_euclid(SECTOR), (end - 1).div_euclid(SECTOR));
        touched += (last + 1 - first.max(next_sector)).max(0);
        next_sector = next_sector.max(last + 1);
    }
    let needed = (used + SECTOR - 1) / SECTOR;
    (touched as f64, (needed as f64 / touched.max(1) as f64).min(1.0))
}

/// The passes over the banks, and how many as few as the data need they are.
pub(super) fn passes(addresses: &[i64], bytes: i64) -> (f64, f64) {
    // Wide accesses are made by a half or a quarter of a warp at once.
    let at_once = (BANKS * BANK / bytes.max(BANK)).clamp(1, WARP) as usize;
    let mut total = 0_usize;
    let mut groups = 0_usize;
    for group in addresses.chunks(at_once) {
        let mut words: SmallVec<[i64; 64]> = group
            .iter()
            .flat_map(|place| place.div_euclid(BANK)..=(place + bytes - 1).div_euclid(BANK))
            .collect();
        words.sort_unstable();
        words.dedup();
        let mut of_bank = [0_usize; BANKS as usize];
        for word in &words {
            of_bank[word.rem_euclid(BANKS) as usize] += 1;
        }
        total += of_bank.into_iter().max().unwrap_or(1).max(1);
        groups += 1;
    }
    (total as f64, groups as f64 / total.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(stride: i64) -> Vec<i64> {
        (0..WARP).map(|lane| lane * stride).collect()
    }

    #[test]
    fn sectors_are_those_of_neighbours_and_of_strides() {
        assert_eq!(sectors(&lanes(4), 4), (4.0, 1.0));
        assert_eq!(sectors(&lanes(16), 16), (16.0, 1.0));
        assert_eq!(sectors(&lanes(0), 4), (1.0, 1.0), "one sector for all");
        assert_eq!(sectors(&lanes(4096), 4), (32.0, 0.125));
    }

    #[test]
    fn passes_are_those_of_the_bank_with_the_most_words() {
        assert_eq!(passes(&lanes(4), 4), (1.0, 1.0));
        assert_eq!(passes(&lanes(0), 4), (1.0, 1.0), "one word for all");
        assert_eq!(passes(&lanes(128), 4), (32.0, 1.0 / 32.0));
        assert_eq!(passes(&lanes(8), 4).0, 2.0);
        assert_eq!(passes(&lanes(16), 16), (4.0, 1.0), "as many as 512 bytes need");
    }
}
