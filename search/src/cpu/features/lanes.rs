//! The vectors that a statement on lanes takes.

use tilewright_core::analysis::block::stores;
use tilewright_core::expr::{BinaryOp, Expr, ExprKind};
use tilewright_core::program::Program;
use tilewright_core::stmt::{Block, Stmt, Store};
use tilewright_core::target::CpuTarget;

/// The bytes of elements that arithmetic is done on, at least: narrower ones are widened.
const LEAST_COMPUTED: usize = 4;

/// The bits of the vectors whose instructions leave lanes out.
const MASKED_BITS: u32 = 512;

/// The bytes of a lane of a block's statements: those of the widest type that they compute with, or of the elements that they move.
pub(super) fn bytes_of_lane(program: &Program, block: &Block) -> usize {
    let bytes = |store: &Store| {
        let stored = program.buffer(store.buffer).dtype.bytes();
        match computed_bytes(&store.value) {
            Some(computed) if !matches!(block.body, Stmt::Intrinsic(_)) => computed.max(stored),
            _ => stored,
        }
    };
    stores(&block.body).into_iter().map(bytes).max().unwrap_or(LEAST_COMPUTED)
}

/// The bytes of the widest type that a value is computed with; `None` where elements are only moved, or smaller and larger ones chosen.
fn computed_bytes(value: &Expr) -> Option<usize> {
    match value.kind() {
        ExprKind::Constant(_) | ExprKind::Scalar(_) | ExprKind::Index(_) | ExprKind::Load(..) => None,
        ExprKind::Select(_, then, otherwise) => computed_bytes(then).max(computed_bytes(otherwise)),
        ExprKind::Binary(BinaryOp::Min | BinaryOp::Max, a, b) if value.dtype().bytes() < LEAST_COMPUTED => {
            computed_bytes(a).max(computed_bytes(b))
        }
        _ => {
            let operands = value.operands().into_iter();
            let widest =
                operands.map(|operand| computed_bytes(operand).max(Some(operand.dtype().bytes()))).max();
            Some(widest.flatten().unwrap_or(0).max(value.dtype().bytes()).max(LEAST_COMPUTED))
        }
    }
}

/// The vectors, and pieces of vectors, that `extent` lanes of some bytes take. Elements of fewer than 32 bits have no accesses that leave lanes
/// out but with AVX-512: pieces of 4 lanes and more, and single lanes, take the rest.
pub(super) fn vectors(cpu: &CpuTarget, extent: f64, bytes: usize, has_narrow_elements: bool) -> f64 {
    let full = f64::from(cpu.lanes(bytes));
    let rest = extent % full;
    if !has_narrow_elements || cpu.vector_bits >= MASKED_BITS || rest == 0.0 || extent < 2.0 {
        return (extent / full).ceil().max(1.0);
    }
    let rest = rest as u64;
    (extent / full).floor() + f64::from((rest / 4).count_ones()) + (rest % 4) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_that_are_left_over_take_pieces_where_elements_are_narrow() {
        let generic = CpuTarget::generic();
        let [masked, narrow] = [512, 256].map(|vector_bits| CpuTarget { vector_bits, ..generic.clone() });
        assert_eq!(
            [(30.0, true), (32.0, true)].map(|(extent, own)| vectors(&masked, extent, 4, own)),
            [2.0; 2]
        );
        let of_narrow = |extent| vectors(&narrow, extent, 4, true);
        assert_eq!([1.0, 8.0, 12.0, 24.0, 30.0, 31.0].map(of_narrow), [1.0, 1.0, 2.0, 3.0, 6.0, 7.0]);
        assert_eq!(vectors(&narrow, 30.0, 4, false), 4.0);
    }

    #[test]
    fn lanes_are_as_wide_as_what_is_computed() {
        let bytes = |text: &str| {
            let program: Program = format!(
                "kernel k(in x: u8[64], in y: i32[64], in f: f64[64], out z: u8[64]) {{
                   for i in 0..64 {{ block z(vi: spatial 64 = i) {{ z[vi] = {text} }} }}
                 }}"
            )
            .parse()
            .unwrap();
            let blocks = tilewright_core::analysis::scope::blocks(&program.body);
            bytes_of_lane(&program, blocks[0])
        };
        assert_eq!(bytes("x[vi]"), 1);
        assert_eq!(bytes("max(x[vi], 3u8)"), 1);
        assert_eq!(bytes("select(index(vi) < 9, x[vi], 0u8)"), 1);
        assert_eq!(bytes("x[vi] + 1u8"), 4);
        assert_eq!(bytes("(y[vi] as f32 * 0.5) as u8"), 4);
        assert_eq!(bytes("f[vi] as u8"), 8);
    }
}
