//! Streamed results and prefetches change nothing but time: also where rows are no multiple of a line, where results
//! begin in the middle of one, and where prefetched lines lie behind a tensor.

use tilewright_core::device::{Arguments, BufferArgument};
use tilewright_core::dtype::DType;
use tilewright_core::target::RunOptions;
use tilewright_core::tensor::AnyTensor;
use tilewright_cpu::CpuDevice;

use crate::support::{Call, compile, host, list, program};

fn random(dtype: DType, len: usize, seed: u64) -> AnyTensor {
    AnyTensor::random(dtype, &[len], seed).expect("a small tensor")
}

fn zeros(dtype: DType, len: usize) -> AnyTensor {
    AnyTensor::zeros(dtype, &[len]).expect("a small tensor")
}

/// Rows of `row` elements, in vectors of `lanes` and single elements behind them.
fn rows(dtype: &str, rows: usize, row: usize, lanes: usize) -> String {
    let (whole, len) = (row / lanes, rows * row);
    format!(
        "kernel rows(in x: {dtype}[{len}], out y: {dtype}[{len}] streamed) {{
           parallel for i in 0..{rows} {{
             @prefetch 5
             for j in 0..{whole} {{
               y[i*{row} + j*{lanes} + lane<{lanes}>] = x[i*{row} + j*{lanes} + lane<{lanes}>]
                 + x[i*{row} + j*{lanes} + lane<{lanes}>]
             }}
             for j in 0..{rest} {{
               y[i*{row} + {start} + j] = x[i*{row} + {start} + j] + x[i*{row} + {start} + j]
             }}
           }}
         }}",
        rest = row - whole * lanes,
        start = whole * lanes,
    )
}

#[test]
fn rows_of_any_length() {
    for (dtype, name) in [(DType::F32, "f32"), (DType::F64, "f64"), (DType::I8, "i8"), (DType::BF16, "bf16")]
    {
        for row in [1, 16, 37, 64, 128, 131] {
            for lanes in [2, 8, 16, 32, 48] {
                let text = rows(name, 5, row, lanes);
                let tensors = vec![random(dtype, 5 * row, 3), zeros(dtype, 5 * row)];
                Call { tensors, ..Call::default() }.check(&program(&text));
            }
        }
    }
}

#[test]
fn streamed_results_that_begin_anywhere() {
    let program = program(&rows("f32", 3, 128, 32));
    let kernel = compile(host(), &program);
    let x = random(DType::F32, 3 * 128, 7);
    let expected: Vec<u8> =
        x.as_slice::<f32>().expect("floats").iter().flat_map(|value| (value + value).to_le_bytes()).collect();
    let mut memory = zeros(DType::F32, 3 * 128 + 32);
    for start in (0..128).step_by(4) {
        memory.bytes_mut().fill(0xA5);
        let own = &mut memory.bytes_mut()[start..start + expected.len()];
        let buffers = &mut [BufferArgument::Read(x.bytes()), BufferArgument::Write(own)];
        kernel
            .run(&mut Arguments { dims: &[], scalars: &[], buffers }, RunOptions::with_threads(2))
            .expect("fitting arguments");
        assert_eq!(memory.bytes()[start..start + expected.len()], expected, "from byte {start} on");
        let (before, behind) = (&memory.bytes()[..start], &memory.bytes()[start + expected.len()..]);
        assert!(before.iter().chain(behind).all(|byte| *byte == 0xA5), "from byte {start} on");
    }
}

#[test]
fn strides_known_at_run_time_and_loops_ahead() {
    let program = program(
        "kernel sums(M, N, in x: f32[M*N*16], in z: f32[N], out y: f32[M*16] streamed, inout w: f32[M]) {
           buffer s: f32[16] local
           @prefetch 1
           for i in 0..M {
             alloc s {
               s[lane<16>] = 0.0
               @prefetch 7
               for j in 0..N {
                 s[lane<16>] = mul_add(x[i*N*16 + j*16 + lane<16>], z[j], s[lane<16>])
               }
               y[i*16 + lane<16>] = s[lane<16>]
             }
             @prefetch 1024
             for j in 0..N { w[i] = w[i] + x[(i*N + j)*16 + (i + j)%3] }
           }
         }",
    );
    for (m, n) in [(0, 3), (1, 0), (3, 1), (7, 37)] {
        let tensors = vec![
            random(DType::F32, m * n * 16, 1),
            random(DType::F32, n, 2),
            zeros(DType::F32, m * 16),
            random(DType::F32, m, 4),
        ];
        Call { dims: vec![m as i64, n as i64], tensors, ..Call::default() }.check(&program);
    }
}

#[test]
fn what_a_schedule_asks_for_is_in_the_code() {
    let program = program(&rows("f32", 5, 128, 32));
    let narrow = CpuDevice::without_features("-avx512f").expect("a known feature");
    for backend in [host(), &narrow] {
        let listing = list(backend, &program);
        if !listing.contains("vzeroupper") {
            continue;
        }
        for mnemonic in ["vmovntps", "sfence", "prefetcht"] {
            assert!(listing.contains(mnemonic), "no {mnemonic} in\n{listing}");
        }
    }
}

#[test]
fn what_every_run_reads_again_is_not_asked_for_a_run_ahead() {
    let count = |distance: i64| {
        let program = program(&format!(
            "kernel scaled(in x: f32[1280], in z: f32[256], out y: f32[1280]) {{
               for i in 0..5 {{
                 @prefetch {distance}
                 for j in 0..16 {{
                   y[i*256 + j*16 + lane<16>] = x[i*256 + j*16 + lane<16>] * z[j*16 + lane<16>]
                 }}
               }}
             }}"
        ));
        list(host(), &program).matches("prefetcht").count()
    };
    let (near, next_run) = (count(15), count(16));
    // With vectors of 128 bits there is no leaf, and nothing is prefetched.
    assert_eq!(near, 2 * next_run, "{near} lines before the end of a run, {next_run} of the next one");
}

#[test]
fn a_loop_asks_for_its_share_of_what_the_loops_beside_it_read() {
    let normalized = |read: &str, iterations: usize, rows: &str| {
        program(&format!(
            "kernel normalized(in x: f32[2048], out y: f32[{len}]) {{
               buffer s: f32[16] local
               {rows} i in 0..5 {{
                 alloc s {{
                   s[lane<16>] = 0.0
                   for j in 0..16 {{ s[lane<16>] = s[lane<16>] + x[{read}] }}
                   @prefetch_beside 1
                   for j in 0..{iterations} {{ y[i*{row} + j*16 + lane<16>] = s[lane<16>] }}
                 }}
               }}
             }}",
            len = 80 * iterations,
            row = 16 * iterations,
        ))
    };
    let row = "i*256 + j*16 + lane<16>";
    // A row is 16 lines. Every second line is no run, and lines that stay the same are not prefetched again.
    for (read, iterations, expected) in [
        (row, 16, 1),
        (row, 8, 2),
        (row, 5, 4),
        ("i*32 + j*32 + lane<16>", 16, 0),
        ("j*16 + lane<16>", 16, 0),
    ] {
        for rows in ["for", "parallel for"] {
            let program = normalized(read, iterations, rows);
            let tensors = vec![random(DType::F32, 2048, 1), zeros(DType::F32, 80 * iterations)];
            Call { tensors, ..Call::default() }.check(&program);
            let listing = list(host(), &program);
            if listing.contains("vzeroupper") {
                assert_eq!(
                    listing.matches("prefetcht0").count(),
                    expected,
                    "{read}, {iterations} iterations:\n{listing}"
                );
            }
        }
    }
}
