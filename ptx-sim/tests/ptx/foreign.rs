//! Forms that compilers write: tiles of a warp, fragments of an open layout, modifiers in another order, vectors of one element.

use crate::support::{Param, Random, bytes_of, bytes_of_words, faults, floats, launch, module, words};
use tilewright_ptx_sim::{FaultKind, Module};

/// Tiles of eight lanes name eight members each, and execute the instruction together.
fn tiles(members: &str) -> String {
    module(&format!(
        ".visible .entry k(.param .u64 a, .param .u64 out) {{
            .reg .b32 %r<12>; .reg .b64 %rd<8>;
            ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4;
            add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3; ld.global.b32 {{%r2}}, [%rd4 + 0];
            and.b32 %r3, %r1, 24; {members}
            shfl.sync.bfly.b32 %r5, %r2, 4, 0x181f, %r4; add.u32 %r2, %r2, %r5;
            shfl.sync.bfly.b32 %r5, %r2, 2, 0x181f, %r4; add.u32 %r2, %r2, %r5;
            shfl.sync.bfly.b32 %r5, %r2, 1, 0x181f, %r4; add.u32 %r2, %r2, %r5;
            st.global.b32 [%rd5 + 0], {{%r2}}; ret;
        }}"
    ))
}

fn tile_sums(values: &[u32]) -> Vec<u32> {
    values.chunks(8).flat_map(|tile| [tile.iter().sum(); 8]).collect()
}

#[test]
fn tiles_of_a_warp_exchange_among_themselves() {
    let text = tiles("shl.b32 %r4, 0xff, %r3;");
    let values: Vec<u32> = (0..64).map(|i| i * i + 3).collect();
    let params = [Param::Data(&bytes_of_words(&values)), Param::Empty(256)];
    let (report, buffers) = launch(&text, "k", [[1; 3], [64, 1, 1]], 0, &params);
    assert_eq!(report.findings, []);
    assert_eq!(words(&buffers[1]), tile_sums(&values));
}

/// Half of the lanes of each tile take another way to the exchange.
#[test]
fn tiles_wait_for_lanes_that_come_later() {
    let text = tiles(
        "shl.b32 %r4, 0xff, %r3; .reg .pred %p; and.b32 %r6, %r1, 1; setp.eq.u32 %p, %r6, 0;
         @%p bra EVEN; add.u32 %r2, %r2, 100; bra MEET;
         EVEN: mul.lo.u32 %r2, %r2, 3;
         MEET:",
    );
    let values: Vec<u32> = (0..32).map(|i| 7 * i).collect();
    let params = [Param::Data(&bytes_of_words(&values)), Param::Empty(128)];
    let (report, buffers) = launch(&text, "k", [[1; 3], [32, 1, 1]], 0, &params);
    assert_eq!(report.findings, []);
    let moved: Vec<u32> =
        values.iter().enumerate().map(|(i, v)| if i % 2 == 0 { 3 * v } else { v + 100 }).collect();
    assert_eq!(words(&buffers[1]), tile_sums(&moved));
}

#[test]
fn lanes_outside_of_their_members_are_reported() {
    let text = tiles("mov.u32 %r4, 0xff;");
    let params = [Param::Data(&[1; 128]), Param::Empty(128)];
    let (report, _) = launch(&text, "k", [[1; 3], [32, 1, 1]], 0, &params);
    assert!(faults(&report).contains(&FaultKind::WarpSync), "{:?}", report.findings);
}

/// A product through fragments of `wmma`, with the given orders of its factors and its result.
fn product(rows: &str, columns: &str, result: &str) {
    let list = |first: u32, count: u32| {
        let names: Vec<String> = (first..first + count).map(|n| format!("%r{n}")).collect();
        format!("{{{}}}", names.join(", "))
    };
    let sums: Vec<String> = (0..8).map(|n| format!("%f{n}")).collect();
    let sums = format!("{{{}}}", sums.join(", "));
    let (a, b) = (list(0, 4), list(4, 4));
    let text = module(&format!(
        ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 out) {{
            .reg .b32 %r<8>; .reg .f32 %f<8>; .reg .b64 %rd<8>; .reg .b32 %s;
            ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u64 %rd4, [out];
            mov.u32 %s, 20;
            wmma.load.a.sync.aligned.{rows}.m16n16k8.global.tf32 {a}, [%rd1], %s;
            wmma.load.b.sync.aligned.{columns}.m16n16k8.global.tf32 {b}, [%rd2];
            wmma.load.c.sync.aligned.row.m16n16k8.f32 {sums}, [%rd3];
            wmma.mma.sync.aligned.{rows}.{columns}.m16n16k8.f32.tf32.tf32.f32 {sums}, {a}, {b}, {sums};
            wmma.store.d.sync.aligned.{result}.m16n16k8.global.f32 [%rd4], {sums}, %s; ret;
        }}"
    ));
    let mut random = Random(5);
    let mut small =
        |count: usize| -> Vec<f32> { (0..count).map(|_| (random.next() % 17) as f32 - 8.0).collect() };
    let (a, b, c) = (small(320), small(128), small(256));
    let (a_bytes, b_bytes, c_bytes) = (bytes_of(&a), bytes_of(&b), bytes_of(&c));
    let params =
        [Param::Data(&a_bytes), Param::Data(&b_bytes), Param::Data(&c_bytes), Param::Empty(4 * 16 * 20)];
    let (report, buffers) = launch(&text, "k", [[1; 3], [32, 1, 1]], 0, &params);
    assert_eq!(report.findings, []);
    let d = floats(&buffers[3]);
    for i in 0..16 {
        for j in 0..16 {
            let left = |k: usize| if rows == "row" { a[i * 20 + k] } else { a[k * 20 + i] };
            let right = |k: usize| if columns == "row" { b[k * 16 + j] } else { b[j * 8 + k] };
            let sum: f32 = (0..8).map(|k| left(k) * right(k)).sum::<f32>() + c[i * 16 + j];
            let at = if result == "row" { i * 20 + j } else { j * 20 + i };
            assert_eq!(d[at], sum, "({i}, {j}) of {rows}, {columns}, {result}");
        }
    }
}

#[test]
fn products_of_open_fragments() {
    for rows in ["row", "col"] {
        for columns in ["row", "col"] {
            for result in ["row", "col"] {
                product(rows, columns, result);
            }
        }
    }
}

/// Functions in a table that lanes choose from, as pointers and virtual functions become.
const CALLS: &str = ".func (.param .b32 r) twice(.param .b32 a) {
        .reg .b32 %r<3>; ld.param.b32 %r1, [a]; add.u32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret;
    }
    .func (.param .b32 r) thrice(.param .b32 a) {
        .reg .b32 %r<3>; ld.param.b32 %r1, [a]; mul.lo.u32 %r2, %r1, 3; st.param.b32 [r], %r2; ret;
    }
    .func (.param .b32 r) square(.param .b32 a) {
        .reg .b32 %r<3>; ld.param.b32 %r1, [a]; mul.lo.u32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret;
    }
    .global .align 8 .u64 table[2] = {twice, thrice};
    .visible .entry k(.param .u64 out) {
        .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<8>; ld.param.u64 %rd1, [out];
        mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; mul.wide.u32 %rd2, %r2, 8; mov.u64 %rd3, table; add.u64 %rd3, %rd3, %rd2;
        ld.global.u64 %rd4, [%rd3]; setp.gt.u32 %p, %r1, 40; mov.u64 %rd5, square; selp.b64 %rd4, %rd5, %rd4, %p;
        {
            .param .b32 param0; st.param.b32 [param0], %r1; .param .b32 retval0;
            prototype_0 : .callprototype (.param .b32 _) _ (.param .b32 _);
            call (retval0), %rd4, (param0), prototype_0;
            ld.param.b32 %r3, [retval0];
        }
        mul.wide.u32 %rd6, %r1, 4; add.u64 %rd7, %rd1, %rd6; st.global.u32 [%rd7], %r3; ret;
    }";

#[test]
fn lanes_call_different_functions_through_a_register() {
    let text = module(CALLS);
    let (report, buffers) = launch(&text, "k", [[1; 3], [64, 1, 1]], 0, &[Param::Empty(256)]);
    assert_eq!(report.findings, []);
    let expected = |lane: u32| match lane {
        41.. => lane * lane,
        _ if lane.is_multiple_of(2) => 2 * lane,
        _ => 3 * lane,
    };
    assert_eq!(words(&buffers[0]), (0..64).map(expected).collect::<Vec<u32>>());
    // An address of no function is not called, and neither is a function with other parameters.
    let wrong = text.replace("mov.u64 %rd5, square;", "mov.u64 %rd5, 77;");
    let (report, _) = launch(&wrong, "k", [[1; 3], [64, 1, 1]], 0, &[Param::Empty(256)]);
    assert!(faults(&report).contains(&FaultKind::Trap), "{:?}", report.findings);
    let wider = ".func (.param .b32 r) square(.param .b64 a) { .reg .b32 %r2; mov.u32 %r2, 7;";
    let body = ".func (.param .b32 r) square(.param .b32 a) {
        .reg .b32 %r<3>; ld.param.b32 %r1, [a]; mul.lo.u32 %r2, %r1, %r1;";
    assert!(text.contains(body));
    let (report, _) = launch(&text.replace(body, wider), "k", [[1; 3], [64, 1, 1]], 0, &[Param::Empty(256)]);
    assert!(faults(&report).contains(&FaultKind::Trap), "{:?}", report.findings);
}

/// Modifiers in the orders of NVIDIA's libraries. Types keep theirs: a conversion says the one of its result first.
#[test]
fn modifiers_may_stand_in_another_order() {
    let text = crate::support::module_for(
        "sm_90",
        ".visible .entry k(.param .u64 out) {
            .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .b64 %rd<3>; ld.param.u64 %rd1, [out];
            atom.add.relaxed.gpu.s32 %r1, [%rd1], 2; fence.gpu.sc; ld.gpu.acquire.global.u32 %r2, [%rd1];
            mov.u32 %r3, 0x80037ffe; mov.u32 %r4, 0x00020001; min.s16x2.relu %r5, %r3, %r4; st.u32.global [%rd1+4], %r5;
            cvt.f32.rn.s32 %f1, -7; cvt.s32.f32.rzi %r6, %f1; st.global.u32 [%rd1+8], %r6; ret;
        }",
    );
    let (report, buffers) = launch(&text, "k", [[1; 3], [1; 3]], 0, &[Param::Data(&[0; 12])]);
    assert_eq!(report.findings, []);
    assert_eq!(words(&buffers[0]), [2, 1, -7_i32 as u32]);
    for (right, wrong) in [(".s16x2.relu", ".s16x2.relu.relu"), (".f32.rn.s32", ".s32.rn.f32")] {
        assert!(Module::parse(&text.replace(right, wrong)).is_err(), "{wrong}");
    }
}

#[test]
fn the_space_may_stand_before_the_semantics() {
    let text = module(
        ".visible .entry k(.param .u64 out) {
            .reg .b32 %r<3>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [out];
            atom.global.gpu.acq_rel.add.u32 %r1, [%rd1], 2; red.gpu.global.relaxed.add.u32 [%rd1], 3; ret;
        }",
    );
    let (report, buffers) = launch(&text, "k", [[2, 1, 1], [40, 1, 1]], 0, &[Param::Data(&[0; 4])]);
    assert_eq!(report.findings, []);
    assert_eq!(words(&buffers[0]), [400]);
    let unknown = text.replace(".gpu.acq_rel", ".gpu.acq_rel.gpu");
    assert!(Module::parse(&unknown).is_err(), "a scope that stands twice is refused");
}
