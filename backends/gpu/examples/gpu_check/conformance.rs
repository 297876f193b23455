//! Single instructions: a GPU gives what the simulator computes, bit by bit.

use cudarc::driver::CudaContext;
use tilewright_gpu::Gpu;

use crate::Tally;
use crate::golden::Goldens;
use crate::kernel::{Case, LANES};

/// Instructions of three words (`%i0`, `%i1`, `%i2`) that make one (`%o0`).
const WORDS: &[(&str, &str)] = &[
    ("add", "add.u32 %o0, %i0, %i1;"),
    ("add.sat", "add.sat.s32 %o0, %i0, %i1;"),
    ("sub", "sub.s32 %o0, %i0, %i1;"),
    ("mul.hi.u32", "mul.hi.u32 %o0, %i0, %i1;"),
    ("mul.hi.s32", "mul.hi.s32 %o0, %i0, %i1;"),
    ("mad.lo", "mad.lo.s32 %o0, %i0, %i1, %i2;"),
    ("mad.hi.sat", "mad.hi.sat.s32 %o0, %i0, %i1, %i2;"),
    ("mul24", "mul24.lo.u32 %o0, %i0, %i1;"),
    ("sad", "sad.s32 %o0, %i0, %i1, %i2;"),
    ("div.s32", "or.b32 %r0, %i1, 1; div.s32 %o0, %i0, %r0;"),
    ("rem.u32", "or.b32 %r0, %i1, 1; rem.u32 %o0, %i0, %r0;"),
    ("min.s32", "min.s32 %o0, %i0, %i1;"),
    ("max.u32", "max.u32 %o0, %i0, %i1;"),
    ("abs", "abs.s32 %o0, %i0;"),
    ("addc", "add.cc.u32 %r0, %i0, %i1; addc.u32 %o0, %i2, 0;"),
    ("shl", "shl.b32 %o0, %i0, %i1;"),
    ("shr.s32", "shr.s32 %o0, %i0, %i1;"),
    ("shf.l.wrap", "shf.l.wrap.b32 %o0, %i0, %i1, %i2;"),
    ("shf.r.clamp", "shf.r.clamp.b32 %o0, %i0, %i1, %i2;"),
    ("lop3", "lop3.b32 %o0, %i0, %i1, %i2, 0xe8;"),
    ("prmt", "prmt.b32 %o0, %i0, %i1, %i2;"),
    ("bfe.u32", "bfe.u32 %o0, %i0, %i1, %i2;"),
    ("bfe.s32", "bfe.s32 %o0, %i0, %i1, %i2;"),
    ("bfi", "bfi.b32 %o0, %i0, %i1, %i2, 9;"),
    ("brev", "brev.b32 %o0, %i0;"),
    ("popc", "popc.b32 %o0, %i0;"),
    ("clz", "clz.b32 %o0, %i0;"),
    ("bfind.s32", "bfind.s32 %o0, %i0;"),
    ("dp4a", "dp4a.s32.u32 %o0, %i0, %i1, %i2;"),
    ("dp2a", "dp2a.hi.s32.s32 %o0, %i0, %i1, %i2;"),
    ("setp", "setp.lt.s32 %p0, %i0, %i1; selp.u32 %o0, %i1, %i2, %p0;"),
    ("add.f32", "mov.b32 %f0, %i0; mov.b32 %f1, %i1; add.rn.f32 %f2, %f0, %f1; mov.b32 %o0, %f2;"),
    ("mul.rz.ftz.f32", "mov.b32 %f0, %i0; mov.b32 %f1, %i1; mul.rz.ftz.f32 %f2, %f0, %f1; mov.b32 %o0, %f2;"),
    (
        "fma.f32",
        "mov.b32 %f0, %i0; mov.b32 %f1, %i1; mov.b32 %f2, %i2; fma.rn.f32 %f3, %f0, %f1, %f2; mov.b32 %o0, %f3;",
    ),
    ("div.f32", "mov.b32 %f0, %i0; mov.b32 %f1, %i1; div.rn.f32 %f2, %f0, %f1; mov.b32 %o0, %f2;"),
    ("sqrt.f32", "mov.b32 %f0, %i0; sqrt.rn.f32 %f1, %f0; mov.b32 %o0, %f1;"),
    ("min.f32", "mov.b32 %f0, %i0; mov.b32 %f1, %i1; min.f32 %f2, %f0, %f1; mov.b32 %o0, %f2;"),
    ("max.NaN.f32", "mov.b32 %f0, %i0; mov.b32 %f1, %i1; max.NaN.f32 %f2, %f0, %f1; mov.b32 %o0, %f2;"),
    (
        "fma.f64",
        "mov.b64 %d0, {%i0, %i1}; mov.b64 %d1, {%i1, %i2}; fma.rn.f64 %d2, %d0, %d1, %d0; mov.b64 {%r0, %o0}, %d2;",
    ),
    ("cvt.s32.f32", "mov.b32 %f0, %i0; cvt.rni.s32.f32 %o0, %f0;"),
    ("cvt.f32.s32", "cvt.rn.f32.s32 %f0, %i0; mov.b32 %o0, %f0;"),
    ("cvt.f16", "mov.b32 %f0, %i0; cvt.rn.f16.f32 %h0, %f0; mov.b32 %o0, {%h0, %h0};"),
    ("cvt.bf16x2", "mov.b32 %f0, %i0; mov.b32 %f1, %i1; cvt.rn.bf16x2.f32 %o0, %f0, %f1;"),
    ("cvt.tf32", "mov.b32 %f0, %i0; cvt.rna.tf32.f32 %o0, %f0;"),
    ("cvt.sat.u8", "cvt.sat.u8.s32 %o0, %i0;"),
    ("fma.f16x2", "fma.rn.f16x2 %o0, %i0, %i1, %i2;"),
    ("fma.bf16x2", "fma.rn.bf16x2 %o0, %i0, %i1, %i2;"),
    ("shfl.bfly", "shfl.sync.bfly.b32 %o0, %i0, 5, 31, 0xffffffff;"),
    ("shfl.idx", "shfl.sync.idx.b32 %o0, %i0, %i1, 31, 0xffffffff;"),
    ("shfl.down", "shfl.sync.down.b32 %o0, %i0, 2, 0x1807, 0xffffffff;"),
    ("vote.ballot", "setp.lt.u32 %p0, %i0, %i1; vote.sync.ballot.b32 %o0, %p0, 0xffffffff;"),
    ("match.any", "and.b32 %r0, %i0, 3; match.any.sync.b32 %o0, %r0, 0xffffffff;"),
    ("redux.add", "redux.sync.add.u32 %o0, %i0, 0xffffffff;"),
    ("redux.min", "redux.sync.min.s32 %o0, %i0, 0xffffffff;"),
    ("redux.xor", "redux.sync.xor.b32 %o0, %i0, 0xffffffff;"),
];

/// Products of matrices: shape and types, the registers of A, B and C, and numbers whose sums are exact.
const PRODUCTS: &[(&str, [usize; 3], Inputs)] = &[
    ("m16n8k8.row.col.f32.f16.f16.f32", [2, 1, 4], Inputs::Halves),
    ("m16n8k16.row.col.f32.f16.f16.f32", [4, 2, 4], Inputs::Halves),
    ("m16n8k8.row.col.f32.bf16.bf16.f32", [2, 1, 4], Inputs::BrainHalves),
    ("m16n8k16.row.col.f32.bf16.bf16.f32", [4, 2, 4], Inputs::BrainHalves),
    ("m16n8k4.row.col.f32.tf32.tf32.f32", [2, 1, 4], Inputs::Floats),
    ("m16n8k8.row.col.f32.tf32.tf32.f32", [4, 2, 4], Inputs::Floats),
    ("m8n8k16.row.col.s32.s8.s8.s32", [1, 1, 2], Inputs::Integers),
    ("m16n8k16.row.col.s32.u8.s8.s32", [2, 1, 4], Inputs::Integers),
    ("m16n8k32.row.col.s32.s8.u8.s32", [4, 2, 4], Inputs::Integers),
    ("m16n8k32.row.col.satfinite.s32.u8.u8.s32", [4, 2, 4], Inputs::Integers),
    ("m8n8k32.row.col.s32.s4.s4.s32", [1, 1, 2], Inputs::Integers),
    ("m16n8k64.row.col.s32.u4.s4.s32", [4, 2, 4], Inputs::Integers),
];

/// How the words of the operands A and B are drawn.
#[derive(Clone, Copy)]
enum Inputs {
    /// Any bits.
    Integers,
    /// Pairs of small integers as binary16.
    Halves,
    /// Pairs of small integers as bfloat16.
    BrainHalves,
    /// Small integers as binary32.
    Floats,
}

impl Inputs {
    fn word(self, bits: u32) -> u32 {
        let small = (bits % 9) as f32 - 4.0;
        let other = (bits >> 8) % 9;
        match self {
            Inputs::Integers => bits,
            Inputs::Halves => {
                // 0, 1, 2, 3, 4, −1, −2, −3, −4.
                const SMALL: [u32; 9] =
                    [0x0000, 0x3c00, 0x4000, 0x4200, 0x4400, 0xbc00, 0xc000, 0xc200, 0xc400];
                SMALL[(bits % 9) as usize] | SMALL[other as usize] << 16
            }
            Inputs::BrainHalves => small.to_bits() >> 16 | (other as f32 - 4.0).to_bits() & 0xffff_0000,
            Inputs::Floats => small.to_bits(),
        }
    }
}

/// Numbers at the edges of types, which random bits rarely are.
const EDGES: [u32; 18] = [
    0,
    1,
    2,
    31,
    32,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x3f80_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0x0000_0001,
    0x0080_0000,
    0x7bff_fbff,
    0x00ff_00ff,
    0x7f80_0001,
    0xffa0_0000,
];

/// xorshift64* (Vigna, 2016).
struct Random(u64);

impl Random {
    fn word(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }
}

/// Compares all instructions on a GPU, and writes what the GPU makes.
pub(crate) fn check(gpu: &Gpu, device: usize, mut goldens: Option<Goldens>, tally: &mut Tally) {
    let capability = gpu.facts().compute_capability;
    let architecture = 10 * u32::from(capability.major) + u32::from(capability.minor);
    let context = match CudaContext::new(device) {
        Ok(context) => context,
        Err(error) => return tally.note("conformance", Err(error.to_string())),
    };
    let mut random = Random(2026);
    for (name, body) in WORDS {
        let case =
            Case { name: (*name).into(), architecture: 80, inputs: 3, outputs: 1, body: (*body).into() };
        for round in 0..4 {
            let mut word = || match random.word() {
                word if round % 2 == 0 && word % 2 == 0 => EDGES[(word >> 4) as usize % EDGES.len()],
                word => word,
            };
            let inputs: Vec<u32> = (0..3 * LANES).map(|_| word()).collect();
            tally.note(&case.name, compare(&case, &context, &inputs, &mut goldens));
        }
    }
    for case in others().into_iter().filter(|case| case.architecture <= architecture) {
        let inputs: Vec<u32> = (0..case.inputs * LANES).map(|_| random.word()).collect();
        tally.note(&case.name, compare(&case, &context, &inputs, &mut goldens));
    }
    for (name, counts, kind) in PRODUCTS {
        let case = product(name, *counts);
        let [a, b, c] = *counts;
        let mut inputs = Vec::new();
        for _ in 0..LANES {
            inputs.extend((0..a + b).map(|_| kind.word(random.word())));
            let sums = if matches!(kind, Inputs::Integers) { Inputs::Integers } else { Inputs::Floats };
            inputs.extend((0..c).map(|_| sums.word(random.word())));
        }
        tally.note(&case.name, compare(&case, &context, &inputs, &mut goldens));
    }
}

/// `mma` of fragments that are the inputs of lanes.
fn product(name: &str, [a, b, c]: [usize; 3]) -> Case {
    let is_float = !name.contains(".s32.");
    let list = |from: usize, count: usize| {
        let names: Vec<String> = (from..from + count).map(|number| format!("%i{number}")).collect();
        format!("{{{}}}", names.join(", "))
    };
    let sums = |prefix: &str, from: usize| {
        let names: Vec<String> = (from..from + c).map(|number| format!("{prefix}{number}")).collect();
        format!("{{{}}}", names.join(", "))
    };
    let body = if is_float {
        let load = (0..c).map(|n| format!("mov.b32 %f{n}, %i{};", a + b + n)).collect::<String>();
        let store = (0..c).map(|n| format!("mov.b32 %o{n}, %f{};", 8 + n)).collect::<String>();
        let (d, c) = (sums("%f", 8), sums("%f", 0));
        format!("{load} mma.sync.aligned.{name} {d}, {}, {}, {c}; {store}", list(0, a), list(a, b))
    } else {
        let (d, c) = (sums("%o", 0), list(a + b, c));
        format!("mma.sync.aligned.{name} {d}, {}, {}, {c};", list(0, a), list(a, b))
    };
    Case { name: format!("mma.{name}"), architecture: 80, inputs: a + b + c, outputs: c, body }
}

/// Instructions that move matrices and words through shared memory.
fn others() -> Vec<Case> {
    let fill = "shl.b32 %r0, %lane, 4; add.u32 %r0, %tile, %r0; st.shared.v4.u32 [%r0], {%i0, %i1, %i2, %i3};
        bar.warp.sync 0xffffffff;";
    let read = "bar.warp.sync 0xffffffff; ld.shared.v4.u32 {%o0, %o1, %o2, %o3}, [%r0];";
    let of = |name: &str, architecture, body: String| Case {
        name: name.into(),
        architecture,
        inputs: 4,
        outputs: 4,
        body,
    };
    let load = |trans: &str| {
        format!("{fill} ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {{%o0, %o1, %o2, %o3}}, [%r0];")
    };
    let store = |trans: &str| {
        format!(
            "shl.b32 %r0, %lane, 4; add.u32 %r0, %tile, %r0;
            stmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 [%r0], {{%i0, %i1, %i2, %i3}}; {read}"
        )
    };
    let copy = "shl.b32 %r0, %lane, 4; add.u32 %r0, %tile, %r0; cp.async.cg.shared.global [%r0], [%in], 16;
        cp.async.commit_group; cp.async.wait_group 0;";
    vec![
        of("ldmatrix", 80, load("")),
        of("ldmatrix.trans", 80, load(".trans")),
        of("stmatrix", 90, store("")),
        of("stmatrix.trans", 90, store(".trans")),
        of("cp.async", 80, format!("{copy} {read}")),
    ]
}

/// The same outputs on both.
fn compare(
    case: &Case,
    context: &CudaContext,
    inputs: &[u32],
    goldens: &mut Option<Goldens>,
) -> Result<(), String> {
    let found = case.run(context, inputs)?;
    if let Some(goldens) = goldens {
        goldens.add(case, inputs, &found)?;
    }
    let expected = case.simulate(inputs)?;
    let Some(at) = (0..found.len()).find(|at| found[*at] != expected[*at]) else { return Ok(()) };
    let (lane, number) = (at / case.outputs, at % case.outputs);
    let given = &inputs[lane * case.inputs..][..case.inputs];
    Err(format!("lane {lane}, word {number}: {:#x} instead of {:#x}, of {given:x?}", found[at], expected[at]))
}
