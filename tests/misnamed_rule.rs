//! A linked rule that names a rule which does not exist: calls work, and tuning says what is wrong and which rules there are.

use tilewright::prelude::*;
use tilewright::tuning::Tuner;

#[schedule_rule(target = "cpu", after = "auto_inlin")]
fn misplaced(s: &mut Schedule, _: BlockRv) -> RuleResult {
    s.unchanged()
}

#[tensor_kernel]
fn twice(x: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        y[[i]] = x[[i]] + x[[i]];
    }
    y
}

#[test]
fn a_misnamed_rule_is_an_error_of_tuning_that_lists_the_rules() {
    let x = Tensor::from_slice(&[1.0f32, 2.0], [2]).unwrap();
    assert_eq!(twice(&x).unwrap().as_slice(), [2.0, 4.0]);
    let records = tempfile::tempdir().unwrap();
    let mut tuner = Tuner::new().trials(2).threads(1).records(records.path());
    let error = tuner.tune(twice::kernel(), &[("N", 64)]).unwrap_err().to_string();
    assert!(error.contains("`misplaced`") && error.contains("`after = \"auto_inlin\"`"), "{error}");
    assert!(error.contains("tests/misnamed_rule.rs:7"), "{error}");
    for name in ["auto_inline", "parallelize_vectorize_unroll"] {
        assert!(error.contains(name), "{error}");
    }
}
