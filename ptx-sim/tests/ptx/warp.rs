//! Instructions between the lanes of a warp.

use crate::support::{Param, Random, bytes_of_words, launch, module_for, words};

/// Runs `body`, which makes `%r4` of `%r1` (a word of each lane) and `%r2` (the number of the lane), in one warp.
fn each(target: &str, body: &str, lanes: &[u32; 32]) -> [u32; 32] {
    let text = module_for(
        target,
        &format!(
            ".visible .entry k(.param .u64 a, .param .u64 b) {{
            .reg .pred %p<8>; .reg .b32 %r<16>; .reg .b64 %rd<8>;
            ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; mov.u32 %r2, %tid.x;
            mad.wide.u32 %rd3, %r2, 4, %rd1; mad.wide.u32 %rd4, %r2, 4, %rd2; ld.global.u32 %r1, [%rd3];
            {body}
            st.global.u32 [%rd4], %r4; ret; }}"
        ),
    );
    let params = [Param::Data(&bytes_of_words(lanes)), Param::Empty(128)];
    let (report, results) = launch(&text, "k", [[1; 3], [32, 1, 1]], 0, &params);
    assert_eq!(report.findings, [], "{body}");
    words(&results[1]).try_into().expect("a word of each lane")
}

/// Random words, and words of which many are equal.
fn samples() -> Vec<[u32; 32]> {
    let mut random = Random(13);
    let mut samples = vec![[0; 32], [u32::MAX; 32], std::array::from_fn(|lane| lane as u32)];
    for few in [2, 5, u64::from(u32::MAX)] {
        samples.push(std::array::from_fn(|_| (random.next() % few) as u32));
    }
    samples
}

#[track_caller]
fn agrees(target: &str, body: &str, expected: impl Fn(&[u32; 32], usize) -> u32) {
    for lanes in samples() {
        let found = each(target, body, &lanes);
        for (lane, found) in found.into_iter().enumerate() {
            assert_eq!(found, expected(&lanes, lane), "{body}, lane {lane} of {lanes:?}");
        }
    }
}

#[test]
fn votes() {
    let odd = "and.b32 %r3, %r1, 1; setp.ne.u32 %p1, %r3, 0;";
    let of =
        |mode: &str| format!("{odd} vote.sync.{mode}.pred %p2, %p1, 0xffffffff; selp.u32 %r4, 1, 0, %p2;");
    let odds = |lanes: &[u32; 32]| lanes.iter().filter(|word| *word & 1 != 0).count();
    agrees("sm_80", &of("all"), |lanes, _| u32::from(odds(lanes) == 32));
    agrees("sm_80", &of("any"), |lanes, _| u32::from(odds(lanes) > 0));
    agrees("sm_80", &of("uni"), |lanes, _| u32::from(matches!(odds(lanes), 0 | 32)));
    agrees("sm_80", &of("all").replace("%p1, 0xf", "!%p1, 0xf"), |lanes, _| u32::from(odds(lanes) == 0));
    agrees("sm_80", &format!("{odd} vote.sync.ballot.b32 %r4, %p1, 0xffffffff;"), |lanes, _| {
        (0..32).filter(|lane| lanes[*lane] & 1 != 0).fold(0, |mask, lane| mask | 1 << lane)
    });
}

/// Halves of a warp vote on their own.
#[test]
fn parts_of_a_warp_vote() {
    let body = "and.b32 %r3, %r1, 1; setp.ne.u32 %p1, %r3, 0; mov.u32 %r5, 0x0000ffff;
        setp.ge.u32 %p3, %r2, 16; @%p3 bra HIGH; vote.sync.ballot.b32 %r4, %p1, 0x0000ffff; bra.uni DONE;
        HIGH: vote.sync.ballot.b32 %r4, %p1, 0xffff0000; DONE:";
    agrees("sm_80", body, |lanes, lane| {
        let part = if lane < 16 { 0..16 } else { 16..32 };
        part.filter(|lane| lanes[*lane] & 1 != 0).fold(0, |mask, lane| mask | 1 << lane)
    });
}

#[test]
fn matches() {
    let equal = |lanes: &[u32; 32], word: u32| {
        (0..32).filter(|lane| lanes[*lane] == word).fold(0_u32, |mask, lane| mask | 1 << lane)
    };
    agrees("sm_80", "match.any.sync.b32 %r4, %r1, 0xffffffff;", |lanes, lane| equal(lanes, lanes[lane]));
    let wide = "mov.b64 %rd5, {%r1, %r1}; match.any.sync.b64 %r4, %rd5, 0xffffffff;";
    agrees("sm_80", wide, |lanes, lane| equal(lanes, lanes[lane]));
    let all = "match.all.sync.b32 %r4|%p1, %r1, 0xffffffff; selp.u32 %r3, 1, 0, %p1; xor.b32 %r4, %r4, %r3;";
    agrees("sm_80", all, |lanes, _| if equal(lanes, lanes[0]) == u32::MAX { u32::MAX ^ 1 } else { 0 });
}

#[test]
fn reductions() {
    let of = |op: &str| format!("redux.sync.{op} %r4, %r1, 0xffffffff;");
    agrees("sm_80", &of("add.u32"), |lanes, _| {
        lanes.iter().fold(0, |sum: u32, word| sum.wrapping_add(*word))
    });
    agrees("sm_80", &of("add.s32"), |lanes, _| {
        lanes.iter().fold(0, |sum: u32, word| sum.wrapping_add(*word))
    });
    agrees("sm_80", &of("min.u32"), |lanes, _| lanes.iter().copied().min().unwrap_or(0));
    agrees("sm_80", &of("max.u32"), |lanes, _| lanes.iter().copied().max().unwrap_or(0));
    agrees("sm_80", &of("min.s32"), |lanes, _| {
        lanes.iter().map(|word| *word as i32).min().unwrap_or(0) as u32
    });
    agrees("sm_80", &of("max.s32"), |lanes, _| {
        lanes.iter().map(|word| *word as i32).max().unwrap_or(0) as u32
    });
    agrees("sm_80", &of("and.b32"), |lanes, _| lanes.iter().fold(u32::MAX, |all, word| all & word));
    agrees("sm_80", &of("or.b32"), |lanes, _| lanes.iter().fold(0, |all, word| all | word));
    agrees("sm_80", &of("xor.b32"), |lanes, _| lanes.iter().fold(0, |all, word| all ^ word));
}

/// Each lane holds two neighbours of a row of eight; afterwards, of a column.
#[test]
fn a_matrix_in_registers_is_transposed() {
    let values: [u32; 32] = std::array::from_fn(|lane| (2 * lane as u32) | (2 * lane as u32 + 1) << 16);
    let found = each("sm_80", "movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r1;", &values);
    for (lane, found) in found.into_iter().enumerate() {
        let (row, pair) = (lane as u32 / 4, 2 * (lane as u32 % 4));
        assert_eq!(found, (8 * pair + row) | (8 * (pair + 1) + row) << 16, "lane {lane}");
    }
}

#[test]
fn extremes_that_are_no_less_than_zero() {
    let halves = |a: u32, b: u32, f: fn(i16, i16) -> i16| {
        let [low, high] = [0, 16].map(|shift| f((a >> shift) as i16, (b >> shift) as i16).max(0) as u16);
        u32::from(low) | u32::from(high) << 16
    };
    let body = |instruction: &str| format!("not.b32 %r3, %r2; {instruction} %r4, %r1, %r3;");
    let other = |lane: usize| !(lane as u32);
    agrees("sm_90", &body("min.relu.s32"), |lanes, lane| {
        (lanes[lane] as i32).min(other(lane) as i32).max(0) as u32
    });
    agrees("sm_90", &body("max.relu.s32"), |lanes, lane| {
        (lanes[lane] as i32).max(other(lane) as i32).max(0) as u32
    });
    agrees("sm_90", &body("min.relu.s16x2"), |lanes, lane| halves(lanes[lane], other(lane), i16::min));
    agrees("sm_90", &body("max.relu.s16x2"), |lanes, lane| halves(lanes[lane], other(lane), i16::max));
}

#[test]
fn one_lane_is_elected() {
    let body = "elect.sync %r3|%p1, 0xffffffff; selp.u32 %r4, 100, 0, %p1; add.u32 %r4, %r4, %r3;";
    let found = each("sm_90", body, &[0; 32]);
    let elected: Vec<u32> = (0..32).filter(|lane| found[*lane as usize] >= 100).collect();
    let [leader] = elected[..] else { panic!("one lane is elected, not {elected:?}") };
    for (lane, value) in found.into_iter().enumerate() {
        assert_eq!(value, leader + if lane as u32 == leader { 100 } else { 0 });
    }
}

#[test]
fn shuffles() {
    let of = |mode: &str, distance: &str, clamp: u32| {
        format!("shfl.sync.{mode}.b32 %r4, %r1, {distance}, {clamp}, 0xffffffff;")
    };
    agrees("sm_80", &of("up", "3", 0), |lanes, lane| lanes[lane.checked_sub(3).unwrap_or(lane)]);
    agrees("sm_80", &of("down", "5", 31), |lanes, lane| lanes[if lane + 5 < 32 { lane + 5 } else { lane }]);
    agrees("sm_80", &of("bfly", "6", 31), |lanes, lane| lanes[lane ^ 6]);
    agrees("sm_80", &of("idx", "%r1", 31), |lanes, lane| lanes[(lanes[lane] & 31) as usize]);
    // Segments of 8 lanes: the mask of segments is 0x18.
    agrees("sm_80", &of("down", "2", 0x1807), |lanes, lane| {
        lanes[if lane % 8 + 2 < 8 { lane + 2 } else { lane }]
    });
}
