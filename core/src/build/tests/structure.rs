//! The structure of programs that definitions become.

use super::*;
use crate::build::bounds::check_in_bounds;

/// The lines that say what is computed: buffers, blocks without iterators, conditions and stores.
fn outline(program: &Program) -> Vec<String> {
    let text = program.to_string();
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| {
            line.starts_with("buffer")
                || line.starts_with("block")
                || line.starts_with("if")
                || line.contains(" = ") && !line.ends_with(',')
        })
        .map(|line| match line.strip_prefix("block ").and_then(|rest| rest.split_once('(')) {
            Some((name, _)) => format!("block {name}"),
            None => line.to_owned(),
        })
        .collect()
}

#[track_caller]
fn check(program: &Program, expected: &[&str]) {
    assert_eq!(outline(program), expected, "\n{program}");
}

#[test]
fn a_reduction_takes_its_zeros_as_initial_value() {
    let expected = ["block c", "c[vi, vj] = 0.0", "c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]"];
    check(&kernels::matmul(), &expected);
}

#[test]
fn the_only_element_of_a_tensor_is_all_of_it() {
    let expected = ["block y", "y[0] = 0.0", "y[0] = y[0] + x[vi] * x[vi]"];
    check(&kernels::dot_into_one_element(), &expected);
}

#[test]
fn an_accumulator_that_is_only_copied_is_the_output() {
    assert_eq!(kernels::matmul_accumulator().to_string(), kernels::matmul().to_string());
}

#[test]
fn the_whole_text_of_a_matmul() {
    let expected = r#"kernel matmul(M, N, K, in a: f32[M, K], in b: f32[K, N], out c: f32[M, N]) {
  for i in 0..M {
    for j in 0..N {
      for k in 0..K {
        block c(vi: spatial M = i, vj: spatial N = j, vk: reduce K = k) at "kernel.rs:6:1" {
          init {
            c[vi, vj] = 0.0
          }
          c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
        }
      }
    }
  }
}
"#;
    assert_eq!(kernels::matmul().to_string(), expected);
}

#[test]
fn a_costly_value_used_twice_is_computed_once() {
    check(
        &kernels::softmax(),
        &[
            "buffer largest: f32[M] global",
            "buffer y_1: f32[M, N] global",
            "buffer sum: f32[M] global",
            "block largest",
            "largest[vi] = f32::NEG_INFINITY",
            "largest[vi] = max(largest[vi], x[vi, vj])",
            "block y_1",
            "y_1[vi_1, vj_1] = exp(x[vi_1, vj_1] - largest[vi_1])",
            "block sum",
            "sum[vi_2] = 0.0",
            "sum[vi_2] = sum[vi_2] + y_1[vi_2, vj_2]",
            "block y",
            "y[vi_3, vj_3] = y_1[vi_3, vj_3] / sum[vi_3]",
        ],
    );
}

#[test]
fn padding_stays_a_condition_inside_the_reduction() {
    let program = kernels::conv2d();
    let text = program.to_string();
    assert!(text.contains("sum[voh, vow, vo] = bias[vo]"), "{text}");
    assert!(text.contains("x[voh + vkh - 1, vow + vkw - 1, vc] * f[vkh, vkw, vc, vo], 0.0)"), "{text}");
}

#[test]
fn a_scalar_used_in_a_deeper_loop_gets_a_buffer_when_it_is_costly() {
    let outline = outline(&kernels::layer_norm());
    assert!(outline.contains(&"block scale".to_owned()), "{outline:?}");
    assert!(!outline.contains(&"block mean".to_owned()), "{outline:?}");
    assert!(
        outline.contains(&"squares[vi_1] = mul_add(x[vi_1, vj_1], x[vi_1, vj_1], squares[vi_1])".to_owned()),
        "{outline:?}"
    );
}

#[test]
fn an_index_from_data_is_checked() {
    check(&kernels::gather(), &["block y", "y[vi, vj] = table[bounded(ids[vi] as i64, 0..ROWS), vj]"]);
}

#[test]
fn parts_that_cover_all_need_no_zeros() {
    check(&kernels::concat(), &["block y", "y[vi] = p[vi]", "block y_1", "y[M + vi_1] = q[vi_1]"]);
}

#[test]
fn a_triangle_is_a_condition_in_a_rectangle() {
    check(
        &kernels::causal(),
        &["block y", "y[vi] = 0.0", "y[vi] = y[vi] + select(vj < index(vi + 1), x[vj], 0.0)"],
    );
    check(&kernels::upper_triangle(), &["block y", "y[vi, vj] = select(vj >= vi, x[vi, vj], 0.0)"]);
}

#[test]
fn a_condition_in_place_keeps_the_old_value() {
    check(&kernels::relu_in_place(), &["block x", "x[vi] = select(x[vi] < 0.0, 0.0, x[vi])"]);
}

#[test]
fn outputs_are_in_the_order_of_return() {
    let text = kernels::several_outputs().to_string();
    assert!(text.starts_with("kernel rows(M, N, in x: f32[M, N], out largest: f32[M], out sums: f32[M])"));
}

#[test]
fn a_value_is_kept_when_its_source_is_overwritten() {
    check(
        &kernels::swap(),
        &[
            "buffer t: f32[N] global",
            "block t",
            "t[vi] = x[vi]",
            "block x",
            "x[vi_1] = y[vi_1]",
            "block y",
            "y[vi_2] = t[vi_2]",
        ],
    );
}

#[test]
fn scaling_in_place_becomes_the_initial_value() {
    check(
        &kernels::gemm_in_place(),
        &["block c", "c[vi, vj] = c[vi, vj] * beta", "c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]"],
    );
}

#[test]
fn a_partial_write_leaves_the_initial_value_elsewhere() {
    check(&kernels::strided_write(), &["block y_init", "y[vd0] = 7.0", "block y", "y[vi*2 + 4] = x[vi]"]);
}

#[test]
fn a_later_reduction_starts_from_the_earlier_one() {
    check(
        &kernels::two_reductions(),
        &[
            "buffer sum_1: f32[M] global",
            "block sum_1",
            "sum_1[vi] = 1.0",
            "sum_1[vi] = sum_1[vi] + x[vi, vj]",
            "block y",
            "y[vi_1] = sum_1[vi_1] * 0.5",
            "y[vi_1] = y[vi_1] + x[vi_1, vj_1*2]",
        ],
    );
}

#[test]
fn a_transposed_convolution_in_gather_form() {
    let text = kernels::transposed_conv().to_string();
    assert!(text.contains("block y(vo: spatial N*2 + K = o, vt: reduce K = t)"), "{text}");
    assert!(text.contains("x[(vo - vt)/2] * f[vt], 0.0)"), "{text}");
}

#[test]
fn a_value_that_would_grow_without_end_gets_buffers() {
    let mut b = KernelBuilder::new("doubling");
    let n = b.dim("N");
    let x = input(&mut b, "x", &[&n]);
    let y = zeros(&mut b, "y", &[&n]);
    each(&mut b, "i", &n, |b, i| {
        let mut value = load(b, x, &[&i]);
        for _ in 0..40 {
            value = b.bind("v", add(&value, &value), at(3));
        }
        store(b, y, &[&i], UpdateOp::Set, value, 4);
    });
    b.output(y);
    let text = build(b).to_string();
    assert!(text.len() < 20_000, "{} characters", text.len());
}

#[test]
fn a_stride_may_be_a_parameter() {
    let mut b = KernelBuilder::new("strided");
    let (h, stride) = (b.dim("H"), b.dim("stride"));
    let x = input(&mut b, "x", &[&h]);
    let rows = add(&div(&sub(&h, &int(3)), &stride), &int(1));
    let y = zeros(&mut b, "y", &[&rows]);
    each(&mut b, "o", &rows, |b, o| {
        each(b, "k", &int(3), |b, k| {
            let place = b.bind("place", add(&mul(&o, &stride), &k), at(4));
            store(b, y, &[&o], UpdateOp::Add, load(b, x, &[&place]), 5);
        });
    });
    b.output(y);
    let program = build(b);
    let sizes: Vec<_> =
        program.dims().map(|(var, name)| (var, if &**name == "H" { 10 } else { 2 })).collect();
    let bound = program.bind_dims(&sizes);
    let text = bound.to_string();
    assert!(text.contains("y[vo] = y[vo] + x[vo*2 + vk]"), "{text}");
    assert!(text.contains("block y(vo: spatial 4 = o, vk: reduce 3 = k)"), "{text}");
    assert_eq!(check_in_bounds(&bound).as_ref(), Ok(&bound));
}
