//! A separate crate can change the search: rules, mutators and postprocessors before, after and instead of the built-in
//! ones.

#[path = "../benches/composition/kernels.rs"]
#[allow(dead_code, reason = "the experiment has more kernels")]
mod kernels;
#[path = "../../../benches/operators/kernels.rs"]
mod operators;

use tilewright::core::schedule::{Decision, Instruction};
use tilewright::core::target::TargetKind;
use tilewright::prelude::*;
use tilewright::search::mutate::{Change, Mutator, Mutators};
use tilewright::search::postproc::{Postprocessor, Postprocessors, Rejection};
use tilewright::search::rule::{RuleSet, RuleSetError};
use tilewright::search::space::design_spaces;
use tilewright::tuning::{Isolation, Tuned, Tuner};
use tilewright_example_rules::strips::products_in_strips;

/// Says of itself that it comes early.
#[schedule_rule(target = "cpu", before = "custom_rule")]
fn early(s: &mut Schedule, _: BlockRv) -> RuleResult {
    s.unchanged()
}

fn built_in() -> RuleSet {
    RuleSet::built_in(TargetKind::Cpu).expect("the built-in rules are in order")
}

fn neighbours(rules: &Result<RuleSet, RuleSetError>, name: &str) -> [&'static str; 2] {
    let names = rules.as_ref().expect("the rule has a place").names();
    let place = names.iter().position(|other| *other == name).expect("the rule is in the set");
    [names[place - 1], names[place + 1]]
}

#[test]
fn a_rule_that_is_linked_is_applied() {
    let names = RuleSet::registered(TargetKind::Cpu).expect("the rules are in order").names();
    let place = |name: &str| names.iter().position(|other| *other == name).expect("it is in the set");
    assert!(place("auto_inline") < place("products_in_strips"), "{names:?}");
    assert!(place("products_in_strips") < place("add_rfactor"), "{names:?}");
}

#[test]
fn a_rule_comes_before_after_or_instead_of_a_built_in_one() {
    let names = built_in().names();
    for pair in names.windows(2) {
        assert_eq!(neighbours(&built_in().after(pair[0], early::ENTRY), "early"), pair);
        assert_eq!(neighbours(&built_in().before(pair[1], early::ENTRY), "early"), pair);
    }
    for place in 1..names.len() - 1 {
        let replaced = built_in().instead_of(names[place], early::ENTRY);
        assert_eq!(neighbours(&replaced, "early"), [names[place - 1], names[place + 1]]);
    }
}

#[test]
fn unknown_names_are_answered_with_the_names_that_there_are() {
    let rules = built_in().before("multilevel_tiling", early::ENTRY).unwrap_err().to_string();
    assert!(rules.starts_with("there is no schedule rule `multilevel_tiling`; there are `custom_rule`, "));
    assert!(rules.contains("`multi_level_tiling`"), "{rules}");
    let mutators = Mutators::built_in(TargetKind::Cpu).without("tile").unwrap_err().to_string();
    assert_eq!(mutators, "there is no mutator `tile`; there are `tile_size`, `categorical`, `resample`");
    let postprocessors = Postprocessors::built_in(TargetKind::Cpu).only(&["vectorise"]);
    let postprocessors = postprocessors.unwrap_err().to_string();
    assert!(
        postprocessors.starts_with("there is no postprocessor `vectorise`; there are `lay_out_constants`")
    );
}

fn tune(kernel: &tilewright::Kernel, dims: &[(&str, i64)], tuner: Tuner) -> Tuned {
    let tuned = tuner.trials(8).threads(2).isolation(Isolation::InProcess).tune(kernel, dims);
    tuned.unwrap_or_else(|error| panic!("{error}"))
}

fn trace(tuned: &Tuned) -> String {
    tuned.record.as_ref().expect("something was measured").trace.to_string()
}

const SMALL: [(&str, i64); 3] = [("M", 33), ("K", 20), ("N", 48)];

#[test]
fn postprocessors_of_others_are_applied_in_their_places() {
    fn refuse_lanes(s: &mut Schedule) -> Result<(), Rejection> {
        if s.program().to_string().contains("vectorized") { Err(Rejection("lanes")) } else { Ok(()) }
    }
    let built_in = || Postprocessors::built_in(TargetKind::Cpu);
    let own = || Postprocessor::new("refuse_lanes", refuse_lanes);
    let kernel = kernels::dense_gelu::kernel();
    let refused = |postprocessors: Postprocessors| {
        let tuned = tune(kernel, &SMALL, Tuner::new().postprocessors(postprocessors));
        tuned.rejected.get("lanes").copied().unwrap_or(0)
    };
    let before = built_in().before("vectorize_blocks", own()).expect("there is such a one");
    assert_eq!(refused(before), 0, "nothing is in lanes before");
    let after = built_in().after("vectorize_blocks", own()).expect("there is such a one");
    assert!(refused(after) > 0, "most candidates are in lanes after");
    let instead = built_in().instead_of("vectorize_blocks", own()).expect("there is such a one");
    assert_eq!(refused(instead.clone()), 0);
    let found = trace(&tune(kernel, &SMALL, Tuner::new().postprocessors(instead)));
    assert!(!found.contains("\nvectorize"), "{found}");
    assert!(trace(&tune(kernel, &SMALL, Tuner::new())).contains("\nvectorize"));
}

#[test]
fn a_postprocessor_that_panics_refuses_what_it_sees() {
    let own = Postprocessor::new("panics", |s| match s.trace().to_string().contains("\nparallel") {
        true => panic!("parallel loops are not expected"),
        false => Ok(()),
    });
    let all = Postprocessors::built_in(TargetKind::Cpu).with(own).expect("the name is free");
    let tuned = tune(kernels::dense_gelu::kernel(), &SMALL, Tuner::new().postprocessors(all));
    assert!(
        tuned.rejected.get("postprocessor_panic").is_some_and(|count| *count > 0),
        "{:?}",
        tuned.rejected
    );
    assert!(!trace(&tuned).contains("\nparallel"));
}

#[test]
fn mutators_of_others_are_drawn_and_cost_only_themselves() {
    fn is_choice(step: &tilewright::core::schedule::Step, _: &Decision) -> bool {
        matches!(step.instruction, Instruction::SampleCategorical(_))
    }
    let first =
        Mutator::new("first_choice", 1.0, is_choice, |_, _, _| Some(Change::Decide(Decision::Choice(0))));
    let wrong =
        Mutator::new("wrong", 1.0, is_choice, |_, _, _| Some(Change::Decide(Decision::Choice(usize::MAX))));
    let panics = Mutator::new("panics", 1.0, is_choice, |_, _, _| panic!("no choice is good"));
    let own = Mutators::new().with(first).and_then(|own| own.with(wrong)).and_then(|own| own.with(panics));
    let tuner = Tuner::new().mutators(own.expect("the names differ"));
    let tuned = tune(kernels::dense_gelu::kernel(), &SMALL, tuner);
    assert_eq!(tuned.trials, 8);
    assert!(tuned.rejected.get("bad_decision").is_some_and(|count| *count > 0), "{:?}", tuned.rejected);
}

#[test]
fn products_in_strips_compute_the_same() {
    let rules = built_in()
        .only(&["auto_inline", "parallelize_vectorize_unroll"])
        .and_then(|rules| rules.after("auto_inline", products_in_strips::ENTRY))
        .expect("there are such rules");
    let shapes: [(&tilewright::Kernel, &[(&str, i64)]); 4] = [
        (kernels::attention::kernel(), &[("H", 2), ("S", 37), ("D", 10)]),
        (kernels::attention::kernel(), &[("H", 1), ("S", 64), ("D", 16)]),
        (kernels::attention::kernel(), &[("H", 1), ("S", 1), ("D", 1)]),
        (kernels::two_layers::kernel(), &[("M", 41), ("D", 5), ("H", 70), ("O", 9)]),
    ];
    for (kernel, dims) in shapes {
        let tuned = tune(kernel, dims, Tuner::new().rules(rules.clone()));
        // Each candidate that is measured has been compared with the definition.
        assert!(!tuned.rejected.contains_key("wrong_result"), "{dims:?}: {:?}", tuned.rejected);
        assert!(tuned.trials > 0 && tuned.best_seconds.is_some(), "{dims:?}");
    }
}

#[test]
fn products_in_strips_are_offered_where_two_products_lead_to_a_result() {
    let context = tilewright::run_context().expect("this machine can be compiled for");
    let rules = RuleSet::new().with(products_in_strips::ENTRY).expect("one rule has an order");
    let spaces = |kernel: &tilewright::Kernel, dims: &[(&str, i64)]| {
        let dims = kernel.dims_by_name(dims).expect("the dimensions fit");
        let program = kernel.program_for(&dims).expect("it is a program");
        let spaces = design_spaces(&program, &context, &rules, 1);
        let in_strips = spaces.iter().filter(|space| space.to_string().contains("compute_at")).count();
        (spaces.len(), in_strips)
    };
    let (attention, layers) = (kernels::attention::kernel(), kernels::two_layers::kernel());
    assert_eq!(spaces(attention, &[("H", 2), ("S", 64), ("D", 16)]), (2, 1));
    let large = [("H", 64), ("S", 8192), ("D", 16)];
    assert_eq!(spaces(attention, &large), (1, 1), "its scores fit into no cache");
    assert_eq!(spaces(layers, &[("M", 64), ("D", 8), ("H", 64), ("O", 8)]), (2, 1));
    assert_eq!(spaces(kernels::dense_gelu::kernel(), &SMALL), (1, 0), "one product");
    assert_eq!(spaces(operators::softmax::kernel(), &[("M", 8), ("N", 8)]), (1, 0), "no product");
}
