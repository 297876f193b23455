//! With any trace in a record, a call gives the right result: the trace replays to a legal schedule, or it is
//! passed over with a note.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use tilewright::core::schedule::Trace;
use tilewright::prelude::*;
use tilewright::search::records::{Measurement, Outcome, Provenance, Record, TunedFor};
use tilewright::{Source, explain};

/// C = max(A·B, 0)
#[tensor_kernel]
fn product(a: &Tensor<f32, M, K>, b: &Tensor<f32, K, N>) -> Tensor<f32, M, N> {
    let mut c: Tensor<f32, M, N> = Tensor::zeros();
    let mut out = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                c[[i, j]] += a[[i, k]] * b[[k, j]];
            }
        }
    }
    for i in 0..M {
        for j in 0..N {
            out[[i, j]] = c[[i, j]].max(0.0);
        }
    }
    out
}

const SHAPE: [i64; 3] = [24, 16, 12];
const CASES: usize = 150;
const NUMBERS: [&str; 12] =
    ["0", "1", "2", "3", "5", "7", "8", "64", "256", "1000000", "-1", "9223372036854775807"];

/// The text with one thing changed: a number, or a line that is dropped, doubled or moved.
fn mutate(text: &str, rng: &mut StdRng) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let line = rng.random_range(1..lines.len());
    match rng.random_range(0..6) {
        0 => drop(lines.remove(line)),
        1 => lines.insert(line, lines[line].clone()),
        2 => {
            let other = rng.random_range(1..lines.len());
            lines.swap(line, other);
        }
        _ => {
            let digits: Vec<(usize, &str)> =
                lines[line].match_indices(|character: char| character.is_ascii_digit()).collect();
            if let Some(&(at, digit)) = digits.choose(rng) {
                let number = NUMBERS.choose(rng).expect("there are some");
                let changed = format!("{}{number}{}", &lines[line][..at], &lines[line][at + digit.len()..]);
                lines[line] = changed;
            }
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn changed_traces_give_right_results_or_are_passed_over() {
    let kernel = product::kernel();
    let dims: Vec<(&str, i64)> = kernel.dims().into_iter().zip(SHAPE).collect();
    let original = explain(kernel, &dims).expect("a good definition").trace.to_string();
    let [m, k, n] = ["M", "K", "N"].map(|name| {
        dims.iter().find(|(dim, _)| *dim == name).map(|(_, size)| *size as usize).expect("a dimension")
    });
    let a = Tensor::from_fn([m, k], |[i, k]| ((3 * i + k) % 11) as f32 - 5.0).expect("a small tensor");
    let b = Tensor::from_fn([k, n], |[k, j]| ((5 * k + j) % 7) as f32 - 3.0).expect("a small tensor");
    // Small integers: every order of the additions gives the same sums.
    let expected = product::reference(&a, &b).expect("the arguments fit");

    let mut rng = StdRng::seed_from_u64(11);
    let (mut used, mut unreadable) = (0, 0);
    for case in 0..CASES {
        let mut text = original.clone();
        for _ in 0..rng.random_range(1..4) {
            text = mutate(&text, &mut rng);
        }
        let Ok(trace) = text.parse::<Trace>() else {
            unreadable += 1;
            continue;
        };
        // Each is faster than those before it, so that it is the one that is looked up.
        let median_ns = 1e6 - case as f64;
        tilewright::use_record(Record {
            kernel: kernel.name().to_owned(),
            program: kernel.hash().expect("a good definition"),
            shape: kernel.shape(&SHAPE),
            target: TunedFor::of(&tilewright::run_context().expect("a good environment")),
            trace,
            outcome: Outcome::Measured(Measurement {
                median_ns,
                spread: 0.0,
                max_rel_err: 0.0,
                is_confirmed: false,
            }),
            provenance: Provenance::default(),
        })
        .expect("a good environment");
        let found = product(&a, &b).unwrap_or_else(|error| panic!("case {case}: {error}\n{text}"));
        assert_eq!(found, expected, "case {case}\n{text}");
        let explanation = explain(kernel, &dims).expect("it was just called");
        match explanation.source {
            Source::Exact { median_ns: used_ns } => {
                assert_eq!(used_ns, median_ns, "case {case}\n{text}");
                used += 1;
            }
            _ => assert!(!explanation.notes.is_empty(), "case {case} was passed over without a note\n{text}"),
        }
    }
    assert!(used > CASES / 20, "only {used} of {CASES} traces were used, {unreadable} were unreadable");
}
