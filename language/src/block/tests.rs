//! Blocks mean the same decoded alone and inside of products.

use super::*;
use crate::gguf::StoredTensor;
use tilewright::Tensor;

/// Blocks with arbitrary integers, and scales that are numbers.
fn blocks(kind: BlockType, count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    let mut bytes: Vec<u8> = (0..count * kind.bytes()).map(|_| next()).collect();
    let halves: &[usize] = match kind {
        BlockType::F32 => &[],
        BlockType::F16 | BlockType::Q4_0 | BlockType::Q8_0 => &[0],
        BlockType::Q4_1 | BlockType::Q4K => &[0, 2],
        BlockType::Q6K => &[208],
    };
    for block in bytes.chunks_exact_mut(kind.bytes()) {
        for &place in halves {
            let scale = half::f16::from_f32((f32::from(block[place]) - 100.0) / 2048.0);
            block[place..place + 2].copy_from_slice(&scale.to_le_bytes());
        }
        if kind == BlockType::F32 {
            let number = f32::from(block[0]) / 16.0 - 7.0;
            block.copy_from_slice(&number.to_le_bytes());
        }
    }
    bytes
}

/// A row as it is after quantisation to 8 bits, in blocks of 32.
fn quantised(row: &[f32]) -> Vec<f64> {
    let of_block = |block: &[f32]| {
        let largest = block.iter().fold(0.0f32, |largest, number| largest.max(number.abs()));
        let inverse = if largest > 0.0 { 127.0 / largest } else { 0.0 };
        let step = f64::from(largest / 127.0);
        block.iter().map(|number| step * f64::from((number * inverse).round_ties_even())).collect::<Vec<_>>()
    };
    row.chunks(32).flat_map(of_block).collect()
}

/// Compares products with those of decoded numbers, for rows beyond a whole panel.
fn check(kind: BlockType, products: Products, [tokens, rows, columns]: [usize; 3]) {
    let stored = blocks(kind, rows * columns / kind.length(), (rows + columns) as u64);
    let numbers = dequantise(kind, &stored);
    let shape = [rows, columns];
    let matrix = Matrix::pack("w", &StoredTensor { kind, shape: &shape, bytes: &stored }, products).unwrap();
    let x = Tensor::from_fn([tokens, columns], |[t, k]| ((t * 31 + k * 17) % 23) as f32 / 8.0 - 1.3).unwrap();
    let is_quantised = products == Products::Integers && kind.length() > 1;
    let own: Vec<f64> = match is_quantised {
        true => x.as_slice().chunks(columns).flat_map(quantised).collect(),
        false => x.as_slice().iter().copied().map(f64::from).collect(),
    };
    let y = matrix.multiply(&x).unwrap();
    assert_eq!(matrix.width() % 32, 0);
    for token in 0..tokens {
        for row in 0..matrix.width() {
            let terms = |row: usize| {
                let x = &own[token * columns..][..columns];
                x.iter().zip(&numbers[row * columns..][..columns]).map(|(x, &w)| x * f64::from(w))
            };
            let (expected, size) = if row < rows {
                (terms(row).sum::<f64>(), terms(row).map(f64::abs).sum::<f64>())
            } else {
                (0.0, 0.0)
            };
            let found = f64::from(y.as_slice()[token * matrix.width() + row]);
            // Every product has a few roundings, and so has every sum.
            let bound = size * columns as f64 * f64::from(f32::EPSILON);
            assert!((found - expected).abs() <= bound, "{kind:?} {token} {row}: {found}, not {expected}");
        }
    }
}

#[test]
fn products_are_those_of_the_decoded_numbers() {
    for kind in BlockType::ALL {
        let columns = 2 * kind.length().max(8);
        for (tokens, rows) in [(1, 32), (1, 5), (3, 96), (8, 33)] {
            for products in [Products::Floats, Products::Integers] {
                check(kind, products, [tokens, rows, columns]);
            }
        }
    }
}

#[test]
fn known_blocks_have_known_numbers() {
    let half = |number: f32| half::f16::from_f32(number).to_le_bytes();
    let mut q4_0 = half(0.5).to_vec();
    q4_0.extend((0..16).map(|j| j | ((15 - j) << 4)));
    let expected: Vec<f32> =
        (0..16).map(|j| 0.5 * (j as f32 - 8.0)).chain((0..16).map(|j| 0.5 * (7.0 - j as f32))).collect();
    assert_eq!(dequantise(BlockType::Q4_0, &q4_0), expected);

    // Part 5 of a block of 256: its scale is 0b10_0011 and its minimum 0b01_0101.
    let mut q4_k = [&half(1.0)[..], &half(2.0), &[0; 12], &[0; 128]].concat();
    q4_k[4 + 1] = 0b1000_0000;
    q4_k[4 + 5] = 0b0100_0000;
    q4_k[4 + 9] = 0b0101_0011;
    q4_k[16 + 2 * 32 + 7] = 0x90;
    let numbers = dequantise(BlockType::Q4K, &q4_k);
    assert_eq!(numbers[5 * 32 + 7], 35.0 * 9.0 - 2.0 * 21.0);
    assert_eq!(numbers[5 * 32 + 8], -42.0);

    // Element 128 + 3 · 32 + 4: the high half of byte 64 + 32 + 4, and the highest two bits of byte 32 + 4.
    let mut q6_k = vec![0; 210];
    q6_k[64 + 36] = 0xA0;
    q6_k[128 + 36] = 0b1100_0000;
    q6_k[192 + (128 + 96) / 16] = 3;
    q6_k[208..].copy_from_slice(&half(0.25));
    let numbers = dequantise(BlockType::Q6K, &q6_k);
    assert_eq!(numbers[128 + 96 + 4], 0.25 * 3.0 * (0b11_1010 as f32 - 32.0));
    assert_eq!(numbers[128 + 96 + 5], 0.25 * 3.0 * -32.0);
}

#[test]
fn a_vector_is_no_matrix() {
    let stored = StoredTensor { kind: BlockType::F32, shape: &[4], bytes: &[0; 16] };
    assert!(Matrix::pack("w", &stored, Products::Floats).err().unwrap().to_string().contains("`w`"));
}

#[test]
fn sums_of_blocks_are_those_of_one_panel_at_a_time() {
    let names = tilewright::run_context().unwrap().target.intrinsics().to_vec();
    if !names.iter().any(|name| name.starts_with("vpdpbsud_nibbles")) {
        eprintln!("SKIPPED: this machine has no dot products of bytes");
        return;
    }
    let (panels, blocks, lanes) = (8, 18, 32);
    let dims = [("R", 1), ("P", panels), ("B", blocks), ("L", lanes)];
    let program = integer::explained_q4_1(&dims);
    assert!(program.contains("intrinsic vpdpbsud_nibbles"), "{program}");
    let sums = program.lines().find_map(|line| line.trim().strip_prefix("buffer dots: i32["));
    let elements: i64 = sums.and_then(|rest| rest.split(']').next()).unwrap().parse().unwrap();
    assert!(elements <= blocks * lanes, "the sums of all panels are kept:\n{program}");
}
