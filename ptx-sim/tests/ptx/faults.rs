//! Planted faults: each is found, in its line, and nothing else is.

use tilewright_ptx_sim::{FaultKind, Report};

use crate::support::{Param, Random, bytes_of, bytes_of_words, faults, launch, module, module_for};

const SGEMM: &str = include_str!("../kernels/sgemm.ptx");

/// The text without one of the lines that contain something.
fn without(text: &str, line: &str, occurrence: usize) -> String {
    let mut seen = 0;
    let kept = text.lines().map(|l| {
        let found = l.contains(line);
        seen += usize::from(found);
        if found && seen == occurrence + 1 { "" } else { l }
    });
    kept.collect::<Vec<_>>().join("\n")
}

fn sgemm(text: &str) -> Report {
    let n = 32;
    let mut random = Random(7);
    let (a, b) = (bytes_of(&random.units(n * n)), bytes_of(&random.units(n * n)));
    let params = [Param::Data(&a), Param::Data(&b), Param::Empty((4 * n * n) as u64), Param::Word(n as u32)];
    launch(text, "sgemm", [[2, 2, 1], [16, 16, 1]], 0, &params).0
}

/// Runs the body of a kernel with a buffer of 256 words, `%rd1`, and an empty one, `%rd2`.
fn run(body: &str, [grid, block]: [u32; 2]) -> Report {
    let text = module_for(
        "sm_90",
        &format!(
            ".visible .entry k(.param .u64 a, .param .u64 b) {{
        .reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<32>; .reg .f32 %f<8>;
        .shared .align 16 .b8 tile[1024];
        ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];
        mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4;
        add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
        shl.b32 %r2, %r1, 2; mov.u32 %r3, tile; add.s32 %r4, %r3, %r2;
        {body}
        ret; }}"
        ),
    );
    let data: Vec<u32> = (0..256).collect();
    let params = [Param::Data(&bytes_of_words(&data)), Param::Empty(1024)];
    launch(&text, "k", [[grid, 1, 1], [block, 1, 1]], 0, &params).0
}

#[track_caller]
fn finds(report: &Report, kinds: &[FaultKind]) {
    assert_eq!(faults(report), kinds, "{:#?}", report.findings);
}

#[test]
fn missing_barriers() {
    assert_eq!(sgemm(SGEMM).findings, []);
    for barrier in 0..2 {
        let report = sgemm(&without(SGEMM, "bar.sync", barrier));
        assert!(faults(&report).contains(&FaultKind::Race), "{report:#?}");
    }
}

/// All seeds find the race, and the message names both lines.
#[test]
fn races_are_found_in_every_order() {
    let body = "st.shared.u32 [%r4], %r1;
        xor.b32 %r5, %r2, 128; add.s32 %r5, %r5, %r3;
        ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd5], %r6;";
    let report = run(body, [1, 64]);
    let races: Vec<_> = report.findings.iter().filter(|f| f.kind == FaultKind::Race).collect();
    let mut seeds: Vec<u64> = races.iter().flat_map(|race| race.seeds.clone()).collect();
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds, [0, 1, 2]);
    assert!(races[0].message.contains("line 11") || races[0].message.contains("line 13"));
}

#[test]
fn barrier_makes_it_right() {
    let body = "st.shared.u32 [%r4], %r1; bar.sync 0;
        xor.b32 %r5, %r2, 128; add.s32 %r5, %r5, %r3;
        ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd5], %r6;";
    finds(&run(body, [1, 64]), &[]);
}

/// Lanes of one warp need `bar.warp.sync` between a write and another lane's read.
#[test]
fn lanes_of_a_warp_race() {
    let body = |between: &str| {
        format!(
            "st.shared.u32 [%r4], %r1; {between}
            xor.b32 %r5, %r2, 4; add.s32 %r5, %r5, %r3;
            ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd5], %r6;"
        )
    };
    finds(&run(&body(""), [1, 32]), &[FaultKind::Race]);
    finds(&run(&body("bar.warp.sync 0xffffffff;"), [1, 32]), &[]);
    // Voting orders no memory.
    finds(
        &run(&body("activemask.b32 %r7; vote.sync.any.pred %p1, 1, 0xffffffff;"), [1, 32]),
        &[FaultKind::Race],
    );
}

#[test]
fn one_instruction_writes_two_values_to_one_place() {
    finds(&run("st.shared.u32 [%r3], %r1;", [1, 32]), &[FaultKind::Race]);
    finds(&run("st.shared.u32 [%r3], 5;", [1, 32]), &[]);
}

#[test]
fn blocks_race_in_global_memory() {
    let body = "mov.u32 %r5, %ctaid.x; st.global.u32 [%rd5], %r5;";
    let report = run(body, [2, 32]);
    assert!(faults(&report).contains(&FaultKind::Race));
    finds(&run("red.global.add.u32 [%rd4], 1;", [2, 32]), &[]);
}

/// A flag that is released and acquired orders blocks; a relaxed one does not.
#[test]
fn release_and_acquire_order_blocks() {
    let body = |store: &str, load: &str| {
        format!(
            "setp.ne.u32 %p1, %r1, 0; @%p1 ret;
            mov.u32 %r5, %ctaid.x; setp.eq.u32 %p2, %r5, 1; @%p2 bra WAIT;
            st.global.u32 [%rd2], 7; {store}; ret;
            WAIT: {load}; setp.ne.u32 %p3, %r6, 99; @%p3 bra WAIT;
            ld.global.u32 %r7, [%rd2]; st.global.u32 [%rd2+4], %r7;"
        )
    };
    let right = body("st.release.gpu.global.u32 [%rd1], 99", "ld.acquire.gpu.global.u32 %r6, [%rd1]");
    finds(&run(&right, [2, 32]), &[]);
    let fences = body(
        "fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%rd1], 99",
        "ld.relaxed.gpu.global.u32 %r6, [%rd1]; fence.acq_rel.gpu",
    );
    finds(&run(&fences, [2, 32]), &[]);
    let wrong = body("st.relaxed.gpu.global.u32 [%rd1], 99", "ld.relaxed.gpu.global.u32 %r6, [%rd1]");
    finds(&run(&wrong, [2, 32]), &[FaultKind::Race]);
}

#[test]
fn accesses_out_of_bounds() {
    let report = run("ld.global.u32 %r5, [%rd4+1000]; st.global.u32 [%rd5], %r5;", [1, 32]);
    finds(&report, &[FaultKind::OutOfBounds]);
    let finding = &report.findings[0];
    assert_eq!((finding.offset, finding.thread, finding.count), (Some(1024), Some([6, 0, 0]), 78));
    assert!(finding.message.contains("`buffer 0`, which has 1024 bytes"), "{}", finding.message);
    finds(&run("st.shared.u32 [%r4+1000], %r1;", [1, 32]), &[FaultKind::OutOfBounds]);
    finds(&run("ld.global.u32 %r5, [%rd1+-4];", [1, 1]), &[FaultKind::OutOfBounds]);
    finds(&run("mov.u64 %rd9, 0; st.global.u32 [%rd9], %r1;", [1, 1]), &[FaultKind::OutOfBounds]);
}

#[test]
fn misaligned_accesses() {
    finds(&run("ld.global.u32 %r5, [%rd4+2];", [1, 32]), &[FaultKind::Misaligned]);
    finds(&run("ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+8];", [1, 1]), &[FaultKind::Misaligned]);
}

#[test]
fn values_that_nobody_wrote() {
    finds(&run("add.s32 %r6, %r5, 1; st.global.u32 [%rd5], %r6;", [1, 32]), &[FaultKind::Uninitialised]);
    // In one lane only.
    let body = "setp.eq.u32 %p1, %r1, 9; @!%p1 mov.u32 %r5, 3; st.global.u32 [%rd5], %r5;";
    let report = run(body, [1, 32]);
    finds(&report, &[FaultKind::Uninitialised]);
    assert_eq!(report.findings[0].thread, Some([9, 0, 0]));
    // A value that is not used does no harm.
    finds(&run("selp.b32 %r6, %r1, %r5, 1; st.global.u32 [%rd5], %r6;", [1, 32]), &[]);
    finds(&run("ld.shared.u32 %r5, [%r4]; st.global.u32 [%rd5], %r5;", [1, 32]), &[FaultKind::Uninitialised]);
    finds(
        &run("ld.global.u32 %r5, [%rd5]; st.global.u32 [%rd5], %r5;", [1, 32]),
        &[FaultKind::Uninitialised],
    );
    finds(&run("setp.eq.u32 %p1, %r5, 0; @%p1 bra L; L:", [1, 32]), &[FaultKind::Uninitialised]);
}

#[test]
fn barriers_that_not_all_reach() {
    let body = "setp.lt.u32 %p1, %r1, 16; @%p1 bar.sync 0;";
    let report = run(body, [1, 32]);
    assert!(faults(&report).contains(&FaultKind::DivergentBarrier), "{report:#?}");
    let body = "setp.lt.u32 %p1, %r1, 32; @!%p1 ret; bar.sync 0;";
    finds(&run(body, [1, 64]), &[FaultKind::DivergentBarrier]);
}

#[test]
fn deadlocks() {
    let body = "setp.lt.u32 %p1, %r1, 32; @%p1 bra A; bar.sync 1, 64; bra B; A: bar.sync 2, 64; B:";
    let report = run(body, [1, 64]);
    finds(&report, &[FaultKind::Deadlock]);
    assert!(report.findings[0].message.contains("32 threads at barrier 1"), "{report:#?}");
    let body = "L: ld.volatile.global.u32 %r5, [%rd1]; setp.eq.u32 %p1, %r5, 0; @%p1 bra L;";
    finds(&run(body, [1, 32]), &[FaultKind::Livelock]);
}

#[test]
fn shuffles_of_lanes_that_are_elsewhere() {
    let body = "setp.lt.u32 %p1, %r1, 16; @!%p1 bra L;
        shfl.sync.bfly.b32 %r5, %r1, 1, 31, 0xffffffff; L:";
    finds(&run(body, [1, 32]), &[FaultKind::WarpSync]);
    let body = "setp.lt.u32 %p1, %r1, 16; @!%p1 bra L;
        shfl.sync.bfly.b32 %r5, %r1, 1, 31, 0x0000ffff; L:";
    finds(&run(body, [1, 32]), &[]);
}

#[test]
fn copies_that_are_not_waited_for() {
    let body = |wait: &str| {
        format!(
            "cp.async.ca.shared.global [%r4], [%rd4], 4; cp.async.commit_group; {wait}
            bar.sync 0; xor.b32 %r5, %r2, 128; add.s32 %r5, %r5, %r3;
            ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd5], %r6;"
        )
    };
    finds(&run(&body("cp.async.wait_group 0;"), [1, 64]), &[]);
    finds(&run(&body("cp.async.wait_all;"), [1, 64]), &[]);
    let report = run(&body(""), [1, 64]);
    assert!(faults(&report).contains(&FaultKind::AsyncCopyNotWaited), "{report:#?}");
    let report = run(&body("cp.async.wait_group 1;"), [1, 64]);
    assert!(faults(&report).contains(&FaultKind::AsyncCopyNotWaited), "{report:#?}");
}

/// A ring of one slot between a producing and a consuming warp. Left out are its waits.
#[test]
fn mbarrier_waits_left_out() {
    let ring = |full: &str, empty: &str| {
        format!(
            ".reg .b64 %bar; add.s32 %r20, %r3, 512; add.s32 %r21, %r3, 520;
            setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [%r20], 32;
            @%p1 mbarrier.init.shared.b64 [%r21], 32; bar.sync 0;
            and.b32 %r10, %r2, 127; add.s32 %r10, %r10, %r3; mov.u32 %r11, 0; mov.u32 %r14, 0;
            setp.lt.u32 %p2, %r1, 32; @!%p2 bra CONSUME;
            PRODUCE: and.b32 %r12, %r11, 1; xor.b32 %r13, %r12, 1;
            EMPTY: {empty}
            add.s32 %r15, %r1, %r11; st.shared.u32 [%r10], %r15;
            mbarrier.arrive.shared.b64 %bar, [%r20];
            add.s32 %r11, %r11, 1; setp.lt.u32 %p4, %r11, 4; @%p4 bra PRODUCE; ret;
            CONSUME: and.b32 %r12, %r11, 1;
            FULL: {full}
            xor.b32 %r16, %r10, 4; ld.shared.u32 %r15, [%r16]; add.s32 %r14, %r14, %r15;
            mbarrier.arrive.shared.b64 %bar, [%r21];
            add.s32 %r11, %r11, 1; setp.lt.u32 %p4, %r11, 4; @%p4 bra CONSUME;
            st.global.u32 [%rd5], %r14;"
        )
    };
    let full = "mbarrier.try_wait.parity.shared.b64 %p3, [%r20], %r12; @!%p3 bra FULL;";
    let empty = "mbarrier.try_wait.parity.shared.b64 %p3, [%r21], %r13; @!%p3 bra EMPTY;";
    finds(&run(&ring(full, empty), [1, 64]), &[]);
    // The consumer reads what was not written.
    let report = run(&ring("", empty), [1, 64]);
    assert!(faults(&report).contains(&FaultKind::Uninitialised), "{report:#?}");
    // The producer is phases ahead of the consumer, which waits for one that has passed twice.
    finds(&run(&ring(full, ""), [1, 64]), &[FaultKind::Livelock]);
    // Transactions that nobody completes.
    let expects = ring(full, empty).replace(
        "mbarrier.arrive.shared.b64 %bar, [%r20];",
        "mbarrier.arrive.expect_tx.shared.b64 %bar, [%r20], 16;",
    );
    finds(&run(&expects, [1, 64]), &[FaultKind::Livelock]);
}

#[test]
fn memory_that_was_given_back() {
    use tilewright_ptx_sim::{Launch, Memory, Module, Options};
    let text = module(
        ".visible .entry k(.param .u64 a) { .reg .b64 %rd<2>;
        ld.param.u64 %rd1, [a]; st.global.u32 [%rd1], 1; ret; }",
    );
    let mut memory = Memory::default();
    let address = memory.allocate(64, "gone").expect("memory suffices");
    memory.free(address).expect("it was allocated");
    let launch = Launch { params: address.to_le_bytes().to_vec(), ..Launch::default() };
    let module = Module::parse(&text).expect("it is right");
    let report = module.run("k", &launch, &mut memory, &Options::default()).expect("it runs");
    finds(&report, &[FaultKind::UseAfterFree]);
}

#[test]
fn results_that_depend_on_the_order_of_warps() {
    // The last warp that writes wins: a race, and a difference.
    let body = "shr.u32 %r5, %r1, 5; st.volatile.global.u32 [%rd2], %r5;";
    let report = run(body, [1, 256]);
    assert!(faults(&report).contains(&FaultKind::OrderDependent), "{report:#?}");
}

#[test]
fn constants_are_not_written() {
    let text = module(
        ".const .align 4 .u32 table[2] = {1, 2};
        .visible .entry k() { .reg .b64 %rd<2>; mov.u64 %rd1, table;
        cvta.const.u64 %rd1, %rd1; st.u32 [%rd1], 1; ret; }",
    );
    let (report, _) = launch(&text, "k", [[1; 3], [1; 3]], 0, &[]);
    finds(&report, &[FaultKind::WriteToConstant]);
}
