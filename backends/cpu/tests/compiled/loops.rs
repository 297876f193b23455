//! Loops, conditionals, intermediates and parallel loops.

use tilewright_core::dtype::DType;
use tilewright_core::expr::Constant;
use tilewright_core::interp;
use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::tensor::AnyTensor;

use crate::execute::agree;
use crate::support::{Call, compile, host, list, program};

fn random(dtype: DType, len: usize, seed: u64) -> AnyTensor {
    AnyTensor::random(dtype, &[len], seed).expect("a small tensor")
}

fn zeros(dtype: DType, len: usize) -> AnyTensor {
    AnyTensor::zeros(dtype, &[len]).expect("a small tensor")
}

#[test]
fn dimensions_and_scalars_are_known_at_run_time() {
    let axpy = program(
        "kernel axpy(N, alpha: f32, in x: f32[N], inout y: f32[N]) {
           for i in 0..N/8 {
             y[i*8 + lane<8>] = mul_add(alpha, x[i*8 + lane<8>], y[i*8 + lane<8>])
           }
           for i_1 in 0..N%8 {
             y[(N/8)*8 + i_1] = mul_add(alpha, x[(N/8)*8 + i_1], y[(N/8)*8 + i_1])
           }
         }",
    );
    for len in [0, 1, 7, 8, 9, 31, 64, 1001] {
        let tensors = vec![random(DType::F32, len, 1), random(DType::F32, len, 2)];
        Call { dims: vec![len as i64], scalars: vec![Constant::float(1.25)], tensors }.check(&axpy);
    }
}

#[test]
fn scalars_of_every_type_arrive() {
    let text = "kernel scalars(a: f32, b: f64, c: i8, d: u8, e: i32, f: i64, g: f16, h: bf16, k: bool, out y: f64[9]) {
           y[0] = a as f64
           y[1] = b
           y[2] = c as f64
           y[3] = d as f64
           y[4] = e as f64
           y[5] = f as f64
           y[6] = g as f64
           y[7] = h as f64
           y[8] = select(k, 1.0f64, 2.0f64)
         }";
    let program = program(text);
    let scalars = vec![
        Constant::float(0.5),
        Constant::float(0.1),
        Constant::Int(-5),
        Constant::Int(250),
        Constant::Int(-70_000),
        Constant::Int(1 << 40),
        Constant::float(1.5),
        Constant::float(-3.0),
        Constant::Int(1),
    ];
    Call { scalars, tensors: vec![zeros(DType::F64, 9)], ..Call::default() }.check(&program);
}

#[test]
fn vectorized_updates_become_trees_of_every_width() {
    let updates = [
        (DType::F32, "max(c[v], a[PLACE])"),
        (DType::F32, "c[v] + a[PLACE] * a[PLACE]"),
        (DType::I32, "c[v] + a[PLACE]"),
        (DType::F64, "min(c[v], a[PLACE])"),
        (DType::I64, "c[v] + a[PLACE]"),
        (DType::U8, "max(c[v], a[PLACE])"),
    ];
    for (dtype, update) in updates {
        for width in (2..=40).chain([64, 100, 256]) {
            let (name, update) = (dtype.name(), update.replace("PLACE", &format!("v*{width} + w")));
            let scheduled = program(&format!(
                "kernel trees(in a: {name}[{}], inout c: {name}[3]) {{
                   for i in 0..3 {{
                     vectorized for j in 0..{width} {{
                       block c(v: spatial 3 = i, w: reduce {width} = j) {{ c[v] = {update} }}
                     }}
                   }}
                 }}",
                3 * width
            ));
            let flat = lower(&scheduled, &LowerOptions::default()).unwrap_or_else(|error| panic!("{error}"));
            assert!(width == 2 || flat.to_string().contains("partial"), "{flat}");
            let call =
                Call { tensors: vec![random(dtype, 3 * width, 1), random(dtype, 3, 2)], ..Call::default() };
            call.check(&flat);
            let run = |program| {
                let mut tensors = call.tensors.clone();
                interp::run(program, &[], &[], &mut tensors).unwrap_or_else(|error| panic!("{error}"));
                tensors
            };
            agree(&run(&flat), &run(&scheduled)).unwrap_or_else(|problem| panic!("{problem}\n{flat}"));
        }
    }
}

/// A register tile with its accumulators in a local buffer.
fn tiled_matmul(m: i64, n: i64, k: i64) -> String {
    let mut body = String::new();
    for row in 0..4 {
        body += &format!("acc[lane<8> + {}] = 0.0\n", row * 8);
    }
    body += &format!("for k in 0..{k} {{\n");
    for row in 0..4 {
        body += &format!(
            "acc[lane<8> + {at}] = mul_add(a[(i*4 + {row})*{k} + k], b[k*{n} + j*8 + lane<8>], acc[lane<8> + {at}])\n",
            at = row * 8
        );
    }
    body += "}\n";
    for row in 0..4 {
        body += &format!("c[(i*4 + {row})*{n} + j*8 + lane<8>] = acc[lane<8> + {}]\n", row * 8);
    }
    format!(
        "kernel matmul(in a: f32[{}], in b: f32[{}], out c: f32[{}]) {{
           buffer acc: f32[32] local
           parallel for i in 0..{} {{ for j in 0..{} {{ alloc acc {{ {body} }} }} }}
         }}",
        m * k,
        k * n,
        m * n,
        m / 4,
        n / 8
    )
}

#[test]
fn accumulators_stay_in_registers() {
    let program = program(&tiled_matmul(12, 24, 7));
    let tensors = vec![random(DType::F32, 84, 1), random(DType::F32, 168, 2), zeros(DType::F32, 288)];
    Call { tensors, ..Call::default() }.check(&program);
    let listing = list(host(), &program);
    let spills = listing.lines().filter(|line| line.contains("%xmm") && line.contains("%rsp")).count();
    assert_eq!(spills, 0, "{listing}");
}

#[test]
fn single_lanes_of_accumulators_can_be_read_and_written() {
    let program = program(
        "kernel sum(in x: f32[64], out y: f32[4]) {
           buffer acc: f32[8] local
           alloc acc {
             acc[lane<8>] = 0.0
             acc[3] = 100.0
             acc[6] = acc[3] + 1.0
             for i in 0..8 { acc[lane<8>] = acc[lane<8>] + x[i*8 + lane<8>] }
             y[0] = acc[0] + acc[1] + acc[2] + acc[3]
             y[1] = acc[4] + acc[5] + acc[6] + acc[7]
             y[lane<2> + 2] = acc[lane<2>*4 + 1]
           }
         }",
    );
    Call { tensors: vec![random(DType::F32, 64, 3), zeros(DType::F32, 4)], ..Call::default() }
        .check(&program);
}

#[test]
fn intermediates_of_every_type_live_in_registers_or_in_memory() {
    for &dtype in DType::COMPUTED {
        let text = |place: &str| {
            format!(
                "kernel copy(in x: {dtype}[28], out y: {dtype}[28]) {{
                   buffer t: {dtype}[14] local
                   for i in 0..2 {{
                     alloc t {{
                       t[lane<7>] = x[i*14 + lane<7>]
                       for j in 0..7 {{ t[{place}] = x[i*14 + 7 + j] }}
                       y[i*14 + lane<7>] = t[lane<7>]
                       y[i*14 + lane<7> + 7] = t[lane<7> + 7]
                     }}
                   }}
                 }}"
            )
        };
        for text in [
            text("j + 7"),
            text("j + 7").replace(
                "for j in 0..7 { t[j + 7] = x[i*14 + 7 + j] }",
                "t[lane<7> + 7] = x[i*14 + 7 + lane<7>]",
            ),
        ] {
            let tensors = vec![random(dtype, 28, 5), zeros(dtype, 28)];
            Call { tensors, ..Call::default() }.check(&program(&text));
        }
    }
}

#[test]
fn large_and_symbolic_intermediates_live_in_the_workspace() {
    let program = program(
        "kernel two_steps(N, in x: f32[N], out y: f32[N]) {
           buffer t: f32[N] global
           buffer u: f32[N*3 + 1] global
           buffer big: f32[8192] local
           alloc t {
             parallel for i in 0..N { t[i] = x[i] * 2.0 }
             alloc u {
               for i_1 in 0..N { u[i_1*3] = t[i_1] + 1.0 }
               parallel for i_2 in 0..N {
                 alloc big {
                   for j in 0..64 { big[j*128 + i_2 % 128] = u[i_2*3] }
                   y[i_2] = big[i_2 % 128] - big[i_2 % 128 + 8064]*0.5
                 }
               }
             }
           }
         }",
    );
    for len in [0, 1, 5, 300] {
        let tensors = vec![random(DType::F32, len, 1), zeros(DType::F32, len)];
        Call { dims: vec![len as i64], tensors, ..Call::default() }.check(&program);
    }
}

#[test]
fn parallel_loops_inside_parallel_loops() {
    let program = program(
        "kernel nested(M, N, in x: i32[M*N], out y: i32[M*N]) {
           for r in 0..3 {
             parallel for i in 0..M {
               parallel for j in 0..N { y[i*N + j] = x[i*N + j] * (r as i32) + (i*7 + j) as i32 }
             }
           }
         }",
    );
    for (m, n) in [(0, 4), (1, 1), (3, 0), (17, 9), (200, 3)] {
        let len = m * n;
        let tensors = vec![random(DType::I32, len, 1), zeros(DType::I32, len)];
        Call { dims: vec![m as i64, n as i64], tensors, ..Call::default() }.check(&program);
    }
}

#[test]
fn conditionals_guard_the_accesses_inside() {
    let program = program(
        "kernel guarded(N, in x: f32[N], inout y: f32[N]) {
           for i in 0..(N + 3)/4 {
             for j in 0..4 {
               if i*4 + j < N {
                 y[i*4 + j] = x[i*4 + j] + 1.0
               }
               if i*4 + j < N - 1 { y[i*4 + j] = y[i*4 + j] + x[i*4 + j + 1] } else {
                 if i*4 + j < N { y[i*4 + j] = 0.5 }
               }
             }
           }
         }",
    );
    for len in [0, 1, 4, 5, 18] {
        let tensors = vec![random(DType::F32, len, 1), random(DType::F32, len, 2)];
        Call { dims: vec![len as i64], tensors, ..Call::default() }.check(&program);
    }
}

#[test]
fn concurrent_calls_do_not_share_memory() {
    let program = program(
        "kernel scaled(a: f32, N, in x: f32[N], out y: f32[N]) {
           buffer t: f32[N] global
           alloc t {
             for i in 0..N { t[i] = x[i] * a }
             parallel for i_1 in 0..N { y[i_1] = t[N - 1 - i_1] }
           }
         }"
        .replace("a: f32, N", "N, a: f32")
        .as_str(),
    );
    let kernel = compile(host(), &program);
    std::thread::scope(|scope| {
        for thread in 1..5u32 {
            let (kernel, program) = (&*kernel, &program);
            scope.spawn(move || {
                let x: Vec<f64> = (0..999).map(f64::from).collect();
                let x = AnyTensor::from_f64s(DType::F32, &x, &[999]).unwrap();
                let factor = f64::from(thread);
                let call = Call {
                    dims: vec![999],
                    scalars: vec![Constant::float(factor)],
                    tensors: vec![x, zeros(DType::F32, 999)],
                };
                for _ in 0..50 {
                    let found = call.run(program, kernel, 2, true).unwrap().remove(1).to_f64_vec();
                    let expected: Vec<f64> = (0..999).rev().map(|n| f64::from(n) * factor).collect();
                    assert_eq!(found, expected, "thread {thread}");
                }
            });
        }
    });
}

#[test]
fn nests_of_parallel_loops_share_their_iterations() {
    let nest = program(
        "kernel nest(M, N, K, in x: f32[M*N*K*8], out y: f32[M*N*K*8]) {
           parallel for i in 0..M {
             parallel for j in 0..N + 1 {
               parallel for k in 0..K {
                 if j < N {
                   y[i*N*K*8 + j*K*8 + k*8 + lane<8>] = x[i*N*K*8 + j*K*8 + k*8 + lane<8>] * 2.0
                 }
               }
             }
           }
         }",
    );
    for dims in [[1, 1, 1], [3, 1, 5], [1, 7, 2], [5, 4, 3], [0, 3, 2], [2, 0, 3], [2, 3, 0]] {
        let len = dims.iter().product::<i64>() as usize * 8;
        let tensors = vec![random(DType::F32, len, 1), zeros(DType::F32, len)];
        Call { dims: dims.to_vec(), scalars: Vec::new(), tensors }.check(&nest);
    }
}

#[test]
fn a_parallel_loop_whose_extent_varies_is_serial() {
    let triangle = program(
        "kernel triangle(N, in x: f32[N*N], inout y: f32[N*N]) {
           parallel for i in 0..N {
             parallel for j in 0..i {
               y[i*N + j] = x[i*N + j] + 1.0
             }
           }
         }",
    );
    for n in [0, 1, 2, 9] {
        let tensors = vec![random(DType::F32, (n * n) as usize, 1), zeros(DType::F32, (n * n) as usize)];
        Call { dims: vec![n], scalars: Vec::new(), tensors }.check(&triangle);
    }
}
