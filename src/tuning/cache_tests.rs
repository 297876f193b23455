//! Tuning with cold caches: recorded as such, and kept apart from warm ones.

use tilewright_measure::subject::{Subject, SubjectOptions};
use tilewright_runtime::devices;
use tilewright_search::records::Database;
use tilewright_search::schedule_by_default;

use super::report::{Peak, Series};
use super::{CacheState, Tuner};
use crate::prelude::*;

/// The sums of rows.
#[tensor_kernel]
fn row_sums(x: &Tensor<f32, M, N>) -> Tensor<f32, M> {
    let mut y = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            y[[i]] += x[[i, j]];
        }
    }
    y
}

const DIMS: [(&str, i64); 2] = [("M", 16), ("N", 64)];

#[test]
fn records_and_reports_say_when_caches_were_cold() {
    let directory = tempfile::tempdir().unwrap();
    let tune = |cache| {
        let mut tuner = Tuner::new().records(directory.path()).trials(3).cache(cache);
        tuner.tune(row_sums::kernel(), &DIMS).unwrap()
    };
    assert_eq!(tune(CacheState::Cold).earlier_trials, 0);
    assert_eq!(tune(CacheState::Warm).earlier_trials, 0, "those of cold caches do not count");
    assert_eq!(tune(CacheState::Cold).earlier_trials, 3);
    let database = Database::open(directory.path()).unwrap();
    assert_eq!(database.problems(), []);
    let titles: Vec<String> =
        Series::of_records(&database, Peak::Recorded).iter().map(Series::title).collect();
    assert_eq!(titles, ["row_sums[M=16, N=64]", "row_sums[M=16, N=64], cold caches"]);
}

#[test]
fn runs_with_cold_caches_give_the_same_results() {
    let options = SubjectOptions { seed: 1, threads: 1, cache: None };
    let device = devices::default_device().unwrap();
    let mut subject = Subject::new(row_sums::kernel(), &[16, 64], device, &options).unwrap();
    subject.set_cache(CacheState::Cold);
    let context = devices::run_context_with_threads(1).unwrap();
    let trace = schedule_by_default(subject.program(), context).trace().to_string();
    let compiled = subject.compile(&[trace]).pop().unwrap().unwrap();
    let mut tensors = subject.arguments();
    for repetitions in [1, 20] {
        subject.reset(&mut tensors);
        assert!(!subject.run(&compiled, &mut tensors, repetitions).unwrap().is_zero());
        subject.check(&tensors).unwrap();
    }
}
