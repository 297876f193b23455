//! Minima and maxima of bytes, which are computed a full vector of bytes at a time.

use tilewright_core::dtype::DType;
use tilewright_core::tensor::AnyTensor;

use crate::support::{Call, host, list, program};

const LANES: [i64; 13] = [3, 4, 7, 8, 12, 16, 20, 32, 36, 64, 68, 100, 128];

fn call(tensors: &[(DType, i64)]) -> Call {
    let tensor = |(seed, (dtype, len)): (u64, &(DType, i64))| {
        AnyTensor::random(*dtype, &[*len as usize], seed).expect("a small tensor")
    };
    Call { tensors: (1..).zip(tensors).map(tensor).collect(), ..Call::default() }
}

#[test]
fn minima_and_maxima_of_bytes() {
    for dtype in [DType::U8, DType::I8] {
        for lanes in LANES {
            let size = 3 * lanes;
            let text = format!(
                "kernel clamp(in x: {dtype}[{size}], in low: {dtype}[{lanes}], out y: {dtype}[{size}]) {{
                   for i in 0..3 {{
                     y[i*{lanes} + lane<{lanes}>] =
                       min(max(x[i*{lanes} + lane<{lanes}>], low[lane<{lanes}>]), 100{dtype})
                   }}
                 }}"
            );
            call(&[(dtype, size), (dtype, lanes), (dtype, size)]).check(&program(&text));
        }
    }
}

/// As a pool does with padding: the condition depends on loops alone.
#[test]
fn maxima_in_registers_of_elements_under_conditions() {
    for dtype in [DType::U8, DType::I8] {
        for lanes in LANES {
            let text = format!(
                "kernel pool(in x: {dtype}[{from}], out y: {dtype}[{into}]) {{
                   buffer t: {dtype}[{twice}] local
                   for i in 0..5 {{
                     alloc t {{
                       t[lane<{lanes}>] = 7{dtype}
                       t[lane<{lanes}> + {lanes}] = x[i*{lanes} + lane<{lanes}>]
                       for k in 0..3 {{
                         t[lane<{lanes}>] = max(t[lane<{lanes}>],
                           select((index(i + k - 1) >= 0) & (index(i + k - 1) < 5), x[(i + k - 1)*{lanes} + lane<{lanes}>], 9{dtype}))
                         t[lane<{lanes}> + {lanes}] = min(t[lane<{lanes}> + {lanes}], t[lane<{lanes}>])
                       }}
                       y[i*{twice} + lane<{lanes}>] = t[lane<{lanes}>]
                       y[i*{twice} + lane<{lanes}> + {lanes}] = t[lane<{lanes}> + {lanes}]
                     }}
                   }}
                 }}",
                from = 5 * lanes,
                twice = 2 * lanes,
                into = 10 * lanes,
            );
            call(&[(dtype, 5 * lanes), (dtype, 10 * lanes)]).check(&program(&text));
        }
    }
}

#[test]
fn maxima_that_others_read_as_wider_numbers() {
    for lanes in LANES {
        let text = format!(
            "kernel sums(in x: u8[{size}], out y: u8[{lanes}], out z: i32[{lanes}]) {{
               buffer t: u8[{lanes}] local
               buffer s: u8[{lanes}] local
               alloc t {{
                 alloc s {{
                   t[lane<{lanes}>] = 0u8
                   s[lane<{lanes}>] = 255u8
                   for k in 0..4 {{
                     t[lane<{lanes}>] = max(t[lane<{lanes}>], x[k*{lanes} + lane<{lanes}>])
                     s[lane<{lanes}>] = min(s[lane<{lanes}>], x[k*{lanes} + lane<{lanes}>])
                   }}
                   y[lane<{lanes}>] = s[lane<{lanes}>]
                   z[lane<{lanes}>] = t[lane<{lanes}>] as i32 * 3i32
                 }}
               }}
             }}",
            size = 4 * lanes,
        );
        let tensors = [(DType::U8, 4 * lanes), (DType::U8, lanes), (DType::I32, lanes)];
        call(&tensors).check(&program(&text));
    }
}

/// Whether the load stays inside its tensor is seen where the condition holds alone, and not by its form.
#[test]
fn elements_that_a_condition_keeps_inside_by_other_means() {
    let text = "kernel halves(S, in x: u8[64], out y: u8[512]) {
           for i in 0..8 {
             y[i*64 + lane<64>] = max(y[i*64 + lane<64>], select(index(S + i) < 1, x[lane<64> + S*i], 3u8))
           }
         }"
    .replace("out y", "inout y");
    for size in [0, 1, 5] {
        let plain = call(&[(DType::U8, 64), (DType::U8, 512)]);
        Call { dims: vec![size], ..plain }.check(&program(&text));
    }
}

#[test]
fn a_vector_of_bytes_takes_one_instruction() {
    let text = "kernel rows(in x: u8[512], out y: u8[64]) {
           buffer t: u8[64] local
           alloc t {
             t[lane<64>] = 0u8
             for k in 0..8 { t[lane<64>] = max(t[lane<64>], x[k*64 + lane<64>]) }
             y[lane<64>] = t[lane<64>]
           }
         }";
    let listing = list(host(), &program(text));
    let is_packed = listing.contains("vpmaxub") && !listing.contains("vpmaxsd");
    assert!(is_packed || !listing.contains("vzeroupper"), "{listing}");
}
