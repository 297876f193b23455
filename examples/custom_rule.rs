//! A schedule rule of one's own: forty lines that make the best kernel faster.
//!
//! Two layers of a network, of which the inner one is wide: `max(x·w, 0)·v`. The built-in rules tile both products, one
//! after the other, and the hidden layer goes to memory and back between them. Who wrote the network knows that
//! the hidden layer is by far the largest tensor here, so the rule below offers to compute it piece by piece, just
//! before the second product uses up the piece.
//!
//! `cargo run --release --example custom_rule`

use std::time::Duration;

use tilewright::core::target::TargetKind;
use tilewright::prelude::*;
use tilewright::search::rule::{RuleOutcome, RuleSet};
use tilewright::tuning::Tuner;

/// y = max(x·w, 0)·v
#[tensor_kernel]
pub fn two_layers(x: &Tensor<f32, M, D>, w: &Tensor<f32, D, H>, v: &Tensor<f32, H, O>) -> Tensor<f32, M, O> {
    let mut hidden: Tensor<f32, M, H> = Tensor::zeros();
    for i in 0..M {
        for h in 0..H {
            for d in 0..D {
                hidden[[i, h]] += x[[i, d]] * w[[d, h]];
            }
        }
    }
    let mut y = Tensor::zeros();
    for i in 0..M {
        for o in 0..O {
            for h in 0..H {
                y[[i, o]] += hidden[[i, h]].max(0.0) * v[[h, o]];
            }
        }
    }
    y
}

/// Offers, for a product whose left operand is itself a product, to compute that operand piece by piece.
#[schedule_rule(target = "cpu", after = "auto_inline", before = "reduce_in_lanes")]
pub fn fuse_products(s: &mut Schedule, block: BlockRv) -> RuleResult {
    let [hidden] = s.get_producers(block)?[..] else { return s.unchanged() };
    let ([i, o, h], [_, _, _]) = (&s.get_loops(block)?[..], &s.get_loops(hidden)?[..]) else {
        return s.unchanged();
    };
    let (i, o, h) = (*i, *o, *h);
    let apart = s.fork();

    // A piece of the hidden layer: some rows and columns. The product that uses it keeps four rows in registers.
    let rows = s.sample_categorical(&[16, 32, 64, 128], &[0.25; 4])?;
    let columns = s.sample_categorical(&[64, 128, 256], &[0.3, 0.4, 0.3])?;
    let i = s.split(i, &[None, Some(rows)])?;
    let h = s.split(h, &[None, Some(columns)])?;
    let tile = s.split(i[1], &[None, Some(4)])?;
    s.reorder(&[i[0], h[0], tile[0], h[1], tile[1], o])?;

    // The piece is computed where it is used, with a tile of its own in registers.
    s.compute_at(hidden, h[0])?;
    let [.., i, h, d] = s.get_loops(hidden)?[..] else { return s.unchanged() };
    let i = s.split(i, &[None, Some(4)])?;
    let lanes = i64::from(s.cpu()?.lanes(4));
    let h = s.split(h, &[None, Some(2 * lanes)])?;
    s.reorder(&[i[0], h[0], d, i[1], h[1]])?;

    Ok(RuleOutcome::Variants(vec![apart, s.clone()]))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tilewright::init();
    let shape = [("M", 4096), ("D", 16), ("H", 1024), ("O", 16)];
    let built_in = RuleSet::built_in(TargetKind::Cpu)?;
    let with_rule = built_in.clone().with(fuse_products::ENTRY)?;
    let mut best = Vec::new();
    for (name, rules) in [("built-in rules", built_in), ("with fuse_products", with_rule)] {
        println!("{name}");
        let tuned = Tuner::new()
            .trials(48)
            .time_limit(Duration::from_secs(15))
            .rules(rules)
            .progress(true)
            .tune(two_layers::kernel(), &shape)?;
        println!("{tuned}\n");
        best.push(tuned.best_seconds.ok_or("nothing was measured")?);
    }
    println!("the rule makes the best kernel {:.2} times as fast", best[0] / best[1]);
    Ok(())
}
