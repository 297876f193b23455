//! Transposed loads: lanes of different rows, where the next statements read the neighbouring elements of the same rows.

use tilewright_core::device::Device;
use tilewright_core::dtype::DType;
use tilewright_core::tensor::AnyTensor;

use crate::support::{Call, host, list, program};

const WIDE: [DType; 4] = [DType::F32, DType::I32, DType::F64, DType::I64];

fn call(tensors: &[(DType, i64)]) -> Call {
    let (into, from) = tensors.split_last().expect("a result");
    let mut all: Vec<AnyTensor> = (0..)
        .zip(from)
        .map(|(seed, (dtype, len))| {
            AnyTensor::random(*dtype, &[*len as usize], seed).expect("a small tensor")
        })
        .collect();
    all.push(AnyTensor::zeros(into.0, &[into.1 as usize]).expect("a small tensor"));
    Call { tensors: all, ..Call::default() }
}

/// Every number of rows that lanes have, and of columns that a loop has, up to more than two vectors.
#[test]
fn blocks_of_all_sizes_are_transposed() {
    for dtype in WIDE {
        for rows in [2, 3, 4, 5, 7, 8, 9, 12, 13, 15, 16, 17, 24, 31, 32, 33] {
            for columns in [1, 2, 3, 4, 5, 7, 8, 9, 11, 15, 16, 17, 23, 33] {
                let text = format!(
                    "kernel transpose(in x: {dtype}[{size}], out y: {dtype}[{size}]) {{
                       for j in 0..{columns} {{ y[j*{rows} + lane<{rows}>] = x[lane<{rows}>*{columns} + j] }}
                     }}",
                    size = rows * columns,
                );
                call(&[(dtype, rows * columns), (dtype, rows * columns)]).check(&program(&text));
            }
        }
    }
}

#[test]
fn tiles_of_a_matrix_are_transposed_also_around_the_caches() {
    for dtype in WIDE {
        for scope in ["", " streamed"] {
            for (side, tiles) in [(16, 3), (8, 5), (32, 2)] {
                let text = format!(
                    "kernel transpose(in x: {dtype}[{size}], out y: {dtype}[{size}]{scope}) {{
                       for a in 0..{tiles} {{ for b in 0..{tiles} {{ for j in 0..{side} {{
                         y[(b*{side} + j)*{row} + a*{side} + lane<{side}>] = x[(a*{side} + lane<{side}>)*{row} + b*{side} + j]
                       }} }} }}
                     }}",
                    row = side * tiles,
                    size = side * tiles * side * tiles,
                );
                let size = side * tiles * side * tiles;
                call(&[(dtype, size), (dtype, size)]).check(&program(&text));
            }
        }
    }
}

/// Statements that stand one after the other instead of in a loop, with gaps, and in no order.
#[test]
fn statements_without_a_loop_share_blocks() {
    for columns in
        [&[0, 1, 2, 3][..], &[3, 2, 1, 0], &[0, 2, 1, 5, 4], &[1, 1, 2], &[0, 1, 2, 3, 4, 5, 6, 40, 41]]
    {
        let body: String = (0..)
            .zip(columns)
            .map(|(place, column)| format!("y[{place}*20 + lane<20>] = x[lane<20>*43 + {column}]\n"))
            .collect();
        let text = format!("kernel rows(in x: f32[860], inout y: f32[180]) {{ {body} }}");
        call(&[(DType::F32, 860), (DType::F32, 180)]).check(&program(&text));
    }
}

/// Statements that use a transposed element, use two of different types, and add to an element.
#[test]
fn transposed_elements_are_computed_with() {
    for (first, second) in [(DType::F32, DType::F32), (DType::F32, DType::F64), (DType::F64, DType::F32)] {
        for lanes in [8, 13, 16, 20] {
            let text = format!(
                "kernel mix(in x: {first}[{size}], in z: {second}[{size}], out y: f64[{size}]) {{
                   for j in 0..19 {{
                     y[j*{lanes} + lane<{lanes}>] =
                       x[lane<{lanes}>*19 + j] as f64 * 2.0f64 + z[lane<{lanes}>*19 + 18 - j] as f64 + x[lane<{lanes}>*19 + j] as f64
                   }}
                 }}",
                size = lanes * 19,
            );
            let size = lanes * 19;
            call(&[(first, size), (second, size), (DType::F64, size)]).check(&program(&text));
        }
    }
}

/// Sums of rows whose lanes are the rows: in registers, and in memory.
#[test]
fn rows_are_summed_side_by_side() {
    for lanes in [4, 16, 21, 40] {
        for scope in [" local", " global"] {
            let text = format!(
                "kernel sums(in x: f32[{size}], out y: f32[{lanes}]) {{
                   buffer s: f32[{lanes}]{scope}
                   alloc s {{
                     s[lane<{lanes}>] = 0.0
                     for k in 0..37 {{ s[lane<{lanes}>] = s[lane<{lanes}>] + x[lane<{lanes}>*37 + k] }}
                     y[lane<{lanes}>] = s[lane<{lanes}>]
                   }}
                 }}",
                size = lanes * 37,
            );
            call(&[(DType::F32, lanes * 37), (DType::F32, lanes)]).check(&program(&text));
        }
    }
}

/// Places that overlap are written in order, and what was written is read.
#[test]
fn order_is_kept_where_it_matters() {
    for body in [
        // Each statement writes over a part of what the one before wrote.
        "y[j*8 + lane<24>] = x[lane<24>*16 + j]",
        // The result is read where another iteration wrote.
        "y[j*24 + lane<24>] = x[lane<24>*16 + j] + y[j*24 + lane<24> + 3]",
        "y[lane<24>*16 + j] = y[lane<24>*16 + j + 1] * 2.0",
        "y[lane<16>*16 + j] = x[lane<16>*16 + j] + y[lane<16>*16 + j + 1]",
        // Two results.
        "y[j*24 + lane<24>] = x[lane<24>*16 + j] z[j*24 + lane<24>] = y[j*24 + lane<24>] + x[lane<24>*16 + j + 1]",
        "y[j*24 + lane<24>] = x[lane<24>*16 + j] z[lane<24>*16 + j] = x[lane<24>*16 + j] * 3.0",
    ] {
        let text = format!(
            "kernel order(in x: f32[400], inout y: f32[408], inout z: f32[408]) {{ for j in 0..15 {{ {body} }} }}"
        );
        let mut call = call(&[(DType::F32, 400), (DType::F32, 408), (DType::F32, 408)]);
        call.tensors[2] = AnyTensor::random(DType::F32, &[408], 9).expect("a small tensor");
        call.check(&program(&text));
    }
}

/// Rows at a distance that is known when the kernel is called.
#[test]
fn strides_may_be_known_at_run_time() {
    for lanes in [5, 16, 33] {
        let text = format!(
            "kernel transpose(N, in x: f32[{lanes}*N], out y: f32[16*{lanes}]) {{
               for j in 0..16 {{ y[j*{lanes} + lane<{lanes}>] = x[lane<{lanes}>*N + j] }}
             }}"
        );
        let call = Call { dims: vec![16], ..call(&[(DType::F32, lanes * 16), (DType::F32, 16 * lanes)]) };
        call.check(&program(&text));
    }
}

#[test]
fn a_transposition_takes_no_element_on_its_own() {
    if host().target().cpu().expect("a CPU").vector_bits < 256 {
        return;
    }
    let text = "kernel transpose(in x: f32[4096], out y: f32[4096]) {
      for b in 0..4 { for j in 0..16 {
        y[(b*16 + j)*64 + lane<64>] = x[lane<64>*64 + b*16 + j]
      } }
    }";
    let listing = list(host(), &program(text));
    let is_blocked =
        listing.contains("vunpcklpd") && !listing.contains("vgather") && !listing.contains("vinsertps");
    assert!(is_blocked, "{listing}");
}
