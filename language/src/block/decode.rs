//! The numbers that blocks stand for.

use half::f16;

use crate::block::BlockType;

/// The numbers of whole blocks.
///
/// # Panics
/// When the bytes are not those of whole blocks.
pub fn dequantise(kind: BlockType, bytes: &[u8]) -> Vec<f32> {
    assert!(bytes.len().is_multiple_of(kind.bytes()), "the bytes are those of whole blocks");
    let mut numbers = Vec::with_capacity(bytes.len() / kind.bytes() * kind.length());
    for block in bytes.chunks_exact(kind.bytes()) {
        match kind {
            BlockType::F32 => numbers.push(f32::from_le_bytes([block[0], block[1], block[2], block[3]])),
            BlockType::F16 => numbers.push(half_at(block, 0).to_f32()),
            BlockType::Q4_0 => {
                let scale = half_at(block, 0).to_f32();
                numbers.extend(nibbles(&block[2..]).map(|q| scale * (f32::from(q) - 8.0)));
            }
            BlockType::Q4_1 => {
                let (scale, minimum) = (half_at(block, 0).to_f32(), half_at(block, 2).to_f32());
                numbers.extend(nibbles(&block[4..]).map(|q| scale * f32::from(q) + minimum));
            }
            BlockType::Q8_0 => {
                let scale = half_at(block, 0).to_f32();
                numbers.extend(block[2..].iter().map(|&q| scale * f32::from(q as i8)));
            }
            BlockType::Q4K => q4_k(block, &mut numbers),
            BlockType::Q6K => q6_k(block, &mut numbers),
        }
    }
    numbers
}

/// A half float at a place.
pub(super) fn half_at(block: &[u8], place: usize) -> f16 {
    f16::from_le_bytes([block[place], block[place + 1]])
}

/// The low halves of bytes, then the high ones.
fn nibbles(bytes: &[u8]) -> impl Iterator<Item = u8> + '_ {
    bytes.iter().map(|byte| byte & 15).chain(bytes.iter().map(|byte| byte >> 4))
}

/// The scale and the minimum, of 6 bits each, of a part of 32 elements: the first four parts have bytes of their own, whose highest two
/// bits complete the halves of the last four.
pub(super) fn q4_k_factors(packed: &[u8], part: usize) -> (u8, u8) {
    if part < 4 {
        (packed[part] & 63, packed[part + 4] & 63)
    } else {
        (
            (packed[part + 4] & 15) | ((packed[part - 4] >> 6) << 4),
            (packed[part + 4] >> 4) | ((packed[part] >> 6) << 4),
        )
    }
}

fn q4_k(block: &[u8], numbers: &mut Vec<f32>) {
    let (scale, minimum) = (half_at(block, 0).to_f32(), half_at(block, 2).to_f32());
    for (pair, quants) in block[16..].chunks_exact(32).enumerate() {
        for (half, shift) in [0, 4].into_iter().enumerate() {
            let (factor, least) = q4_k_factors(&block[4..16], 2 * pair + half);
            let (factor, least) = (scale * f32::from(factor), minimum * f32::from(least));
            numbers.extend(quants.iter().map(|byte| factor * f32::from((byte >> shift) & 15) - least));
        }
    }
}

/// The integers of a block of 6 bits, in order: of each 128, the low four bits lie in 64 bytes and the high two in 32.
pub(super) fn q6_k_integers(block: &[u8]) -> [i8; 256] {
    let (low, high) = (&block[..128], &block[128..192]);
    std::array::from_fn(|place| {
        let (half, inner) = (place / 128, place % 128);
        let (row, column) = (inner / 32, inner % 32);
        let byte = low[half * 64 + (row % 2) * 32 + column];
        let four = if row < 2 { byte & 15 } else { byte >> 4 };
        let two = (high[half * 32 + column] >> (2 * row)) & 3;
        (four | (two << 4)) as i8 - 32
    })
}

fn q6_k(block: &[u8], numbers: &mut Vec<f32>) {
    let scale = half_at(block, 208).to_f32();
    let integers = q6_k_integers(block);
    for (part, integers) in integers.chunks_exact(16).enumerate() {
        let factor = scale * f32::from(block[192 + part] as i8);
        numbers.extend(integers.iter().map(|&q| factor * f32::from(q)));
    }
}
