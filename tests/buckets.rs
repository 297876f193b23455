//! Buckets: a call runs the schedule of its bucket's bound with guards, whatever its size.

use tilewright::core::schedule::{Schedule, Trace};
use tilewright::prelude::*;
use tilewright::search::records::{Measurement, Outcome, Provenance, Record, TunedFor};
use tilewright::{Kernel, Source, explain};

/// Defines a kernel of a name, because records and buckets are known to the whole process.
macro_rules! product {
    ($($name:ident),*) => {$(
        /// C = A·B
        #[tensor_kernel]
        fn $name(a: &Tensor<f32, M, K>, b: &Tensor<f32, K, N>) -> Tensor<f32, M, N> {
            let mut c = Tensor::zeros();
            for i in 0..M {
                for j in 0..N {
                    for k in 0..K {
                        c[[i, j]] += a[[i, k]] * b[[k, j]];
                    }
                }
            }
            c
        }
    )*};
}

product!(tuned, untuned, refused, twofold, misfitted, immense);

const BOUNDS: [i64; 4] = [1, 16, 32, 128];

/// Small integers: every order of additions gives the same sum.
fn numbers(shape: [usize; 2]) -> Tensor<f32, 2> {
    Tensor::from_fn(shape, |[i, j]| ((3 * i + 5 * j) % 7) as f32 - 3.0).unwrap()
}

fn dims(m: usize, n: usize, k: usize) -> [(&'static str, i64); 3] {
    [("M", m as i64), ("N", n as i64), ("K", k as i64)]
}

/// Tiles of four rows, unrolled.
fn schedule(kernel: &Kernel, dims: &[i64]) -> Trace {
    let context = tilewright::run_context().unwrap();
    let mut schedule = Schedule::new(kernel.program_for(dims).unwrap(), context, 0);
    let block = schedule.get_block("c").unwrap();
    let loops = schedule.get_loops(block).unwrap();
    let parts = schedule.sample_perfect_tile(loops[0], 2, 4).unwrap();
    let rows = schedule.split(loops[0], &[Some(parts[0]), Some(parts[1])]).unwrap();
    schedule.reorder(&[loops[1], loops[2], rows[1]]).unwrap();
    schedule.into_parts().1
}

fn record(kernel: &Kernel, m: i64) {
    let dims = kernel.dims_by_name(&[("M", m), ("N", 24), ("K", 10)]).unwrap();
    use_trace(kernel, &dims, schedule(kernel, &dims));
}

fn use_trace(kernel: &Kernel, dims: &[i64], trace: Trace) {
    let measurement = Measurement { median_ns: 1000.0, spread: 0.0, max_rel_err: 0.0, is_confirmed: false };
    tilewright::use_record(Record {
        kernel: kernel.name().to_owned(),
        program: kernel.hash().unwrap(),
        shape: kernel.shape(dims),
        target: TunedFor::of(&tilewright::run_context().unwrap()),
        trace,
        outcome: Outcome::Measured(measurement),
        provenance: Provenance::default(),
    })
    .unwrap();
}

#[test]
fn every_size_is_served_by_its_bucket() {
    let kernel = tuned::kernel();
    BOUNDS.into_iter().for_each(|bound| record(kernel, bound));
    kernel.set_buckets(&[("M", &BOUNDS)]).unwrap();
    let sizes = [1, 2, 3, 7, 13, 15, 16, 17, 31, 32, 33, 97, 100, 127, 128, 129, 131, 300, 0];
    for m in sizes {
        let (a, b) = (numbers([m, 10]), numbers([10, 24]));
        assert_eq!(tuned(&a, &b).unwrap(), tuned::reference(&a, &b).unwrap(), "{m} rows");
        let explanation = explain(kernel, &dims(m, 24, 10)).unwrap();
        let bound = BOUNDS.into_iter().find(|bound| *bound >= m as i64);
        match (&explanation.source, bound) {
            (Source::Exact { .. }, Some(bound)) => assert_eq!(bound, m as i64),
            (Source::Bucket { shape, is_tuned }, Some(bound)) => {
                assert_eq!((shape.dims["M"], *is_tuned), (bound, true));
                assert!(bound > m as i64 && m > 0);
                assert!(
                    explanation.source.to_string().contains(&format!("the bucket of K=10, M={bound}, N=24"))
                );
            }
            // Beyond the last bound, and without a row, as if there were no buckets.
            (source, _) => {
                assert!(m > 128 || m == 0, "{m} rows: {source} {:?}", explanation.notes);
            }
        }
    }
}

#[test]
fn sizes_of_one_bucket_share_their_code() {
    // Other sizes than above: equal definitions share their records.
    let kernel = untuned::kernel();
    kernel.set_buckets(&[("M", &[64])]).unwrap();
    let text = |m: usize| {
        let explanation = explain(kernel, &dims(m, 20, 12)).unwrap();
        assert!(
            matches!(&explanation.source, Source::Bucket { is_tuned: false, .. }),
            "{} {:?}",
            explanation.source,
            explanation.notes
        );
        explanation.flat.to_string()
    };
    let first = text(5);
    for m in [1, 13, 63] {
        let (a, b) = (numbers([m, 12]), numbers([12, 20]));
        assert_eq!(untuned(&a, &b).unwrap(), untuned::reference(&a, &b).unwrap(), "{m} rows");
        assert_eq!(text(m), first);
    }
}

#[test]
fn several_dimensions_can_have_buckets() {
    let kernel = twofold::kernel();
    kernel.set_buckets(&[("N", &[8, 64]), ("M", &[16])]).unwrap();
    for (m, n) in [(3, 5), (16, 9), (7, 64), (15, 65), (17, 3), (16, 64)] {
        let (a, b) = (numbers([m, 10]), numbers([10, n]));
        assert_eq!(twofold(&a, &b).unwrap(), twofold::reference(&a, &b).unwrap(), "{m}×{n}");
        let source = explain(kernel, &dims(m, n, 10)).unwrap().source;
        let is_inside = m <= 16 && n <= 64 && (m, n) != (16, 64);
        assert_eq!(matches!(source, Source::Bucket { .. }), is_inside, "{m}×{n}: {source}");
    }
}

#[test]
fn buckets_that_make_no_sense_are_refused() {
    let message =
        |buckets: &[(&str, &[i64])]| refused::kernel().set_buckets(buckets).unwrap_err().to_string();
    assert!(message(&[("Q", &[1])]).contains("`Q` can have no buckets"));
    assert!(message(&[("M", &[0, 4])]).contains("0 is no bound of `M`"));
    assert!(message(&[("M", &[4]), ("M", &[8])]).contains("`M` is given twice"));
    assert!(message(&[("M", &[])]).contains("`M` has no bounds"));
    assert!(message(&[("M", &[4, i64::MAX])]).contains("no tensor can be that large"));
    refused::kernel().set_buckets(&[("M", &[8, 4, 8])]).unwrap();
}

#[test]
fn bounds_that_are_too_large_together_do_not_serve() {
    immense::kernel().set_buckets(&[("M", &[1 << 40]), ("N", &[1 << 40])]).unwrap();
    let (a, b) = (numbers([3, 6]), numbers([6, 5]));
    assert_eq!(immense(&a, &b).unwrap(), immense::reference(&a, &b).unwrap());
    let explanation = explain(immense::kernel(), &dims(3, 5, 6)).unwrap();
    assert!(!matches!(explanation.source, Source::Bucket { .. }), "{}", explanation.source);
    let notes = explanation.notes.join("; ");
    assert!(notes.contains("the bucket of K=6, M=1099511627776, N=1099511627776 does not serve"), "{notes}");
}

#[test]
fn a_record_that_does_not_fit_is_not_what_a_bucket_is_tuned_by() {
    // A shape of its own: equal definitions share their records.
    let kernel = misfitted::kernel();
    let dims_of_bound = kernel.dims_by_name(&[("M", 48), ("N", 28), ("K", 14)]).unwrap();
    let text = schedule(kernel, &dims_of_bound).to_string().replace("\"c\"", "\"of_another_kernel\"");
    use_trace(kernel, &dims_of_bound, text.parse().unwrap());
    kernel.set_buckets(&[("M", &[48])]).unwrap();
    let explanation = explain(kernel, &dims(31, 28, 14)).unwrap();
    let is_untuned = matches!(explanation.source, Source::Bucket { is_tuned: false, .. });
    assert!(is_untuned, "{} {:?}", explanation.source, explanation.notes);
    let notes = explanation.notes.join("; ");
    assert!(notes.contains("the record of K=14, M=48, N=28 does not replay"), "{notes}");
}
