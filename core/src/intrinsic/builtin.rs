//! The intrinsics that come with the crate.

use crate::intrinsic::TensorIntrinsic;

/// The lanes of `vpdpbusd` on 512, 256 and 128 bits.
const DOT_LANES: [u32; 3] = [16, 8, 4];

/// Every built-in intrinsic.
pub(super) fn intrinsics() -> Vec<TensorIntrinsic> {
    let describe = |lanes: &u32| TensorIntrinsic::parse(&dot_product(*lanes)).expect("well described");
    DOT_LANES.iter().map(describe).collect()
}

/// `vpdpbusd` of AVX-512 VNNI and AVX-VNNI, with the unsigned operand broadcast: in each 32-bit lane, the sum of four
/// products of an unsigned and a signed byte is added to the lane (Intel 64 and IA-32 Architectures Software
/// Developer's Manual, volume 2). The sum wraps; `vpdpbusds` is the one that saturates.
fn dot_product(lanes: u32) -> String {
    format!(
        "kernel vpdpbusd_{lanes}(in a: u8[4], in b: i8[{lanes}, 4], inout c: i32[{lanes}]) {{
           for i in 0..{lanes} {{
             for k in 0..4 {{
               block dot(vi: spatial {lanes} = i, vk: reduce 4 = k) {{
                 c[vi] = c[vi] + a[vk] as i32 * b[vi, vk] as i32
               }}
             }}
           }}
         }}"
    )
}
