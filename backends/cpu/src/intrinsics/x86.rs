//! Descriptions of instructions of x86: AVX-512 VNNI, AVX-VNNI, AVX-VNNI-INT8, AVX512-BF16 and AMX.

use tilewright_core::dtype::DType;
use tilewright_core::intrinsic::TensorIntrinsic;

/// The lanes of dot products on 512, 256 and 128 bits.
const DOT_LANES: [u32; 3] = [16, 8, 4];

/// The dot products of bytes: the names, and the types of the bytes that are broadcast and of those of the lanes.
const DOT_PRODUCTS: [(&str, DType, DType); 4] = [
    ("vpdpbusd", DType::U8, DType::I8),
    ("vpdpbssd", DType::I8, DType::I8),
    ("vpdpbsud", DType::I8, DType::U8),
    ("vpdpbuud", DType::U8, DType::U8),
];

/// Dot products of bytes of equal signs with an offset: the names, the type of the bytes, and what is added to those that are
/// broadcast and to those of the lanes.
const OFFSET_PRODUCTS: [(&str, DType, [i32; 2]); 4] = [
    ("vpdpbssd_offset_a", DType::I8, [128, 0]),
    ("vpdpbssd_offset_b", DType::I8, [0, 128]),
    ("vpdpbuud_offset_a", DType::U8, [-128, 0]),
    ("vpdpbuud_offset_b", DType::U8, [0, -128]),
];

/// The products of tiles of bytes: the names, and the types of the rows' and of the columns' bytes.
const BYTE_TILES: [(&str, DType, DType); 4] = [
    ("tdpbusd", DType::U8, DType::I8),
    ("tdpbssd", DType::I8, DType::I8),
    ("tdpbsud", DType::I8, DType::U8),
    ("tdpbuud", DType::U8, DType::U8),
];

/// All descriptions.
pub(super) fn descriptions() -> Vec<TensorIntrinsic> {
    let dots = DOT_PRODUCTS.iter().flat_map(|(name, a, b)| {
        DOT_LANES.map(|lanes| dot_product(name, [*a, *b, DType::I32], [0; 2], lanes))
    });
    let offsets = OFFSET_PRODUCTS.iter().flat_map(|(name, byte, offsets)| {
        DOT_LANES.map(|lanes| dot_product(name, [*byte, *byte, DType::I32], *offsets, lanes))
    });
    let half_dots = DOT_LANES
        .map(|lanes| dot_product("vdpbf16ps", [DType::BF16, DType::BF16, DType::F32], [0; 2], lanes));
    let nibbles = DOT_LANES.map(nibble_product);
    let bytes = BYTE_TILES.iter().map(|(name, a, b)| tile_product(name, *a, *b, DType::I32));
    let halves = [tile_product("tdpbf16ps", DType::BF16, DType::BF16, DType::F32)];
    let describe = |text: String| TensorIntrinsic::parse(&text).expect("well described");
    dots.chain(offsets).chain(nibbles).chain(half_dots).chain(bytes).chain(halves).map(describe).collect()
}

/// `vpdpbusd` of AVX-512 VNNI and AVX-VNNI, with the unsigned operand broadcast: in each 32-bit lane, the sum of four
/// products of an unsigned and a signed byte is added to the lane (Intel 64 and IA-32 Architectures Software
/// Developer's Manual, volume 2). The sum wraps; `vpdpbusds` is the one that saturates. `vpdpbssd`, `vpdpbsud` and
/// `vpdpbuud` of AVX-VNNI-INT8 take operands of other signs.
///
/// The first can do what those do to numbers with an offset: a signed byte that is 128 larger is an unsigned one with its highest
/// bit flipped, and an unsigned byte that is 128 smaller a signed one.
///
/// `vdpbf16ps` of AVX512-BF16 does the same with two products of `bf16`, of which it adds the second first, then the
/// first, each with a fused multiply-add that takes denormals for zero and makes none, whatever the rounding mode is set to
/// (same manual). The consequences for the result are those of [`tile_product`].
fn dot_product(name: &str, [a, b, c]: [DType; 3], offsets: [i32; 2], lanes: u32) -> String {
    let group = 4 / a.bytes();
    let factor = |element: &str, offset: i32| match offset {
        0 => format!("{element} as {c}"),
        _ => format!("({element} as {c} + {offset}{c})"),
    };
    let (first, second) = (factor("a[vk]", offsets[0]), factor("b[vi, vk]", offsets[1]));
    format!(
        "kernel {name}_{lanes}(in a: {a}[{group}], in b: {b}[{lanes}, {group}], inout c: {c}[{lanes}]) {{
           for i in 0..{lanes} {{
             for k in 0..{group} {{
               block dot(vi: spatial {lanes} = i, vk: reduce {group} = k) {{
                 c[vi] = c[vi] + {first} * {second}
               }}
             }}
           }}
         }}"
    )
}

/// Two of [`dot_product`]'s, whose unsigned bytes are the low and the high halves of the same bytes: how models with weights of 4 bits
/// store them.
fn nibble_product(lanes: u32) -> String {
    format!(
        "kernel vpdpbsud_nibbles_{lanes}(in x: i8[4], in y: i8[4], in b: u8[{lanes}, 4], inout c: i32[{lanes}]) {{
           for i in 0..{lanes} {{
             for k in 0..4 {{
               block dot(vi: spatial {lanes} = i, vk: reduce 4 = k) {{
                 c[vi] = c[vi] + (x[vk] as i32 * (b[vi, vk] & 15u8) as i32 + y[vk] as i32 * (b[vi, vk] >> 4u8) as i32)
               }}
             }}
           }}
         }}"
    )
}

/// Rows and columns of a tile of AMX, and the 4-byte groups of a row.
const TILE: usize = 16;

/// The instructions of AMX-INT8 and AMX-BF16 on full tiles: 16 rows of 64 bytes times 16 columns of 64 bytes, added
/// to 16 × 16 lanes of 32 bits. The columns of the second operand are packed: next to one another stand the bytes of
/// neighbouring columns, four (or two bf16) of each at a time. Rows may lie any multiple of 4 bytes apart.
///
/// Sums of bytes wrap. `tdpbf16ps` sums the products of the first and of the second halves of all pairs apart from
/// each other, each with fused multiply-adds, then adds both to the lane; it takes denormals for zero and makes
/// none (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2). A product of two bf16 is exact in
/// f32, so that only the order of the additions differs from the description's: with K products in all the result is
/// within `K · 2^-24 · Σ |a · b|` of the exact sum, as every other order is, and is the same where all partial sums
/// are exact.
fn tile_product(name: &str, a: DType, b: DType, c: DType) -> String {
    let group = 4 / a.bytes();
    format!(
        "kernel {name}(A, B, C, in a: {a}[{TILE}, A, {group}], in b: {b}[{TILE}, B, {group}], inout c: {c}[{TILE}, C]) {{
           for m in 0..{TILE} {{
             for n in 0..{TILE} {{
               for k in 0..{TILE} {{
                 for r in 0..{group} {{
                   block dot(vm: spatial {TILE} = m, vn: spatial {TILE} = n,
                             vk: reduce {TILE} = k, vr: reduce {group} = r) {{
                     c[vm, vn] = c[vm, vn] + a[vm, vk, vr] as {c} * b[vk, vn, vr] as {c}
                   }}
                 }}
               }}
             }}
           }}
         }}"
    )
}
