//! Updates in one step: histograms, scatters, and reductions that are split over blocks of threads.

use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::schedule::Schedule;
use tilewright_core::target::Target;
use tilewright_core::tensor::AnyTensor;
use tilewright_core::thread_axis::ThreadAxis;
use tilewright_gpu::emit;
use tilewright_search::schedule_by_default;

use crate::assembler::assemble;
use crate::support::{Call, code_of, lowered, parse};

/// The elements of a table that data choose, combined with other data.
fn scatter(dtype: &str, combined: &str, accuracy: &str, [n, d, bins]: [i64; 3]) -> String {
    let place = format!("bounded((ids[vi] % {bins}u32) as i64, 0..{bins}), vd");
    let update = combined.replace("$h", &format!("h[{place}]")).replace("$x", "x[vi, vd]");
    format!(
        "kernel scatter(in ids: u32[{n}], in x: {dtype}[{n}, {d}], inout h: {dtype}[{bins}, {d}]){accuracy} {{
  for i in 0..{n} {{ for d in 0..{d} {{
    block h(vi: ordered {n} = i, vd: spatial {d} = d) {{ h[{place}] = {update} }}
  }} }}
}}"
    )
}

#[test]
fn each_thread_updates_integers_in_one_step() {
    let combined = [("$h + $x * $x", "add"), ("max($h, $x)", "max"), ("min($x, $h)", "min")];
    for dtype in ["i32", "u32", "i64", "u64"] {
        for (combined, name) in combined {
            for sizes in [[1, 1, 1], [7, 3, 5], [300, 1, 11], [61, 37, 2]] {
                let program = parse(&scatter(dtype, combined, "", sizes));
                let schedule = schedule_by_default(&program, Target::generic_gpu());
                let flat = lowered(schedule.program());
                let call = Call::random(&program, &[], 3);
                let code = call.compare(&flat);
                let is_atomic = code.ptx.contains(&format!("red.global.{name}."));
                assert!(is_atomic || sizes[0] == 1, "{}", code.ptx);
                assemble(&code.ptx);
                assert_eq!(call.simulated(&flat, &code).tensors, call.interpreted(&program), "{program}");
            }
        }
    }
}

#[test]
fn updates_without_an_instruction_keep_their_order() {
    for (dtype, combined) in [("i8", "$h + $x"), ("u16", "max($h, $x)"), ("i32", "$h * $x")] {
        let program = parse(&scatter(dtype, combined, "", [61, 3, 5]));
        let schedule = schedule_by_default(&program, Target::generic_gpu());
        let flat = lowered(schedule.program());
        let call = Call::random(&program, &[], 3);
        let code = call.compare(&flat);
        assert!(!code.ptx.contains("red."), "{}", code.ptx);
        assert_eq!(call.simulated(&flat, &code).tensors, call.interpreted(&program), "{program}");
    }
}

#[test]
fn sums_of_floats_keep_their_order_unless_the_kernel_has_an_accuracy() {
    for (accuracy, is_atomic) in [("", false), (" accuracy 0.001", true)] {
        let program = parse(&scatter("f32", "$h + $x", accuracy, [200, 3, 7]));
        let schedule = schedule_by_default(&program, Target::generic_gpu());
        let flat = lowered(schedule.program());
        let code = code_of(&flat);
        assert_eq!(code.ptx.contains("red.global.add.f32"), is_atomic, "{}", code.ptx);
        assemble(&code.ptx);
        let call = Call::random(&program, &[], 8);
        let (found, expected) = (call.simulated(&flat, &code).tensors, call.interpreted(&program));
        assert!(found[2].all_close(&expected[2], 1e-4, 1e-5), "{program}");
    }
}

/// A sum over all elements, of which each block of threads adds a part to the result in one step.
#[test]
fn blocks_of_threads_add_their_parts_of_a_sum() {
    for (len, parts) in [(256, 4), (96, 3), (4096, 8)] {
        let program = parse(&format!(
            "kernel sum(in x: i32[{len}], out s: i32[1]) {{
  for i in 0..1 {{ for k in 0..{len} {{
    block s(vi: spatial 1 = i, vk: reduce {len} = k) {{
      init {{ s[vi] = 0i32 }}
      s[vi] = s[vi] + x[vk]
    }}
  }} }}
}}"
        ));
        let mut schedule = Schedule::new(program.clone(), std::sync::Arc::new(Target::generic_gpu()), 0);
        let sum = schedule.get_block("s").expect("a block");
        let loops = schedule.get_loops(sum).expect("loops");
        let parts = schedule.split(loops[1], &[Some(parts), None]).expect("any loop");
        let (partial, sum) = schedule.rfactor(sum, parts[0], 0).expect("a reduction");
        let part = *schedule.get_loops(sum).expect("loops").last().expect("a loop over parts");
        schedule.decompose_reduction(sum, part).expect("a reduction");
        schedule.update_atomically(sum).expect("integers");
        let part = *schedule.get_loops(sum).expect("loops").last().expect("a loop over parts");
        schedule.compute_at(partial, part).expect("each part is used once");
        schedule.bind(part, ThreadAxis::BlockX).expect("updates in one step");
        let inner = *schedule.get_loops(partial).expect("loops").last().expect("a loop of a part");
        let threads = schedule.split(inner, &[None, Some(32)]).expect("any loop");
        schedule.bind(threads[1], ThreadAxis::ThreadX).expect("a reduction by a warp");
        let flat = lower(schedule.program(), &LowerOptions::of(&Target::generic_gpu()))
            .unwrap_or_else(|error| panic!("{error}\n{}", schedule.program()));
        let call = Call::random(&program, &[], 1);
        let code = call.compare(&flat);
        assert!(code.ptx.contains("red.global.add.u32"), "{flat}\n{}", code.ptx);
        assemble(&code.ptx);
        assert_eq!(call.simulated(&flat, &code).tensors, call.interpreted(&program), "{program}");
    }
}

/// Threads count in memory that they share, before one step for each element adds to the result.
const SHARED: &str = "kernel histogram(in x: i32[640], inout h: i32[8]) {
  buffer own: i32[8] shared
  bound block_x for b in 0..5 {
    alloc own {
      bound thread_x for t in 0..32 {
        if t < 8 { own[t] = 0i32 }
        barrier()
        for k in 0..4 {
          atomic own[bounded((x[b*128 + k*32 + t] & 7i32) as i64, 0..8)] = own[bounded((x[b*128 + k*32 + t] & 7i32) as i64, 0..8)] + 1i32
        }
        barrier()
        if t < 8 { atomic h[t] = h[t] + own[t] }
      }
    }
  }
}";

#[test]
fn threads_count_in_memory_that_they_share() {
    let flat = parse(SHARED);
    let call = Call::random(&flat, &[], 2);
    call.check(&flat);
    let code = code_of(&flat);
    assert!(
        code.ptx.contains("red.shared.add.u32") && code.ptx.contains("red.global.add.u32"),
        "{}",
        code.ptx
    );
}

#[test]
fn updates_in_more_than_one_step_race() {
    let plain = parse(&SHARED.replace("atomic own", "own"));
    let mut tensors = Call::random(&plain, &[], 2).tensors;
    let error = tilewright_core::interp::run(&plain, &[], &[], &mut tensors).expect_err("threads race");
    assert!(error.to_string().contains("a barrier is missing"), "{error}");
    let code = code_of(&plain);
    let module = tilewright_ptx_sim::Module::parse(&code.ptx).expect("emitted");
    let options = tilewright_ptx_sim::Options::default();
    let execution = Call::random(&plain, &[], 2).execute(&plain, &code, &module, &options);
    assert!(!execution.findings.is_empty(), "{}", code.ptx);
}

#[test]
fn an_operation_without_an_instruction_is_an_error() {
    let flat = parse(
        "kernel products(in x: i32[64], inout y: i32[1]) {
  bound thread_x for t in 0..64 { atomic y[0] = y[0] * x[t] }
}",
    );
    let error = emit(&flat, &tilewright_core::target::GpuTarget::generic()).expect_err("no such instruction");
    assert!(error.to_string().contains("an update in one step by `*` of i32"), "{error}");
}

#[test]
fn a_place_that_does_not_exist_is_reported() {
    let program = parse(
        "kernel histogram(in x: i32[40], inout h: i32[7]) {
  for i in 0..40 { block h(vi: ordered 40 = i) { h[bounded(x[vi] as i64, 0..7)] = h[bounded(x[vi] as i64, 0..7)] + 1i32 } }
}",
    );
    let schedule = schedule_by_default(&program, Target::generic_gpu());
    let flat = lowered(schedule.program());
    let places: Vec<i32> = (0..40).map(|i| if i == 33 { 9 } else { i % 7 }).collect();
    let tensors = vec![
        AnyTensor::from_slice(&places, &[40]).expect("it fits"),
        AnyTensor::from_slice(&[0; 7], &[7]).expect("it fits"),
    ];
    let call = Call { tensors, ..Call::default() };
    assert_eq!(call.simulated(&flat, &code_of(&flat)).failure, [1, 9, 7]);
}
