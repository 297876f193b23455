//! Products of matrices by `mma`, for each type of elements, and `stmatrix`. The places of elements in the registers of lanes are
//! written here as the PTX manual gives them by type and shape, so that they are independent of those of the simulator.

use crate::support::{Param, Random, launch, module_for, words};

/// A type of elements: its name, its bits in a register, and the encoding of a small integer.
#[derive(Clone, Copy)]
struct Element {
    name: &'static str,
    bits: usize,
    encode: fn(i64) -> u64,
    /// The smallest and the largest integer that tests use.
    range: (i64, i64),
}

/// An integer as a floating-point number with these bits of exponent and fraction.
fn float(value: i64, exponent_bits: u32, fraction_bits: u32) -> u64 {
    let magnitude = value.unsigned_abs();
    let sign = u64::from(value < 0) << (exponent_bits + fraction_bits);
    if magnitude == 0 {
        return sign;
    }
    let exponent = magnitude.ilog2();
    let bias = (1 << (exponent_bits - 1)) - 1;
    let fraction = magnitude << (fraction_bits.saturating_sub(exponent)) & ((1 << fraction_bits) - 1);
    sign | (u64::from(exponent) + bias) << fraction_bits | fraction
}

const F16: Element = Element { name: "f16", bits: 16, encode: |v| float(v, 5, 10), range: (-9, 9) };
const BF16: Element = Element { name: "bf16", bits: 16, encode: |v| float(v, 8, 7), range: (-9, 9) };
const TF32: Element = Element { name: "tf32", bits: 32, encode: |v| float(v, 8, 23), range: (-9, 9) };
const E4M3: Element = Element { name: "e4m3", bits: 8, encode: |v| float(v, 4, 3), range: (-8, 8) };
const E5M2: Element = Element { name: "e5m2", bits: 8, encode: |v| float(v, 5, 2), range: (-4, 4) };
const S8: Element = Element { name: "s8", bits: 8, encode: |v| v as u8 as u64, range: (-128, 127) };
const U8: Element = Element { name: "u8", bits: 8, encode: |v| v as u64, range: (0, 255) };
const S4: Element = Element { name: "s4", bits: 4, encode: |v| v as u64 & 15, range: (-8, 7) };
const U4: Element = Element { name: "u4", bits: 4, encode: |v| v as u64, range: (0, 15) };
const F64: Element = Element { name: "f64", bits: 64, encode: |v| (v as f64).to_bits(), range: (-99, 99) };
const F32: Element =
    Element { name: "f32", bits: 32, encode: |v| (v as f32).to_bits() as u64, range: (-99, 99) };
const S32: Element = Element { name: "s32", bits: 32, encode: |v| v as u32 as u64, range: (-9999, 9999) };

/// The row and the column of element `i` of a lane's part of A, for shapes with 8 or 16 rows.
fn place_a(lane: usize, i: usize, bits: usize, m: usize) -> (usize, usize) {
    let (group, thread) = (lane >> 2, lane % 4);
    match (bits, m) {
        (4, 8) => (group, thread * 8 + i),
        (4, _) => {
            let row = if i < 8 || (16..24).contains(&i) { group } else { group + 8 };
            (row, thread * 8 + (i & 7) + if i < 16 { 0 } else { 32 })
        }
        (8, 8) => (group, thread * 4 + i),
        (8, _) => {
            let row = if i < 4 || (8..12).contains(&i) { group } else { group + 8 };
            (row, thread * 4 + (i & 3) + if i < 8 { 0 } else { 16 })
        }
        (16, _) => {
            let row = if i < 2 || (4..6).contains(&i) { group } else { group + 8 };
            (row, thread * 2 + (i & 1) + if i < 4 { 0 } else { 8 })
        }
        (_, 8) => (group, thread),
        _ => (if i.is_multiple_of(2) { group } else { group + 8 }, thread + 4 * (i / 2)),
    }
}

/// The row (along k) and the column of element `i` of a lane's part of B.
fn place_b(lane: usize, i: usize, bits: usize) -> (usize, usize) {
    let (group, thread) = (lane >> 2, lane % 4);
    let row = match bits {
        4 => thread * 8 + (i & 7) + if i < 8 { 0 } else { 32 },
        8 => thread * 4 + (i & 3) + if i < 4 { 0 } else { 16 },
        16 => thread * 2 + (i & 1) + if i < 2 { 0 } else { 8 },
        _ => thread + 4 * i,
    };
    (row, group)
}

/// The row and the column of element `i` of a lane's part of C and D.
fn place_c(lane: usize, i: usize) -> (usize, usize) {
    let (group, thread) = (lane >> 2, lane % 4);
    (if i < 2 { group } else { group + 8 }, thread * 2 + (i & 1))
}

/// The registers of all lanes, one lane after the other, in which a matrix of small integers lies.
fn pack(element: Element, count: usize, at: impl Fn(usize, usize) -> i64) -> Vec<u8> {
    let register_bits = element.bits.max(32);
    let mut bytes = Vec::new();
    for lane in 0..32 {
        for register in 0..count * element.bits / register_bits {
            let per_register = register_bits / element.bits;
            let value = (0..per_register).fold(0_u64, |value, part| {
                let bits = (element.encode)(at(lane, register * per_register + part));
                value | bits << (part * element.bits)
            });
            bytes.extend(&value.to_le_bytes()[..register_bits / 8]);
        }
    }
    bytes
}

/// The registers of a lane that hold a part of a matrix.
struct Registers {
    /// The type of a register, and its bytes.
    ty: &'static str,
    bytes: usize,
    names: Vec<String>,
}

impl Registers {
    /// The registers of the matrix with this name, which takes `bytes_of_all` bytes in all lanes.
    fn of(matrix: &str, element: Element, bytes_of_all: usize) -> Registers {
        let (ty, bytes) = match element.name {
            "f64" => ("f64", 8),
            "f32" => ("f32", 4),
            _ => ("b32", 4),
        };
        let names = (0..bytes_of_all / 32 / bytes).map(|number| format!("%{matrix}{number}")).collect();
        Registers { ty, bytes, names }
    }

    fn list(&self) -> String {
        self.names.join(", ")
    }

    /// Declares them.
    fn declaration(&self) -> String {
        format!(".reg .{} {};\n", self.ty, self.list())
    }

    /// Moves each between it and its place behind the address in a register, by text with `~` for its type, `#` for its name and
    /// `@` for the place.
    fn moves(&self, address: &str, text: &str) -> String {
        let lane_bytes = self.bytes * self.names.len();
        let moved = self.names.iter().enumerate().map(|(number, name)| {
            let place = format!("[%rd5+{}]", number * self.bytes);
            text.replace('~', self.ty).replace('@', &place).replace('#', name) + "\n"
        });
        format!("mad.wide.u32 %rd5, %r1, {lane_bytes}, {address};\n") + &moved.collect::<String>()
    }
}

/// Multiplies random matrices of small integers, with `modifiers` between the shape and the types.
#[track_caller]
fn check(target: &str, [m, n, k]: [usize; 3], modifiers: &str, types: [Element; 4]) {
    let [d, a, b, c] = types;
    let mut random = Random(m as u64 + 100 * k as u64 + 7);
    let mut matrix = |rows: usize, columns: usize, (low, high): (i64, i64)| -> Vec<i64> {
        (0..rows * columns).map(|_| low + (random.next() % (high - low + 1) as u64) as i64).collect()
    };
    let (left, right, start) = (matrix(m, k, a.range), matrix(k, n, b.range), matrix(m, n, c.range));
    let buffers = [
        pack(a, m * k / 32, |lane, i| {
            let (row, column) = place_a(lane, i, a.bits, m);
            left[row * k + column]
        }),
        pack(b, k * n / 32, |lane, i| {
            let (row, column) = place_b(lane, i, b.bits);
            right[row * n + column]
        }),
        pack(c, m * n / 32, |lane, i| {
            let (row, column) = place_c(lane, i);
            start[row * n + column]
        }),
    ];
    let expected = pack(d, m * n / 32, |lane, i| {
        let (row, column) = place_c(lane, i);
        start[row * n + column] + (0..k).map(|at| left[row * k + at] * right[at * n + column]).sum::<i64>()
    });
    let shape = format!("m{m}n{n}k{k}");
    let names = types.map(|element| element.name).join(".");
    let instruction = format!("mma.sync.aligned.{shape}.row.col{modifiers}.{names}");
    let registers = [
        Registers::of("d", d, expected.len()),
        Registers::of("a", a, buffers[0].len()),
        Registers::of("b", b, buffers[1].len()),
        Registers::of("c", c, buffers[2].len()),
    ];
    let mut body: String = registers.iter().map(Registers::declaration).collect();
    for (registers, address) in registers[1..].iter().zip(["%rd1", "%rd2", "%rd3"]) {
        body.push_str(&registers.moves(address, "ld.global.~ #, @;"));
    }
    let operands: Vec<String> =
        registers.iter().map(|registers| format!("{{{}}}", registers.list())).collect();
    body.push_str(&format!("{instruction} {};\n", operands.join(", ")));
    body.push_str(&registers[0].moves("%rd4", "st.global.~ @, #;"));
    let text = module_for(
        target,
        &format!(
            ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d) {{
            .reg .b32 %r1; .reg .b64 %rd<6>;
            ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u64 %rd4, [d];
            mov.u32 %r1, %tid.x;
            {body} ret; }}"
        ),
    );
    let params = [
        Param::Data(&buffers[0]),
        Param::Data(&buffers[1]),
        Param::Data(&buffers[2]),
        Param::Empty(expected.len() as u64),
    ];
    let (report, results) = launch(&text, "k", [[1; 3], [32, 1, 1]], 0, &params);
    assert_eq!(report.findings, [], "{instruction}");
    assert_eq!(results[3], expected, "{instruction}");
}

#[test]
fn products_of_halves() {
    for shape in [[16, 8, 8], [16, 8, 16]] {
        check("sm_80", shape, "", [F32, F16, F16, F32]);
        check("sm_80", shape, "", [F32, BF16, BF16, F32]);
    }
    // Sums of halves have to be small to be exact.
    let small = |element: Element| Element { range: (-3, 3), ..element };
    check("sm_80", [16, 8, 16], "", [small(F16), small(F16), small(F16), small(F16)]);
}

#[test]
fn products_of_tf32() {
    check("sm_80", [16, 8, 4], "", [F32, TF32, TF32, F32]);
    check("sm_80", [16, 8, 8], "", [F32, TF32, TF32, F32]);
}

#[test]
fn products_of_eight_bit_floats() {
    check("sm_89", [16, 8, 32], "", [F32, E4M3, E4M3, F32]);
    check("sm_89", [16, 8, 32], "", [F32, E5M2, E4M3, F32]);
}

#[test]
fn products_of_bytes() {
    for shape in [[8, 8, 16], [16, 8, 16], [16, 8, 32]] {
        for (a, b) in [(S8, S8), (U8, U8), (S8, U8), (U8, S8)] {
            check("sm_80", shape, "", [S32, a, b, S32]);
        }
    }
}

#[test]
fn products_of_four_bits() {
    for shape in [[8, 8, 32], [16, 8, 32], [16, 8, 64]] {
        for (a, b) in [(S4, S4), (U4, U4), (S4, U4), (U4, S4)] {
            check("sm_80", shape, "", [S32, a, b, S32]);
        }
    }
}

#[test]
fn products_of_doubles() {
    check("sm_80", [8, 8, 4], "", [F64, F64, F64, F64]);
    for k in [4, 8, 16] {
        check("sm_90", [16, 8, k], "", [F64, F64, F64, F64]);
    }
}

/// Sums at the ends of the range wrap around, or stay there.
#[test]
fn integer_sums_wrap_or_saturate() {
    for (modifier, expected) in [("", i32::MAX.wrapping_add(16)), (".satfinite", i32::MAX)] {
        let text = module_for(
            "sm_80",
            &format!(
                ".visible .entry k(.param .u64 out) {{
                .reg .b32 %r<8>; .reg .b64 %rd<4>;
                ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 8, %rd1;
                mov.u32 %r2, 0x01010101; mov.u32 %r3, 0x7fffffff;
                mma.sync.aligned.m8n8k16.row.col{modifier}.s32.s8.s8.s32 {{%r4, %r5}}, {{%r2}}, {{%r2}}, {{%r3, %r3}};
                st.global.v2.u32 [%rd2], {{%r4, %r5}}; ret; }}"
            ),
        );
        let (report, results) = launch(&text, "k", [[1; 3], [32, 1, 1]], 0, &[Param::Empty(256)]);
        assert_eq!(report.findings, []);
        assert_eq!(words(&results[0]), [expected as u32; 64]);
    }
}

/// `stmatrix` puts the elements of lanes where `ldmatrix` finds them: two of a row in each lane, transposed or not.
#[test]
fn matrices_are_stored() {
    for transposed in [false, true] {
        let trans = if transposed { ".trans" } else { "" };
        let text = module_for(
            "sm_90",
            &format!(
                ".visible .entry k(.param .u64 out) {{
                .shared .align 16 .b8 tile[256]; .reg .b32 %r<12>; .reg .b64 %rd<4>;
                ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, tile;
                and.b32 %r3, %r1, 15; shl.b32 %r3, %r3, 4; add.u32 %r3, %r2, %r3;
                shl.b32 %r4, %r1, 1; add.u32 %r5, %r4, 1; shl.b32 %r5, %r5, 16; or.b32 %r4, %r4, %r5;
                add.u32 %r6, %r4, 0x00400040;
                stmatrix.sync.aligned.m8n8.x2{trans}.shared.b16 [%r3], {{%r4, %r6}};
                bar.warp.sync 0xffffffff;
                shl.b32 %r7, %r1, 3; add.u32 %r8, %r2, %r7; ld.shared.v2.u32 {{%r9, %r10}}, [%r8];
                mad.wide.u32 %rd2, %r1, 8, %rd1; st.global.v2.u32 [%rd2], {{%r9, %r10}}; ret; }}"
            ),
        );
        let (report, results) = launch(&text, "k", [[1; 3], [32, 1, 1]], 0, &[Param::Empty(256)]);
        assert_eq!(report.findings, []);
        let stored: Vec<u16> = results[0].chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect();
        for (at, found) in stored.into_iter().enumerate() {
            let (matrix, row, column) = (at / 64, at / 8 % 8, at % 8);
            let (row, column) = if transposed { (column, row) } else { (row, column) };
            // Lane `4·row + column/2` has the elements `2·lane` and `2·lane + 1`, which number the matrix by rows.
            assert_eq!(usize::from(found), 64 * matrix + 8 * row + column, "{trans}");
        }
    }
}
