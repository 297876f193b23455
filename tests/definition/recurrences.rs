//! Loops that carry values, scatters, and places of maxima.

use tilewright::{Tensor, tensor_fn, tensor_kernel};

/// The cumulative sum of each row, and the cumulative product of each column.
#[tensor_kernel]
pub(crate) fn cumulative(x: &Tensor<f32, M, N>) -> (Tensor<f32, M, N>, Tensor<f32, M, N>) {
    let mut sums = Tensor::zeros();
    let mut products = Tensor::full(1.0);
    for i in 0..M {
        let mut sum = 0.0;
        for j in 0..N {
            sum += x[[i, j]];
            sums[[i, j]] = sum;
        }
    }
    for i in 0..M {
        for j in 0..N {
            products[[i, j]] = if i == 0 { x[[i, j]] } else { products[[i - 1, j]] * x[[i, j]] };
        }
    }
    (sums, products)
}

/// h = tanh(W·h + U·x + b), for each step of each sequence; all states.
#[tensor_kernel]
pub(crate) fn recurrent(
    x: &Tensor<f32, B, T, I>,
    u: &Tensor<f32, H, I>,
    w: &Tensor<f32, H, H>,
    bias: &Tensor<f32, H>,
) -> Tensor<f32, B, T, H> {
    let mut y = Tensor::zeros();
    for b in 0..B {
        let mut state: Tensor<f32, H> = Tensor::zeros();
        let mut next: Tensor<f32, H> = Tensor::zeros();
        for t in 0..T {
            for j in 0..H {
                let mut sum = bias[[j]];
                for i in 0..I {
                    sum += u[[j, i]] * x[[b, t, i]];
                }
                for k in 0..H {
                    sum += w[[j, k]] * state[[k]];
                }
                next[[j]] = sum.tanh();
            }
            for j in 0..H {
                state[[j]] = next[[j]];
                y[[b, t, j]] = next[[j]];
            }
        }
    }
    y
}

/// One sweep of Gauss and Seidel over a grid.
#[tensor_kernel]
pub(crate) fn sweep(x: &mut Tensor<f32, M, N>, source: &Tensor<f32, M, N>) {
    for i in 1..M - 1 {
        for j in 1..N - 1 {
            let around = x[[i - 1, j]] + x[[i + 1, j]] + x[[i, j - 1]] + x[[i, j + 1]];
            x[[i, j]] = 0.25 * (around - source[[i, j]]);
        }
    }
}

#[tensor_fn]
fn leaves(re: f32, im: f32) -> bool {
    re * re + im * im > 4.0
}

/// How many iterations of z² + c stay within the circle.
#[tensor_kernel]
pub(crate) fn mandelbrot(re: &Tensor<f32, N>, im: &Tensor<f32, N>, steps: usize) -> Tensor<i32, N> {
    let mut count = Tensor::zeros();
    for i in 0..N {
        let mut x = 0.0;
        let mut y = 0.0;
        for step in 0..steps {
            let real = x * x - y * y + re[[i]];
            y = 2.0 * x * y + im[[i]];
            x = real;
            if !leaves(x, y) {
                count[[i]] = step as i32 + 1;
            }
        }
    }
    count
}

/// A polynomial by Horner's rule.
#[tensor_kernel]
pub(crate) fn horner(x: &Tensor<f64, N>, coefficients: &Tensor<f64, K>) -> Tensor<f64, N> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        let mut value = 0.0;
        for k in 0..K {
            value = value * x[[i]] + coefficients[[k]];
        }
        y[[i]] = value;
    }
    y
}

/// How often each value occurs, and the sum of what belongs to it.
#[tensor_kernel]
pub(crate) fn histogram(
    ids: &Tensor<i32, N>,
    x: &Tensor<f32, N, D>,
    bins: usize,
) -> (Tensor<i32, bins>, Tensor<f32, bins, D>) {
    let mut counts = Tensor::zeros();
    let mut sums = Tensor::zeros();
    for i in 0..N {
        counts[[ids[[i]] as usize]] += 1;
        for d in 0..D {
            sums[[ids[[i]] as usize, d]] += x[[i, d]];
        }
    }
    (counts, sums)
}

/// Overlapping windows, added up.
#[tensor_kernel]
pub(crate) fn overlap_add(frames: &Tensor<f32, F, W>, hop: usize) -> Tensor<f32, { F * hop + W }> {
    let mut y = Tensor::zeros();
    for f in 0..F {
        for w in 0..W {
            y[[f * hop + w]] += frames[[f, w]];
        }
    }
    y
}

/// The first place of the greatest element of each row, the last place of the least one, and what stands beside it.
#[tensor_kernel]
pub(crate) fn extreme_places(
    x: &Tensor<f32, M, N>,
    beside: &Tensor<f32, N>,
) -> (Tensor<i64, M>, Tensor<i32, M>, Tensor<f32, M>) {
    let mut greatest = Tensor::zeros();
    let mut least = Tensor::full(-1);
    let mut neighbour = Tensor::zeros();
    for i in 0..M {
        let mut best = f32::NEG_INFINITY;
        let mut at = 0;
        for j in 0..N {
            if x[[i, j]] > best {
                best = x[[i, j]];
                at = j as i64;
            }
        }
        greatest[[i]] = at;
        let mut worst = x[[i, 0]];
        for j in 0..N {
            if x[[i, j]] <= worst {
                least[[i]] = j as i32;
                neighbour[[i]] = beside[[j]];
                worst = x[[i, j]];
            }
        }
    }
    (greatest, least, neighbour)
}

/// Row and column of the greatest element.
#[tensor_kernel]
pub(crate) fn greatest_of_all(x: &Tensor<i32, M, N>) -> Tensor<i32, 3> {
    let mut y = Tensor::full(-7);
    let mut best = 0;
    let mut row = 0;
    let mut column = 0;
    for i in 0..M {
        for j in 0..N {
            if x[[i, j]] > best {
                best = x[[i, j]];
                row = i as i32;
                column = j as i32;
            }
        }
    }
    y[[0]] = best;
    y[[1]] = row;
    y[[2]] = column;
    y
}

fn random<const RANK: usize>(shape: [usize; RANK], seed: u64) -> Tensor<f32, RANK> {
    let mut state = seed;
    let elements: Vec<f32> = (0..shape.iter().product())
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        })
        .collect();
    Tensor::from_slice(&elements, shape).expect("it fits into memory")
}

#[track_caller]
fn close<const RANK: usize>(found: &Tensor<f32, RANK>, expected: &Tensor<f32, RANK>) {
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-4 * expected.abs().max(1.0), "{found} is not {expected}");
    }
}

/// Machine code of the schedules that calls use, for vectors, tails and single elements.
#[test]
fn calls_compute_what_the_definitions_say() {
    for (m, n) in [(1, 1), (5, 33), (64, 17), (3, 200)] {
        let x = random([m, n], 1);
        let found = cumulative(&x).expect("the shapes fit");
        let expected = cumulative::reference(&x).expect("the shapes fit");
        close(&found.0, &expected.0);
        close(&found.1, &expected.1);
        let beside = random([n], 2);
        let found = extreme_places(&x, &beside).expect("the shapes fit");
        assert_eq!(found, extreme_places::reference(&x, &beside).expect("the shapes fit"));
        let mut swept = x.clone();
        let mut expected = x.clone();
        let source = random([m, n], 3);
        if m > 2 {
            sweep(&mut swept, &source).expect("the shapes fit");
            sweep::reference(&mut expected, &source).expect("the shapes fit");
            close(&swept, &expected);
        }
    }
}

#[test]
fn calls_of_networks_and_scatters_compute_what_the_definitions_say() {
    for (b, t, i, h) in [(1, 1, 1, 1), (3, 4, 5, 17), (2, 6, 8, 32)] {
        let (x, u, w) = (random([b, t, i], 4), random([h, i], 5), random([h, h], 6));
        let bias = random([h], 7);
        let found = recurrent(&x, &u, &w, &bias).expect("the shapes fit");
        close(&found, &recurrent::reference(&x, &u, &w, &bias).expect("the shapes fit"));
    }
    for (n, d, bins) in [(1, 1, 1), (100, 33, 7)] {
        let ids = Tensor::from_fn([n], |[i]| (i * i % bins) as i32).expect("it fits into memory");
        let x = random([n, d], 8);
        let found = histogram(&ids, &x, bins).expect("the shapes fit");
        let expected = histogram::reference(&ids, &x, bins).expect("the shapes fit");
        assert_eq!(found.0, expected.0);
        close(&found.1, &expected.1);
        let far = Tensor::full([n], bins as i32).expect("it fits into memory");
        assert!(histogram(&far, &x, bins).is_err(), "there is no bin {bins}");
        assert!(histogram::reference(&far, &x, bins).is_err(), "there is no bin {bins}");
    }
    let (re, im) = (random([77], 9), random([77], 10));
    let found = mandelbrot(&re, &im, 20).expect("the shapes fit");
    let expected = mandelbrot::reference(&re, &im, 20).expect("the shapes fit");
    let differing = found.iter().zip(&expected).filter(|(found, expected)| found != expected).count();
    assert!(differing <= 1, "{differing} of 77 points differ: only one at the border may, by its rounding");
    let frames = random([6, 9], 11);
    let found = overlap_add(&frames, 4).expect("the shapes fit");
    close(&found, &overlap_add::reference(&frames, 4).expect("the shapes fit"));
    let numbers =
        Tensor::from_fn([7, 9], |[i, j]| (i * 31 + j * 17) as i32 % 23).expect("it fits into memory");
    let found = greatest_of_all(&numbers).expect("the shapes fit");
    assert_eq!(found, greatest_of_all::reference(&numbers).expect("the shapes fit"));
}
