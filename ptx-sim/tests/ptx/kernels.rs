//! Whole kernels against their definitions.

use crate::support::{Param, Random, bytes_of, floats, launch, module, words};

const SGEMM: &str = include_str!("../kernels/sgemm.ptx");

#[test]
fn product_of_matrices() {
    let n = 48;
    let mut random = Random(1);
    let (a, b) = (random.units(n * n), random.units(n * n));
    let params = [
        Param::Data(&bytes_of(&a)),
        Param::Data(&bytes_of(&b)),
        Param::Empty((4 * n * n) as u64),
        Param::Word(n as u32),
    ];
    let (report, buffers) = launch(SGEMM, "sgemm", [[3, 3, 1], [16, 16, 1]], 0, &params);
    assert_eq!(report.findings, []);
    let c = floats(&buffers[2]);
    for row in 0..n {
        for column in 0..n {
            let sum = (0..n).fold(0.0_f32, |sum, k| a[row * n + k].mul_add(b[k * n + column], sum));
            assert_eq!(c[row * n + column], sum);
        }
    }
}

/// Each lane has its own frame, with the same addresses as all others; lanes return at different depths.
#[test]
fn recursion() {
    let text = module(
        ".func (.param .b32 result) sum_to(.param .b32 n) {
            .local .align 4 .b8 slot[4];
            .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<3>;
            ld.param.b32 %r1, [n];
            mov.u64 %rd1, slot; cvta.local.u64 %rd2, %rd1; st.u32 [%rd2], %r1;
            mov.u32 %r5, 0; setp.eq.u32 %p1, %r1, 0; @%p1 bra DONE;
            sub.u32 %r2, %r1, 1;
            { .param .b32 given; .param .b32 got;
              st.param.b32 [given], %r2; call.uni (got), sum_to, (given); ld.param.b32 %r3, [got]; }
            ld.local.u32 %r4, [slot]; add.u32 %r5, %r3, %r4;
            DONE: st.param.b32 [result], %r5; ret;
        }
        .visible .entry k(.param .u64 out) {
            .reg .b32 %r<4>; .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;
            { .param .b32 given; .param .b32 got;
              st.param.b32 [given], %r1; call (got), sum_to, (given); ld.param.b32 %r2, [got]; }
            st.global.u32 [%rd3], %r2; ret;
        }",
    );
    let (report, buffers) = launch(&text, "k", [[1; 3], [48, 1, 1]], 0, &[Param::Empty(192)]);
    assert_eq!(report.findings, []);
    let expected: Vec<u32> = (0..48).map(|n| n * (n + 1) / 2).collect();
    assert_eq!(words(&buffers[0]), expected);
}

/// A product of 16×8×16 by `ldmatrix` and `mma`, with distinct small integers so that a wrong place shows.
#[test]
fn product_by_tensor_cores() {
    let text = module(
        ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c) {
            .shared .align 16 .b8 left[512]; .shared .align 16 .b8 right[256];
            .reg .b32 %r<24>; .reg .b64 %rd<12>; .reg .f32 %f<8>;
            ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c];
            mov.u32 %r1, %tid.x; mov.u32 %r2, left; mov.u32 %r3, right;
            shl.b32 %r4, %r1, 4; add.u32 %r5, %r2, %r4; mul.wide.u32 %rd4, %r1, 16; add.u64 %rd5, %rd1, %rd4;
            cp.async.cg.shared.global [%r5], [%rd5], 16;
            shl.b32 %r6, %r1, 3; add.u32 %r7, %r3, %r6; mul.wide.u32 %rd6, %r1, 8; add.u64 %rd7, %rd2, %rd6;
            cp.async.ca.shared.global [%r7], [%rd7], 8;
            cp.async.commit_group; cp.async.wait_group 0; bar.warp.sync 0xffffffff;
            and.b32 %r8, %r1, 15; shl.b32 %r8, %r8, 5; shr.u32 %r9, %r1, 4; shl.b32 %r9, %r9, 4;
            add.u32 %r8, %r8, %r9; add.u32 %r8, %r8, %r2;
            ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r8];
            and.b32 %r14, %r1, 15; shl.b32 %r14, %r14, 4; add.u32 %r14, %r14, %r3;
            ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r15, %r16}, [%r14];
            mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4},
                {%r10, %r11, %r12, %r13}, {%r15, %r16}, {0f3F800000, 0f3F800000, 0f3F800000, 0f3F800000};
            shr.u32 %r17, %r1, 2; shl.b32 %r17, %r17, 5; and.b32 %r18, %r1, 3; shl.b32 %r18, %r18, 3;
            add.u32 %r17, %r17, %r18; cvt.u64.u32 %rd8, %r17; add.u64 %rd9, %rd3, %rd8;
            st.global.v2.f32 [%rd9], {%f1, %f2}; st.global.v2.f32 [%rd9+256], {%f3, %f4}; ret;
        }",
    );
    // Binary16 has 1024 to 2047 as 0x6400 to 0x67ff; 0 to 15 come from a table.
    let half = |value: u32| -> [u8; 2] {
        let bits =
            if value == 0 { 0 } else { (15 + value.ilog2()) << 10 | (value << (10 - value.ilog2())) & 0x3ff };
        (bits as u16).to_le_bytes()
    };
    let mut random = Random(9);
    let a: Vec<u32> = (0..256).map(|_| random.next() as u32 % 16).collect();
    let b: Vec<u32> = (0..128).map(|_| random.next() as u32 % 16).collect();
    let bytes = |list: &[u32]| list.iter().flat_map(|value| half(*value)).collect::<Vec<u8>>();
    let params = [Param::Data(&bytes(&a)), Param::Data(&bytes(&b)), Param::Empty(512)];
    let (report, buffers) = launch(&text, "k", [[1; 3], [32, 1, 1]], 0, &params);
    assert_eq!(report.findings, []);
    let c = floats(&buffers[2]);
    for row in 0..16 {
        for column in 0..8 {
            let sum: u32 = (0..16).map(|k| a[row * 16 + k] * b[k * 8 + column]).sum();
            assert_eq!(c[row * 8 + column], (sum + 1) as f32);
        }
    }
}
