//! How many complete candidates (replay, postprocess, features, prediction) a core generates per second.

use std::sync::Arc;
use std::time::Instant;

use tilewright_core::program::Program;
use tilewright_core::target::{Target, TargetKind};
use tilewright_search::candidate::Generator;
use tilewright_search::default_schedule::default_candidate;
use tilewright_search::evolution::{Evolution, EvolutionOptions};
use tilewright_search::model::{BoostedModel, BoosterParameters};
use tilewright_search::rule::RuleSet;
use tilewright_search::space::design_spaces;

fn main() {
    let path = std::env::args().nth(1).expect("usage: generation PROGRAM");
    let program: Program = std::fs::read_to_string(path).unwrap().trim().parse().unwrap();
    let target = Arc::new(Target { cores: 2, ..Target::generic_cpu() });
    let rules = RuleSet::built_in(TargetKind::Cpu).unwrap();
    let spaces = design_spaces(&program, &target, &rules, 1);
    println!("{} spaces", spaces.len());
    let options = EvolutionOptions { threads: 1, ..EvolutionOptions::default() };
    let generator = Generator { program: program.clone(), target: target.clone() };
    let mut evolution = Evolution::new(generator, spaces, options, 1);
    let model = BoostedModel::new(BoosterParameters::default());
    let start = Instant::now();
    let mut rounds = 0;
    let mut picks = Vec::new();
    while start.elapsed().as_secs_f64() < 2.0 {
        picks = evolution.propose(16, &model);
        rounds += 1;
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{rounds} rounds, {:.0} candidates/s; {:?}",
        evolution.statistics.generated as f64 / seconds,
        evolution.statistics
    );
    for pick in picks.iter().take(2) {
        println!("{}", pick.features.prior());
    }
    let start = Instant::now();
    let best = default_candidate(&program, &target, &rules).unwrap();
    println!("default in {:?}, score {}\n{}", start.elapsed(), best.features.prior(), best.program);
}
