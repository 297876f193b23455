//! A machine whose tensor intrinsics are dot products of four unsigned and four signed bytes.

use std::sync::Arc;

use tilewright_core::intrinsic::{IntrinsicSet, TensorIntrinsic};
use tilewright_core::target::{CpuTarget, Target};

/// The dot product on `lanes` lanes: one group of four bytes times a group of each lane.
fn dot_product(lanes: usize) -> TensorIntrinsic {
    let text = format!(
        "kernel vpdpbusd_{lanes}(in a: u8[4], in b: i8[{lanes}, 4], inout c: i32[{lanes}]) {{
           for i in 0..{lanes} {{
             for k in 0..4 {{
               block dot(vi: spatial {lanes} = i, vk: reduce 4 = k) {{
                 c[vi] = c[vi] + a[vk] as i32 * b[vi, vk] as i32
               }}
             }}
           }}
         }}"
    );
    TensorIntrinsic::parse(&text).expect("a description")
}

/// A plain machine that knows `vpdpbusd_16`, `vpdpbusd_8` and `vpdpbusd_4`.
pub(crate) fn target() -> Arc<Target> {
    let descriptions = IntrinsicSet::new([16, 8, 4].map(dot_product)).expect("distinct names");
    Arc::new(CpuTarget { descriptions, ..CpuTarget::generic() }.into())
}
