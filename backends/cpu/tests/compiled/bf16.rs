//! Dot products of `bf16`, bit by bit as the instruction is specified.
//!
//! The expected results follow the operation of the instruction in the manual (Intel 64 and IA-32 Architectures Software Developer's
//! Manual, volume 2, VDPBF16PS): of each pair the second product is added first, each with one rounding to the nearest
//! number, ties to even; operands and results that are denormal become zeros of their signs.

use tilewright_core::device::Device;
use tilewright_core::dtype::DType;
use tilewright_core::lower::lower;
use tilewright_core::tensor::{AnyTensor, Random};

use crate::support::{compile, host};
use crate::tensorized::{HALVES, call, options, scheduled};

/// A denormal as a zero of its sign.
fn flushed(x: f32) -> f32 {
    if x.is_subnormal() { 0f32.copysign(x) } else { x }
}

/// One rounding, after which what is below the smallest normal number is zero. That is decided by the digits that a
/// larger number would have had: a result that only a denormal's few digits round up to a normal number is zero, too.
fn fused(a: f32, b: f32, c: f32) -> f32 {
    const UP: f32 = (1u128 << 64) as f32;
    let plain = a.mul_add(b, c);
    if plain.abs() > f32::MIN_POSITIVE || plain.is_nan() {
        return plain;
    }
    // Unless the terms cancel, in which case the result is an exact zero, none of them is large.
    let (small, other) = if a.abs() < b.abs() { (a, b) } else { (b, a) };
    let scaled = (small * UP).mul_add(other, c * UP);
    if scaled.abs() < f32::MIN_POSITIVE * UP { 0f32.copysign(scaled) } else { plain }
}

/// The result of one lane of the instruction.
fn dot(sum: f32, a: [f32; 2], b: [f32; 2]) -> f32 {
    let ([a0, a1], [b0, b1]) = (a.map(flushed), b.map(flushed));
    fused(a0, b0, fused(a1, b1, flushed(sum)))
}

/// Numbers with exponents from `first` on, drawn among `count`; signs and digits are arbitrary.
fn numbers(dtype: DType, len: usize, seed: u64, first: u32, count: u32) -> AnyTensor {
    let mut random = Random::new(seed);
    let mut tensor = AnyTensor::zeros(dtype, &[len]).unwrap();
    for element in tensor.bytes_mut().chunks_exact_mut(dtype.bytes()) {
        let exponent = first + random.below(u64::from(count)) as u32;
        let digits = if random.below(4) == 0 { 0 } else { random.below(1 << 23) as u32 };
        let bits = (random.below(2) as u32) << 31 | exponent << 23 | digits;
        element.copy_from_slice(&bits.to_le_bytes()[4 - dtype.bytes()..]);
    }
    tensor
}

fn expected(tensors: &[AnyTensor], [m, n, k]: [usize; 3], lanes: usize) -> Vec<f32> {
    let values = |tensor: &AnyTensor| -> Vec<f32> {
        tensor.to_f64_vec().into_iter().map(|value| value as f32).collect()
    };
    let (a, b, mut c) = (values(&tensors[0]), values(&tensors[1]), values(&tensors[2]));
    for (place, sum) in c.iter_mut().enumerate() {
        let (i, j, lane) = (place / (n * lanes), place / lanes % n, place % lanes);
        assert!(i < m);
        for pair in 0..k {
            let (of_a, of_b) = (2 * (i * k + pair), 2 * ((j * k + pair) * lanes + lane));
            *sum = dot(*sum, [a[of_a], a[of_a + 1]], [b[of_b], b[of_b + 1]]);
        }
    }
    c
}

#[test]
fn every_bit_is_as_the_instruction_is_specified() {
    // Exponents of sums and of factors: ordinary ones, all there are, and those around denormal sums.
    let ranges = [[(100, 50), (110, 30)], [(0, 256), (0, 256)], [(0, 8), (60, 12)], [(0, 3), (0, 128)]];
    let dims = [6, 3, 4];
    for (lanes, [sums, factors]) in
        [16, 8, 4].into_iter().flat_map(|lanes| ranges.map(|range| (lanes, range)))
    {
        let flat = lower(&scheduled(HALVES, lanes, 2, 3, false).unwrap(), &options()).unwrap();
        let kernel = compile(host(), &flat);
        if !host().target().intrinsics().iter().any(|name| **name == *format!("{}_{lanes}", HALVES.0)) {
            eprintln!("NOT TESTED HERE: this machine has no AVX512-BF16");
            return;
        }
        for seed in 0..20 {
            let fill = |dtype, len, place| {
                let (first, count) = if dtype == DType::F32 { sums } else { factors };
                numbers(dtype, len, 3 * seed + place, first, count)
            };
            let call = call(dims, HALVES, lanes, fill);
            let found = call.run(&flat, &*kernel, 1, true).unwrap()[2].to_f64_vec();
            let expected = expected(&call.tensors, dims, lanes);
            for (place, (found, expected)) in found.into_iter().zip(expected).enumerate() {
                let (found, expected) = (found as f32, expected);
                let is_same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
                assert!(is_same, "{lanes} lanes, seed {seed}, element {place}: {found:e}, not {expected:e}");
            }
        }
    }
}

#[test]
fn the_emulation_flushes_what_is_below_the_smallest_normal_number() {
    let small = f32::MIN_POSITIVE;
    let half = 2f32.powi(-75);
    // One unit in the last place below, which a denormal has no digit for, and half of that, which rounds to even.
    assert_eq!(fused(half, -half, small), 0.0);
    assert_eq!(fused(half, -half / 2.0, small), small);
    assert_eq!(fused(-half, half / 4.0, 0.0).to_bits(), (-0f32).to_bits());
    assert_eq!(dot(-f32::from_bits(1), [1.0, 0.0], [0.0, -1.0]).to_bits(), 0f32.to_bits());
    // The second product comes first: in the other order the small one would be lost.
    assert_eq!(dot(-(2f32.powi(30)), [1.0, 2f32.powi(15)], [1.0, 2f32.powi(15)]), 1.0);
    assert_eq!(dot(-(2f32.powi(30)), [2f32.powi(15), 1.0], [2f32.powi(15), 1.0]), 0.0);
}
