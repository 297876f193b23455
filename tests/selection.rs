//! Which schedule a call uses: the record of its shape, that of the nearest, or the default.

use tilewright::core::program::Program;
use tilewright::core::schedule::{Rng, Schedule, Trace};
use tilewright::prelude::*;
use tilewright::search::records::{Database, Measurement, Outcome, Provenance, Record, TunedFor};
use tilewright::search::schedule_by_default;
use tilewright::search::spec::DeviceFunctions;
use tilewright::{Kernel, Source, explain};

/// Defines a kernel of a name, because records are known to the whole process.
macro_rules! scaled {
    ($($name:ident $factor:literal),*) => {$(
        #[tensor_kernel]
        fn $name(x: &Tensor<f32, M, N>) -> Tensor<f32, M, N> {
            let mut y = Tensor::zeros();
            for i in 0..M {
                for j in 0..N {
                    y[[i, j]] = x[[i, j]] * $factor;
                }
            }
            y
        }
    )*};
}

scaled!(exact 2.0, near 3.0, greater 4.0, hostile 5.0, written 6.0, edited 7.0);

fn dims(m: i64, n: i64) -> [(&'static str, i64); 2] {
    [("M", m), ("N", n)]
}

fn record(kernel: &Kernel, (m, n): (i64, i64), trace: Trace) -> Record {
    Record {
        kernel: kernel.name().to_owned(),
        program: kernel.hash().expect("a good definition"),
        shape: kernel.shape(&[m, n]),
        target: TunedFor::of(&tilewright::run_context().expect("a good environment")),
        trace,
        outcome: Outcome::Measured(Measurement {
            median_ns: 1234.0,
            spread: 0.0,
            max_rel_err: 0.0,
            is_confirmed: false,
        }),
        provenance: Provenance::default(),
    }
}

/// Splits the rows by four and runs them in parallel.
fn schedule(kernel: &Kernel, (m, n): (i64, i64)) -> Trace {
    let context = tilewright::run_context().expect("a good environment");
    let mut schedule = Schedule::new(kernel.program_for(&[m, n]).expect("the dimensions fit"), context, 0);
    let block = schedule.get_block("y").expect("the block is named after its tensor");
    let loops = schedule.get_loops(block).expect("it has loops");
    let parts = schedule.sample_perfect_tile(loops[0], 2, 4).expect("a loop can be tiled");
    let rows = schedule.split(loops[0], &[Some(parts[0]), Some(parts[1])]).expect("it divides");
    schedule.parallel(rows[0]).expect("rows are independent");
    schedule.into_parts().1
}

fn doubles_as(kernel: fn(&Tensor<f32, 2>) -> Tensor<f32, 2>, factor: f32, shape: [usize; 2]) {
    let x = Tensor::from_fn(shape, |[i, j]| (10 * i + j) as f32).expect("a small tensor");
    let y = kernel(&x);
    assert!(x.iter().zip(&y).all(|(x, y)| factor * x == *y), "{y}");
}

#[test]
fn a_record_of_the_shape_is_used_as_it_is() {
    let kernel = exact::kernel();
    assert_eq!(explain(kernel, &dims(8, 6)).unwrap().source, Source::Default);
    let trace = schedule(kernel, (8, 6));
    tilewright::use_record(record(kernel, (8, 6), trace.clone())).unwrap();
    let explanation = explain(kernel, &dims(8, 6)).unwrap();
    assert_eq!(explanation.source, Source::Exact { median_ns: 1234.0 }, "{:?}", explanation.notes);
    assert_eq!(explanation.trace, trace);
    assert!(explanation.scheduled.to_string().contains("parallel for"), "{}", explanation.scheduled);
    doubles_as(|x| exact(x).unwrap(), 2.0, [8, 6]);
}

#[test]
fn the_nearest_record_is_fitted() {
    let kernel = near::kernel();
    for shape in [(8, 6), (4096, 6)] {
        tilewright::use_record(record(kernel, shape, schedule(kernel, shape))).unwrap();
    }
    let explanation = explain(kernel, &dims(11, 6)).unwrap();
    let Source::Nearest { shape, distance } = &explanation.source else {
        panic!("{:?} {:?}", explanation.source, explanation.notes)
    };
    assert_eq!(*shape, kernel.shape(&[8, 6]));
    assert!((distance - (11f64 / 8.0).ln()).abs() < 1e-12);
    for rows in [1, 7, 8, 11, 64] {
        doubles_as(|x| near(x).unwrap(), 3.0, [rows, 6]);
    }
}

/// The sums of the squares of rows.
#[tensor_kernel]
fn squares(x: &Tensor<f32, M, N>) -> Tensor<f32, M> {
    let mut y = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            y[[i]] += x[[i, j]] * x[[i, j]];
        }
    }
    y
}

#[test]
fn a_record_of_another_shape_is_not_predicted_slower_than_the_default() {
    let (kernel, context) = (squares::kernel(), tilewright::run_context().expect("a good environment"));
    let device = DeviceFunctions::built_in(context.target.kind());
    let predicted = |program: &Program| {
        (device.extract_features)(program, &context).expect("a scheduled program").prior()
    };
    let default = |(m, n): (i64, i64)| {
        let program = kernel.program_for(&[m, n]).expect("the dimensions fit");
        schedule_by_default(&program, &context)
    };
    let mut random = Rng::new(11);
    let mut other_shapes = 0;
    for round in 0..6 {
        let mut below = |most: usize| random.below(most) as i64;
        let shape = (1 + below(40), 1 + below(1100));
        tilewright::use_record(record(kernel, shape, default(shape).trace().clone())).unwrap();
        let neighbour = (shape.0 + below(3), shape.1 + 1 + below(16));
        let explanation = explain(kernel, &dims(neighbour.0, neighbour.1)).unwrap();
        other_shapes += u32::from(matches!(explanation.source, Source::Nearest { .. }));
        let sizes = [neighbour.0 as usize, neighbour.1 as usize];
        let x = Tensor::from_fn(sizes, |[i, j]| ((i + 3 * j) % 7) as f32).expect("a small tensor");
        assert_eq!(
            squares(&x).unwrap().as_slice(),
            squares::reference(&x).unwrap().as_slice(),
            "small integers"
        );
        let (chosen, usual) = (predicted(&explanation.scheduled), predicted(default(neighbour).program()));
        assert!(
            chosen >= 0.95 * usual,
            "round {round}, {shape:?} for {neighbour:?}: {chosen} and {usual}, {}",
            explanation.source
        );
    }
    println!("{other_shapes} records of other shapes were used");
}

#[test]
fn records_of_a_greater_machine_are_passed_over_with_a_note() {
    let kernel = greater::kernel();
    let mut greater_record = record(kernel, (8, 6), schedule(kernel, (8, 6)));
    greater_record.target.features.insert("warp-drive".to_owned());
    tilewright::use_record(greater_record).unwrap();
    let explanation = explain(kernel, &dims(8, 6)).unwrap();
    assert_eq!(explanation.source, Source::Default);
    assert!(explanation.notes.iter().any(|note| note.contains("need warp-drive")), "{:?}", explanation.notes);
    doubles_as(|x| greater(x).unwrap(), 4.0, [8, 6]);
}

#[test]
fn a_record_that_does_not_fit_the_kernel_falls_back_with_a_note() {
    let kernel = hostile::kernel();
    for text in [
        "trace v1\n%0 = get_block \"no such block\"\n",
        "trace v1\n%0 = get_block \"y\"\n%1, %2, %3 = get_loops %0\n",
        "trace v1\n%0 = get_block \"y\"\ncompute_inline %0\n",
    ] {
        let trace: Trace = text.parse().expect("the grammar is right");
        tilewright::use_record(record(kernel, (8, 6), trace)).unwrap();
        let explanation = explain(kernel, &dims(8, 6)).unwrap();
        assert_eq!(explanation.source, Source::Default, "{text}");
        assert!(
            explanation.notes.iter().any(|note| note.contains("does not replay")),
            "{:?}",
            explanation.notes
        );
        doubles_as(|x| hostile(x).unwrap(), 5.0, [8, 6]);
    }
}

#[test]
fn an_edited_decision_that_does_not_multiply_up_is_told_and_not_repaired() {
    let kernel = edited::kernel();
    let good = schedule(kernel, (8, 6)).to_string();
    let line = good.lines().find(|line| line.contains("sample_perfect_tile")).expect("it has a tile");
    let (head, _) = line.rsplit_once('[').expect("a decision");
    for factors in ["[3, 4]", "[8, 2]", "[0, 4]", "[2, 2, 2]"] {
        let trace: Trace =
            good.replace(line, &format!("{head}{factors}")).parse().expect("the grammar is right");
        tilewright::use_record(record(kernel, (8, 6), trace)).unwrap();
        let explanation = explain(kernel, &dims(8, 6)).unwrap();
        assert_eq!(explanation.source, Source::Default, "{factors}");
        let told = explanation.notes.iter().any(|note| {
            note.contains("does not replay")
                && note.contains("sample_perfect_tile")
                && note.contains("decision")
        });
        assert!(told, "{factors}: {:?}", explanation.notes);
        doubles_as(|x| edited(x).unwrap(), 7.0, [8, 6]);
    }
}

#[test]
fn records_from_files_are_used_and_their_problems_told() {
    let kernel = written::kernel();
    let directory = tempfile::tempdir().unwrap();
    let mut database = Database::open(directory.path()).unwrap();
    database.append(record(kernel, (8, 6), schedule(kernel, (8, 6)))).unwrap();
    let mut renamed = record(kernel, (8, 6), schedule(kernel, (8, 6)));
    renamed.kernel = "once_was".to_owned();
    database.append(renamed).unwrap();
    std::fs::write(directory.path().join("broken.jsonl"), "not a record\n").unwrap();

    let problems = tilewright::use_records(directory.path()).unwrap();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].to_string().contains("broken.jsonl:1: not a record"), "{}", problems[0]);
    assert!(matches!(explain(kernel, &dims(8, 6)).unwrap().source, Source::Exact { .. }));
    let all: Vec<_> = tilewright::record_problems().unwrap().iter().map(ToString::to_string).collect();
    assert!(all.iter().any(|problem| problem.contains("no kernel `once_was`")), "{all:?}");
}
