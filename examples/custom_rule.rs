//! A schedule rule of one's own: thirty lines that make the best kernel faster.
//!
//! All pairs of dot products `x·yᵀ` read both operands along the reduction, so the built-in rules find no
//! loop to put into vector lanes. The rule below spreads the reduction itself over lanes, and keeps a small tile
//! of partial sums in registers.
//!
//! `cargo run --release --example custom_rule`

use std::time::Duration;

use tilewright::core::target::TargetKind;
use tilewright::prelude::*;
use tilewright::search::rule::{RuleOutcome, RuleSet};
use tilewright::tuning::Tuner;

/// s[i, j] = xᵢ · yⱼ
#[tensor_kernel]
pub fn similarity(x: &Tensor<f32, M, K>, y: &Tensor<f32, N, K>) -> Tensor<f32, M, N> {
    let mut s = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                s[[i, j]] += x[[i, k]] * y[[j, k]];
            }
        }
    }
    s
}

/// Offers, for a block in three loops that reduces over the innermost one, partial sums in vector lanes.
#[schedule_rule(target = "cpu", after = "add_rfactor", before = "multi_level_tiling")]
pub fn reduce_in_lanes(s: &mut Schedule, block: BlockRv) -> RuleResult {
    let [i, j, k] = s.get_loops(block)?[..] else { return s.unchanged() };
    let plain = s.fork();

    // Partial sums: one for each lane.
    let lanes = i64::from(s.target().lanes(4));
    let parts = s.split(k, &[None, Some(lanes)])?;
    let (partial, total) = s.rfactor(block, parts[1], -1)?;
    debug_assert_eq!(s.get_loops(partial)?[..2], [i, j]);

    // A tile of totals, and the partial sums of just that tile, with the reduction outside.
    let [i, j, _] = s.get_loops(total)?[..] else { return s.unchanged() };
    let rows = s.split(i, &[None, Some(2)])?;
    let columns = s.split(j, &[None, Some(4)])?;
    s.reorder(&[rows[0], columns[0], rows[1], columns[1]])?;
    s.compute_at(partial, columns[0])?;
    let [.., row, column, step, lane] = s.get_loops(partial)?[..] else { return s.unchanged() };
    s.reorder(&[step, row, column, lane])?;

    Ok(RuleOutcome::Variants(vec![plain, s.clone()]))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tilewright::init();
    let shape = [("M", 256), ("N", 256), ("K", 256)];
    let built_in = RuleSet::built_in(TargetKind::Cpu)?;
    let with_rule = built_in.clone().with(reduce_in_lanes::ENTRY)?;
    let mut best = Vec::new();
    for (name, rules) in [("built-in rules", built_in), ("with reduce_in_lanes", with_rule)] {
        println!("{name}");
        let tuned = Tuner::new()
            .trials(48)
            .time_limit(Duration::from_secs(15))
            .rules(rules)
            .progress(true)
            .tune(similarity::kernel(), &shape)?;
        println!("{tuned}\n");
        best.push(tuned.best_seconds.ok_or("nothing was measured")?);
    }
    println!("the rule makes the best kernel {:.2} times as fast", best[0] / best[1]);
    Ok(())
}
