//! Softmax over the scores of causal attention, at several lengths: one definition, tuned at one shape, called at all.
//!
//! `cargo run --release --example attention_softmax`

use std::time::Duration;

use tilewright::prelude::*;
use tilewright::tuning::Tuner;

/// Softmax of each row over the positions up to its own; the rest is 0.
#[tensor_kernel]
pub fn causal_softmax(scores: &Tensor<f32, H, S, S>, scale: f32) -> Tensor<f32, H, S, S> {
    let mut y = Tensor::zeros();
    for h in 0..H {
        for i in 0..S {
            let mut largest = f32::NEG_INFINITY;
            for j in 0..S {
                largest = largest.max(if j <= i { scores[[h, i, j]] * scale } else { f32::NEG_INFINITY });
            }
            let mut sum = 0.0;
            for j in 0..S {
                let e = if j <= i { (scores[[h, i, j]] * scale - largest).exp() } else { 0.0 };
                y[[h, i, j]] = e;
                sum += e;
            }
            for j in 0..S {
                y[[h, i, j]] = y[[h, i, j]] / sum;
            }
        }
    }
    y
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tilewright::init();
    let tuned = Tuner::new()
        .trials(48)
        .time_limit(Duration::from_secs(15))
        .progress(true)
        .tune(causal_softmax::kernel(), &[("H", 12), ("S", 128)])?;
    println!("\n{tuned}\n");
    for length in [1, 7, 64, 128, 130] {
        let scores = Tensor::from_fn([12, length, length], |[h, i, j]| ((h + 3 * i + 5 * j) % 17) as f32)?;
        let y = causal_softmax(&scores, 0.125)?;
        let expected = causal_softmax::reference(&scores, 0.125)?;
        let error =
            y.as_slice().iter().zip(expected.as_slice()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        let source =
            tilewright::explain(causal_softmax::kernel(), &[("H", 12), ("S", length as i64)])?.source;
        println!("length {length:>3}: schedule from {source}, largest error {error:.1e}");
        assert!(error < 1e-5, "length {length}");
    }
    Ok(())
}
