//! Copies of narrow elements: interleaved, transposed, padded, and of any number of lanes.

use tilewright_core::device::Device;
use tilewright_core::dtype::DType;
use tilewright_core::tensor::{AnyTensor, Random};

use crate::support::{Call, host, list, program};

const NARROW: [DType; 5] = [DType::I8, DType::U8, DType::Bool, DType::F16, DType::BF16];

fn call(dtype: DType, from: i64, into: i64) -> Call {
    let from = AnyTensor::random(dtype, &[from as usize], 7).expect("a small tensor");
    let into = AnyTensor::zeros(dtype, &[into as usize]).expect("a small tensor");
    Call { tensors: vec![from, into], ..Call::default() }
}

/// A constant as a text.
fn constant(dtype: DType, value: u8) -> String {
    match dtype {
        DType::Bool => (value != 0).to_string(),
        DType::F16 | DType::BF16 => format!("{value}.0{dtype}"),
        _ => format!("{value}{dtype}"),
    }
}

#[test]
fn rows_are_interleaved_and_columns_transposed() {
    for dtype in NARROW {
        for group in [2, 4] {
            for columns in [1, 3, 4, 8, 15, 16, 32] {
                let lanes = group * columns;
                let size = 3 * lanes;
                for index in [
                    format!("i*{columns} + lane<{lanes}>%{group}*{} + lane<{lanes}>/{group}", 3 * columns),
                    format!("i*{group} + lane<{lanes}>/{group}*{} + lane<{lanes}>%{group}", 3 * group),
                    format!("i*{lanes} + lane<{lanes}>"),
                    format!("{} - lane<{lanes}> - i", size - 1),
                ] {
                    let text = format!(
                        "kernel copy(in x: {dtype}[{size}], out y: {dtype}[{size}]) {{
                           for i in 0..3 {{ y[i*{lanes} + lane<{lanes}>] = x[{index}] }}
                         }}"
                    );
                    call(dtype, size, size).check(&program(&text));
                }
            }
        }
    }
}

#[test]
fn several_vectors_are_transposed_at_once() {
    for (dtype, rows) in [(DType::I8, 16), (DType::U8, 8), (DType::BF16, 16), (DType::F16, 8)] {
        let group = 4 / dtype.bytes() as i64;
        let (lanes, depth) = (4 * group * rows, 4 * group * 3);
        let text = format!(
            "kernel copy(in x: {dtype}[{size}], out y: {dtype}[{size}]) {{
               for i in 0..3 {{
                 y[i*{lanes} + lane<{lanes}>] =
                   x[lane<{lanes}>/{group}%{rows}*{depth} + i*{step} + lane<{lanes}>/{all}*{group} + lane<{lanes}>%{group}]
               }}
             }}",
            size = rows * depth,
            step = 4 * group,
            all = group * rows,
        );
        call(dtype, rows * depth, rows * depth).check(&program(&text));
    }
}

/// Rows and columns are padded to whole groups; the padding depends on where the loops are.
#[test]
fn what_is_padded_is_not_read() {
    for dtype in NARROW {
        for (rows, columns) in [(1, 1), (3, 16), (4, 15), (7, 33), (8, 32), (9, 47)] {
            let (groups, vectors) = ((rows + 3) / 4, (columns + 15) / 16);
            let value = constant(dtype, 3);
            for (chosen, lanes) in [("interleaved", 64), ("transposed", 64), ("part", 24)] {
                let (row, column) = (format!("(k*4 + lane<{lanes}>%4)"), format!("(n*16 + lane<{lanes}>/4)"));
                let index = match chosen {
                    "transposed" => format!("{column}*{rows} + {row}"),
                    _ => format!("{row}*{columns} + {column}"),
                };
                let text = format!(
                    "kernel pad(in x: {dtype}[{len}], inout y: {dtype}[{size}]) {{
                       for k in 0..{groups} {{ for n in 0..{vectors} {{
                         y[(k*{vectors} + n)*64 + lane<{lanes}>] =
                           select((index({row}) < {rows}) & (index({column}) < {columns}), x[{index}], {value})
                       }} }}
                     }}",
                    len = rows * columns,
                    size = groups * vectors * 64,
                );
                call(dtype, rows * columns, groups * vectors * 64).check(&program(&text));
            }
        }
    }
}

#[test]
fn channels_are_padded_to_groups() {
    for dtype in NARROW {
        for (channels, pixels) in [(3, 32), (1, 16), (2, 20), (5, 16), (6, 8), (7, 3)] {
            let group = (channels + 3) / 4 * 4;
            let lanes = group * pixels;
            let text = format!(
                "kernel pad(in x: {dtype}[{len}], inout y: {dtype}[{size}]) {{
                   for i in 0..2 {{
                     y[i*{lanes} + lane<{lanes}>] = select(
                       index(lane<{lanes}>%{group}) >= {channels}, {zero},
                       x[(i*{pixels} + lane<{lanes}>/{group})*{channels} + lane<{lanes}>%{group}])
                   }}
                 }}",
                len = 2 * pixels * channels,
                size = 2 * lanes,
                zero = constant(dtype, 0),
            );
            call(dtype, 2 * pixels * channels, 2 * lanes).check(&program(&text));
        }
    }
}

#[test]
fn random_orders_of_runs_are_kept() {
    let mut random = Random::new(41);
    for case in 0..60 {
        let dtype = NARROW[case % NARROW.len()];
        let lanes = [4, 8, 12, 20, 32, 36, 64, 100, 128][random.below(9) as usize];
        let divisor = [1, 2, 3, 4, 8, 16][random.below(6) as usize];
        let (inner, outer) =
            ([1, 1, 1, 2, 5][random.below(5) as usize], [1, 4, 9, 16, 40][random.below(5) as usize]);
        let (shift, swapped) = (random.below(4), random.below(2) == 0);
        let (quotient, rest) = (format!("lane<{lanes}>/{divisor}"), format!("lane<{lanes}>%{divisor}"));
        let (first, second) = if swapped { (&rest, &quotient) } else { (&quotient, &rest) };
        let from = lanes * (inner + outer) + 20;
        let text = format!(
            "kernel copy(N, in x: {dtype}[{from}], out y: {dtype}[{into}]) {{
               for i in 0..N {{
                 y[i*{lanes} + lane<{lanes}>] = x[{first}*{outer} + {second}*{inner} + i + {shift}]
               }}
             }}",
            into = 5 * lanes,
        );
        let call = Call { dims: vec![5], ..call(dtype, from, 5 * lanes) };
        call.check(&program(&text));
    }
}

#[test]
fn packing_takes_no_byte_on_its_own() {
    let width = host().target().cpu().expect("a CPU").vector_bits as usize / 8;
    if width < 32 {
        return;
    }
    let columns = width / 4;
    let text = format!(
        "kernel pack(in x: i8[4096], out y: i8[4096]) {{
           for k in 0..{groups} {{ for n in 0..{columns} {{
             y[k*{row} + n*{width} + lane<{width}>] = x[k*{row} + n*{columns} + lane<{width}>%4*{quarter} + lane<{width}>/4]
           }} }}
         }}",
        groups = 4096 / (width * columns),
        row = width * columns,
        quarter = width * columns / 4,
    );
    let listing = list(host(), &program(&text));
    assert!(listing.contains("vpshufb") && !listing.contains("movzx"), "{listing}");
}

/// Rows of a tile inside the padding that peeled loops leave out; the other branch has two constants, which is no copy.
#[test]
fn what_a_branch_says_is_known_to_the_copy_in_it() {
    let row = "(p/4)*12544 + v*224 + max(0, 3 - (p/4)*56)*224";
    let column = "(p%4)*56 + u*8 + lane<52>/4";
    let place = "p*22204 + u*3172 + v*52 + lane<52> + max(0, 3 - (p/4)*56)*52";
    let element = format!("x[{row} + {column} + (lane<52>%4)*50176 - 675]");
    let text = format!(
        "kernel pad(in x: u8[150528], inout y: u8[355264]) {{
           parallel for p in 0..16 {{
             for u in 0..7 {{
               for v in 0..min(227 - (p/4)*56 - max(0, 3 - (p/4)*56), 61 - max(0, 3 - (p/4)*56)) {{
                 if (2 < index((p%4)*56 + u*8)) & (index((p%4)*56 + u*8) < 215) {{
                   y[{place}] = select(index(lane<52>%4) < 3, {element}, 0u8)
                 }} else {{
                   y[{place}] = select(index(lane<52>%4) < 3,
                     select((index({column} - 3) >= 0) & (index({column} - 3) < 224), {element}, 121u8), 0u8)
                 }}
               }}
             }}
           }}
         }}"
    );
    let program = program(&text);
    call(DType::U8, 150_528, 355_264).check(&program);
    let listing = list(host(), &program);
    let copies = listing.lines().filter(|line| line.contains("vpshufb") && line.contains("zmm")).count();
    let has_avx512 = listing.contains("zmm");
    assert!(copies > 0 || !has_avx512, "the inner part is no copy of vectors:\n{listing}");
}

/// Lanes that no register holds as a whole, in rows that are padding, and whose bounds the conditions give.
#[test]
fn conditions_of_all_lanes_decide_for_each_part() {
    for dtype in NARROW {
        let value = constant(dtype, 3);
        for lanes in [4, 5, 12, 33, 40, 64, 100] {
            for column in ["1", "1 + lane<L>%2"] {
                let column = column.replace('L', &lanes.to_string());
                let text = format!(
                    "kernel rows(N, in x: {dtype}[{lanes}*N + 2], out y: {dtype}[3*{lanes}*N]) {{
                       for i in 0..N {{
                         for k in 0..3 {{
                           y[i*{three} + k*{lanes} + lane<{lanes}>] = select(
                             (index(i + k - 1) >= 0) & (index(i + k - 1) < N), x[(i + k - 1)*{lanes} + lane<{lanes}>/2 + {column}], {value})
                         }}
                       }}
                     }}",
                    three = 3 * lanes,
                );
                for rows in [0, 1, 4] {
                    let plain = call(dtype, lanes * rows + 2, 3 * lanes * rows);
                    Call { dims: vec![rows], ..plain }.check(&program(&text));
                }
            }
        }
    }
}

/// Channels of a padded plane of any size: no proof shows that an element inside the plane lies inside the buffer, and no lane needs a
/// check of its own.
#[test]
fn planes_of_any_size_are_padded_by_vectors() {
    for dtype in NARROW {
        let value = constant(dtype, 3);
        for channels in [4, 7, 16, 48, 100] {
            let row = "(i + k - 1)";
            let text = format!(
                "kernel pad(H, W, in x: {dtype}[H*W*{channels}], out y: {dtype}[3*H*W*{channels}]) {{
                   for i in 0..H {{ for j in 0..W {{ for k in 0..3 {{
                     y[(i*W*3 + j*3 + k)*{channels} + lane<{channels}>] = select(
                       (index({row}) >= 0) & (index({row}) < H) & (index(j + 1) < W),
                       x[{row}*W*{channels} + (j + 1)*{channels} + lane<{channels}>], {value})
                   }} }} }}
                 }}"
            );
            let program = program(&text);
            for (height, width) in [(0, 3), (1, 1), (2, 5), (4, 3)] {
                let plain = call(dtype, height * width * channels, 3 * height * width * channels);
                Call { dims: vec![height, width], ..plain }.check(&program);
            }
            let listing = list(host(), &program);
            let count = listing.lines().count() as i64;
            assert!(count < 400 + 2 * channels, "{channels} of {dtype}: {count} lines\n{listing}");
        }
    }
}
