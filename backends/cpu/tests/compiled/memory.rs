//! Indices of every kind, and loads that must not be made.

use tilewright_core::dtype::DType;
use tilewright_core::tensor::AnyTensor;

use crate::support::{Call, exact_elements, program};

fn random(dtype: DType, len: usize, seed: u64) -> AnyTensor {
    AnyTensor::random(dtype, &[len], seed).expect("a small tensor")
}

fn zeros(dtype: DType, len: usize) -> AnyTensor {
    AnyTensor::zeros(dtype, &[len]).expect("a small tensor")
}

#[test]
fn strided_reversed_repeated_and_blocked_lanes() {
    for lanes in [2, 3, 4, 6, 8, 11] {
        for dtype in [DType::F32, DType::F64, DType::U8, DType::F16, DType::Bool] {
            let text = format!(
                "kernel lanes(in x: {dtype}[128], out y: {dtype}[{len}]) {{
                   for i in 0..3 {{
                     y[i*{lanes} + lane<{lanes}>] = x[i + lane<{lanes}>*5]
                     y[i*{lanes} + lane<{lanes}> + {a}] = x[40 + i - lane<{lanes}>]
                     y[i*{lanes} + lane<{lanes}> + {b}] = x[(lane<{lanes}>/4)*32 + lane<{lanes}>%4 + i]
                     y[i + lane<{lanes}>*3 + {c}] = x[i*2 + lane<{lanes}>/3]
                     y[i*{lanes} + lane<{lanes}> + {d}] = x[(i*3 + lane<{lanes}>)/4 + (i*3 + lane<{lanes}>)%4]
                   }}
                 }}",
                len = 15 * lanes,
                a = 3 * lanes,
                b = 6 * lanes,
                c = 9 * lanes,
                d = 12 * lanes,
            );
            let tensors = vec![random(dtype, 128, 1), zeros(dtype, 15 * lanes)];
            Call { tensors, ..Call::default() }.check(&program(&text));
        }
    }
}

#[test]
fn indices_as_values() {
    let program = program(
        "kernel indices(N, out y: i64[N*6]) {
           for i in 0..N {
             y[i*6 + lane<6>] = index(i*7 + lane<6>*3 - 20)
             y[i*6] = (i*7 - 20) / 3 + (i % 5) * N
             y[i*6 + 1] = index((i*5 + 3)/7)
             y[i*6 + 2] = index((i*5 + 3)%11)
             y[i*6 + lane<2> + 3] = index((i + lane<2>)/3 + (i + lane<2>)%2)
             y[i*6 + 5] = index((i/2)*N - i*i)
           }
         }",
    );
    for len in [0, 1, 40] {
        let y = zeros(DType::I64, len * 6);
        Call { dims: vec![len as i64], tensors: vec![y], ..Call::default() }.check(&program);
    }
}

#[test]
fn only_the_chosen_branch_is_loaded() {
    for lanes in [1, 2, 3, 4, 8, 13] {
        for dtype in [DType::F32, DType::F64, DType::I8, DType::BF16] {
            let text = format!(
                "kernel padded(N, in x: {dtype}[N], out y: {dtype}[(N + 2)*{lanes}]) {{
                   for i in 0..N + 2 {{
                     y[i*{lanes} + lane<{lanes}>] =
                       select((index(i + lane<{lanes}>) >= 2) & (index(i + lane<{lanes}>) < N + 2), x[i + lane<{lanes}> - 2], 1 as {dtype})
                   }}
                 }}"
            );
            let text = text.replace("lane<1>", "0").replace("1 as", "1i32 as");
            for len in [0, 1, 5, 20] {
                let tensors = vec![random(dtype, len, 1), zeros(dtype, (len + 2) * lanes)];
                Call { dims: vec![len as i64], tensors, ..Call::default() }.check(&program(&text));
            }
        }
    }
}

#[test]
fn both_branches_of_nested_selections_are_guarded() {
    let program = program(
        "kernel nested(N, in x: f32[N], in z: f32[N], out y: f32[N*8]) {
           for i in 0..N {
             y[i*8 + lane<8>] = select(
               index(i*2 + lane<8>) < N,
               select(x[i*2 + lane<8>] > 0.0, x[i*2 + lane<8>], x[(i*2 + lane<8>)/2] * z[i]),
               select(i + 1 < N, z[i + 1], 3.0) + z[i]
             )
           }
         }",
    );
    for len in [0, 1, 2, 9, 30] {
        let tensors =
            vec![random(DType::F32, len, 1), random(DType::F32, len, 2), zeros(DType::F32, len * 8)];
        Call { dims: vec![len as i64], tensors, ..Call::default() }.check(&program);
    }
}

#[test]
fn a_scalar_condition_guards_vector_loads() {
    let program = program(
        "kernel rows(N, in x: f32[N*8], out y: f32[N*8 + 8]) {
           buffer acc: f32[8] local
           for i in 0..N + 1 {
             alloc acc {
               acc[lane<8>] = 0.0
               for k in 0..3 {
                 acc[lane<8>] = acc[lane<8>] + select((i + k >= 1) & (i + k < N + 1), x[(i + k - 1)*8 + lane<8>], 0.0)
               }
               y[i*8 + lane<8>] = acc[lane<8>]
             }
           }
         }",
    );
    for len in [0, 1, 7] {
        let tensors = vec![random(DType::F32, len * 8, 1), zeros(DType::F32, len * 8 + 8)];
        Call { dims: vec![len as i64], tensors, ..Call::default() }.check(&program);
    }
}

#[test]
fn a_statement_reads_all_lanes_before_it_writes_any() {
    let program = program(
        "kernel shifted(inout x: f32[32]) {
           x[lane<16> + 1] = x[lane<16>] + 1.0
           x[lane<10>] = x[9 - lane<10>]
         }",
    );
    Call { tensors: vec![random(DType::F32, 32, 1)], ..Call::default() }.check(&program);
}

#[test]
fn stores_are_seen_by_later_loads() {
    let program = program(
        "kernel seen(in x: f32[16], out y: f32[16], out z: f32[8]) {
           y[lane<16>] = x[lane<16>]
           y[lane<4> + 2] = y[lane<4> + 2] + 1.0
           for i in 0..4 { y[i*2] = y[i*2] + y[4] }
           z[lane<8>] = y[lane<8>*2]
           if y[0] > y[1] { y[3] = y[2] * 2.0 }
           y[5] = y[3] + y[2]
         }",
    );
    let tensors = vec![random(DType::F32, 16, 1), zeros(DType::F32, 16), zeros(DType::F32, 8)];
    Call { tensors, ..Call::default() }.check(&program);
}

#[test]
fn gathers_read_what_their_indices_say() {
    let program = program(
        "kernel gather(V, N, in table: f32[V*4], in ids: i64[N], out y: f32[N*4], out w: f32[N]) {
           for i in 0..N { y[i*4 + lane<4>] = table[bounded(ids[i], 0..V)*4 + lane<4>] }
           for i_1 in 0..N/8 {
             w[i_1*8 + lane<8>] = table[bounded(ids[i_1*8 + lane<8>], 0..V)*4 + 1]
           }
           for i_2 in 0..N%8 { w[(N/8)*8 + i_2] = 0.0 }
         }",
    );
    for (vocabulary, len) in [(1, 3), (10, 0), (100, 21)] {
        let ids = AnyTensor::random_indices(DType::I64, &[len], vocabulary, 3).unwrap();
        let table = random(DType::F32, vocabulary as usize * 4, 1);
        let tensors = vec![table, ids, zeros(DType::F32, len * 4), zeros(DType::F32, len)];
        Call { dims: vec![vocabulary as i64, len as i64], tensors, ..Call::default() }.check(&program);
    }
}

#[test]
fn rows_and_lanes_are_chosen_by_data() {
    for dtype in
        [DType::F32, DType::F64, DType::I32, DType::U8, DType::I8, DType::F16, DType::BF16, DType::Bool]
    {
        for (lanes, index) in [(4, "i64"), (7, "i32"), (16, "i32"), (19, "i64")] {
            let text = format!(
                "kernel embed(V, N, in table: {dtype}[V*38], in ids: {index}[N*{lanes}], out y: {dtype}[N*2*{lanes}], out w: {dtype}[N*{lanes}]) {{
                   for i in 0..N {{
                     for j in 0..2 {{
                       y[(i*2 + j)*{lanes} + lane<{lanes}>] = table[bounded(ids[i]CAST, 0..V)*38 + j*{lanes} + lane<{lanes}>]
                     }}
                     if i > 2 {{ y[i*2*{lanes}] = table[bounded(ids[i - 1]CAST, 0..V)*38 + 1] }}
                     w[i*{lanes} + lane<{lanes}>] = table[bounded(ids[i*{lanes} + lane<{lanes}>]CAST, 0..V)*38 + 1]
                   }}
                 }}"
            );
            let text = text.replace("CAST", if index == "i64" { "" } else { " as i64" });
            let program = program(&text);
            for (rows, len) in [(1, 3), (30, 5), (9, 0)] {
                let size = if index == "i64" { DType::I64 } else { DType::I32 };
                let ids = AnyTensor::random_indices(size, &[len * lanes], rows, 3).unwrap();
                let table = random(dtype, rows as usize * 38, 1);
                let tensors = vec![table, ids, zeros(dtype, len * 2 * lanes), zeros(dtype, len * lanes)];
                Call { dims: vec![rows as i64, len as i64], tensors, ..Call::default() }.check(&program);
            }
        }
    }
}

/// Places that a kernel computes itself: before the loop that reads them, or inside, where they change.
#[test]
fn rows_are_chosen_by_places_that_change() {
    let bodies = [
        "for i in 0..N { places[i] = max(ids[i] - 1, 0) }
         for i in 0..N {
           for j in 0..2 { y[i*32 + j*16 + lane<16>] = table[bounded(places[i], 0..V)*32 + j*16 + lane<16>] }
         }",
        "for i in 0..N {
           places[0] = max(ids[i] - 1, 0)
           for j in 0..2 { y[i*32 + j*16 + lane<16>] = table[bounded(places[0], 0..V)*32 + j*16 + lane<16>] }
         }",
        "places[0] = 0
         for i in 0..N {
           y[i*32 + lane<32>] = table[bounded(places[0], 0..V)*32 + lane<32>]
           places[0] = ids[i]
         }",
    ];
    for body in bodies {
        let program = program(&format!(
            "kernel rows(V, N, in table: f32[V*32], in ids: i64[N], out y: f32[N*32]) {{
               buffer places: i64[9] local
               alloc places {{ {body} }}
             }}"
        ));
        for (rows, len) in [(1, 4), (17, 9), (5, 0)] {
            let ids = AnyTensor::random_indices(DType::I64, &[len], rows, 3).unwrap();
            let tensors = vec![random(DType::F32, rows as usize * 32, 1), ids, zeros(DType::F32, len * 32)];
            Call { dims: vec![rows as i64, len as i64], tensors, ..Call::default() }.check(&program);
        }
    }
}

#[test]
fn an_index_that_is_not_used_is_not_reported() {
    let program = program(
        "kernel unused(V, N, M, in table: f32[V*4], in ids: i64[N], inout y: f32[N*4]) {
           for i in 0..N {
             for j in 0..M { y[i*4 + lane<4>] = table[bounded(ids[i], 0..V)*4 + lane<4>] }
             if i >= N { y[i*4 + lane<4>] = table[bounded(ids[i + 7], 0..V)*4 + lane<4>] }
           }
         }",
    );
    let ids = AnyTensor::random_indices(DType::I64, &[6], 1_000_000, 3).unwrap();
    let tensors = vec![random(DType::F32, 12, 1), ids, random(DType::F32, 24, 2)];
    Call { dims: vec![3, 6, 0], tensors, ..Call::default() }.check(&program);
}

/// The element that a condition leaves out is chosen by an index that is out of bounds, or behind the end.
#[test]
fn an_index_that_a_condition_excludes_is_not_reported() {
    for dtype in [DType::I8, DType::F16, DType::F32] {
        let zero = if dtype == DType::I8 {
            "0i8"
        } else if dtype == DType::F16 {
            "0.0f16"
        } else {
            "0.0"
        };
        let text = format!(
            "kernel excluded(N, in t: {dtype}[160], in ids: i64[N], out y: {dtype}[64]) {{
               for i in 0..4 {{
                 y[i*16 + lane<16>] = select(index(i) < 3, t[bounded(ids[i], 0..10)*16 + lane<16>], {zero})
               }}
             }}"
        );
        for count in [3, 4] {
            let mut ids = zeros(DType::I64, count);
            for (bytes, id) in ids.bytes_mut().chunks_exact_mut(8).zip([7i64, 0, 9, 99]) {
                bytes.copy_from_slice(&id.to_le_bytes());
            }
            let tensors = vec![random(dtype, 160, 1), ids, zeros(dtype, 64)];
            Call { dims: vec![count as i64], tensors, ..Call::default() }.check(&program(&text));
        }
    }
}

/// Padding: the condition is the same in all lanes, and what is read elsewhere is a constant.
#[test]
fn elements_chosen_by_place_stay_inside() {
    for (dtype, constant) in [
        (DType::F32, "-1.5"),
        (DType::F64, "0.25f64"),
        (DType::I32, "-7i32"),
        (DType::I64, "9"),
        (DType::U8, "3u8"),
    ] {
        let text = format!(
            "kernel padded(N, M, in x: {dtype}[M*12], in t: {dtype}[M], out y: {dtype}[N*24]) {{
               for i in 0..N {{ for j in 0..2 {{
                 y[i*24 + j*12 + lane<12>] = select((index(i + j) >= 2) & (index(i + j) < M + 2),
                   x[i*12 + j*12 + lane<12> - 24], {constant})
               }} }}
               for k in 0..N {{
                 y[k*24 + lane<12>] = y[k*24 + lane<12>]
                   + select((index(k) < 1) | (index(k) >= M + 1), {constant}, t[k - 1])
                   + select(index(k) < M, t[k], {constant})
               }}
             }}"
        );
        for (rows, elements) in [(1, 1), (9, 4), (3, 7), (6, 0)] {
            let tensors =
                vec![random(dtype, elements * 12, 1), random(dtype, elements, 2), zeros(dtype, rows * 24)];
            Call { dims: vec![rows as i64, elements as i64], tensors, ..Call::default() }
                .check(&program(&text));
        }
    }
}

/// An index of narrow elements under a condition is wanted further inside than it can be computed.
#[test]
fn rows_chosen_under_a_condition_stay_inside() {
    let program = program(
        "kernel k(V, N, M, in t: f32[V*32], in ids: u8[M], out y: f32[N*32]) {
           for i in 0..N { for j in 0..2 {
             y[(i*2 + j)*16 + lane<16>] =
               t[bounded(select(index(i) < M, ids[i] as i64, 0), 0..V)*32 + j*16 + lane<16>]
           } }
         }",
    );
    for (rows, ids) in [(5, 3), (3, 3), (2, 0), (4099, 1)] {
        let tensors =
            vec![random(DType::F32, 32 * 256, 1), random(DType::U8, ids, 2), zeros(DType::F32, rows * 32)];
        Call { dims: vec![256, rows as i64, ids as i64], tensors, ..Call::default() }.check(&program);
    }
}

#[test]
fn quotients_and_remainders_of_extreme_integers() {
    let values = [i32::MIN, i32::MIN + 1, -65536, -7, -1, 0, 1, 2, 3, 1000, 46341, i32::MAX - 1, i32::MAX];
    for dtype in [DType::I32, DType::I8, DType::U8] {
        let pairs: Vec<(i32, i32)> = values.iter().flat_map(|a| values.map(|b| (*a, b))).collect();
        let fill = |of: &dyn Fn(&(i32, i32)) -> i32| {
            let mut tensor = zeros(dtype, pairs.len());
            for (bytes, pair) in tensor.bytes_mut().chunks_exact_mut(dtype.bytes()).zip(&pairs) {
                bytes.copy_from_slice(&of(pair).to_le_bytes()[..dtype.bytes()]);
            }
            tensor
        };
        let text = format!(
            "kernel divided(in a: {dtype}[169], in b: {dtype}[169], out q: {dtype}[169], out r: {dtype}[169]) {{
               q[lane<169>] = a[lane<169>] / b[lane<169>]
               r[lane<169>] = a[lane<169>] % b[lane<169>]
             }}"
        );
        let tensors = vec![fill(&|pair| pair.0), fill(&|pair| pair.1), zeros(dtype, 169), zeros(dtype, 169)];
        Call { tensors, ..Call::default() }.check(&program(&text));
    }
}

#[test]
fn what_was_refused_once_is_compiled() {
    let text =
        "kernel k(V, N, in table: f32[V*16], in ids: i64[N], in x: i8[N], in a: i32[16], in b: i32[16],
        out y: f32[N*16], out z: i8[N*8 + 8], out q: i32[16]) {
      for i in 0..N {
        y[i*16 + lane<16>] = table[bounded(ids[i], 0..V)*16 + lane<16>]
        z[i*8 + lane<8>] = select(index(i + lane<8>) < N, x[i + lane<8>] + 1i8, 2i8)
      }
      z[N*8 + lane<8>] = 0i8
      q[lane<16>] = a[lane<16>] / b[lane<16>] + a[lane<16>] % b[lane<16>]
    }";
    for removed in ["", "-avx512f"] {
        let backend = tilewright_cpu::CpuDevice::without_features(removed).unwrap();
        let listing = crate::support::list(&backend, &program(text));
        let has_leaves =
            tilewright_core::device::Device::target(&backend).cpu().expect("a CPU").vector_bits >= 256;
        assert!(!has_leaves || !listing.contains("are no leaves"), "{removed}:\n{listing}");
    }
}

/// As many sums as registers allow, of padded elements: masks for them would take the last registers.
#[test]
fn padding_takes_no_registers_from_sums() {
    const SUMS: usize = 14;
    let each = |line: &dyn Fn(usize) -> String| (0..SUMS).map(line).collect::<Vec<_>>().join("\n");
    let clear = each(&|at| format!("sums[lane<8> + {}] = 0.0", at * 8));
    let add = each(&|at| {
        let place = at * 8;
        format!(
            "sums[lane<8> + {place}] = mul_add(select((index(i + k) >= 1) & (index(i + k) < 9),
               x[i*112 + k*112 + lane<8> + {place} - 112], 0.0), w[k*8 + lane<8>], sums[lane<8> + {place}])"
        )
    });
    let keep = each(&|at| format!("y[i*112 + lane<8> + {0}] = sums[lane<8> + {0}]", at * 8));
    let text = format!(
        "kernel k(in x: f32[896], in w: f32[24], out y: f32[896]) {{
           buffer sums: f32[112] local
           for i in 0..8 {{ alloc sums {{ {clear} for k in 0..3 {{ {add} }} {keep} }} }}
         }}"
    );
    let program = program(&text);
    let tensors = vec![random(DType::F32, 896, 1), random(DType::F32, 24, 2), zeros(DType::F32, 896)];
    Call { tensors, ..Call::default() }.check(&program);
    let narrow = tilewright_cpu::CpuDevice::without_features("-avx512f").unwrap();
    let listing = crate::support::list(&narrow, &program);
    if tilewright_core::device::Device::target(&narrow).cpu().expect("a CPU").vector_bits >= 256 {
        assert!(listing.contains("cmovne") && !listing.contains("vmaskmov"), "{listing}");
        assert!(!listing.contains("are no leaves"), "{listing}");
    }
}

#[test]
fn indices_as_narrow_integers_and_counts_of_shifts() {
    let program = program(
        "kernel shifts(in x: u8[320], in y: i32[320], out a: u8[320], out b: i32[320], out c: f32[320]) {
           for i in 0..20 {
             a[i*16 + lane<16>] = x[i*16 + lane<16>] >> index((i%8)*1) as u8
             b[i*16 + lane<16>] = (y[i*16 + lane<16>] << index(i*3) as i32) + index(i*70000000 - 300) as i32
             c[i*16 + lane<16>] = (x[i*16 + lane<16>] >> index((i%2)*4) as u8 & 15u8) as i32 as f32 + (index(i*40 - 300) as i8) as f32
           }
         }",
    );
    let tensors = vec![
        random(DType::U8, 320, 1),
        random(DType::I32, 320, 2),
        zeros(DType::U8, 320),
        zeros(DType::I32, 320),
        zeros(DType::F32, 320),
    ];
    Call { tensors, ..Call::default() }.check(&program);
}

/// Tiles of values and sums that are each added to: from a few to more than any machine has registers for.
#[test]
fn intermediates_that_registers_cannot_hold_are_in_memory() {
    for (values, sums) in [(2, 3), (7, 9), (16, 18), (31, 40)] {
        let rows = |count: usize| (0..count).map(|row| format!("lane<16> + {}", 16 * row));
        let line = |count: usize, line: &dyn Fn(&str) -> String| -> String {
            rows(count).map(|row| line(&row)).collect()
        };
        let products = |value: &str| {
            line(sums, &|row| format!("acc[{row}] = acc[{row}] + x[k] * tile[{value}] * w[{row}]\n"))
        };
        let text = format!(
            "kernel crowded(in x: f32[10], in w: f32[1024], out y: f32[{len}]) {{
               buffer acc: f32[{len}] local
               buffer tile: f32[{tile}] local
               alloc acc {{
                 {start}
                 for k in 0..10 {{ alloc tile {{ {fill} {update} }} }}
                 {end}
               }}
             }}",
            len = 16 * sums,
            tile = 16 * values,
            start = line(sums, &|row| format!("acc[{row}] = 0.0\n")),
            fill = line(values, &|row| format!("tile[{row}] = w[k*16 + {row}] * 2.0\n")),
            update = line(values, &products),
            end = line(sums, &|row| format!("y[{row}] = acc[{row}]\n")),
        );
        let tensors = vec![
            exact_elements(DType::F32, 10, 1),
            exact_elements(DType::F32, 1024, 2),
            zeros(DType::F32, 16 * sums),
        ];
        Call { tensors, ..Call::default() }.check(&program(&text));
    }
}
