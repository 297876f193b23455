//! Single instructions against independent computation.

use crate::support::{Param, bytes_of_words, launch, module, words};

/// Runs `body`, which makes `%r4` of `%r1`, `%r2` and `%r3`, for each triple of words.
fn each(body: &str, triples: &[[u32; 3]]) -> Vec<u32> {
    let text = module(&format!(
        ".visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n) {{
        .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<32>; .reg .b64 %rd<32>; .reg .f32 %f<8>; .reg .f64 %d<8>;
        ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r10, [n];
        mov.u32 %r11, %tid.x; mov.u32 %r12, %ctaid.x; mad.lo.u32 %r11, %r12, 128, %r11;
        setp.ge.u32 %p7, %r11, %r10; @%p7 exit;
        mad.wide.u32 %rd3, %r11, 12, %rd1; mad.wide.u32 %rd4, %r11, 4, %rd2;
        ld.global.u32 %r1, [%rd3]; ld.global.u32 %r2, [%rd3+4]; ld.global.u32 %r3, [%rd3+8];
        {body}
        st.global.u32 [%rd4], %r4; }}"
    ));
    let flat: Vec<u32> = triples.iter().flatten().copied().collect();
    let count = triples.len() as u32;
    let params =
        [Param::Data(&bytes_of_words(&flat)), Param::Empty(4 * u64::from(count)), Param::Word(count)];
    let (report, buffers) = launch(&text, "k", [[count.div_ceil(128), 1, 1], [128, 1, 1]], 0, &params);
    assert_eq!(report.findings, [], "{body}");
    words(&buffers[1])
}

/// Numbers at the edges, and random ones.
fn triples() -> Vec<[u32; 3]> {
    let edges = [0, 1, 2, 31, 32, 33, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x1234_5678, 0x00ff_00ff];
    let mut random = crate::support::Random(3);
    let mut all = Vec::new();
    for a in edges {
        for b in edges {
            all.push([a, b, edges[all.len() % edges.len()]]);
        }
    }
    all.extend((0..200).map(|_| [random.next() as u32, random.next() as u32, random.next() as u32]));
    all
}

#[track_caller]
fn agrees(body: &str, expected: impl Fn(u32, u32, u32) -> u32) {
    let triples = triples();
    for (found, [a, b, c]) in each(body, &triples).into_iter().zip(triples.clone()) {
        assert_eq!(found, expected(a, b, c), "{body} of {a:#x}, {b:#x}, {c:#x}");
    }
}

#[test]
fn integer_arithmetic() {
    agrees("add.u32 %r4, %r1, %r2;", |a, b, _| a.wrapping_add(b));
    agrees("sub.s32 %r4, %r1, %r2;", |a, b, _| a.wrapping_sub(b));
    agrees("mul.lo.s32 %r4, %r1, %r2;", |a, b, _| a.wrapping_mul(b));
    agrees("mul.hi.u32 %r4, %r1, %r2;", |a, b, _| ((u64::from(a) * u64::from(b)) >> 32) as u32);
    agrees("mul.hi.s32 %r4, %r1, %r2;", |a, b, _| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32);
    agrees("mad.lo.s32 %r4, %r1, %r2, %r3;", |a, b, c| a.wrapping_mul(b).wrapping_add(c));
    agrees("mad.hi.sat.s32 %r4, %r1, %r2, %r3;", |a, b, c| {
        let high = ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as i32;
        high.saturating_add(c as i32) as u32
    });
    agrees("mul24.lo.u32 %r4, %r1, %r2;", |a, b, _| {
        (u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)) as u32
    });
    agrees("add.sat.s32 %r4, %r1, %r2;", |a, b, _| (a as i32).saturating_add(b as i32) as u32);
    agrees("sad.s32 %r4, %r1, %r2, %r3;", |a, b, c| (a as i32).abs_diff(b as i32).wrapping_add(c));
    agrees("min.s32 %r4, %r1, %r2;", |a, b, _| (a as i32).min(b as i32) as u32);
    agrees("max.u32 %r4, %r1, %r2;", |a, b, _| a.max(b));
    agrees("abs.s32 %r4, %r1;", |a, _, _| (a as i32).wrapping_abs() as u32);
    agrees("neg.s32 %r4, %r1;", |a, _, _| a.wrapping_neg());
    agrees("or.b32 %r2, %r2, 1; div.s32 %r4, %r1, %r2;", |a, b, _| {
        (a as i32).wrapping_div((b | 1) as i32) as u32
    });
    agrees("or.b32 %r2, %r2, 1; rem.u32 %r4, %r1, %r2;", |a, b, _| a % (b | 1));
}

#[test]
fn parts_of_words() {
    let each = |a: u32, b: u32, f: &dyn Fn(u8, u8) -> u8| {
        u32::from_le_bytes(std::array::from_fn(|n| f(a.to_le_bytes()[n], b.to_le_bytes()[n])))
    };
    agrees("vabsdiff4.u32.u32.u32 %r4, %r1, %r2, %r3;", |a, b, _| each(a, b, &u8::abs_diff));
    agrees("vabsdiff4.u32.u32.u32.add %r4, %r1, %r2, %r3;", |a, b, c| {
        let differences = each(a, b, &u8::abs_diff).to_le_bytes();
        differences.into_iter().fold(c, |sum, part| sum.wrapping_add(u32::from(part)))
    });
    agrees("vadd4.u32.u32.u32.sat %r4, %r1, %r2, %r3;", |a, b, _| each(a, b, &u8::saturating_add));
    agrees("vsub4.s32.s32.s32.sat %r4, %r1, %r2, %r3;", |a, b, _| {
        each(a, b, &|a, b| (a as i8).saturating_sub(b as i8) as u8)
    });
    agrees("vmin4.s32.s32.s32 %r4, %r1, %r2, %r3;", |a, b, _| {
        each(a, b, &|a, b| (a as i8).min(b as i8) as u8)
    });
    agrees("vavrg4.u32.u32.u32 %r4, %r1, %r2, %r3;", |a, b, _| {
        each(a, b, &|a, b| (u16::from(a) + u16::from(b)).div_ceil(2) as u8)
    });
    let halves = |a: u32, b: u32, f: &dyn Fn(u16, u16) -> u16| {
        u32::from(f(a as u16, b as u16)) | u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
    };
    agrees("vadd2.u32.u32.u32 %r4, %r1, %r2, %r3;", |a, b, _| halves(a, b, &u16::wrapping_add));
    agrees("vmax2.u32.u32.u32 %r4, %r1, %r2, %r3;", |a, b, _| halves(a, b, &u16::max));
}

#[test]
fn carries_make_wide_sums() {
    let body = "mov.b64 %rd5, {%r1, %r2}; mov.b64 %rd6, {%r3, %r1};
        add.cc.u32 %r5, %r1, %r3; addc.u32 %r6, %r2, %r1;
        add.u64 %rd7, %rd5, %rd6; mov.b64 %rd8, {%r5, %r6}; sub.u64 %rd9, %rd7, %rd8;
        sub.cc.u32 %r5, %r1, %r3; subc.u32 %r6, %r2, %r1;
        sub.u64 %rd7, %rd5, %rd6; mov.b64 %rd8, {%r5, %r6}; sub.u64 %rd10, %rd7, %rd8;
        or.b64 %rd9, %rd9, %rd10; cvt.u32.u64 %r4, %rd9;";
    agrees(body, |_, _, _| 0);
    // The carry of a difference says that nothing is borrowed.
    agrees("sub.cc.u32 %r5, %r1, %r2; addc.u32 %r4, 0, 0;", |a, b, _| u32::from(a >= b));
    agrees("add.cc.u32 %r5, %r1, %r2; subc.u32 %r4, %r3, 7;", |a, b, c| {
        c.wrapping_sub(7).wrapping_sub(u32::from(a.checked_add(b).is_some()))
    });
    let body = "mad.lo.cc.u32 %r5, %r1, %r2, %r3; madc.hi.u32 %r4, %r1, %r2, 0;";
    agrees(body, |a, b, c| ((u64::from(a) * u64::from(b) + u64::from(c)) >> 32) as u32);
}

#[test]
fn bits() {
    agrees("shl.b32 %r4, %r1, %r2;", |a, b, _| a.checked_shl(b).unwrap_or(0));
    agrees("shr.u32 %r4, %r1, %r2;", |a, b, _| a.checked_shr(b).unwrap_or(0));
    agrees("shr.s32 %r4, %r1, %r2;", |a, b, _| ((a as i32) >> b.min(31)) as u32);
    agrees("shf.l.wrap.b32 %r4, %r1, %r2, %r3;", |a, b, c| {
        ((u64::from(b) << 32 | u64::from(a)) << (c & 31) >> 32) as u32
    });
    agrees("shf.r.clamp.b32 %r4, %r1, %r2, %r3;", |a, b, c| {
        ((u64::from(b) << 32 | u64::from(a)) >> c.min(32)) as u32
    });
    agrees("lop3.b32 %r4, %r1, %r2, %r3, 0xe8;", |a, b, c| a & b | a & c | b & c);
    agrees("lop3.b32 %r4, %r1, %r2, %r3, 0x96;", |a, b, c| a ^ b ^ c);
    agrees("brev.b32 %r4, %r1;", |a, _, _| a.reverse_bits());
    agrees("popc.b32 %r4, %r1;", |a, _, _| a.count_ones());
    agrees("clz.b32 %r4, %r1;", |a, _, _| a.leading_zeros());
    agrees("bfind.u32 %r4, %r1;", |a, _, _| a.checked_ilog2().unwrap_or(u32::MAX));
    agrees("bfind.s32 %r4, %r1;", |a, _, _| {
        let a = if (a as i32) < 0 { !a } else { a };
        a.checked_ilog2().unwrap_or(u32::MAX)
    });
    agrees("bfe.u32 %r4, %r1, %r2, 7;", |a, b, _| {
        (u64::from(a).checked_shr(b & 255).unwrap_or(0) & 127) as u32
    });
    agrees("bfe.s32 %r4, %r1, 4, 8;", |a, _, _| i32::from((a >> 4) as u8 as i8) as u32);
    agrees("bfi.b32 %r4, %r1, %r2, 8, 12;", |a, b, _| b & !0xfff00 | (a & 0xfff) << 8);
    agrees("prmt.b32 %r4, %r1, %r2, 0x5410;", |a, b, _| a & 0xffff | b << 16);
    agrees("prmt.b32 %r4, %r1, %r2, 0xb3a2;", |a, _, _| {
        let sign = |byte: u32| if byte & 128 != 0 { 255 } else { 0 };
        let byte = |word: u32, n: u32| word >> (8 * n) & 255;
        byte(a, 2) | sign(byte(a, 2)) << 8 | byte(a, 3) << 16 | sign(byte(a, 3)) << 24
    });
    agrees("fns.b32 %r4, %r1, 0, 2;", |a, _, _| {
        let rest = a & a.wrapping_sub(1);
        if rest == 0 { u32::MAX } else { rest.trailing_zeros() }
    });
    agrees("dp4a.s32.u32 %r4, %r1, %r2, %r3;", |a, b, c| {
        (0..4).fold(c, |sum, n| {
            let x = i32::from((a >> (8 * n)) as u8 as i8);
            let y = i32::from((b >> (8 * n)) as u8);
            sum.wrapping_add((x * y) as u32)
        })
    });
    agrees("dp2a.hi.s32.s32 %r4, %r1, %r2, %r3;", |a, b, c| {
        (0..2).fold(c, |sum, n| {
            let x = i32::from((a >> (16 * n)) as u16 as i16);
            let y = i32::from((b >> (8 * (n + 2))) as u8 as i8);
            sum.wrapping_add((x * y) as u32)
        })
    });
}

#[test]
fn comparisons() {
    agrees("setp.lt.s32 %p1, %r1, %r2; selp.u32 %r4, 1, 0, %p1;", |a, b, _| u32::from((a as i32) < b as i32));
    agrees("setp.hs.u32 %p1, %r1, %r2; selp.u32 %r4, 1, 0, %p1;", |a, b, _| u32::from(a >= b));
    agrees(
        "setp.gt.u32 %p3, %r3, 100; setp.eq.and.u32 %p1|%p2, %r1, %r2, !%p3;
        selp.u32 %r4, 1, 0, %p1; selp.u32 %r5, 2, 0, %p2; or.b32 %r4, %r4, %r5;",
        |a, b, c| {
            let q = c <= 100;
            u32::from(a == b && q) | u32::from(a != b && q) << 1
        },
    );
    agrees(
        "mov.b32 %f1, %r1; mov.b32 %f2, %r2; setp.ltu.f32 %p1, %f1, %f2; selp.u32 %r4, 1, 0, %p1;",
        |a, b, _| {
            let (a, b) = (f32::from_bits(a), f32::from_bits(b));
            u32::from(a < b || a.is_nan() || b.is_nan())
        },
    );
    agrees("set.gt.u32.s32 %r4, %r1, %r2;", |a, b, _| if (a as i32) > b as i32 { u32::MAX } else { 0 });
    agrees("slct.u32.s32 %r4, %r1, %r2, %r3;", |a, b, c| if c as i32 >= 0 { a } else { b });
}

/// Equal bits, or both not a number.
fn same(value: f32) -> u32 {
    if value.is_nan() { 0x7fff_ffff } else { value.to_bits() }
}

#[test]
fn floating_point() {
    let of =
        |op: &str| format!("mov.b32 %f1, %r1; mov.b32 %f2, %r2; mov.b32 %f3, %r3; {op}; mov.b32 %r4, %f4;");
    let f = f32::from_bits;
    agrees(&of("add.rn.f32 %f4, %f1, %f2"), |a, b, _| same(f(a) + f(b)));
    agrees(&of("mul.f32 %f4, %f1, %f2"), |a, b, _| same(f(a) * f(b)));
    agrees(&of("fma.rn.f32 %f4, %f1, %f2, %f3"), |a, b, c| same(f(a).mul_add(f(b), f(c))));
    agrees(&of("div.rn.f32 %f4, %f1, %f2"), |a, b, _| same(f(a) / f(b)));
    agrees(&of("sqrt.rn.f32 %f4, %f1"), |a, _, _| same(f(a).sqrt()));
    agrees(&of("add.sat.f32 %f4, %f1, %f2"), |a, b, _| {
        let sum = f(a) + f(b);
        if sum > 0.0 { sum.min(1.0).to_bits() } else { 0 }
    });
    agrees(&of("mul.ftz.f32 %f4, %f1, %f2"), |a, b, _| {
        let flush = |x: f32| if x.is_subnormal() { 0.0_f32.copysign(x) } else { x };
        same(flush(flush(f(a)) * flush(f(b))))
    });
    agrees(&of("min.f32 %f4, %f1, %f2"), |a, b, _| match (f(a), f(b)) {
        (a, b) if a.is_nan() => same(b),
        (a, b) if b.is_nan() || a < b => a.to_bits(),
        (a, b) if a == b => a.to_bits() | b.to_bits(),
        (_, b) => b.to_bits(),
    });
    agrees(&of("max.NaN.f32 %f4, %f1, %f2"), |a, b, _| match (f(a), f(b)) {
        (a, b) if a.is_nan() || b.is_nan() => 0x7fff_ffff,
        (a, b) if a > b => a.to_bits(),
        (a, b) if a == b => a.to_bits() & b.to_bits(),
        (_, b) => b.to_bits(),
    });
    agrees(&of("copysign.f32 %f4, %f1, %f2"), |a, b, _| f(b).copysign(f(a)).to_bits());
}

/// A directed result is the nearest number on its side: its neighbour is beyond the exact value.
#[test]
fn directed_roundings() {
    let of = |op: &str| format!("mov.b32 %f1, %r1; mov.b32 %f2, %r2; {op}; mov.b32 %r4, %f4;");
    let triples = triples();
    let up = each(&of("mul.rp.f32 %f4, %f1, %f2"), &triples);
    let down = each(&of("mul.rm.f32 %f4, %f1, %f2"), &triples);
    let zero = each(&of("mul.rz.f32 %f4, %f1, %f2"), &triples);
    for (number, [a, b, _]) in triples.iter().enumerate() {
        let exact = f64::from(f32::from_bits(*a)) * f64::from(f32::from_bits(*b));
        let [up, down, zero] = [&up, &down, &zero].map(|list| f32::from_bits(list[number]));
        if exact.is_nan() {
            assert!(up.is_nan() && down.is_nan() && zero.is_nan());
            continue;
        }
        assert!(f64::from(down) <= exact && exact <= f64::from(up));
        assert!(down == up || down.next_up() == up);
        assert_eq!(zero, if exact > 0.0 { down } else { up });
    }
}

#[test]
fn conversions() {
    agrees("mov.b32 %f1, %r1; cvt.rzi.s32.f32 %r4, %f1;", |a, _, _| f32::from_bits(a) as i32 as u32);
    agrees("mov.b32 %f1, %r1; cvt.rni.u32.f32 %r4, %f1;", |a, _, _| {
        f32::from_bits(a).round_ties_even() as u32
    });
    agrees("cvt.rn.f32.s32 %f1, %r1; mov.b32 %r4, %f1;", |a, _, _| (a as i32 as f32).to_bits());
    agrees("cvt.rn.f64.u32 %d1, %r1; cvt.rn.f32.f64 %f1, %d1; mov.b32 %r4, %f1;", |a, _, _| {
        (f64::from(a) as f32).to_bits()
    });
    agrees("cvt.s32.s8 %r4, %r1;", |a, _, _| i32::from(a as u8 as i8) as u32);
    agrees("cvt.u32.u16 %r4, %r1;", |a, _, _| a & 0xffff);
    agrees("cvt.sat.u8.s32 %r4, %r1;", |a, _, _| (a as i32).clamp(0, 255) as u32);
    agrees("cvt.s16.s32 %r4, %r1;", |a, _, _| i32::from(a as u16 as i16) as u32);
    agrees("cvt.s64.s32 %rd5, %r1; shr.u64 %rd5, %rd5, 32; cvt.u32.u64 %r4, %rd5;", |a, _, _| {
        ((a as i32) >> 31) as u32
    });
    // To a half and back is exact for halves, and a half is the nearest of all.
    agrees(
        "mov.b32 {%h1, %h2}, %r1; cvt.f32.f16 %f1, %h1; cvt.rn.f16.f32 %h3, %f1; mov.b32 %r4, {%h3, %h3};",
        |a, _, _| {
            let half = a & 0xffff;
            let half = if half & 0x7fff > 0x7c00 { 0x7fff } else { half };
            half | half << 16
        },
    );
    agrees("mov.b32 %f1, %r1; cvt.rn.bf16.f32 %h1, %f1; mov.b32 %r4, {%h1, 0};", |a, _, _| {
        if f32::from_bits(a).is_nan() {
            return 0x7fff;
        }
        (a.wrapping_add(0x7fff + (a >> 16 & 1))) >> 16
    });
    agrees("mov.b32 %f1, %r1; cvt.rna.tf32.f32 %r4, %f1;", |a, _, _| {
        let value = f32::from_bits(a);
        // An H100 keeps the sign and the upper payload of a NaN (`backends/gpu/tests/goldens`).
        if value.is_nan() {
            return a & !0x1fff;
        }
        if value.is_infinite() { a } else { a.wrapping_add(0x1000) & !0x1fff }
    });
}

#[test]
fn halves() {
    // Products and sums of small integers are exact.
    let body = "and.b32 %r1, %r1, 15; and.b32 %r2, %r2, 15; and.b32 %r3, %r3, 15;
        cvt.rn.f16.u32 %h1, %r1; cvt.rn.f16.u32 %h2, %r2; cvt.rn.f16.u32 %h3, %r3;
        mov.b32 %r5, {%h1, %h2}; mov.b32 %r6, {%h3, %h3};
        fma.rn.f16x2 %r7, %r5, %r6, %r5; mov.b32 {%h4, %h5}, %r7;
        cvt.rzi.u32.f16 %r8, %h4; cvt.rzi.u32.f16 %r9, %h5; shl.b32 %r9, %r9, 16; or.b32 %r4, %r8, %r9;";
    agrees(body, |a, b, c| {
        let (a, b, c) = (a & 15, b & 15, c & 15);
        (a * c + a) | ((b * c + b) << 16)
    });
    let body = "mov.b32 %f1, %r1; mov.b32 %f2, %r2; cvt.rn.bf16x2.f32 %r5, %f1, %f2;
        max.bf16x2 %r6, %r5, %r5; xor.b32 %r4, %r5, %r6;";
    agrees(body, |_, _, _| 0);
}

#[test]
fn approximations_are_near() {
    let of = |op: &str| format!("mov.b32 %f1, %r1; {op}.f32 %f4, %f1; mov.b32 %r4, %f4;");
    type Exact = fn(f64) -> f64;
    let cases: [(&str, Exact); 7] = [
        ("ex2.approx", f64::exp2),
        ("lg2.approx", f64::log2),
        ("rcp.approx", |x| 1.0 / x),
        ("rsqrt.approx", |x| 1.0 / x.sqrt()),
        ("sin.approx", f64::sin),
        ("cos.approx", f64::cos),
        ("tanh.approx", f64::tanh),
    ];
    let mut random = crate::support::Random(5);
    let inputs: Vec<[u32; 3]> = (0..500).map(|_| [(3.0 + 2.9 * random.unit()).to_bits(), 0, 0]).collect();
    for (op, exact) in cases {
        for (found, [a, ..]) in each(&of(op), &inputs).into_iter().zip(&inputs) {
            let exact = exact(f64::from(f32::from_bits(*a)));
            let error = (f64::from(f32::from_bits(found)) - exact).abs();
            assert!(error <= exact.abs() * 1.2e-7 + 1e-30, "{op}: {found} for {exact}");
        }
    }
}
