//! Tensors that stay the same between calls: what is computed from them ahead is found again, and never too late.

use tilewright::prelude::*;
use tilewright::search::records::{Measurement, Outcome, Provenance, Record, TunedFor};
use tilewright::search::schedule_by_default;
use tilewright::tuning::{Isolation, Tuner};
use tilewright::{Kernel, Source, explain};

/// x·wᵀ
#[tensor_kernel]
fn dense(x: &Tensor<f32, M, K>, #[constant] w: &Tensor<f32, N, K>) -> Tensor<f32, M, N> {
    let mut y = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                y[[i, j]] += x[[i, k]] * w[[j, k]];
            }
        }
    }
    y
}

/// x·w
#[tensor_kernel]
fn product(x: &Tensor<f32, M, K>, #[constant] w: &Tensor<f32, K, N>) -> Tensor<f32, M, N> {
    let mut y = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                y[[i, j]] += x[[i, k]] * w[[k, j]];
            }
        }
    }
    y
}

/// x·w
#[tensor_kernel]
fn unlike(x: &Tensor<f32, M, K>, #[constant] w: &Tensor<f32, K, N>) -> Tensor<f32, M, N> {
    let mut y = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                y[[i, j]] += x[[i, k]] * w[[k, j]];
            }
        }
    }
    y
}

/// The same without a mark.
#[tensor_kernel]
fn unmarked(x: &Tensor<f32, M, K>, w: &Tensor<f32, K, N>) -> Tensor<f32, M, N> {
    let mut y = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                y[[i, j]] += x[[i, k]] * w[[k, j]];
            }
        }
    }
    y
}

/// A product with a weight of small integers, each column with a scale of its own.
#[tensor_kernel]
fn quantised(
    x: &Tensor<f32, M, K>,
    #[constant] q: &Tensor<i8, K, N>,
    #[constant] scale: &Tensor<f32, N>,
) -> Tensor<f32, M, N> {
    let mut w: Tensor<f32, K, N> = Tensor::zeros();
    for k in 0..K {
        for j in 0..N {
            w[[k, j]] = (q[[k, j]] as f32 * scale[[j]]).exp();
        }
    }
    let mut y = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                y[[i, j]] += x[[i, k]] * w[[k, j]];
            }
        }
    }
    y
}

/// A product less its mean over the weight's columns: a weight in two stages.
#[tensor_kernel]
fn centred(x: &Tensor<f32, M, K>, #[constant] w: &Tensor<f32, K, N>, offset: f32) -> Tensor<f32, M, N> {
    let mut sums: Tensor<f32, N> = Tensor::zeros();
    for j in 0..N {
        for k in 0..K {
            sums[[j]] += w[[k, j]];
        }
    }
    let mut y = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            let mut sum = 0.0;
            for k in 0..K {
                sum += x[[i, k]] * w[[k, j]];
            }
            y[[i, j]] = sum - offset * sums[[j]];
        }
    }
    y
}
/// A convolution with its weight along the reduction.
#[tensor_kernel]
fn convolution(
    x: &Tensor<f32, H, W, C>,
    #[constant] w: &Tensor<f32, O, 3, 3, C>,
) -> Tensor<f32, { H - 2 }, { W - 2 }, O> {
    let mut y = Tensor::zeros();
    for h in 0..H - 2 {
        for v in 0..W - 2 {
            for o in 0..O {
                for a in 0..3 {
                    for b in 0..3 {
                        for c in 0..C {
                            y[[h, v, o]] += x[[h + a, v + b, c]] * w[[o, a, b, c]];
                        }
                    }
                }
            }
        }
    }
    y
}

/// How much smaller a result's error must be than its largest value.
const TOLERANCE: f32 = 1e-4;

fn tensor<const RANK: usize>(shape: [usize; RANK], seed: usize) -> Tensor<f32, RANK> {
    let mut state = seed;
    Tensor::from_fn(shape, |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    })
    .expect("it is small")
}

#[track_caller]
fn assert_close<const RANK: usize>(found: &Tensor<f32, RANK>, expected: &Tensor<f32, RANK>) {
    assert_eq!(found.shape(), expected.shape());
    let scale = expected.iter().fold(1.0, |scale: f32, value| scale.max(value.abs()));
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= TOLERANCE * scale, "{found} instead of {expected}");
    }
}

fn has_prologue(kernel: &Kernel, dims: &[(&str, i64)]) -> bool {
    explain(kernel, dims).expect("it compiles").prologue.is_some()
}

fn sizes(m: usize, k: usize, n: usize) -> [(&'static str, i64); 3] {
    [("M", m as i64), ("K", k as i64), ("N", n as i64)]
}

/// A view of the same elements, which has no identity.
fn view<T: tilewright::core::tensor::Element, const RANK: usize>(
    tensor: &Tensor<T, RANK>,
) -> TensorView<'_, T, RANK> {
    TensorView::new(tensor.as_slice(), tensor.shape()).expect("as many elements as the shape has")
}

#[test]
fn every_way_of_passing_constants_gives_the_definitions_result() {
    for [m, k, n] in
        [[32, 64, 96], [1, 128, 64], [5, 7, 11], [13, 1, 17], [3, 8, 1], [4, 0, 8], [0, 3, 2], [2, 3, 0]]
    {
        let x = tensor([m, k], 1);
        for seed in 2..4 {
            let (w, transposed) = (tensor([k, n], seed), tensor([n, k], seed));
            let q = Tensor::from_fn([k, n], |[k, n]| ((3 * k + 5 * n + seed) % 7) as i8).unwrap();
            let scale = tensor([n], 3 + seed);
            let expected = dense::reference(&x, &transposed).unwrap();
            for _ in 0..2 {
                assert_close(&dense(&x, &transposed).unwrap(), &expected);
                assert_close(&dense(&x, view(&transposed)).unwrap(), &expected);
            }
            let expected = quantised::reference(&x, &q, &scale).unwrap();
            for _ in 0..2 {
                assert_close(&quantised(&x, &q, &scale).unwrap(), &expected);
                assert_close(&quantised(&x, &q, view(&scale)).unwrap(), &expected);
            }
            let expected = centred::reference(&x, &w, 0.5).unwrap();
            for _ in 0..2 {
                assert_close(&centred(&x, &w, 0.5).unwrap(), &expected);
                assert_close(&centred(&x, view(&w), 0.5).unwrap(), &expected);
            }
        }
    }
    let dims = sizes(32, 64, 96);
    assert!(
        [dense::kernel(), quantised::kernel(), centred::kernel()]
            .iter()
            .all(|kernel| has_prologue(kernel, &dims))
    );
    assert!(!has_prologue(unmarked::kernel(), &dims));
}

#[test]
fn weights_of_more_dimensions_are_laid_out_too() {
    let (x, w) = (tensor([18, 11, 16], 1), tensor([32, 3, 3, 16], 2));
    assert_close(&convolution(&x, &w).unwrap(), &convolution::reference(&x, &w).unwrap());
    assert!(has_prologue(convolution::kernel(), &[("H", 18), ("W", 11), ("C", 16), ("O", 32)]));
}

#[test]
fn what_changes_between_calls_is_seen() {
    let (x, mut w) = (tensor([16, 48], 1), tensor([32, 48], 2));
    for round in 0..3 {
        assert_close(&dense(&x, &w).unwrap(), &dense::reference(&x, &w).unwrap());
        w[[round, 5]] += 10.0;
        assert_close(&dense(&x, &w).unwrap(), &dense::reference(&x, &w).unwrap());
        w.as_mut_slice()[7] -= 20.0;
        assert_close(&dense(&x, &w).unwrap(), &dense::reference(&x, &w).unwrap());
        TensorViewMut::from(&mut w)[[3, 3]] = 30.0;
        assert_close(&dense(&x, &w).unwrap(), &dense::reference(&x, &w).unwrap());
        let other = std::mem::replace(&mut w, tensor([32, 48], 3 + round));
        assert_close(&dense(&x, &w).unwrap(), &dense::reference(&x, &w).unwrap());
        assert_close(&dense(&x, &other).unwrap(), &dense::reference(&x, &other).unwrap());
    }
    assert!(has_prologue(dense::kernel(), &sizes(16, 48, 32)));
}

#[test]
fn either_of_two_constants_can_change() {
    let x = tensor([8, 24], 1);
    let mut q = Tensor::from_fn([24, 32], |[k, n]| ((3 * k + 5 * n) % 7) as i8).unwrap();
    let mut scales = [tensor([32], 2), tensor([32], 3)];
    for round in 0..6 {
        let scale = &mut scales[round % 2];
        assert_close(&quantised(&x, &q, &*scale).unwrap(), &quantised::reference(&x, &q, &*scale).unwrap());
        if round > 2 {
            scale[[round]] = 0.25;
        } else {
            q[[round, round]] = 9;
        }
        assert_close(&quantised(&x, &q, &*scale).unwrap(), &quantised::reference(&x, &q, &*scale).unwrap());
    }
    assert!(has_prologue(quantised::kernel(), &sizes(8, 24, 32)));
}

#[test]
fn memory_that_is_used_again_is_not_taken_for_what_was_there() {
    let x = tensor([8, 16], 1);
    for seed in 0..50 {
        let w = tensor([64, 16], seed);
        assert_close(&dense(&x, &w).unwrap(), &dense::reference(&x, &w).unwrap());
    }
    assert!(has_prologue(dense::kernel(), &sizes(8, 16, 64)));
}

#[test]
fn threads_share_weights() {
    let weights: Vec<Tensor<f32, 2>> = (0..3).map(|seed| tensor([40, 32], seed)).collect();
    let x = tensor([12, 32], 9);
    let expected: Vec<_> = weights.iter().map(|w| dense::reference(&x, w).unwrap()).collect();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (x, weights, expected) = (&x, &weights, &expected);
            scope.spawn(move || {
                for call in 0..60 {
                    let number = (thread + call) % weights.len();
                    assert_close(&dense(x, &weights[number]).unwrap(), &expected[number]);
                    let own = tensor([40, 32], 100 * thread + call);
                    assert_close(&dense(x, &own).unwrap(), &dense::reference(x, &own).unwrap());
                    assert_close(&dense(x, view(&own)).unwrap(), &dense::reference(x, &own).unwrap());
                }
            });
        }
    });
    assert!(has_prologue(dense::kernel(), &sizes(12, 32, 40)));
}

#[test]
fn untyped_calls_are_right_without_identities() {
    let (x, w) = (tensor([8, 16], 1), tensor([32, 16], 2));
    let mut y: Tensor<f32, 2> = Tensor::zeros([8, 32]).unwrap();
    let kernel = dense::kernel();
    let dims = kernel.dims_by_name(&sizes(8, 16, 32)).unwrap();
    let mut result = tilewright::core::tensor::AnyTensor::from(&y);
    let mut buffers = [x.as_slice().into(), w.as_slice().into(), (&mut result).into()];
    kernel.run(&dims, &[], &mut buffers).unwrap();
    y.as_mut_slice().copy_from_slice(result.as_slice().unwrap());
    assert_close(&y, &dense::reference(&x, &w).unwrap());
    let mut too_few = [x.as_slice().into()];
    assert!(kernel.run(&dims, &[], &mut too_few).is_err());
    let mut too_small = [x.as_slice().into(), w.as_slice()[1..].into(), (&mut result).into()];
    let error = kernel.run(&dims, &[], &mut too_small).unwrap_err().to_string();
    assert_eq!(error, "tensor `w` needs 2048 bytes for its shape, 2044 given");
}

#[test]
fn tuned_schedules_with_a_layout_are_recorded_and_found_again() {
    let dims = sizes(24, 48, 80);
    let directory = tempfile::tempdir().unwrap();
    let tuner = || Tuner::new().trials(64).seed(3).records(directory.path()).isolation(Isolation::InProcess);
    let tuned = tuner().tune(product::kernel(), &dims).unwrap();
    assert_eq!(tuned.rejected.get("wrong_result"), None, "{:?}", tuned.rejected);
    let text: String = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    assert!(
        text.contains("constant_layout") && text.contains("transform_layout"),
        "some trials lay the weight out"
    );
    assert_eq!(tuner().tune(product::kernel(), &dims).unwrap().trials, 0, "all of them are known");
    let explanation = explain(product::kernel(), &dims).unwrap();
    assert!(matches!(explanation.source, Source::Exact { .. }), "{}", explanation.source);
    let (x, w) = (tensor([24, 48], 1), tensor([48, 80], 2));
    assert_close(&product(&x, &w).unwrap(), &product::reference(&x, &w).unwrap());
}

#[test]
fn records_of_one_shape_serve_others() {
    // Some numbers of rows keep all tiles, so that the fitted schedule is predicted to be as fast as the default one: 24 on a machine with
    // AVX-512, 48 on one with AVX2.
    let near = [sizes(24, 48, 64), sizes(48, 48, 64)];
    let kernel = unlike::kernel();
    let context = tilewright::run_context().unwrap();
    let shape = [32, 48, 64];
    let program = kernel.program_for(&shape).unwrap();
    tilewright::use_record(Record {
        kernel: kernel.name().to_owned(),
        program: kernel.hash().unwrap(),
        shape: kernel.shape(&shape),
        target: TunedFor::of(&context),
        trace: schedule_by_default(&program, &context).trace().clone(),
        outcome: Outcome::Measured(Measurement {
            median_ns: 1234.0,
            spread: 0.0,
            max_rel_err: 0.0,
            is_confirmed: false,
        }),
        provenance: Provenance::default(),
    })
    .unwrap();
    let explanations = near.map(|near| explain(unlike::kernel(), &near).unwrap());
    assert!(
        explanations.iter().any(|explanation| matches!(explanation.source, Source::Nearest { .. })),
        "{:?}",
        explanations.map(|explanation| (explanation.source.to_string(), explanation.notes))
    );
    for [m, k, n] in [[24, 48, 64], [48, 48, 64], [64, 48, 64], [30, 40, 72]] {
        let (x, w) = (tensor([m, k], 1), tensor([k, n], 2));
        assert_close(&unlike(&x, &w).unwrap(), &unlike::reference(&x, &w).unwrap());
    }
}
